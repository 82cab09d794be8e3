#include "runnel/keras/layers/dot_attention.h"

#include "runnel/base/format.h"
#include "runnel/keras/call_scope.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/operators.h"

namespace runnel::keras {
namespace {

std::vector<PartialShape> query_and_values(const Layer& layer, const NestOf<PartialShape>& inputs) {
  std::vector<PartialShape> shapes = nest::flatten(inputs);
  if (shapes.size() < 2 || shapes.size() > 3) {
    throw invalid_argument("[{}] layer '{}' takes (query, value) or (query, value, key), got {} tensors",
                           layer.class_name(), layer.name(), shapes.size());
  }
  return shapes;
}

}  // namespace

template <class Self, class Options>
void DenseAttentionOf<Self, Options>::prepare() {
  this->set_supports_masking(true);
  const double rate = this->options_.dropout;
  if (rate < 0 || rate >= 1) {
    throw invalid_argument("[{}] dropout must be in [0, 1), got {}", Self::kClassName, rate);
  }
}

template <class Self, class Options>
void DenseAttentionOf<Self, Options>::build(const PartialShape& input) {
  throw invalid_argument("[{}] layer '{}' takes (query, value) or (query, value, key), got one tensor {}",
                         Self::kClassName, this->name(), input.str());
}

template <class Self, class Options>
std::pair<Tensor, Tensor> DenseAttentionOf<Self, Options>::call_with_scores(const Nest& inputs, const CallArgs& args) {
  const std::vector<Tensor> given = nest::flatten(inputs);
  const Tensor &query = given.at(0), &value = given.at(1), &key = given.size() > 2 ? given[2] : value;
  Tensor score = scores(query, key);
  Tensor seen;
  const auto restrict = [&](const Tensor& more) { seen = seen.defined() ? logical_and(seen, more) : more; };
  const Tensor of_query = MaskScope::mask_of(query);
  Tensor of_value = MaskScope::mask_of(value);
  // What a layer was told is the first mask that comes with its inputs, if any does.
  if (!of_value.defined() && !of_query.defined()) of_value = args.mask;
  if (of_value.defined()) restrict(expand_dims(of_value, 1));
  if (args.attention_mask.defined()) restrict(args.attention_mask);
  if (args.use_causal_mask) {
    const Tensor positions = range(shape(score)[-2]), keys = range(shape(score)[-1]);
    restrict(expand_dims(greater_equal(expand_dims(positions, 1), expand_dims(keys, 0)), 0));
  }
  if (seen.defined()) {
    const double far = score.dtype() == DType::float16 ? 65504 : 1e9;
    score = score - far * cast(logical_not(seen), score.dtype());
  }
  Tensor weights = nn::softmax(score);
  if (this->options_.dropout > 0 && args.training.value_or(false))
    weights = nn::dropout(weights, this->options_.dropout);
  Tensor result = matmul(weights, value);
  if (of_query.defined()) result = result * cast(expand_dims(of_query, -1), result.dtype());
  return {result, weights};
}

template <class Self, class Options>
Nest DenseAttentionOf<Self, Options>::call(const Nest& inputs, const CallArgs& args) {
  return call_with_scores(inputs, args).first;
}

template <class Self, class Options>
Tensor DenseAttentionOf<Self, Options>::compute_mask(const Nest& inputs, const Tensor&) {
  return MaskScope::mask_of(nest::flatten(inputs).at(0));
}

void Attention::prepare() {
  DenseAttentionOf::prepare();
  if (options_.score_mode != "dot" && options_.score_mode != "concat") {
    throw invalid_argument("[Attention] score_mode must be \"dot\" or \"concat\", got \"{}\"", options_.score_mode);
  }
}

void Attention::build(const NestOf<PartialShape>& inputs) {
  query_and_values(*this, inputs);
  if (options_.use_scale) scale = add_weight({.name = "scale", .initializer = "ones"});
  if (options_.score_mode == "concat") {
    concat_score_weight = add_weight({.name = "concat_score_weight", .initializer = "ones"});
  }
}

Tensor Attention::scores(const Tensor& query, const Tensor& key) const {
  if (options_.score_mode == "dot") {
    const Tensor products = matmul(query, key, {.transpose_b = true});
    return options_.use_scale ? products * compute_value(scale) : products;
  }
  const Tensor sums = expand_dims(query, -2) + expand_dims(key, -3);
  const Tensor scaled = options_.use_scale ? sums * compute_value(scale) : sums;
  return compute_value(concat_score_weight) * reduce_sum(tanh(scaled), -1);
}

void AdditiveAttention::build(const NestOf<PartialShape>& inputs) {
  const std::vector<PartialShape> shapes = query_and_values(*this, inputs);
  if (options_.use_scale) scale = add_weight({.name = "scale", .shape = {known_dim(shapes[1], -1)}});
}

Tensor AdditiveAttention::scores(const Tensor& query, const Tensor& key) const {
  const Tensor sums = tanh(expand_dims(query, -2) + expand_dims(key, -3));
  return reduce_sum(options_.use_scale ? sums * compute_value(scale) : sums, -1);
}

template class DenseAttentionOf<Attention, AttentionOptions>;
template class DenseAttentionOf<AdditiveAttention, AdditiveAttentionOptions>;

}  // namespace runnel::keras
