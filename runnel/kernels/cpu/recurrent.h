#pragma once

#include <cstdint>

#include "runnel/base/export.h"

namespace runnel::cpu {

enum class CellKind { simple, lstm, gru };

// A recurrent layer over whole sequences, with tanh and, for gates, sigmoid. A part of the batch runs through all steps
// on one thread: threads do not wait for each other between steps.
struct Recurrence {
  CellKind cell;
  int64_t batch, time, inputs, units;
  bool time_major;  // sequences are [time, batch, ...], else [batch, time, ...]
  bool backwards;   // from the last step to the first; outputs stand in the order of the steps

  int64_t gates() const { return cell == CellKind::lstm ? 4 : cell == CellKind::gru ? 3 : 1; }
  int64_t states() const { return cell == CellKind::lstm ? 2 : 1; }
  // What a step keeps for the gradient, in units: gates (of the GRU also what the reset gate multiplies) and states.
  int64_t kept_gates() const { return cell == CellKind::simple ? 1 : 4; }
  int64_t kept() const { return kept_gates() + states(); }
  int64_t rows() const { return batch * time; }
  // Sequences are rows: that of step t of batch b, and how far the next of the batch is.
  int64_t row(int64_t b, int64_t t) const { return time_major ? t * batch + b : b * time + t; }
  int64_t row_step() const { return time_major ? 1 : time; }
};

// The weights as Keras has them. The bias is none or [gates * units]; of the GRU [2, 3 * units], the second for the
// product with the states.
template <class T>
struct RecurrentWeights {
  const T* kernel;     // [inputs, gates * units]
  const T* recurrent;  // [units, gates * units]
  const T* bias;
};

// Everything is dense; c is of the LSTM. No mask (bool, as the sequence) counts every step: others keep the states and
// repeat the output before them, at first zeros.
template <class T>
struct RecurrentForward {
  const T *x, *h, *c;  // [.., inputs], [batch, units]
  const bool* mask;
  T* kept;      // [rows, kept_gates * units], then as many rows of units for each state before the step
  T* sequence;  // [.., units], or none
  T *last, *last_h, *last_c;
};
template <class T>
RUNNEL_API void recurrent_forward(const Recurrence& r, const RecurrentWeights<T>& w, const RecurrentForward<T>& f);

// The gradients of the outputs, none of them needed, and of what went in. dz is the gradient of x * kernel, [.., gates
// * units]: that of x is dz * kernel transposed.
template <class T>
struct RecurrentBackward {
  const T* x;
  const bool* mask;
  const T* kept;
  const T *d_sequence, *d_last, *d_last_h, *d_last_c;
  T *dz, *dh, *dc, *d_kernel, *d_recurrent, *d_bias;  // d_bias: none where there is no bias
};
template <class T>
RUNNEL_API void recurrent_backward(const Recurrence& r, const RecurrentWeights<T>& w, const RecurrentBackward<T>& b);

}  // namespace runnel::cpu
