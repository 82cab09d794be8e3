#pragma once

#include "runnel/keras/named_callable.h"
#include "runnel/tensor/tensor.h"

namespace runnel::keras {

struct Initializers;
// Makes the first value of a weight from its shape and dtype: "zeros", "glorot_uniform", initializers::constant(2), or
// any function (const Shape&, DType) -> Tensor. Called directly: initializer({2, 3}), initializer({2, 3}, float64).
using Initializer = NamedCallable<Initializers, Tensor(const Shape&, DType)>;

struct RUNNEL_API Initializers {
  static constexpr const char* kWhat = "initializer";
  static constexpr DType kDefaultDType = DType::float32;
  static Initializer find(const Config& description);  // an Error that lists the names there are
};

namespace initializers {

RUNNEL_API Initializer zeros();
RUNNEL_API Initializer ones();
RUNNEL_API Initializer constant(double value = 0);
RUNNEL_API Initializer identity(double gain = 1);  // of matrices

// A seed gives the initializer the same numbers every time; without one they follow the global seed.
struct RandomUniformOptions {
  double minval = -0.05;
  double maxval = 0.05;
  int64_t seed = 0;
  static constexpr auto fields() {
    return field_list(field("minval", &RandomUniformOptions::minval, "the smallest value"),
                      field("maxval", &RandomUniformOptions::maxval, "the largest value"),
                      field("seed", &RandomUniformOptions::seed, "0: the numbers follow the global seed"));
  }
};
RUNNEL_API Initializer random_uniform(const RandomUniformOptions& options = {});

struct RandomNormalOptions {
  double mean = 0;
  double stddev = 0.05;
  int64_t seed = 0;
  static constexpr auto fields() {
    return field_list(field("mean", &RandomNormalOptions::mean, "the mean"),
                      field("stddev", &RandomNormalOptions::stddev, "the standard deviation"),
                      field("seed", &RandomNormalOptions::seed, "0: the numbers follow the global seed"));
  }
};
RUNNEL_API Initializer random_normal(const RandomNormalOptions& options = {});
RUNNEL_API Initializer truncated_normal(const RandomNormalOptions& options = {});

// Scaled by the number of inputs and outputs of a unit. Glorot: both, He and Lecun: the inputs.
struct VarianceScalingOptions {
  double scale = 1;
  std::string mode = "fan_in";  // or "fan_out", "fan_avg"
  std::string distribution = "truncated_normal";
  int64_t seed = 0;
  static constexpr auto fields() {
    return field_list(
        field("scale", &VarianceScalingOptions::scale, "of the variance"),
        field("mode", &VarianceScalingOptions::mode, "\"fan_in\", \"fan_out\" or \"fan_avg\""),
        field("distribution", &VarianceScalingOptions::distribution, "or \"untruncated_normal\", \"uniform\""),
        field("seed", &VarianceScalingOptions::seed, "0: the numbers follow the global seed"));
  }
};
RUNNEL_API Initializer variance_scaling(const VarianceScalingOptions& options = {});
RUNNEL_API Initializer glorot_uniform(int64_t seed = 0);
RUNNEL_API Initializer glorot_normal(int64_t seed = 0);
RUNNEL_API Initializer he_uniform(int64_t seed = 0);
RUNNEL_API Initializer he_normal(int64_t seed = 0);
RUNNEL_API Initializer lecun_uniform(int64_t seed = 0);
RUNNEL_API Initializer lecun_normal(int64_t seed = 0);
RUNNEL_API Initializer orthogonal(double gain = 1, int64_t seed = 0);

}  // namespace initializers
}  // namespace runnel::keras
