// Resampling by a kernel: what resizing with antialiasing is made of.
#include "runnel/base/format.h"
#include "runnel/kernels/cpu/resample.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image_resize.h"
#include "runnel/ops/image_samples.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

struct ScaleAttrs {
  std::string kernel_type = "lanczos3";
  bool antialias = true;
  static constexpr auto fields() {
    return field_list(field("kernel_type", &ScaleAttrs::kernel_type), field("antialias", &ScaleAttrs::antialias));
  }
};

struct Axes2 {
  cpu::AxisWeights rows, cols;
};

void check_scales(const KernelContext& c, int at) {
  const float* scale = c.in<float>(at);
  if (!(scale[0] > 0) || !(scale[1] > 0)) {
    throw invalid_argument("scale must be positive, got [{}, {}]", scale[0], scale[1]);
  }
}

// From in (an image) to out (scaled), inputs `at` and `at + 1` being scale and translation.
Axes2 axes(const KernelContext& c, const ScaleAttrs& a, const Shape& in, const Shape& out, int at) {
  const float* scale = c.in<float>(at);
  const float* move = c.in<float>(at + 1);
  const auto axis = [&](int i) {
    return cpu::kernel_weights(in[i + 1], out[i + 1], static_cast<double>(scale[i]), static_cast<double>(move[i]),
                               a.kernel_type, a.antialias);
  };
  return {axis(0), axis(1)};
}

void check_pair(InferContext& c, int i, const char* what) {
  c.require_rank(i, 1);
  const PartialShape& s = c.input(i);
  if (s.has_rank() && s[0] >= 0 && s[0] != 2) throw invalid_argument("{} must have shape [2], got {}", what, s.str());
}
void check_scaling(InferContext& c, const ScaleAttrs& a) {
  check_pair(c, 2, "scale");
  check_pair(c, 3, "translation");
  if (!cpu::is_sampling_kernel(a.kernel_type)) {
    throw invalid_argument(
        "kernel_type must be lanczos1, lanczos3, lanczos5, gaussian, box, triangle, keyscubic or mitchellcubic, got "
        "'{}'",
        a.kernel_type);
  }
}

}  // namespace

void register_image_scale(Registry& r) {
  r.define<ScaleAttrs>("ScaleAndTranslate")
      .in("images", pixel_types)
      .in_host("size", DType::int32)
      .in_host("scale", DType::float32)
      .in_host("translation", DType::float32)
      .out("resized_images", DType::float32)
      .shape([](InferContext& c, const ScaleAttrs& a) {
        image_resize_shape(c);
        check_scaling(c, a);
      })
      .cpu([]<class T>(KernelContext& c, const ScaleAttrs& a) {
        const Shape &x = c.in(0).shape(), &y = c.out().shape();
        check_scales(c, 2);
        if (y.num_elements() == 0) return;
        const Axes2 w = axes(c, a, x, y, 2);
        cpu::resample(c.in<T>(0), x[0], x[3], w.rows, w.cols, c.out<float>());
      })
      .grad([](const GradCtx& g, const ScaleAttrs& a) -> Gradients {
        if (!is_float(g.x().dtype())) return {{}, {}, {}, {}};
        static const Op<ScaleAttrs> op("ScaleAndTranslateGrad");
        const Tensor& x = g.x(0);
        return {cast(op({g.dy(), cast(x, DType::float32), g.x(2), g.x(3)}, a), x.dtype()), {}, {}, {}};
      })
      .doc("Images scaled and moved into {height, width}, resampled by a kernel; zero where there was no image.")
      .sample({.in = {Tensor::of<float>({1, 2, 3, 4}, Shape{1, 1, 4, 1}), Tensor{1, 2}, Tensor{1.f, 0.5f},
                      Tensor{0.f, 0.f}},
               .out = {Tensor::of<float>({(3 + 6 + 3) / 7.f, (2 + 9 + 12) / 7.f}, Shape{1, 1, 2, 1})}},
              {.kernel_type = "triangle"})
      .sample(
          {.in = {Tensor::of<float>({1, 2, 3, 4}, Shape{1, 1, 4, 1}), Tensor{1, 4}, Tensor{1.f, 1.f}, Tensor{0.f, 1.f}},
           .out = {Tensor::of<float>({0, 1, 2, 3}, Shape{1, 1, 4, 1})}},
          {.kernel_type = "triangle", .antialias = false})
      .sample({.in = {sample_image({2, 6, 5, 3}), Tensor{3, 4}, Tensor{0.5f, 0.8f}, Tensor{0.f, 0.f}}})
      .sample({.in = {sample_image({1, 6, 5, 2}), Tensor{3, 4}, Tensor{0.5f, 0.8f}, Tensor{0.25f, 0.f}}},
              {.kernel_type = "mitchellcubic"})
      .sample({.in = {sample_image({1, 6, 5, 1}), Tensor{9, 7}, Tensor{1.5f, 1.4f}, Tensor{0.f, 0.f}}},
              {.kernel_type = "gaussian"})
      .sample(
          {.in = {sample_image({1, 2, 2, 1}), Tensor{1, 2}, Tensor{1.f}, Tensor{0.f, 0.f}}, .error = "scale must have"})
      .sample(
          {.in = {sample_image({1, 2, 2, 1}), Tensor{1, 2}, Tensor{0.f, 1.f}, Tensor{0.f, 0.f}}, .error = "positive"})
      .sample({.in = {sample_image({1, 2, 2, 1}), Tensor{1, 2}, Tensor{1.f, 1.f}, Tensor{0.f, 0.f}},
               .error = "kernel_type"},
              {.kernel_type = "sinc"});

  r.define<ScaleAttrs>("ScaleAndTranslateGrad")
      .type("T", Types<float>{})
      .in("grads")
      .in("original_image")
      .in_host("scale", DType::float32)
      .in_host("translation", DType::float32)
      .out("output")
      .shape([](InferContext& c, const ScaleAttrs& a) {
        resize_grad_shape(c);
        check_scaling(c, a);
      })
      .cpu([](KernelContext& c, const ScaleAttrs& a) {
        const Shape &dy = c.in(0).shape(), &x = c.out().shape();
        check_scales(c, 2);
        if (x.num_elements() == 0) return;
        const Axes2 w = axes(c, a, x, dy, 2);
        cpu::resample_transposed(c.in<float>(0), x[0], x[3], w.rows, w.cols, c.out<float>());
      })
      .grad([](const GradCtx& g, const ScaleAttrs& a) -> Gradients {
        static const Op<ScaleAttrs> op("ScaleAndTranslate");
        return {op({g.dy(), height_and_width(g.x(0)), g.x(2), g.x(3)}, a), {}, {}, {}};
      })
      .doc("The gradient of ScaleAndTranslate by its image.")
      .sample({.in = {sample_image({2, 3, 4, 2}), sample_image({2, 6, 5, 2}), Tensor{0.5f, 0.8f}, Tensor{0.f, 0.f}},
               .fixed = {1}})
      .sample({.in = {sample_image({2, 3, 4, 1}), sample_image({1, 6, 5, 2}), Tensor{0.5f, 0.8f}, Tensor{0.f, 0.f}},
               .fixed = {1}})
      .sample({.in = {sample_image({1, 3, 4, 1}), sample_image({1, 0, 5, 1}), Tensor{0.5f, -2.f}, Tensor{0.f, 0.f}},
               .error = "scale must be positive"});
}

}  // namespace runnel
