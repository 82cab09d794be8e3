// Which variable a value was read from.
#include <algorithm>
#include <unordered_map>

#include "runnel/ops/state.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/tensor.h"

namespace runnel {
namespace {

struct LiveSlots {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::weak_ptr<VariableSlot>> by_id;
};

LiveSlots& live_slots() {
  static auto* const all = new LiveSlots;  // never destroyed: variables may be static
  return *all;
}

std::vector<std::shared_ptr<VariableSlot>> held_slots() {
  LiveSlots& all = live_slots();
  std::vector<std::shared_ptr<VariableSlot>> held;
  const std::lock_guard lock(all.mutex);
  held.reserve(all.by_id.size());  // none may end under the lock
  for (const auto& [id, slot] : all.by_id) held.push_back(slot.lock());
  return held;
}

bool same_elements(const Tensor& a, const Tensor& b) {
  return a.impl()->buffer == b.impl()->buffer && a.raw() == b.raw() && a.dtype() == b.dtype() && a.shape() == b.shape();
}

}  // namespace

void remember_variable(const std::shared_ptr<VariableSlot>& slot) {
  LiveSlots& all = live_slots();
  const std::lock_guard lock(all.mutex);
  all.by_id.emplace(slot->id, slot);
}

VariableSlot::~VariableSlot() {
  LiveSlots& all = live_slots();
  const std::lock_guard lock(all.mutex);
  all.by_id.erase(id);
}

Variable variable_just_read(const Tensor& value) {
  if (!value.defined() || value.is_symbolic()) return {};
  for (const std::shared_ptr<VariableSlot>& slot : held_slots()) {
    if (!slot) continue;
    {
      const std::lock_guard lock(slot->mutex);
      if (std::ranges::find(slot->last_reads, value.impl().get()) == slot->last_reads.end()) continue;
      // The address alone may be that of another tensor by now, of a view of the value even.
      if (!slot->value.defined() || !same_elements(slot->value, value)) continue;
    }
    Tensor handle = Tensor::empty(DType::resource, {});
    handle.mutable_data<ResourceHandle>()->object = slot;
    return Variable::from_handle(handle);
  }
  return {};
}

}  // namespace runnel
