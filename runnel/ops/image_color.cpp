// Colours: HSV, and changes of hue, saturation and contrast as one op each.
#include <algorithm>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/kernels/cpu/loops.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/unrecorded.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

constexpr int64_t kPixels = 8192;  // per task

// Hue in sixths of the circle, from red.
template <class C>
C hue_of(C r, C g, C b, C most, C range) {
  if (range <= 0) return 0;
  const C h = most == r ? (g - b) / range : most == g ? 2 + (b - r) / range : 4 + (r - g) / range;
  return h < 0 ? h + 6 : h;
}

// How far a channel is below the highest, of the way to the lowest; n is 5, 3, 1 for red, green, blue.
template <class C>
C depth_of(C hue, int n) {
  C k = hue + static_cast<C>(n);
  k -= 6 * std::floor(k / 6);
  return std::clamp(std::min(k, 4 - k), C(0), C(1));
}

template <class C>
void put_rgb(C hue, C most, C range, C* out) {
  for (int i = 0; i < 3; ++i) out[i] = most - range * depth_of(hue, 5 - 2 * i);
}

template <class T, class F>
void each_pixel(KernelContext& c, F f) {
  using C = cpu::compute_t<T>;
  const T* x = c.in<T>(0);
  T* y = c.out<T>();
  parallel_for(c.out().num_elements() / 3, kPixels, [&](int64_t begin, int64_t end) {
    for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
      const C in[3] = {static_cast<C>(x[i]), static_cast<C>(x[i + 1]), static_cast<C>(x[i + 2])};
      C out[3];
      f(in, out);
      for (int k = 0; k < 3; ++k) y[i + k] = static_cast<T>(out[k]);
    }
  });
}

template <class T>
void to_hsv(KernelContext& c) {
  each_pixel<T>(c, [](const auto* in, auto* out) {
    using C = std::remove_cvref_t<decltype(*out)>;
    const C most = std::max({in[0], in[1], in[2]}), least = std::min({in[0], in[1], in[2]});
    const C range = most - least;
    out[0] = hue_of(in[0], in[1], in[2], most, range) / 6;
    out[1] = most > 0 ? range / most : C(0);
    out[2] = most;
  });
}

template <class T>
void from_hsv(KernelContext& c) {
  each_pixel<T>(c, [](const auto* in, auto* out) {
    using C = std::remove_cvref_t<decltype(*out)>;
    const C hue = in[0] * 6;
    const C height[] = {std::abs(hue - 3) - 1, 2 - std::abs(hue - 2), 2 - std::abs(hue - 4)};
    for (int i = 0; i < 3; ++i) out[i] = (1 - in[1] + in[1] * std::clamp(height[i], C(0), C(1))) * in[2];
  });
}

template <class T>
void shift_hue(KernelContext& c) {
  using C = cpu::compute_t<T>;
  const C shift = static_cast<C>(*c.in<float>(1)) * 6;
  each_pixel<T>(c, [shift](const C* in, C* out) {
    const C most = std::max({in[0], in[1], in[2]}), least = std::min({in[0], in[1], in[2]});
    put_rgb(hue_of(in[0], in[1], in[2], most, most - least) + shift, most, most - least, out);
  });
}

template <class T>
void scale_saturation(KernelContext& c) {
  using C = cpu::compute_t<T>;
  const C scale = static_cast<C>(*c.in<float>(1));
  each_pixel<T>(c, [scale](const C* in, C* out) {
    const C most = std::max({in[0], in[1], in[2]}), least = std::min({in[0], in[1], in[2]});
    const C saturation = most > 0 ? std::clamp((most - least) / most * scale, C(0), C(1)) : C(0);
    put_rgb(hue_of(in[0], in[1], in[2], most, most - least), most, most * saturation, out);
  });
}

template <class T>
void spread_contrast(KernelContext& c) {
  using C = cpu::compute_t<T>;
  const Dims& s = c.in(0).shape().dims();
  const int64_t channels = s.back(), width = s[s.size() - 2], height = s[s.size() - 3];
  if (c.out().num_elements() == 0) return;
  const int64_t rows = c.out().num_elements() / (width * channels);
  const C factor = static_cast<C>(*c.in<float>(1));
  const T* x = c.in<T>(0);
  T* y = c.out<T>();
  const int64_t grain = std::max<int64_t>(1, 3 * kPixels / (width * channels));
  std::vector<double> sums(static_cast<size_t>(rows * channels), 0);
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      double* sum = sums.data() + r * channels;
      const T* row = x + r * width * channels;
      for (int64_t i = 0; i < width; ++i) {
        for (int64_t k = 0; k < channels; ++k) sum[k] += static_cast<double>(static_cast<C>(row[i * channels + k]));
      }
    }
  });
  std::vector<C> means(static_cast<size_t>(rows / height * channels));
  for (int64_t image = 0; image < rows / height; ++image) {
    for (int64_t k = 0; k < channels; ++k) {
      double sum = 0;
      for (int64_t r = image * height; r < (image + 1) * height; ++r)
        sum += sums[static_cast<size_t>(r * channels + k)];
      means[static_cast<size_t>(image * channels + k)] = static_cast<C>(sum / static_cast<double>(height * width));
    }
  }
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const C* mean = means.data() + r / height * channels;
      for (int64_t i = r * width * channels; i < (r + 1) * width * channels; i += channels) {
        for (int64_t k = 0; k < channels; ++k) {
          y[i + k] = static_cast<T>((static_cast<C>(x[i + k]) - mean[k]) * factor + mean[k]);
        }
      }
    }
  });
}

constexpr auto color_shape = [](InferContext& c) {
  const PartialShape& s = c.input(0);
  if (s.has_rank() && (s.rank() < 1 || (s[s.rank() - 1] >= 0 && s[s.rank() - 1] != 3))) {
    throw invalid_argument("the last dimension must be the 3 colours, got {}", s.str());
  }
  if (c.num_inputs() > 1) c.require_rank(1, 0);
  c.output(s);
};

constexpr auto adjust_shape = [](InferContext& c) {
  c.require_rank_at_least(0, 3);
  color_shape(c);
};

// The gradient of RGBToHSV at x.
Tensor hsv_grad(const Tensor& x, const Tensor& dy) {
  const DType t = x.dtype();
  const Tensor highest = one_hot(argmax(x, -1), 3, -1, t), lowest = one_hot(argmin(x, -1), 3, -1, t);
  const Tensor most = reduce_max(x, -1, true), least = reduce_min(x, -1, true), range = most - least;
  const std::vector<Tensor> d = split(dy, 3, -1);  // by hue, saturation, value
  // Hue is (next - after next) / range, counted from the highest channel.
  const Tensor sides = roll(highest, 1, -1) - roll(highest, 2, -1);
  const Tensor across = reduce_sum(x * sides, -1, true);
  const Tensor by_hue = divide_no_nan(sides, range) - divide_no_nan(across, range * range) * (highest - lowest);
  const Tensor by_saturation = divide_no_nan(least, most * most) * highest - divide_no_nan(lowest, most);
  return d[0] * by_hue / 6 + d[1] * by_saturation + d[2] * highest;
}

// The gradient of HSVToRGB at x.
Tensor rgb_grad(const Tensor& x, const Tensor& dy) {
  const std::vector<Tensor> hsv = split(x, 3, -1);
  const Tensor from = hsv[0] * 6 - constant({3.0, 2.0, 4.0}, x.dtype());
  const Tensor slope = constant({1.0, -1.0, -1.0}, x.dtype());
  const Tensor height = constant({-1.0, 2.0, 2.0}, x.dtype()) + slope * abs(from);
  const Tensor share = clip_by_value(height, 0, 1);
  const Tensor rises = where(logical_and(height > 0, height < 1), slope * sign(from), 0);
  const auto total = [](const Tensor& t) { return reduce_sum(t, -1, true); };
  return concat({total(dy * rises) * hsv[2] * hsv[1] * 6, total(dy * (share - 1)) * hsv[2],
                 total(dy * (1 - hsv[1] + hsv[1] * share))},
                -1);
}

Tensor as_scalar(const Tensor& t) { return cast(reduce_sum(t), DType::float32); }

Gradients hue_grads(const GradCtx& g) {
  const Tensor hsv = image::rgb_to_hsv(g.x(0));
  const std::vector<Tensor> part = split(hsv, 3, -1);
  const Tensor moved = concat({floormod(part[0] + cast(g.x(1), hsv.dtype()), 1), part[1], part[2]}, -1);
  const Tensor d = rgb_grad(moved, g.dy());
  return {g.want(0, [&] { return hsv_grad(g.x(0), d); }), g.want(1, [&] { return as_scalar(split(d, 3, -1)[0]); })};
}

Gradients saturation_grads(const GradCtx& g) {
  const Tensor hsv = image::rgb_to_hsv(g.x(0));
  const std::vector<Tensor> part = split(hsv, 3, -1);
  const Tensor scale = cast(g.x(1), hsv.dtype()), scaled = part[1] * scale;
  const Tensor d = rgb_grad(concat({part[0], clip_by_value(scaled, 0, 1), part[2]}, -1), g.dy());
  const std::vector<Tensor> dh = split(d, 3, -1);
  const Tensor inside = dh[1] * cast(logical_and(scaled >= 0, scaled <= 1), hsv.dtype());
  return {g.want(0,
                 [&] {
                   return hsv_grad(g.x(0), concat({dh[0], inside * scale, dh[2]}, -1));
                 }),
          g.want(1, [&] { return as_scalar(inside * part[1]); })};
}

Tensor some_colors() {
  return Tensor::of<float>({.9f, .3f, .1f, .2f, .8f, .5f, .3f, .35f, .7f, .6f, .2f, .55f}, Shape{1, 2, 2, 3});
}

}  // namespace

void register_image_color(Registry& r) {
  r.define("RGBToHSV")
      .in("images", floating, DType::float32)
      .out("output")
      .shape(color_shape)
      .cpu([]<class T>(KernelContext& c) { to_hsv<T>(c); })
      .grad([](const GradCtx& g) { return hsv_grad(g.x(), g.dy()); })
      .doc("Hue, saturation and value, each from 0 to 1, of RGB colours from 0 to 1.")
      .sample(
          {.in = {Tensor{{1.f, 0.f, 0.f}, {0.f, .5f, .5f}, {.2f, .2f, .2f}, {0.f, 0.f, 0.f}, {.5f, .25f, .75f}}},
           .out = {Tensor{{0.f, 1.f, 1.f}, {.5f, 1.f, .5f}, {0.f, 0.f, .2f}, {0.f, 0.f, 0.f}, {.75f, 2.f / 3, .75f}}},
           .differentiable = false})
      .sample({.in = {some_colors()}})
      .sample({.in = {Tensor{1.f, 0.f}}, .error = "3 colours"});
  r.define("HSVToRGB")
      .in("images", floating, DType::float32)
      .out("output")
      .shape(color_shape)
      .cpu([]<class T>(KernelContext& c) { from_hsv<T>(c); })
      .grad([](const GradCtx& g) { return rgb_grad(g.x(), g.dy()); })
      .doc("RGB colours of hue, saturation and value, each from 0 to 1: others are not turned back into that range.")
      .sample({.in = {Tensor{{-.5f, .5f, .5f}, {1.5f, -1.f, .25f}, {.1f, -1.f, 3.f}}},
               .out = {Tensor{{.5f, .25f, .25f}, {.25f, .5f, .5f}, {3.f, 4.2f, 6.f}}},
               .differentiable = false})
      .sample({.in = {Tensor{{0.f, 1.f, 1.f}, {.5f, 1.f, .5f}, {0.f, 0.f, .2f}, {.75f, 2.f / 3, .75f}}},
               .out = {Tensor{{1.f, 0.f, 0.f}, {0.f, .5f, .5f}, {.2f, .2f, .2f}, {.5f, .25f, .75f}}},
               .differentiable = false})
      .sample({.in = {some_colors()}})
      .sample({.in = {Tensor{1.f, 0.f}}, .error = "3 colours"});
  r.define("AdjustHue")
      .in("images", Types<Half, float>{}, DType::float32)
      .in_host("delta", DType::float32)
      .out("output")
      .shape(adjust_shape)
      .cpu([]<class T>(KernelContext& c) { shift_hue<T>(c); })
      .grad([](const GradCtx& g) { return hue_grads(g); })
      .doc("RGB colours with the hue turned by delta, a fraction of the circle.")
      .sample({.in = {Tensor{{{1.f, 0.f, 0.f}, {.5f, .25f, .75f}}}, Tensor(1.f / 3)},
               .out = {Tensor{{{0.f, 1.f, 0.f}, {.75f, .5f, .25f}}}},
               .differentiable = false})
      .sample({.in = {some_colors(), Tensor(.1f)}})
      .sample({.in = {Tensor{{{1.f, 0.f}}}, Tensor(.1f)}, .error = "3 colours"})
      .sample({.in = {Tensor{{1.f, 0.f, 0.f}}, Tensor(.1f)}, .error = "rank 3 or more"});
  r.define("AdjustSaturation")
      .in("images", Types<Half, float>{}, DType::float32)
      .in_host("scale", DType::float32)
      .out("output")
      .shape(adjust_shape)
      .cpu([]<class T>(KernelContext& c) { scale_saturation<T>(c); })
      .grad([](const GradCtx& g) { return saturation_grads(g); })
      .doc("RGB colours with the saturation multiplied by scale, kept in 0 to 1.")
      .sample({.in = {Tensor{{{1.f, 0.f, 0.f}, {.5f, .25f, .75f}}}, Tensor(.5f)},
               .out = {Tensor{{{1.f, .5f, .5f}, {.625f, .5f, .75f}}}},
               .differentiable = false})
      .sample({.in = {some_colors(), Tensor(.7f)}})
      .sample({.in = {Tensor{{{1.f, 0.f}}}, Tensor(.1f)}, .error = "3 colours"})
      .sample({.in = {Tensor{{1.f, 0.f, 0.f}}, Tensor(.1f)}, .error = "rank 3 or more"});
  r.define("AdjustContrastv2")
      .in("images", Types<Half, float>{}, DType::float32)
      .in_host("contrast_factor", DType::float32)
      .out("output")
      .shape([](InferContext& c) {
        c.require_rank_at_least(0, 3);
        c.require_rank(1, 0);
        c.output(c.input(0));
      })
      .cpu([]<class T>(KernelContext& c) { spread_contrast<T>(c); })
      .grad([](const GradCtx& g) -> Gradients {
        const Tensor factor = cast(g.x(1), g.x(0).dtype());
        const Tensor dy = g.dy();
        return {g.want(0,
                       [&] {
                         return dy * factor + reduce_mean(dy, {-3, -2}, true) * (1 - factor);
                       }),
                g.want(1, [&] {
                  return as_scalar(dy * (g.x(0) - reduce_mean(g.x(0), {-3, -2}, true)));
                })};
      })
      .doc("(x - mean) * contrast_factor + mean, with the mean of each channel of each image.")
      .sample({.in = {Tensor{{{1.f, 10.f}, {3.f, 20.f}}}, Tensor(2.f)}, .out = {Tensor{{{0.f, 5.f}, {4.f, 25.f}}}}})
      .sample({.in = {some_colors(), Tensor(.5f)}})
      .sample({.in = {Tensor{1.f, 0.f}, Tensor(.1f)}, .error = "images"});
}

namespace image {

Tensor rgb_to_hsv(const Operand& images) {
  static const Op op("RGBToHSV");
  return op({images});
}

Tensor hsv_to_rgb(const Operand& images) {
  static const Op op("HSVToRGB");
  return op({images});
}

namespace {

// An op that knows floats alone, on an image of any dtype.
Tensor adjusted(const char* name, const Operand& image, const Operand& by, bool saturate) {
  const Tensor x = image.value();
  const bool direct = x.dtype() == DType::float32 || x.dtype() == DType::float16;
  const Tensor input = direct ? x : convert_image_dtype(x, DType::float32);
  const Tensor y = call_op(name, {input, cast(by, DType::float32)}, {}, image.where())[0];
  return direct ? y : convert_image_dtype(y, x.dtype(), saturate);
}

}  // namespace

Tensor adjust_contrast(const Operand& images, const Operand& contrast_factor) {
  return composed(images.where(), [&] { return adjusted("AdjustContrastv2", images, contrast_factor, true); });
}
Tensor adjust_hue(const Operand& image, const Operand& delta) {
  return composed(image.where(), [&]() -> Tensor {
    const Tensor* known = delta.is_literal() ? nullptr : delta.tensor()->known_value();
    const Tensor value = known ? *known : delta.value();
    if (!value.is_symbolic()) {
      const ContextScope<&ThreadContext::interceptor> now(nullptr);  // while a function is traced, too
      const Unrecorded inner;
      const auto d = cast(value, DType::float64).item<double>();
      if (!(d >= -1 && d <= 1)) throw invalid_argument("[image::adjust_hue] delta must be in [-1, 1], got {}", d);
    }
    return adjusted("AdjustHue", image, delta, false);
  });
}
Tensor adjust_saturation(const Operand& image, const Operand& saturation_factor) {
  return composed(image.where(), [&] { return adjusted("AdjustSaturation", image, saturation_factor, false); });
}

}  // namespace image
}  // namespace runnel
