#include "runnel/keras/plot_model.h"

#include <algorithm>
#include <map>
#include <set>

#include "runnel/base/env.h"
#include "runnel/base/format.h"
#include "runnel/keras/graph_layout.h"
#include "runnel/keras/sequential.h"
#include "runnel/keras/text.h"

namespace runnel::keras::utils {
namespace {

constexpr double kLetter = 7.3, kCapital = 1.6;  // the width of a letter, and what a capital has more
constexpr double kLineHeight = 17, kInside = 9;  // of text; between it and the border of its box
constexpr double kLoop = 26;                     // how far the arrow from a layer to itself goes out
constexpr const char* kBorder = "#5a6b7d";
constexpr const char* kFillOfLayer = "#f4f7fb";
constexpr const char* kFillOfInput = "#e3f1e3";

struct DrawnLayer {
  const Layer* layer;
  std::vector<std::string> lines = {};  // the first one stands out
  bool feeds_itself = false;
};
struct DrawnModel {
  std::vector<DrawnLayer> layers;
  std::vector<LayoutArrow> arrows;
  bool shows_arrows = true;
};

DrawnModel connected_layers(const FunctionalGraph& graph) {
  DrawnModel drawn;
  std::map<const Layer*, size_t> place;
  for (const LayerPtr& layer : graph.layers()) {
    place.emplace(layer.get(), drawn.layers.size());
    drawn.layers.push_back({layer.get()});
  }
  std::set<const FunctionalNode*> inputs, inside;
  for (const Tensor& t : nest::flatten(graph.inputs())) inputs.insert(described(t).node.get());
  for (const FunctionalNodePtr& node : graph.nodes()) inside.insert(node.get());
  std::set<std::pair<size_t, size_t>> seen;
  for (const FunctionalNodePtr& node : graph.nodes()) {
    if (inputs.contains(node.get())) continue;  // what a model begins with may be the output of a layer elsewhere
    for (const Tensor& t : nest::flatten(node->inputs)) {
      const DescribedTensor source = described(t);
      if (!inside.contains(source.node.get())) continue;  // a constant
      const size_t from = place.at(source.node->layer.get()), to = place.at(node->layer.get());
      if (from == to) {
        drawn.layers[to].feeds_itself = true;
      } else if (seen.emplace(from, to).second) {
        drawn.arrows.push_back({from, to, {}});
      }
    }
  }
  return drawn;
}

DrawnModel drawn_model(const Model& model) {
  if (model.is_functional()) return connected_layers(model.graph());
  DrawnModel drawn;
  for (const Layer* layer : model.layers()) drawn.layers.push_back({layer});
  for (size_t i = 1; i < drawn.layers.size(); ++i) drawn.arrows.push_back({i - 1, i, {}});
  drawn.shows_arrows = dynamic_cast<const Sequential*>(&model) != nullptr;
  return drawn;
}

std::string shape_tuples(const std::vector<PartialShape>& shapes) {
  std::string text;
  for (const PartialShape& shape : shapes) text += (text.empty() ? "" : ", ") + shape_tuple(shape);
  return shapes.size() == 1 ? text : "[" + text + "]";
}

// The shapes of one side of a layer, over all of its calls.
template <class ShapesOf>
std::string shapes_over_calls(const Model& model, const Layer* layer, ShapesOf shapes_of) {
  std::set<std::string> texts;
  if (model.is_functional()) {
    for (const FunctionalNodePtr& node : model.graph().nodes()) {
      if (node->layer.get() == layer) texts.insert(shape_tuples(shapes_of(*node)));
    }
  }
  if (texts.empty()) return "?";
  return texts.size() == 1 ? *texts.begin() : "multiple";
}

std::vector<PartialShape> output_shapes(const FunctionalNode& node) {
  std::vector<PartialShape> shapes;
  for (const TensorSpec& spec : nest::flatten(node.outputs)) shapes.push_back(spec.shape);
  return shapes;
}

std::vector<PartialShape> input_shapes(const FunctionalNode& node) {
  std::vector<PartialShape> shapes;
  for (const Tensor& t : nest::flatten(node.inputs)) {
    if (described(t).node) shapes.push_back(t.partial_shape());
  }
  return shapes.empty() ? output_shapes(node) : shapes;  // an InputLayer hands on what it gets
}

std::vector<std::string> lines_of(const Model& model, const Layer& layer, const PlotModelOptions& options) {
  std::vector<std::string> lines;
  if (options.show_layer_names) lines.push_back(layer.name());
  lines.push_back(layer.class_name());
  if (options.show_dtype) lines.emplace_back(dtype_name(layer.variable_dtype()));
  if (options.show_shapes) {
    lines.push_back("input: " + shapes_over_calls(model, &layer, input_shapes));
    lines.push_back("output: " + shapes_over_calls(model, &layer, output_shapes));
  }
  return lines;
}

double text_width(const std::string& text) {
  double width = 0;
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;  // a further byte of a letter
    width += continues ? 0 : kLetter + (c >= 'A' && c <= 'Z' ? kCapital : 0);
  }
  return width;
}

// Layouts go from top to bottom; in a picture from left to right both coordinates are exchanged.
class ModelPicture {
 public:
  ModelPicture(DrawnModel model, bool sideways) : model_(std::move(model)), sideways_(sideways) {
    for (const DrawnLayer& layer : model_.layers) {
      double width = 0;
      for (const std::string& line : layer.lines) width = std::max(width, text_width(line));
      widths_.push_back(width + 2 * kInside);
      heights_.push_back(kLineHeight * static_cast<double>(layer.lines.size()) + kInside);
      LayoutBox box{widths_.back(), heights_.back()};
      if (sideways_) std::swap(box.width, box.height);
      if (layer.feeds_itself) box.width += 2 * kLoop;
      boxes_.push_back(box);
    }
    size_ = lay_out(boxes_, model_.arrows);
    if (sideways_) std::swap(size_.width, size_.height);
  }

  std::string svg() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"12\" fill=\"#333333\">\n"
        "<defs><marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"9.5\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" "
        "orient=\"auto\"><path d=\"M0 1 L10 5 L0 9 z\" fill=\"{2}\"/></marker></defs>\n"
        "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"white\"/>\n",
        size_.width, size_.height, kBorder);
    for (const LayoutArrow& arrow : model_.arrows) {
      if (model_.shows_arrows) draw_arrow(arrow);
    }
    for (size_t i = 0; i < boxes_.size(); ++i) draw_layer(i);
    return out_ + "</svg>\n";
  }

 private:
  std::string point(double x, double y) const {
    return sideways_ ? fmt::format("{:.1f} {:.1f}", y, x) : fmt::format("{:.1f} {:.1f}", x, y);
  }

  void draw_path(const std::string& path) {
    out_ += fmt::format(
        "<path class=\"arrow\" d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.3\" marker-end=\"url(#head)\"/>\n",
        path, kBorder);
  }

  void draw_arrow(const LayoutArrow& arrow) {
    const ArrowPart* before = nullptr;
    std::string path;
    for (const ArrowPart& part : arrow.parts) {
      if (!before) {
        path = "M" + point(part.x, part.begin);
      } else {
        const double middle = (before->end + part.begin) / 2;
        path += fmt::format(" C{} {} {}", point(before->x, middle), point(part.x, middle), point(part.x, part.begin));
      }
      if (part.begin != part.end) path += " L" + point(part.x, part.end);
      before = &part;
    }
    draw_path(path);
  }

  void draw_layer(size_t i) {
    const DrawnLayer& drawn = model_.layers[i];
    const double x = sideways_ ? boxes_[i].y : boxes_[i].x, y = sideways_ ? boxes_[i].x : boxes_[i].y;
    const double left = x - widths_[i] / 2, top = y - heights_[i] / 2;
    const bool is_input = drawn.layer->class_name() == InputLayer::kClassName;
    out_ += fmt::format(
        "<g class=\"layer\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" fill=\"{}\" "
        "stroke=\"{}\"/>\n",
        left, top, widths_[i], heights_[i], is_input ? kFillOfInput : kFillOfLayer, kBorder);
    for (size_t line = 0; line < drawn.lines.size(); ++line) {
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\"{}>{}</text>\n", x,
                          top + kInside / 2 + kLineHeight * static_cast<double>(line) + 13,
                          line == 0 ? " font-weight=\"bold\"" : "", xml_text(drawn.lines[line]));
    }
    out_ += "</g>\n";
    if (drawn.feeds_itself) draw_loop(boxes_[i]);
  }

  // Out of the side where no other arrow is, and back.
  void draw_loop(const LayoutBox& box) {
    const double side = box.x + box.width / 2 - kLoop, bend = side + kLoop, half = std::min(8.0, box.height / 4);
    draw_path(fmt::format("M{} C{} {} {}", point(side, box.y + half), point(bend, box.y + half),
                          point(bend, box.y - half), point(side, box.y - half)));
  }

  DrawnModel model_;
  bool sideways_;
  std::vector<double> widths_, heights_;  // of the boxes in the picture
  std::vector<LayoutBox> boxes_;
  LayoutSize size_;
  std::string out_;
};

}  // namespace

std::string model_svg(const Model& model, const PlotModelOptions& options) {
  if (options.rankdir != "TB" && options.rankdir != "LR") {
    throw invalid_argument("[plot_model] rankdir must be TB (top to bottom) or LR (left to right), got '{}'",
                           options.rankdir);
  }
  DrawnModel drawn = drawn_model(model);
  if (drawn.layers.empty()) throw invalid_argument("[plot_model] model '{}' has no layers", model.name());
  for (DrawnLayer& layer : drawn.layers) layer.lines = lines_of(model, *layer.layer, options);
  return ModelPicture(std::move(drawn), options.rankdir == "LR").svg();
}

void plot_model(const Model& model, const std::string& to_file, const PlotModelOptions& options) {
  if (!to_file.ends_with(".svg")) {
    throw invalid_argument("[plot_model] pictures are written as SVG: '{}' must end in .svg", to_file);
  }
  Env::posix().write_file(to_file, as_bytes(model_svg(model, options)));
}

}  // namespace runnel::keras::utils
