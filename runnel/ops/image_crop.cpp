// Boxes cut out of images and resized to one size, and the gradients of that.
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/kernels/cpu/loops.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"
#include "runnel/ops/image_samples.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

inline constexpr auto crop_types = signed_integers + Types<uint8_t, uint16_t, Half, float, double>{};

struct CropAttrs {
  std::string method = "bilinear";
  double extrapolation_value = 0;
  static constexpr auto fields() {
    return field_list(field("method", &CropAttrs::method, {.texts = "bilinear|nearest"}),
                      field("extrapolation_value", &CropAttrs::extrapolation_value));
  }
};
struct GradImageAttrs {
  DType T = DType::invalid;
  std::string method = "bilinear";
  static constexpr auto fields() {
    return field_list(field("T", &GradImageAttrs::T, {.types = Types<Half, float, double>::mask}),
                      field("method", &GradImageAttrs::method, {.texts = "bilinear|nearest"}));
  }
};
// The only method with a derivative by the boxes.
struct GradBoxesAttrs {
  std::string method = "bilinear";
  static constexpr auto fields() { return field_list(field("method", &GradBoxesAttrs::method, {.texts = "bilinear"})); }
};

// Where point i of n along a side of a box lies, in pixels of an image side.
struct Side {
  float begin, end;  // 0 to 1
  int64_t pixels;
  int64_t n;

  float last() const { return static_cast<float>(pixels - 1); }
  float at(int64_t i) const {
    if (n > 1) return begin * last() + static_cast<float>(i) * (end - begin) * last() / static_cast<float>(n - 1);
    return 0.5f * (begin + end) * last();
  }
  bool inside(float p) const { return p >= 0 && p <= last(); }  // false for NaN
  // How at(i) changes with begin and end.
  float by_begin(int64_t i) const { return n > 1 ? last() - by_end(i) : 0.5f * last(); }
  float by_end(int64_t i) const {
    return n > 1 ? static_cast<float>(i) * last() / static_cast<float>(n - 1) : 0.5f * last();
  }
};

// The pixels around a point and how far it is from the first.
struct Point {
  int64_t low, high;
  float share;
};
Point point(float p, bool bilinear) {
  if (!bilinear) {
    const auto i = static_cast<int64_t>(std::round(p));
    return {i, i, 0};
  }
  const float floor = std::floor(p);
  return {static_cast<int64_t>(floor), static_cast<int64_t>(std::ceil(p)), p - floor};
}

struct Boxes {
  const float* corners;
  const int32_t* images;
  int64_t count;
  int64_t height, width, channels;  // of the images

  Side rows(int64_t b, int64_t n) const { return {corners[4 * b], corners[4 * b + 2], height, n}; }
  Side cols(int64_t b, int64_t n) const { return {corners[4 * b + 1], corners[4 * b + 3], width, n}; }
};

Boxes boxes_of(KernelContext& c, int at, const Shape& images) {
  const Tensor &boxes = c.in(at), &index = c.in(at + 1);
  if (boxes.dim(1) != 4) throw invalid_argument("boxes must be [n, 4], got {}", boxes.shape().str());
  if (index.dim(0) != boxes.dim(0)) {
    throw invalid_argument("{} boxes, but box_ind has {} values", boxes.dim(0), index.dim(0));
  }
  if (images[1] == 0 || images[2] == 0) throw invalid_argument("an image without pixels: {}", images.str());
  const auto* p = index.data<int32_t>();
  for (int64_t i = 0; i < index.dim(0); ++i) {
    if (p[i] < 0 || p[i] >= images[0]) {
      throw invalid_argument("box_ind[{}] is {}, there are {} images", i, p[i], images[0]);
    }
  }
  return {boxes.data<float>(), p, boxes.dim(0), images[1], images[2], images[3]};
}

// The gradient of crops: one for each box, of at least one pixel.
void check_crop_grads(const Shape& dy, const Boxes& boxes) {
  if (dy[0] != boxes.count || dy[3] != boxes.channels) {
    throw invalid_argument("grads {} do not fit {} boxes of images with {} channels", dy.str(), boxes.count,
                           boxes.channels);
  }
  if (dy[1] == 0 || dy[2] == 0) throw invalid_argument("grads without pixels: {}", dy.str());
}

void check_box_ranks(InferContext& c, int at) {
  c.require_rank(at, 2);
  c.require_rank(at + 1, 1);
}

template <class T>
void crop(KernelContext& c, const CropAttrs& a) {
  const Shape &x = c.in(0).shape(), &y = c.out().shape();
  const bool bilinear = a.method == "bilinear";
  const Boxes boxes = boxes_of(c, 1, x);
  if (y.num_elements() == 0) return;
  const int64_t rows = y[1], cols = y[2], channels = y[3];
  parallel_for(boxes.count * rows, std::max<int64_t>(1, 8192 / (cols * channels)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t b = r / rows, i = r % rows;
      float* out = c.out<float>() + r * cols * channels;
      const Side down = boxes.rows(b, rows), across = boxes.cols(b, cols);
      const float py = down.at(i);
      const T* image = c.in<T>(0) + boxes.images[b] * x[1] * x[2] * channels;
      for (int64_t j = 0; j < cols; ++j, out += channels) {
        const float px = across.at(j);
        if (!down.inside(py) || !across.inside(px)) {
          std::fill(out, out + channels, static_cast<float>(a.extrapolation_value));
          continue;
        }
        const Point v = point(py, bilinear), h = point(px, bilinear);
        const T* low = image + v.low * x[2] * channels;
        const T* high = image + v.high * x[2] * channels;
        for (int64_t k = 0; k < channels; ++k) {
          const auto at = [&](const T* row, int64_t column) { return static_cast<float>(row[column * channels + k]); };
          const float top = at(low, h.low) + (at(low, h.high) - at(low, h.low)) * h.share;
          const float bottom = at(high, h.low) + (at(high, h.high) - at(high, h.low)) * h.share;
          out[k] = top + (bottom - top) * v.share;
        }
      }
    }
  });
}

template <class T>
void crop_grad_image(KernelContext& c, const GradImageAttrs& a) {
  const Shape &dy = c.in(0).shape(), &x = c.out().shape();
  const bool bilinear = a.method == "bilinear";
  const Boxes boxes = boxes_of(c, 1, x);
  check_crop_grads(dy, boxes);
  using C = cpu::compute_t<T>;
  const int64_t rows = dy[1], cols = dy[2], channels = x[3], size = x[1] * x[2] * channels;
  // An image is one task: boxes overlap, and their order fixes the sum.
  parallel_for(x[0], 1, [&](int64_t begin, int64_t end) {
    std::vector<C> sum(static_cast<size_t>(size));
    for (int64_t image = begin; image < end; ++image) {
      std::fill(sum.begin(), sum.end(), C(0));
      for (int64_t b = 0; b < boxes.count; ++b) {
        if (boxes.images[b] != image) continue;
        const Side down = boxes.rows(b, rows), across = boxes.cols(b, cols);
        for (int64_t i = 0; i < rows; ++i) {
          const float py = down.at(i);
          if (!down.inside(py)) continue;
          const Point v = point(py, bilinear);
          for (int64_t j = 0; j < cols; ++j) {
            const float px = across.at(j);
            if (!across.inside(px)) continue;
            const Point h = point(px, bilinear);
            const float* g = c.in<float>(0) + ((b * rows + i) * cols + j) * channels;
            const auto add = [&](int64_t row, int64_t column, float share) {
              C* to = sum.data() + (row * x[2] + column) * channels;
              for (int64_t k = 0; k < channels; ++k) to[k] += static_cast<C>(share * g[k]);
            };
            add(v.low, h.low, (1 - v.share) * (1 - h.share));
            if (!bilinear) continue;
            add(v.low, h.high, (1 - v.share) * h.share);
            add(v.high, h.low, v.share * (1 - h.share));
            add(v.high, h.high, v.share * h.share);
          }
        }
      }
      T* out = c.out<T>() + image * size;
      for (int64_t k = 0; k < size; ++k) out[k] = static_cast<T>(sum[static_cast<size_t>(k)]);
    }
  });
}

template <class T>
void crop_grad_boxes(KernelContext& c) {
  const Shape &dy = c.in(0).shape(), &x = c.in(1).shape();
  const Boxes boxes = boxes_of(c, 2, x);
  check_crop_grads(dy, boxes);
  const int64_t rows = dy[1], cols = dy[2], channels = x[3];
  parallel_for(boxes.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      double sum[4] = {};
      const Side down = boxes.rows(b, rows), across = boxes.cols(b, cols);
      const T* image = c.in<T>(1) + boxes.images[b] * x[1] * x[2] * channels;
      for (int64_t i = 0; i < rows; ++i) {
        const float py = down.at(i);
        if (!down.inside(py)) continue;
        const Point v = point(py, true);
        for (int64_t j = 0; j < cols; ++j) {
          const float px = across.at(j);
          if (!across.inside(px)) continue;
          const Point h = point(px, true);
          const float* g = c.in<float>(0) + ((b * rows + i) * cols + j) * channels;
          float by_y = 0, by_x = 0;
          for (int64_t k = 0; k < channels; ++k) {
            const auto at = [&](int64_t row, int64_t column) {
              return static_cast<float>(image[(row * x[2] + column) * channels + k]);
            };
            const float tl = at(v.low, h.low), tr = at(v.low, h.high), bl = at(v.high, h.low), br = at(v.high, h.high);
            by_y += g[k] * ((1 - h.share) * (bl - tl) + h.share * (br - tr));
            by_x += g[k] * ((1 - v.share) * (tr - tl) + v.share * (br - bl));
          }
          sum[0] += static_cast<double>(by_y * down.by_begin(i));
          sum[1] += static_cast<double>(by_x * across.by_begin(j));
          sum[2] += static_cast<double>(by_y * down.by_end(i));
          sum[3] += static_cast<double>(by_x * across.by_end(j));
        }
      }
      for (int k = 0; k < 4; ++k) c.out<float>()[4 * b + k] = static_cast<float>(sum[k]);
    }
  });
}

Tensor crop_image_grad(const Tensor& dy, const Tensor& boxes, const Tensor& index, const Tensor& like,
                       const std::string& method) {
  return call_op("CropAndResizeGradImage", {dy, boxes, index, shape(like)},
                 {{"T", like.dtype()}, {"method", method}})[0];
}

}  // namespace

void register_image_crop(Registry& r) {
  r.define<CropAttrs>("CropAndResize")
      .in("image", crop_types)
      .in("boxes", DType::float32)
      .in("box_ind", DType::int32)
      .in_host("crop_size", DType::int32)
      .out("crops", DType::float32)
      .shape([](InferContext& c) {
        c.require_rank(0, 4);
        check_box_ranks(c, 1);
        c.require_rank(3, 1);
        const auto size = c.constant_ints(3);
        if (size && (size->size() != 2 || (*size)[0] < 1 || (*size)[1] < 1)) {
          throw invalid_argument("crop_size must be {{height, width}}, positive, got [{}]", comma_separated(*size));
        }
        const PartialShape &x = c.input(0), &boxes = c.input(1);
        c.output(PartialShape{boxes.has_rank() ? boxes[0] : kUnknownDim, size ? (*size)[0] : kUnknownDim,
                              size ? (*size)[1] : kUnknownDim, x.has_rank() ? x[3] : kUnknownDim});
      })
      .cpu([]<class T>(KernelContext& c, const CropAttrs& a) { crop<T>(c, a); })
      .grad([](const GradCtx& g, const CropAttrs& a) -> Gradients {
        const bool real = is_float(g.x(0).dtype());
        return {
            real ? g.want(0, [&] { return crop_image_grad(g.dy(), g.x(1), g.x(2), g.x(0), a.method); }) : Gradient(),
            a.method == "bilinear" ? g.want(1,
                                            [&] {
                                              static const Op<GradBoxesAttrs> op("CropAndResizeGradBoxes");
                                              return op({g.dy(), g.x(0), g.x(1), g.x(2)});
                                            })
                                   : Gradient(),
            {},
            {}};
      })
      .doc("Boxes {y1, x1, y2, x2}, in 0 to 1, cut out of the images that box_ind names and resized to crop_size.")
      .sample({.in = {Tensor::of<float>({1, 2, 3, 4}, Shape{1, 2, 2, 1}), Tensor{{0.f, 0.f, 1.f, 1.f}}, Tensor{0},
                      Tensor{3, 3}},
               .out = {Tensor::of<float>({1, 1.5, 2, 2, 2.5, 3, 3, 3.5, 4}, Shape{1, 3, 3, 1})},
               .fixed = {1}})
      .sample({.in = {Tensor::of<float>({1, 2, 3, 4}, Shape{1, 2, 2, 1}), Tensor{{0.f, 0.f, 2.f, 1.f}}, Tensor{0},
                      Tensor{2, 1}},
               .out = {Tensor::of<float>({1.5, -1}, Shape{1, 2, 1, 1})},
               .fixed = {1}},
              {.extrapolation_value = -1})
      .sample({.in = {sample_image({2, 5, 4, 3}), Tensor{{.1f, .2f, .8f, .9f}, {.9f, .1f, .3f, .6f}}, Tensor{1, 0},
                      Tensor{3, 4}},
               .fixed = {1}})
      .sample({.in = {sample_image({2, 5, 4, 3}), Tensor{{.1f, .2f, .8f, .9f}, {.9f, .1f, .3f, .6f}}, Tensor{1, 0},
                      Tensor{3, 4}},
               .fixed = {1}},
              {.method = "nearest"})
      .sample({.in = {sample_image({2, 5, 4, 3}), Tensor{{.1f, .2f, .8f, .9f}}, Tensor{2}, Tensor{3, 4}},
               .error = "box_ind[0] is 2"})
      .sample({.in = {sample_image({2, 0, 4, 0}), Tensor{{.1f, .2f, .8f, .9f}}, Tensor{0}, Tensor{3, 4}},
               .error = "without pixels"})
      .sample({.in = {sample_image({2, 5, 4, 3}), Tensor{{.1f, .2f, .8f, .9f}}, Tensor{0}, Tensor{3, 0}},
               .error = "crop_size"})
      .sample(
          {.in = {sample_image({2, 5, 4, 3}), Tensor{{.1f, .2f, .8f}}, Tensor{0}, Tensor{3, 3}}, .error = "[n, 4]"});

  r.define<GradImageAttrs>("CropAndResizeGradImage")
      .in("grads", DType::float32)
      .in("boxes", DType::float32)
      .in("box_ind", DType::int32)
      .in_host("image_size", DType::int32)
      .out("output", "T")
      .shape([](InferContext& c) {
        c.require_rank(0, 4);
        check_box_ranks(c, 1);
        c.require_rank(3, 1);
        const PartialShape size = c.constant_shape(3);
        if (size.has_rank() && size.rank() != 4) throw invalid_argument("image_size {} has no 4 values", size.str());
        c.output(size);
      })
      .cpu([](KernelContext& c, const GradImageAttrs& a) {
        if (a.T == DType::float16) return crop_grad_image<Half>(c, a);
        if (a.T == DType::float64) return crop_grad_image<double>(c, a);
        crop_grad_image<float>(c, a);
      })
      .grad([](const GradCtx& g, const GradImageAttrs& a) -> Gradients {
        const Tensor image = g.dy();
        return {g.want(0,
                       [&] {
                         return image::crop_and_resize(image, g.x(1), g.x(2), slice(shape(g.x(0)), {1}, {2}),
                                                       {.method = a.method});
                       }),
                {},
                {},
                {}};
      })
      .doc("The gradient of CropAndResize by the images.")
      .sample({.in = {Tensor::of<float>(std::vector<float>(9, 1), Shape{1, 3, 3, 1}), Tensor{{0.f, 0.f, 1.f, 1.f}},
                      Tensor{0}, Tensor{1, 2, 2, 1}},
               .out = {Tensor::of<float>({2.25, 2.25, 2.25, 2.25}, Shape{1, 2, 2, 1})},
               .fixed = {1}},
              {.T = DType::float32})
      .sample({.in = {sample_image({2, 3, 4, 2}), Tensor{{.1f, .2f, .8f, .9f}, {.9f, .1f, .3f, .6f}}, Tensor{1, 0},
                      Tensor{2, 5, 4, 2}},
               .fixed = {1}},
              {.T = DType::float64});

  r.define<GradBoxesAttrs>("CropAndResizeGradBoxes")
      .type("T", crop_types)
      .in("grads", DType::float32)
      .in("image")
      .in("boxes", DType::float32)
      .in("box_ind", DType::int32)
      .out("output", DType::float32)
      .shape([](InferContext& c) {
        c.require_rank(0, 4);
        c.require_rank(1, 4);
        check_box_ranks(c, 2);
        c.output(c.input(2));
      })
      .cpu([]<class T>(KernelContext& c) { crop_grad_boxes<T>(c); })
      .not_differentiable()
      .doc("The gradient of CropAndResize by the boxes.")
      .sample({.in = {Tensor::of<float>({1}, Shape{1, 1, 1, 1}), Tensor::of<float>({1, 2, 3, 5}, Shape{1, 2, 2, 1}),
                      Tensor{{0.f, 0.f, .5f, .5f}}, Tensor{0}},
               .out = {Tensor{{1.125f, .625f, 1.125f, .625f}}}})
      .sample({.in = {sample_image({1, 0, 1, 1}), sample_image({1, 2, 2, 1}), Tensor{{0.f, 0.f, .5f, .5f}}, Tensor{0}},
               .error = "grads without pixels"});
}

Tensor image::crop_and_resize(const Operand& image, const Operand& boxes, const Operand& box_indices,
                              const ShapeArg& crop_size, const CropAndResizeOptions& options) {
  static const Op<CropAttrs> op("CropAndResize");
  return op({image, boxes, box_indices, crop_size.tensor()},
            {.method = options.method, .extrapolation_value = options.extrapolation_value});
}

}  // namespace runnel
