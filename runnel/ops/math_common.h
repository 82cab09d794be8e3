#pragma once

// Shared by the elementwise math families.
#include <type_traits>

#include "runnel/kernels/elementwise.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/broadcast_grad.h"
#include "runnel/ops/math.h"
#include "runnel/ops/register.h"
#include "runnel/tensor/type_sets.h"

// The public function of an op without attributes.
#define RUNNEL_UNARY_FUNCTION(function, Name) \
  Tensor function(const Operand& x) {         \
    static const Op op(Name);                 \
    return op({x});                           \
  }
#define RUNNEL_BINARY_FUNCTION(function, Name)          \
  Tensor function(const Operand& x, const Operand& y) { \
    static const Op op(Name);                           \
    return op({x, y});                                  \
  }

namespace runnel {

// Integer arithmetic wraps around, as in TensorFlow: computed unsigned, where C++ defines it.
template <class T>
constexpr auto wrapping(T x) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<std::make_unsigned_t<std::common_type_t<T, int>>>(x);
  } else {
    return x;
  }
}

template <class T>
inline constexpr bool is_complex_element = false;
template <class T>
inline constexpr bool is_complex_element<std::complex<T>> = true;

// Gradients of the two operands of a broadcasting op, summed to their shapes; a function nobody needs is not called.
template <class F, class G>
Gradients binary_gradients(const GradCtx& g, F x_grad, G y_grad) {
  return {g.want(0, [&] { return sum_to_shape_of(x_grad(), g.x(0)); }),
          g.want(1, [&] { return sum_to_shape_of(y_grad(), g.x(1)); })};
}

}  // namespace runnel
