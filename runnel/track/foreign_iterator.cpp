#include "runnel/track/foreign_iterator.h"

#include "runnel/base/format.h"

namespace runnel::train {

std::vector<SavableValue> ForeignIterator::savable_values() {
  const auto get = [this] {
    if (!has_state()) {
      throw make_error(Code::failed_precondition,
                       "[ForeignIterator] has no state yet: restore a checkpoint of TensorFlow's first");
    }
    return std::vector<Tensor>{state_};
  };
  const auto check = [](const std::vector<Tensor>& saved) {
    if (saved.at(0).dtype() == DType::variant) return;
    throw make_error(Code::unimplemented, "the saved state is {}, which is none of TensorFlow's iterators",
                     dtype_name(saved[0].dtype()));
  };
  return {{.name = "ITERATOR",
           .suffixes = {"_STATE"},
           .get = get,
           .check = check,
           .set = [this](const std::vector<Tensor>& saved) { state_ = saved.at(0); }}};
}

}  // namespace runnel::train
