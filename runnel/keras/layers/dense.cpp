#include "runnel/keras/layers/dense.h"

#include "runnel/base/format.h"
#include "runnel/ops/contraction.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"

namespace runnel::keras {

void Dense::prepare() {
  if (options_.units <= 0) throw invalid_argument("[Dense] units must be positive, got {}", options_.units);
  set_input_spec({.min_ndim = 2});
  set_supports_masking(true);
  set_activity_regularizer(options_.activity_regularizer);
}

void Dense::build(const PartialShape& input) {
  const int64_t inputs = known_dim(input, -1);
  kernel = add_weight({.name = "kernel",
                       .shape = {inputs, options_.units},
                       .initializer = options_.kernel_initializer,
                       .regularizer = options_.kernel_regularizer,
                       .constraint = options_.kernel_constraint});
  if (options_.use_bias) {
    bias = add_weight({.name = "bias",
                       .shape = {options_.units},
                       .initializer = options_.bias_initializer,
                       .regularizer = options_.bias_regularizer,
                       .constraint = options_.bias_constraint});
  }
  set_input_spec({.min_ndim = 2, .axes = {{-1, inputs}}});
}

Tensor Dense::call(const Tensor& given, const CallArgs&) {
  if (is_complex(given.dtype()) && !is_complex(compute_dtype())) {
    throw invalid_argument(
        "[Dense] the input of layer '{}' is {}, which {} would lose the imaginary part of: give it real(x) and "
        "imag(x), "
        "or abs(x)",
        name(), dtype_name(given.dtype()), dtype_name(compute_dtype()));
  }
  const Tensor input = given.dtype() == compute_dtype() ? given : cast(given, compute_dtype());
  const Tensor weight = compute_value(kernel);
  Tensor out = input.partial_shape().rank() == 2 ? matmul(input, weight) : tensordot(input, weight, 1);
  if (options_.use_bias) out = nn::bias_add(out, compute_value(bias));
  return options_.activation ? options_.activation(out) : out;
}

}  // namespace runnel::keras
