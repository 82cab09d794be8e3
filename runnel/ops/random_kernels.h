#pragma once

// What the stateful and the stateless random ops share.
#include <utility>

#include "runnel/base/philox.h"
#include "runnel/op/context.h"
#include "runnel/op/operand.h"

namespace runnel {

enum class Distribution { uniform, normal, truncated_normal };

// The generator that a seed of two integers stands for.
Philox generator_from_seed(const Tensor& seed);
// Philox blocks that filling `out` may take.
uint64_t blocks_for(Distribution kind, const Tensor& out);
void draw_into(Distribution kind, const Philox& gen, const Tensor& out);

// T: int32_t, int64_t; [lo, hi) from scalar tensors.
template <class T>
void draw_ints(const Philox& gen, const Tensor& lo, const Tensor& hi, const Tensor& out);
template <class T>
void draw_gamma(const Philox& gen, const Tensor& alpha, const Tensor& out);
// One class per element of `out` [rows, samples] from logits [rows, classes]; out is int32 or int64.
template <class T>
void draw_categories(const Philox& gen, const Tensor& logits, const Tensor& out);
void shuffle_rows(const Philox& gen, const Tensor& in, const Tensor& out);

void drawn_shape(InferContext& c);                                 // what input 0 says
PartialShape gamma_shape(const InferContext& c, int alpha_input);  // input 0, then that of alpha
// The gradient by alpha, given that of the draws: the draws' leading dimensions are alpha's broadcast.
Tensor gamma_gradient(const Tensor& dy, const Tensor& alpha, const Tensor& draws);
void categorical_shape(InferContext& c);

// An operand that must have this dtype: literals are converted, tensors passed as they are.
Tensor in_dtype(const Operand& x, DType dtype);
// From [0, 1) to [minval, maxval); from the standard normal to mean and stddev. No op where nothing changes.
Tensor scaled_uniform(const Tensor& u, const Operand& minval, const Operand& maxval);
Tensor scaled_normal(const Tensor& z, const Operand& mean, const Operand& stddev);
// alpha and beta of one dtype, alpha broadcast to the shape of both.
std::pair<Tensor, Tensor> gamma_parameters(const Operand& alpha, const Operand& beta);

}  // namespace runnel
