#pragma once

#include "runnel/keras/layers/einsum_dense.h"
#include "runnel/keras/layers/merge.h"

namespace runnel::keras {

// Layers that take a query, values and perhaps keys: a(x, x), a({query, value, key}). Templates, so that a list of
// CallArgs in braces is not taken for a tensor.
template <class Self, class OptionsType>
class AttentionOf : public MergeOf<Self, OptionsType> {
 public:
  using Base = MergeOf<Self, OptionsType>;
  using Base::Base;
  using Base::operator();
  template <std::same_as<Tensor> T>
  Tensor operator()(const Tensor& query, const T& value, const CallArgs& args = {},
                    SourceSite where = SourceSite::current()) & {
    return Base::operator()(std::vector<Tensor>{query, value}, args, where);
  }
  template <std::same_as<Tensor> T>
  Tensor operator()(const Tensor& query, const T& value, const CallArgs& args = {},
                    SourceSite where = SourceSite::current()) && {
    return std::move(*this).Base::operator()(std::vector<Tensor>{query, value}, args, where);
  }
  template <std::same_as<Tensor> T>
  Tensor operator()(const Tensor& query, const Tensor& value, const T& key, const CallArgs& args = {},
                    SourceSite where = SourceSite::current()) & {
    return Base::operator()(std::vector<Tensor>{query, value, key}, args, where);
  }
  template <std::same_as<Tensor> T>
  Tensor operator()(const Tensor& query, const Tensor& value, const T& key, const CallArgs& args = {},
                    SourceSite where = SourceSite::current()) && {
    return std::move(*this).Base::operator()(std::vector<Tensor>{query, value, key}, args, where);
  }
};

struct MultiHeadAttentionOptions {
  NamedOnly named_only = {};
  int64_t num_heads = 0;
  int64_t key_dim = 0;
  std::optional<int64_t> value_dim = {};
  double dropout = 0;
  bool use_bias = true;
  std::optional<int64_t> output_shape = {};
  IntTuple attention_axes = {};
  RUNNEL_KERNEL_OPTIONS;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&MultiHeadAttentionOptions::num_heads, &MultiHeadAttentionOptions::key_dim>;
  static constexpr auto fields() {
    using O = MultiHeadAttentionOptions;
    return joined_fields(field_list(field("num_heads", &O::num_heads, "the number of heads"),
                                    field("key_dim", &O::key_dim, "the size of a head, for query and key"),
                                    field("value_dim", &O::value_dim, "key_dim unless given"),
                                    field("dropout", &O::dropout, "the share of scores that become 0 while training"),
                                    field("use_bias", &O::use_bias, "with a bias"),
                                    field("output_shape", &O::output_shape,
                                          "the size of the result's last dimension; that of the query unless given"),
                                    field("attention_axes", &O::attention_axes,
                                          "over which attention goes; all but the first and the last unless given")),
                         kernel_fields<O>());
  }
};
// Every position of the query [batch, T, dim] gets a mean of the values [batch, S, dim], weighted by how well their
// keys fit it, for each head. Inputs are (query, value) or (query, value, key); CallArgs::attention_mask ([batch, T, S]
// or [batch, heads, T, S]) and use_causal_mask say which positions are seen. Masks that come with the inputs hide
// padding of query, values and keys; CallArgs::mask ([batch, S]) does so for values without one.
// T and S stand for one or more dimensions, the attention_axes; others, such as rows of an image when attention goes
// along its columns, are like further batches.
class RUNNEL_API MultiHeadAttention : public AttentionOf<MultiHeadAttention, MultiHeadAttentionOptions> {
 public:
  static constexpr const char* kClassName = "MultiHeadAttention";
  using AttentionOf::AttentionOf;
  void prepare() override;
  void build(const PartialShape& input) override;
  void build(const NestOf<PartialShape>& inputs) override;
  Nest call(const Nest& inputs, const CallArgs& args) override;
  using Layer::call;
  Tensor compute_mask(const Nest& inputs, const Tensor& mask) override;  // that of the query
  Config get_config() const override;
  // The result and the scores [batch, ..., heads, T, S].
  std::pair<Tensor, Tensor> call_with_scores(const Nest& inputs, const CallArgs& args);

  // kernel [dim, heads, size], bias [heads, size]; of the output [heads, value_dim, dim] and [dim].
  std::shared_ptr<EinsumDense> query_dense, key_dense, value_dense, output_dense;

 private:
  // A projection whose first `free` dimensions stay, the next `bound` ones become `sizes`.
  std::shared_ptr<EinsumDense> make_dense(const char* attribute, const char* name, int free, int bound,
                                          const std::vector<int64_t>& sizes);
  void make_equations(int rank);
  Tensor visible(const Tensor& query, const Tensor& value, const Tensor& key, const CallArgs& args) const;

  std::string product_equation_, combine_equation_;  // key, query -> scores; scores, value -> result
  int num_axes_ = 1;
};

}  // namespace runnel::keras
