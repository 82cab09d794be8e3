#pragma once

// Internal.
#include "runnel/data/iterator.h"

namespace runnel::data {

// The iterator begins the next pass over its dataset: with the seeds of the pass it is in, also where those were
// restored, so that the orders and numbers are those that the program would have had which saved them.
void begin_next_pass(const AnyIterator& iterator);

}  // namespace runnel::data
