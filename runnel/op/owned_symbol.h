#pragma once

#include "runnel/op/dispatch.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

// A symbol that takes the ops called on it though nothing is being traced: the tensors that functional models are
// described with.
class RUNNEL_API OwnedSymbol : public Symbol {
 public:
  virtual Interceptor& owner() const = 0;
};

// The owned symbol behind a tensor, or null.
inline const OwnedSymbol* owned_symbol(const Tensor& t) {
  return t.is_symbolic() ? dynamic_cast<const OwnedSymbol*>(t.impl()->symbol.get()) : nullptr;
}

}  // namespace runnel
