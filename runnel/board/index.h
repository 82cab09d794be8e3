#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runnel/base/function_ref.h"
#include "runnel/board/event_tail.h"
#include "runnel/board/line.h"
#include "runnel/board/logdir.h"
#include "runnel/io/event_point.h"

namespace runnel::board {

// The values of one tag of one run.
struct SeriesInfo {
  uint32_t id = 0;  // never given again while the program runs
  std::string run;
  TagInfo tag;
  uint64_t count = 0;
  LinePoint first, last;  // the values are those of scalars
  uint64_t not_finite = 0;
  uint64_t changed = 0;  // the generation of its last change
};

// Where one value of a series stands.
struct ValuePlace {
  int64_t step = 0;
  double wall = 0;
  uint32_t file = 0;
  uint64_t offset = 0;
};

// Values of a scalar that stand close together: to read them again, this part of the file is read.
struct Block {
  uint32_t file = 0;
  uint64_t begin = 0, end = 0;
  uint64_t count = 0;
  int64_t low_step = 0, high_step = 0;
};

// What is known of a line without reading files: of each file, its points or their extremes, and where they stand.
struct LineParts {
  struct Part {
    std::vector<LinePoint> points;
    uint64_t stride = 1;
    std::vector<Block> blocks;
  };
  SeriesInfo info;
  std::vector<Part> parts;
};

struct Listing {
  uint64_t generation = 0;
  bool whole = true;  // else only what changed since
  std::vector<SeriesInfo> series;
  std::vector<std::string> runs;          // those with values, sorted
  std::map<std::string, double> folders;  // all that have event files, and when the first of them was begun
  bool loading = false;                   // the first look at the files is not done
  uint64_t files = 0, bytes = 0, bytes_read = 0;
  std::vector<std::string> complaints;
};

struct IndexOptions {
  bool follow_links = false;  // links may lead out of the log folders
};

// What stands where in all event files below the log folders. Values stay in the files; memory holds of a scalar a
// line of bounded length and a mark for every hundred kilobytes, of other values 24 bytes each. One thread refreshes;
// any number of threads ask.
class RUNNEL_API Index {
 public:
  explicit Index(std::vector<LogDir> dirs, IndexOptions options = {}, Env& env = Env::posix());
  ~Index();
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // Looks at all folders and files, and reads what is new. True where something was.
  bool refresh();
  // A refresh that is at work ends soon, and waits end.
  void stop();

  uint64_t generation() const;
  // Waits for a generation after `seen`, at most so long; gives the newest.
  uint64_t wait(uint64_t seen, std::chrono::milliseconds time) const;

  Listing list(uint64_t since = 0) const;
  std::optional<SeriesInfo> find(uint32_t id) const;
  std::optional<SeriesInfo> find(const std::string& run, const std::string& tag) const;
  std::optional<LineParts> line(uint32_t id) const;
  // In the order of their writing.
  std::vector<ValuePlace> places(uint32_t id) const;

  // The points of the block that belong to the tag. Fewer where the file has changed meanwhile.
  std::vector<LinePoint> read_block(const Block& block, const std::string& tag) const;
  // Calls take(point) for the value of the tag in the record there. False where there is none.
  bool read_value(uint32_t file, uint64_t offset, const std::string& tag,
                  FunctionRef<void(const io::EventPoint&)> take) const;

  const std::vector<LogDir>& dirs() const { return dirs_; }

  struct File;
  struct Series;

 private:
  using Key = std::pair<std::string, std::string>;  // run, tag

  std::map<std::string, std::string> find_files();  // path, run
  bool drop_missing(const std::map<std::string, std::string>& found);
  bool read_all(const std::vector<std::shared_ptr<File>>& files);
  bool read_one(File& file);
  void apply(File& file, const Batch& batch);
  void add_part(File& file, const TagInfo& tag);
  void remove_parts(File& file);
  std::string path_of(uint32_t file) const;
  void changed();
  const Series* series(uint32_t id) const;

  const std::vector<LogDir> dirs_;
  const IndexOptions options_;
  Env& env_;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable news_;
  std::map<std::string, std::shared_ptr<File>> files_;  // by path
  std::map<uint32_t, std::string> paths_;               // of files, by id
  std::map<Key, std::unique_ptr<Series>> series_;
  std::map<uint32_t, Series*> by_id_;
  std::map<std::string, std::string> folder_complaints_;
  uint32_t next_id_ = 1, next_file_ = 1;
  uint64_t generation_ = 1, removal_ = 0;  // removal_: the generation in which something went
  bool loading_ = true, stopped_ = false;
};

}  // namespace runnel::board
