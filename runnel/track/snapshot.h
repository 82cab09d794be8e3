#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/function_ref.h"
#include "runnel/tensor/tensor.h"
#include "runnel/tensor/trackable.h"

namespace runnel {
class VariableSlot;
}

namespace runnel::train {

// The values of a moment, ready to be written. Variables share their memory with it until they are changed, so taking
// it costs next to nothing: the first change of a variable after it copies that variable. Writing may be left to
// another thread.
struct RUNNEL_API Snapshot {
  struct Value {
    std::string key;
    Tensor tensor;
  };
  std::vector<Value> values;  // in the order in which files have them
  uint64_t bytes() const;     // of tensors of numbers
};

// Everything that can be reached from `root`, as TensorFlow's checkpoints keep it: the values of the objects, then the
// object graph. `attached` edges count as the root's. A variable that has no value yet is an Error.
// With `value_of` variables have the values that it gives; their own where it gives none.
RUNNEL_API Snapshot capture(Trackable& root, const std::vector<Trackable::Edge>& attached = {},
                            const std::function<Tensor(const VariableSlot&)>& value_of = {});

// The files of a checkpoint: `prefix`.index and its shard. All of it is on the disk when this returns; a failure leaves
// what was there before.
RUNNEL_API void write_snapshot(const std::string& prefix, const Snapshot& snapshot, Env& env = Env::posix());
// The same; then `and_then` runs before another process may put a checkpoint into the folder.
RUNNEL_API void write_snapshot(const std::string& prefix, const Snapshot& snapshot, Env& env,
                               FunctionRef<void()> and_then);

}  // namespace runnel::train
