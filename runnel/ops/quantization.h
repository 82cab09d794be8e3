#pragma once

#include "runnel/op/operand.h"

// Numbers as they come out of storing them in few bits: rounded to one of 2^num_bits steps between min and max, which
// move a little so that 0 is one of the steps. Their gradient is that of a cut at both ends.
namespace runnel::quantization {

RUNNEL_API Tensor fake_quant_with_min_max_args(const Operand& inputs, double min = -6, double max = 6,
                                               int64_t num_bits = 8, bool narrow_range = false);
RUNNEL_API Tensor fake_quant_with_min_max_vars(const Operand& inputs, const Operand& min, const Operand& max,
                                               int64_t num_bits = 8, bool narrow_range = false);
// min and max for each place of the last dimension.
RUNNEL_API Tensor fake_quant_with_min_max_vars_per_channel(const Operand& inputs, const Operand& min,
                                                           const Operand& max, int64_t num_bits = 8,
                                                           bool narrow_range = false);

}  // namespace runnel::quantization
