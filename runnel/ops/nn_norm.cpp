// Batch and layer normalisation.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runnel/kernels/compute_view.h"
#include "runnel/kernels/cpu/batch_norm.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/nn_common.h"

namespace runnel {
namespace {

constexpr AttrRule kImageFormats{.texts = "NHWC|NCHW|NDHWC|NCDHW"};

struct BatchNormAttrs {
  double epsilon = 1e-4;
  double exponential_avg_factor = 1;
  std::string data_format = "NHWC";
  bool is_training = true;
  static constexpr auto fields() {
    return field_list(field("epsilon", &BatchNormAttrs::epsilon),
                      field("exponential_avg_factor", &BatchNormAttrs::exponential_avg_factor),
                      field("data_format", &BatchNormAttrs::data_format, kImageFormats),
                      field("is_training", &BatchNormAttrs::is_training));
  }
};
struct BatchNormGradAttrs {
  double epsilon = 1e-4;
  std::string data_format = "NHWC";
  bool is_training = true;
  static constexpr auto fields() {
    return field_list(field("epsilon", &BatchNormGradAttrs::epsilon),
                      field("data_format", &BatchNormGradAttrs::data_format, kImageFormats),
                      field("is_training", &BatchNormGradAttrs::is_training));
  }
};

inline constexpr Types<float, double> statistics_types;

// A per-channel input, float32 or float64, in the type of the computation.
template <class C>
std::vector<C> channel_values(const Tensor& t) {
  std::vector<C> values(static_cast<size_t>(t.num_elements()));
  if (t.dtype() == DType::float32) {
    std::copy_n(t.data<float>(), values.size(), values.begin());
  } else {
    std::transform(t.data<double>(), t.data<double>() + values.size(), values.begin(),
                   [](double v) { return static_cast<C>(v); });
  }
  return values;
}
template <class C>
void store_channels(const std::vector<C>& values, const Tensor& t) {
  if (t.dtype() == DType::float32) {
    std::transform(values.begin(), values.end(), t.mutable_data<float>(), [](C v) { return static_cast<float>(v); });
  } else {
    std::copy(values.begin(), values.end(), t.mutable_data<double>());
  }
}

void check_channels(InferContext& c, int x, std::initializer_list<int> vectors) {
  const int64_t channels = last_dim(c.input(x));
  for (int i : vectors) {
    c.require_rank(i, 1);
    const int64_t n = last_dim(c.input(i));
    if (n < 0 || channels < 0 || n == channels) continue;
    throw invalid_argument("input {} has {} values for the {} channels of {}", i, n, channels, c.input(x).str());
  }
}

template <class C>
std::vector<C> inverse_deviation(const std::vector<C>& variance, double epsilon) {
  std::vector<C> r(variance.size());
  for (size_t i = 0; i < r.size(); ++i) r[i] = C(1) / std::sqrt(variance[i] + static_cast<C>(epsilon));
  return r;
}

template <class T>
void batch_norm(KernelContext& c, const BatchNormAttrs& a) {
  using C = cpu::compute_t<T>;
  const int64_t channels = last_dim(c.in(0).shape());
  const int64_t rows = channels == 0 ? 0 : c.in(0).num_elements() / channels;
  const ComputeIn<T> x(c.in(0));
  const ComputeOut<T> y(c.out(0));
  const std::vector<C> scale = channel_values<C>(c.in(1));
  const std::vector<C> offset = channel_values<C>(c.in(2));
  std::vector<C> mean = channel_values<C>(c.in(3));
  std::vector<C> variance = channel_values<C>(c.in(4));
  std::vector<C> batch_mean = mean;
  std::vector<C> batch_variance = variance;
  if (a.is_training) {
    mean.resize(scale.size());
    variance.resize(scale.size());
    cpu::channel_moments(x.data(), rows, channels, mean.data(), variance.data());
    const C unbiased = rows > 1 ? static_cast<C>(rows) / static_cast<C>(rows - 1) : C(1);
    const C factor = static_cast<C>(a.exponential_avg_factor);
    batch_mean.resize(scale.size());
    batch_variance.resize(scale.size());
    for (size_t i = 0; i < scale.size(); ++i) {  // a factor of 1 forgets the running statistics
      batch_mean[i] = factor == C(1) ? mean[i] : (C(1) - factor) * batch_mean[i] + factor * mean[i];
      const C v = variance[i] * unbiased;
      batch_variance[i] = factor == C(1) ? v : (C(1) - factor) * batch_variance[i] + factor * v;
    }
  }
  if (rows == 0) {  // no batch has no statistics
    batch_mean.assign(scale.size(), std::numeric_limits<C>::quiet_NaN());
    batch_variance = batch_mean;
    mean.assign(scale.size(), C(0));
    variance = mean;
  }
  std::vector<C> f = inverse_deviation(variance, a.epsilon);
  for (size_t i = 0; i < f.size(); ++i) f[i] *= scale[i];
  cpu::normalize_channels(x.data(), rows, channels, mean.data(), f.data(), offset.data(), y.data());
  y.store();
  store_channels(batch_mean, c.out(1));
  store_channels(batch_variance, c.out(2));
  store_channels(mean, c.out(3));
  store_channels(variance, c.out(4));
}

template <class T>
void batch_norm_grad(KernelContext& c, const BatchNormGradAttrs& a) {
  using C = cpu::compute_t<T>;
  const int64_t channels = last_dim(c.in(1).shape());
  const int64_t rows = channels == 0 ? 0 : c.in(1).num_elements() / channels;
  const ComputeIn<T> dy(c.in(0));
  const ComputeIn<T> x(c.in(1));
  const ComputeOut<T> dx(c.out(0));
  const std::vector<C> scale = channel_values<C>(c.in(2));
  const std::vector<C> mean = channel_values<C>(c.in(3));
  const std::vector<C> r = inverse_deviation(channel_values<C>(c.in(4)), a.epsilon);
  std::vector<C> d_scale(r.size()), d_offset(r.size());
  cpu::channel_products(dy.data(), x.data(), rows, channels, mean.data(), d_offset.data(), d_scale.data());
  std::vector<C> factor(r.size()), shift(r.size(), C(0)), slope(r.size(), C(0));
  const C n = static_cast<C>(std::max<int64_t>(rows, 1));
  for (size_t i = 0; i < r.size(); ++i) {
    factor[i] = scale[i] * r[i];
    if (a.is_training) {
      shift[i] = d_offset[i] / n;
      slope[i] = d_scale[i] / n * r[i] * r[i];
    }
    d_scale[i] *= r[i];
  }
  cpu::normalize_backward(dy.data(), x.data(), rows, channels, mean.data(), factor.data(), shift.data(), slope.data(),
                          dx.data());
  dx.store();
  store_channels(d_scale, c.out(1));
  store_channels(d_offset, c.out(2));
}

// Every axis but the channels'.
Axes batch_axes(const Tensor& x) {
  const PartialShape s = x.partial_shape();
  if (!s.has_rank()) throw make_error(Code::unimplemented, "batch normalisation of a tensor of unknown rank");
  Dims axes;
  for (int i = 0; i + 1 < s.rank(); ++i) axes.push_back(i);
  return int_vector(axes);
}

// In the dtype of the statistics (float32 for 16-bit activations).
Tensor like_statistics(const Tensor& x, const Tensor& scale) {
  return x.dtype() == scale.dtype() ? x : cast(x, scale.dtype());
}
Tensor like_activations(const Tensor& d, const Tensor& x) { return d.dtype() == x.dtype() ? d : cast(d, x.dtype()); }

// x minus its mean and minus its part along the normalised activations: the derivative of normalising, which
// is its own transpose.
struct Projection {
  Tensor normalized;
  Axes axes;
  Tensor operator()(const Tensor& v) const {
    return v - reduce_mean(v, axes) - normalized * reduce_mean(v * normalized, axes);
  }
};

Gradients batch_norm_gradient(const GradCtx& g, const BatchNormAttrs& a) {
  static const Op<BatchNormGradAttrs> op("FusedBatchNormGradV3");
  Gradients all(5);
  const Tensor& scale = g.x(1);
  const bool y_used = g.has_dy(0);
  if (y_used && (g.needs(0) || g.needs(1) || g.needs(2))) {
    const auto d = op.many({g.dy(0), g.x(0), scale, g.y(3), g.y(4), g.y(5)},
                           {.epsilon = a.epsilon, .data_format = a.data_format, .is_training = a.is_training});
    for (size_t i = 0; i < 3; ++i) all[i] = d[i];
  }
  const Axes axes = batch_axes(g.x(0));
  if (!a.is_training) {
    if (!g.needs(3) && !g.needs(4)) return all;
    const Tensor dy = like_statistics(g.dy(0), scale);
    const Tensor r = rsqrt(g.x(4) + a.epsilon);
    auto plus = [&](int used, Tensor d) { return g.has_dy(used) ? d + g.dy(used) : d; };
    all[3] = g.want(3, [&] { return plus(1, plus(3, -(reduce_sum(dy, axes) * scale * r))); });
    all[4] = g.want(4, [&] {
      const Tensor centred = like_statistics(g.x(0), scale) - g.x(3);
      return plus(2, plus(4, reduce_sum(dy * centred, axes) * scale * (r * r * r) * -0.5));
    });
    return all;
  }
  // The statistics are outputs too: what flows back through them.
  const double f = a.exponential_avg_factor;
  if (g.needs(0) && (g.has_dy(1) || g.has_dy(2) || g.has_dy(3) || g.has_dy(4))) {
    const Tensor x = like_statistics(g.x(0), scale);
    const Tensor ones = ones_like(x);
    const Tensor n = reduce_sum(ones, axes);
    Tensor d = zeros_like(x);
    if (g.has_dy(1)) d = d + ones * (g.dy(1) * f / n);
    if (g.has_dy(3)) d = d + ones * (g.dy(3) / n);
    const Tensor centred = x - g.y(3);
    if (g.has_dy(2)) d = d + centred * (g.dy(2) * (2 * f) / maximum(n - 1, 1));
    if (g.has_dy(4)) d = d + centred * (g.dy(4) * 2 / n);
    d = like_activations(d, g.x(0));
    all[0] = all[0].defined() ? Gradient(all[0].value() + d) : Gradient(d);
  }
  if (f != 1) {
    if (g.has_dy(1)) all[3] = g.want(3, [&] { return g.dy(1) * (1 - f); });
    if (g.has_dy(2)) all[4] = g.want(4, [&] { return g.dy(2) * (1 - f); });
  }
  return all;
}

// With u, v, w the gradients of x_backprop, scale_backprop and offset_backprop. In training the statistics
// are functions of x, so that their own gradients are part of that of x.
Gradients batch_norm_second_gradient(const GradCtx& g, const BatchNormGradAttrs& a) {
  Gradients all(6);
  const Tensor& scale = g.x(2);
  const Axes axes = batch_axes(g.x(1));
  const Tensor dy = like_statistics(g.x(0), scale);
  const Tensor x = like_statistics(g.x(1), scale);
  const Tensor u = like_statistics(g.dy(0), scale);
  const Tensor v = g.dy(1);
  const Tensor w = g.dy(2);
  if (!a.is_training) {
    const Tensor r = rsqrt(g.x(4) + a.epsilon);
    const Tensor centred = x - g.x(3);
    all[0] = g.want(0, [&] { return like_activations(u * (scale * r) + centred * (v * r) + w, g.x(0)); });
    all[1] = g.want(1, [&] { return like_activations(dy * (v * r), g.x(1)); });
    all[2] = g.want(2, [&] { return reduce_sum(u * dy, axes) * r; });
    all[3] = g.want(3, [&] { return -(reduce_sum(dy, axes) * v * r); });
    all[4] = g.want(4, [&] {
      return (reduce_sum(u * dy, axes) * scale + reduce_sum(dy * centred, axes) * v) * (r * r * r) * -0.5;
    });
    return all;
  }
  const Tensor centred = x - reduce_mean(x, axes);
  const Tensor r = rsqrt(reduce_mean(centred * centred, axes) + a.epsilon);
  const Tensor n = centred * r;  // the normalised activations
  // Their mean square falls short of 1 by epsilon's share: the projection below is still the derivative of
  // normalising, r * (v - mean(v) - n * mean(v * n)).
  const Projection project{n, axes};
  const Tensor un = reduce_mean(u * n, axes);
  const Tensor gn = reduce_mean(dy * n, axes);
  all[0] = g.want(0, [&] { return like_activations(project(u) * (scale * r) + n * v + w, g.x(0)); });
  all[1] = g.want(1, [&] {
    const Tensor agreement = reduce_mean(u * dy, axes) - reduce_mean(u, axes) * reduce_mean(dy, axes) - un * gn;
    const Tensor d = project(dy * v - (u * gn + dy * un) * (scale * r)) * r - n * (agreement * scale * r * r);
    return like_activations(d, g.x(1));
  });
  all[2] = g.want(2, [&] { return reduce_sum(u * project(dy), axes) * r; });
  return all;
}

}  // namespace

void register_nn_norm(Registry& r) {
  const Tensor x{{{{1.f, 10.f}, {3.f, 14.f}}}};
  const Tensor dy{{{{1.f, 0.5f}, {-0.5f, 2.f}}}};
  r.define<BatchNormAttrs>("FusedBatchNormV3")
      .in("x", floating)
      .type("U", statistics_types)
      .in("scale", "U")
      .in("offset", "U")
      .in("mean", "U")
      .in("variance", "U")
      .out("y")
      .out("batch_mean", "U")
      .out("batch_variance", "U")
      .out("reserve_space_1", "U")
      .out("reserve_space_2", "U")
      .out("reserve_space_3", "U")
      .shape([](InferContext& c, const BatchNormAttrs& a) {
        check_data_format(a.data_format, "NHWC");
        c.require_rank(0, 4);
        check_channels(c, 0, {1, 2});
        c.require_rank(3, 1);
        c.require_rank(4, 1);
        const bool read = !a.is_training || a.exponential_avg_factor != 1;
        if (read) check_channels(c, 0, {3, 4});
        c.output(0, c.input(0));
        for (int i = 1; i < 5; ++i) c.output(i, PartialShape{last_dim(c.input(0))});
        c.output(5, PartialShape{0});
      })
      .cpu([]<class T>(KernelContext& c, const BatchNormAttrs& a) { batch_norm<T>(c, a); })
      .grad([](const GradCtx& g, const BatchNormAttrs& a) { return batch_norm_gradient(g, a); })
      .doc(
          "(x - mean) / sqrt(variance + epsilon) * scale + offset per channel, with the statistics of the "
          "batch when "
          "training (they are outputs, the variance unbiased) and the given ones otherwise.")
      .sample({.in = {x, Tensor{1.f, 2.f}, Tensor{0.f, 1.f}, Tensor::of<float>({}), Tensor::of<float>({})},
               .out = {Tensor{{{{-0.9999500f, -0.9999750f}, {0.9999500f, 2.9999750f}}}}, Tensor{2.f, 12.f},
                       Tensor{2.f, 8.f}, Tensor{2.f, 12.f}, Tensor{1.f, 4.f}, Tensor::of<float>({})},
               .differentiable = false})
      .sample({.in = {x, Tensor{1.f, 2.f}, Tensor{0.f, 1.f}, Tensor{1.f, 12.f}, Tensor{0.9999f, 3.9999f}},
               .out = {Tensor{{{{0.f, -1.f}, {2.f, 3.f}}}}, Tensor{1.f, 12.f}, Tensor{0.9999f, 3.9999f},
                       Tensor{1.f, 12.f}, Tensor{0.9999f, 3.9999f}, Tensor::of<float>({})}},
              {.is_training = false})
      .sample({.in = {Tensor::empty(DType::float32, {0, 1, 1, 2}), Tensor{1.f, 2.f}, Tensor{0.f, 1.f},
                      Tensor{1.f, 12.f}, Tensor{1.f, 4.f}},
               .out = {Tensor::empty(DType::float32, {0, 1, 1, 2}), Tensor{NAN, NAN}, Tensor{NAN, NAN},
                       Tensor{0.f, 0.f}, Tensor{0.f, 0.f}, Tensor::of<float>({})},
               .differentiable = false},
              {.exponential_avg_factor = 0.5})
      .sample({.in = {Tensor::empty(DType::float32, {0, 1, 1, 2}), Tensor{1.f, 2.f}, Tensor{0.f, 1.f},
                      Tensor{1.f, 12.f}, Tensor{1.f, 4.f}},
               .out = {Tensor::empty(DType::float32, {0, 1, 1, 2}), Tensor{NAN, NAN}, Tensor{NAN, NAN},
                       Tensor{0.f, 0.f}, Tensor{0.f, 0.f}, Tensor::of<float>({})},
               .differentiable = false},
              {.is_training = false})
      .sample({.in = {x, Tensor{1.f}, Tensor{0.f, 1.f}, Tensor{1.f, 12.f}, Tensor{1.f, 4.f}},
               .error = "1 values for the 2 channels"});

  r.define<BatchNormGradAttrs>("FusedBatchNormGradV3")
      .in("y_backprop", floating)
      .in("x")
      .type("U", statistics_types)
      .in("scale", "U")
      .in("reserve_space_1", "U")
      .in("reserve_space_2", "U")
      .in("reserve_space_3", "U")
      .out("x_backprop")
      .out("scale_backprop", "U")
      .out("offset_backprop", "U")
      .out("reserve_space_4", "U")
      .out("reserve_space_5", "U")
      .shape([](InferContext& c, const BatchNormGradAttrs& a) {
        check_data_format(a.data_format, "NHWC");
        c.require_rank(0, 4);
        c.require_rank(1, 4);
        const PartialShape both = c.input(0).merged_with(c.input(1));
        check_channels(c, 1, {2, 3, 4});
        c.output(0, both);
        for (int i = 1; i < 3; ++i) c.output(i, PartialShape{last_dim(both)});
        for (int i = 3; i < 5; ++i) c.output(i, PartialShape{0});
      })
      .cpu([]<class T>(KernelContext& c, const BatchNormGradAttrs& a) { batch_norm_grad<T>(c, a); })
      .grad([](const GradCtx& g, const BatchNormGradAttrs& a) { return batch_norm_second_gradient(g, a); })
      .doc("The gradient of FusedBatchNormV3.")
      // In training the statistics count as functions of x: differences in one input alone do not show that.
      .sample({.in = {dy, x, Tensor{1.f, 2.f}, Tensor{2.f, 12.f}, Tensor{1.f, 4.f}, Tensor::of<float>({})},
               .differentiable = false})
      .sample({.in = {dy, x, Tensor{1.f, 2.f}, Tensor{1.f, 12.f}, Tensor{0.9999f, 3.9999f}, Tensor::of<float>({})},
               .out = {Tensor{{{{1.f, 0.5f}, {-0.5f, 2.f}}}}, Tensor{-1.f, 1.5f}, Tensor{0.5f, 2.5f},
                       Tensor::of<float>({}), Tensor::of<float>({})}},
              {.is_training = false});
}

namespace nn {

Tensor batch_normalization(const Operand& x, const Operand& mean, const Operand& variance, const Tensor& offset,
                           const Tensor& scale, double variance_epsilon) {
  return composed(x.where(), [&]() -> Tensor {
    Tensor factor = rsqrt(variance + variance_epsilon);
    if (scale.defined()) factor = factor * scale;
    const Tensor shift = offset.defined() ? offset - mean * factor : -(mean * factor);
    return x * factor + shift;
  });
}

FusedBatchNorm fused_batch_norm(const Operand& x, const Operand& scale, const Operand& offset,
                                const FusedBatchNormOptions& o) {
  return composed(x.where(), [&]() -> FusedBatchNorm {
    static const Op<BatchNormAttrs> op("FusedBatchNormV3");
    const Tensor s = scale.value();
    const Tensor none = Tensor::empty(s.dtype(), Shape{0});
    const Tensor& mean = o.mean.defined() ? o.mean : none;
    const Tensor& variance = o.variance.defined() ? o.variance : none;
    const auto out = op.many({x, scale, offset, mean, variance}, {.epsilon = o.epsilon,
                                                                  .exponential_avg_factor = o.exponential_avg_factor,
                                                                  .data_format = o.data_format,
                                                                  .is_training = o.is_training});
    return {out[0], out[1], out[2]};
  });
}

Tensor layer_normalization(const Operand& x, const Tensor& gamma, const Tensor& beta, const Axes& axis,
                           double epsilon) {
  return composed(x.where(), [&]() -> Tensor {
    const Tensor value = x.value();
    const Axes axes = axis.given() ? axis : Axes(-1);
    const Tensor centred = value - reduce_mean(Operand(value, x.where()), axes, true);
    Tensor y = centred * rsqrt(reduce_mean(centred * centred, axes, true) + epsilon);
    if (gamma.defined()) y = y * gamma;
    return beta.defined() ? y + beta : y;
  });
}

}  // namespace nn
}  // namespace runnel
