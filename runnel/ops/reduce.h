#pragma once

#include "runnel/op/axes.h"
#include "runnel/op/operand.h"

namespace runnel {

// Reductions over `axis` (every axis when none is named); keepdims keeps the reduced dimensions with size 1.
// Over no elements: sum 0, prod 1, mean NaN (0 for integers), max and min the lowest and the highest value, any
// false, all true.
RUNNEL_API Tensor reduce_sum(const Operand& x, const Axes& axis = {}, bool keepdims = false);
RUNNEL_API Tensor reduce_mean(const Operand& x, const Axes& axis = {}, bool keepdims = false);
RUNNEL_API Tensor reduce_max(const Operand& x, const Axes& axis = {}, bool keepdims = false);
RUNNEL_API Tensor reduce_min(const Operand& x, const Axes& axis = {}, bool keepdims = false);
RUNNEL_API Tensor reduce_prod(const Operand& x, const Axes& axis = {}, bool keepdims = false);
RUNNEL_API Tensor reduce_any(const Operand& x, const Axes& axis = {}, bool keepdims = false);
RUNNEL_API Tensor reduce_all(const Operand& x, const Axes& axis = {}, bool keepdims = false);

// log(sum(exp(x))), without overflow.
RUNNEL_API Tensor reduce_logsumexp(const Operand& x, const Axes& axis = {}, bool keepdims = false);

// The index of the first largest or smallest element along an axis; int64 unless output_type says int32.
RUNNEL_API Tensor argmax(const Operand& input, const Operand& axis = 0, DType output_type = DType::int64);
RUNNEL_API Tensor argmin(const Operand& input, const Operand& axis = 0, DType output_type = DType::int64);

namespace math {
using runnel::argmax;
using runnel::argmin;
using runnel::reduce_all;
using runnel::reduce_any;
using runnel::reduce_logsumexp;
using runnel::reduce_max;
using runnel::reduce_mean;
using runnel::reduce_min;
using runnel::reduce_prod;
using runnel::reduce_sum;
// The mean squared distance from the mean (not the unbiased estimate), and its root; real for complex x.
RUNNEL_API Tensor reduce_variance(const Operand& x, const Axes& axis = {}, bool keepdims = false);
RUNNEL_API Tensor reduce_std(const Operand& x, const Axes& axis = {}, bool keepdims = false);
RUNNEL_API Tensor reduce_euclidean_norm(const Operand& x, const Axes& axis = {}, bool keepdims = false);
// How many elements are not zero (empty, for strings; true, for bool).
RUNNEL_API Tensor count_nonzero(const Operand& x, const Axes& axis = {}, bool keepdims = false,
                                DType dtype = DType::int64);
}  // namespace math

}  // namespace runnel
