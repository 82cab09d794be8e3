#pragma once

#include "runnel/op/operand.h"
#include "runnel/tensor/composite.h"

// Sequences of labels for sequences of inputs, when nobody says which input belongs to which label (connectionist
// temporal classification): a class `blank` stands between labels.
namespace runnel::nn {

struct CtcOptions {
  bool logits_time_major = true;  // [time, batch, classes], else [batch, time, classes]
  int64_t blank_index = 0;        // negative: from the end
};
// For each sequence, minus the logarithm of the probability of its labels: [batch]. Labels are [batch, most labels],
// of which label_length counts.
RUNNEL_API Tensor ctc_loss(const Operand& labels, const Operand& logits, const Operand& label_length,
                           const Operand& logit_length, const CtcOptions& options = {});
RUNNEL_API Tensor ctc_loss(const SparseTensor& labels, const Operand& logits, const Operand& logit_length,
                           const CtcOptions& options = {});

struct CtcDecoded {
  SparseTensor decoded;   // [batch, longest]
  Tensor neg_sum_logits;  // [batch, 1]: minus the sum of the largest logits
};
// The most likely class of each time, without blanks (the last class unless named) and, with merge_repeated, without
// repetitions. Inputs are [time, batch, classes].
RUNNEL_API CtcDecoded ctc_greedy_decoder(const Operand& inputs, const Operand& sequence_length,
                                         bool merge_repeated = true, int64_t blank_index = -1);

}  // namespace runnel::nn
