#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runnel/base/export.h"

namespace runnel::board {

// A value of a scalar.
struct LinePoint {
  int64_t step = 0;
  double wall = 0;
  float value = 0;
  bool operator==(const LinePoint&) const = default;
};

// The smallest and the largest of some neighbouring points. A finite value goes before one that is not.
struct Extremes {
  LinePoint low, high;
  void add(const LinePoint& point);
  void add(const Extremes& other);
  // One point or two, in the order of time.
  void append_to(std::vector<LinePoint>& points) const;
};

// A line of any length in bounded memory: all points while they are few, then the extremes of every `stride` of them.
// The stride doubles when there are too many.
class RUNNEL_API Line {
 public:
  static constexpr size_t kMostBuckets = 1024;

  void add(const LinePoint& point);
  uint64_t count() const { return count_; }
  uint64_t stride() const { return stride_; }  // 1: append_to gives every point
  const LinePoint& first() const { return first_; }
  const LinePoint& last() const { return last_; }
  // The first and the last point are always among them.
  void append_to(std::vector<LinePoint>& points) const;

 private:
  void halve();

  std::vector<Extremes> buckets_;
  uint64_t stride_ = 1;
  uint64_t in_last_ = 0;  // points in the last bucket
  uint64_t count_ = 0;
  LinePoint first_, last_;
};

// At most `most` of the points (at least 4), extremes kept, the first and the last among them.
RUNNEL_API std::vector<LinePoint> decimate(const std::vector<LinePoint>& points, size_t most);

}  // namespace runnel::board
