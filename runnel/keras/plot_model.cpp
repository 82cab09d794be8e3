#include "runnel/keras/plot_model.h"

#include <algorithm>
#include <map>
#include <set>

#include "runnel/base/caller_line.h"
#include "runnel/base/env.h"
#include "runnel/base/format.h"
#include "runnel/keras/graph_layout.h"
#include "runnel/keras/layers/wrappers.h"
#include "runnel/keras/model_drawing.h"
#include "runnel/keras/sequential.h"
#include "runnel/keras/text.h"

namespace runnel::keras::utils {
namespace {

constexpr double kLoop = 26;  // how far the arrow from a layer to itself goes out

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

const Layer* wrapped_layer(const Layer& layer) {
  if (const auto* both = dynamic_cast<const Bidirectional*>(&layer)) return both->options().layer.get();
  if (const auto* each = dynamic_cast<const TimeDistributed*>(&layer)) return each->options().layer.get();
  return nullptr;
}

// The name of the activation of a layer that has one, as Keras writes it.
std::string activation_name(const Layer& layer) {
  const Config config = layer.get_config();
  const Config* activation = config.find("activation");
  if (!activation || activation->is_null()) return "";
  return activation->is_text() ? activation->as_text() : (*activation)["class_name"].as_text();
}

std::vector<std::string> lines_of(const Model& model, const Layer& layer, const PlotModelOptions& options) {
  const Layer* inner = wrapped_layer(layer);
  const auto with_inner = [&](const std::string& of_layer, const std::string& of_inner) {
    return inner ? of_layer + "(" + of_inner + ")" : of_layer;
  };
  std::vector<std::string> lines;
  if (options.show_layer_names) lines.push_back(with_inner(layer.name(), inner ? inner->name() : ""));
  lines.push_back(with_inner(layer.class_name(), inner ? inner->class_name() : ""));
  if (options.show_layer_activations) {
    if (const std::string name = activation_name(layer); !name.empty()) lines.push_back(name);
  }
  if (options.show_dtype) lines.emplace_back(dtype_name(layer.variable_dtype()));
  if (options.show_trainable) lines.emplace_back(layer.trainable() ? "trainable" : "not trainable");
  if (options.show_shapes) {
    lines.push_back("input: " + shapes_over_calls(model, &layer, input_shapes));
    lines.push_back("output: " + shapes_over_calls(model, &layer, output_shapes));
  }
  return lines;
}

// Layouts go from top to bottom; in a picture from left to right both coordinates are exchanged.
class ModelPicture {
 public:
  ModelPicture(DrawnModel model, bool sideways, ModelDrawing& drawing)
      : model_(std::move(model)), sideways_(sideways), drawing_(drawing) {
    for (const DrawnLayer& layer : model_.layers) {
      double width = 0;
      for (const std::string& line : layer.lines) {
        width = std::max(width, drawing_.text_width(line, &line == layer.lines.data()));
      }
      widths_.push_back(width + 2 * ModelDrawing::kInside);
      heights_.push_back(ModelDrawing::kLineHeight * static_cast<double>(layer.lines.size()) + ModelDrawing::kInside);
      LayoutBox box{widths_.back(), heights_.back()};
      if (sideways_) std::swap(box.width, box.height);
      if (layer.feeds_itself) box.width += 2 * kLoop;
      boxes_.push_back(box);
    }
    size_ = lay_out(boxes_, model_.arrows);
    if (sideways_) std::swap(size_.width, size_.height);
  }

  std::string draw() {
    drawing_.begin(size_.width, size_.height);
    for (const LayoutArrow& arrow : model_.arrows) {
      if (model_.shows_arrows) draw_arrow(arrow);
    }
    for (size_t i = 0; i < boxes_.size(); ++i) draw_layer(i);
    return drawing_.finish();
  }

 private:
  PicturePoint point(double x, double y) const { return sideways_ ? PicturePoint{y, x} : PicturePoint{x, y}; }

  void draw_arrow(const LayoutArrow& arrow) {
    const ArrowPart* before = nullptr;
    PicturePath path{};
    for (const ArrowPart& part : arrow.parts) {
      if (!before) {
        path.from = point(part.x, part.begin);
      } else {
        const double middle = (before->end + part.begin) / 2;
        path.parts.push_back({true, point(before->x, middle), point(part.x, middle), point(part.x, part.begin)});
      }
      if (part.begin != part.end) path.parts.push_back({false, {}, {}, point(part.x, part.end)});
      before = &part;
    }
    drawing_.arrow(path);
  }

  void draw_layer(size_t i) {
    const DrawnLayer& drawn = model_.layers[i];
    const PicturePoint centre = point(boxes_[i].x, boxes_[i].y);
    drawing_.box(centre.x - widths_[i] / 2, centre.y - heights_[i] / 2, widths_[i], heights_[i],
                 drawn.layer->class_name() == InputLayer::kClassName, drawn.lines);
    if (drawn.feeds_itself) draw_loop(boxes_[i]);
  }

  // Out of the side where no other arrow is, and back.
  void draw_loop(const LayoutBox& box) {
    const double side = box.x + box.width / 2 - kLoop, bend = side + kLoop, half = std::min(8.0, box.height / 4);
    drawing_.arrow({point(side, box.y + half),
                    {{true, point(bend, box.y + half), point(bend, box.y - half), point(side, box.y - half)}}});
  }

  DrawnModel model_;
  bool sideways_;
  ModelDrawing& drawing_;
  std::vector<double> widths_, heights_;  // of the boxes in the picture
  std::vector<LayoutBox> boxes_;
  LayoutSize size_;
};

std::string picture_of(const Model& model, const PlotModelOptions& options, ModelDrawing& drawing) {
  if (options.rankdir != "TB" && options.rankdir != "LR") {
    throw invalid_argument("[plot_model] rankdir must be TB (top to bottom) or LR (left to right), got '{}'",
                           options.rankdir);
  }
  DrawnModel drawn = drawn_model(model);
  if (drawn.layers.empty()) throw invalid_argument("[plot_model] model '{}' has no layers", model.name());
  for (DrawnLayer& layer : drawn.layers) layer.lines = lines_of(model, *layer.layer, options);
  return ModelPicture(std::move(drawn), options.rankdir == "LR", drawing).draw();
}

}  // namespace

std::string model_svg(const Model& model, const PlotModelOptions& options, SourceSite where) {
  return at_caller(where, [&] { return picture_of(model, options, *make_svg_drawing()); });
}

std::string model_png(const Model& model, const PlotModelOptions& options, SourceSite where) {
  return at_caller(where, [&] {
    if (!(options.dpi >= 10 && options.dpi <= 2400)) {
      throw invalid_argument("[plot_model] dpi must be between 10 and 2400, got {}", options.dpi);
    }
    return picture_of(model, options, *make_png_drawing(options.dpi));
  });
}

void plot_model(const Model& model, const std::string& to_file, const PlotModelOptions& options, SourceSite where) {
  at_caller(where, [&] {
    const bool png = to_file.ends_with(".png");
    if (!png && !to_file.ends_with(".svg")) {
      throw invalid_argument("[plot_model] pictures are written as PNG or SVG: '{}' must end in .png or .svg", to_file);
    }
    Env::posix().write_file(to_file, as_bytes(png ? model_png(model, options) : model_svg(model, options)));
  });
}

}  // namespace runnel::keras::utils
