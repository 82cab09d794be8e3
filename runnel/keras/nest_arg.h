#pragma once

#include <concepts>
#include <initializer_list>
#include <utility>
#include <vector>

#include "runnel/op/operand.h"
#include "runnel/tensor/nest.h"

namespace runnel::keras {

// What models are made of, trained on and called with: a tensor, or a vector, tuple or map of tensors; {a, b} is the
// list of a and b.
class NestArg : public Nest {
 public:
  NestArg() = default;  // the empty tuple
  template <class T>
    requires std::convertible_to<T, Nest> && (!std::same_as<std::remove_cvref_t<T>, NestArg>)
  NestArg(T&& value) : Nest(std::forward<T>(value)) {}  // NOLINT: implicit, as below
  NestArg(std::initializer_list<NestArg> items) : Nest(listed(items)) {}

 private:
  // As in Keras, a list of one is that one.
  static Nest listed(std::initializer_list<NestArg> items) {
    if (items.size() == 1) return *items.begin();
    return Nest::list(std::vector<Nest>(items.begin(), items.end()));
  }
};

// What predict gives: the structure of the outputs; of a model with one output, the tensor.
class Predictions : public Nest {
 public:
  Predictions(Nest outputs) : Nest(std::move(outputs)) {}             // NOLINT: implicit
  operator Tensor() const { return leaf(); }                          // NOLINT
  operator Operand() const { return Operand(leaf(), SourceSite{}); }  // NOLINT
};

}  // namespace runnel::keras
