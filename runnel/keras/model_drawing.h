#pragma once

// Internal: what pictures of models are drawn on.
#include <memory>
#include <string>
#include <vector>

namespace runnel::keras::utils {

struct PicturePoint {
  double x, y;
};

// A line that begins at a point and goes on to others, straight or in a curve with two bends (a cubic Bezier curve).
struct PicturePath {
  struct Part {
    bool curved;
    PicturePoint first_bend, second_bend;  // of a curve
    PicturePoint to;
  };
  PicturePoint from;
  std::vector<Part> parts;
};

// Lengths are in pixels of a screen.
class ModelDrawing {
 public:
  virtual ~ModelDrawing() = default;
  virtual double text_width(const std::string& line, bool bold) const = 0;
  virtual void begin(double width, double height) = 0;
  virtual void arrow(const PicturePath& path) = 0;
  // A box for a layer, the first line of its text bold.
  virtual void box(double left, double top, double width, double height, bool is_input,
                   const std::vector<std::string>& lines) = 0;
  virtual std::string finish() = 0;  // the bytes of the picture

  static constexpr double kLineHeight = 17, kInside = 9;  // of text; between it and the border of its box
};

std::unique_ptr<ModelDrawing> make_svg_drawing();
std::unique_ptr<ModelDrawing> make_png_drawing(double dpi);  // 96: a pixel of the file is one of the screen

}  // namespace runnel::keras::utils
