#include "runnel/keras/sequential.h"

#include <span>

#include "runnel/base/format.h"

namespace runnel::keras {

LayerArg::LayerArg(const Tensor& input) {
  const DescribedTensor d = described(input);
  if (!d.node || d.node->layer->class_name() != InputLayer::kClassName) {
    throw invalid_argument("[Sequential] a tensor among the layers must be made by keras::Input");
  }
  layer_ = d.node->layer;
}

Sequential::Sequential(std::initializer_list<LayerArg> layers, LayerOptions options) : Model(std::move(options)) {
  set_names_weights(false);
  set_autocast(false);
  for (const LayerArg& layer : layers) add(layer);
}

Sequential::Sequential(const std::vector<LayerPtr>& layers, LayerOptions options)
    : Sequential(std::initializer_list<LayerArg>{}, std::move(options)) {
  for (const LayerPtr& layer : layers) add(layer);
}

void Sequential::add(const LayerArg& argument) {
  const LayerPtr& layer = argument.layer();
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
  layers_.push_back(layer);
  describe_if_possible();
}

void Sequential::pop() {
  if (layers_.empty()) throw make_error(Code::failed_precondition, "[Sequential] model '{}' has no layers", name());
  layers_.pop_back();
  describe_if_possible();
}

// Describes the model anew from the input that is known; without one that waits for the first call.
void Sequential::describe_if_possible() {
  forget_training_functions();
  if (!input_ || layers_.empty()) return;
  const auto& options = static_cast<const InputLayer&>(*input_).options();
  connect(options.batch_input_shape, options.dtype.compute_dtype());
}

void Sequential::connect(const PartialShape& input, DType dtype) {
  const PartialShape sample(std::span(input.begin() + 1, input.end()));
  InputOptions options{.batch_size = input[0], .dtype = dtype};
  if (input_) options.name = input_->name();
  const Tensor x = Input(sample, options);
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
  connect(PartialShape(dims), build_dtype_);
}

void Sequential::build_for(const Nest& inputs) {
  if (layers_.empty()) throw make_error(Code::failed_precondition, "[Sequential] model '{}' has no layers", name());
  if (!inputs.is_leaf()) throw invalid_argument("[Sequential] model '{}' takes one tensor", name());
  build_dtype_ = inputs.leaf().dtype();
  build_from_shapes(NestOf<PartialShape>(inputs.leaf().partial_shape()));
}

std::vector<Layer*> Sequential::sublayers() const {
  std::vector<Layer*> all;
  for (const LayerPtr& layer : layers_) all.push_back(layer.get());
  return all;
}

Config Sequential::get_config() const {
  Config::List layers;
  if (is_functional()) {
    layers.push_back(layer_to_config(*described(inputs().leaf()).node->layer));
  } else if (input_) {
    layers.push_back(layer_to_config(*input_));
  }
  for (const LayerPtr& layer : layers_) layers.push_back(layer_to_config(*layer));
  return Config::Map{{"name", name()}, {"layers", std::move(layers)}};
}

std::shared_ptr<Sequential> Sequential::from_config(const Config& config) {
  std::vector<LayerPtr> layers;
  for (const Config& layer : config["layers"].items()) layers.push_back(layer_from_config(layer));
  return std::make_shared<Sequential>(layers, LayerOptions{.name = config["name"].as_text()});
}

}  // namespace runnel::keras
