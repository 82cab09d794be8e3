#include "runnel/board/line_query.h"

#include <algorithm>

namespace runnel::board {
namespace {

// Memory answers for a range where it holds so many extremes of it: less makes a chart coarse, more means to read much
// of a long file again.
constexpr size_t kEnough = 400;

std::vector<LinePoint> within(const std::vector<LinePoint>& points, const LineQuery& query) {
  std::vector<LinePoint> kept;
  for (const LinePoint& point : points) {
    if (point.step >= query.from && point.step <= query.to) kept.push_back(point);
  }
  return kept;
}

}  // namespace

std::optional<LineAnswer> read_line(const Index& index, uint32_t series, const LineQuery& query) {
  const std::optional<LineParts> parts = index.line(series);
  if (!parts) return std::nullopt;
  LineAnswer answer{.info = parts->info, .points = {}, .all = true};
  const bool whole = query.from == INT64_MIN && query.to == INT64_MAX;
  for (const LineParts::Part& part : parts->parts) {
    std::vector<LinePoint> points = within(part.points, query);
    if (part.stride > 1 && !whole && points.size() < kEnough) {
      points.clear();
      for (const Block& block : part.blocks) {
        if (block.high_step < query.from || block.low_step > query.to) continue;
        const std::vector<LinePoint> read = within(index.read_block(block, parts->info.tag.tag), query);
        points.insert(points.end(), read.begin(), read.end());
      }
    } else if (part.stride > 1) {
      answer.all = false;
    }
    answer.points.insert(answer.points.end(), points.begin(), points.end());
  }
  // Files that were written one after the other stand so; those of writers side by side are put in the order of time.
  const auto earlier = [](const LinePoint& a, const LinePoint& b) { return a.wall < b.wall; };
  if (parts->parts.size() > 1 && !std::ranges::is_sorted(answer.points, earlier)) {
    std::ranges::stable_sort(answer.points, earlier);
  }
  if (answer.points.size() > std::max<size_t>(query.most, 4)) {
    answer.points = decimate(answer.points, query.most);
    answer.all = false;
  }
  return answer;
}

PointStream::PointStream(const Index& index, LineParts parts) : index_(index), tag_(parts.info.tag.tag) {
  for (LineParts::Part& part : parts.parts) {
    blocks_.insert(blocks_.end(), part.blocks.begin(), part.blocks.end());
  }
}

bool PointStream::next(std::vector<LinePoint>* points) {
  if (next_ == blocks_.size()) return false;
  *points = index_.read_block(blocks_[next_++], tag_);
  return true;
}

}  // namespace runnel::board
