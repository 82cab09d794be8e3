#pragma once

#include "runnel/keras/layer_of.h"

namespace runnel::keras {

struct FlattenOptions {
  std::string data_format = "channels_last";
  RUNNEL_LAYER_OPTIONS;
  static constexpr auto fields() {
    return field_list(
        field("data_format", &FlattenOptions::data_format, "\"channels_first\": channels are moved to the end before"));
  }
};
// [batch, ...] as [batch, product of the rest].
class RUNNEL_API Flatten : public LayerOf<Flatten, FlattenOptions> {
 public:
  static constexpr const char* kClassName = "Flatten";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct ReshapeOptions {
  NamedOnly named_only = {};
  IntTuple target_shape = {};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&ReshapeOptions::target_shape>;
  static constexpr auto fields() {
    return field_list(field("target_shape", &ReshapeOptions::target_shape,
                            "without the batch; one size may be -1 and is worked out"));
  }
};
// [batch, ...] as [batch, target_shape...].
class RUNNEL_API Reshape : public LayerOf<Reshape, ReshapeOptions> {
 public:
  static constexpr const char* kClassName = "Reshape";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct PermuteOptions {
  NamedOnly named_only = {};
  IntTuple dims = {};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&PermuteOptions::dims>;
  static constexpr auto fields() {
    return field_list(
        field("dims", &PermuteOptions::dims, "of the input, counted from 1: {2, 1} swaps the two after the batch"));
  }
};
// Dimension i of the output is dimension dims[i - 1] of the input; the batch stays first.
class RUNNEL_API Permute : public LayerOf<Permute, PermuteOptions> {
 public:
  static constexpr const char* kClassName = "Permute";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

struct RepeatVectorOptions {
  NamedOnly named_only = {};
  int64_t n = 0;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&RepeatVectorOptions::n>;
  static constexpr auto fields() { return field_list(field("n", &RepeatVectorOptions::n, "how many times")); }
};
// [batch, features] n times: [batch, n, features].
class RUNNEL_API RepeatVector : public LayerOf<RepeatVector, RepeatVectorOptions> {
 public:
  static constexpr const char* kClassName = "RepeatVector";
  using LayerOf::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

}  // namespace runnel::keras
