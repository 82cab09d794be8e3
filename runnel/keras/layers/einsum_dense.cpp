#include "runnel/keras/layers/einsum_dense.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/ops/einsum.h"
#include "runnel/ops/operators.h"

namespace runnel::keras {

void EinsumDense::prepare() {
  const std::string& equation = options_.equation;
  const size_t comma = equation.find(','), arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow ||
      equation.find('.') != std::string::npos) {
    throw invalid_argument("[EinsumDense] the equation must be like \"abc,cd->abd\", got \"{}\"", equation);
  }
  of_input_ = equation.substr(0, comma);
  of_kernel_ = equation.substr(comma + 1, arrow - comma - 1);
  of_output_ = equation.substr(arrow + 2);
  const PartialShape& shape = options_.output_shape;
  if (!shape.has_rank() || shape.rank() + 1 != static_cast<int>(of_output_.size())) {
    throw invalid_argument("[EinsumDense] output_shape {} must have a size for every label of \"{}\" but the first",
                           shape.str(), of_output_);
  }
  for (const char label : options_.bias_axes) {
    if (of_output_.find(label) == std::string::npos) {
      throw invalid_argument("[EinsumDense] bias_axes has '{}', the output \"{}\" has not", label, of_output_);
    }
  }
  set_input_spec({.ndim = static_cast<int>(of_input_.size())});
  set_activity_regularizer(options_.activity_regularizer);
}

void EinsumDense::build(const PartialShape& input) {
  const auto size_of = [&](char label) {
    if (const size_t at = of_input_.find(label); at != std::string::npos) return known_dim(input, static_cast<int>(at));
    const size_t at = of_output_.find(label);
    if (at == std::string::npos || at == 0 || options_.output_shape[static_cast<int>(at) - 1] == kUnknownDim) {
      throw invalid_argument(
          "[EinsumDense] layer '{}': neither input nor output_shape gives the size of '{}' in \"{}\"", name(), label,
          options_.equation);
    }
    return options_.output_shape[static_cast<int>(at) - 1];
  };
  track_empty("partial_output_shape");
  track_empty("full_output_shape");
  Dims kernel_dims;
  for (const char label : of_kernel_) kernel_dims.push_back(size_of(label));
  kernel = add_weight({.name = "kernel",
                       .shape = Shape(kernel_dims),
                       .initializer = options_.kernel_initializer,
                       .regularizer = options_.kernel_regularizer,
                       .constraint = options_.kernel_constraint});
  const size_t first = of_output_.find_first_of(options_.bias_axes);
  if (first == std::string::npos) return;
  Dims bias_dims;
  for (const char label : of_output_.substr(first)) {
    bias_dims.push_back(options_.bias_axes.find(label) == std::string::npos ? 1 : size_of(label));
  }
  bias = add_weight({.name = "bias",
                     .shape = Shape(bias_dims),
                     .initializer = options_.bias_initializer,
                     .regularizer = options_.bias_regularizer,
                     .constraint = options_.bias_constraint});
}

Tensor EinsumDense::call(const Tensor& input, const CallArgs&) {
  Tensor out = einsum(options_.equation, input, compute_value(kernel));
  if (bias.defined()) out = out + compute_value(bias);
  return options_.activation ? options_.activation(out) : out;
}

}  // namespace runnel::keras
