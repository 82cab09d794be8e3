#pragma once

#include <optional>
#include <string>

#include "runnel/keras/named_callable.h"
#include "runnel/tensor/tensor.h"

namespace runnel::keras {

struct Initializers;
// Makes the first value of a weight from its shape and dtype: "zeros", "glorot_uniform", initializers::constant(2), or
// any function (const Shape&, DType) -> Tensor. Called directly: initializer({2, 3}), initializer({2, 3}, float64).
using Initializer = NamedCallable<Initializers, Tensor(const Shape&, DType)>;

struct RUNNEL_API Initializers {
  static constexpr const char* kWhat = "initializer";
  static constexpr const char* kTypeName = "Initializer";
  static constexpr DType kDefaultDType = DType::float32;
  static Initializer find(const Config& description,
                          SourceSite where = SourceSite::current());  // an Error that lists the names there are
  static void list(std::vector<ClassSettings>& all);                  // adds what there is with its settings
};

namespace initializers {

RUNNEL_API Initializer zeros();
RUNNEL_API Initializer ones();

struct ConstantOptions {
  double value = 0;
  static constexpr auto fields() {
    return field_list(field("value", &ConstantOptions::value, "that of every element"));
  }
};
RUNNEL_API Initializer constant(const ConstantOptions& options);
inline Initializer constant(double value = 0) { return constant(ConstantOptions{.value = value}); }

struct IdentityOptions {
  double gain = 1;
  static constexpr auto fields() {
    return field_list(field("gain", &IdentityOptions::gain, "the value on the diagonal"));
  }
};
RUNNEL_API Initializer identity(const IdentityOptions& options);  // of matrices
inline Initializer identity(double gain = 1) { return identity(IdentityOptions{.gain = gain}); }

// The last setting of all initializers that draw numbers.
template <class O>
constexpr auto seed_fields() {
  return field_list(field("seed", &O::seed,
                          "gives the same numbers every time; without one they follow the global "
                          "seed"));
}

struct RandomUniformOptions {
  double minval = -0.05;
  double maxval = 0.05;
  std::optional<int64_t> seed = {};
  static constexpr auto fields() {
    using O = RandomUniformOptions;
    return joined_fields(
        field_list(field("minval", &O::minval, "the smallest value"), field("maxval", &O::maxval, "the largest value")),
        seed_fields<O>());
  }
};
RUNNEL_API Initializer random_uniform(const RandomUniformOptions& options = {});

struct RandomNormalOptions {
  double mean = 0;
  double stddev = 0.05;
  std::optional<int64_t> seed = {};
  static constexpr auto fields() {
    using O = RandomNormalOptions;
    return joined_fields(
        field_list(field("mean", &O::mean, "the mean"), field("stddev", &O::stddev, "the standard deviation")),
        seed_fields<O>());
  }
};
RUNNEL_API Initializer random_normal(const RandomNormalOptions& options = {});
RUNNEL_API Initializer truncated_normal(const RandomNormalOptions& options = {});

struct VarianceScalingOptions {
  double scale = 1;
  std::string mode = "fan_in";
  std::string distribution = "truncated_normal";
  std::optional<int64_t> seed = {};
  static constexpr auto fields() {
    using O = VarianceScalingOptions;
    return joined_fields(
        field_list(field("scale", &O::scale, "of the variance"),
                   field("mode", &O::mode,
                         "what the variance is divided by: the number of inputs of a unit (\"fan_in\"), of its outputs "
                         "(\"fan_out\"), or their mean (\"fan_avg\")"),
                   field("distribution", &O::distribution, "or \"untruncated_normal\", \"uniform\"")),
        seed_fields<O>());
  }
};
RUNNEL_API Initializer variance_scaling(const VarianceScalingOptions& options = {});

// Kinds of it with names of their own. Glorot: by inputs and outputs, scale 1; He and Lecun: by the inputs, scale 2
// and 1.
struct SeedOptions {
  std::optional<int64_t> seed = {};
  static constexpr auto fields() { return seed_fields<SeedOptions>(); }
};
RUNNEL_API Initializer glorot_uniform(const SeedOptions& options);
RUNNEL_API Initializer glorot_normal(const SeedOptions& options);
RUNNEL_API Initializer he_uniform(const SeedOptions& options);
RUNNEL_API Initializer he_normal(const SeedOptions& options);
RUNNEL_API Initializer lecun_uniform(const SeedOptions& options);
RUNNEL_API Initializer lecun_normal(const SeedOptions& options);
inline Initializer glorot_uniform(std::optional<int64_t> seed = {}) { return glorot_uniform(SeedOptions{seed}); }
inline Initializer glorot_normal(std::optional<int64_t> seed = {}) { return glorot_normal(SeedOptions{seed}); }
inline Initializer he_uniform(std::optional<int64_t> seed = {}) { return he_uniform(SeedOptions{seed}); }
inline Initializer he_normal(std::optional<int64_t> seed = {}) { return he_normal(SeedOptions{seed}); }
inline Initializer lecun_uniform(std::optional<int64_t> seed = {}) { return lecun_uniform(SeedOptions{seed}); }
inline Initializer lecun_normal(std::optional<int64_t> seed = {}) { return lecun_normal(SeedOptions{seed}); }

struct OrthogonalOptions {
  double gain = 1;
  std::optional<int64_t> seed = {};
  static constexpr auto fields() {
    return joined_fields(field_list(field("gain", &OrthogonalOptions::gain, "what the matrix is multiplied by")),
                         seed_fields<OrthogonalOptions>());
  }
};
RUNNEL_API Initializer orthogonal(const OrthogonalOptions& options);
inline Initializer orthogonal(double gain = 1, std::optional<int64_t> seed = {}) {
  return orthogonal(OrthogonalOptions{.gain = gain, .seed = seed});
}

}  // namespace initializers
}  // namespace runnel::keras
