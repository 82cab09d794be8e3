#include "runnel/io/event_reader.h"

#include <algorithm>
#include <optional>

#include "runnel/base/format.h"
#include "runnel/base/moved_from.h"
#include "runnel/base/varint.h"
#include "runnel/io/caller_line.h"
#include "runnel/io/file_frame.h"
#include "runnel/io/origin.h"

namespace runnel::io {
namespace {

constexpr int kDeepestRun = 64;  // folders may be links to what is above them

void find_runs_below(const std::string& folder, const std::string& name, int depth, Env& env,
                     std::vector<EventRun>& runs) {
  EventRun run{.name = name.empty() ? "." : name, .files = {}};
  for (const std::string& entry : env.list(folder)) {
    const std::string path = join_path(folder, entry);
    bool is_dir = false;
    try {
      is_dir = env.stat(path).is_dir;
    } catch (const Error&) {
      continue;  // vanished, or a link to nothing
    }
    if (!is_dir) {
      if (is_event_file(entry)) run.files.push_back(path);
    } else if (depth < kDeepestRun) {
      try {
        find_runs_below(path, name.empty() ? entry : name + "/" + entry, depth + 1, env, runs);
      } catch (const Error& e) {
        if (e.code() != Code::not_found) throw;
      }
    }
  }
  if (!run.files.empty()) runs.push_back(std::move(run));
}

}  // namespace

struct EventReader::State {
  std::string path;
  Env* env = nullptr;  // null: the bytes are in memory
  std::shared_ptr<const void> owner;
  ByteSpan bytes;
  std::optional<RecordReader> records;
  std::optional<RecordError> bad_event;  // a whole record that holds no event

  void open(RecordPosition from) {
    if (env != nullptr) {
      std::shared_ptr<MappedFile> file = env->map(path);
      bytes = file->bytes();
      owner = std::move(file);
    }
    records.emplace(owner, bytes, path, RecordReaderOptions{}, SourceSite());
    if (from.offset > bytes.size()) {
      throw make_error(Code::data_loss, "[events] {}: it had {} bytes and now has {}: another file took its place",
                       path, from.offset, bytes.size());
    }
    records->seek(from, SourceSite());
  }

  // Does the file end inside of the record that could not be read?
  bool is_cut() const {
    const ByteSpan rest = bytes.subspan(static_cast<size_t>(records->position().offset));
    if (rest.size() < kRecordHeader) return true;
    // Of a length whose checksum is wrong nothing can be said.
    if (records->error().what.starts_with("bad length")) return false;
    const uint64_t length = load_fixed64(rest.data());
    return length > rest.size() - kRecordHeader || rest.size() - kRecordHeader - length < kRecordFooter;
  }

  Status read(Event* event) {
    bad_event.reset();
    const RecordPosition at = records->position();
    ByteSpan record;
    switch (records->read(&record)) {
      case RecordReader::Status::end: return Status::end;
      case RecordReader::Status::damaged: return is_cut() ? Status::cut : Status::damaged;
      case RecordReader::Status::record: break;
    }
    if (parse_event({reinterpret_cast<const char*>(record.data()), record.size()}, event)) return Status::event;
    bad_event = {.code = Code::data_loss, .what = "the record is no event", .offset = at.offset, .record = at.record};
    return Status::damaged;
  }
};

EventReader::EventReader(const std::string& path, Env& env, SourceSite where) : state_(std::make_unique<State>()) {
  state_->path = path;
  state_->env = &env;
  called_at(where, [&] { state_->open({}); });
}

EventReader::EventReader(ByteSpan bytes, std::string name, SourceSite where) : state_(std::make_unique<State>()) {
  state_->path = std::move(name);
  state_->bytes = bytes;
  called_at(where, [&] { state_->open({}); });
}

EventReader::~EventReader() = default;
EventReader::EventReader(EventReader&&) noexcept = default;
EventReader& EventReader::operator=(EventReader&&) noexcept = default;

EventReader::State& EventReader::state() const {
  if (!state_) throw_moved_from("EventReader", SourceSite());
  return *state_;
}

EventReader::Status EventReader::read(Event* event) { return state().read(event); }

const RecordError& EventReader::error() const {
  const State& s = state();
  return s.bad_event ? *s.bad_event : s.records->error();
}

bool EventReader::skip_damaged() {
  State& s = state();
  return s.bad_event.has_value() || s.records->skip_damaged();  // the record without an event is behind us
}

void EventReader::throw_error(SourceSite where) const {
  const RecordError& e = error();
  const std::string& name = path();
  throw at_line(make_error(e.code, "[events] {}: event {} at byte {}: {}", name, e.record, e.offset, e.what)
                    .inside(file_frame(name, e.offset)),
                where);
}

bool EventReader::refresh(SourceSite where) {
  State& s = state();
  return called_at(where, [&] {
    if (s.env == nullptr) return false;
    const uint64_t size = s.env->stat(s.path).size;
    if (size == s.bytes.size()) return false;
    s.open(s.records->position());
    return true;
  });
}

RecordPosition EventReader::position() const { return state().records->position(); }
uint64_t EventReader::file_size() const { return state().bytes.size(); }
const std::string& EventReader::path() const { return state().path; }

bool is_event_file(std::string_view name) { return name.find("tfevents") != std::string_view::npos; }

std::vector<EventRun> find_event_runs(const std::string& path, Env& env, SourceSite where) {
  return called_at(where, [&] {
    std::vector<EventRun> runs;
    if (!env.stat(path).is_dir) {
      runs.push_back({.name = ".", .files = {path}});
    } else {
      find_runs_below(path, "", 0, env, runs);
    }
    std::ranges::sort(runs, {}, &EventRun::name);
    return runs;
  });
}

}  // namespace runnel::io
