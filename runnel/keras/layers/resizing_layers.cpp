#include "runnel/keras/layers/resizing_layers.h"

#include "runnel/keras/layers/window_settings.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"
#include "runnel/ops/math.h"

namespace runnel::keras {
namespace {

void check_margins(const Margins& m, const char* layer, const char* setting) {
  if (m.top >= 0 && m.bottom >= 0 && m.left >= 0 && m.right >= 0) return;
  throw invalid_argument("[{}] {} must not be negative, got {}", layer, setting, m.config().to_json());
}

}  // namespace

Config Margins::config() const { return Config::List{Config::List{top, bottom}, Config::List{left, right}}; }

Margins Margins::from_config(const Config& config) {
  if (config.is_number()) return config.as_int();
  const Config::List& sides = config.items();
  if (sides.size() != 2) {
    throw invalid_argument("[keras] the sides of an image need a number or two of them, got {}", config.to_json());
  }
  const auto side = [](const Config& c) {
    if (c.is_number()) return Pair(c.as_int(), c.as_int());
    const std::vector<int64_t> ends = c.as_ints();
    if (ends.size() != 2) throw invalid_argument("[keras] the sides of an image come in pairs, got {}", c.to_json());
    return Pair(ends[0], ends[1]);
  };
  return {side(sides[0]), side(sides[1])};
}

void ZeroPadding2D::prepare() {
  check_margins(options_.padding, kClassName, "padding");
  require_channels_last(options_.data_format, kClassName);
  set_input_spec({.ndim = 4});
}

Tensor ZeroPadding2D::call(const Tensor& input, const CallArgs&) {
  const Margins& m = options_.padding;
  return pad(input, Tensor{{int64_t{0}, int64_t{0}}, {m.top, m.bottom}, {m.left, m.right}, {int64_t{0}, int64_t{0}}});
}

void Cropping2D::prepare() {
  check_margins(options_.cropping, kClassName, "cropping");
  require_channels_last(options_.data_format, kClassName);
  set_input_spec({.ndim = 4});
}

Tensor Cropping2D::call(const Tensor& input, const CallArgs&) {
  const Margins& m = options_.cropping;
  const PartialShape in = shape_of_rank(input, 4);
  const auto cropped_away = [](int64_t size, int64_t cut) { return size != kUnknownDim && cut >= size; };
  if (cropped_away(in[1], m.top + m.bottom) || cropped_away(in[2], m.left + m.right)) {
    throw invalid_argument("[Cropping2D] cropping {} leaves nothing of images {}: it must be smaller",
                           m.config().to_json(), in.str());
  }
  const auto rest = [](int64_t from, int64_t from_end) {
    return from_end == 0 ? slice(from, none) : slice(from, -from_end);
  };
  return input(all, rest(m.top, m.bottom), rest(m.left, m.right));
}

void UpSampling2D::prepare() {
  options_.size = per_dimension(options_.size, 2, kClassName, "size");
  require_channels_last(options_.data_format, kClassName);
  set_input_spec({.ndim = 4});
}

Config UpSampling2D::get_config() const {
  Config config = LayerOf::get_config();
  config.set("size", per_dimension(options_.size, 2, kClassName, "size"));
  return config;
}

Tensor UpSampling2D::call(const Tensor& input, const CallArgs&) {
  const std::vector<int64_t>& factor = options_.size;
  const PartialShape in = shape_of_rank(input, 4);
  const image::ResizeOptions options{.method = options_.interpolation};
  const auto enlarged = [&](int d) {
    return in[d] == kUnknownDim ? kUnknownDim : in[d] * factor[static_cast<size_t>(d) - 1];
  };
  const PartialShape known{in[0], enlarged(1), enlarged(2), in[3]};
  Tensor out;
  if (known[1] != kUnknownDim && known[2] != kUnknownDim) {
    out = image::resize(input, {known[1], known[2]}, options);
  } else {
    const Tensor size = runnel::slice(shape(input), {1}, {2}) * int_vector({factor[0], factor[1]});
    out = ensure_shape(image::resize(input, size, options), known);
  }
  return cast(out, input.dtype());
}

}  // namespace runnel::keras
