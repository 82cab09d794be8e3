#include "runnel/keras/initializers.h"

#include <algorithm>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/keras/find_named.h"
#include "runnel/ops/array.h"
#include "runnel/ops/linalg.h"
#include "runnel/ops/math.h"
#include "runnel/ops/random.h"

namespace runnel::keras {
namespace {

struct ConstantOptions {
  double value = 0;
  static constexpr auto fields() { return field_list(field("value", &ConstantOptions::value)); }
};
struct IdentityOptions {
  double gain = 1;
  static constexpr auto fields() { return field_list(field("gain", &IdentityOptions::gain)); }
};
struct OrthogonalOptions {
  double gain = 1;
  int64_t seed = 0;
  static constexpr auto fields() {
    return field_list(field("gain", &OrthogonalOptions::gain), field("seed", &OrthogonalOptions::seed));
  }
};
struct SeedOptions {
  int64_t seed = 0;
  static constexpr auto fields() { return field_list(field("seed", &SeedOptions::seed)); }
};

// Keras writes null for a seed that was not given.
template <class Options>
Config initializer_config(const char* class_name, const Options& options) {
  Config::Map settings = options_to_config(options);
  for (auto& [key, value] : settings) {
    if (key == "seed" && value == Config(0)) value = Config();
  }
  return object_config(class_name, std::move(settings));
}

void require_float(const char* initializer, DType dtype) {
  if (!is_float(dtype)) throw invalid_argument("[{}] makes floating weights, not {}", initializer, dtype_name(dtype));
}

// The seed of a stateless draw, as Keras makes it.
Tensor stateless_seed(int64_t seed) { return Tensor::of<int64_t>({seed, 0}); }

Tensor draw_uniform(const Shape& shape, double low, double high, DType dtype, int64_t seed) {
  if (seed == 0) return random::uniform(shape, low, high, dtype);
  return random::stateless_uniform(shape, stateless_seed(seed), low, high, dtype);
}

Tensor draw_normal(const Shape& shape, double mean, double stddev, DType dtype, int64_t seed) {
  if (seed == 0) return random::normal(shape, mean, stddev, dtype);
  return random::stateless_normal(shape, stateless_seed(seed), mean, stddev, dtype);
}

Tensor draw_truncated_normal(const Shape& shape, double mean, double stddev, DType dtype, int64_t seed) {
  if (seed == 0) return random::truncated_normal(shape, mean, stddev, dtype);
  return random::stateless_truncated_normal(shape, stateless_seed(seed), mean, stddev, dtype);
}

// How many numbers go into and come out of a unit: the last two dimensions are channels, those before them the cells
// that a convolution sees at once.
struct Fans {
  double in = 1, out = 1;
};

Fans fans_of(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {};
  if (rank == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double field = 1;
  for (int i = 0; i < rank - 2; ++i) field *= static_cast<double>(shape[i]);
  return {field * static_cast<double>(shape[rank - 2]), field * static_cast<double>(shape[rank - 1])};
}

using initializers::VarianceScalingOptions;

Tensor draw_scaled(const VarianceScalingOptions& options, const Shape& shape, DType dtype) {
  // The standard deviation of a standard normal distribution cut off at -2 and 2.
  constexpr double kTruncatedStddev = .87962566103423978;
  const Fans fans = fans_of(shape);
  const double fan = options.mode == "fan_in"    ? fans.in
                     : options.mode == "fan_out" ? fans.out
                                                 : (fans.in + fans.out) / 2;
  const double variance = options.scale / std::max(1.0, fan);
  if (options.distribution == "uniform") {
    const double limit = std::sqrt(3 * variance);
    return draw_uniform(shape, -limit, limit, dtype, options.seed);
  }
  if (options.distribution == "untruncated_normal")
    return draw_normal(shape, 0, std::sqrt(variance), dtype, options.seed);
  return draw_truncated_normal(shape, 0, std::sqrt(variance) / kTruncatedStddev, dtype, options.seed);
}

void check_scaling(const VarianceScalingOptions& o) {
  if (!(o.scale > 0)) throw invalid_argument("[VarianceScaling] scale must be positive, got {}", o.scale);
  if (o.mode != "fan_in" && o.mode != "fan_out" && o.mode != "fan_avg") {
    throw invalid_argument("[VarianceScaling] mode is fan_in, fan_out or fan_avg, got '{}'", o.mode);
  }
  if (o.distribution != "truncated_normal" && o.distribution != "untruncated_normal" && o.distribution != "uniform") {
    throw invalid_argument(
        "[VarianceScaling] distribution is truncated_normal, untruncated_normal or uniform, got '{}'", o.distribution);
  }
}

// A kind of variance scaling with a name of its own, whose only setting is the seed.
Initializer scaling_by_name(const char* class_name, const VarianceScalingOptions& options) {
  return {initializer_config(class_name, SeedOptions{options.seed}), [=](const Shape& shape, DType dtype) {
            require_float(class_name, dtype);
            return draw_scaled(options, shape, dtype);
          }};
}

Tensor draw_orthogonal(const OrthogonalOptions& options, const Shape& shape, DType dtype) {
  const int rank = shape.rank();
  if (rank < 2) throw invalid_argument("[Orthogonal] needs at least two dimensions, got shape {}", shape.str());
  int64_t rows = 1;
  for (int i = 0; i < rank - 1; ++i) rows *= shape[i];
  const int64_t columns = shape[rank - 1];
  const DType precision = dtype == DType::float64 ? DType::float64 : DType::float32;
  const Tensor numbers = draw_normal({std::max(rows, columns), std::min(rows, columns)}, 0, 1, precision, options.seed);
  const auto [q, r] = linalg::qr(numbers);
  // A decomposition with a positive diagonal is unique, so that every orthogonal matrix is equally likely.
  Tensor matrix = q * sign(linalg::diag_part(r));
  if (rows < columns) matrix = transpose(matrix);
  return cast(reshape(matrix, shape) * options.gain, dtype);
}

int64_t seed_of(const Config& settings) { return options_from_config<SeedOptions>(settings).seed; }

using initializers::RandomNormalOptions;
using initializers::RandomUniformOptions;

constexpr NamedMaker<Initializer> kInitializers[] = {
    {"Zeros", "zeros", [](const Config&) { return initializers::zeros(); }},
    {"Ones", "ones", [](const Config&) { return initializers::ones(); }},
    {"Constant", "constant",
     [](const Config& c) { return initializers::constant(options_from_config<ConstantOptions>(c).value); }},
    {"Identity", "identity",
     [](const Config& c) { return initializers::identity(options_from_config<IdentityOptions>(c).gain); }},
    {"RandomUniform", "random_uniform",
     [](const Config& c) { return initializers::random_uniform(options_from_config<RandomUniformOptions>(c)); }},
    {"RandomNormal", "random_normal",
     [](const Config& c) { return initializers::random_normal(options_from_config<RandomNormalOptions>(c)); }},
    {"TruncatedNormal", "truncated_normal",
     [](const Config& c) { return initializers::truncated_normal(options_from_config<RandomNormalOptions>(c)); }},
    {"VarianceScaling", "variance_scaling",
     [](const Config& c) { return initializers::variance_scaling(options_from_config<VarianceScalingOptions>(c)); }},
    {"GlorotUniform", "glorot_uniform", [](const Config& c) { return initializers::glorot_uniform(seed_of(c)); }},
    {"GlorotNormal", "glorot_normal", [](const Config& c) { return initializers::glorot_normal(seed_of(c)); }},
    {"HeUniform", "he_uniform", [](const Config& c) { return initializers::he_uniform(seed_of(c)); }},
    {"HeNormal", "he_normal", [](const Config& c) { return initializers::he_normal(seed_of(c)); }},
    {"LecunUniform", "lecun_uniform", [](const Config& c) { return initializers::lecun_uniform(seed_of(c)); }},
    {"LecunNormal", "lecun_normal", [](const Config& c) { return initializers::lecun_normal(seed_of(c)); }},
    {"Orthogonal", "orthogonal",
     [](const Config& c) {
       const auto options = options_from_config<OrthogonalOptions>(c);
       return initializers::orthogonal(options.gain, options.seed);
     }},
    {"RandomUniform", "uniform",
     [](const Config& c) { return initializers::random_uniform(options_from_config<RandomUniformOptions>(c)); }},
    {"RandomNormal", "normal",
     [](const Config& c) { return initializers::random_normal(options_from_config<RandomNormalOptions>(c)); }},
};

}  // namespace

Initializer Initializers::find(const Config& description) { return find_named(kWhat, kInitializers, description); }

namespace initializers {

Initializer zeros() {
  return {object_config("Zeros", {}), [](const Shape& shape, DType dtype) { return runnel::zeros(shape, dtype); }};
}

Initializer ones() {
  return {object_config("Ones", {}), [](const Shape& shape, DType dtype) { return runnel::ones(shape, dtype); }};
}

Initializer constant(double value) {
  return {initializer_config("Constant", ConstantOptions{value}), [=](const Shape& shape, DType dtype) {
            return fill(shape, cast(runnel::constant(value, DType::float64), dtype));
          }};
}

Initializer identity(double gain) {
  return {initializer_config("Identity", IdentityOptions{gain}), [=](const Shape& shape, DType dtype) {
            if (shape.rank() != 2) throw invalid_argument("[Identity] makes matrices, not shape {}", shape.str());
            return eye(shape[0], shape[1], {}, dtype) * cast(runnel::constant(gain, DType::float64), dtype);
          }};
}

Initializer random_uniform(const RandomUniformOptions& options) {
  return {initializer_config("RandomUniform", options), [=](const Shape& shape, DType dtype) {
            require_float("RandomUniform", dtype);
            return draw_uniform(shape, options.minval, options.maxval, dtype, options.seed);
          }};
}

Initializer random_normal(const RandomNormalOptions& options) {
  return {initializer_config("RandomNormal", options), [=](const Shape& shape, DType dtype) {
            require_float("RandomNormal", dtype);
            return draw_normal(shape, options.mean, options.stddev, dtype, options.seed);
          }};
}

Initializer truncated_normal(const RandomNormalOptions& options) {
  return {initializer_config("TruncatedNormal", options), [=](const Shape& shape, DType dtype) {
            require_float("TruncatedNormal", dtype);
            return draw_truncated_normal(shape, options.mean, options.stddev, dtype, options.seed);
          }};
}

Initializer variance_scaling(const VarianceScalingOptions& options) {
  VarianceScalingOptions o = options;
  if (o.distribution == "normal") o.distribution = "truncated_normal";
  check_scaling(o);
  return {initializer_config("VarianceScaling", o), [=](const Shape& shape, DType dtype) {
            require_float("VarianceScaling", dtype);
            return draw_scaled(o, shape, dtype);
          }};
}

Initializer glorot_uniform(int64_t seed) {
  return scaling_by_name("GlorotUniform", {.mode = "fan_avg", .distribution = "uniform", .seed = seed});
}
Initializer glorot_normal(int64_t seed) { return scaling_by_name("GlorotNormal", {.mode = "fan_avg", .seed = seed}); }
Initializer he_uniform(int64_t seed) {
  return scaling_by_name("HeUniform", {.scale = 2, .distribution = "uniform", .seed = seed});
}
Initializer he_normal(int64_t seed) { return scaling_by_name("HeNormal", {.scale = 2, .seed = seed}); }
Initializer lecun_uniform(int64_t seed) {
  return scaling_by_name("LecunUniform", {.distribution = "uniform", .seed = seed});
}
Initializer lecun_normal(int64_t seed) { return scaling_by_name("LecunNormal", {.seed = seed}); }

Initializer orthogonal(double gain, int64_t seed) {
  const OrthogonalOptions options{gain, seed};
  return {initializer_config("Orthogonal", options), [=](const Shape& shape, DType dtype) {
            require_float("Orthogonal", dtype);
            return draw_orthogonal(options, shape, dtype);
          }};
}

}  // namespace initializers
}  // namespace runnel::keras
