#pragma once

#include <memory>

#include "runnel/tensor/trackable.h"

namespace runnel::random {

// The program's random state as a part of an object: its seed and how many numbers were drawn, by stateful ops and by
// those with seeds of their own. What is saved with it and restored draws the numbers that the program would have drawn
// next: initializers, dropout, the order of shuffled data.
//   train::Checkpoint checkpoint({{"model", &model}, {"random", random::program_state()}});
RUNNEL_API std::shared_ptr<Trackable> program_state();

}  // namespace runnel::random
