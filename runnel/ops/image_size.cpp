// Other sizes: what users call, made of the ops.
#include <cmath>
#include <utility>

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/image.h"
#include "runnel/ops/image_extent.h"

namespace runnel {

ImageBatch::ImageBatch(const Operand& image, const char* what) : images_(image.value()) {
  const PartialShape s = images_.partial_shape();
  if (!s.has_rank() || (s.rank() != 3 && s.rank() != 4)) {
    throw invalid_argument(
        "[{}] images are [height, width, channels] or [batch, height, width, channels], got {}{} (ensure_shape tells a "
        "traced function what it cannot know)",
        what, dtype_name(images_.dtype()), s.str());
  }
  single_ = s.rank() == 3;
  if (single_) images_ = expand_dims(images_, 0);
}

Extent ImageBatch::size(int axis) const {
  const int64_t dim = images_.partial_shape()[axis];
  return dim >= 0 ? Extent(dim) : Extent(shape(images_)[axis]);
}

Tensor ImageBatch::unbatched(const Tensor& images) const { return single_ ? squeeze(images, 0) : images; }

namespace image {
namespace {

Tensor call(const char* name, const std::vector<Tensor>& inputs, const Operand& where,
            const std::vector<std::pair<std::string, AttrValue>>& attrs) {
  return call_op(name, inputs, attrs, where.where())[0];
}

// The op and kernel of a method.
struct Method {
  const char* name;
  const char* op;      // without antialiasing
  const char* kernel;  // with it, or always
};
constexpr Method kMethods[] = {
    {"bilinear", "ResizeBilinear", "triangle"}, {"nearest", "ResizeNearestNeighbor", nullptr},
    {"bicubic", "ResizeBicubic", "keyscubic"},  {"area", "ResizeArea", nullptr},
    {"lanczos3", nullptr, "lanczos3"},          {"lanczos5", nullptr, "lanczos5"},
    {"gaussian", nullptr, "gaussian"},          {"mitchellcubic", nullptr, "mitchellcubic"},
};

const Method& method_of(const std::string& name) {
  for (const Method& m : kMethods) {
    if (name == m.name) return m;
  }
  throw invalid_argument(
      "[image::resize] method must be bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian or mitchellcubic, "
      "got '{}'",
      name);
}

struct Size {
  Extent height, width;
};

Size size_of(const ShapeArg& size) {
  const Tensor t = size.tensor();
  const PartialShape s = t.partial_shape();
  if (s.has_rank() && (s.rank() != 1 || (s[0] >= 0 && s[0] != 2))) {
    throw invalid_argument("[image::resize] size must be {{height, width}}, got a tensor of shape {}", s.str());
  }
  if (const Tensor* known = t.known_value()) {
    const Dims dims = int_values(*known);
    return {dims[0], dims[1]};
  }
  return {Extent(t[0]), Extent(t[1])};
}

// The largest size of the images' own shape inside `size`.
Size same_shape(const ImageBatch& images, const Size& size) {
  const Extent h = images.height(), w = images.width();
  if (h.known() && w.known() && size.height.known() && size.width.known()) {
    const double scale = std::min(static_cast<double>(size.height.value()) / static_cast<double>(h.value()),
                                  static_cast<double>(size.width.value()) / static_cast<double>(w.value()));
    const auto scaled = [&](const Extent& e) {
      return static_cast<int64_t>(std::nearbyint(scale * static_cast<double>(e.value())));
    };
    return {scaled(h), scaled(w)};
  }
  const auto real = [](const Extent& e) { return cast(e.tensor(), DType::float64); };
  const Tensor scale = minimum(real(size.height) / real(h), real(size.width) / real(w));
  return {Extent(cast(round(scale * real(h)), DType::int32)), Extent(cast(round(scale * real(w)), DType::int32))};
}

Tensor resize_plain(const ImageBatch& images, const Size& size, ResizeOptions& options, const Operand& where) {
  const Method& m = method_of(options.method);
  const Tensor& x = images.images();
  const Tensor wanted = cast(shape_of_extents({size.height, size.width}).tensor(), DType::int32);
  const Extent h = images.height(), w = images.width();
  const bool same = h.known() && w.known() && size.height.known() && size.width.known() &&
                    h.value() == size.height.value() && w.value() == size.width.value();
  if (same && m.op) return options.method == "nearest" ? x : cast(x, DType::float32);
  if (m.kernel && (options.antialias || !m.op)) {
    const Tensor from = cast(shape_of_extents({h, w}).tensor(), DType::float32);
    return call("ScaleAndTranslate", {x, wanted, cast(wanted, DType::float32) / from, zeros({2})}, where,
                {{"kernel_type", std::string(m.kernel)}, {"antialias", options.antialias}});
  }
  if (options.method == "area") return call(m.op, {x, wanted}, where, {});
  if (options.method == "bilinear" && options.scale != 1) {
    return call("_ResizeBilinearScaled", {x, wanted}, where,
                {{"half_pixel_centers", true}, {"scale", std::exchange(options.scale, 1)}});
  }
  return call(m.op, {x, wanted}, where, {{"half_pixel_centers", true}});
}

Tensor resize_batch(const ImageBatch& images, const Size& size, ResizeOptions options, const Operand& where) {
  const Tensor y = resize_plain(images, size, options, where);
  if (options.scale == 1) return y;  // or done already
  if (!is_float(y.dtype())) {
    throw invalid_argument("[image::resize] scale {} of {} pixels: '{}' keeps the dtype", options.scale,
                           dtype_name(y.dtype()), options.method);
  }
  return y * options.scale;
}

}  // namespace

Tensor resize(const Operand& images, const ShapeArg& size, const ResizeOptions& options) {
  return composed(images.where(), [&]() -> Tensor {
    const ImageBatch batch(images, "image::resize");
    Size wanted = size_of(size);
    if (options.preserve_aspect_ratio) wanted = same_shape(batch, wanted);
    return batch.unbatched(resize_batch(batch, wanted, options, images));
  });
}

Tensor resize_with_pad(const Operand& image, int64_t target_height, int64_t target_width,
                       const ResizeOptions& options) {
  return composed(image.where(), [&]() -> Tensor {
    if (target_height <= 0 || target_width <= 0) {
      throw invalid_argument("[image::resize_with_pad] the size must be positive, got {} x {}", target_height,
                             target_width);
    }
    const ImageBatch batch(image, "image::resize_with_pad");
    const Extent h = batch.height(), w = batch.width();
    const Size target{target_height, target_width};
    // As TensorFlow has it: the larger ratio divides both sides, what remains is cut off; the rest is black, evenly.
    Size inner{0, 0};
    if (h.known() && w.known()) {
      const double ratio = std::max(static_cast<double>(w.value()) / static_cast<double>(target_width),
                                    static_cast<double>(h.value()) / static_cast<double>(target_height));
      inner = {static_cast<int64_t>(static_cast<double>(h.value()) / ratio),
               static_cast<int64_t>(static_cast<double>(w.value()) / ratio)};
    } else {
      const auto real = [](const Extent& e) { return cast(e.tensor(), DType::float64); };
      const Tensor ratio = maximum(real(w) / real(target.width), real(h) / real(target.height));
      inner = {Extent(cast(floor(real(h) / ratio), DType::int32)), Extent(cast(floor(real(w) / ratio), DType::int32))};
    }
    ResizeOptions plain = options;
    plain.preserve_aspect_ratio = false;
    const Tensor small = resize_batch(batch, inner, plain, image);
    const Extent top = (target.height - inner.height).half(), left = (target.width - inner.width).half();
    return batch.unbatched(
        pad_to_bounding_box(small, top.tensor(), left.tensor(), target.height.tensor(), target.width.tensor()));
  });
}

}  // namespace image
}  // namespace runnel
