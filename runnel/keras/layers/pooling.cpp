#include "runnel/keras/layers/pooling.h"

#include "runnel/keras/layers/window_settings.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"

namespace runnel::keras {

template <int Dims, PoolingKind Kind>
void PoolingOver<Dims, Kind>::prepare() {
  PoolingOptions& o = this->options_;
  o.pool_size = per_dimension(o.pool_size, Dims, kClassName, "pool_size");
  o.strides = o.strides.empty() ? o.pool_size : per_dimension(o.strides, Dims, kClassName, "strides");
  op_padding(o.padding, kClassName);
  require_channels_last(o.data_format, kClassName);
  this->set_input_spec({.ndim = Dims + 2});
}

template <int Dims, PoolingKind Kind>
Config PoolingOver<Dims, Kind>::get_config() const {
  const PoolingOptions& o = this->options_;
  Config config = LayerOf<PoolingOver, PoolingOptions>::get_config();
  config.set("pool_size", per_dimension(o.pool_size, Dims, kClassName, "pool_size"));
  const auto& strides = o.strides.empty() ? o.pool_size : o.strides;
  config.set("strides", per_dimension(strides, Dims, kClassName, "strides"));
  return config;
}

template <int Dims, PoolingKind Kind>
Tensor PoolingOver<Dims, Kind>::call(const Tensor& input, const CallArgs&) {
  const PoolingOptions& o = this->options_;
  const nn::PoolOptions options{
      .ksize = o.pool_size, .strides = o.strides, .padding = op_padding(o.padding, kClassName)};
  constexpr bool is_max = Kind == PoolingKind::max;
  Tensor out;
  if constexpr (Dims == 1) {
    out = is_max ? nn::max_pool1d(input, options) : nn::avg_pool1d(input, options);
  } else {
    out = is_max ? nn::max_pool2d(input, options) : nn::avg_pool2d(input, options);
  }
  require_output(out, kClassName, this->name(), o.pool_size);
  return out;
}

template <int Dims, PoolingKind Kind>
void GlobalPoolingOver<Dims, Kind>::prepare() {
  require_channels_last(this->options_.data_format, kClassName);
  this->set_input_spec({.ndim = Dims + 2});
  this->set_supports_masking(Dims == 1 && Kind == PoolingKind::average);
}

template <int Dims, PoolingKind Kind>
Tensor GlobalPoolingOver<Dims, Kind>::call(const Tensor& input, const CallArgs& args) {
  const bool keepdims = this->options_.keepdims;
  const Axes spatial = Dims == 1 ? Axes{1} : Axes{1, 2};
  if (Kind == PoolingKind::max) return reduce_max(input, spatial, keepdims);
  if (Dims == 1 && args.mask.defined()) {
    const Tensor counts = expand_dims(cast(args.mask, input.dtype()), 2);
    return reduce_sum(input * counts, spatial, keepdims) / reduce_sum(counts, spatial, keepdims);
  }
  return reduce_mean(input, spatial, keepdims);
}

template class PoolingOver<1, PoolingKind::max>;
template class PoolingOver<2, PoolingKind::max>;
template class PoolingOver<1, PoolingKind::average>;
template class PoolingOver<2, PoolingKind::average>;
template class GlobalPoolingOver<1, PoolingKind::max>;
template class GlobalPoolingOver<2, PoolingKind::max>;
template class GlobalPoolingOver<1, PoolingKind::average>;
template class GlobalPoolingOver<2, PoolingKind::average>;

}  // namespace runnel::keras
