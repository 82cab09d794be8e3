#pragma once

// Recurrent cells as plain loops over doubles, one sample at a time: what layers are compared with.
#include <cmath>
#include <functional>
#include <vector>

#include "tests/support/tensors.h"

namespace runnel::keras {

using Row = std::vector<double>;
// Changes the states of a sample by its next input and returns the output.
using ReferenceStep = std::function<Row(const Row& x, std::vector<Row>& states)>;

inline double reference_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// sum += x . w
inline void add_product(Row& sum, const Row& x, const Tensor& w) {
  const std::vector<double> values = test::values_of(w);
  for (size_t j = 0; j < sum.size(); ++j) {
    for (size_t i = 0; i < x.size(); ++i) sum[j] += x[i] * values[i * sum.size() + j];
  }
}

inline ReferenceStep reference_simple_rnn(const std::vector<Tensor>& w) {
  return [w](const Row& x, std::vector<Row>& states) {
    Row h = test::values_of(w[2]);
    add_product(h, x, w[0]);
    add_product(h, states[0], w[1]);
    for (double& v : h) v = std::tanh(v);
    states[0] = h;
    return h;
  };
}

inline ReferenceStep reference_lstm(const std::vector<Tensor>& w) {
  return [w](const Row& x, std::vector<Row>& states) {
    Row z = test::values_of(w[2]);
    add_product(z, x, w[0]);
    add_product(z, states[0], w[1]);
    const size_t u = z.size() / 4;
    for (size_t k = 0; k < u; ++k) {
      const double i = reference_sigmoid(z[k]), f = reference_sigmoid(z[u + k]);
      const double c = std::tanh(z[2 * u + k]), o = reference_sigmoid(z[3 * u + k]);
      states[1][k] = f * states[1][k] + i * c;
      states[0][k] = o * std::tanh(states[1][k]);
    }
    return states[0];
  };
}

inline ReferenceStep reference_gru(const std::vector<Tensor>& w, bool reset_after) {
  return [w, reset_after](const Row& x, std::vector<Row>& states) {
    const Row before = states[0];
    const size_t u = before.size();
    const Row bias = test::values_of(w[2]);
    Row in(bias.begin(), bias.begin() + static_cast<std::ptrdiff_t>(3 * u)), inner(3 * u, 0.0);
    if (reset_after) inner.assign(bias.begin() + static_cast<std::ptrdiff_t>(3 * u), bias.end());
    add_product(in, x, w[0]);
    add_product(inner, before, w[1]);
    Row z(u), r(u), reset(u);
    for (size_t k = 0; k < u; ++k) {
      z[k] = reference_sigmoid(in[k] + inner[k]);
      r[k] = reference_sigmoid(in[u + k] + inner[u + k]);
      reset[k] = r[k] * before[k];
    }
    Row of_reset(3 * u, 0.0);
    add_product(of_reset, reset, w[1]);
    for (size_t k = 0; k < u; ++k) {
      const double state_part = reset_after ? r[k] * inner[2 * u + k] : of_reset[2 * u + k];
      const double candidate = std::tanh(in[2 * u + k] + state_part);
      states[0][k] = z[k] * before[k] + (1 - z[k]) * candidate;
    }
    return states[0];
  };
}

struct ReferenceResult {
  std::vector<double> sequence;             // [batch, time, units]
  std::vector<double> last;                 // [batch, units]
  std::vector<std::vector<double>> states;  // each [batch, units]
};

// The step over x [batch, time, inputs]; states [batch, units] at the start; an undefined mask counts every step.
inline ReferenceResult run_reference(const ReferenceStep& step, const Tensor& x, const std::vector<Tensor>& start,
                                     const Tensor& mask = {}, bool backwards = false) {
  const auto batch = static_cast<size_t>(x.dim(0)), time = static_cast<size_t>(x.dim(1));
  const auto inputs = static_cast<size_t>(x.dim(2)), units = static_cast<size_t>(start[0].dim(1));
  const std::vector<double> values = test::values_of(x);
  ReferenceResult result;
  result.states.resize(start.size());
  for (size_t b = 0; b < batch; ++b) {
    std::vector<Row> states;
    for (const Tensor& s : start) {
      const std::vector<double> all = test::values_of(s);
      const auto at = all.begin() + static_cast<std::ptrdiff_t>(b * units);
      states.emplace_back(at, at + static_cast<std::ptrdiff_t>(units));
    }
    Row output(units, 0.0);
    for (size_t k = 0; k < time; ++k) {
      const size_t t = backwards ? time - 1 - k : k;
      const auto at = values.begin() + static_cast<std::ptrdiff_t>((b * time + t) * inputs);
      if (!mask.defined() || mask.host<bool>()[b * time + t]) {
        output = step(Row(at, at + static_cast<std::ptrdiff_t>(inputs)), states);
      }
      result.sequence.insert(result.sequence.end(), output.begin(), output.end());
    }
    result.last.insert(result.last.end(), output.begin(), output.end());
    for (size_t s = 0; s < states.size(); ++s) {
      result.states[s].insert(result.states[s].end(), states[s].begin(), states[s].end());
    }
  }
  return result;
}

// Builds the layer for inputs of this shape and gives it weights that are fixed random numbers.
inline void set_random_weights(Layer& layer, const PartialShape& input) {
  layer.build_from_shapes(input);
  std::vector<Tensor> values;
  uint32_t seed = 100;
  for (const Variable& w : layer.weights()) values.push_back(test::random_tensor(w.shape(), w.dtype(), ++seed));
  layer.set_weights(values);
}

// The derivatives of sum(f() ** 2) by the weights, against central differences.
inline void expect_weight_gradients(const Layer& layer, const std::function<Tensor()>& f, double tol = 1e-6) {
  const auto loss = [&] { return reduce_sum(square(f())); };
  const std::vector<Variable> weights = layer.trainable_weights();
  GradientTape tape;
  const std::vector<Gradient> gradients = tape.gradient(loss(), weights);
  for (size_t w = 0; w < weights.size(); ++w) {
    SCOPED_TRACE(weights[w].name());
    ASSERT_TRUE(gradients[w].defined());
    const std::vector<double> got = test::values_of(gradients[w].value());
    const std::vector<double> base = test::values_of(weights[w].value());
    const size_t stride = std::max<size_t>(1, base.size() / 7);
    for (size_t i = 0; i < base.size(); i += stride) {
      const auto at = [&](double d) {
        std::vector<double> moved = base;
        moved[i] += d;
        weights[w].assign(test::tensor_of(moved, weights[w].shape(), weights[w].dtype()));
        return loss().item<double>();
      };
      const double expected = (at(1e-5) - at(-1e-5)) / 2e-5;
      weights[w].assign(test::tensor_of(base, weights[w].shape(), weights[w].dtype()));
      ASSERT_NEAR(got[i], expected, tol * std::max(1.0, std::abs(expected))) << "element " << i;
    }
  }
}

}  // namespace runnel::keras
