// Images of another size: weighted sums of pixels, and pixels taken as they are.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/compute_view.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/kernels/cpu/resample.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image_resize.h"
#include "runnel/ops/image_samples.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

using cpu::AxisWeights;

struct ResizeAttrs {
  bool align_corners = false;
  bool half_pixel_centers = false;
  static constexpr auto fields() {
    return field_list(field("align_corners", &ResizeAttrs::align_corners),
                      field("half_pixel_centers", &ResizeAttrs::half_pixel_centers));
  }
  cpu::ResizeRule rule() const {
    if (align_corners && half_pixel_centers) {
      throw invalid_argument("align_corners and half_pixel_centers exclude each other");
    }
    return {align_corners, half_pixel_centers};
  }
};
struct ScaledAttrs {
  bool align_corners = false;
  bool half_pixel_centers = false;
  double scale = 1;
  static constexpr auto fields() {
    return field_list(field("align_corners", &ScaledAttrs::align_corners),
                      field("half_pixel_centers", &ScaledAttrs::half_pixel_centers),
                      field("scale", &ScaledAttrs::scale));
  }
  ResizeAttrs plain() const { return {align_corners, half_pixel_centers}; }
  cpu::ResizeRule rule() const { return plain().rule(); }
};
struct AreaAttrs {
  bool align_corners = false;
  static constexpr auto fields() { return field_list(field("align_corners", &AreaAttrs::align_corners)); }
  cpu::ResizeRule rule() const { return {align_corners, false}; }
};

using Weights = AxisWeights (*)(int64_t in, int64_t out, const cpu::ResizeRule& rule);

template <class T, class A>
void resize_by(KernelContext& c, const A& a, Weights weights) {
  const Shape &x = c.in(0).shape(), &y = c.out().shape();
  if (y.num_elements() == 0) return;
  const cpu::ResizeRule rule = a.rule();
  AxisWeights rows = weights(x[1], y[1], rule);
  if constexpr (requires { a.scale; }) {
    for (float& w : rows.weights) w *= static_cast<float>(a.scale);
  }
  cpu::resample(c.in<T>(0), x[0], x[3], rows, weights(x[2], y[2], rule), c.out<float>());
}

// The gradient by an image like input 1 from that of the resized one, input 0.
template <class T>
void resize_back(KernelContext& c, const ResizeAttrs& a, Weights weights) {
  const Shape& dy = c.in(0).shape();
  const Shape& x = c.out().shape();
  if (x.num_elements() == 0) return;
  Tensor sum = dtype_of<T> == DType::float32 ? c.out() : Tensor::empty(DType::float32, x);
  const cpu::ResizeRule rule = a.rule();
  cpu::resample_transposed(c.in<float>(0), x[0], x[3], weights(x[1], dy[1], rule), weights(x[2], dy[2], rule),
                           sum.mutable_data<float>());
  if constexpr (dtype_of<T> == DType::float64) {
    std::copy_n(sum.data<float>(), x.num_elements(), c.out<double>());
  } else if constexpr (dtype_of<T> != DType::float32) {
    convert_elements(sum.data<float>(), c.out<T>(), x.num_elements());
  }
}

void require_pixels(const PartialShape& images) {
  if (images.has_rank() && (images[1] == 0 || images[2] == 0)) {
    throw invalid_argument("an image without pixels: {}", images.str());
  }
}

constexpr auto grad_shape = [](InferContext& c) {
  c.require_rank(0, 4);
  c.require_rank(1, 4);
  require_pixels(c.input(0));
  require_pixels(c.input(1));
  resize_grad_shape(c);
};

template <class T>
void nearest_back(KernelContext& c, const ResizeAttrs& a) {
  const Shape& dy = c.in(0).shape();
  const Shape& x = c.out().shape();
  if (x.num_elements() == 0) return;
  const auto rows = cpu::nearest_sources(x[1], dy[1], a.rule()), cols = cpu::nearest_sources(x[2], dy[2], a.rule());
  const int64_t channels = x[3], in_row = x[2] * channels, out_row = dy[2] * channels;
  using C = cpu::compute_t<T>;
  parallel_for(x[0] * x[1], std::max<int64_t>(1, 32768 / (in_row + 1)), [&](int64_t begin, int64_t end) {
    std::vector<C> sum(static_cast<size_t>(in_row));
    for (int64_t r = begin; r < end; ++r) {
      std::fill(sum.begin(), sum.end(), C(0));
      const auto range = std::equal_range(rows.begin(), rows.end(), static_cast<int32_t>(r % x[1]));
      for (auto row = range.first; row != range.second; ++row) {
        const T* g = c.in<T>(0) + (r / x[1] * dy[1] + (row - rows.begin())) * out_row;
        for (int64_t i = 0; i < dy[2]; ++i) {
          C* to = sum.data() + cols[static_cast<size_t>(i)] * channels;
          for (int64_t k = 0; k < channels; ++k) to[k] += static_cast<C>(g[i * channels + k]);
        }
      }
      T* out = c.out<T>() + r * in_row;
      for (int64_t k = 0; k < in_row; ++k) out[k] = static_cast<T>(sum[static_cast<size_t>(k)]);
    }
  });
}

void take_nearest(KernelContext& c, const ResizeAttrs& a) {
  const Shape& x = c.in(0).shape();
  const Shape& y = c.out().shape();
  if (y.num_elements() == 0) return;
  const auto rows = cpu::nearest_sources(x[1], y[1], a.rule()), cols = cpu::nearest_sources(x[2], y[2], a.rule());
  const int64_t channels = x[3], in_row = x[2] * channels, out_row = y[2] * channels;
  cpu::with_element(c.in(0).dtype(), [&]<class E>() {
    parallel_for(y[0] * y[1], std::max<int64_t>(1, 32768 / out_row), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const E* from = c.in<E>(0) + (r / y[1] * x[1] + rows[static_cast<size_t>(r % y[1])]) * in_row;
        E* to = c.out<E>() + r * out_row;
        for (int64_t i = 0; i < y[2]; ++i) {
          const E* pixel = from + cols[static_cast<size_t>(i)] * channels;
          for (int64_t k = 0; k < channels; ++k) *to++ = pixel[k];
        }
      }
    });
  });
}

template <const char* name>
Tensor call_grad(const Tensor& dy, const Tensor& image, const ResizeAttrs& a) {
  static const Op<ResizeAttrs> op(name);
  return op({dy, image}, a);
}
template <const char* name>
Tensor call_resize(const Tensor& image, const Tensor& like, const ResizeAttrs& a) {
  static const Op<ResizeAttrs> op(name);
  return op({image, height_and_width(like)}, a);
}
constexpr char kBilinear[] = "ResizeBilinear", kBilinearGrad[] = "ResizeBilinearGrad";
constexpr char kBicubic[] = "ResizeBicubic", kBicubicGrad[] = "ResizeBicubicGrad";
constexpr char kNearest[] = "ResizeNearestNeighbor", kNearestGrad[] = "ResizeNearestNeighborGrad";

// [1, 2, 2, 1] of 1, 2, 3, 5 and others.
Tensor four() { return Tensor::of<float>({1, 2, 3, 5}, Shape{1, 2, 2, 1}); }
constexpr ResizeAttrs kCentres{.half_pixel_centers = true};
constexpr ResizeAttrs kCorners{.align_corners = true};

void define_linear(Registry& r) {
  r.define<ResizeAttrs>("ResizeBilinear")
      .in("images", pixel_types)
      .in_host("size", DType::int32)
      .out("resized_images", DType::float32)
      .shape(image_resize_shape)
      .cpu([]<class T>(KernelContext& c, const ResizeAttrs& a) { resize_by<T>(c, a, cpu::bilinear_weights); })
      .grad([](const GradCtx& g, const ResizeAttrs& a) -> Gradients {
        if (!is_float(g.x().dtype())) return {{}, {}};
        return {call_grad<kBilinearGrad>(g.dy(), g.x(), a), {}};
      })
      .doc("Images of another {height, width}, interpolated linearly between pixels.")
      .sample({.in = {four(), Tensor{4, 4}},
               .out = {Tensor::of<float>(
                   {1, 1.25, 1.75, 2, 1.5, 1.8125, 2.4375, 2.75, 2.5, 2.9375, 3.8125, 4.25, 3, 3.5, 4.5, 5},
                   Shape{1, 4, 4, 1})}},
              kCentres)
      .sample({.in = {four(), Tensor{3, 3}},
               .out = {Tensor::of<float>({1, 1.5, 2, 2, 2.75, 3.5, 3, 4, 5}, Shape{1, 3, 3, 1})}},
              kCorners)
      .sample({.in = {four(), Tensor{1, 4}}, .out = {Tensor::of<float>({1, 1.5, 2, 2}, Shape{1, 1, 4, 1})}})
      .sample({.in = {sample_image({2, 5, 4, 3}), Tensor{3, 6}}}, kCentres)
      .sample({.in = {sample_image({1, 3, 7, 4}), Tensor{5, 2}}}, kCentres)
      .sample({.in = {sample_image({1, 1, 1, 2}), Tensor{2, 2}}}, kCentres)
      .sample({.in = {four(), Tensor{4, 4, 1}}, .error = "size must be {height, width}"})
      .sample({.in = {four(), Tensor{-1, 4}}, .error = "size must be {height, width}"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{4, 4}}, .error = "images"})
      .sample({.in = {four(), Tensor{4, 4}}, .error = "exclude each other"},
              {.align_corners = true, .half_pixel_centers = true});

  // Ours: pixels of 0 to 255 become 0 to 1 in the same pass.
  r.define<ScaledAttrs>("_ResizeBilinearScaled")
      .in("images", pixel_types)
      .in_host("size", DType::int32)
      .out("resized_images", DType::float32)
      .shape(image_resize_shape)
      .cpu([]<class T>(KernelContext& c, const ScaledAttrs& a) { resize_by<T>(c, a, cpu::bilinear_weights); })
      .grad([](const GradCtx& g, const ScaledAttrs& a) -> Gradients {
        if (!is_float(g.x().dtype())) return {{}, {}};
        return {call_grad<kBilinearGrad>(g.dy() * a.scale, g.x(), a.plain()), {}};
      })
      .doc("ResizeBilinear times scale.")
      .sample(
          {.in = {four(), Tensor{3, 3}}, .out = {Tensor::of<float>({2, 3, 4, 4, 5.5, 7, 6, 8, 10}, Shape{1, 3, 3, 1})}},
          {.align_corners = true, .scale = 2})
      .sample({.in = {sample_image({2, 5, 4, 3}), Tensor{3, 6}}}, {.half_pixel_centers = true, .scale = 0.25})
      .sample({.in = {four(), Tensor{4, 4, 1}}, .error = "size must be {height, width}"});

  r.define<ResizeAttrs>("ResizeBilinearGrad")
      .type("T", floating)
      .in("grads", DType::float32)
      .in("original_image")
      .out("output")
      .shape(grad_shape)
      .cpu([]<class T>(KernelContext& c, const ResizeAttrs& a) { resize_back<T>(c, a, cpu::bilinear_weights); })
      .grad([](const GradCtx& g, const ResizeAttrs& a) -> Gradients {
        return {call_resize<kBilinear>(g.dy(), g.x(0), a), {}};
      })
      .doc("The gradient of ResizeBilinear by its image.")
      .sample({.in = {Tensor::of<float>(std::vector<float>(16, 1), Shape{1, 4, 4, 1}), four()},
               .out = {Tensor::of<float>({4, 4, 4, 4}, Shape{1, 2, 2, 1})},
               .fixed = {1}},
              kCentres)
      .sample({.in = {sample_image({2, 2, 3, 2}), sample_image({2, 4, 2, 2})}, .fixed = {1}}, kCentres)
      .sample({.in = {Tensor::of<float>({1, 2}, Shape{2, 1, 1, 1}), Tensor::of<float>({0, 0}, Shape{1, 2, 1, 1})},
               .out = {Tensor::of<float>({1, 0, 2, 0}, Shape{2, 2, 1, 1})},
               .fixed = {1}})
      .sample({.in = {sample_image({1, 2, 0, 2}), sample_image({1, 4, 2, 2})}, .error = "without pixels"});
}

void define_cubic(Registry& r) {
  r.define<ResizeAttrs>("ResizeBicubic")
      .in("images", pixel_types)
      .in_host("size", DType::int32)
      .out("resized_images", DType::float32)
      .shape(image_resize_shape)
      .cpu([]<class T>(KernelContext& c, const ResizeAttrs& a) { resize_by<T>(c, a, cpu::bicubic_weights); })
      .grad([](const GradCtx& g, const ResizeAttrs& a) -> Gradients {
        if (!is_float(g.x().dtype())) return {{}, {}};
        return {call_grad<kBicubicGrad>(g.dy(), g.x(), a), {}};
      })
      .doc(
          "Images of another {height, width} by Keys' cubic over four pixels a side, at the nearest of 1024 places "
          "between "
          "two pixels.")
      .sample({.in = {Tensor::of<float>({0, 1, 2, 3, 4, 5, 6, 7}, Shape{1, 1, 8, 1}), Tensor{1, 4}},
               .out = {Tensor::of<float>({7.f / 17, 2.5f, 4.5f, 112.f / 17}, Shape{1, 1, 4, 1})}},
              kCentres)
      .sample({.in = {Tensor::of<float>({0, 0, 1024, 0}, Shape{1, 1, 4, 1}), Tensor{1, 7}},
               .out = {Tensor::of<float>({0, -39.141586f, -31.407278f, 576, 1009.16461f, 348.76236f, -81.117592f},
                                         Shape{1, 1, 7, 1})}},
              kCentres)
      .sample({.in = {sample_image({2, 5, 4, 3}), Tensor{3, 6}}}, kCentres)
      .sample({.in = {sample_image({1, 5, 4, 1}), Tensor{7, 3}}}, kCorners)
      .sample({.in = {sample_image({1, 2, 2, 1}), Tensor{3, 5}}})
      .sample({.in = {four(), Tensor{4}}, .error = "size must be {height, width}"});

  r.define<ResizeAttrs>("ResizeBicubicGrad")
      .type("T", Types<float, double>{})
      .in("grads", DType::float32)
      .in("original_image")
      .out("output")
      .shape(grad_shape)
      .cpu([]<class T>(KernelContext& c, const ResizeAttrs& a) { resize_back<T>(c, a, cpu::bicubic_weights); })
      .grad([](const GradCtx& g, const ResizeAttrs& a) -> Gradients {
        return {call_resize<kBicubic>(g.dy(), g.x(0), a), {}};
      })
      .doc("The gradient of ResizeBicubic by its image.")
      .sample({.in = {sample_image({2, 2, 3, 2}), sample_image({2, 4, 2, 2})}, .fixed = {1}}, kCentres)
      .sample({.in = {sample_image({1, 2, 3, 2}), sample_image({1, 0, 2, 2})}, .error = "without pixels"});
}

void define_nearest(Registry& r) {
  r.define<ResizeAttrs>("ResizeNearestNeighbor")
      .in("images", pixel_types)
      .in_host("size", DType::int32)
      .out("resized_images")
      .shape(image_resize_shape)
      .cpu([](KernelContext& c, const ResizeAttrs& a) { take_nearest(c, a); })
      .grad([](const GradCtx& g, const ResizeAttrs& a) -> Gradients {
        static const Op<ResizeAttrs> op(kNearestGrad);
        return {op({g.dy(), height_and_width(g.x())}, a), {}};
      })
      .doc("Images of another {height, width}, each pixel that of the nearest one.")
      .sample({.in = {Tensor::of<float>({1, 2, 3, 4, 5}, Shape{1, 1, 5, 1}), Tensor{1, 3}},
               .out = {Tensor::of<float>({1, 3, 5}, Shape{1, 1, 3, 1})}},
              kCentres)
      .sample({.in = {Tensor::of<float>({1, 2, 3, 4, 5}, Shape{1, 1, 5, 1}), Tensor{1, 3}},
               .out = {Tensor::of<float>({1, 2, 4}, Shape{1, 1, 3, 1})}})
      .sample({.in = {Tensor::of<float>({1, 2, 3, 4}, Shape{1, 1, 4, 1}), Tensor{1, 7}},
               .out = {Tensor::of<float>({1, 2, 2, 3, 3, 4, 4}, Shape{1, 1, 7, 1})}},
              kCorners)
      .sample({.in = {sample_image({2, 3, 4, 3}), Tensor{5, 2}}}, kCentres)
      .sample({.in = {four(), Tensor(4)}, .error = "size"});

  r.define<ResizeAttrs>("ResizeNearestNeighborGrad")
      .in("grads", Types<uint8_t, int8_t, int32_t, Half, BFloat16, float, double>{})
      .in_host("size", DType::int32)
      .out("output")
      .shape(resize_shape)
      .cpu([]<class T>(KernelContext& c, const ResizeAttrs& a) { nearest_back<T>(c, a); })
      .grad([](const GradCtx& g, const ResizeAttrs& a) -> Gradients {
        return {call_resize<kNearest>(g.dy(), g.x(0), a), {}};
      })
      .doc("The gradient of ResizeNearestNeighbor by its image, of the given {height, width}.")
      .sample({.in = {Tensor::of<float>({1, 2, 3, 4}, Shape{1, 2, 2, 1}), Tensor{1, 1}},
               .out = {Tensor::of<float>({10}, Shape{1, 1, 1, 1})}},
              kCentres)
      .sample({.in = {sample_image({2, 5, 2, 3}), Tensor{3, 4}}}, kCentres);
}

}  // namespace

void resize_shape(InferContext& c) {
  c.require_rank(0, 4);
  c.require_rank(1, 1);
  const PartialShape& x = c.input(0);
  const auto size = c.constant_ints(1);
  if (size && (size->size() != 2 || (*size)[0] < 1 || (*size)[1] < 1)) {
    throw invalid_argument("size must be {{height, width}}, positive, got [{}]", comma_separated(*size));
  }
  Dims sizes = c.partial_ints(1).value_or(Dims{kUnknownDim, kUnknownDim});
  sizes.resize(2, kUnknownDim);
  c.output(PartialShape{x.has_rank() ? x[0] : kUnknownDim, std::max(sizes[0], kUnknownDim),
                        std::max(sizes[1], kUnknownDim), x.has_rank() ? x[3] : kUnknownDim});
}

void image_resize_shape(InferContext& c) {
  resize_shape(c);
  require_pixels(c.input(0));
  const PartialShape& x = c.input(0);
  if (x.has_rank() && x[3] == 0) throw invalid_argument("images without channels: {}", x.str());
}

void resize_grad_shape(InferContext& c) {
  c.require_rank(0, 4);
  c.require_rank(1, 4);
  const PartialShape &dy = c.input(0), &x = c.input(1);
  const auto size = [](const PartialShape& s, int i) { return s.has_rank() ? s[i] : kUnknownDim; };
  c.output(PartialShape{size(dy, 0), size(x, 1), size(x, 2), size(dy, 3)});
}

Tensor height_and_width(const Tensor& images) {
  const PartialShape s = images.partial_shape();
  if (s.rank() == 4 && s[1] >= 0 && s[2] >= 0) return int_vector({s[1], s[2]});
  return slice(shape(images), {1}, {2});
}

void register_image_resize(Registry& r) {
  define_linear(r);
  define_cubic(r);
  define_nearest(r);
  r.define<AreaAttrs>("ResizeArea")
      .in("images", pixel_types)
      .in_host("size", DType::int32)
      .out("resized_images", DType::float32)
      .shape(image_resize_shape)
      .cpu([]<class T>(KernelContext& c, const AreaAttrs& a) { resize_by<T>(c, a, cpu::area_weights); })
      .not_differentiable()
      .doc("Images of another {height, width}, each pixel the mean of the area it covers.")
      .sample({.in = {Tensor::of<float>({1, 2, 3, 4, 5, 6}, Shape{1, 1, 6, 1}), Tensor{1, 4}},
               .out = {Tensor::of<float>({4.f / 3, 8.f / 3, 13.f / 3, 17.f / 3}, Shape{1, 1, 4, 1})}})
      .sample({.in = {four(), Tensor{1, 1}}, .out = {Tensor::of<float>({2.75}, Shape{1, 1, 1, 1})}})
      .sample({.in = {sample_image({2, 5, 4, 3}), Tensor{3, 6}}})
      .sample({.in = {Tensor::of<float>({1, 2}, Shape{1, 1, 2, 1}), Tensor{2, 2}},
               .out = {Tensor::of<float>({1, 2, 1, 2}, Shape{1, 2, 2, 1})}},
              {.align_corners = true})
      .sample({.in = {sample_image({1, 0, 4, 3}), Tensor{3, 6}}, .error = "without pixels"})
      .sample({.in = {sample_image({0, 4, 4, 0}), Tensor{3, 6}}, .error = "without channels"})
      .sample({.in = {sample_image({1, 4, 4, 3}), Tensor{0, 6}}, .error = "positive"});
}

}  // namespace runnel
