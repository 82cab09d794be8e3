// Cutting, padding, turning.
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/image.h"
#include "runnel/ops/image_extent.h"

namespace runnel::image {
namespace {

void check_box(const char* what, const Extent& offset, const Extent& size, const Extent& outer, const char* side) {
  if (offset.known() && offset.value() < 0) {
    throw invalid_argument("[{}] offset_{} is negative: {}", what, side, offset.value());
  }
  if (!offset.known() || !size.known() || !outer.known()) return;
  if (size.value() < 0 || offset.value() + size.value() > outer.value()) {
    throw invalid_argument("[{}] {} from {} does not fit into a {} of {}", what, size.value(), offset.value(), side,
                           outer.value());
  }
}

Tensor crop(const ImageBatch& batch, const Extent& top, const Extent& left, const Extent& height, const Extent& width) {
  return slice(batch.images(), shape_of_extents({0, top, left, 0}), shape_of_extents({-1, height, width, -1}));
}

Tensor pad_around(const Tensor& images, const Extent& top, const Extent& bottom, const Extent& left,
                  const Extent& right) {
  const Tensor flat = shape_of_extents({0, 0, top, bottom, left, right, 0, 0}).tensor();
  return pad(images, reshape(flat, {4, 2}));
}

}  // namespace

Tensor crop_to_bounding_box(const Operand& image, const Operand& offset_height, const Operand& offset_width,
                            const Operand& target_height, const Operand& target_width) {
  return composed(image.where(), [&]() -> Tensor {
    const char* what = "image::crop_to_bounding_box";
    const ImageBatch batch(image, what);
    const Extent top(offset_height), left(offset_width), height(target_height), width(target_width);
    check_box(what, top, height, batch.height(), "height");
    check_box(what, left, width, batch.width(), "width");
    return batch.unbatched(crop(batch, top, left, height, width));
  });
}

Tensor pad_to_bounding_box(const Operand& image, const Operand& offset_height, const Operand& offset_width,
                           const Operand& target_height, const Operand& target_width) {
  return composed(image.where(), [&]() -> Tensor {
    const char* what = "image::pad_to_bounding_box";
    const ImageBatch batch(image, what);
    const Extent top(offset_height), left(offset_width), height(target_height), width(target_width);
    check_box(what, top, batch.height(), height, "height");
    check_box(what, left, batch.width(), width, "width");
    return batch.unbatched(
        pad_around(batch.images(), top, height - top - batch.height(), left, width - left - batch.width()));
  });
}

Tensor resize_with_crop_or_pad(const Operand& image, int64_t target_height, int64_t target_width) {
  return composed(image.where(), [&]() -> Tensor {
    const char* what = "image::resize_with_crop_or_pad";
    if (target_height <= 0 || target_width <= 0) {
      throw invalid_argument("[{}] the size must be positive, got {} x {}", what, target_height, target_width);
    }
    const ImageBatch batch(image, what);
    const Extent h = batch.height(), w = batch.width();
    const auto excess = [](const Extent& size, int64_t target) { return max(size - target, 0); };
    const auto lack = [](const Extent& size, int64_t target) { return max(Extent(target) - size, 0); };
    const Extent height = min(h, target_height), width = min(w, target_width);
    const Tensor cut = crop(batch, excess(h, target_height).half(), excess(w, target_width).half(), height, width);
    const Extent top = lack(h, target_height).half(), left = lack(w, target_width).half();
    const Tensor padded =
        pad_around(cut, top, Extent(target_height) - top - height, left, Extent(target_width) - left - width);
    return batch.unbatched(ensure_shape(padded, PartialShape{kUnknownDim, target_height, target_width, kUnknownDim}));
  });
}

Tensor central_crop(const Operand& image, double central_fraction) {
  return composed(image.where(), [&]() -> Tensor {
    if (!(central_fraction > 0 && central_fraction <= 1)) {
      throw invalid_argument("[image::central_crop] central_fraction must be in (0, 1], got {}", central_fraction);
    }
    if (central_fraction == 1) return image.value();
    const ImageBatch batch(image, "image::central_crop");
    // The border to cut off, rounded down, on both sides.
    const auto border = [&](const Extent& size) -> Extent {
      if (size.known()) {
        const auto n = static_cast<double>(size.value());
        return static_cast<int64_t>((n - n * central_fraction) / 2);
      }
      const Tensor n = cast(size.tensor(), DType::float64);
      return Extent(cast((n - n * central_fraction) / 2.0, DType::int32));
    };
    const Extent top = border(batch.height()), left = border(batch.width());
    return batch.unbatched(crop(batch, top, left, batch.height() - top - top, batch.width() - left - left));
  });
}

Tensor flip_left_right(const Operand& image) {
  return composed(image.where(), [&]() -> Tensor {
    const ImageBatch batch(image, "image::flip_left_right");
    return batch.unbatched(reverse(batch.images(), 2));
  });
}

Tensor flip_up_down(const Operand& image) {
  return composed(image.where(), [&]() -> Tensor {
    const ImageBatch batch(image, "image::flip_up_down");
    return batch.unbatched(reverse(batch.images(), 1));
  });
}

Tensor transpose(const Operand& image) {
  return composed(image.where(), [&]() -> Tensor {
    const ImageBatch batch(image, "image::transpose");
    return batch.unbatched(runnel::transpose(batch.images(), {0, 2, 1, 3}));
  });
}

Tensor rot90(const Operand& image, int64_t k) {
  return composed(image.where(), [&]() -> Tensor {
    const ImageBatch batch(image, "image::rot90");
    const Tensor& x = batch.images();
    switch ((k % 4 + 4) % 4) {
      case 1: return batch.unbatched(runnel::transpose(reverse(x, 2), {0, 2, 1, 3}));
      case 2: return batch.unbatched(reverse(x, {1, 2}));
      case 3: return batch.unbatched(reverse(runnel::transpose(x, {0, 2, 1, 3}), 2));
      default: return image.value();
    }
  });
}

}  // namespace runnel::image
