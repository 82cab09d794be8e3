#include "runnel/io/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/io/image.h"
#include "runnel/io/stroke_font.h"

namespace runnel::io {
namespace {

constexpr double kPen = 0.095, kBoldPen = 0.135;  // the width of lines of text, in font sizes
constexpr double kBoldStretch = 1.06;             // of the way from letter to letter

double distance_to_segment(CanvasPoint p, CanvasPoint a, CanvasPoint b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double t = length == 0 ? 0 : std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0);
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

// How much of a pixel is covered whose centre has this distance from the edge (negative: inside).
double covered_share(double distance) { return std::clamp(0.5 - distance, 0.0, 1.0); }

}  // namespace

Canvas::Canvas(double width, double height, Color background, double scale)
    : scale_(scale),
      width_(static_cast<int64_t>(std::ceil(width * scale))),
      height_(static_cast<int64_t>(std::ceil(height * scale))) {
  if (!(scale > 0) || width_ < 1 || height_ < 1 || width_ > kMaxImagePixels / height_) {
    throw invalid_argument("[Canvas] a picture of {} x {} at scale {} is empty or too large", width, height, scale);
  }
  const auto count = static_cast<size_t>(width_ * height_);
  pixels_.resize(count * 3);
  shares_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    pixels_[3 * i] = background.red;
    pixels_[3 * i + 1] = background.green;
    pixels_[3 * i + 2] = background.blue;
  }
}

Canvas::Area Canvas::area_around(std::span<const CanvasPoint> pixels, double margin) const {
  double left = pixels[0].x, right = left, top = pixels[0].y, bottom = top;
  for (const CanvasPoint& p : pixels) {
    left = std::min(left, p.x), right = std::max(right, p.x);
    top = std::min(top, p.y), bottom = std::max(bottom, p.y);
  }
  const auto within = [](double v, int64_t size) {
    return static_cast<int64_t>(std::clamp(v, 0.0, static_cast<double>(size)));
  };
  return {within(std::floor(left - margin), width_), within(std::floor(top - margin), height_),
          within(std::ceil(right + margin), width_), within(std::ceil(bottom + margin), height_)};
}

void Canvas::blend(int64_t x, int64_t y, Color color, double share) {
  uint8_t* pixel = &pixels_[static_cast<size_t>((y * width_ + x) * 3)];
  const auto mix = [&](uint8_t& value, uint8_t to) {
    value = static_cast<uint8_t>(std::lround(value + (to - value) * share));
  };
  mix(pixel[0], color.red);
  mix(pixel[1], color.green);
  mix(pixel[2], color.blue);
}

template <class Distance>
void Canvas::cover(const Area& area, Color color, const Distance& distance) {
  for (int64_t y = area.top; y < area.bottom; ++y) {
    for (int64_t x = area.left; x < area.right; ++x) {
      const double share =
          covered_share(distance(CanvasPoint{static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5}));
      if (share > 0) blend(x, y, color, share);
    }
  }
}

void Canvas::stroke(const std::vector<std::vector<CanvasPoint>>& lines, double half_width, Color color) {
  std::vector<CanvasPoint> all;
  for (const auto& points : lines) {
    for (size_t i = 0; i < points.size(); ++i) {
      const CanvasPoint ends[] = {points[i], points[i + 1 < points.size() ? i + 1 : i]};
      all.push_back(ends[0]);
      if (i > 0 && i + 1 == points.size()) break;
      const Area area = area_around(ends, half_width + 1);
      for (int64_t y = area.top; y < area.bottom; ++y) {
        for (int64_t x = area.left; x < area.right; ++x) {
          const CanvasPoint p{static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5};
          float& share = shares_[static_cast<size_t>(y * width_ + x)];
          const double here = covered_share(distance_to_segment(p, ends[0], ends[1]) - half_width);
          share = std::max(share, static_cast<float>(here));
        }
      }
    }
  }
  if (all.empty()) return;
  const Area area = area_around(all, half_width + 1);
  for (int64_t y = area.top; y < area.bottom; ++y) {
    for (int64_t x = area.left; x < area.right; ++x) {
      float& share = shares_[static_cast<size_t>(y * width_ + x)];
      if (share > 0) blend(x, y, color, share);
      share = 0;
    }
  }
}

void Canvas::box(double left, double top, double width, double height, double radius, Color fill, Color border) {
  const auto on_pixel = [&](double v) { return std::floor(v * scale_) + 0.5; };
  const double x0 = on_pixel(left), x1 = on_pixel(left + width), y0 = on_pixel(top), y1 = on_pixel(top + height);
  const CanvasPoint centre{(x0 + x1) / 2, (y0 + y1) / 2}, half{(x1 - x0) / 2, (y1 - y0) / 2};
  const double round = std::min({radius * scale_, half.x, half.y});
  const auto distance = [&](CanvasPoint p) {
    const double dx = std::abs(p.x - centre.x) - half.x + round, dy = std::abs(p.y - centre.y) - half.y + round;
    return std::hypot(std::max(dx, 0.0), std::max(dy, 0.0)) + std::min(std::max(dx, dy), 0.0) - round;
  };
  const CanvasPoint corners[] = {{x0, y0}, {x1, y1}};
  const Area area = area_around(corners, scale_ + 1);
  cover(area, fill, distance);
  const double half_pen = std::max(1.0, std::round(scale_)) / 2;
  cover(area, border, [&](CanvasPoint p) { return std::abs(distance(p)) - half_pen; });
}

void Canvas::line(std::span<const CanvasPoint> points, double width, Color color) {
  std::vector<CanvasPoint> pixels;
  for (const CanvasPoint& p : points) pixels.push_back({p.x * scale_, p.y * scale_});
  stroke({pixels}, width * scale_ / 2, color);
}

void Canvas::triangle(CanvasPoint a, CanvasPoint b, CanvasPoint c, Color color) {
  std::array<CanvasPoint, 3> corners{a, b, c};
  for (CanvasPoint& p : corners) p = {p.x * scale_, p.y * scale_};
  // Positive when the corners go round clockwise, as seen with y downwards.
  const double turn = (corners[1].x - corners[0].x) * (corners[2].y - corners[0].y) -
                      (corners[1].y - corners[0].y) * (corners[2].x - corners[0].x);
  if (turn == 0) return;
  const double side = turn > 0 ? 1 : -1;
  cover(area_around(corners, 1), color, [&](CanvasPoint p) {
    double farthest = -1e9;
    for (size_t i = 0; i < 3; ++i) {
      const CanvasPoint &from = corners[i], &to = corners[(i + 1) % 3];
      const double dx = to.x - from.x, dy = to.y - from.y;
      const double outside = ((p.x - from.x) * dy - (p.y - from.y) * dx) * side / std::hypot(dx, dy);
      farthest = std::max(farthest, outside);
    }
    return farthest;
  });
}

void Canvas::text(CanvasPoint start, std::string_view text, double size, Color color, bool bold) {
  const double pixels = size * scale_, stretch = bold ? kBoldStretch : 1;
  const double baseline = std::round(start.y * scale_);
  std::vector<std::vector<CanvasPoint>> lines = text_strokes(text);
  for (auto& points : lines) {
    for (CanvasPoint& p : points) p = {start.x * scale_ + p.x * stretch * pixels, baseline + p.y * pixels};
  }
  stroke(lines, (bold ? kBoldPen : kPen) * pixels / 2, color);
}

Color Canvas::pixel(int64_t x, int64_t y) const {
  const uint8_t* at = &pixels_.at(static_cast<size_t>((y * width_ + x) * 3));
  return {at[0], at[1], at[2]};
}

std::string Canvas::png() const {
  return encode_png(pixels_.data(), {.frames = 1, .height = height_, .width = width_, .channels = 3}, {});
}

double text_width(std::string_view text, double size, bool bold) {
  return text_advance(text) * size * (bold ? kBoldStretch : 1);
}

}  // namespace runnel::io
