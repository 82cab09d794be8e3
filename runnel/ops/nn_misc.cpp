// Dropout, embeddings, and measures of predictions.
#include <cmath>

#include "runnel/base/parallel.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/nn_common.h"
#include "runnel/ops/random.h"

namespace runnel {
namespace {

// As TensorFlow counts: a prediction as good as the k-th best is among the best; no statement is made about a
// row with a number that is not finite.
template <class T>
void in_top_k(const float* predictions, const T* targets, int64_t k, int64_t rows, int64_t classes, bool* result) {
  parallel_for(rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, classes)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* row = predictions + r * classes;
      result[r] = false;
      if (targets[r] < 0 || targets[r] >= classes || !std::isfinite(row[targets[r]])) continue;
      const float target = row[targets[r]];
      int64_t better = 0;
      bool finite = true;
      for (int64_t c = 0; c < classes && finite && better < k; ++c) {
        better += row[c] > target;
        finite = std::isfinite(row[c]);
      }
      result[r] = finite && better < k;
    }
  });
}

}  // namespace

void register_nn_misc(Registry& r) {
  r.define("InTopKV2")
      .type("T", index_types, DType::int32)
      .in("predictions", DType::float32)
      .in("targets", "T")
      .in_host("k", "T")
      .out("precision", DType::bool_)
      .shape([](InferContext& c) {
        c.require_rank(0, 2);
        c.require_rank(1, 1);
        c.require_rank(2, 0);
        const PartialShape& x = c.input(0);
        const PartialShape& t = c.input(1);
        if (x.has_rank() && t.has_rank() && x[0] >= 0 && t[0] >= 0 && x[0] != t[0]) {
          throw invalid_argument("{} rows of predictions, {} targets", x[0], t[0]);
        }
        c.output(t.has_rank() ? t : PartialShape{kUnknownDim});
      })
      .cpu([]<class T>(KernelContext& c) {
        in_top_k<T>(c.in<float>(0), c.in<T>(1), c.int_scalar(2), c.in(0).shape()[0], c.in(0).shape()[1], c.out<bool>());
      })
      .doc("Is the target class among the k best predictions of its row?")
      .sample({.in = {Tensor{{0.1f, 0.7f, 0.2f}, {0.5f, 0.2f, 0.3f}}, Tensor{2, 1}, Tensor(2)},
               .out = {Tensor{true, false}}})
      .sample({.in = {Tensor{{0.5f, 0.5f}, {0.9f, 0.1f}}, Tensor{0, 7}, Tensor(1)}, .out = {Tensor{true, false}}})
      .sample({.in = {Tensor{{0.5f, 0.5f}}, Tensor{0, 1}, Tensor(1)}, .error = "2 targets"});
}

namespace nn {

Tensor in_top_k(const Operand& targets, const Operand& predictions, int64_t k) {
  return composed(targets.where(), [&]() -> Tensor {
    static const Op op("InTopKV2");
    const Tensor t = targets.value();
    const Tensor count = t.dtype() == DType::int64 ? Tensor(k) : Tensor(static_cast<int32_t>(k));
    return op({predictions, targets, count});
  });
}

Tensor zero_fraction(const Operand& value) {
  return composed(value.where(), [&]() -> Tensor {
    const Tensor x = value.value();
    return reduce_mean(cast(equal(x, zeros_like(x)), DType::float32));
  });
}

Tensor embedding_lookup(const Operand& params, const Operand& ids) { return gather(params, ids); }
Tensor embedding_lookup(const Variable& params, const Operand& ids) { return params.sparse_read(ids); }

Tensor dropout(const Operand& x, double rate, const DropoutOptions& options) {
  return composed(x.where(), [&]() -> Tensor {
    const Tensor value = x.value();
    if (!is_float(value.dtype())) {
      throw invalid_argument("[dropout] a floating tensor is needed, got {}", dtype_name(value.dtype()));
    }
    if (!(rate >= 0 && rate < 1)) {
      throw invalid_argument("[dropout] rate must be in [0, 1), got {}", rate);
    }
    if (rate == 0) return value;
    const Tensor size = options.noise_shape.defined() ? options.noise_shape : shape(value);
    const Tensor noise = random::uniform(ShapeArg(size), 0, 1, value.dtype(), options.seed, x.where());
    return where(noise >= rate, value * (1 / (1 - rate)), zeros_like(value));
  });
}

}  // namespace nn
}  // namespace runnel
