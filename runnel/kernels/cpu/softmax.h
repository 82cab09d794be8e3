#pragma once

// Softmax over the last axis and the losses built on it, fused per row. Each row is computed on one thread in
// a fixed order. All pointers are row-major [rows, cols] unless said otherwise; y and backprop may be the
// input itself.

#include <cstdint>

#include "runnel/base/export.h"

namespace runnel::cpu {

// y = exp(x - max) / sum(exp(x - max)), or its logarithm.
RUNNEL_API void softmax_rows(const float* x, float* y, int64_t rows, int64_t cols, bool log);
RUNNEL_API void softmax_rows(const double* x, double* y, int64_t rows, int64_t cols, bool log);

// y[row] = log(sum(exp(x))), without overflow.
RUNNEL_API void logsumexp_rows(const float* x, float* y, int64_t rows, int64_t cols);
RUNNEL_API void logsumexp_rows(const double* x, double* y, int64_t rows, int64_t cols);

// loss[row] = -log softmax(logits)[labels[row]]; backprop = softmax(logits) - one_hot(labels), or null where
// it is not wanted. Every label is in [0, cols): the caller has checked.
template <class T, class Label>
void sparse_softmax_cross_entropy_rows(const T* logits, const Label* labels, T* loss, T* backprop, int64_t rows,
                                       int64_t cols);

// loss[row] = -sum(labels * log softmax(logits)); backprop = softmax(logits) - labels, or null.
RUNNEL_API void softmax_cross_entropy_rows(const float* logits, const float* labels, float* loss, float* backprop,
                                           int64_t rows, int64_t cols);
RUNNEL_API void softmax_cross_entropy_rows(const double* logits, const double* labels, double* loss, double* backprop,
                                           int64_t rows, int64_t cols);

}  // namespace runnel::cpu
