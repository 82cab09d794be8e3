#include "runnel/keras/layers/image_transform.h"

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"
#include "runnel/ops/image_extent.h"
#include "runnel/ops/math.h"

namespace runnel::keras {
namespace {

// A coordinate on an axis of `size` pixels brought to where the pixel that stands for it is: in [0, size - 1] for all
// modes but "constant".
Tensor map_coordinate(const Tensor& at, const Tensor& size, const std::string& fill_mode) {
  if (fill_mode == "constant") return at;
  const Tensor last = size - 1;
  Tensor mapped = at;
  if (fill_mode == "reflect") {
    const Tensor round_trip = floormod(at, size * 2);
    mapped = where(round_trip < size, round_trip, size * 2 - 1 - round_trip);
  } else if (fill_mode == "wrap") {  // as TensorFlow counts: a turn begins with every size - 1 pixels
    const Tensor turn = maximum(last, 1);
    mapped = where(at < 0, at + size * (floor(-at / turn) + 1), where(at > last, at - size * floor(at / turn), at));
  }
  return clip_by_value(mapped, 0, last);
}

// Reads pixels of [batch, height, width, channels] at whole coordinates, [batch, height, width] each.
class PixelReader {
 public:
  PixelReader(const Tensor& images, const Tensor& height, const Tensor& width, const AffineTransformOptions& options)
      : height_(height), width_(width), fills_(options.fill_mode == "constant"), fill_(options.fill_value) {
    const ImageBatch batch(images, "affine_transform");
    const Extent h = batch.height(), w = batch.width(), channels = batch.size(3);
    if (h.known() && w.known() && channels.known()) {
      pixels_ = reshape(images, {-1, h.value() * w.value(), channels.value()});
    } else {
      pixels_ = reshape(images, stack({batch.size(0).tensor(), h.tensor() * w.tensor(), channels.tensor()}));
    }
  }

  Tensor operator()(const Tensor& y, const Tensor& x) const {
    const Tensor row = clip_by_value(y, 0, height_ - 1), column = clip_by_value(x, 0, width_ - 1);
    const Tensor index = cast(row, DType::int32) * cast(width_, DType::int32) + cast(column, DType::int32);
    const Tensor values = gather(pixels_, index, 1, 1);
    if (!fills_) return values;
    const Tensor inside = logical_and(equal(row, y), equal(column, x));
    return where(expand_dims(inside, -1), values, fill_);
  }

 private:
  Tensor pixels_;          // [batch, height * width, channels]
  Tensor height_, width_;  // float32
  bool fills_;
  double fill_;
};

// In float32, which numbers up to 2^24 pixels a side exactly.
Tensor float_size(const Extent& size) {
  return size.known() ? Tensor(static_cast<float>(size.value())) : cast(size.tensor(), DType::float32);
}

// Halves go away from zero, as in TensorFlow's kernel.
Tensor nearest_pixel(const Tensor& at) { return sign(at) * floor(abs(at) + 0.5); }

Extent scaled_extent(const Extent& size, int64_t times, int64_t by) {
  return size.known() ? Extent(size.value() * times / by)
                      : Extent(floordiv(size.tensor() * int_scalar(times), int_scalar(by)));
}

}  // namespace

void check_affine_options(const AffineTransformOptions& options, const char* layer) {
  const std::string& mode = options.fill_mode;
  if (mode != "reflect" && mode != "wrap" && mode != "constant" && mode != "nearest") {
    throw invalid_argument("[{}] fill_mode must be reflect, wrap, constant or nearest, got \"{}\"", layer, mode);
  }
  if (options.interpolation != "bilinear" && options.interpolation != "nearest") {
    throw invalid_argument("[{}] interpolation must be bilinear or nearest, got \"{}\"", layer, options.interpolation);
  }
}

Tensor affine_transform(const Tensor& images, const Tensor& transforms, const AffineTransformOptions& options) {
  const ImageBatch batch(images, "affine_transform");
  const Tensor height = float_size(batch.height()), width = float_size(batch.width());
  const Tensor out_x = reshape(range(width), {1, 1, -1});
  const Tensor out_y = reshape(range(height), {1, -1, 1});
  const auto along = [&](int64_t first) {
    const auto factor = [&](int64_t i) { return reshape(transforms(all, i), {-1, 1, 1}); };
    return factor(first) * out_x + factor(first + 1) * out_y + factor(first + 2);
  };
  const Tensor x = map_coordinate(along(0), width, options.fill_mode);
  const Tensor y = map_coordinate(along(3), height, options.fill_mode);
  const PixelReader read(cast(images, DType::float32), height, width, options);
  Tensor out;
  if (options.interpolation == "nearest") {
    out = read(nearest_pixel(y), nearest_pixel(x));
  } else {
    const Tensor left = floor(x), top = floor(y);
    const Tensor right_share = expand_dims(x - left, -1), bottom_share = expand_dims(y - top, -1);
    const auto row = [&](const Tensor& at) {
      return read(at, left) * (1 - right_share) + read(at, left + 1) * right_share;
    };
    out = row(top) * (1 - bottom_share) + row(top + 1) * bottom_share;
  }
  return ensure_shape(cast(out, images.dtype()), images.partial_shape());
}

Tensor crop_to_aspect_ratio(const Tensor& images, int64_t height, int64_t width) {
  const ImageBatch batch(images, "crop_to_aspect_ratio");
  const Extent h = batch.height(), w = batch.width();
  const Extent kept_h = min(h, scaled_extent(w, height, width)), kept_w = min(w, scaled_extent(h, width, height));
  return image::crop_to_bounding_box(images, (h - kept_h).half().tensor(), (w - kept_w).half().tensor(),
                                     kept_h.tensor(), kept_w.tensor());
}

}  // namespace runnel::keras
