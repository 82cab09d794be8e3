#include "runnel/keras/plot.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "runnel/base/caller_line.h"
#include "runnel/base/env.h"
#include "runnel/base/format.h"
#include "runnel/keras/text.h"

namespace runnel::keras::utils {
namespace {

constexpr double kLeft = 68, kRight = 20, kAbove = 34, kBelow = 46;  // around the axes of a panel
constexpr double kTitle = 30;
constexpr const char* kTrainingColour = "#1f5fa8";
constexpr const char* kValidationColour = "#d1621b";
constexpr const char* kInk = "#333333";

struct PlotLine {
  std::string name;
  const char* colour;
  std::vector<std::pair<double, double>> points;  // epoch, value
};

struct PlotPanel {
  std::string metric;
  std::vector<PlotLine> lines;
};

// A range of numbers and round places in it.
struct PlotAxis {
  double low, high, step;

  // `ticks`: about how many. Integers alone: steps of whole numbers.
  PlotAxis(double from, double to, int ticks, bool integers) : low(from), high(to) {
    if (!(high > low)) {
      const double around = integers ? 0.5 : std::max(std::abs(low) * 0.1, 1e-6);
      low -= around;
      high += around;
    }
    const double rough = (high - low) / ticks, power = std::pow(10, std::floor(std::log10(rough)));
    step = power * 10;
    for (double factor : {1.0, 2.0, 5.0}) {
      if (power * factor >= rough) {
        step = power * factor;
        break;
      }
    }
    if (integers) step = std::max(1.0, std::round(step));
  }
  void widen_to_ticks() {
    low = std::floor(low / step + 1e-9) * step;
    high = std::ceil(high / step - 1e-9) * step;
  }
  std::vector<double> ticks() const {
    std::vector<double> at;
    for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) at.push_back(i * step);
    return at;
  }
  std::string text(double value) const {
    if (std::abs(value) < step * 1e-6) return "0";
    const double largest = std::max(std::abs(low), std::abs(high));
    if (largest >= 1e5 || largest < 1e-3) return fmt::format("{:.3g}", value);
    const int digits = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 8);
    return fmt::format("{:.{}f}", value, digits);
  }
};

class SvgPanel {
 public:
  SvgPanel(const PlotPanel& panel, double top, const PlotHistoryOptions& o, std::string& out)
      : panel_(panel),
        left_(kLeft),
        right_(o.width - kRight),
        top_(top + kAbove),
        bottom_(top + o.height - kBelow),
        x_(extent(true)),
        y_(extent(false)),
        out_(out) {
    y_.widen_to_ticks();
  }

  void draw() {
    frame();
    for (const PlotLine& line : panel_.lines) draw_line(line);
    legend();
  }

 private:
  PlotAxis extent(bool of_epochs) const {
    double low = INFINITY, high = -INFINITY;
    for (const PlotLine& line : panel_.lines) {
      for (const auto& [epoch, value] : line.points) {
        const double v = of_epochs ? epoch : value;
        if (!std::isfinite(v)) continue;
        low = std::min(low, v);
        high = std::max(high, v);
      }
    }
    if (low > high) low = 0, high = 1;  // no finite value at all
    const double size = of_epochs ? right_ - left_ : bottom_ - top_;
    return PlotAxis(low, high, std::max(2, static_cast<int>(size / (of_epochs ? 60 : 42))), of_epochs);
  }
  double x(double epoch) const { return left_ + (epoch - x_.low) / (x_.high - x_.low) * (right_ - left_); }
  double y(double value) const { return bottom_ - (value - y_.low) / (y_.high - y_.low) * (bottom_ - top_); }

  void text(double at_x, double at_y, const char* anchor, const std::string& words, const std::string& more = "") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", at_x, at_y, anchor, more,
                        xml_text(words));
  }
  void stroke(double x1, double y1, double x2, double y2, const char* colour) {
    out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
                        y2, colour);
  }

  void frame() {
    for (double tick : y_.ticks()) {
      stroke(left_, y(tick), right_, y(tick), "#e3e3e3");
      text(left_ - 8, y(tick) + 4, "end", y_.text(tick));
    }
    for (double tick : x_.ticks()) {
      stroke(x(tick), bottom_, x(tick), bottom_ + 5, kInk);
      text(x(tick), bottom_ + 18, "middle", x_.text(tick));
    }
    stroke(left_, bottom_, right_, bottom_, kInk);
    stroke(left_, top_, left_, bottom_, kInk);
    text((left_ + right_) / 2, bottom_ + 36, "middle", "epoch");
    const double middle = (top_ + bottom_) / 2;
    text(16, middle, "middle", panel_.metric, fmt::format(" transform=\"rotate(-90 16 {:.1f})\"", middle));
  }

  // Values that are no numbers leave gaps.
  void draw_line(const PlotLine& line) {
    std::string path;
    bool pen_down = false;
    for (const auto& [epoch, value] : line.points) {
      if (std::isfinite(value)) path += fmt::format("{}{:.1f} {:.1f}", pen_down ? " L" : " M", x(epoch), y(value));
      pen_down = std::isfinite(value);
    }
    if (path.empty()) return;
    out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-linejoin=\"round\"/>\n",
                        path.substr(1), line.colour);
    if (line.points.size() > 30) return;  // more of them would hide the line
    for (const auto& [epoch, value] : line.points) {
      if (!std::isfinite(value)) continue;
      out_ +=
          fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.8\" fill=\"{}\"/>\n", x(epoch), y(value), line.colour);
    }
  }

  // Above the axes, where no line can be.
  void legend() {
    double at = left_;
    for (const PlotLine& line : panel_.lines) {
      const double middle = top_ - 14;
      out_ += fmt::format(
          "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"3\"/>\n", at,
          middle, at + 22, middle, line.colour);
      text(at + 28, middle + 4, "start", line.name);
      at += 28 + 7.5 * static_cast<double>(line.name.size()) + 24;
    }
  }

  const PlotPanel& panel_;
  double left_, right_, top_, bottom_;
  PlotAxis x_, y_;
  std::string& out_;
};

PlotLine make_plot_line(const std::string& name, const std::vector<double>& values, const std::vector<int64_t>& epochs,
                        const char* colour) {
  if (!epochs.empty() && values.size() > epochs.size()) {
    throw invalid_argument("[plot_history] '{}' has {} values for {} epochs", name, values.size(), epochs.size());
  }
  PlotLine line{name, colour, {}};
  for (size_t i = 0; i < values.size(); ++i) {
    line.points.emplace_back(static_cast<double>(epochs.empty() ? static_cast<int64_t>(i) : epochs[i]) + 1, values[i]);
  }
  return line;
}

std::string without_val(const std::string& name) { return name.starts_with("val_") ? name.substr(4) : name; }

std::vector<PlotPanel> make_plot_panels(const MetricsHistory& history, const std::vector<int64_t>& epochs,
                                        const std::vector<std::string>& wanted) {
  std::vector<std::string> metrics;
  for (const std::string& name : wanted) metrics.push_back(without_val(name));
  if (wanted.empty()) {
    if (history.contains("loss") || history.contains("val_loss")) metrics.emplace_back("loss");  // first of all
    for (const auto& [name, values] : history) metrics.push_back(without_val(name));
  }
  std::vector<PlotPanel> panels;
  std::set<std::string> seen;
  for (const std::string& metric : metrics) {
    if (!seen.insert(metric).second) continue;
    PlotPanel panel{metric, {}};
    for (const auto& [name, colour] : {std::pair{metric, kTrainingColour}, {"val_" + metric, kValidationColour}}) {
      const auto found = history.find(name);
      if (found != history.end()) panel.lines.push_back(make_plot_line(name, found->second, epochs, colour));
    }
    if (panel.lines.empty()) {
      std::vector<std::string> names;
      for (const auto& [name, values] : history) names.push_back(name);
      throw invalid_argument("[plot_history] no metric '{}'; there are: {}", metric, fmt::join(names, ", "));
    }
    panels.push_back(std::move(panel));
  }
  return panels;
}

}  // namespace

std::string history_svg(const MetricsHistory& history, const std::vector<int64_t>& epochs,
                        const PlotHistoryOptions& options, SourceSite where) {
  return at_caller(where, [&] {
    if (history.empty()) throw invalid_argument("[plot_history] the history is empty");
    if (options.width < 200 || options.height < 150) {
      throw invalid_argument("[plot_history] {} x {} is too small, 200 x 150 is the least", options.width,
                             options.height);
    }
    const std::vector<PlotPanel> panels = make_plot_panels(history, epochs, options.metrics);
    const double title = options.title.empty() ? 0 : kTitle;
    const double height = title + options.height * static_cast<double>(panels.size());
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"sans-serif\" font-size=\"12\" fill=\"{2}\">\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"white\"/>\n",
        options.width, height, kInk);
    if (title > 0) {
      out += fmt::format("<text x=\"{}\" y=\"22\" text-anchor=\"middle\" font-size=\"16\">{}</text>\n",
                         options.width / 2, xml_text(options.title));
    }
    for (size_t i = 0; i < panels.size(); ++i) {
      SvgPanel(panels[i], title + options.height * static_cast<double>(i), options, out).draw();
    }
    return out + "</svg>\n";
  });
}

void plot_history(const MetricsHistory& history, const std::vector<int64_t>& epochs, const std::string& path,
                  const PlotHistoryOptions& options, SourceSite where) {
  at_caller(where, [&] { Env::posix().write_file(path, as_bytes(history_svg(history, epochs, options))); });
}

}  // namespace runnel::keras::utils
