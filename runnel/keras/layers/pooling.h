#pragma once

#include "runnel/keras/layer.h"

namespace runnel::keras {

struct RUNNEL_API PoolingOptions {
  IntTuple pool_size = {2};
  IntTuple strides = {};          // as pool_size unless given
  std::string padding = "valid";  // or "same"; padding is never part of a window
  std::string data_format = "channels_last";
  RUNNEL_LAYER_OPTIONS;
  static constexpr auto fields() {
    using O = PoolingOptions;
    return field_list(field("pool_size", &O::pool_size, "one value for every spatial dimension, or one for all"),
                      field("strides", &O::strides, "one number for every spatial dimension, or one for all"),
                      field("padding", &O::padding, "\"valid\" or \"same\""),
                      field("data_format", &O::data_format, "\"channels_last\""));
  }
};

enum class PoolingKind { max, average };

// The largest value, or the average, of every channel in windows over the spatial dimensions.
template <class Self, int Dims, PoolingKind Kind>
class RUNNEL_API PoolingOver : public LayerOf<Self, PoolingOptions> {
 public:
  using LayerOf<Self, PoolingOptions>::LayerOf;
  void prepare() override;
  Config get_config() const override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
};

class RUNNEL_API MaxPooling1D : public PoolingOver<MaxPooling1D, 1, PoolingKind::max> {
 public:
  static constexpr const char* kClassName = "MaxPooling1D";
  using PoolingOver::PoolingOver;
};
class RUNNEL_API MaxPooling2D : public PoolingOver<MaxPooling2D, 2, PoolingKind::max> {
 public:
  static constexpr const char* kClassName = "MaxPooling2D";
  using PoolingOver::PoolingOver;
};
class RUNNEL_API AveragePooling1D : public PoolingOver<AveragePooling1D, 1, PoolingKind::average> {
 public:
  static constexpr const char* kClassName = "AveragePooling1D";
  using PoolingOver::PoolingOver;
};
class RUNNEL_API AveragePooling2D : public PoolingOver<AveragePooling2D, 2, PoolingKind::average> {
 public:
  static constexpr const char* kClassName = "AveragePooling2D";
  using PoolingOver::PoolingOver;
};
extern template class PoolingOver<MaxPooling1D, 1, PoolingKind::max>;
extern template class PoolingOver<MaxPooling2D, 2, PoolingKind::max>;
extern template class PoolingOver<AveragePooling1D, 1, PoolingKind::average>;
extern template class PoolingOver<AveragePooling2D, 2, PoolingKind::average>;

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

// The same over the whole of the spatial dimensions: [batch, channels].
template <class Self, int Dims, PoolingKind Kind>
class RUNNEL_API GlobalPoolingOver : public LayerOf<Self, GlobalPoolingOptions> {
 public:
  using LayerOf<Self, GlobalPoolingOptions>::LayerOf;
  void prepare() override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
  // The steps that a mask was about are gone.
  Tensor compute_mask(const Nest&, const Tensor&) override { return {}; }
};

class RUNNEL_API GlobalMaxPooling1D : public GlobalPoolingOver<GlobalMaxPooling1D, 1, PoolingKind::max> {
 public:
  static constexpr const char* kClassName = "GlobalMaxPooling1D";
  using GlobalPoolingOver::GlobalPoolingOver;
};
class RUNNEL_API GlobalMaxPooling2D : public GlobalPoolingOver<GlobalMaxPooling2D, 2, PoolingKind::max> {
 public:
  static constexpr const char* kClassName = "GlobalMaxPooling2D";
  using GlobalPoolingOver::GlobalPoolingOver;
};
// With a mask, the average of the steps that count.
class RUNNEL_API GlobalAveragePooling1D : public GlobalPoolingOver<GlobalAveragePooling1D, 1, PoolingKind::average> {
 public:
  static constexpr const char* kClassName = "GlobalAveragePooling1D";
  using GlobalPoolingOver::GlobalPoolingOver;
};
class RUNNEL_API GlobalAveragePooling2D : public GlobalPoolingOver<GlobalAveragePooling2D, 2, PoolingKind::average> {
 public:
  static constexpr const char* kClassName = "GlobalAveragePooling2D";
  using GlobalPoolingOver::GlobalPoolingOver;
};
extern template class GlobalPoolingOver<GlobalMaxPooling1D, 1, PoolingKind::max>;
extern template class GlobalPoolingOver<GlobalMaxPooling2D, 2, PoolingKind::max>;
extern template class GlobalPoolingOver<GlobalAveragePooling1D, 1, PoolingKind::average>;
extern template class GlobalPoolingOver<GlobalAveragePooling2D, 2, PoolingKind::average>;

using MaxPool1D = MaxPooling1D;
using MaxPool2D = MaxPooling2D;
using AvgPool1D = AveragePooling1D;
using AvgPool2D = AveragePooling2D;
using GlobalMaxPool1D = GlobalMaxPooling1D;
using GlobalMaxPool2D = GlobalMaxPooling2D;
using GlobalAvgPool1D = GlobalAveragePooling1D;
using GlobalAvgPool2D = GlobalAveragePooling2D;

}  // namespace runnel::keras
