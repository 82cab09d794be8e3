// Ranges of values, brightness, grey.
#include <cmath>
#include <limits>

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"
#include "runnel/ops/image_extent.h"
#include "runnel/ops/math.h"

namespace runnel::image {
namespace {

// The largest value of an integer dtype.
double largest(DType dtype) {
  switch (dtype) {
    case DType::uint8: return 0xff;
    case DType::int8: return 0x7f;
    case DType::uint16: return 0xffff;
    case DType::int16: return 0x7fff;
    case DType::uint32: return 0xffffffff;
    case DType::int32: return 0x7fffffff;
    case DType::uint64: return static_cast<double>(std::numeric_limits<uint64_t>::max());
    default: return static_cast<double>(std::numeric_limits<int64_t>::max());
  }
}

int bits_of(DType dtype) { return static_cast<int>(dtype_size(dtype)) * 8 - (is_signed_int(dtype) ? 1 : 0); }

}  // namespace

Tensor convert_image_dtype(const Operand& image, DType dtype, bool saturate) {
  return composed(image.where(), [&]() -> Tensor {
    const Tensor x = image.value();
    const DType from = x.dtype();
    const auto usable = [](DType t) { return is_float(t) || is_integer(t); };
    if (!usable(from) || !usable(dtype)) {
      throw invalid_argument("[image::convert_image_dtype] images are numbers: from {} to {}", dtype_name(from),
                             dtype_name(dtype));
    }
    if (from == dtype) return x;
    const auto to = [&](const Tensor& t) { return saturate ? saturate_cast(t, dtype) : cast(t, dtype); };
    if (is_float(from) && is_float(dtype)) return cast(x, dtype);
    if (is_float(dtype)) return cast(x, dtype) * (1 / largest(from));
    if (is_float(from)) {
      // Half a step above the largest value: each integer stands for a range of the same length.
      const Tensor wide = dtype_size(from) < 4 ? cast(x, DType::float32) : x;
      return to(wide * (largest(dtype) + 0.5));
    }
    const int step = bits_of(dtype) - bits_of(from);
    if (step < 0) return to(floordiv(x, constant(int64_t{1} << -step, from)));
    return to(x) * constant(int64_t{1} << step, dtype);
  });
}

Tensor adjust_brightness(const Operand& image, const Operand& delta) {
  return composed(image.where(), [&]() -> Tensor {
    const Tensor x = image.value();
    if (is_float(x.dtype())) return x + cast(delta, x.dtype());
    const Tensor y = convert_image_dtype(x, DType::float32) + cast(delta, DType::float32);
    return convert_image_dtype(y, x.dtype(), true);
  });
}

Tensor adjust_gamma(const Operand& image, double gamma, double gain) {
  return composed(image.where(), [&]() -> Tensor {
    if (!(gamma >= 0)) throw invalid_argument("[image::adjust_gamma] gamma must not be negative, got {}", gamma);
    const Tensor x = image.value();
    const Tensor y = pow(convert_image_dtype(x, is_float(x.dtype()) ? x.dtype() : DType::float32), gamma) * gain;
    return is_float(x.dtype()) ? y : convert_image_dtype(y, x.dtype(), true);
  });
}

Tensor rgb_to_grayscale(const Operand& images) {
  return composed(images.where(), [&]() -> Tensor {
    const Tensor x = images.value();
    const PartialShape s = x.partial_shape();
    if (s.has_rank() && (s.rank() < 1 || (s[s.rank() - 1] >= 0 && s[s.rank() - 1] != 3))) {
      throw invalid_argument("[image::rgb_to_grayscale] the last dimension must be the 3 colours, got {}", s.str());
    }
    const Tensor f = convert_image_dtype(x, is_float(x.dtype()) ? x.dtype() : DType::float32);
    const Tensor grey = reduce_sum(f * constant({0.2989, 0.5870, 0.1140}, f.dtype()), -1, true);
    return convert_image_dtype(grey, x.dtype());
  });
}

Tensor grayscale_to_rgb(const Operand& images) {
  return composed(images.where(), [&]() -> Tensor {
    const Tensor x = images.value();
    const PartialShape s = x.partial_shape();
    if (s.has_rank() && (s.rank() < 1 || (s[s.rank() - 1] >= 0 && s[s.rank() - 1] != 1))) {
      throw invalid_argument("[image::grayscale_to_rgb] the last dimension must be 1, got {}", s.str());
    }
    return concat({x, x, x}, -1);
  });
}

Tensor per_image_standardization(const Operand& image) {
  return composed(image.where(), [&]() -> Tensor {
    const ImageBatch batch(image, "image::per_image_standardization");
    const Tensor x = cast(batch.images(), DType::float32);
    const Tensor mean = reduce_mean(x, {1, 2, 3}, true);
    const Tensor deviation = math::reduce_std(x, {1, 2, 3}, true);
    // A uniform image is divided by this, not by zero.
    Tensor least;
    const Extent h = batch.height(), w = batch.width(), c = batch.size(3);
    if (h.known() && w.known() && c.known()) {
      least = Tensor(1 / std::sqrt(static_cast<double>(h.value() * w.value() * c.value())));
    } else {
      least = rsqrt(cast(h.tensor() * w.tensor() * c.tensor(), DType::float32));
    }
    return batch.unbatched((x - mean) / maximum(deviation, least));
  });
}

}  // namespace runnel::image
