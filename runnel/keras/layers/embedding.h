#pragma once

#include "runnel/keras/layer_of.h"

namespace runnel::keras {

struct EmbeddingOptions {
  NamedOnly named_only = {};
  int64_t input_dim = 0;
  int64_t output_dim = 0;
  Initializer embeddings_initializer = "uniform";
  Regularizer embeddings_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint embeddings_constraint = {};
  bool mask_zero = false;
  std::optional<int64_t> input_length = {};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&EmbeddingOptions::input_dim, &EmbeddingOptions::output_dim>;
  PartialShape default_input_shape() const {
    return input_length ? PartialShape{*input_length} : PartialShape::unknown();
  }
  static constexpr auto fields() {
    using O = EmbeddingOptions;
    return field_list(
        field("input_dim", &O::input_dim, "ids are 0 ... input_dim - 1"),
        field("output_dim", &O::output_dim, "the size of a row"),
        field("embeddings_initializer", &O::embeddings_initializer, "of the embeddings"),
        field("embeddings_regularizer", &O::embeddings_regularizer, "a loss on the embeddings"),
        field("activity_regularizer", &O::activity_regularizer, "a loss on the output"),
        field("embeddings_constraint", &O::embeddings_constraint, "what the embeddings are brought to after a step"),
        field("mask_zero", &O::mask_zero, "id 0 is padding: masked"),
        field("input_length", &O::input_length, "of sequences, when it is always the same"));
  }
};
// A row of `embeddings` for every id: [...] -> [..., output_dim]. The gradient of the weight is IndexedSlices.
class RUNNEL_API Embedding : public LayerOf<Embedding, EmbeddingOptions> {
 public:
  static constexpr const char* kClassName = "Embedding";
  using LayerOf::LayerOf;
  void prepare() override;
  void build(const PartialShape& input) override;
  Tensor call(const Tensor& ids, const CallArgs& args) override;
  Tensor compute_mask(const Nest& inputs, const Tensor& mask) override;

  Variable embeddings;  // [input_dim, output_dim]
};

}  // namespace runnel::keras
