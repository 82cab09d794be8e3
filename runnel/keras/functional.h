#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runnel/function/tensor_spec.h"
#include "runnel/keras/layer_of.h"

namespace runnel::keras {

struct InputOptions {
  int64_t batch_size = kUnknownDim;
  std::string name = {};
  DType dtype = DType::float32;
};
// A tensor that stands for the input of a functional model; `shape` is that of one sample. Layers and ops applied to
// it give tensors that describe the model:
//   Tensor x = keras::Input({28, 28});
//   Tensor y = keras::Dense({.units = 10})(keras::Flatten()(x));
//   keras::Model model(x, y);
RUNNEL_API Tensor Input(const PartialShape& shape, const InputOptions& options = {},
                        SourceSite where = SourceSite::current());

struct InputLayerOptions {
  PartialShape batch_input_shape = PartialShape::unknown();
  std::string name = {};
  Policy dtype = {};
  bool trainable = true;
  static constexpr auto fields() {
    return field_list(
        field("batch_input_shape", &InputLayerOptions::batch_input_shape, "the shape of the input with the batch"));
  }
};
// What stands at the beginning of a model: its shape and dtype.
class RUNNEL_API InputLayer : public LayerOf<InputLayer, InputLayerOptions> {
 public:
  static constexpr const char* kClassName = "InputLayer";
  using LayerOf::LayerOf;
  Tensor call(const Tensor& input, const CallArgs&) override { return input; }
};

// One call of a layer in the description of a model.
struct FunctionalNode {
  LayerPtr layer;
  Nest inputs;  // described tensors and constants; empty for an InputLayer
  CallArgs args;
  NestOf<TensorSpec> outputs;
  int64_t order;  // grows with every call: nodes in this order are sorted by dependence
};
using FunctionalNodePtr = std::shared_ptr<const FunctionalNode>;
struct DescribedTensor {
  FunctionalNodePtr node;  // null when the tensor is a value
  size_t index = 0;        // among the flattened outputs
};
RUNNEL_API DescribedTensor described(const Tensor& t);
RUNNEL_API bool is_described(const Nest& tensors);

// A call on described tensors: the tensors that describe its outputs.
RUNNEL_API Nest record_call(Layer& layer, const Nest& inputs, const CallArgs& args);
// What a call would return, by tracing it.
RUNNEL_API NestOf<TensorSpec> infer_outputs(Layer& layer, const NestOf<TensorSpec>& inputs, const CallArgs& args);

// The calls that lead from inputs to outputs; what a functional model is.
class RUNNEL_API FunctionalGraph {
 public:
  // An Error where an output depends on an input that is not among `inputs`.
  FunctionalGraph(Nest inputs, Nest outputs);

  // Values are brought to the dtype of their input, and a last dimension of 1 is added or dropped where that fits.
  Nest run(const Nest& values, const CallArgs& args) const;
  // Values in the order of the inputs. Those of a map go by name: that of the InputLayer, or the key where the inputs
  // were given as a map; other entries are left out.
  std::vector<Tensor> in_order(const Nest& values) const;
  bool checks_input_shapes = true;

  const Nest& inputs() const { return inputs_; }
  const Nest& outputs() const { return outputs_; }
  const std::vector<FunctionalNodePtr>& nodes() const { return nodes_; }
  const std::vector<LayerPtr>& layers() const { return layers_; }  // in Keras's order: by depth

 private:
  // Where a value of a run comes from: a slot, or a constant.
  struct Source {
    int slot = -1;
    Tensor constant;
  };
  struct Step {
    FunctionalNodePtr node;
    std::vector<Source> sources;
    int first_slot;
  };
  void order_layers();
  Tensor conform(const Tensor& given, size_t i) const;
  Source source_of(const Tensor& t) const;

  Nest inputs_, outputs_;
  std::vector<Tensor> input_tensors_;
  std::vector<FunctionalNodePtr> nodes_;
  std::vector<LayerPtr> layers_;
  std::vector<Step> steps_;
  std::vector<Source> results_;
  std::vector<int> input_slots_;
  std::vector<std::pair<const FunctionalNode*, int>> first_slots_;
  int num_slots_ = 0;
};

}  // namespace runnel::keras
