// Images seen through a projective transform: turned, sheared, moved, in perspective.
#include <algorithm>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/cast.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"
#include "runnel/ops/linalg.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

struct TransformAttrs {
  std::string interpolation;
  std::string fill_mode = "CONSTANT";
  static constexpr auto fields() {
    return field_list(field("interpolation", &TransformAttrs::interpolation, {.required = true}),
                      field("fill_mode", &TransformAttrs::fill_mode));
  }
};

enum class FillMode { constant, nearest, reflect, wrap };

FillMode fill_mode_of(const std::string& name) {
  if (name == "CONSTANT") return FillMode::constant;
  if (name == "NEAREST") return FillMode::nearest;
  if (name == "REFLECT") return FillMode::reflect;
  if (name == "WRAP") return FillMode::wrap;
  throw invalid_argument("fill_mode must be CONSTANT, NEAREST, REFLECT or WRAP, got '{}'", name);
}

bool is_bilinear_transform(const std::string& interpolation) {
  if (interpolation != "NEAREST" && interpolation != "BILINEAR") {
    throw invalid_argument("interpolation must be NEAREST or BILINEAR, got '{}'", interpolation);
  }
  return interpolation == "BILINEAR";
}

// Where a place outside of a side of `n` pixels is looked up.
float inside(float at, int64_t n, FillMode mode) {
  const auto size = static_cast<float>(n);
  float p = at;
  switch (mode) {
    case FillMode::constant: return at;
    case FillMode::nearest: break;
    case FillMode::reflect: {  // the border pixel comes twice
      const float twice = 2 * size;
      if (p < 0) {
        if (n <= 1) return 0;
        if (p < twice) p += twice * std::trunc(-p / twice);
        p = p < -size ? p + twice : -p - 1;
      } else if (p > size - 1) {
        if (n <= 1) return 0;
        p -= twice * std::trunc(p / twice);
        if (p >= size) p = twice - p - 1;
      }
      break;
    }
    case FillMode::wrap: {
      const float period = size - 1;
      if (p < 0) {
        if (n <= 1) return 0;
        p += size * (std::trunc(-p / period) + 1);
      } else if (p > size - 1) {
        if (n <= 1) return 0;
        p -= size * std::trunc(p / period);
      }
      break;
    }
  }
  return std::clamp(p, 0.f, size - 1);
}

template <class T>
struct TransformedImage {
  const T* pixels;
  int64_t height, width, channels;
  T fill;

  T at(float y, float x, int64_t channel) const {
    // Compared as floats: NaN and huge numbers are outside.
    if (!(y >= 0 && y < static_cast<float>(height) && x >= 0 && x < static_cast<float>(width))) return fill;
    return pixels[(static_cast<int64_t>(y) * width + static_cast<int64_t>(x)) * channels + channel];
  }
  T between(float y, float x, int64_t channel) const {
    const float top = std::floor(y), left = std::floor(x), bottom = top + 1, right = left + 1;
    const auto pixel = [&](float v, float u) { return static_cast<float>(at(v, u, channel)); };
    const float above = (right - x) * pixel(top, left) + (x - left) * pixel(top, right);
    const float below = (right - x) * pixel(bottom, left) + (x - left) * pixel(bottom, right);
    return cpu::CastTo<T>{}((bottom - y) * above + (y - top) * below);
  }
};

template <class T>
void transform(KernelContext& c, const TransformAttrs& a) {
  const Shape &s = c.in(0).shape(), &out = c.out().shape();
  const FillMode mode = fill_mode_of(a.fill_mode);
  const bool bilinear = is_bilinear_transform(a.interpolation);
  const float* all = c.in<float>(1);
  const bool one = c.in(1).shape()[0] == 1;
  if (out.num_elements() == 0) return;
  const int64_t rows = out[1], columns = out[2], channels = s[3];
  parallel_for(s[0] * rows, std::max<int64_t>(1, 8192 / (columns * channels)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t b = r / rows;
      const auto y = static_cast<float>(r % rows);
      const float* t = all + (one ? 0 : b * 8);
      const TransformedImage<T> image{c.in<T>(0) + b * s[1] * s[2] * channels, s[1], s[2], channels,
                                      static_cast<T>(*c.in<float>(3))};
      T* to = c.out<T>() + r * columns * channels;
      for (int64_t column = 0; column < columns; ++column, to += channels) {
        const auto x = static_cast<float>(column);
        const float w = t[6] * x + t[7] * y + 1;
        if (w == 0) {
          std::fill(to, to + channels, image.fill);
          continue;
        }
        const float from_x = inside((t[0] * x + t[1] * y + t[2]) / w, s[2], mode);
        const float from_y = inside((t[3] * x + t[4] * y + t[5]) / w, s[1], mode);
        for (int64_t k = 0; k < channels; ++k) {
          to[k] = bilinear ? image.between(from_y, from_x, k) : image.at(std::round(from_y), std::round(from_x), k);
        }
      }
    }
  });
}

// Rows of 8 numbers as the matrices of the opposite transforms.
Tensor opposite(const Tensor& transforms) {
  const Tensor last = ones_like(transforms(ellipsis, slice(0, 1)));
  const Tensor matrices = reshape(concat({transforms, last}, 1), {-1, 3, 3});
  const Tensor back = reshape(linalg::inv(matrices), {-1, 9});
  return (back / back(ellipsis, slice(8, 9)))(ellipsis, slice(0, 8));
}

}  // namespace

void register_image_transform(Registry& r) {
  const Tensor image = Tensor::of<float>({1, 2, 3, 4}, Shape{1, 2, 2, 1});
  const auto pixels = [](const std::vector<float>& v) { return Tensor::of<float>(v, Shape{1, 2, 2, 1}); };
  const Tensor left{{1.f, 0.f, 1.f, 0.f, 1.f, 0.f, 0.f, 0.f}};    // a pixel to the left
  const Tensor turned{{0.f, 1.f, 0.f, 1.f, 0.f, 0.f, 0.f, 0.f}};  // rows become columns
  const Tensor half{{1.f, 0.f, 0.5f, 0.f, 1.f, 0.f, 0.f, 0.f}};   // half a pixel
  const Tensor size{2, 2}, zero(0.f);
  r.define<TransformAttrs>("ImageProjectiveTransformV3")
      .type("dtype", Types<uint8_t, int32_t, int64_t, Half, float, double>{})
      .in("images", "dtype")
      .in("transforms", DType::float32)
      .in_host("output_shape", DType::int32)
      .in("fill_value", DType::float32)
      .out("transformed_images", "dtype")
      .shape([](InferContext& c, const TransformAttrs& a) {
        fill_mode_of(a.fill_mode);
        is_bilinear_transform(a.interpolation);
        c.require_rank(0, 4);
        c.require_rank(1, 2);
        c.require_rank(2, 1);
        c.require_rank(3, 0);
        const PartialShape &x = c.input(0), &t = c.input(1);
        if (t.has_rank() &&
            ((t[1] >= 0 && t[1] != 8) || (x.has_rank() && t[0] >= 0 && x[0] >= 0 && t[0] != 1 && t[0] != x[0]))) {
          throw invalid_argument("transforms must be [1 or batch, 8] for images {}, got {}", x.str(), t.str());
        }
        const auto given = c.constant_ints(2);
        if (given && given->size() != 2) throw invalid_argument("output_shape must be {{height, width}}");
        if (given && ((*given)[0] <= 0 || (*given)[1] <= 0)) {
          throw invalid_argument("output_shape must be positive, got [{}, {}]", (*given)[0], (*given)[1]);
        }
        c.output(PartialShape{x.has_rank() ? x[0] : kUnknownDim, given ? (*given)[0] : kUnknownDim,
                              given ? (*given)[1] : kUnknownDim, x.has_rank() ? x[3] : kUnknownDim});
      })
      .cpu([]<class T>(KernelContext& c, const TransformAttrs& a) { transform<T>(c, a); })
      .grad([](const GradCtx& g, const TransformAttrs& a) {
        // As TensorFlow: the gradient seen through the opposite transform.
        static const Op<TransformAttrs> op("ImageProjectiveTransformV3");
        const Tensor sizes = shape(g.x(0))(slice(1, 3));
        return Gradients{op({g.dy(), opposite(g.x(1)), sizes, zeros({})}, a), {}, {}, {}};
      })
      .doc("Images seen through projective transforms [a0, a1, a2, b0, b1, b2, c0, c1] of places of the output.")
      .sample({.in = {image, left, size, zero}, .out = {pixels({2, 0, 4, 0})}, .fixed = {1, 3}},
              {.interpolation = "NEAREST"})
      .sample({.in = {image, turned, size, zero}, .out = {pixels({1, 3, 2, 4})}, .differentiable = false},
              {.interpolation = "BILINEAR"})
      .sample(
          {.in = {image, half, size, Tensor(9.f)}, .out = {pixels({1.5f, 5.5f, 3.5f, 6.5f})}, .differentiable = false},
          {.interpolation = "BILINEAR"})
      .sample({.in = {image, left, size, zero}, .out = {pixels({2, 2, 4, 4})}, .differentiable = false},
              {.interpolation = "NEAREST", .fill_mode = "NEAREST"})
      .sample({.in = {image, left, size, zero}, .out = {pixels({2, 2, 4, 4})}, .differentiable = false},
              {.interpolation = "NEAREST", .fill_mode = "REFLECT"})
      .sample({.in = {image, Tensor{{1.f}}, size, zero}, .error = "[1 or batch, 8]"}, {.interpolation = "NEAREST"})
      .sample({.in = {image, left, size, zero}, .error = "interpolation must be"}, {.interpolation = "CUBIC"});
}

}  // namespace runnel
