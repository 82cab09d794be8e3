#include "runnel/keras/initializers.h"

#include <algorithm>
#include <cmath>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/keras/find_named.h"
#include "runnel/ops/array.h"
#include "runnel/ops/linalg.h"
#include "runnel/ops/math.h"
#include "runnel/ops/random.h"

namespace runnel::keras {
namespace initializers {
namespace {

// The seed of a stateless draw, as Keras makes it.
Tensor stateless_seed(int64_t seed) { return Tensor::of<int64_t>({seed, 0}); }

Tensor draw_uniform(const Shape& shape, double low, double high, DType dtype, std::optional<int64_t> seed) {
  if (!seed) return random::uniform(shape, low, high, dtype);
  return random::stateless_uniform(shape, stateless_seed(*seed), low, high, dtype);
}

Tensor draw_normal(const Shape& shape, double mean, double stddev, DType dtype, std::optional<int64_t> seed) {
  if (!seed) return random::normal(shape, mean, stddev, dtype);
  return random::stateless_normal(shape, stateless_seed(*seed), mean, stddev, dtype);
}

Tensor draw_truncated_normal(const Shape& shape, double mean, double stddev, DType dtype, std::optional<int64_t> seed) {
  if (!seed) return random::truncated_normal(shape, mean, stddev, dtype);
  return random::stateless_truncated_normal(shape, stateless_seed(*seed), mean, stddev, dtype);
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
  if (options.distribution == "untruncated_normal") {
    return draw_normal(shape, 0, std::sqrt(variance), dtype, options.seed);
  }
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

// An initializer of floating weights alone.
template <class Options>
Initializer floating(const char* class_name, const Options& options,
                     Tensor (*draw)(const Options& options, const Shape& shape, DType dtype)) {
  return described<Initializer>(class_name, options, [=](const Shape& shape, DType dtype) {
    if (!is_float(dtype)) throw invalid_argument("[{}] makes floating weights, not {}", class_name, dtype_name(dtype));
    return draw(options, shape, dtype);
  });
}

// A kind of variance scaling with a name of its own, whose only setting is the seed.
Initializer scaling_by_name(const char* class_name, const SeedOptions& seed, double scale, const char* mode,
                            const char* distribution) {
  const VarianceScalingOptions options{.scale = scale, .mode = mode, .distribution = distribution, .seed = seed.seed};
  const Initializer scaling = floating(class_name, options, draw_scaled);
  return described<Initializer>(class_name, seed, scaling);
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

constexpr NamedMaker<Initializer> kInitializers[] = {
    maker<Initializer, zeros>("Zeros", "zeros"),
    maker<Initializer, ones>("Ones", "ones"),
    maker<Initializer, ConstantOptions, constant>("Constant", "constant"),
    maker<Initializer, IdentityOptions, identity>("Identity", "identity"),
    maker<Initializer, RandomUniformOptions, random_uniform>("RandomUniform", "random_uniform"),
    maker<Initializer, RandomNormalOptions, random_normal>("RandomNormal", "random_normal"),
    maker<Initializer, RandomNormalOptions, truncated_normal>("TruncatedNormal", "truncated_normal"),
    maker<Initializer, VarianceScalingOptions, variance_scaling>("VarianceScaling", "variance_scaling"),
    maker<Initializer, SeedOptions, glorot_uniform>("GlorotUniform", "glorot_uniform"),
    maker<Initializer, SeedOptions, glorot_normal>("GlorotNormal", "glorot_normal"),
    maker<Initializer, SeedOptions, he_uniform>("HeUniform", "he_uniform"),
    maker<Initializer, SeedOptions, he_normal>("HeNormal", "he_normal"),
    maker<Initializer, SeedOptions, lecun_uniform>("LecunUniform", "lecun_uniform"),
    maker<Initializer, SeedOptions, lecun_normal>("LecunNormal", "lecun_normal"),
    maker<Initializer, OrthogonalOptions, orthogonal>("Orthogonal", "orthogonal"),
    maker<Initializer, RandomUniformOptions, random_uniform>("RandomUniform", "uniform"),
    maker<Initializer, RandomNormalOptions, random_normal>("RandomNormal", "normal"),
};

}  // namespace

Initializer zeros() {
  return {object_config("Zeros", {}), [](const Shape& shape, DType dtype) { return runnel::zeros(shape, dtype); }};
}

Initializer ones() {
  return {object_config("Ones", {}), [](const Shape& shape, DType dtype) { return runnel::ones(shape, dtype); }};
}

Initializer constant(const ConstantOptions& options) {
  return described<Initializer>("Constant", options, [=](const Shape& shape, DType dtype) {
    return fill(shape, cast(runnel::constant(options.value, DType::float64), dtype));
  });
}

Initializer identity(const IdentityOptions& options) {
  return described<Initializer>("Identity", options, [=](const Shape& shape, DType dtype) {
    if (shape.rank() != 2) throw invalid_argument("[Identity] makes matrices, not shape {}", shape.str());
    return eye(shape[0], shape[1], {}, dtype) * cast(runnel::constant(options.gain, DType::float64), dtype);
  });
}

Initializer random_uniform(const RandomUniformOptions& options) {
  return floating(
      "RandomUniform", options, +[](const RandomUniformOptions& o, const Shape& shape, DType dtype) {
        return draw_uniform(shape, o.minval, o.maxval, dtype, o.seed);
      });
}

Initializer random_normal(const RandomNormalOptions& options) {
  return floating(
      "RandomNormal", options, +[](const RandomNormalOptions& o, const Shape& shape, DType dtype) {
        return draw_normal(shape, o.mean, o.stddev, dtype, o.seed);
      });
}

Initializer truncated_normal(const RandomNormalOptions& options) {
  return floating(
      "TruncatedNormal", options, +[](const RandomNormalOptions& o, const Shape& shape, DType dtype) {
        return draw_truncated_normal(shape, o.mean, o.stddev, dtype, o.seed);
      });
}

Initializer variance_scaling(const VarianceScalingOptions& options) {
  VarianceScalingOptions o = options;
  if (o.distribution == "normal") o.distribution = "truncated_normal";
  check_scaling(o);
  return floating("VarianceScaling", o, draw_scaled);
}

Initializer glorot_uniform(const SeedOptions& options) {
  return scaling_by_name("GlorotUniform", options, 1, "fan_avg", "uniform");
}
Initializer glorot_normal(const SeedOptions& options) {
  return scaling_by_name("GlorotNormal", options, 1, "fan_avg", "truncated_normal");
}
Initializer he_uniform(const SeedOptions& options) {
  return scaling_by_name("HeUniform", options, 2, "fan_in", "uniform");
}
Initializer he_normal(const SeedOptions& options) {
  return scaling_by_name("HeNormal", options, 2, "fan_in", "truncated_normal");
}
Initializer lecun_uniform(const SeedOptions& options) {
  return scaling_by_name("LecunUniform", options, 1, "fan_in", "uniform");
}
Initializer lecun_normal(const SeedOptions& options) {
  return scaling_by_name("LecunNormal", options, 1, "fan_in", "truncated_normal");
}

Initializer orthogonal(const OrthogonalOptions& options) { return floating("Orthogonal", options, draw_orthogonal); }

}  // namespace initializers

Initializer Initializers::find(const Config& description, SourceSite where) {
  return at_caller(where, [&]() -> Initializer { return find_named(kWhat, initializers::kInitializers, description); });
}
void Initializers::list(std::vector<ClassSettings>& all) { list_named(kWhat, initializers::kInitializers, all); }

}  // namespace runnel::keras
