#pragma once

#include "runnel/keras/layer_of.h"

// Layers that change images at random while training and pass them on otherwise. Inputs are one image or a batch.
namespace runnel::keras {

struct RandomFlipOptions {
  NamedOnly named_only = {};
  std::string mode = "horizontal_and_vertical";
  std::optional<int64_t> seed = {};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&RandomFlipOptions::mode>;
  static constexpr auto fields() {
    return field_list(field("mode", &RandomFlipOptions::mode, "or \"horizontal\", \"vertical\""),
                      field("seed", &RandomFlipOptions::seed, "a stream of its own under the global seed"));
  }
};
// Every image is mirrored or not.
class RUNNEL_API RandomFlip : public LayerOf<RandomFlip, RandomFlipOptions> {
 public:
  static constexpr const char* kClassName = "RandomFlip";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

// What a random factor may be: 0.2 means from -0.2 to 0.2.
class RUNNEL_API FactorRange {
 public:
  static constexpr const char* kTypeName = "float or (float, float)";  // in listings of settings
  FactorRange() = default;
  FactorRange(double size) : FactorRange(-size, size) {}  // NOLINT: implicit
  FactorRange(double lower, double upper) : lower(lower), upper(upper) {}

  Config config() const;
  static FactorRange from_config(const Config& config);
  friend bool operator==(const FactorRange&, const FactorRange&) = default;

  double lower = 0, upper = 0;
};

struct RandomRotationOptions {
  NamedOnly named_only = {};
  FactorRange factor = {};
  std::string fill_mode = "reflect";
  std::string interpolation = "bilinear";
  std::optional<int64_t> seed = {};
  double fill_value = 0;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&RandomRotationOptions::factor>;
  static constexpr auto fields() {
    using O = RandomRotationOptions;
    return field_list(
        field("factor", &O::factor,
              "parts of a full turn, counter-clockwise, from the lower to the upper; 0.2: from -0.2 to 0.2"),
        field("fill_mode", &O::fill_mode,
              "what is outside the image: \"reflect\", \"wrap\", \"nearest\" or \"constant\""),
        field("interpolation", &O::interpolation, "or \"nearest\""),
        field("seed", &O::seed, "a stream of its own under the global seed"),
        field("fill_value", &O::fill_value, "of \"constant\""));
  }
};
// Every image is turned about its middle.
class RUNNEL_API RandomRotation : public LayerOf<RandomRotation, RandomRotationOptions> {
 public:
  static constexpr const char* kClassName = "RandomRotation";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct RandomZoomOptions {
  NamedOnly named_only = {};
  FactorRange height_factor = {};
  std::optional<FactorRange> width_factor = {};
  std::string fill_mode = "reflect";
  std::string interpolation = "bilinear";
  std::optional<int64_t> seed = {};
  double fill_value = 0;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&RandomZoomOptions::height_factor>;
  static constexpr auto fields() {
    using O = RandomZoomOptions;
    return field_list(
        field("height_factor", &O::height_factor, "0.2: up to a view 20% higher, everything in it smaller"),
        field("width_factor", &O::width_factor, "as the height unless given: the shape stays"),
        field("fill_mode", &O::fill_mode,
              "what is outside the image: \"reflect\", \"wrap\", \"nearest\" or \"constant\""),
        field("interpolation", &O::interpolation, "or \"nearest\""),
        field("seed", &O::seed, "a stream of its own under the global seed"),
        field("fill_value", &O::fill_value, "of \"constant\""));
  }
};
// Every image is seen from nearer or further away.
class RUNNEL_API RandomZoom : public LayerOf<RandomZoom, RandomZoomOptions> {
 public:
  static constexpr const char* kClassName = "RandomZoom";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct RandomCropOptions {
  NamedOnly named_only = {};
  int64_t height = 0;
  int64_t width = 0;
  std::optional<int64_t> seed = {};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&RandomCropOptions::height, &RandomCropOptions::width>;
  static constexpr auto fields() {
    using O = RandomCropOptions;
    return field_list(field("height", &O::height, "of the result"), field("width", &O::width, "of the result"),
                      field("seed", &O::seed, "a stream of its own under the global seed"));
  }
};
// A part of that size from a random place, the same for a whole batch. When not training, and of images that are
// smaller: the middle, resized.
class RUNNEL_API RandomCrop : public LayerOf<RandomCrop, RandomCropOptions> {
 public:
  static constexpr const char* kClassName = "RandomCrop";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

}  // namespace runnel::keras
