#pragma once

// Kernel makers for ops that work element by element: .cpu(elementwise([](auto x, auto y) { return x + y; })).
// The lambda takes one, two or three elements and is compiled for every type of the op; 16-bit floats compute in
// float. Two and three operands broadcast. The output may have another element type (comparisons give bool): it is
// the lambda's result type. elementwise_attrs passes the op's attributes as a last argument.
//
// fusible(...) and fusible_attrs(...) do the same with a lambda that also takes Lanes (op/lane.h): graphs then compile
// chains of such ops into one loop.

#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>

#include "runnel/kernels/cpu/broadcast.h"
#include "runnel/kernels/cpu/loops.h"
#include "runnel/op/builder.h"
#include "runnel/op/lane.h"

namespace runnel {

template <class F, bool with_attrs>
struct Elementwise {
  static constexpr bool is_elementwise = true;

  template <class E, class A>
  static void run(KernelContext& c) {
    using C = cpu::compute_t<E>;  // what the lambda sees
    if constexpr (with_attrs) {
      if constexpr (std::invocable<F, C, const A&>) {
        unary<E, decltype(F{}(C{}, std::declval<const A&>()))>(c, c.attrs<A>());
      } else {
        binary<E, decltype(F{}(C{}, C{}, std::declval<const A&>()))>(c, c.attrs<A>());
      }
    } else if constexpr (std::invocable<F, C>) {
      unary<E, decltype(F{}(C{}))>(c, cpu::NoAttrs{});
    } else if constexpr (std::invocable<F, C, C>) {
      binary<E, decltype(F{}(C{}, C{}))>(c, cpu::NoAttrs{});
    } else {
      ternary<E, decltype(F{}(C{}, C{}, C{}))>(c, cpu::NoAttrs{});
    }
  }

 private:
  // The element type stored: the half type itself when the lambda computed in its float.
  template <class E, class R>
  using Stored = std::conditional_t<std::same_as<R, cpu::compute_t<E>>, E, R>;

  // A kernel is chosen by the dtypes of its inputs, and these are on the host: nothing of them is left to check.
  template <class E>
  static const E* elements(const Tensor& x) {
    return static_cast<const E*>(x.raw());
  }
  static std::span<const int64_t> sizes(const Tensor& x) { return x.impl()->shape.dims(); }

  template <class E, class R, class L>
  static void unary(KernelContext& c, const L& attrs) {
    using Out = Stored<E, R>;
    cpu::unary_loop<F, E, Out>(elements<E>(c.in(0)), c.out<Out>(), c.out().num_elements(), attrs);
  }
  template <class E, class R, class L>
  static void binary(KernelContext& c, const L& attrs) {
    using Out = Stored<E, R>;
    const Tensor &a = c.in(0), &b = c.in(1);
    cpu::binary_broadcast<F, E, Out>(elements<E>(a), sizes(a), elements<E>(b), sizes(b), c.out<Out>(), sizes(c.out()),
                                     attrs);
  }
  template <class E, class R, class L>
  static void ternary(KernelContext& c, const L& attrs) {
    using Out = Stored<E, R>;
    const Tensor &x = c.in(0), &y = c.in(1), &z = c.in(2);
    cpu::ternary_broadcast<F, E, E, E, Out>(elements<E>(x), sizes(x), elements<E>(y), sizes(y), elements<E>(z),
                                            sizes(z), c.out<Out>(), sizes(c.out()), attrs);
  }
};

template <class F, bool with_attrs>
struct Fusible : Elementwise<F, with_attrs> {
  template <class A>
  static Lane lane(const Lane* x, const void* attrs) {
    if constexpr (with_attrs) {
      const A& a = *static_cast<const A*>(attrs);
      if constexpr (std::invocable<F, Lane, const A&>) {
        return F{}(x[0], a);
      } else {
        return F{}(x[0], x[1], a);
      }
    } else if constexpr (std::invocable<F, Lane>) {
      return F{}(x[0]);
    } else if constexpr (std::invocable<F, Lane, Lane>) {
      return F{}(x[0], x[1]);
    } else {
      return F{}(x[0], x[1], x[2]);
    }
  }
};

template <class F>
constexpr Elementwise<F, false> elementwise(F) {
  return {};
}
template <class F>
constexpr Elementwise<F, true> elementwise_attrs(F) {
  return {};
}
template <class F>
constexpr Fusible<F, false> fusible(F) {
  return {};
}
template <class F>
constexpr Fusible<F, true> fusible_attrs(F) {
  return {};
}

}  // namespace runnel
