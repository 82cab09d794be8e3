#pragma once

#include "runnel/keras/layer_of.h"

namespace runnel::keras {

struct RUNNEL_API PoolingOptions {
  NamedOnly named_only = {};
  IntTuple pool_size = {2};
  IntTuple strides = {};
  std::string padding = "valid";
  std::string data_format = "channels_last";
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&PoolingOptions::pool_size>;
  static constexpr auto fields() {
    using O = PoolingOptions;
    return field_list(field("pool_size", &O::pool_size, "one value for every spatial dimension, or one for all"),
                      field("strides", &O::strides, "likewise; as pool_size unless given"),
                      field("padding", &O::padding, "\"valid\" or \"same\"; padding is never part of a window"),
                      field("data_format", &O::data_format, "\"channels_last\""));
  }
};

enum class RUNNEL_API PoolingKind { max, average };

// The largest value, or the average, of every channel in windows over the spatial dimensions.
template <int Dims, PoolingKind Kind>
class RUNNEL_API PoolingOver : public LayerOf<PoolingOver<Dims, Kind>, PoolingOptions> {
 public:
  static constexpr const char* kClassName = Kind == PoolingKind::max ? (Dims == 1 ? "MaxPooling1D" : "MaxPooling2D")
                                            : Dims == 1              ? "AveragePooling1D"
                                                                     : "AveragePooling2D";
  using LayerOf<PoolingOver, PoolingOptions>::LayerOf;
  void prepare() override;
  Config get_config() const override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

using MaxPooling1D = PoolingOver<1, PoolingKind::max>;
using MaxPooling2D = PoolingOver<2, PoolingKind::max>;
using AveragePooling1D = PoolingOver<1, PoolingKind::average>;
using AveragePooling2D = PoolingOver<2, PoolingKind::average>;
extern template class PoolingOver<1, PoolingKind::max>;
extern template class PoolingOver<2, PoolingKind::max>;
extern template class PoolingOver<1, PoolingKind::average>;
extern template class PoolingOver<2, PoolingKind::average>;

struct RUNNEL_API GlobalPoolingOptions {
  std::string data_format = "channels_last";
  bool keepdims = false;
  RUNNEL_LAYER_OPTIONS;
  static constexpr auto fields() {
    using O = GlobalPoolingOptions;
    return field_list(field("data_format", &O::data_format, "\"channels_last\""),
                      field("keepdims", &O::keepdims, "keeps the spatial dimensions, with size 1"));
  }
};

// The same over the whole of the spatial dimensions: [batch, channels]. With a mask, GlobalAveragePooling1D gives the
// average of the steps that count.
template <int Dims, PoolingKind Kind>
class RUNNEL_API GlobalPoolingOver : public LayerOf<GlobalPoolingOver<Dims, Kind>, GlobalPoolingOptions> {
 public:
  static constexpr const char* kClassName = Kind == PoolingKind::max
                                                ? (Dims == 1 ? "GlobalMaxPooling1D" : "GlobalMaxPooling2D")
                                            : Dims == 1 ? "GlobalAveragePooling1D"
                                                        : "GlobalAveragePooling2D";
  using LayerOf<GlobalPoolingOver, GlobalPoolingOptions>::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
  // The steps that a mask was about are gone.
  Tensor compute_mask(const Nest&, const Tensor&) override { return {}; }
};

using GlobalMaxPooling1D = GlobalPoolingOver<1, PoolingKind::max>;
using GlobalMaxPooling2D = GlobalPoolingOver<2, PoolingKind::max>;
using GlobalAveragePooling1D = GlobalPoolingOver<1, PoolingKind::average>;
using GlobalAveragePooling2D = GlobalPoolingOver<2, PoolingKind::average>;
extern template class GlobalPoolingOver<1, PoolingKind::max>;
extern template class GlobalPoolingOver<2, PoolingKind::max>;
extern template class GlobalPoolingOver<1, PoolingKind::average>;
extern template class GlobalPoolingOver<2, PoolingKind::average>;

using MaxPool1D = MaxPooling1D;
using MaxPool2D = MaxPooling2D;
using AvgPool1D = AveragePooling1D;
using AvgPool2D = AveragePooling2D;
using GlobalMaxPool1D = GlobalMaxPooling1D;
using GlobalMaxPool2D = GlobalMaxPooling2D;
using GlobalAvgPool1D = GlobalAveragePooling1D;
using GlobalAvgPool2D = GlobalAveragePooling2D;

}  // namespace runnel::keras
