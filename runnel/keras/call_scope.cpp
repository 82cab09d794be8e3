#include "runnel/keras/call_scope.h"

#include <ranges>

namespace runnel::keras {
namespace {

thread_local MaskScope* outermost_masks = nullptr;
thread_local CallScope* innermost_call = nullptr;

}  // namespace

MaskScope::MaskScope() : outer_(outermost_masks) {
  if (!outer_) outermost_masks = this;
}

MaskScope::~MaskScope() {
  if (!outer_) outermost_masks = nullptr;
}

Tensor MaskScope::mask_of(const Tensor& t) {
  if (!outermost_masks) return {};
  const auto& masks = outermost_masks->masks_;
  for (const auto& [tensor, mask] : std::views::reverse(masks)) {
    if (tensor.impl() == t.impl()) return mask;
  }
  return {};
}

void MaskScope::set_mask(const Tensor& t, const Tensor& mask) {
  if (outermost_masks) outermost_masks->masks_.emplace_back(t, mask);
}

CallScope::CallScope(const Layer& layer, std::optional<bool> training)
    : layer_(layer), outer_(innermost_call), training_(training.value_or(outer_ ? outer_->training_ : false)) {
  innermost_call = this;
}

CallScope::~CallScope() { innermost_call = outer_; }

CallScope* CallScope::current() { return innermost_call; }

}  // namespace runnel::keras
