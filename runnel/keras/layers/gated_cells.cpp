// The cells with weights: what they compute in a step.
#include "runnel/base/format.h"
#include "runnel/keras/layers/cell_steps.h"
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
void check_gated_cell_options(const char* cell, const Options& o) {
  check_cell_options(cell, o);
  if (o.implementation < 0 || o.implementation > 2) {
    throw invalid_argument("[{}] implementation must be 1 or 2, got {}", cell, o.implementation);
  }
}

template <class Options>
WeightOptions cell_kernel(const Options& o, const Shape& shape) {
  return {.name = "kernel",
          .shape = shape,
          .initializer = o.kernel_initializer,
          .regularizer = o.kernel_regularizer,
          .constraint = o.kernel_constraint};
}
template <class Options>
WeightOptions cell_recurrent_kernel(const Options& o, const Shape& shape) {
  return {.name = "recurrent_kernel",
          .shape = shape,
          .initializer = o.recurrent_initializer,
          .regularizer = o.recurrent_regularizer,
          .constraint = o.recurrent_constraint};
}
template <class Options>
WeightOptions cell_bias(const Options& o, const Shape& shape) {
  return {.name = "bias",
          .shape = shape,
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

// One draw for every gate, or one for all; none outside training.
std::vector<Tensor> gate_noise(size_t draws, const Tensor& batch_size, int64_t columns, double rate, DType dtype,
                               const CallArgs& args) {
  std::vector<Tensor> noise;
  for (size_t i = 0; i < draws; ++i) {
    const Tensor draw = cell_noise(batch_size, columns, rate, dtype, args);
    if (draw.defined()) noise.push_back(draw);
  }
  return noise;
}

// What the inputs of a cell with several gates become before the states come in.
class GateInputs {
 public:
  template <class Options>
  GateInputs(const Options& o, size_t gates, bool every_step, const Tensor& batch_size, const Tensor& kernel,
             Tensor bias, const CallArgs& args)
      : kernel_(kernel), bias_(std::move(bias)) {
    if (every_step) {
      rate_every_step_ = args.training.value_or(false) ? o.dropout : 0;
      return;
    }
    const size_t draws = effective_implementation(o) == 1 ? gates : 1;
    noise_ = gate_noise(draws, batch_size, kernel.partial_shape()[0], o.dropout, kernel.dtype(), args);
    if (noise_.size() < 2) return;
    kernels_ = split(kernel, static_cast<int64_t>(gates), -1);
    if (bias_.defined()) biases_ = split(bias_, static_cast<int64_t>(gates), -1);
  }

  Tensor operator()(const Tensor& x) const {
    if (rate_every_step_ > 0) return product_over_steps(nn::dropout(x, rate_every_step_), kernel_, bias_);
    if (noise_.size() < 2) return product_over_steps(noise_.empty() ? x : x * noise_[0], kernel_, bias_);
    std::vector<Tensor> parts;
    for (size_t i = 0; i < noise_.size(); ++i) {
      parts.push_back(product_over_steps(x * noise_[i], kernels_[i], biases_.empty() ? Tensor() : biases_[i]));
    }
    return concat(parts, -1);
  }

 private:
  Tensor kernel_, bias_;
  double rate_every_step_ = 0;
  std::vector<Tensor> noise_, kernels_, biases_;
};

// h . recurrent kernel (+ bias) for every gate, the states dropped for each gate apart.
class GateStates {
 public:
  GateStates(std::vector<Tensor> noise, const Tensor& kernel, Tensor bias, int64_t gates)
      : noise_(std::move(noise)), kernel_(kernel), bias_(std::move(bias)), gates_(gates) {
    if (noise_.empty()) return;
    kernels_ = split(kernel, gates, -1);
    if (bias_.defined()) biases_ = split(bias_, gates, -1);
  }

  std::vector<Tensor> operator()(const Tensor& h) const {
    if (noise_.empty()) return split(product_over_steps(h, kernel_, bias_), gates_, -1);
    std::vector<Tensor> parts;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      parts.push_back(
          product_over_steps(with_noise(h, noise_[i]), kernels_[i], biases_.empty() ? Tensor() : biases_[i]));
    }
    return parts;
  }

 private:
  std::vector<Tensor> noise_;
  Tensor kernel_, bias_;
  int64_t gates_;
  std::vector<Tensor> kernels_, biases_;
};

using Step = std::function<CellStep(const Tensor& projected, const States& states)>;

CellStep simple_step(const Tensor& sum, const Activation& activation) {
  const Tensor h = cell_activation(activation, sum);
  return {h, {h}};
}

// From the four sums of the gates.
CellStep lstm_step(const std::vector<Tensor>& z, const Tensor& c, const Activation& gate,
                   const Activation& activation) {
  const Tensor next = cell_activation(gate, z[1]) * c + cell_activation(gate, z[0]) * cell_activation(activation, z[2]);
  const Tensor h = cell_activation(gate, z[3]) * cell_activation(activation, next);
  return {h, {h, next}};
}
Step lstm_steps(const Tensor& recurrent, const Activation& gate, const Activation& activation) {
  return [=](const Tensor& x, const States& states) {
    return lstm_step(split(x + matmul(states[0], recurrent), 4, -1), states[1], gate, activation);
  };
}

CellStep gru_step(const Tensor& z, const Tensor& before, const Tensor& candidate) {
  const Tensor h = z * before + (1 - z) * candidate;
  return {h, {h}};
}
Step gru_steps(const GateStates& of_states, const Activation& gate, const Activation& activation) {
  return [=](const Tensor& x, const States& states) {
    const std::vector<Tensor> in = split(x, 3, -1);
    const std::vector<Tensor> inner = of_states(states[0]);
    const Tensor z = cell_activation(gate, in[0] + inner[0]);
    const Tensor r = cell_activation(gate, in[1] + inner[1]);
    return gru_step(z, states[0], cell_activation(activation, in[2] + r * inner[2]));
  };
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
            return simple_step(x + matmul(with_noise(states[0], state_noise), recurrent), activation);
          }};
}

void LSTMCell::prepare() { check_gated_cell_options(kClassName, options_); }

Config LSTMCell::get_config() const {
  Config config = CellOf::get_config();
  config.set("implementation", effective_implementation(options_));
  return config;
}

void LSTMCell::build(const PartialShape& input) {
  track_empty("state_size");
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
  const Tensor recurrent = compute_value(recurrent_kernel);
  const GateInputs project(options_, 4, drops_every_step, batch_size, compute_value(kernel),
                           options_.use_bias ? compute_value(bias) : Tensor(), args);
  const std::vector<Tensor> noise =
      gate_noise(4, batch_size, options_.units, options_.recurrent_dropout, compute_dtype(), args);
  const Activation gate = options_.recurrent_activation, activation = options_.activation;
  if (noise.empty()) return {project, lstm_steps(recurrent, gate, activation)};
  const GateStates of_states(noise, recurrent, {}, 4);
  return {project, [=](const Tensor& x, const States& states) {
            std::vector<Tensor> z = split(x, 4, -1);
            const std::vector<Tensor> inner = of_states(states[0]);
            for (size_t i = 0; i < z.size(); ++i) z[i] = z[i] + inner[i];
            return lstm_step(z, states[1], gate, activation);
          }};
}

void GRUCell::prepare() { check_gated_cell_options(kClassName, options_); }

Config GRUCell::get_config() const {
  Config config = CellOf::get_config();
  config.set("implementation", effective_implementation(options_));
  return config;
}

void GRUCell::build(const PartialShape& input) {
  const int64_t units = options_.units;
  kernel = add_weight(cell_kernel(options_, {known_dim(input, -1), 3 * units}));
  recurrent_kernel = add_weight(cell_recurrent_kernel(options_, {units, 3 * units}));
  if (!options_.use_bias) return;
  bias = add_weight(cell_bias(options_, options_.reset_after ? Shape{2, 3 * units} : Shape{3 * units}));
}

CellSequence GRUCell::begin(const Tensor& batch_size, const CallArgs& args) {
  const Tensor recurrent = compute_value(recurrent_kernel);
  Tensor input_bias, state_bias;
  if (options_.use_bias) {
    const Tensor both = compute_value(bias);
    input_bias = options_.reset_after ? both[0] : both;
    if (options_.reset_after) state_bias = both[1];
  }
  const GateInputs project(options_, 3, drops_every_step, batch_size, compute_value(kernel), input_bias, args);
  const std::vector<Tensor> noise =
      gate_noise(3, batch_size, options_.units, options_.recurrent_dropout, compute_dtype(), args);
  const Activation gate = options_.recurrent_activation, activation = options_.activation;
  if (options_.reset_after) {
    return {project, gru_steps(GateStates(noise, recurrent, state_bias, 3), gate, activation)};
  }
  const int64_t units = options_.units;
  const Tensor of_candidate = recurrent(all, slice(2 * units, none));
  const std::vector<Tensor> noise_of_gates(noise.begin(), noise.end() - (noise.empty() ? 0 : 1));
  const GateStates of_gates(noise_of_gates, recurrent(all, slice(0, 2 * units)), {}, 2);
  const Tensor noise_of_candidate = noise.empty() ? Tensor() : noise[2];
  return {project, [=](const Tensor& x, const States& states) {
            const std::vector<Tensor> in = split(x, 3, -1);
            const std::vector<Tensor> inner = of_gates(states[0]);
            const Tensor z = cell_activation(gate, in[0] + inner[0]);
            const Tensor r = cell_activation(gate, in[1] + inner[1]);
            const Tensor h = with_noise(states[0], noise_of_candidate);
            return gru_step(z, states[0], cell_activation(activation, in[2] + matmul(r * h, of_candidate)));
          }};
}

CellSequence plain_sequence(CellKind cell, const Tensor& kernel, const Tensor& recurrent, const Tensor& bias) {
  const Activation gate = "sigmoid", activation = "tanh";
  const auto project = [=](const Tensor& b) {
    return [=](const Tensor& x) { return product_over_steps(x, kernel, b); };
  };
  switch (cell) {
    case CellKind::lstm: return {project(bias), lstm_steps(recurrent, gate, activation)};
    case CellKind::gru: return {project(bias[0]), gru_steps(GateStates({}, recurrent, bias[1], 3), gate, activation)};
    case CellKind::simple: break;
  }
  return {project(bias), [=](const Tensor& x, const States& states) {
            return simple_step(x + matmul(states[0], recurrent), activation);
          }};
}

}  // namespace runnel::keras
