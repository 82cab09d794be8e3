#pragma once

#include "runnel/keras/layers/attention.h"

namespace runnel::keras {

// What the two layers below share. Inputs are (query [batch, T, dim], value [batch, S, dim]) and perhaps a key shaped
// like the value, which stands for it where positions are compared. Masks that come with query and value hide padding;
// CallArgs::use_causal_mask hides later positions.
template <class Self, class OptionsType>
class RUNNEL_API DenseAttentionOf : public AttentionOf<Self, OptionsType> {
 public:
  using AttentionOf<Self, OptionsType>::AttentionOf;
  using Layer::call;
  void prepare() override;
  void build(const PartialShape& input) override;  // an Error: one tensor is not enough
  Nest call(const Nest& inputs, const CallArgs& args) override;
  Tensor compute_mask(const Nest& inputs, const Tensor& mask) override;  // that of the query
  // The result and the scores [batch, T, S].
  std::pair<Tensor, Tensor> call_with_scores(const Nest& inputs, const CallArgs& args);

 protected:
  virtual Tensor scores(const Tensor& query, const Tensor& key) const = 0;  // [batch, T, S], before the softmax
};

struct RUNNEL_API AttentionOptions {
  bool use_scale = false;
  std::string score_mode = "dot";
  double dropout = 0;
  RUNNEL_LAYER_OPTIONS;
  static constexpr auto fields() {
    using O = AttentionOptions;
    return field_list(field("dropout", &O::dropout, "the share of scores that become 0 while training"),
                      field("use_scale", &O::use_scale, "a weight that the scores are multiplied by"),
                      field("score_mode", &O::score_mode,
                            "\"dot\": products of query and key; \"concat\": the sum of tanh(query + key)"));
  }
};
// Every position of the query gets a mean of the values, weighted by the softmax of query . key.
class RUNNEL_API Attention : public DenseAttentionOf<Attention, AttentionOptions> {
 public:
  static constexpr const char* kClassName = "Attention";
  using DenseAttentionOf::DenseAttentionOf;
  void prepare() override;
  using DenseAttentionOf::build;
  void build(const NestOf<PartialShape>& inputs) override;

  Variable scale;                // [] with use_scale
  Variable concat_score_weight;  // [] with "concat"

 protected:
  Tensor scores(const Tensor& query, const Tensor& key) const override;
};

struct RUNNEL_API AdditiveAttentionOptions {
  bool use_scale = true;
  double dropout = 0;
  RUNNEL_LAYER_OPTIONS;
  static constexpr auto fields() {
    using O = AdditiveAttentionOptions;
    return field_list(field("dropout", &O::dropout, "the share of scores that become 0 while training"),
                      field("use_scale", &O::use_scale, "a weight for every element of tanh(query + key)"));
  }
};
// The same with scores sum(scale * tanh(query + key)).
class RUNNEL_API AdditiveAttention : public DenseAttentionOf<AdditiveAttention, AdditiveAttentionOptions> {
 public:
  static constexpr const char* kClassName = "AdditiveAttention";
  using DenseAttentionOf::build;
  using DenseAttentionOf::DenseAttentionOf;
  void build(const NestOf<PartialShape>& inputs) override;

  Variable scale;  // [dim] with use_scale

 protected:
  Tensor scores(const Tensor& query, const Tensor& key) const override;
};

extern template class DenseAttentionOf<Attention, AttentionOptions>;
extern template class DenseAttentionOf<AdditiveAttention, AdditiveAttentionOptions>;

}  // namespace runnel::keras
