#include "runnel/keras/losses_utils.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/graph/name_scope.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel::keras::losses {
namespace {

int64_t last_size(const PartialShape& shape) { return shape.rank() > 0 ? shape[shape.rank() - 1] : kUnknownDim; }

bool may_be_one(int64_t size) { return size == 1 || size == kUnknownDim; }

// Could values of these shapes broadcast? Where `both_ways` is false, only `b` may be stretched.
bool could_broadcast(const PartialShape& a, const PartialShape& b, bool both_ways) {
  if (!a.has_rank() || !b.has_rank()) return true;
  if (!both_ways && b.rank() > a.rank() && a.rank() > 0) return false;
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    const int64_t m = a[a.rank() - i];
    const int64_t n = b[b.rank() - i];
    if (m != n && !may_be_one(n) && m != kUnknownDim && !(both_ways && m == 1)) return false;
  }
  return true;
}

// How many elements; known before the graph runs where the shape is.
Tensor count_as(const Tensor& t, DType dtype) {
  const PartialShape shape = t.partial_shape();
  return shape.is_static() ? constant(Shape(shape).num_elements(), dtype) : cast(size(t), dtype);
}

Tensor mean_over_batch(const Tensor& losses) {
  const PartialShape shape = losses.partial_shape();
  if (shape.is_static() && Shape(shape).num_elements() > 0) return shape.rank() == 0 ? losses : reduce_mean(losses);
  return divide_no_nan(reduce_sum(losses), count_as(losses, losses.dtype()));
}

}  // namespace

void rethrow_at(const SourceSite& where) {
  try {
    throw;
  } catch (const Error& e) {
    rethrow_from_call(e, user_line(where));
  }
}

Tensor to_dtype(const Tensor& t, DType dtype) { return t.dtype() == dtype ? t : cast(t, dtype); }

Matched match_ranks(const Tensor& y_true, const Tensor& y_pred) {
  const PartialShape truth = y_true.partial_shape();
  const PartialShape guess = y_pred.partial_shape();
  if (!truth.has_rank() || !guess.has_rank()) return {y_true, y_pred};
  if (guess.rank() == truth.rank() + 1 && last_size(guess) == 1) return {y_true, squeeze(y_pred, -1)};
  if (truth.rank() == guess.rank() + 1 && may_be_one(last_size(truth))) return {squeeze(y_true, -1), y_pred};
  return {y_true, y_pred};
}

Tensor match_weight(const std::string& who, const Tensor& sample_weight, const Tensor& values) {
  Tensor weight = to_dtype(sample_weight, values.dtype());
  const int rank = weight.partial_shape().rank();
  const int values_rank = values.partial_shape().rank();
  if (rank > 0 && values_rank >= 0) {
    if (rank == values_rank + 1 && may_be_one(last_size(weight.partial_shape()))) {
      weight = squeeze(weight, -1);
    } else if (values_rank == rank + 1) {
      weight = expand_dims(weight, -1);
    }
  }
  if (!could_broadcast(values.partial_shape(), weight.partial_shape(), false)) {
    throw invalid_argument(
        "[{}] sample_weight of shape {} does not fit values of shape {}: one weight per sample needed", who,
        sample_weight.partial_shape().str(), values.partial_shape().str());
  }
  return weight;
}

TrainingValues match_dtype_and_rank(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  TrainingValues out{y_true, y_pred, sample_weight};
  if (y_pred.partial_shape().rank() == 2) {
    if (y_true.partial_shape().rank() == 1) out.y_true = expand_dims(y_true, -1);
    if (sample_weight.defined() && sample_weight.partial_shape().rank() == 1) {
      out.sample_weight = expand_dims(sample_weight, -1);
    }
  }
  const DType dtype = y_pred.dtype();
  if ((is_float(y_true.dtype()) && is_float(dtype)) || (is_integer(y_true.dtype()) && is_integer(dtype))) {
    out.y_true = to_dtype(out.y_true, dtype);
  }
  if (sample_weight.defined()) out.sample_weight = to_dtype(out.sample_weight, dtype);
  return out;
}

Tensor compute_weighted_loss(const std::string& who, const Tensor& losses, const Tensor& sample_weight,
                             const Tensor& mask, const std::string& reduction) {
  const bool mean = reduction == "auto" || reduction == "sum_over_batch_size";
  // Sums of short types are taken in float32, as they would soon leave the range of float16.
  const DType given = losses.dtype();
  const bool is_short = given == DType::float16 || given == DType::bfloat16;
  if (is_short) {
    const Tensor weight = sample_weight.defined() ? cast(sample_weight, DType::float32) : Tensor();
    return cast(compute_weighted_loss(who, cast(losses, DType::float32), weight, mask, reduction), given);
  }
  const ReopenedScope scope("weighted_loss");
  Tensor weighted = is_float(given) ? losses : cast(losses, DType::float32);
  if (sample_weight.defined()) weighted = weighted * match_weight(who, sample_weight, weighted);
  if (mask.defined()) {
    const Tensor valid = match_weight(who, mask, losses);
    weighted = weighted * valid;
    if (mean) return divide_no_nan(reduce_sum(weighted), reduce_sum(valid + zeros_like(losses)));
  }
  if (reduction == "none") return weighted;
  if (reduction == "sum") return reduce_sum(weighted);
  if (!mean) {
    throw invalid_argument("[{}] unknown reduction '{}': auto, sum_over_batch_size, sum or none", who, reduction);
  }
  return mean_over_batch(weighted);
}

Tensor labels_for(const char* who, const Tensor& y_true, const Tensor& y_pred) {
  if (!could_broadcast(y_pred.partial_shape(), y_true.partial_shape(), true)) {
    throw invalid_argument("[{}] y_true of shape {} does not fit y_pred of shape {}", who, y_true.partial_shape().str(),
                           y_pred.partial_shape().str());
  }
  return to_dtype(y_true, y_pred.dtype());
}

Tensor class_labels(const char* who, const Tensor& y_true, const Tensor& y_pred) {
  const PartialShape truth = y_true.partial_shape();
  const PartialShape guess = y_pred.partial_shape();
  const DType dtype = y_true.dtype();
  const Tensor labels = dtype == DType::int32 || dtype == DType::int64 ? y_true : cast(y_true, DType::int64);
  if (!truth.has_rank() || !guess.has_rank()) return labels;
  if (guess.rank() == 0) throw invalid_argument("[{}] y_pred has no dimension of classes: it is a scalar", who);
  if (truth.rank() == guess.rank() && !may_be_one(last_size(truth))) {
    throw invalid_argument(
        "[{}] y_true of shape {} is not one class number for each row of y_pred of shape {}; for one-hot labels use "
        "the "
        "categorical form",
        who, truth.str(), guess.str());
  }
  const PartialShape rows(std::span<const int64_t>(guess.begin(), guess.end() - 1));
  if (truth.rank() == rows.rank()) {
    if (!truth.compatible_with(rows)) {
      throw invalid_argument("[{}] y_true of shape {} does not fit y_pred of shape {}", who, truth.str(), guess.str());
    }
    return labels;
  }
  if (rows.rank() == 1) return reshape(labels, {-1});
  if (rows.is_static()) return reshape(labels, rows.dims());
  return reshape(labels, slice(shape(y_pred), {0}, {rows.rank()}));
}

}  // namespace runnel::keras::losses
