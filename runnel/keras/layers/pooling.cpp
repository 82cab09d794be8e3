#include "runnel/keras/layers/pooling.h"

#include "runnel/keras/layers/window_settings.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"

namespace runnel::keras {

template <class Self, int Dims, PoolingKind Kind>
void PoolingOver<Self, Dims, Kind>::prepare() {
  PoolingOptions& o = this->options_;
  o.pool_size = per_dimension(o.pool_size, Dims, Self::kClassName, "pool_size");
  o.strides = o.strides.empty() ? o.pool_size : per_dimension(o.strides, Dims, Self::kClassName, "strides");
  op_padding(o.padding, Self::kClassName);
  require_channels_last(o.data_format, Self::kClassName);
  this->set_input_spec({.ndim = Dims + 2});
}

template <class Self, int Dims, PoolingKind Kind>
Config PoolingOver<Self, Dims, Kind>::get_config() const {
  const PoolingOptions& o = this->options_;
  Config config = LayerOf<Self, PoolingOptions>::get_config();
  config.set("pool_size", per_dimension(o.pool_size, Dims, Self::kClassName, "pool_size"));
  const auto& strides = o.strides.empty() ? o.pool_size : o.strides;
  config.set("strides", per_dimension(strides, Dims, Self::kClassName, "strides"));
  return config;
}

template <class Self, int Dims, PoolingKind Kind>
Tensor PoolingOver<Self, Dims, Kind>::call(const Tensor& input, const CallArgs&) {
  const PoolingOptions& o = this->options_;
  const nn::PoolOptions options{
      .ksize = o.pool_size, .strides = o.strides, .padding = op_padding(o.padding, Self::kClassName)};
  if constexpr (Dims == 1) {
    return Kind == PoolingKind::max ? nn::max_pool1d(input, options) : nn::avg_pool1d(input, options);
  } else {
    return Kind == PoolingKind::max ? nn::max_pool2d(input, options) : nn::avg_pool2d(input, options);
  }
}

template <class Self, int Dims, PoolingKind Kind>
void GlobalPoolingOver<Self, Dims, Kind>::prepare() {
  require_channels_last(this->options_.data_format, Self::kClassName);
  this->set_input_spec({.ndim = Dims + 2});
  this->set_supports_masking(Dims == 1 && Kind == PoolingKind::average);
}

template <class Self, int Dims, PoolingKind Kind>
Tensor GlobalPoolingOver<Self, Dims, Kind>::call(const Tensor& input, const CallArgs& args) {
  const bool keepdims = this->options_.keepdims;
  const Axes spatial = Dims == 1 ? Axes{1} : Axes{1, 2};
  if (Kind == PoolingKind::max) return reduce_max(input, spatial, keepdims);
  if (Dims == 1 && args.mask.defined()) {
    const Tensor counts = expand_dims(cast(args.mask, input.dtype()), 2);
    return reduce_sum(input * counts, spatial, keepdims) / reduce_sum(counts, spatial, keepdims);
  }
  return reduce_mean(input, spatial, keepdims);
}

template class PoolingOver<MaxPooling1D, 1, PoolingKind::max>;
template class PoolingOver<MaxPooling2D, 2, PoolingKind::max>;
template class PoolingOver<AveragePooling1D, 1, PoolingKind::average>;
template class PoolingOver<AveragePooling2D, 2, PoolingKind::average>;
template class GlobalPoolingOver<GlobalMaxPooling1D, 1, PoolingKind::max>;
template class GlobalPoolingOver<GlobalMaxPooling2D, 2, PoolingKind::max>;
template class GlobalPoolingOver<GlobalAveragePooling1D, 1, PoolingKind::average>;
template class GlobalPoolingOver<GlobalAveragePooling2D, 2, PoolingKind::average>;

}  // namespace runnel::keras
