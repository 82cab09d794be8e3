#pragma once

#include "runnel/keras/layer_of.h"

namespace runnel::keras {

struct DropoutOptions {
  NamedOnly named_only = {};
  double rate = 0;
  PartialShape noise_shape = PartialShape::unknown();
  std::optional<int64_t> seed = {};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&DropoutOptions::rate>;
  static constexpr auto fields() {
    return field_list(field("rate", &DropoutOptions::rate, "the share of elements that become 0"),
                      field("noise_shape", &DropoutOptions::noise_shape,
                            "what is drawn once, broadcast to the input: {kUnknownDim, 1, 5} draws once for all steps "
                            "of a batch [?, steps, 5]"),
                      field("seed", &DropoutOptions::seed, "a stream of its own under the global seed"));
  }
};
// While training, elements are 0 with probability `rate` and the others scaled up so that the expected sum stays.
class RUNNEL_API Dropout : public LayerOf<Dropout, DropoutOptions> {
 public:
  static constexpr const char* kClassName = "Dropout";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct SpatialDropout2DOptions {
  NamedOnly named_only = {};
  double rate = 0;
  std::string data_format = "channels_last";
  std::optional<int64_t> seed = {};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&SpatialDropout2DOptions::rate>;
  static constexpr auto fields() {
    using O = SpatialDropout2DOptions;
    return field_list(field("rate", &O::rate, "the share of elements that become 0"),
                      field("data_format", &O::data_format, "or \"channels_first\""),
                      field("seed", &O::seed, "a stream of its own under the global seed"));
  }
};
// Dropout of whole channels of images.
class RUNNEL_API SpatialDropout2D : public LayerOf<SpatialDropout2D, SpatialDropout2DOptions> {
 public:
  static constexpr const char* kClassName = "SpatialDropout2D";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct GaussianNoiseOptions {
  NamedOnly named_only = {};
  double stddev = 0;
  std::optional<int64_t> seed = {};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&GaussianNoiseOptions::stddev>;
  static constexpr auto fields() {
    return field_list(field("stddev", &GaussianNoiseOptions::stddev, "the standard deviation"),
                      field("seed", &GaussianNoiseOptions::seed, "a stream of its own under the global seed"));
  }
};
// While training, normal noise with mean 0 is added.
class RUNNEL_API GaussianNoise : public LayerOf<GaussianNoise, GaussianNoiseOptions> {
 public:
  static constexpr const char* kClassName = "GaussianNoise";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

}  // namespace runnel::keras
