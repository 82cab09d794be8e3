#pragma once

// Rows combined by id, over plain memory. Rows of one segment are folded in their order, so the bits depend neither on
// the threads nor on how the work is cut.

#include <cstdint>

#include "runnel/base/export.h"

namespace runnel::cpu {

enum class SegmentOp { sum, mean, prod, max, min };

// y[s] = the rows x[i] (of `width` elements) with ids[i] == s combined, `empty` where there is none. Rows with a
// negative id are left out; ids are < segments. Integers wrap, their mean truncates; float16 and bfloat16 compute in
// float. max and min are not for complex types.
template <class T>
void segment_reduce(SegmentOp op, const T* x, const int64_t* ids, int64_t rows, int64_t width, int64_t segments,
                    T empty, T* y);

}  // namespace runnel::cpu
