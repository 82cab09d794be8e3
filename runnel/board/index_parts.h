#pragma once

// Internal: what an Index is made of.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "runnel/board/index.h"

namespace runnel::board {

// The values of one tag in one file.
struct IndexPart {
  struct Mark {  // of a chunk of the file that has points of a scalar
    uint32_t chunk = 0;
    uint32_t count = 0;
    int64_t low_step = 0, high_step = 0;
  };
  struct Entry {  // a value that is no scalar
    int64_t step = 0;
    double wall = 0;
    uint64_t offset = 0;
  };

  TagInfo tag;
  uint64_t count = 0;
  uint64_t not_finite = 0;
  LinePoint first, last;
  Line line;
  std::vector<Mark> marks;
  std::vector<Entry> entries;
  Index::Series* series = nullptr;
};

struct Index::Series {
  uint32_t id = 0;
  Key key;
  std::vector<std::pair<const File*, const IndexPart*>> parts;  // by path of the file, which is the order of time
  uint64_t changed = 0;
};

struct Index::File {
  File(std::string path, std::string its_run, Env& env) : tail(std::move(path), env), run(std::move(its_run)) {}

  EventTail tail;  // used by the thread that reads the file, without the lock
  std::string run;
  uint32_t id = 0;
  std::vector<std::unique_ptr<IndexPart>> parts;           // by number of the tag
  std::vector<uint64_t> chunks;                            // where they begin
  double begun = std::numeric_limits<double>::infinity();  // the time of its first event
  uint64_t read_to = 0, size = 0;
  std::string complaint;
};

}  // namespace runnel::board
