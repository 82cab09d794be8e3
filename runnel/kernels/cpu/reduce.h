#pragma once

// Reductions over plain memory. Deterministic: ranges are cut by shape alone, each piece is folded in a fixed
// order and the pieces' results are folded in order by the same code, so the bits do not depend on the
// threads. A float sum of a million elements passes through few sequential additions and stays within a few
// units of the last place.

#include <cstdint>
#include <span>

#include "runnel/base/export.h"

namespace runnel::cpu {

using Dims = std::span<const int64_t>;

enum class Reduction { sum, mean, prod, max, min, any, all };

// y = x reduced over `axes` (each in [0, rank), none twice); y has the kept dimensions in order. Over no
// elements: 0, NaN (0 for integers), 1, the lowest and highest value, false, true. max and min give NaN where
// there is one. Integers wrap; the integer mean truncates; float16 and bfloat16 compute in float. `any` and
// `all` are for bool alone, max and min not for complex.
template <class T>
void reduce(Reduction op, const T* x, Dims shape, Dims axes, T* y);

// The index of the first largest (smallest) element along the middle dimension; NaN is never chosen before a
// number.
template <class T, class Index>
void arg_reduce(bool largest, const T* x, int64_t outer, int64_t reduced, int64_t inner, Index* y);

}  // namespace runnel::cpu
