#include "runnel/io/event_reader.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/base/moved_from.h"
#include "runnel/base/varint.h"
#include "runnel/io/file_frame.h"
#include "runnel/io/origin.h"

namespace runnel::io {
namespace {

// Every folder is visited once, however many links lead to it: by its own name where it stands below the root, else
// by that of the first link.
class RunSearch {
 public:
  RunSearch(const std::string& root, bool inside_only, Env& env)
      : env_(env), root_(own_path(root)), inside_only_(inside_only) {
    visited_.insert(root_);
    visit(root, "");
  }
  std::vector<EventRun> runs;

 private:
  static std::string own_path(const std::string& folder) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(folder, error);
    return error ? folder : path.string();
  }

  bool is_below_root(const std::string& path) const {
    return path.starts_with(root_ == "/" ? root_ : root_ + "/") || path == root_;
  }

  void visit(const std::string& folder, const std::string& name) {
    EventRun run{.name = name.empty() ? "." : name, .files = {}};
    const std::string own_folder = own_path(folder);
    for (const std::string& entry : env_.list(folder)) {
      const std::string path = join_path(folder, entry);
      bool is_dir = false;
      try {
        is_dir = env_.stat(path).is_dir;
      } catch (const Error&) {
        continue;  // vanished, or a link to nothing
      }
      if (is_dir) {
        visit_inside(path, join_path(own_folder, entry), name.empty() ? entry : name + "/" + entry);
      } else if (is_event_file(entry) && (!inside_only_ || is_below_root(own_path(path)))) {
        run.files.push_back(path);
      }
    }
    if (!run.files.empty()) runs.push_back(std::move(run));
  }

  // `plain` is the path of a folder that is no link.
  void visit_inside(const std::string& path, const std::string& plain, const std::string& name) {
    const std::string own = own_path(path);
    if (own != plain && (inside_only_ || is_below_root(own))) return;  // left out, or found under its own name
    if (!visited_.insert(own).second) return;
    try {
      visit(path, name);
    } catch (const Error& e) {
      if (e.code() != Code::not_found) warn_once(own, e);
    }
  }

  // Who follows a folder looks many times a second.
  static void warn_once(const std::string& folder, const Error& e) {
    static std::mutex mutex;
    static auto* const told = new std::set<std::string>;
    const std::lock_guard lock(mutex);
    if (told->insert(folder).second) log_warning("[events] a folder is left out: {}", e.what());
  }

  Env& env_;
  const std::string root_;
  const bool inside_only_;
  std::set<std::string> visited_;
};

std::vector<EventRun> search_runs(const std::string& path, bool inside_only, Env& env) {
  if (!env.stat(path).is_dir) return {{.name = ".", .files = {path}}};
  RunSearch search(path, inside_only, env);
  std::ranges::sort(search.runs, {}, &EventRun::name);
  return std::move(search.runs);
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
    ByteSpan record;
    switch (records->read(&record)) {
      case RecordReader::Status::end: return Status::end;
      case RecordReader::Status::damaged: return is_cut() ? Status::cut : Status::damaged;
      case RecordReader::Status::record: break;
    }
    if (parse_event({reinterpret_cast<const char*>(record.data()), record.size()}, event)) return Status::event;
    const RecordPosition behind = records->position();
    bad_event = {.code = Code::data_loss,
                 .what = "the record is no event",
                 .offset = behind.offset - record.size() - kRecordHeader - kRecordFooter,
                 .record = behind.record - 1};
    return Status::damaged;
  }
};

EventReader::EventReader(const std::string& path, Env& env, SourceSite where) : state_(std::make_unique<State>()) {
  state_->path = path;
  state_->env = &env;
  at_caller(where, [&] { state_->open({}); });
}

EventReader::EventReader(ByteSpan bytes, std::string name, SourceSite where) : state_(std::make_unique<State>()) {
  state_->path = std::move(name);
  state_->bytes = bytes;
  at_caller(where, [&] { state_->open({}); });
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
  return at_caller(where, [&] {
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
  return at_caller(where, [&] { return search_runs(path, false, env); });
}

std::vector<EventRun> find_event_runs_inside(const std::string& path, Env& env, SourceSite where) {
  return at_caller(where, [&] { return search_runs(path, true, env); });
}

}  // namespace runnel::io
