#pragma once

#include <algorithm>
#include <string>

#include "runnel/tensor/tensor.h"

// How labels, predictions and weights are brought together: what losses and metrics share.
namespace runnel::keras::losses {

inline constexpr double kEpsilon = 1e-7;  // how near to 0 and 1 a probability may come

// A text as an argument of a template: the name of a class that is made from a function.
template <size_t N>
struct FixedText {
  char text[N];
  constexpr FixedText(const char (&t)[N]) { std::copy_n(t, N, text); }  // NOLINT: implicit
};

struct Matched {
  Tensor y_true;
  Tensor y_pred;
};
// A last dimension of 1 that only one of the two has is dropped.
RUNNEL_API Matched match_ranks(const Tensor& y_true, const Tensor& y_pred);

// The weights as they multiply `values`, in their dtype: with one dimension more or less, a last dimension of 1 is
// dropped or added. An Error naming `who` where they do not broadcast to the values.
RUNNEL_API Tensor match_weight(const std::string& who, const Tensor& sample_weight, const Tensor& values);

struct TrainingValues {
  Tensor y_true;
  Tensor y_pred;
  Tensor sample_weight;
};
// What a model does to data before its losses and metrics see them: vectors beside a matrix of predictions become
// columns, and labels take the dtype of the predictions where both are floating or both integers.
RUNNEL_API TrainingValues match_dtype_and_rank(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight);

// The losses times their weights (if any), by `reduction`: "none", "sum", or "auto" and "sum_over_batch_size": the sum
// divided by the number of losses, 0 where there are none. `mask` (bool, shaped like the losses, or undefined) tells
// which losses count; the others are no part of that number.
RUNNEL_API Tensor compute_weighted_loss(const std::string& who, const Tensor& losses, const Tensor& sample_weight,
                                        const Tensor& mask, const std::string& reduction);

// The tensor itself where it has the dtype.
Tensor to_dtype(const Tensor& t, DType dtype);
// y_true in the dtype of y_pred; an Error naming `who` where their shapes do not broadcast.
Tensor labels_for(const char* who, const Tensor& y_true, const Tensor& y_pred);
// Labels that are class numbers, int32 or int64, one for every row of y_pred (whose last dimension is the classes).
// An Error naming `who` where there is another number of them.
Tensor class_labels(const char* who, const Tensor& y_true, const Tensor& y_pred);

}  // namespace runnel::keras::losses
