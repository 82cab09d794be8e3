#pragma once

#include "runnel/keras/layer.h"

namespace runnel::keras {

struct DropoutOptions {
  double rate = 0;  // the share of elements that become 0
  // What is drawn once, broadcast to the input: {kUnknownDim, 1, 5} draws once for all steps of a batch [?, steps, 5].
  PartialShape noise_shape = PartialShape::unknown();
  std::optional<int64_t> seed;  // a stream of its own under the global seed
  std::string name;
  Policy dtype;
  bool trainable = true;
  static constexpr auto fields() {
    return field_list(field("rate", &DropoutOptions::rate), field("noise_shape", &DropoutOptions::noise_shape),
                      field("seed", &DropoutOptions::seed));
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
  double rate = 0;
  std::string data_format = "channels_last";  // or "channels_first"
  std::optional<int64_t> seed;
  std::string name;
  Policy dtype;
  bool trainable = true;
  static constexpr auto fields() {
    using O = SpatialDropout2DOptions;
    return field_list(field("rate", &O::rate), field("data_format", &O::data_format), field("seed", &O::seed));
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
  double stddev = 0;
  std::optional<int64_t> seed;
  std::string name;
  Policy dtype;
  bool trainable = true;
  static constexpr auto fields() {
    return field_list(field("stddev", &GaussianNoiseOptions::stddev), field("seed", &GaussianNoiseOptions::seed));
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
