// Writing steps down.
#include "runnel/autodiff/tape_state.h"

#include "runnel/base/format.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/handle.h"

namespace runnel {
namespace {

// Several handles may refer to one variable: what it is to a tape goes by the variable. Null for other tensors.
const void* state_behind(const Tensor& t) {
  if (!t.defined() || t.dtype() != DType::resource || t.is_symbolic()) return nullptr;
  return referred_object(t);
}

}  // namespace

bool is_differentiable(DType t) { return is_float(t) || is_complex(t) || t == DType::resource || t == DType::variant; }

bool is_trainable_variable(const Tensor& handle) {
  if (handle.dtype() != DType::resource || handle.is_symbolic()) return false;
  const auto* slot = referred_as<const VariableSlot>(handle);
  return slot && slot->trainable && is_differentiable(slot->dtype);
}

void GradientTape::State::require_turn(const char* what) const {
  if (!turns_.asked_elsewhere()) return;
  throw make_error(Code::failed_precondition,
                   "[GradientTape] {} while another thread takes a gradient of the same tape: one thread at a time",
                   what);
}

GradientTape::State::Question::Question(State& tape, const char* what) : tape_(tape) {
  const std::lock_guard lock(tape_.turns_);
  tape_.require_turn(what);
  tape_.turns_.begin_question();
}
GradientTape::State::Question::~Question() {
  const std::lock_guard lock(tape_.turns_);
  tape_.turns_.end_question();
}

bool GradientTape::State::is_followed(const Tensor& t, bool reads_variables) const {
  return content_.id_of(t) >= 0 || (reads_variables && options_.watch_accessed_variables && is_trainable_variable(t));
}

bool GradientTape::State::may_write(Inputs inputs, bool reads_variables) const {
  if (is_paused()) return false;
  if (!turns_.asked_elsewhere()) return true;
  // One that is not persistent forgets everything with the answer; another would lack the step from now on.
  if (options_.persistent &&
      std::any_of(inputs.begin(), inputs.end(), [&](const Tensor* t) { return is_followed(*t, reads_variables); })) {
    throw make_error(Code::failed_precondition,
                     "[GradientTape] an op that a persistent tape records runs while another thread takes a gradient "
                     "of the tape: let one wait for the other, or stop_recording() meanwhile");
  }
  return false;
}

void GradientTape::State::follow(const Tensor& t) {
  if (content_.id_of(t) >= 0) return;
  const void* state = state_behind(t);
  content_.ids.set(state ? state : t.impl().get(), content_.num_ids++);
  content_.watched.push_back(t);
}

void GradientTape::State::follow_variables(Inputs inputs) {
  if (!options_.watch_accessed_variables) return;
  for (const Tensor* t : inputs) {
    if (is_trainable_variable(*t)) follow(*t);
  }
}

int32_t GradientTape::State::Content::id_of(const Tensor& t) const {
  if (const void* state = state_behind(t)) [[unlikely]] {
    if (const int32_t id = ids.find(state); id >= 0) return id;
  }
  return ids.find(t.impl().get());
}

void GradientTape::State::Content::reserve() {
  constexpr size_t kSteps = 32;  // of a small model: growing from nothing costs more than these steps
  entries.reserve(kSteps);
  tensors.reserve(3 * kSteps);
  tensor_ids.reserve(3 * kSteps);
}

GradientTape::State::InputIds GradientTape::State::ids_of(Inputs inputs) const {
  InputIds ids;
  bool followed = false;
  for (const Tensor* t : inputs) {
    ids.push_back(content_.id_of(*t));
    followed = followed || ids.back() >= 0;
  }
  if (!followed) ids.clear();
  return ids;
}

void GradientTape::State::push(const OpDef* op, SharedAttrs attrs, Inputs inputs, const InputIds& ids,
                               const Tensor* outputs, int num_outputs) {
  Content& c = content_;
  if (c.entries.empty()) c.reserve();
  c.entries.push_back({op, std::move(attrs), static_cast<uint32_t>(c.tensors.size()),
                       static_cast<uint32_t>(inputs.size()), static_cast<uint32_t>(num_outputs)});
  for (size_t i = 0; i < inputs.size(); ++i) {
    c.tensors.push_back(*inputs[i]);
    c.tensor_ids.push_back(ids[i]);
    c.unread.used(*inputs[i], !op || op->grad_reads_input(static_cast<int>(i)));
  }
  for (int i = 0; i < num_outputs; ++i) {
    const int32_t id = is_differentiable(outputs[i].dtype()) ? c.num_ids++ : IdMap::kAbsent;
    if (id >= 0) c.ids.set(outputs[i].impl().get(), id);
    c.tensors.push_back(outputs[i]);
    c.tensor_ids.push_back(id);
    if (op && id >= 0 && !op->grad_reads_output(i)) c.unread.made(outputs[i]);
  }
  c.unread.release();
}

void GradientTape::State::record(const OpDef& op, Inputs inputs, const void* attrs, const Tensor* outputs,
                                 int num_outputs) {
  if (!op.grad) return;
  const std::lock_guard lock(turns_);
  if (!may_write(inputs, op.reads_variable)) return;
  if (op.reads_variable) follow_variables(inputs);
  const InputIds ids = ids_of(inputs);
  if (ids.empty()) return;
  push(&op, op.attrs.copy ? op.attrs.copy(attrs) : nullptr, inputs, ids, outputs, num_outputs);
}

void GradientTape::State::record_step(Inputs inputs, const std::vector<Tensor>& outputs,
                                      const std::shared_ptr<const BackwardFn>& grad) {
  const std::lock_guard lock(turns_);
  if (!may_write(inputs, true)) return;
  follow_variables(inputs);
  const InputIds ids = ids_of(inputs);
  if (ids.empty()) return;
  push(nullptr, grad, inputs, ids, outputs.data(), static_cast<int>(outputs.size()));
}

bool GradientTape::State::follows(const std::vector<Tensor>& inputs) const {
  const std::lock_guard lock(turns_);
  if (turns_.asked_elsewhere() && !options_.persistent) return false;  // it is about to forget
  return std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& t) { return is_followed(t, true); });
}

void GradientTape::State::watch(const Tensor& t) {
  const std::lock_guard lock(turns_);
  require_turn("watch()");
  follow(t);
}

std::vector<Tensor> GradientTape::State::watched() const {
  const std::lock_guard lock(turns_);
  return content_.watched;
}

void GradientTape::State::clear() {
  Content gone;  // goes without the lock: functions of the user are among the steps
  const std::lock_guard lock(turns_);
  require_turn("reset()");
  std::swap(content_, gone);
}

}  // namespace runnel
