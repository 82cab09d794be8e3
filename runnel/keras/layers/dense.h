#pragma once

#include "runnel/keras/layers/kernel_options.h"

namespace runnel::keras {

struct DenseOptions {
  NamedOnly named_only = {};
  int64_t units = 0;
  Activation activation = {};
  bool use_bias = true;
  RUNNEL_KERNEL_OPTIONS;
  int64_t input_dim = 0;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&DenseOptions::units, &DenseOptions::activation>;
  PartialShape default_input_shape() const { return input_dim > 0 ? PartialShape{input_dim} : PartialShape::unknown(); }
  static constexpr auto fields() {
    using O = DenseOptions;
    return joined_fields(field_list(field("units", &O::units, "the size of the output")), activation_fields<O>(),
                         kernel_fields<O>());
  }
  // What configurations do not have.
  static constexpr auto unwritten_fields() {
    return field_list(field("input_dim", &DenseOptions::input_dim, "as input_shape = {input_dim}; 0: not given"));
  }
};
// activation(x . kernel + bias) over the last dimension of x.
class RUNNEL_API Dense : public LayerOf<Dense, DenseOptions> {
 public:
  static constexpr const char* kClassName = "Dense";
  using LayerOf::LayerOf;
  void prepare() override;
  void build(const PartialShape& input) override;
  Tensor call(const Tensor& given, const CallArgs& args) override;

  Variable kernel;  // [inputs, units]
  Variable bias;    // [units]
};

}  // namespace runnel::keras
