#include "runnel/board/index.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <utility>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/board/index_parts.h"
#include "runnel/io/event_reader.h"

namespace runnel::board {
namespace {

constexpr uint64_t kChunk = uint64_t{1} << 17;
constexpr size_t kMostReaders = 4;

void add_sample(IndexPart& part, const Sample& sample, std::vector<uint64_t>& chunks) {
  if (part.count++ == 0) part.first = sample.point;
  part.last = sample.point;
  // Values of all plugins begin chunks, so that a chunk with scalars is not larger for what stands between them.
  if (chunks.empty() || sample.offset >= chunks.back() + kChunk) chunks.push_back(sample.offset);
  if (!part.tag.is_scalar()) {
    part.entries.push_back({sample.point.step, sample.point.wall, sample.offset});
    return;
  }
  part.line.add(sample.point);
  part.not_finite += std::isfinite(sample.point.value) ? 0 : 1;
  const auto chunk = static_cast<uint32_t>(chunks.size() - 1);
  const int64_t step = sample.point.step;
  if (part.marks.empty() || part.marks.back().chunk != chunk) {
    part.marks.push_back({.chunk = chunk, .low_step = step, .high_step = step});
  }
  IndexPart::Mark& mark = part.marks.back();
  ++mark.count;
  mark.low_step = std::min(mark.low_step, step);
  mark.high_step = std::max(mark.high_step, step);
}

// Notes what could not be looked at, which does not mean that it is gone.
class WatchedEnv : public EnvWrapper {
  template <typename Look>
  auto watched(const std::string& path, const Look& look) {
    try {
      return look();
    } catch (const Error& e) {
      if (e.code() != Code::not_found) failures.emplace(path, e.what());
      throw;
    }
  }

 public:
  using EnvWrapper::EnvWrapper;
  FileInfo stat(const std::string& path) override {
    return watched(path, [&] { return EnvWrapper::stat(path); });
  }
  bool exists(const std::string& path) override {
    return watched(path, [&] { return EnvWrapper::exists(path); });
  }
  std::vector<std::string> list(const std::string& dir) override {
    return watched(dir, [&] { return EnvWrapper::list(dir); });
  }
  std::map<std::string, std::string> failures;  // path, why
};

bool is_at_or_below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder.ends_with('/') ? folder : folder + "/");
}

}  // namespace

Index::Index(std::vector<LogDir> dirs, IndexOptions options, Env& env)
    : dirs_(std::move(dirs)), options_(options), env_(env) {}
Index::~Index() = default;

bool Index::refresh() {
  const std::map<std::string, std::string> found = find_files();
  bool any = drop_missing(found);
  std::vector<std::shared_ptr<File>> files;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, run] : found) {
      std::shared_ptr<File>& file = files_[path];
      if (!file) {
        file = std::make_shared<File>(path, run, env_);
        file->id = next_file_++;
        paths_[file->id] = path;
        any = true;
      }
      files.push_back(file);
    }
  }
  any = read_all(files) || any;
  const std::lock_guard lock(mutex_);
  if (loading_) {
    loading_ = false;
    any = true;
  }
  if (any) changed();
  return any;
}

std::map<std::string, std::string> Index::find_files() {
  std::map<std::string, std::string> found;
  for (const LogDir& dir : dirs_) {
    WatchedEnv env(env_);
    std::string complaint;
    try {
      if (!env.exists(dir.path)) continue;  // the folder comes when a program writes to it
      const auto runs = options_.follow_links ? io::find_event_runs(dir.path, env, SourceSite())
                                              : io::find_event_runs_inside(dir.path, env, SourceSite());
      for (const io::EventRun& run : runs) {
        for (const std::string& file : run.files) found.emplace(file, run_name(dir, run.name));
      }
    } catch (const Error& e) {
      if (e.code() != Code::not_found) complaint = e.what();
    }
    const std::lock_guard lock(mutex_);
    for (const auto& [failed, why] : env.failures) {
      if (complaint.empty() && !files_.contains(failed)) complaint = why;  // of known files read_one tells
      for (const auto& [path, file] : files_) {
        if (is_at_or_below(path, failed)) found.emplace(path, file->run);
      }
    }
    folder_complaints_[dir.path] = complaint;
  }
  return found;
}

// Files that are no longer there, and their values.
bool Index::drop_missing(const std::map<std::string, std::string>& found) {
  const std::lock_guard lock(mutex_);
  bool any = false;
  for (auto at = files_.begin(); at != files_.end();) {
    if (found.contains(at->first)) {
      ++at;
      continue;
    }
    remove_parts(*at->second);
    paths_.erase(at->second->id);
    at = files_.erase(at);
    any = true;
  }
  return any;
}

bool Index::read_all(const std::vector<std::shared_ptr<File>>& files) {
  std::atomic<size_t> next{0};
  std::atomic<bool> any{false};
  const auto work = [&] {
    for (size_t i = next++; i < files.size(); i = next++) {
      if (read_one(*files[i])) any = true;
    }
  };
  bool many = false;
  {
    const std::lock_guard lock(mutex_);
    many = loading_ && files.size() > 1;
  }
  // Later there is seldom anything to read, and looking alone is quick.
  std::vector<std::thread> readers;
  const size_t extra = many ? std::min<size_t>({std::max(std::thread::hardware_concurrency(), 1u) - 1, kMostReaders - 1,
                                                files.size() - 1})
                            : 0;
  readers.reserve(extra);
  try {
    for (size_t i = 0; i < extra; ++i) readers.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads: those that run do the work.
  }
  work();
  for (std::thread& reader : readers) reader.join();
  return any;
}

bool Index::read_one(File& file) {
  const auto failed = [&](const std::string& what) {
    const std::lock_guard lock(mutex_);
    return std::exchange(file.complaint, what) != what;
  };
  try {
    if (!file.tail.has_changed()) return false;
    Batch batch;
    for (bool more = true; more;) {
      more = file.tail.read(batch);
      const std::lock_guard lock(mutex_);
      try {
        apply(file, batch);
      } catch (...) {
        file.tail.forget();
        throw;
      }
      changed();
      more = more && !stopped_;
    }
    return true;
  } catch (const Error& e) {
    return e.code() != Code::not_found && failed(e.what());  // gone: the next look drops it
  } catch (const std::exception& e) {
    return failed(fmt::format("{}: {}", file.tail.path(), e.what()));
  }
}

void Index::apply(File& file, const Batch& batch) {
  if (batch.restarted) {
    remove_parts(file);
    paths_.erase(file.id);
    file.id = next_file_++;
    paths_[file.id] = file.tail.path();
  }
  if (batch.begun && std::isinf(file.begun)) file.begun = *batch.begun;
  for (const TagInfo& tag : batch.tags) add_part(file, tag);
  for (const Sample& sample : batch.samples) {
    IndexPart& part = *file.parts[sample.tag];
    add_sample(part, sample, file.chunks);
    part.series->changed = generation_ + 1;
  }
  file.read_to = batch.end;
  file.size = file.tail.size();
  file.complaint = file.tail.complaint();
}

void Index::add_part(File& file, const TagInfo& tag) {
  file.parts.push_back(std::make_unique<IndexPart>());
  IndexPart& part = *file.parts.back();
  part.tag = tag;
  std::unique_ptr<Series>& series = series_[Key(file.run, tag.tag)];
  if (!series) {
    series = std::make_unique<Series>();
    series->id = next_id_++;
    series->key = Key(file.run, tag.tag);
    by_id_[series->id] = series.get();
  }
  part.series = series.get();
  const auto later = [&](const auto& other) { return other.first->tail.path() > file.tail.path(); };
  series->parts.emplace(std::ranges::find_if(series->parts, later), &file, &part);
}

void Index::remove_parts(File& file) {
  for (const std::unique_ptr<IndexPart>& part : file.parts) {
    if (part->series == nullptr) continue;  // it could not be added
    Series& series = *part->series;
    std::erase_if(series.parts, [&](const auto& entry) { return entry.second == part.get(); });
    series.changed = generation_ + 1;
    if (!series.parts.empty()) continue;
    by_id_.erase(series.id);
    series_.erase(Key(series.key));
  }
  file.parts.clear();
  file.chunks.clear();
  file.read_to = 0;
  file.begun = std::numeric_limits<double>::infinity();
  removal_ = generation_ + 1;
}

void Index::changed() {
  ++generation_;
  news_.notify_all();
}

void Index::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  news_.notify_all();
}

}  // namespace runnel::board
