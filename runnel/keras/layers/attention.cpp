#include "runnel/keras/layers/attention.h"

#include <cmath>

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/einsum.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"

namespace runnel::keras {

void MultiHeadAttention::prepare() {
  const MultiHeadAttentionOptions& o = options_;
  if (o.num_heads <= 0 || o.key_dim <= 0) {
    throw invalid_argument("[MultiHeadAttention] num_heads and key_dim must be positive, got {} and {}", o.num_heads,
                           o.key_dim);
  }
  set_supports_masking(true);
  const int64_t value_dim = o.value_dim > 0 ? o.value_dim : o.key_dim;
  const auto projected = [&](int64_t size) { return PartialShape{kUnknownDim, o.num_heads, size}; };
  query_dense = make_dense("_query_dense", "query", "abc,cde->abde", projected(o.key_dim), "de");
  key_dense = make_dense("_key_dense", "key", "abc,cde->abde", projected(o.key_dim), "de");
  value_dense = make_dense("_value_dense", "value", "abc,cde->abde", projected(value_dim), "de");
}

std::shared_ptr<EinsumDense> MultiHeadAttention::make_dense(const char* attribute, const char* name,
                                                            const char* equation, const PartialShape& output,
                                                            const char* bias_axes) {
  return add_layer(attribute, std::make_shared<EinsumDense>(
                                  EinsumDenseOptions{.equation = equation,
                                                     .output_shape = output,
                                                     .activation = {},
                                                     .bias_axes = options_.use_bias ? bias_axes : "",
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

void MultiHeadAttention::build(const PartialShape& input) {
  throw invalid_argument("[MultiHeadAttention] layer '{}' takes (query, value) or (query, value, key), got one tensor {}",
                         name(), input.str());
}

void MultiHeadAttention::build(const NestOf<PartialShape>& inputs) {
  const std::vector<PartialShape> shapes = nest::flatten(inputs);
  if (shapes.size() < 2 || shapes.size() > 3) {
    throw invalid_argument("[MultiHeadAttention] layer '{}' takes (query, value) or (query, value, key), got {} tensors",
                           name(), shapes.size());
  }
  query_dense->build_from_shapes(shapes[0]);
  key_dense->build_from_shapes(shapes.size() > 2 ? shapes[2] : shapes[1]);
  value_dense->build_from_shapes(shapes[1]);
  const int64_t outputs = options_.output_shape > 0 ? options_.output_shape : known_dim(shapes[0], -1);
  output_dense = make_dense("_output_dense", "attention_output", "abcd,cde->abe", {kUnknownDim, outputs}, "e");
  const int64_t value_dim = options_.value_dim > 0 ? options_.value_dim : options_.key_dim;
  output_dense->build_from_shapes(PartialShape{shapes[0][0], shapes[0][1], options_.num_heads, value_dim});
}

// What may be seen, a bool that broadcasts to [batch, heads, T, S]; undefined: everything.
Tensor MultiHeadAttention::visible(const Tensor& query, const Tensor& value, const CallArgs& args) const {
  Tensor seen;
  const auto restrict = [&](const Tensor& more) { seen = seen.defined() ? logical_and(seen, more) : more; };
  if (args.attention_mask.defined()) {
    const Tensor mask = cast(args.attention_mask, DType::bool_);
    restrict(mask.partial_shape().rank() == 3 ? expand_dims(mask, 1) : mask);
  }
  if (args.mask.defined()) restrict(expand_dims(expand_dims(args.mask, 1), 1));
  if (args.use_causal_mask) {
    const Tensor positions = range(shape(query)[1]), keys = range(shape(value)[1]);
    restrict(expand_dims(positions, 1) >= expand_dims(keys, 0));
  }
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
  Tensor scores = einsum("aecd,abcd->acbe", k, q);
  if (const Tensor seen = visible(query, value, args); seen.defined()) {
    // As large as Keras's: a row that sees nothing still gets finite scores.
    const double hidden = compute_dtype() == DType::float16 ? -65504 : -1e9;
    scores = scores + (1 - cast(seen, scores.dtype())) * hidden;
  }
  scores = nn::softmax(scores);
  const bool drop = options_.dropout > 0 && args.training.value_or(false);
  const Tensor weighted = einsum("acbe,aecd->abcd", drop ? nn::dropout(scores, options_.dropout) : scores, v);
  return {(*output_dense)(weighted, plain), scores};
}

Nest MultiHeadAttention::call(const Nest& inputs, const CallArgs& args) { return call_with_scores(inputs, args).first; }

}  // namespace runnel::keras
