#pragma once

#include "runnel/op/operand.h"

namespace runnel::nn {

// One loss per row of probabilities, -log(p[label] / sum(p)), where every p counts as at least epsilon and at most
// 1 - epsilon. Labels are int32 or int64 class numbers, [rows]; probabilities are [rows, classes].
RUNNEL_API Tensor sparse_cross_entropy_of_probabilities(const Operand& labels, const Operand& probabilities,
                                                        double epsilon = 1e-7);

}  // namespace runnel::nn
