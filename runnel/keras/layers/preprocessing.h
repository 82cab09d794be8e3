#pragma once

#include "runnel/keras/layer_of.h"

namespace runnel::data {
class AnyDataset;
}

namespace runnel::keras {

struct RescalingOptions {
  NamedOnly named_only = {};
  double scale = 1;
  double offset = 0;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&RescalingOptions::scale, &RescalingOptions::offset>;
  static constexpr auto fields() {
    return field_list(field("scale", &RescalingOptions::scale, "what is multiplied by"),
                      field("offset", &RescalingOptions::offset, "what is added"));
  }
};
// x * scale + offset: {.scale = 1 / 255.0} brings pixels to 0 to 1.
class RUNNEL_API Rescaling : public LayerOf<Rescaling, RescalingOptions> {
 public:
  static constexpr const char* kClassName = "Rescaling";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct ResizingOptions {
  NamedOnly named_only = {};
  int64_t height = 0;
  int64_t width = 0;
  std::string interpolation = "bilinear";
  bool crop_to_aspect_ratio = false;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&ResizingOptions::height, &ResizingOptions::width>;
  static constexpr auto fields() {
    using O = ResizingOptions;
    return field_list(
        field("height", &O::height, "of the result"), field("width", &O::width, "of the result"),
        field("interpolation", &O::interpolation, "or another method of image::resize"),
        field("crop_to_aspect_ratio", &O::crop_to_aspect_ratio, "cuts the longer side evenly instead of distorting"));
  }
};
// Images, one or a batch, of another size.
class RUNNEL_API Resizing : public LayerOf<Resizing, ResizingOptions> {
 public:
  static constexpr const char* kClassName = "Resizing";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct NormalizationOptions {
  NamedOnly named_only = {};
  IntTuple axis = {-1};
  std::vector<double> mean = {}, variance = {};
  bool invert = false;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&NormalizationOptions::axis>;
  static constexpr auto fields() {
    using O = NormalizationOptions;
    return field_list(
        field("axis", &O::axis, "each position of these has its own statistics; none: one for everything"),
        field("mean", &O::mean, "one value for each position; without them `adapt` finds them"),
        field("variance", &O::variance, "one value for each position"), field("invert", &O::invert, "the way back"));
  }
};
// (x - mean) / sqrt(variance), with statistics that are given or those of the data that `adapt` saw.
class RUNNEL_API Normalization : public LayerOf<Normalization, NormalizationOptions> {
 public:
  static constexpr const char* kClassName = "Normalization";
  using LayerOf::LayerOf;
  void prepare() override;
  Config get_config() const override;
  void build(const PartialShape& input) override;
  Tensor call(const Tensor& input, const CallArgs& args) override;

  // Takes the statistics of this data, [samples, ...], or of a dataset of such batches; those before are forgotten.
  void adapt(const Tensor& data);
  void adapt(const data::AnyDataset& batches);

  Variable adapt_mean, adapt_variance, count;  // unless the statistics were given

 private:
  void begin_to_adapt(const Tensor& batch);
  void take_batch(const Tensor& batch);

  std::vector<int64_t> reduced_;  // the dimensions that statistics are taken over
  Shape aligned_;                 // the shape of the statistics with size 1 for those
};

}  // namespace runnel::keras
