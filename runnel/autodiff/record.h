#pragma once

// What traced functions need of the tapes: to tell them of a call as one step. (Unrecorded hides ops from them.)
#include <functional>
#include <span>
#include <vector>

#include "runnel/op/gradient.h"

namespace runnel {

// How many tapes record on this thread.
RUNNEL_API int num_recording_tapes();

// Does a tape that records on this thread follow one of these, or would it watch a variable among them?
RUNNEL_API bool tapes_follow(const std::vector<Tensor>& inputs);

// A function that is called with these inputs reads the variables among them: for custom_gradient, which refuses that.
RUNNEL_API void note_variable_reads(const std::vector<Tensor>& inputs);

// The gradients of the inputs of one step, given those of its outputs; `needed` says which are wanted.
using BackwardFn = std::function<Gradients(std::span<const Gradient> dy, std::span<const bool> needed)>;

// Tells the tapes that record on this thread of a step that is no op. Trainable variables whose handles are among the
// inputs are watched.
RUNNEL_API void record_step(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs, BackwardFn backward);

// sum += more; either may be nothing or IndexedSlices.
RUNNEL_API void accumulate(Gradient& sum, Gradient more);

RUNNEL_API bool is_differentiable(DType t);

}  // namespace runnel
