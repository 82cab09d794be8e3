// Lines of bounded length keep what a chart needs: extremes, ends, values that are not finite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>

#include "runnel/board/line.h"

namespace runnel::board {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

LinePoint point_at(int64_t step, float value) {
  return {.step = step, .wall = static_cast<double>(step), .value = value};
}

std::vector<LinePoint> walk(size_t n) {
  std::mt19937 random(5);
  std::vector<LinePoint> points;
  float value = 0;
  for (size_t i = 0; i < n; ++i) {
    value += static_cast<float>(random() % 2001) - 1000.f;
    points.push_back(point_at(static_cast<int64_t>(i), value));
  }
  return points;
}

std::vector<LinePoint> kept_of(const std::vector<LinePoint>& points, uint64_t* stride = nullptr) {
  Line line;
  for (const LinePoint& p : points) line.add(p);
  EXPECT_EQ(line.count(), points.size());
  if (stride != nullptr) *stride = line.stride();
  std::vector<LinePoint> kept;
  line.append_to(kept);
  return kept;
}

TEST(Line, KeepsEveryPointWhileTheyAreFew) {
  for (const size_t n : {size_t{0}, size_t{1}, size_t{2}, Line::kMostBuckets}) {
    const std::vector<LinePoint> points = walk(n);
    uint64_t stride = 0;
    EXPECT_EQ(kept_of(points, &stride), points);
    EXPECT_EQ(stride, 1u);
  }
}

TEST(Line, KeepsTheExtremesOfEveryStride) {
  for (const size_t n : {Line::kMostBuckets + 1, size_t{2049}, size_t{5000}, size_t{100'003}}) {
    const std::vector<LinePoint> points = walk(n);
    uint64_t stride = 0;
    const std::vector<LinePoint> kept = kept_of(points, &stride);
    EXPECT_LE(kept.size(), 2 * Line::kMostBuckets + 2);
    EXPECT_GE(kept.size(), Line::kMostBuckets / 2);
    EXPECT_EQ(kept.front(), points.front());
    EXPECT_EQ(kept.back(), points.back());
    EXPECT_TRUE(std::ranges::is_sorted(kept, {}, &LinePoint::step));
    for (size_t begin = 0; begin < n; begin += stride) {
      const auto bucket = std::span(points).subspan(begin, std::min<size_t>(stride, n - begin));
      const auto [low, high] = std::ranges::minmax_element(bucket, {}, &LinePoint::value);
      for (const LinePoint& wanted : std::vector<LinePoint>{*low, *high}) {
        const auto fits = [&](const LinePoint& p) {
          return p.value == wanted.value && p.step >= bucket.front().step && p.step <= bucket.back().step;
        };
        EXPECT_TRUE(std::ranges::any_of(kept, fits)) << n << " points, the bucket from " << begin;
      }
    }
  }
}

TEST(Line, AFiniteValueGoesBeforeOneThatIsNot) {
  std::vector<LinePoint> points;
  for (int64_t i = 0; i < 4096; ++i) points.push_back(point_at(i, i % 4 == 2 ? 7.f : kNan));
  for (const LinePoint& p : kept_of(points)) {
    EXPECT_TRUE(p.value == 7.f || p.step == 0 || p.step == 4095) << p.step;
  }
  for (LinePoint& p : points) p.value = kNan;
  const std::vector<LinePoint> kept = kept_of(points);
  EXPECT_GT(kept.size(), 500u);  // a line of nothing else still says where it was
  EXPECT_TRUE(std::ranges::all_of(kept, [](const LinePoint& p) { return std::isnan(p.value); }));
}

TEST(Line, DecimatesToWhatIsAskedFor) {
  const std::vector<LinePoint> points = walk(10'000);
  const auto [low, high] = std::ranges::minmax_element(points, {}, &LinePoint::value);
  for (const size_t most : {4, 5, 100, 1999}) {
    const std::vector<LinePoint> kept = decimate(points, most);
    EXPECT_LE(kept.size(), most);
    EXPECT_GE(kept.size(), most / 2);
    EXPECT_EQ(kept.front(), points.front());
    EXPECT_EQ(kept.back(), points.back());
    EXPECT_THAT(kept, testing::Contains(*low));
    EXPECT_THAT(kept, testing::Contains(*high));
  }
  EXPECT_EQ(decimate(points, 10'000), points);
}

}  // namespace
}  // namespace runnel::board
