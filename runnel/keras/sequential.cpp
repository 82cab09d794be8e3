#include "runnel/keras/sequential.h"

#include <span>

#include "runnel/base/format.h"
#include "runnel/keras/layers/activation_layers.h"
#include "runnel/op/composed.h"

namespace runnel::keras {

LayerArg::LayerArg(const Tensor& input, SourceSite where) {
  const DescribedTensor d = described(input);
  if (!d.node || d.node->layer->class_name() != InputLayer::kClassName) {
    throw at_line(invalid_argument("[Sequential] a tensor among the layers must be made by keras::Input"), where);
  }
  layer_ = d.node->layer;
}

LayerArg::LayerArg(const Activation& activation) : layer_(std::make_shared<ActivationLayer>(activation)) {}

Sequential::Sequential(std::initializer_list<LayerArg> layers, LayerOptions options, CallSite where)
    : Model(std::move(options)) {
  set_names_weights(false);
  set_autocast(false);
  for (const LayerArg& layer : layers) add(layer, where.site);
}

Sequential::Sequential(Layer* parent, const std::string& attribute, std::initializer_list<LayerArg> layers,
                       LayerOptions options, CallSite where)
    : Sequential(layers, std::move(options), where) {
  join(parent, attribute);
}

Sequential::Sequential(const std::vector<LayerPtr>& layers, LayerOptions options, SourceSite where)
    : Sequential(std::initializer_list<LayerArg>{}, std::move(options)) {
  for (const LayerPtr& layer : layers) add(layer, where);
}

void Sequential::add(const LayerArg& argument, SourceSite where) {
  composed(where, [&] {
    refuse_moved_from();
    const LayerPtr& layer = argument.layer();
    if (!layer) throw invalid_argument("[Sequential] a layer added to model '{}' is an empty pointer", name());
    for (const LayerPtr& known : layers_) {
      if (known == layer || known->name() == layer->name()) {
        throw invalid_argument("[Sequential] model '{}' has a layer '{}' already: names must differ", name(),
                               layer->name());
      }
    }
    if (layer->class_name() == InputLayer::kClassName) {
      if (!layers_.empty()) throw invalid_argument("[Sequential] keras::Input stands at the beginning only");
      input_ = layer;
      return;
    }
    // The input has the dtype of the weights, and the layer casts it: ids would lose digits in float16.
    if (const PartialShape& shape = layer->batch_input_shape(); layers_.empty() && !input_ && shape.has_rank()) {
      input_ = std::make_shared<InputLayer>(InputLayerOptions{
          .batch_input_shape = shape, .name = layer->name() + "_input", .dtype = Policy(layer->variable_dtype())});
    }
    layers_.push_back(layer);
    describe_if_possible();
    settle_children();
  });
}

void Sequential::pop(SourceSite where) {
  composed(where, [&] {
    refuse_moved_from();
    if (layers_.empty()) throw make_error(Code::failed_precondition, "[Sequential] model '{}' has no layers", name());
    layers_.pop_back();
    describe_if_possible();
  });
}

// Describes the model anew from the input that is known: the one given, or that of the first call. Without one it waits
// for that call.
void Sequential::describe_if_possible() {
  forget_training_functions();
  const LayerPtr known = input_ ? input_ : is_functional() ? described(inputs().leaf()).node->layer : nullptr;
  if (layers_.empty()) {
    forget_graph();
  } else if (known) {
    const auto& options = static_cast<const InputLayer&>(*known).options();
    if (const PartialShape& shape = options.batch_input_shape; !shape.has_rank() || shape.rank() == 0) {
      throw invalid_argument(
          "[Sequential] the InputLayer '{}' of model '{}' has no batch_input_shape: its configuration needs "
          "\"batch_input_shape\": [null, ...]",
          known->name(), name());
    }
    connect(options.batch_input_shape, options.dtype.compute_dtype(), known->name());
  }
}

void Sequential::connect(const PartialShape& input, DType dtype, const std::string& input_name) {
  const PartialShape sample(std::span(input.begin() + 1, input.end()));
  const Tensor x = Input(sample, {.batch_size = input[0], .name = input_name, .dtype = dtype});
  Nest y = x;
  for (const LayerPtr& layer : layers_) y = (*layer)(y);
  auto graph = std::make_unique<FunctionalGraph>(x, y);
  graph->checks_input_shapes = input_ != nullptr;  // a size seen at the first call need not be that of the others
  set_graph(std::move(graph));
}

void Sequential::build(const PartialShape& input) {
  if (!input.has_rank() || input.rank() == 0) {
    throw invalid_argument("[Sequential] model '{}' cannot be built for an input of shape {}", name(), input.str());
  }
  // The next batch may have another size.
  Dims dims = input.dims();
  dims[0] = kUnknownDim;
  connect(PartialShape(dims), build_dtype_, input_ ? input_->name() : "");
}

void Sequential::build_for(const Nest& inputs) {
  if (layers_.empty()) throw make_error(Code::failed_precondition, "[Sequential] model '{}' has no layers", name());
  if (!inputs.is_leaf()) throw invalid_argument("[Sequential] model '{}' takes one tensor", name());
  build_dtype_ = inputs.leaf().dtype();
  build_from_shapes(NestOf<PartialShape>(inputs.leaf().partial_shape()));
}

std::vector<Layer*> Sequential::numbered_layers() const {
  std::vector<Layer*> all;
  for (const LayerPtr& layer : layers_) all.push_back(layer.get());
  return all;
}

Config Sequential::get_config() const {
  refuse_moved_from();
  Config::List layers;
  if (is_functional()) {
    layers.push_back(layer_to_config(*described(inputs().leaf()).node->layer));
  } else if (input_) {
    layers.push_back(layer_to_config(*input_));
  }
  for (const LayerPtr& layer : layers_) layers.push_back(layer_to_config(*layer));
  return Config::Map{{"name", name()}, {"layers", std::move(layers)}};
}

std::shared_ptr<Sequential> Sequential::from_config(const Config& config, SourceSite where) {
  return composed(where, [&]() -> std::shared_ptr<Sequential> {
    std::vector<LayerPtr> layers;
    for (const Config& layer : config["layers"].items()) layers.push_back(layer_from_config(layer));
    return std::make_shared<Sequential>(layers, LayerOptions{.name = config["name"].as_text()});
  });
}

}  // namespace runnel::keras
