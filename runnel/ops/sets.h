#pragma once

#include "runnel/op/operand.h"
#include "runnel/tensor/composite.h"

// Sets: every row of a tensor's last dimension is one, given densely (repeated values count once) or as a SparseTensor
// with its indices in order. Both operands have the same other dimensions; the result has its rows sorted.
namespace runnel::sets {

RUNNEL_API SparseTensor intersection(const Operand& a, const Operand& b, bool validate_indices = true);
RUNNEL_API SparseTensor intersection(const Operand& a, const SparseTensor& b, bool validate_indices = true);
RUNNEL_API SparseTensor intersection(const SparseTensor& a, const SparseTensor& b, bool validate_indices = true,
                                     SourceSite where = SourceSite::current());
RUNNEL_API SparseTensor union_(const Operand& a, const Operand& b, bool validate_indices = true);
RUNNEL_API SparseTensor union_(const Operand& a, const SparseTensor& b, bool validate_indices = true);
RUNNEL_API SparseTensor union_(const SparseTensor& a, const SparseTensor& b, bool validate_indices = true,
                               SourceSite where = SourceSite::current());
// What is in a and not in b; the other way round when aminusb is false.
RUNNEL_API SparseTensor difference(const Operand& a, const Operand& b, bool aminusb = true,
                                   bool validate_indices = true);
RUNNEL_API SparseTensor difference(const Operand& a, const SparseTensor& b, bool aminusb = true,
                                   bool validate_indices = true);
RUNNEL_API SparseTensor difference(const SparseTensor& a, const SparseTensor& b, bool aminusb = true,
                                   bool validate_indices = true, SourceSite where = SourceSite::current());
// How many different values each row has: int32.
RUNNEL_API Tensor size(const SparseTensor& a, bool validate_indices = true, SourceSite where = SourceSite::current());

}  // namespace runnel::sets
