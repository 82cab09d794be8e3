#include "runnel/keras/layers/attention.h"

#include <algorithm>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/keras/call_scope.h"
#include "runnel/ops/array.h"
#include "runnel/ops/einsum.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/reduce.h"

namespace runnel::keras {
namespace {

// "abc" for 0, 3: the labels of dimensions.
std::string labels_from(int first, int count) {
  std::string labels;
  for (int i = first; i < first + count; ++i) labels += static_cast<char>('a' + i);
  return labels;
}

Tensor softmax_over_last(const Tensor& scores, int axes) {
  if (axes == 1) return nn::softmax(scores);
  std::vector<int64_t> last;
  for (int i = -axes; i < 0; ++i) last.push_back(i);
  return exp(scores - reduce_logsumexp(scores, last, true));
}

}  // namespace

void MultiHeadAttention::prepare() {
  const MultiHeadAttentionOptions& o = options_;
  if (o.num_heads <= 0 || o.key_dim <= 0) {
    throw invalid_argument("[MultiHeadAttention] num_heads and key_dim must be positive, got {} and {}", o.num_heads,
                           o.key_dim);
  }
  set_supports_masking(true);
}

Config MultiHeadAttention::get_config() const {
  Config config = LayerOf::get_config();
  if (options_.attention_axes.empty()) config.set("attention_axes", Config());
  return config;
}

std::shared_ptr<EinsumDense> MultiHeadAttention::make_dense(const char* attribute, const char* name, int free,
                                                            int bound, const std::vector<int64_t>& sizes) {
  const std::string kept = labels_from(0, free), summed = labels_from(free, bound);
  const std::string made = labels_from(free + bound, static_cast<int>(sizes.size()));
  Dims output(static_cast<size_t>(free - 1), kUnknownDim);
  output.insert(output.end(), sizes.begin(), sizes.end());
  return add_layer(attribute, std::make_shared<EinsumDense>(EinsumDenseOptions{
                                  .equation = kept + summed + "," + summed + made + "->" + kept + made,
                                  .output_shape = PartialShape(output),
                                  .activation = {},
                                  .bias_axes = options_.use_bias ? made : "",
                                  .kernel_initializer = options_.kernel_initializer,
                                  .bias_initializer = options_.bias_initializer,
                                  .kernel_regularizer = options_.kernel_regularizer,
                                  .bias_regularizer = options_.bias_regularizer,
                                  .activity_regularizer = options_.activity_regularizer,
                                  .kernel_constraint = options_.kernel_constraint,
                                  .bias_constraint = options_.bias_constraint,
                                  .name = name,
                                  .dtype = dtype_policy()}));
}

// `rank` is that of the query; projected it has one dimension more, that of the heads.
void MultiHeadAttention::make_equations(int rank) {
  std::vector<int64_t> axes = options_.attention_axes;
  if (axes.empty()) {
    for (int64_t i = 1; i < rank - 1; ++i) axes.push_back(i);
  }
  for (const int64_t axis : axes) {
    if (axis < 1 || axis > rank - 2 || std::count(axes.begin(), axes.end(), axis) > 1) {
      throw invalid_argument(
          "[MultiHeadAttention] layer '{}': attention_axes must be different dimensions from 1 to {}, got {}", name(),
          rank - 2, fmt::join(axes, ", "));
    }
  }
  num_axes_ = static_cast<int>(axes.size());
  const std::string target = labels_from(0, rank + 1);
  std::string source = target, scores, of_source;
  for (size_t i = 0; i < axes.size(); ++i)
    source[static_cast<size_t>(axes[i])] = labels_from(rank + 1 + static_cast<int>(i), 1)[0];
  for (int i = 0; i < rank; ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) scores += target[static_cast<size_t>(i)];
  }
  for (const int64_t axis : axes) {
    scores += target[static_cast<size_t>(axis)];
    of_source += source[static_cast<size_t>(axis)];
  }
  scores += of_source;
  product_equation_ = source + "," + target + "->" + scores;
  combine_equation_ = scores + "," + source + "->" + target;
}

void MultiHeadAttention::build(const PartialShape& input) {
  throw invalid_argument(
      "[MultiHeadAttention] layer '{}' takes (query, value) or (query, value, key), got one tensor {}", name(),
      input.str());
}

void MultiHeadAttention::build(const NestOf<PartialShape>& inputs) {
  const std::vector<PartialShape> shapes = nest::flatten(inputs);
  if (shapes.size() < 2 || shapes.size() > 3) {
    throw invalid_argument(
        "[MultiHeadAttention] layer '{}' takes (query, value) or (query, value, key), got {} tensors", name(),
        shapes.size());
  }
  const PartialShape &query = shapes[0], &value = shapes[1], &key = shapes.size() > 2 ? shapes[2] : value;
  if (query.rank() < 3 || value.rank() != query.rank() || key.rank() != query.rank()) {
    throw invalid_argument(
        "[MultiHeadAttention] layer '{}' takes tensors of the same number of dimensions, at least three, got query {}, "
        "value {}, key {}",
        name(), query.str(), value.str(), key.str());
  }
  const int64_t value_dim = options_.value_dim.value_or(options_.key_dim);
  const int free = query.rank() - 1;
  make_equations(query.rank());
  query_dense = make_dense("_query_dense", "query", free, 1, {options_.num_heads, options_.key_dim});
  key_dense = make_dense("_key_dense", "key", free, 1, {options_.num_heads, options_.key_dim});
  value_dense = make_dense("_value_dense", "value", free, 1, {options_.num_heads, value_dim});
  query_dense->build_from_shapes(query);
  key_dense->build_from_shapes(key);
  value_dense->build_from_shapes(value);
  track_empty("_softmax");
  track_empty("_dropout_layer");
  const int64_t outputs = options_.output_shape ? *options_.output_shape : known_dim(query, -1);
  output_dense = make_dense("_output_dense", "attention_output", free, 2, {outputs});
  Dims weighted(query.begin(), query.end() - 1);
  weighted.push_back(options_.num_heads);
  weighted.push_back(value_dim);
  output_dense->build_from_shapes(PartialShape(weighted));
}

// What may be seen, a bool that broadcasts to the scores; undefined: everything.
Tensor MultiHeadAttention::visible(const Tensor& query, const Tensor& value, const Tensor& key,
                                   const CallArgs& args) const {
  Tensor seen;
  const auto restrict = [&](const Tensor& more) { seen = seen.defined() ? logical_and(seen, more) : more; };
  const Tensor of_query = MaskScope::mask_of(query), of_key = MaskScope::mask_of(key);
  Tensor of_value = MaskScope::mask_of(value);
  // What a layer was told is the first mask that comes with its inputs, if any does.
  if (!of_value.defined() && !of_query.defined() && !of_key.defined()) of_value = args.mask;
  if (of_query.defined()) restrict(expand_dims(of_query, 2));
  if (of_value.defined()) restrict(expand_dims(of_value, 1));
  if (of_key.defined() && key.impl() != value.impl()) restrict(expand_dims(of_key, 1));
  if (args.use_causal_mask) {
    const Tensor positions = range(shape(query)[1]), keys = range(shape(value)[1]);
    restrict(expand_dims(expand_dims(positions, 1) >= expand_dims(keys, 0), 0));
  }
  if (seen.defined() && num_axes_ > 1) {
    throw invalid_argument(
        "[MultiHeadAttention] layer '{}' attends over {} dimensions: give attention_mask in place of masks of the "
        "inputs and use_causal_mask, which are for one",
        name(), num_axes_);
  }
  const int scores_rank = query.partial_shape().rank() + num_axes_;
  const auto for_all_heads = [&](Tensor mask) {
    while (mask.partial_shape().rank() < scores_rank) mask = expand_dims(mask, -2 * num_axes_ - 1);
    return mask;
  };
  if (seen.defined()) seen = for_all_heads(seen);
  if (args.attention_mask.defined()) restrict(for_all_heads(cast(args.attention_mask, DType::bool_)));
  return seen;
}

std::pair<Tensor, Tensor> MultiHeadAttention::call_with_scores(const Nest& inputs, const CallArgs& args) {
  const std::vector<Tensor> given = nest::flatten(inputs);
  const Tensor &query = given.at(0), &value = given.at(1), &key = given.size() > 2 ? given[2] : value;
  CallArgs plain;
  plain.training = args.training;
  const Tensor q = (*query_dense)(query, plain) * (1 / std::sqrt(static_cast<double>(options_.key_dim)));
  const Tensor k = (*key_dense)(key, plain);
  const Tensor v = (*value_dense)(value, plain);
  Tensor scores = einsum(product_equation_, k, q);
  if (const Tensor seen = visible(query, value, key, args); seen.defined()) {
    // As large as Keras's: a row that sees nothing still gets finite scores.
    const double hidden = compute_dtype() == DType::float16 ? -65504 : -1e9;
    scores = scores + (1 - cast(seen, scores.dtype())) * hidden;
  }
  scores = softmax_over_last(scores, num_axes_);
  const bool drop = options_.dropout > 0 && args.training.value_or(false);
  const Tensor weighted = einsum(combine_equation_, drop ? nn::dropout(scores, options_.dropout) : scores, v);
  return {(*output_dense)(weighted, plain), scores};
}

Nest MultiHeadAttention::call(const Nest& inputs, const CallArgs& args) { return call_with_scores(inputs, args).first; }

Tensor MultiHeadAttention::compute_mask(const Nest& inputs, const Tensor&) {
  return MaskScope::mask_of(nest::flatten(inputs).at(0));
}

}  // namespace runnel::keras
