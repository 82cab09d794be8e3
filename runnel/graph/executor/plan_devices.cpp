// Runs of a plan with values that are not on the host.
#include <algorithm>

#include "runnel/graph/cancellation.h"
#include "runnel/graph/executor/plan.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/unrecorded.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/handle.h"

namespace runnel {

// The handle of a variable is on the host wherever its value is.
bool Plan::variables_on_host(Inputs inputs) {
  for (const Tensor* t : inputs) {
    if (t->dtype() != DType::resource) continue;
    auto* slot = referred_as<VariableSlot>(*t);
    if (!slot) continue;
    const std::lock_guard lock(slot->mutex);
    if (slot->value.defined() && !slot->value.device().is_host()) return false;
  }
  return true;
}

bool Plan::gave_device_value(const Step& step, const Frame& frame) const {
  for (uint32_t i = 0; i < step.num_outputs; ++i) {
    const Tensor& t = frame.slots[step.first_output + i];
    if (t.defined() && !t.device().is_host()) return true;
  }
  return false;
}

// Leaves nothing in the frame but constants: what a run on the host writes over must be memory of the host.
void Plan::run_on_devices(Frame& frame, size_t first) const {
  const Unrecorded unrecorded;  // whoever runs the plan tells the tapes of it as one step
  const CancellationScope* scope = CancellationScope::current();
  for (size_t at = 0; at < steps_.size(); ++at) {
    const Step& step = steps_[at];
    if (at >= first) {
      if (scope && scope->cancelled()) throw_cancelled(step.node->name);
      run_by_dispatch(step, frame);
    }
    for (uint32_t i = 0; i < step.num_last_uses; ++i) frame.slots[releases_[step.first_release + i]] = Tensor();
  }
}

void Plan::run_by_dispatch(const Step& step, Frame& frame) const {
  Tensor* outputs = frame.slots.data() + step.first_output;
  for (uint32_t i = 0; i < step.num_outputs; ++i) outputs[i] = Tensor();
  const Inputs inputs(frame.inputs.data() + step.first_input, step.num_inputs);
  if (step.op->decompose) {  // devices have kernels for the ops that users call
    std::vector<Tensor> in;
    for (const Tensor* t : inputs) in.push_back(*t);
    std::vector<Tensor> out = step.op->decompose(in, step.attrs);
    std::move(out.begin(), out.end(), outputs);
  } else {
    dispatch(*step.op, inputs, step.attrs, outputs, static_cast<int>(step.num_outputs), step.node->where);
  }
}

}  // namespace runnel
