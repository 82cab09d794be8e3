#include "runnel/board/line.h"

#include <algorithm>
#include <cmath>

namespace runnel::board {
namespace {

// Is `value` the better minimum (or maximum)?
bool lower(float value, float than) {
  if (!std::isfinite(than)) return std::isfinite(value);
  return value < than;
}
bool higher(float value, float than) {
  if (!std::isfinite(than)) return std::isfinite(value);
  return std::isfinite(value) && value > than;
}

bool same(const LinePoint& a, const LinePoint& b) { return a.step == b.step && a.wall == b.wall; }

}  // namespace

void Extremes::add(const LinePoint& point) {
  if (std::isfinite(point.value) || !std::isfinite(low.value)) {
    if (lower(point.value, low.value)) low = point;
    if (higher(point.value, high.value)) high = point;
  }
}

void Extremes::add(const Extremes& other) {
  add(other.low);
  add(other.high);
}

void Extremes::append_to(std::vector<LinePoint>& points) const {
  if (same(low, high)) {
    points.push_back(low);
    return;
  }
  const bool low_first = low.wall < high.wall || (low.wall == high.wall && low.step < high.step);
  points.push_back(low_first ? low : high);
  points.push_back(low_first ? high : low);
}

void Line::add(const LinePoint& point) {
  if (count_++ == 0) first_ = point;
  last_ = point;
  if (buckets_.empty() || in_last_ == stride_) {
    if (buckets_.size() == kMostBuckets) halve();
    buckets_.push_back({point, point});
    in_last_ = 1;
    return;
  }
  buckets_.back().add(point);
  ++in_last_;
}

// All buckets are full, and their number is even.
void Line::halve() {
  size_t kept = 0;
  for (size_t i = 0; i < buckets_.size(); i += 2, ++kept) {
    Extremes joined = buckets_[i];
    if (i + 1 < buckets_.size()) joined.add(buckets_[i + 1]);
    buckets_[kept] = joined;
  }
  buckets_.resize(kept);
  stride_ *= 2;
}

void Line::append_to(std::vector<LinePoint>& points) const {
  if (count_ == 0) return;
  std::vector<LinePoint> own;
  own.reserve(2 * buckets_.size() + 2);
  for (const Extremes& bucket : buckets_) bucket.append_to(own);
  if (!same(own.front(), first_)) points.push_back(first_);
  points.insert(points.end(), own.begin(), own.end());
  if (!same(own.back(), last_)) points.push_back(last_);
}

std::vector<LinePoint> decimate(const std::vector<LinePoint>& points, size_t most) {
  most = std::max<size_t>(most, 4);
  if (points.size() <= most) return points;
  const size_t buckets = (most - 2) / 2;
  std::vector<LinePoint> kept;
  kept.reserve(most);
  std::vector<LinePoint> inner;
  for (size_t b = 0; b < buckets; ++b) {
    const size_t begin = points.size() * b / buckets, end = points.size() * (b + 1) / buckets;
    Extremes extremes{points[begin], points[begin]};
    for (size_t i = begin + 1; i < end; ++i) extremes.add(points[i]);
    extremes.append_to(inner);
  }
  if (!same(inner.front(), points.front())) kept.push_back(points.front());
  kept.insert(kept.end(), inner.begin(), inner.end());
  if (!same(inner.back(), points.back())) kept.push_back(points.back());
  return kept;
}

}  // namespace runnel::board
