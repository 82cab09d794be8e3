#pragma once

#include "runnel/keras/layer_of.h"

namespace runnel::keras {

// How many rows and columns at the sides of an image: 1 (all sides), {1, 2} (top and bottom, left and right), or
// {{0, 1}, {0, 1}} (top, bottom, left, right).
class RUNNEL_API Margins {
 public:
  static constexpr const char* kTypeName = "int, (int, int) or ((int, int), (int, int))";  // in listings of settings
  using Pair = std::pair<int64_t, int64_t>;
  Margins(int64_t all) : Margins(all, all) {}  // NOLINT: implicit, as those below
  Margins(int64_t vertical, int64_t horizontal) : Margins(Pair(vertical, vertical), Pair(horizontal, horizontal)) {}
  Margins(Pair vertical, Pair horizontal)
      : top(vertical.first), bottom(vertical.second), left(horizontal.first), right(horizontal.second) {}

  Config config() const;
  static Margins from_config(const Config& config);
  friend bool operator==(const Margins&, const Margins&) = default;

  int64_t top, bottom, left, right;
};

struct ZeroPadding2DOptions {
  NamedOnly named_only = {};
  Margins padding = 1;
  std::string data_format = "channels_last";
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&ZeroPadding2DOptions::padding>;
  static constexpr auto fields() {
    using O = ZeroPadding2DOptions;
    return field_list(field("padding", &O::padding,
                            "rows and columns of zeros: 1 (at all sides), {1, 2} (above and below, at both sides), "
                            "{{0, 1}, {0, 1}} (top, bottom, left, right)"),
                      field("data_format", &O::data_format, "\"channels_last\""));
  }
};
// Zeros around images.
class RUNNEL_API ZeroPadding2D : public LayerOf<ZeroPadding2D, ZeroPadding2DOptions> {
 public:
  static constexpr const char* kClassName = "ZeroPadding2D";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct Cropping2DOptions {
  NamedOnly named_only = {};
  Margins cropping = 0;
  std::string data_format = "channels_last";
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&Cropping2DOptions::cropping>;
  static constexpr auto fields() {
    using O = Cropping2DOptions;
    return field_list(field("cropping", &O::cropping, "rows and columns that are cut off, as ZeroPadding2D has them"),
                      field("data_format", &O::data_format, "\"channels_last\""));
  }
};
// Images without their sides.
class RUNNEL_API Cropping2D : public LayerOf<Cropping2D, Cropping2DOptions> {
 public:
  static constexpr const char* kClassName = "Cropping2D";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct UpSampling2DOptions {
  NamedOnly named_only = {};
  IntTuple size = {2};
  std::string data_format = "channels_last";
  std::string interpolation = "nearest";
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&UpSampling2DOptions::size>;
  static constexpr auto fields() {
    using O = UpSampling2DOptions;
    return field_list(field("size", &O::size, "factors of height and width"),
                      field("data_format", &O::data_format, "\"channels_last\""),
                      field("interpolation", &O::interpolation, "or \"bilinear\", or another method of image::resize"));
  }
};
// Images enlarged by whole factors.
class RUNNEL_API UpSampling2D : public LayerOf<UpSampling2D, UpSampling2DOptions> {
 public:
  static constexpr const char* kClassName = "UpSampling2D";
  using LayerOf::LayerOf;
  void prepare() override;
  Config get_config() const override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

}  // namespace runnel::keras
