// The cells with weights: what they compute in a step.
#include "runnel/base/format.h"
#include "runnel/keras/layers/cells.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"

namespace runnel::keras {
namespace {

template <class Options>
void check_cell_options(const char* cell, const Options& o) {
  if (o.units <= 0) throw invalid_argument("[{}] units must be positive, got {}", cell, o.units);
  for (const double rate : {o.dropout, o.recurrent_dropout}) {
    if (rate < 0 || rate > 1) throw invalid_argument("[{}] dropout must be between 0 and 1, got {}", cell, rate);
  }
}

template <class Options>
WeightOptions cell_kernel(const Options& o, Shape shape) {
  return {.name = "kernel",
          .shape = std::move(shape),
          .initializer = o.kernel_initializer,
          .regularizer = o.kernel_regularizer,
          .constraint = o.kernel_constraint};
}
template <class Options>
WeightOptions cell_recurrent_kernel(const Options& o, Shape shape) {
  return {.name = "recurrent_kernel",
          .shape = std::move(shape),
          .initializer = o.recurrent_initializer,
          .regularizer = o.recurrent_regularizer,
          .constraint = o.recurrent_constraint};
}
template <class Options>
WeightOptions cell_bias(const Options& o, Shape shape) {
  return {.name = "bias",
          .shape = std::move(shape),
          .initializer = o.bias_initializer,
          .regularizer = o.bias_regularizer,
          .constraint = o.bias_constraint};
}

Tensor cell_activation(const Activation& f, const Tensor& x) { return f ? f(x) : x; }

// What dropout multiplies with: the same for every step of a sequence. Nothing outside training.
Tensor cell_noise(const Tensor& batch_size, int64_t columns, double rate, DType dtype, const CallArgs& args) {
  if (rate <= 0 || !args.training.value_or(false)) return {};
  return nn::dropout(ones(stack({batch_size, int_scalar(columns)}), dtype), rate);
}
Tensor with_noise(const Tensor& x, const Tensor& noise) { return noise.defined() ? x * noise : x; }

// x . weight + bias over the last dimension, in one product however many steps there are.
Tensor product_over_steps(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const PartialShape from = x.partial_shape();
  const auto product = [&](const Tensor& rows) {
    const Tensor y = matmul(rows, weight);
    return bias.defined() ? nn::bias_add(y, bias) : y;
  };
  if (from.rank() == 2) return product(x);
  const int64_t outputs = weight.partial_shape()[1];
  const Tensor y = product(reshape(x, {-1, weight.partial_shape()[0]}));
  if (from[0] != kUnknownDim) return reshape(y, {from[0], -1, outputs});
  if (from[1] != kUnknownDim) return reshape(y, {-1, from[1], outputs});
  return reshape(y, concat({shape(x)(slice(0, 2)), int_vector({outputs})}, 0));
}

}  // namespace

void SimpleRNNCell::prepare() { check_cell_options(kClassName, options_); }

void SimpleRNNCell::build(const PartialShape& input) {
  const int64_t units = options_.units;
  kernel = add_weight(cell_kernel(options_, {known_dim(input, -1), units}));
  recurrent_kernel = add_weight(cell_recurrent_kernel(options_, {units, units}));
  if (options_.use_bias) bias = add_weight(cell_bias(options_, {units}));
}

CellSequence SimpleRNNCell::begin(const Tensor& batch_size, const CallArgs& args) {
  const Tensor input_noise = cell_noise(batch_size, kernel.shape()[0], options_.dropout, compute_dtype(), args);
  const Tensor state_noise = cell_noise(batch_size, options_.units, options_.recurrent_dropout, compute_dtype(), args);
  const Tensor inward = compute_value(kernel), recurrent = compute_value(recurrent_kernel);
  const Tensor shift = options_.use_bias ? compute_value(bias) : Tensor();
  return {[=](const Tensor& x) { return product_over_steps(with_noise(x, input_noise), inward, shift); },
          [=, activation = options_.activation](const Tensor& x, const States& states) {
            const Tensor h = cell_activation(activation, x + matmul(with_noise(states[0], state_noise), recurrent));
            return CellStep{h, {h}};
          }};
}

void LSTMCell::prepare() { check_cell_options(kClassName, options_); }

void LSTMCell::build(const PartialShape& input) {
  const int64_t units = options_.units;
  kernel = add_weight(cell_kernel(options_, {known_dim(input, -1), 4 * units}));
  recurrent_kernel = add_weight(cell_recurrent_kernel(options_, {units, 4 * units}));
  if (!options_.use_bias) return;
  WeightOptions of_bias = cell_bias(options_, {4 * units});
  if (options_.unit_forget_bias) {
    of_bias.initializer = [units, other = options_.bias_initializer](const Shape&, DType dtype) {
      return concat({other(Shape{units}, dtype), ones({units}, dtype), other(Shape{2 * units}, dtype)}, 0);
    };
  }
  bias = add_weight(of_bias);
}

CellSequence LSTMCell::begin(const Tensor& batch_size, const CallArgs& args) {
  const Tensor input_noise = cell_noise(batch_size, kernel.shape()[0], options_.dropout, compute_dtype(), args);
  const Tensor state_noise = cell_noise(batch_size, options_.units, options_.recurrent_dropout, compute_dtype(), args);
  const Tensor inward = compute_value(kernel), recurrent = compute_value(recurrent_kernel);
  const Tensor shift = options_.use_bias ? compute_value(bias) : Tensor();
  return {[=](const Tensor& x) { return product_over_steps(with_noise(x, input_noise), inward, shift); },
          [=, gate = options_.recurrent_activation, activation = options_.activation](const Tensor& x,
                                                                                     const States& states) {
            const Tensor z = x + matmul(with_noise(states[0], state_noise), recurrent);
            const std::vector<Tensor> parts = split(z, 4, -1);
            const Tensor c = cell_activation(gate, parts[1]) * states[1] +
                             cell_activation(gate, parts[0]) * cell_activation(activation, parts[2]);
            const Tensor h = cell_activation(gate, parts[3]) * cell_activation(activation, c);
            return CellStep{h, {h, c}};
          }};
}

void GRUCell::prepare() { check_cell_options(kClassName, options_); }

void GRUCell::build(const PartialShape& input) {
  const int64_t units = options_.units;
  kernel = add_weight(cell_kernel(options_, {known_dim(input, -1), 3 * units}));
  recurrent_kernel = add_weight(cell_recurrent_kernel(options_, {units, 3 * units}));
  if (!options_.use_bias) return;
  bias = add_weight(cell_bias(options_, options_.reset_after ? Shape{2, 3 * units} : Shape{3 * units}));
}

CellSequence GRUCell::begin(const Tensor& batch_size, const CallArgs& args) {
  const Tensor input_noise = cell_noise(batch_size, kernel.shape()[0], options_.dropout, compute_dtype(), args);
  const Tensor state_noise = cell_noise(batch_size, options_.units, options_.recurrent_dropout, compute_dtype(), args);
  const Tensor inward = compute_value(kernel), recurrent = compute_value(recurrent_kernel);
  Tensor input_bias, state_bias;
  if (options_.use_bias) {
    const Tensor both = compute_value(bias);
    input_bias = options_.reset_after ? both[0] : both;
    if (options_.reset_after) state_bias = both[1];
  }
  const Activation gate = options_.recurrent_activation, activation = options_.activation;
  const auto project = [=](const Tensor& x) {
    return product_over_steps(with_noise(x, input_noise), inward, input_bias);
  };
  const auto mixed = [](const Tensor& z, const Tensor& before, const Tensor& candidate) {
    const Tensor h = z * before + (1 - z) * candidate;
    return CellStep{h, {h}};
  };
  if (options_.reset_after) {
    return {project, [=](const Tensor& x, const States& states) {
              const std::vector<Tensor> in = split(x, 3, -1);
              const std::vector<Tensor> inner =
                  split(product_over_steps(with_noise(states[0], state_noise), recurrent, state_bias), 3, -1);
              const Tensor z = cell_activation(gate, in[0] + inner[0]);
              const Tensor r = cell_activation(gate, in[1] + inner[1]);
              return mixed(z, states[0], cell_activation(activation, in[2] + r * inner[2]));
            }};
  }
  const int64_t units = options_.units;
  const Tensor of_gates = recurrent(all, slice(0, 2 * units)), of_candidate = recurrent(all, slice(2 * units, none));
  return {project, [=](const Tensor& x, const States& states) {
            const std::vector<Tensor> in = split(x, 3, -1);
            const Tensor h = with_noise(states[0], state_noise);
            const std::vector<Tensor> inner = split(matmul(h, of_gates), 2, -1);
            const Tensor z = cell_activation(gate, in[0] + inner[0]);
            const Tensor r = cell_activation(gate, in[1] + inner[1]);
            return mixed(z, states[0], cell_activation(activation, in[2] + matmul(r * h, of_candidate)));
          }};
}

}  // namespace runnel::keras
