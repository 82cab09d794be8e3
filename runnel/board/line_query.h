#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runnel/board/index.h"

namespace runnel::board {

struct LineQuery {
  int64_t from = INT64_MIN, to = INT64_MAX;  // steps, both included
  size_t most = 2000;                        // points
};
struct LineAnswer {
  SeriesInfo info;
  std::vector<LinePoint> points;  // in the order of their writing
  bool all = false;               // none was left out
};

// A line as it is drawn: what memory holds where that is enough, else the part of the files that the steps stand in.
// Nothing where there is no such series.
RUNNEL_API std::optional<LineAnswer> read_line(const Index& index, uint32_t series, const LineQuery& query);

// All points of a series, some thousands at a time: for exports of any length.
class RUNNEL_API PointStream {
 public:
  PointStream(const Index& index, LineParts parts);
  bool next(std::vector<LinePoint>* points);  // false: there are no more

 private:
  const Index& index_;
  const std::string tag_;
  std::vector<Block> blocks_;
  size_t next_ = 0;
};

}  // namespace runnel::board
