// Binary arithmetic and its gradients.
#include "runnel/kernels/elementwise.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/broadcast_grad.h"
#include "runnel/ops/math.h"
#include "runnel/ops/register.h"

namespace runnel {
namespace {

// Integer arithmetic wraps around, as in TensorFlow: computed unsigned, where C++ defines it.
template <class T>
constexpr auto wrapping(T x) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<std::make_unsigned_t<std::common_type_t<T, int>>>(x);
  } else {
    return x;
  }
}

}  // namespace

void register_arithmetic(Registry& r) {
  r.define("AddV2")
      .in("x", numbers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return static_cast<decltype(x)>(wrapping(x) + wrapping(y)); }))
      .grad([](const GradCtx& g) {
        return Gradients{g.want(0, [&] { return sum_to_shape_of(g.dy(), g.x(0)); }),
                         g.want(1, [&] { return sum_to_shape_of(g.dy(), g.x(1)); })};
      })
      .commutative()
      .doc("x + y, element by element.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{10.f, 20.f, 30.f}}, .out = {Tensor{11.f, 22.f, 33.f}}})
      .sample({.in = {Tensor{{1.f}, {2.f}}, Tensor{10.f, 20.f}}, .out = {Tensor{{11.f, 21.f}, {12.f, 22.f}}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1.f, 2.f, 3.f}}, .error = "do not broadcast"});
  r.alias("Add", "AddV2");

  r.define("Sub")
      .in("x", numbers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return static_cast<decltype(x)>(wrapping(x) - wrapping(y)); }))
      .grad([](const GradCtx& g) {
        return Gradients{g.want(0, [&] { return sum_to_shape_of(g.dy(), g.x(0)); }),
                         g.want(1, [&] { return sum_to_shape_of(negative(g.dy()), g.x(1)); })};
      })
      .doc("x - y, element by element.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{{10.f, 20.f}, {0.5f, 1.f}}},
               .out = {Tensor{{-9.f, -18.f}, {0.5f, 1.f}}}});

  r.define("Mul")
      .in("x", numbers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return static_cast<decltype(x)>(wrapping(x) * wrapping(y)); }))
      .grad([](const GradCtx& g) {
        const Tensor dy = g.dy();
        return Gradients{g.want(0, [&] { return sum_to_shape_of(dy * conj(g.x(1)), g.x(0)); }),
                         g.want(1, [&] { return sum_to_shape_of(dy * conj(g.x(0)), g.x(1)); })};
      })
      .commutative()
      .doc("x * y, element by element.")
      .sample({.in = {Tensor{1.f, -2.f, 3.f}, Tensor(0.5f)}, .out = {Tensor{0.5f, -1.f, 1.5f}}});

  r.define("Neg")
      .in("x", numbers)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise([](auto x) {
        if constexpr (std::is_integral_v<decltype(x)>) {
          return static_cast<decltype(x)>(0 - wrapping(x));
        } else {
          return -x;
        }
      }))
      .grad([](const GradCtx& g) { return negative(g.dy()); })
      .doc("-x, element by element.")
      .sample({.in = {Tensor{1.f, -2.f, 0.f}}, .out = {Tensor{-1.f, 2.f, -0.f}}});

  r.define("Conj")
      .in("input", complexes)
      .out("output")
      .shape(like<0>)
      .cpu(elementwise([](auto x) { return std::conj(x); }))
      .grad([](const GradCtx& g) { return conj(g.dy()); })
      .doc("The complex conjugate, element by element.")
      .sample({.in = {Tensor{std::complex<float>(1, 2)}}, .out = {Tensor{std::complex<float>(1, -2)}}});
}

Tensor add(const Operand& x, const Operand& y) {
  static const Op op("AddV2");
  return op({x, y});
}
Tensor subtract(const Operand& x, const Operand& y) {
  static const Op op("Sub");
  return op({x, y});
}
Tensor multiply(const Operand& x, const Operand& y) {
  static const Op op("Mul");
  return op({x, y});
}
Tensor negative(const Operand& x) {
  static const Op op("Neg");
  return op({x});
}
Tensor conj(const Operand& x) {
  if (!x.is_literal() && !is_complex(x.tensor()->dtype())) return *x.tensor();
  static const Op op("Conj");
  return op({x});
}

}  // namespace runnel
