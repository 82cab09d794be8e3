#include "runnel/keras/model_drawing.h"

#include <cmath>
#include <optional>

#include "runnel/base/format.h"
#include "runnel/io/canvas.h"
#include "runnel/keras/text.h"

namespace runnel::keras::utils {
namespace {

constexpr double kLetter = 7.3, kCapital = 1.6;    // what a letter of a reader's font may need, and a capital more
constexpr double kFontSize = 12, kBaseline = 13;   // the latter from the top of a line
constexpr double kLineWidth = 1.3, kCorner = 4;    // of arrows; the radius of corners of boxes
constexpr double kHeadLength = 10, kHeadHalf = 4;  // of arrows
constexpr const char *kBorder = "#5a6b7d", *kText = "#333333", *kFillOfLayer = "#f4f7fb", *kFillOfInput = "#e3f1e3";

class SvgDrawing : public ModelDrawing {
 public:
  // A font is found by the reader, so its letters may be wider or narrower.
  double text_width(const std::string& line, bool) const override {
    double width = 0;
    for (const char c : line) {
      const bool continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;  // a further byte of a letter
      width += continues ? 0 : kLetter + (c >= 'A' && c <= 'Z' ? kCapital : 0);
    }
    return width;
  }

  void begin(double width, double height) override {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" font-family=\"sans-serif\" font-size=\"{3}\" fill=\"{4}\">\n"
        "<defs><marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"9.5\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" "
        "orient=\"auto\"><path d=\"M0 1 L10 5 L0 9 z\" fill=\"{2}\"/></marker></defs>\n"
        "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"white\"/>\n",
        width, height, kBorder, kFontSize, kText);
  }

  void arrow(const PicturePath& path) override {
    std::string d = "M" + pair(path.from);
    for (const auto& [curved, first, second, to] : path.parts) {
      d += curved ? fmt::format(" C{} {} {}", pair(first), pair(second), pair(to)) : " L" + pair(to);
    }
    out_ += fmt::format(
        "<path class=\"arrow\" d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" marker-end=\"url(#head)\"/>\n",
        d, kBorder, kLineWidth);
  }

  void box(double left, double top, double width, double height, bool is_input,
           const std::vector<std::string>& lines) override {
    out_ += fmt::format(
        "<g class=\"layer\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{}\" fill=\"{}\" "
        "stroke=\"{}\"/>\n",
        left, top, width, height, kCorner, is_input ? kFillOfInput : kFillOfLayer, kBorder);
    for (size_t i = 0; i < lines.size(); ++i) {
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\"{}>{}</text>\n", left + width / 2,
                          top + kInside / 2 + kLineHeight * static_cast<double>(i) + kBaseline,
                          i == 0 ? " font-weight=\"bold\"" : "", xml_text(lines[i]));
    }
    out_ += "</g>\n";
  }

  std::string finish() override { return out_ + "</svg>\n"; }

 private:
  static std::string pair(PicturePoint p) { return fmt::format("{:.1f} {:.1f}", p.x, p.y); }

  std::string out_;
};

io::Color color_of(const char* hex) {
  const auto value = static_cast<uint32_t>(std::stoul(hex + 1, nullptr, 16));
  return {static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 8 & 0xFF),
          static_cast<uint8_t>(value & 0xFF)};
}

class PngDrawing : public ModelDrawing {
 public:
  explicit PngDrawing(double dpi) : scale_(dpi / 96) {}

  double text_width(const std::string& line, bool bold) const override { return io::text_width(line, kFontSize, bold); }

  void begin(double width, double height) override { canvas_.emplace(width, height, color_of("#ffffff"), scale_); }

  void arrow(const PicturePath& path) override {
    std::vector<io::CanvasPoint> points{{path.from.x, path.from.y}};
    for (const auto& [curved, first, second, to] : path.parts) {
      const io::CanvasPoint from = points.back();
      constexpr int kSteps = 24;
      for (int i = 1; curved && i < kSteps; ++i) {
        const double t = i / static_cast<double>(kSteps), s = 1 - t;
        const auto at = [&](double a, double b, double c, double d) {
          return s * s * s * a + 3 * s * s * t * b + 3 * s * t * t * c + t * t * t * d;
        };
        points.push_back({at(from.x, first.x, second.x, to.x), at(from.y, first.y, second.y, to.y)});
      }
      points.push_back({to.x, to.y});
    }
    draw_head(points);
    canvas_->line(points, kLineWidth, color_of(kBorder));
  }

  void box(double left, double top, double width, double height, bool is_input,
           const std::vector<std::string>& lines) override {
    canvas_->box(left, top, width, height, kCorner, color_of(is_input ? kFillOfInput : kFillOfLayer),
                 color_of(kBorder));
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool bold = i == 0;
      canvas_->text({left + (width - text_width(lines[i], bold)) / 2,
                     top + kInside / 2 + kLineHeight * static_cast<double>(i) + kBaseline},
                    lines[i], kFontSize, color_of(kText), bold);
    }
  }

  std::string finish() override { return canvas_->png(); }

 private:
  // A triangle at the end; the line then ends inside it, so that its end does not stick out at the tip.
  void draw_head(std::vector<io::CanvasPoint>& points) {
    const io::CanvasPoint tip = points.back();
    io::CanvasPoint behind = points.front();
    for (auto p = points.rbegin(); p != points.rend(); ++p) {  // NOLINT(modernize-loop-convert): backward
      behind = *p;
      if (std::hypot(tip.x - p->x, tip.y - p->y) >= kHeadLength) break;
    }
    const double length = std::hypot(tip.x - behind.x, tip.y - behind.y);
    if (length == 0) return;
    const double dx = (tip.x - behind.x) / length, dy = (tip.y - behind.y) / length;
    const io::CanvasPoint base{tip.x - dx * kHeadLength, tip.y - dy * kHeadLength};
    canvas_->triangle(tip, {base.x - dy * kHeadHalf, base.y + dx * kHeadHalf},
                      {base.x + dy * kHeadHalf, base.y - dx * kHeadHalf}, color_of(kBorder));
    while (points.size() > 1 && std::hypot(tip.x - points.back().x, tip.y - points.back().y) < kHeadLength / 2) {
      points.pop_back();
    }
    points.push_back({tip.x - dx * kHeadLength / 2, tip.y - dy * kHeadLength / 2});
  }

  double scale_;
  std::optional<io::Canvas> canvas_;
};

}  // namespace

std::unique_ptr<ModelDrawing> make_svg_drawing() { return std::make_unique<SvgDrawing>(); }
std::unique_ptr<ModelDrawing> make_png_drawing(double dpi) { return std::make_unique<PngDrawing>(dpi); }

}  // namespace runnel::keras::utils
