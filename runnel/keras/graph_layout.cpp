#include "runnel/keras/graph_layout.h"

#include <algorithm>
#include <utility>

namespace runnel::keras::utils {
namespace {

constexpr double kMargin = 16, kRowGap = 38, kBoxGap = 30, kPassGap = 14;
constexpr int kOrderSweeps = 12, kPlaceSweeps = 40;

// A box, or the place where an arrow passes a row on its way to a further one.
struct LayoutItem {
  double width, height;
  size_t row;
  bool is_box;
  double x = 0;
  std::vector<size_t> above = {}, below = {};  // connected items of the neighbouring rows
};

class GraphLayout {
 public:
  GraphLayout(std::vector<LayoutBox>& boxes, std::vector<LayoutArrow>& arrows) : boxes_(boxes), arrows_(arrows) {}

  LayoutSize run() {
    choose_rows();
    lead_arrows_through_rows();
    order_rows();
    place_across();
    return place_down();
  }

 private:
  // A box stands below all that lead to it. Where arrows go in circles the first box of the circle goes on top.
  void choose_rows() {
    const size_t n = boxes_.size();
    std::vector<std::vector<size_t>> before(n), after(n);
    for (const LayoutArrow& a : arrows_) {
      before[a.to].push_back(a.from);
      after[a.from].push_back(a.to);
    }
    std::vector<bool> placed(n, false);
    std::vector<size_t> row(n, 0);
    const auto is_placed = [&](size_t i) { return placed[i]; };
    for (size_t count = 0; count < n; ++count) {
      size_t next = n;
      for (size_t i = 0; i < n; ++i) {
        if (placed[i]) continue;
        const bool ready = std::ranges::all_of(before[i], is_placed);
        if (ready || next == n) next = i;
        if (ready) break;
      }
      for (const auto& neighbours : {before[next], after[next]}) {
        for (const size_t i : neighbours) {
          if (placed[i]) row[next] = std::max(row[next], row[i] + 1);
        }
      }
      placed[next] = true;
    }
    for (size_t i = 0; i < n; ++i) {
      if (before[i].empty() && !after[i].empty()) {  // an input stands just above what needs it
        size_t first = row[after[i][0]];
        for (const size_t j : after[i]) first = std::min(first, row[j]);
        row[i] = first - 1;
      }
      items_.push_back({boxes_[i].width, boxes_[i].height, row[i], true});
    }
    rows_.resize(n == 0 ? 0 : *std::ranges::max_element(row) + 1);
    for (size_t i = 0; i < n; ++i) rows_[row[i]].push_back(i);
  }

  void lead_arrows_through_rows() {
    for (const LayoutArrow& a : arrows_) {
      const auto [upper, lower] =
          items_[a.from].row < items_[a.to].row ? std::pair(a.from, a.to) : std::pair(a.to, a.from);
      std::vector<size_t> way{upper};
      for (size_t row = items_[upper].row + 1; row < items_[lower].row; ++row) {
        way.push_back(items_.size());
        rows_[row].push_back(items_.size());
        items_.push_back({0, 0, row, false});
      }
      way.push_back(lower);
      for (size_t i = 1; i < way.size(); ++i) {
        items_[way[i - 1]].below.push_back(way[i]);
        items_[way[i]].above.push_back(way[i - 1]);
      }
      ways_.push_back(std::move(way));
    }
  }

  const std::vector<size_t>& neighbours(size_t item, bool downwards) const {
    return downwards ? items_[item].above : items_[item].below;
  }

  // Every item goes where its neighbours are on average; of several rounds the one with the fewest crossings stays.
  void order_rows() {
    std::vector<std::vector<size_t>> best = rows_;
    size_t fewest = crossings();
    for (int sweep = 0; sweep < kOrderSweeps && fewest > 0; ++sweep) {
      const bool downwards = sweep % 2 == 0;
      for (size_t i = 0; i < rows_.size(); ++i) {
        std::vector<size_t>& row = rows_[downwards ? i : rows_.size() - 1 - i];
        const std::vector<double> position = positions();
        std::vector<double> wanted = position;
        for (const size_t item : row) {
          const std::vector<size_t>& near = neighbours(item, downwards);
          if (near.empty()) continue;
          wanted[item] = 0;
          for (const size_t j : near) wanted[item] += position[j] / static_cast<double>(near.size());
        }
        std::ranges::stable_sort(row, {}, [&](size_t item) { return wanted[item]; });
      }
      if (const size_t now = crossings(); now < fewest) {
        fewest = now;
        best = rows_;
      }
    }
    rows_ = best;
  }

  std::vector<double> positions() const {
    std::vector<double> position(items_.size());
    for (const std::vector<size_t>& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i) position[row[i]] = static_cast<double>(i);
    }
    return position;
  }

  size_t crossings() const {
    const std::vector<double> position = positions();
    size_t count = 0;
    for (const std::vector<size_t>& row : rows_) {
      std::vector<std::pair<double, double>> lines;
      for (const size_t item : row) {
        for (const size_t j : items_[item].below) lines.emplace_back(position[item], position[j]);
      }
      for (const auto& [top, bottom] : lines) {
        count += static_cast<size_t>(
            std::ranges::count_if(lines, [&](const auto& l) { return l.first > top && l.second < bottom; }));
      }
    }
    return count;
  }

  void place_across() {
    for (const std::vector<size_t>& row : rows_) {
      for (size_t i = 1; i < row.size(); ++i) items_[row[i]].x = items_[row[i - 1]].x + distance(row[i - 1], row[i]);
    }
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
      const bool downwards = sweep % 2 == 0;
      for (size_t i = 0; i < rows_.size(); ++i) {
        settle(rows_[downwards ? i : rows_.size() - 1 - i], downwards, sweep + 2 >= kPlaceSweeps);
      }
    }
  }

  double distance(size_t left, size_t right) const {
    const bool boxes = items_[left].is_box && items_[right].is_box;
    return (items_[left].width + items_[right].width) / 2 + (boxes ? kBoxGap : kPassGap);
  }

  // Long arrows shall be straight before anything else.
  double pull(size_t a, size_t b) const { return (items_[a].is_box ? 1 : 3) * (items_[b].is_box ? 1 : 3); }

  // Brings the items of a row as near as possible (least squares) to the middle of their neighbours without changing
  // the order or coming too close: neighbours that would collide form blocks, which move as one.
  void settle(const std::vector<size_t>& row, bool downwards, bool both_sides) {
    struct Block {
      double sum, weight;  // of the wanted places, each less its offset
      size_t size;
      double at() const { return sum / weight; }
    };
    std::vector<Block> blocks;
    std::vector<double> offset(row.size(), 0);
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) offset[i] = offset[i - 1] + distance(row[i - 1], row[i]);
      double sum = 0, weight = 0;
      for (const bool side : {downwards, !downwards}) {
        if (side != downwards && !both_sides && weight > 0) break;
        for (const size_t j : neighbours(row[i], side)) {
          sum += items_[j].x * pull(row[i], j);
          weight += pull(row[i], j);
        }
      }
      if (weight == 0) sum = items_[row[i]].x, weight = 1;
      Block block{sum - offset[i] * weight, weight, 1};
      while (!blocks.empty() && blocks.back().at() >= block.at()) {
        block = {block.sum + blocks.back().sum, block.weight + blocks.back().weight, block.size + blocks.back().size};
        blocks.pop_back();
      }
      blocks.push_back(block);
    }
    size_t i = 0;
    for (const Block& block : blocks) {
      for (const size_t end = i + block.size; i < end; ++i) items_[row[i]].x = block.at() + offset[i];
    }
  }

  LayoutSize place_down() {
    double left = 0, right = 0;
    for (size_t i = 0; i < items_.size(); ++i) {
      const double half = items_[i].width / 2;
      left = i == 0 ? items_[i].x - half : std::min(left, items_[i].x - half);
      right = i == 0 ? items_[i].x + half : std::max(right, items_[i].x + half);
    }
    for (LayoutItem& item : items_) item.x += kMargin - left;
    std::vector<double> top, bottom;
    for (const std::vector<size_t>& row : rows_) {
      double height = 0;
      for (const size_t item : row) height = std::max(height, items_[item].height);
      top.push_back(top.empty() ? kMargin : bottom.back() + kRowGap);
      bottom.push_back(top.back() + height);
    }
    for (size_t i = 0; i < boxes_.size(); ++i) {
      boxes_[i].x = items_[i].x;
      boxes_[i].y = (top[items_[i].row] + bottom[items_[i].row]) / 2;
    }
    for (size_t a = 0; a < arrows_.size(); ++a) {
      std::vector<ArrowPart>& parts = arrows_[a].parts;
      for (const size_t i : ways_[a]) parts.push_back({items_[i].x, top[items_[i].row], bottom[items_[i].row]});
      const LayoutBox &upper = boxes_[ways_[a].front()], &lower = boxes_[ways_[a].back()];
      parts.front().begin = upper.y + upper.height / 2;
      parts.back().end = lower.y - lower.height / 2;
      if (ways_[a].front() == arrows_[a].from) continue;
      std::ranges::reverse(parts);
      for (ArrowPart& part : parts) std::swap(part.begin, part.end);
    }
    return {right - left + 2 * kMargin, bottom.empty() ? 2 * kMargin : bottom.back() + kMargin};
  }

  std::vector<LayoutBox>& boxes_;
  std::vector<LayoutArrow>& arrows_;
  std::vector<LayoutItem> items_;  // the boxes first
  std::vector<std::vector<size_t>> rows_;
  std::vector<std::vector<size_t>> ways_;  // of every arrow: the items it leads through, from the upper end
};

}  // namespace

LayoutSize lay_out(std::vector<LayoutBox>& boxes, std::vector<LayoutArrow>& arrows) {
  return GraphLayout(boxes, arrows).run();
}

}  // namespace runnel::keras::utils
