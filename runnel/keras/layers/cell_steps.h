#pragma once

// Internal: the steps of cells, one after the other.
#include "runnel/keras/layers/cells.h"
#include "runnel/kernels/cpu/recurrent.h"

namespace runnel::keras {

using cpu::CellKind;

// A sequence of a cell with tanh and, for gates, sigmoid, from which nothing is dropped.
CellSequence plain_sequence(CellKind cell, const Tensor& kernel, const Tensor& recurrent, const Tensor& bias);

struct SequenceResult {
  Tensor output;    // of the last step
  Tensor sequence;  // of all, time first; when asked for
  States states;
};
// The steps one by one: written out where they are few or `unroll`, else, in traced functions, as a loop of the graph.
// `projected` is [time, batch, ...], the mask [time, batch] or undefined.
SequenceResult run_steps(const CellSequence& sequence, const Tensor& projected, const Tensor& mask,
                         const States& states, const Tensor& zero_output, bool want_sequence, bool unroll = false);

// The first two dimensions swapped.
Tensor time_and_batch_swapped(const Tensor& x);

}  // namespace runnel::keras
