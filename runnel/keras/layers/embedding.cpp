#include "runnel/keras/layers/embedding.h"

#include "runnel/base/format.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"

namespace runnel::keras {

void Embedding::prepare() {
  if (options_.input_dim <= 0 || options_.output_dim <= 0) {
    throw invalid_argument("[Embedding] input_dim and output_dim must be positive, got {} and {}", options_.input_dim,
                           options_.output_dim);
  }
  set_autocast(false);
  set_supports_masking(options_.mask_zero);
  set_activity_regularizer(options_.activity_regularizer);
  if (options_.input_length > 0) set_input_spec({.ndim = 2, .axes = {{1, options_.input_length}}});
}

void Embedding::build(const PartialShape&) {
  embeddings = add_weight({.name = "embeddings",
                           .shape = {options_.input_dim, options_.output_dim},
                           .initializer = options_.embeddings_initializer,
                           .regularizer = options_.embeddings_regularizer,
                           .constraint = options_.embeddings_constraint});
}

Tensor Embedding::call(const Tensor& ids, const CallArgs&) {
  const bool are_indices = ids.dtype() == DType::int32 || ids.dtype() == DType::int64;
  const Tensor rows = nn::embedding_lookup(embeddings, are_indices ? ids : cast(ids, DType::int32));
  return rows.dtype() == compute_dtype() ? rows : cast(rows, compute_dtype());
}

Tensor Embedding::compute_mask(const Nest& inputs, const Tensor&) {
  return options_.mask_zero ? not_equal(inputs.leaf(), 0) : Tensor();
}

// Keras writes null where no length is given.
Config Embedding::get_config() const {
  Config config = LayerOf::get_config();
  if (options_.input_length == 0) config.set("input_length", Config());
  return config;
}

}  // namespace runnel::keras
