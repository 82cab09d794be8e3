#pragma once

#include "runnel/keras/named_callable.h"
#include "runnel/tensor/tensor.h"

namespace runnel::keras {

struct Activations;
// Applied to the output of a layer: "relu", activations::leaky_relu(0.1), nn::relu, or any function Tensor -> Tensor.
using Activation = NamedCallable<Activations, Tensor(const Tensor&)>;

struct RUNNEL_API Activations {
  static constexpr const char* kWhat = "activation";
  static constexpr const char* kTypeName = "Activation";
  static constexpr const char* kNone = "linear";
  // linear relu relu6 elu selu gelu leaky_relu swish silu softplus softsign softmax log_softmax sigmoid hard_sigmoid
  // tanh exponential mish
  static Activation find(const Config& description, SourceSite where = SourceSite::current());
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
  static constexpr const char* kTypeName = "Regularizer";
  static Regularizer find(const Config& description, SourceSite where = SourceSite::current());
  static void list(std::vector<ClassSettings>& all);
};

namespace regularizers {

struct L1Options {
  double l1 = 0.01;
  static constexpr auto fields() { return field_list(field("l1", &L1Options::l1, "times the sum of absolute values")); }
};
RUNNEL_API Regularizer l1(const L1Options& options);
inline Regularizer l1(double l1 = 0.01) { return regularizers::l1(L1Options{.l1 = l1}); }

struct L2Options {
  double l2 = 0.01;
  static constexpr auto fields() { return field_list(field("l2", &L2Options::l2, "times the sum of squares")); }
};
RUNNEL_API Regularizer l2(const L2Options& options);
inline Regularizer l2(double l2 = 0.01) { return regularizers::l2(L2Options{.l2 = l2}); }

struct L1L2Options {
  double l1 = 0.01;
  double l2 = 0.01;
  static constexpr auto fields() {
    return field_list(field("l1", &L1L2Options::l1, "times the sum of absolute values"),
                      field("l2", &L1L2Options::l2, "times the sum of squares"));
  }
};
RUNNEL_API Regularizer l1_l2(const L1L2Options& options);
inline Regularizer l1_l2(double l1 = 0.01, double l2 = 0.01) { return l1_l2(L1L2Options{.l1 = l1, .l2 = l2}); }

}  // namespace regularizers

struct Constraints;
// What a weight becomes after an update: "non_neg", constraints::max_norm(2), or any function Tensor -> Tensor.
using Constraint = NamedCallable<Constraints, Tensor(const Tensor&)>;

struct RUNNEL_API Constraints {
  static constexpr const char* kWhat = "constraint";
  static constexpr const char* kTypeName = "Constraint";
  static Constraint find(const Config& description, SourceSite where = SourceSite::current());
  static void list(std::vector<ClassSettings>& all);
};

namespace constraints {

// The last setting of all constraints of norms.
template <class O>
constexpr auto axis_fields() {
  return field_list(field("axis", &O::axis,
                          "norms are those of the vectors along it: 0 for the weights of each unit of Dense, {0, 1, 2} "
                          "for each filter of a convolution over two dimensions"));
}

struct MaxNormOptions {
  double max_value = 2;
  AxisTuple axis = {0};
  static constexpr auto fields() {
    return joined_fields(field_list(field("max_value", &MaxNormOptions::max_value, "the largest norm")),
                         axis_fields<MaxNormOptions>());
  }
};
RUNNEL_API Constraint max_norm(const MaxNormOptions& options);
inline Constraint max_norm(double max_value = 2, const AxisTuple& axis = {0}) {
  return max_norm(MaxNormOptions{.max_value = max_value, .axis = axis});
}

struct MinMaxNormOptions {
  double min_value = 0;
  double max_value = 1;
  double rate = 1;
  AxisTuple axis = {0};
  static constexpr auto fields() {
    using O = MinMaxNormOptions;
    return joined_fields(field_list(field("min_value", &O::min_value, "the smallest norm"),
                                    field("max_value", &O::max_value, "the largest norm"),
                                    field("rate", &O::rate, "below 1: norms go that part of the way into the range")),
                         axis_fields<O>());
  }
};
RUNNEL_API Constraint min_max_norm(const MinMaxNormOptions& options);
inline Constraint min_max_norm(double min_value = 0, double max_value = 1, double rate = 1,
                               const AxisTuple& axis = {0}) {
  return min_max_norm(MinMaxNormOptions{.min_value = min_value, .max_value = max_value, .rate = rate, .axis = axis});
}

RUNNEL_API Constraint non_neg();

struct UnitNormOptions {
  AxisTuple axis = {0};
  static constexpr auto fields() { return axis_fields<UnitNormOptions>(); }
};
RUNNEL_API Constraint unit_norm(const UnitNormOptions& options);
inline Constraint unit_norm(const AxisTuple& axis = {0}) { return unit_norm(UnitNormOptions{.axis = axis}); }
inline Constraint unit_norm(int64_t axis) { return unit_norm(UnitNormOptions{.axis = axis}); }  // {0} means this

}  // namespace constraints

}  // namespace runnel::keras
