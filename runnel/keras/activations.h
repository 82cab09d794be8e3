#pragma once

#include "runnel/keras/named_callable.h"
#include "runnel/tensor/tensor.h"

namespace runnel::keras {

struct Activations;
// Applied to the output of a layer: "relu", activations::leaky_relu(0.1), nn::relu, or any function Tensor -> Tensor.
using Activation = NamedCallable<Activations, Tensor(const Tensor&)>;

struct RUNNEL_API Activations {
  static constexpr const char* kWhat = "activation";
  static constexpr const char* kNone = "linear";
  // linear relu relu6 elu selu gelu leaky_relu swish silu softplus softsign softmax log_softmax sigmoid hard_sigmoid
  // tanh exponential mish
  static Activation find(const Config& description);
};

namespace activations {
RUNNEL_API Activation leaky_relu(double alpha = 0.2);  // x where it is positive, else alpha * x
RUNNEL_API Activation elu(double alpha = 1);           // x where it is positive, else alpha * (exp(x) - 1)
}  // namespace activations

struct Regularizers;
// What a weight adds to the loss: "l2", regularizers::l1_l2(0.01, 0.01), or any function Tensor -> scalar.
using Regularizer = NamedCallable<Regularizers, Tensor(const Tensor&)>;

struct RUNNEL_API Regularizers {
  static constexpr const char* kWhat = "regularizer";
  static Regularizer find(const Config& description);
};

namespace regularizers {
RUNNEL_API Regularizer l1(double l1 = 0.01);  // l1 * sum(abs(w))
RUNNEL_API Regularizer l2(double l2 = 0.01);  // l2 * sum(w ** 2)
RUNNEL_API Regularizer l1_l2(double l1 = 0.01, double l2 = 0.01);
}  // namespace regularizers

struct Constraints;
// What a weight becomes after an update: "non_neg", constraints::max_norm(2), or any function Tensor -> Tensor.
using Constraint = NamedCallable<Constraints, Tensor(const Tensor&)>;

struct RUNNEL_API Constraints {
  static constexpr const char* kWhat = "constraint";
  static Constraint find(const Config& description);
};

// Norms are those of the vectors along `axis`: 0 for the weights of each unit of Dense, {0, 1, 2} for each filter of a
// convolution over two dimensions.
namespace constraints {
RUNNEL_API Constraint max_norm(double max_value = 2, const std::vector<int64_t>& axis = {0});
// rate 1: norms are brought into the range; below 1: that part of the way.
RUNNEL_API Constraint min_max_norm(double min_value = 0, double max_value = 1, double rate = 1,
                                   const std::vector<int64_t>& axis = {0});
RUNNEL_API Constraint non_neg();
RUNNEL_API Constraint unit_norm(const std::vector<int64_t>& axis = {0});
inline Constraint max_norm(double max_value, int64_t axis) { return max_norm(max_value, std::vector<int64_t>{axis}); }
inline Constraint min_max_norm(double min_value, double max_value, double rate, int64_t axis) {
  return min_max_norm(min_value, max_value, rate, std::vector<int64_t>{axis});
}
inline Constraint unit_norm(int64_t axis) { return unit_norm(std::vector<int64_t>{axis}); }
}  // namespace constraints

}  // namespace runnel::keras
