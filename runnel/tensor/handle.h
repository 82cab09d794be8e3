#pragma once

// Internal: what the handles in tensors refer to.
#include "runnel/tensor/tensor.h"

namespace runnel {

// What the one handle of a resource tensor refers to. Null where it refers to nothing, or where the tensor has no
// element or several: whoever reads a handle says so in an Error.
inline Object* referred_object(const Tensor& handle) {
  return handle.num_elements() == 1 ? handle.data<ResourceHandle>()->object.get() : nullptr;
}
template <class T>
T* referred_as(const Tensor& handle) {
  return dynamic_cast<T*>(referred_object(handle));
}

// The same of a variant tensor.
inline const Object* held_object(const Tensor& variant) {
  return variant.num_elements() == 1 ? variant.data<VariantValue>()->object.get() : nullptr;
}
template <class T>
const T* held_as(const Tensor& variant) {
  return dynamic_cast<const T*>(held_object(variant));
}

}  // namespace runnel
