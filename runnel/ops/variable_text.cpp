#include <mutex>
#include <ostream>

#include "runnel/base/format.h"
#include "runnel/ops/state.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/format_array.h"

namespace runnel {

// A look at the slot, not a read: printing leaves no trace on a tape or in a graph.
std::ostream& operator<<(std::ostream& out, const Variable& variable) {
  if (!variable.defined()) {
    return out << "<tf.Variable: undefined>";
  }
  VariableSlot& slot = variable.slot();
  Tensor value;
  {
    std::lock_guard lock(slot.mutex);
    value = slot.value.defined() ? slot.value.with_shape(slot.value.shape()) : Tensor();
  }
  const std::string shape = slot.shape.has_rank() ? format_shape(slot.shape.dims()) : "<unknown>";
  if (!value.defined()) {
    return out << fmt::format("<tf.Variable '{}:0' shape={} dtype={}>", slot.name, shape, dtype_name(slot.dtype));
  }
  const Tensor host = value.to_host();
  return out << variable_repr(slot.name + ":0", shape, {host.dtype(), host.raw(), host.shape().dims()});
}

}  // namespace runnel
