// Changes at random, with the state of the program or with a seed in the call.
#include <limits>

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/image.h"
#include "runnel/ops/image_extent.h"
#include "runnel/ops/random.h"

namespace runnel::image {
namespace {

// One number from [low, high), or several.
struct Draw {
  int64_t seed = 0;
  Tensor stateless;  // defined: a seed of two integers

  Tensor uniform(const ShapeArg& shape, double low, double high) const {
    return stateless.defined() ? random::stateless_uniform(shape, stateless, low, high)
                               : random::uniform(shape, low, high, DType::float32, seed);
  }
  Tensor integers(const ShapeArg& shape, int64_t low, int64_t high) const {
    const Tensor lo = int_scalar(low), hi = int_scalar(high);
    return stateless.defined() ? random::stateless_uniform(shape, stateless, lo, hi, DType::int32)
                               : random::uniform(shape, lo, hi, DType::int32, seed);
  }
};

Draw stateful(int64_t seed) { return {.seed = seed}; }
Draw stateless(const Operand& seed) { return {.stateless = seed.value()}; }

Tensor flip(const Operand& image, int axis, const Draw& draw, const char* what) {
  return composed(image.where(), [&]() -> Tensor {
    const ImageBatch batch(image, what);
    const Tensor& x = batch.images();
    if (batch.single()) {
      const Tensor turn = draw.uniform({}, 0, 1) < 0.5;
      if (!turn.is_symbolic()) return static_cast<bool>(turn) ? batch.unbatched(reverse(x, axis)) : image.value();
      return batch.unbatched(where(turn, reverse(x, axis), x));
    }
    const Tensor turns = draw.uniform(shape_of_extents({batch.size(0)}), 0, 1) > 0.5;
    return where(reshape(turns, {-1, 1, 1, 1}), reverse(x, axis), x);
  });
}

Tensor brightness(const Operand& image, double max_delta, const Draw& draw) {
  return composed(image.where(), [&]() -> Tensor {
    if (!(max_delta >= 0)) throw invalid_argument("[image::random_brightness] max_delta is negative: {}", max_delta);
    return adjust_brightness(image, draw.uniform({}, -max_delta, max_delta));
  });
}

void check_range(const char* what, double lower, double upper) {
  if (!(lower >= 0) || !(upper > lower)) {
    throw invalid_argument("[{}] needs 0 <= lower < upper, got {} and {}", what, lower, upper);
  }
}

Tensor contrast(const Operand& image, double lower, double upper, const Draw& draw) {
  return composed(image.where(), [&]() -> Tensor {
    check_range("image::random_contrast", lower, upper);
    return adjust_contrast(image, draw.uniform({}, lower, upper));
  });
}

Tensor saturation(const Operand& image, double lower, double upper, const Draw& draw) {
  return composed(image.where(), [&]() -> Tensor {
    check_range("image::random_saturation", lower, upper);
    return adjust_saturation(image, draw.uniform({}, lower, upper));
  });
}

Tensor hue(const Operand& image, double max_delta, const Draw& draw) {
  return composed(image.where(), [&]() -> Tensor {
    if (!(max_delta >= 0 && max_delta <= 0.5)) {
      throw invalid_argument("[image::random_hue] max_delta must be in [0, 0.5], got {}", max_delta);
    }
    return adjust_hue(image, draw.uniform({}, -max_delta, max_delta));
  });
}

Tensor jpeg_quality(const Operand& image, int64_t least, int64_t most, const Draw& draw) {
  return composed(image.where(), [&]() -> Tensor {
    if (least < 0 || most > 100 || least >= most) {
      throw invalid_argument("[image::random_jpeg_quality] needs 0 <= min_quality < max_quality <= 100, got {} and {}",
                             least, most);
    }
    return adjust_jpeg_quality(image, draw.integers({}, least, most));
  });
}

Tensor crop(const Operand& value, const ShapeArg& size, const Draw& draw) {
  return composed(value.where(), [&]() -> Tensor {
    const Tensor x = value.value();
    const Tensor sizes = cast(size.tensor(), DType::int32);
    const PartialShape s = x.partial_shape();
    const auto wanted = static_ints(sizes);
    if (wanted && s.has_rank()) {
      bool fits = static_cast<int>(wanted->size()) == s.rank();
      for (int i = 0; fits && i < s.rank(); ++i) {
        const int64_t n = (*wanted)[static_cast<size_t>(i)];
        fits = n >= 0 && (s[i] < 0 || n <= s[i]);
      }
      if (!fits) {
        throw invalid_argument("[image::random_crop] size [{}] does not fit into {}", comma_separated(*wanted),
                               s.str());
      }
    }
    // Where it may begin: as in TensorFlow, a large number taken modulo the number of places.
    const Tensor places = shape(x) - sizes + 1;
    const ShapeArg count = s.has_rank() ? ShapeArg({s.rank()}) : ShapeArg(shape(sizes));
    const Tensor offset = floormod(draw.integers(count, 0, std::numeric_limits<int32_t>::max()), places);
    return slice(x, offset, sizes);
  });
}

}  // namespace

Tensor random_crop(const Operand& value, const ShapeArg& size, int64_t seed) {
  return crop(value, size, stateful(seed));
}
Tensor random_flip_left_right(const Operand& image, int64_t seed) {
  return flip(image, 2, stateful(seed), "image::random_flip_left_right");
}
Tensor random_flip_up_down(const Operand& image, int64_t seed) {
  return flip(image, 1, stateful(seed), "image::random_flip_up_down");
}
Tensor random_brightness(const Operand& image, double max_delta, int64_t seed) {
  return brightness(image, max_delta, stateful(seed));
}
Tensor random_contrast(const Operand& image, double lower, double upper, int64_t seed) {
  return contrast(image, lower, upper, stateful(seed));
}
Tensor random_hue(const Operand& image, double max_delta, int64_t seed) {
  return hue(image, max_delta, stateful(seed));
}
Tensor random_saturation(const Operand& image, double lower, double upper, int64_t seed) {
  return saturation(image, lower, upper, stateful(seed));
}
Tensor random_jpeg_quality(const Operand& image, int64_t min_quality, int64_t max_quality, int64_t seed) {
  return jpeg_quality(image, min_quality, max_quality, stateful(seed));
}

Tensor stateless_random_crop(const Operand& value, const ShapeArg& size, const Operand& seed) {
  return crop(value, size, stateless(seed));
}
Tensor stateless_random_flip_left_right(const Operand& image, const Operand& seed) {
  return flip(image, 2, stateless(seed), "image::stateless_random_flip_left_right");
}
Tensor stateless_random_flip_up_down(const Operand& image, const Operand& seed) {
  return flip(image, 1, stateless(seed), "image::stateless_random_flip_up_down");
}
Tensor stateless_random_brightness(const Operand& image, double max_delta, const Operand& seed) {
  return brightness(image, max_delta, stateless(seed));
}
Tensor stateless_random_contrast(const Operand& image, double lower, double upper, const Operand& seed) {
  return contrast(image, lower, upper, stateless(seed));
}
Tensor stateless_random_hue(const Operand& image, double max_delta, const Operand& seed) {
  return hue(image, max_delta, stateless(seed));
}
Tensor stateless_random_saturation(const Operand& image, double lower, double upper, const Operand& seed) {
  return saturation(image, lower, upper, stateless(seed));
}
Tensor stateless_random_jpeg_quality(const Operand& image, int64_t min_quality, int64_t max_quality,
                                     const Operand& seed) {
  return jpeg_quality(image, min_quality, max_quality, stateless(seed));
}

}  // namespace runnel::image
