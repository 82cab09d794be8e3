#pragma once

// Internal: a whole sequence of a plain LSTM, GRU or SimpleRNN as one operation.
#include "runnel/keras/layers/cell_steps.h"

namespace runnel::keras {

struct WholeSequence {
  CellKind cell;
  Tensor x;       // [batch, time, features], or time first
  Tensor mask;    // bool [batch, time] or as x; undefined counts every step
  States states;  // at first
  Tensor kernel, recurrent, bias;
  bool time_major = false;
  bool go_backwards = false;
  bool return_sequences = false;
};
// The result in the layout of x. 16-bit floats compute in float32.
SequenceResult run_whole(const WholeSequence& s);

}  // namespace runnel::keras
