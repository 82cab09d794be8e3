#pragma once

// A picture that is drawn: boxes, lines and text with smooth edges, encoded as PNG.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/export.h"

namespace runnel::io {

struct Color {
  uint8_t red = 0, green = 0, blue = 0;
};

struct CanvasPoint {
  double x = 0, y = 0;
};

// Coordinates are in units of which `scale` pixels make one; y grows downwards. Later drawing covers what is there.
class RUNNEL_API Canvas {
 public:
  Canvas(double width, double height, Color background, double scale = 1);

  // A box with round corners; its border is one unit wide and lies on whole pixels, so that it is sharp.
  void box(double left, double top, double width, double height, double radius, Color fill, Color border);
  void line(std::span<const CanvasPoint> points, double width, Color color);
  void triangle(CanvasPoint a, CanvasPoint b, CanvasPoint c, Color color);
  // One line of text of a font size, from its left end on the baseline.
  void text(CanvasPoint start, std::string_view text, double size, Color color, bool bold = false);

  int64_t pixel_width() const { return width_; }
  int64_t pixel_height() const { return height_; }
  Color pixel(int64_t x, int64_t y) const;
  std::string png() const;

 private:
  struct Area {
    int64_t left, top, right, bottom;  // pixels; the last two are outside
  };
  // The pixels that reach `margin` around the points.
  Area area_around(std::span<const CanvasPoint> pixels, double margin) const;
  // Covers the area as far as distance(pixel centre) is negative; the edge is one pixel wide.
  template <class Distance>
  void cover(const Area& area, Color color, const Distance& distance);
  // The same for lines, in pixels, together: where they meet or cross, nothing is covered twice.
  void stroke(const std::vector<std::vector<CanvasPoint>>& lines, double half_width, Color color);
  void blend(int64_t x, int64_t y, Color color, double share);

  double scale_;
  int64_t width_, height_;
  std::vector<uint8_t> pixels_;  // RGB
  std::vector<float> shares_;    // of strokes in progress; zeros otherwise
};

// How wide a line of text is, in units of the font size.
RUNNEL_API double text_width(std::string_view text, double size, bool bold = false);

}  // namespace runnel::io
