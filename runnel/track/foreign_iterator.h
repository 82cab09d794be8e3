#pragma once

#include <vector>

#include "runnel/tensor/tensor.h"
#include "runnel/tensor/trackable.h"

namespace runnel::train {

// Stands for a dataset iterator of TensorFlow in checkpoints that go back to it: takes the iterator's state as it is
// (only TensorFlow can read it) and is saved with it.
//   train::ForeignIterator iterator;
//   train::Checkpoint checkpoint({{"model", model}, {"iterator", iterator}});
class RUNNEL_API ForeignIterator : public Trackable {
 public:
  bool has_state() const { return state_.defined(); }
  std::vector<SavableValue> savable_values() override;
  bool holds_weights() const override { return false; }

 private:
  Tensor state_;  // a variant, see SavedVariant
};

}  // namespace runnel::train
