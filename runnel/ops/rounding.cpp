// Rounding to whole numbers.
#include <cmath>

#include "runnel/ops/array.h"
#include "runnel/ops/math_common.h"

namespace runnel {

void register_rounding(Registry& r) {
  r.define("Floor")
      .in("x", floating)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise([](auto x) { return std::floor(x); }))
      .not_differentiable()
      .doc("The largest whole number at most x.")
      .sample({.in = {Tensor{1.5f, -1.5f, 2.f}}, .out = {Tensor{1.f, -2.f, 2.f}}, .differentiable = false})
      .sample({.in = {Tensor{{-0.f}}}, .out = {Tensor{{-0.f}}}, .differentiable = false});
  r.define("Ceil")
      .in("x", floating)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise([](auto x) { return std::ceil(x); }))
      .not_differentiable()
      .doc("The smallest whole number at least x.")
      .sample({.in = {Tensor{1.5f, -1.5f, 2.f}}, .out = {Tensor{2.f, -1.f, 2.f}}, .differentiable = false})
      .sample({.in = {Tensor{{-0.5f}}}, .out = {Tensor{{-0.f}}}, .differentiable = false});
  r.define("Round")
      .in("x", floating + signed_integers)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise([](auto x) {
        if constexpr (std::is_integral_v<decltype(x)>) {
          return x;
        } else {
          return std::nearbyint(x);
        }
      }))
      .not_differentiable()
      .doc("The nearest whole number; halves go to the even one.")
      .sample(
          {.in = {Tensor{1.5f, 2.5f, -0.6f, -2.5f}}, .out = {Tensor{2.f, 2.f, -1.f, -2.f}}, .differentiable = false})
      .sample({.in = {Tensor{{3, -2}}}, .out = {Tensor{{3, -2}}}});
  r.define("Rint")
      .in("x", floating)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise([](auto x) { return std::nearbyint(x); }))
      .not_differentiable()
      .doc("The nearest whole number; halves go to the even one.")
      .sample({.in = {Tensor{1.5f, 2.5f, -0.6f}}, .out = {Tensor{2.f, 2.f, -1.f}}, .differentiable = false})
      .sample({.in = {Tensor{{-0.25f}}}, .out = {Tensor{{-0.f}}}, .differentiable = false});
  r.define("NextAfter")
      .type("T", Types<float, double>{}, DType::float32)
      .in("x1")
      .in("x2")
      .out("output")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return std::nextafter(x, y); }))
      .grad([](const GradCtx& g) {  // x1 all but for a constant
        return binary_gradients(
            g, [&] { return g.dy(); }, [&] { return zeros_like(g.dy()); });
      })
      .grad_reads({})
      .doc("The representable number next to x1 in the direction of x2.")
      .sample({.in = {Tensor{1.f, 1.f}, Tensor{2.f, 1.f}}, .out = {Tensor{1.00000012f, 1.f}}, .differentiable = false})
      .sample({.in = {Tensor{{0.f}}, Tensor(1.f)}, .out = {Tensor{{1e-45f}}}, .differentiable = false})
      .sample({.in = {Tensor{{1.f}, {2.f}}, Tensor{3.f, 4.f}},
               .out = {Tensor{{1.00000012f, 1.00000012f}, {2.00000024f, 2.00000024f}}}});
}

RUNNEL_UNARY_FUNCTION(floor, "Floor")
RUNNEL_UNARY_FUNCTION(ceil, "Ceil")
RUNNEL_UNARY_FUNCTION(round, "Round")
RUNNEL_UNARY_FUNCTION(rint, "Rint")
RUNNEL_BINARY_FUNCTION(nextafter, "NextAfter")

}  // namespace runnel
