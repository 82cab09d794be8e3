#include "runnel/keras/layers/random_image_layers.h"

#include <limits>
#include <numbers>

#include "runnel/base/format.h"
#include "runnel/function/control_flow.h"
#include "runnel/keras/layers/image_transform.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"
#include "runnel/ops/image_extent.h"
#include "runnel/ops/math.h"
#include "runnel/ops/random.h"

namespace runnel::keras {
namespace {

// Draws of one layer differ from each other also inside a function, where each has a stream from its seed.
int64_t draw_seed(const std::optional<int64_t>& seed, int64_t draw) { return seed ? *seed + draw : 0; }

void check_factor(const FactorRange& factor, const char* layer, const char* setting) {
  if (factor.lower <= factor.upper) return;
  throw invalid_argument("[{}] {} must be a number >= 0 or a range {{lower, upper}}, got {}", layer, setting,
                         factor.config().to_json());
}

// One draw for each image, [batch].
Tensor draw_factors(const ImageBatch& batch, double lower, double upper, int64_t seed) {
  return random::uniform(shape_of_extents({batch.size(0)}), lower, upper, DType::float32, seed);
}

// The distance from the first pixel's middle to the last one's.
Tensor span(const Extent& size) {
  return size.known() ? Tensor(static_cast<float>(size.value() - 1)) : cast(size.tensor(), DType::float32) - 1;
}

}  // namespace

// --- RandomFlip ---

void RandomFlip::prepare() {
  const std::string& mode = options_.mode;
  if (mode == "horizontal_and_vertical" || mode == "horizontal" || mode == "vertical") return;
  throw invalid_argument("[RandomFlip] mode must be horizontal, vertical or horizontal_and_vertical, got \"{}\"", mode);
}

Tensor RandomFlip::call(const Tensor& input, const CallArgs& args) {
  Tensor x = cast(input, compute_dtype());
  if (!args.training.value_or(false)) return x;
  if (options_.mode != "vertical") x = image::random_flip_left_right(x, draw_seed(options_.seed, 0));
  if (options_.mode != "horizontal") x = image::random_flip_up_down(x, draw_seed(options_.seed, 1));
  return x;
}

// --- RandomRotation and RandomZoom ---

Config FactorRange::config() const {
  return lower == -upper ? Config(upper) : Config(std::vector<double>{lower, upper});
}

FactorRange FactorRange::from_config(const Config& config) {
  if (config.is_number()) return config.as_double();
  const std::vector<double> ends = config.as_doubles();
  if (ends.size() != 2) {
    throw invalid_argument("[keras] a factor is a number or a range of two, got {}", config.to_json());
  }
  return {ends[0], ends[1]};
}

void RandomRotation::prepare() {
  check_factor(options_.factor, kClassName, "factor");
  check_affine_options({options_.fill_mode, options_.interpolation, options_.fill_value}, kClassName);
}

Tensor RandomRotation::call(const Tensor& input, const CallArgs& args) {
  const Tensor x = cast(input, compute_dtype());
  if (!args.training.value_or(false)) return x;
  const ImageBatch batch(x, kClassName);
  const double turn = 2 * std::numbers::pi;
  const Tensor angle =
      draw_factors(batch, options_.factor.lower * turn, options_.factor.upper * turn, draw_seed(options_.seed, 0));
  const Tensor c = cos(angle), s = sin(angle);
  const Tensor w = span(batch.width()), h = span(batch.height());
  const Tensor transforms = stack({c, -s, (w - (c * w - s * h)) / 2, s, c, (h - (s * w + c * h)) / 2}, 1);
  return batch.unbatched(
      affine_transform(batch.images(), transforms, {options_.fill_mode, options_.interpolation, options_.fill_value}));
}

void RandomZoom::prepare() {
  const FactorRange& width = options_.width_factor.value_or(options_.height_factor);
  check_factor(options_.height_factor, kClassName, "height_factor");
  check_factor(width, kClassName, "width_factor");
  if (options_.height_factor.lower <= -1 || width.lower <= -1) {
    throw invalid_argument("[RandomZoom] factors must be above -1, got {} and {}",
                           options_.height_factor.config().to_json(), width.config().to_json());
  }
  check_affine_options({options_.fill_mode, options_.interpolation, options_.fill_value}, kClassName);
}

Tensor RandomZoom::call(const Tensor& input, const CallArgs& args) {
  const Tensor x = cast(input, compute_dtype());
  if (!args.training.value_or(false)) return x;
  const ImageBatch batch(x, kClassName);
  const auto draw = [&](const FactorRange& factor, int64_t number) {
    return draw_factors(batch, 1 + factor.lower, 1 + factor.upper, draw_seed(options_.seed, number));
  };
  const Tensor height = draw(options_.height_factor, 0);
  const Tensor width = options_.width_factor ? draw(*options_.width_factor, 1) : height;
  const Tensor none = zeros_like(height);
  const Tensor transforms = stack(
      {width, none, span(batch.width()) / 2 * (1 - width), none, height, span(batch.height()) / 2 * (1 - height)}, 1);
  return batch.unbatched(
      affine_transform(batch.images(), transforms, {options_.fill_mode, options_.interpolation, options_.fill_value}));
}

// --- RandomCrop ---

void RandomCrop::prepare() {
  if (options_.height < 1 || options_.width < 1) {
    throw invalid_argument("[RandomCrop] height and width must be positive, got {} and {}", options_.height,
                           options_.width);
  }
}

Tensor RandomCrop::call(const Tensor& input, const CallArgs& args) {
  const Tensor x = cast(input, compute_dtype());
  const ImageBatch batch(x, kClassName);
  const int64_t height = options_.height, width = options_.width;
  const auto resized = [&] {
    const Tensor middle = crop_to_aspect_ratio(x, height, width);
    return cast(image::resize(middle, {height, width}), compute_dtype());
  };
  if (!args.training.value_or(false)) return resized();
  const Extent spare_h = batch.height() - height, spare_w = batch.width() - width;
  const auto crop = [&] {  // as in Keras: large numbers taken modulo the number of places
    const Tensor draws =
        random::uniform({2}, 0, std::numeric_limits<int32_t>::max(), DType::int32, draw_seed(options_.seed, 0));
    return image::crop_to_bounding_box(x, floormod(draws[0], (spare_h + 1).tensor()),
                                       floormod(draws[1], (spare_w + 1).tensor()), height, width);
  };
  if (spare_h.known() && spare_w.known()) return spare_h.value() >= 0 && spare_w.value() >= 0 ? crop() : resized();
  return cond(logical_and(spare_h.tensor() >= 0, spare_w.tensor() >= 0), crop, resized);
}

}  // namespace runnel::keras
