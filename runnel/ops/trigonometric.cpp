// Trigonometric and hyperbolic functions and their inverses.
#include "runnel/kernels/cpu/vmath.h"
#include "runnel/ops/math_common.h"

namespace runnel {
namespace {

void register_trigonometric_functions(Registry& r) {
  r.define("Sin")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Sin{}))
      .grad([](const GradCtx& g) { return g.dy() * conj(cos(g.x())); })
      .doc("The sine.")
      .sample({.in = {Tensor{0.f, 1.f, -2.f}}, .out = {Tensor{0.f, 0.84147098f, -0.90929743f}}})
      .sample({.in = {Tensor{{0.5f}}}, .out = {Tensor{{0.47942554f}}}});
  r.define("Cos")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Cos{}))
      .grad([](const GradCtx& g) { return negative(g.dy() * conj(sin(g.x()))); })
      .doc("The cosine.")
      .sample({.in = {Tensor{0.f, 1.f, -2.f}}, .out = {Tensor{1.f, 0.54030231f, -0.41614684f}}})
      .sample({.in = {Tensor{{0.5f}}}, .out = {Tensor{{0.87758256f}}}});
  r.define("Tan")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Tan{}))
      .grad([](const GradCtx& g) { return g.dy() * (square(conj(g.y())) + 1); })
      .doc("The tangent.")
      .sample({.in = {Tensor{0.f, 1.f, -2.f}}, .out = {Tensor{0.f, 1.5574077f, 2.1850399f}}})
      .sample({.in = {Tensor{{0.5f}}}, .out = {Tensor{{0.54630249f}}}});
  r.define("Asin")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Asin{}))
      .grad([](const GradCtx& g) { return g.dy() * rsqrt(1 - square(conj(g.x()))); })
      .doc("The inverse sine; NaN outside [-1, 1].")
      .sample({.in = {Tensor{0.f, 0.5f, -0.75f}}, .out = {Tensor{0.f, 0.52359878f, -0.84806208f}}})
      .sample({.in = {Tensor{{2.f}}}, .out = {Tensor{{NAN}}}, .differentiable = false});
  r.define("Acos")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Acos{}))
      .grad([](const GradCtx& g) { return negative(g.dy() * rsqrt(1 - square(conj(g.x())))); })
      .doc("The inverse cosine; NaN outside [-1, 1].")
      .sample({.in = {Tensor{0.f, 0.5f, -0.75f}}, .out = {Tensor{1.5707963f, 1.0471976f, 2.4188584f}}})
      .sample({.in = {Tensor{{2.f}}}, .out = {Tensor{{NAN}}}, .differentiable = false});
  r.define("Atan")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Atan{}))
      .grad([](const GradCtx& g) { return g.dy() / (square(conj(g.x())) + 1); })
      .doc("The inverse tangent.")
      .sample({.in = {Tensor{0.f, 1.f, -2.f}}, .out = {Tensor{0.f, 0.78539816f, -1.1071487f}}})
      .sample({.in = {Tensor{{0.5f}}}, .out = {Tensor{{0.46364761f}}}});
  r.define("Atan2")
      .in("y", floating)
      .in("x")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise(cpu::Atan2{}))
      .grad([](const GradCtx& g) {
        const Tensor scaled = g.dy() / (square(g.x(0)) + square(g.x(1)));
        return binary_gradients(
            g, [&] { return g.x(1) * scaled; }, [&] { return negative(g.x(0) * scaled); });
      })
      .doc("The angle of the point (x, y), in (-pi, pi].")
      .sample({.in = {Tensor{1.f, -1.f}, Tensor{1.f, -1.f}}, .out = {Tensor{0.78539816f, -2.3561945f}}})
      .sample({.in = {Tensor{{1.f}, {-2.f}}, Tensor{0.5f, -1.f}},
               .out = {Tensor{{1.1071487f, 2.3561945f}, {-1.3258177f, -2.0344439f}}}});
}

void register_hyperbolic_functions(Registry& r) {
  r.define("Sinh")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Sinh{}))
      .grad([](const GradCtx& g) { return g.dy() * conj(cosh(g.x())); })
      .doc("The hyperbolic sine.")
      .sample({.in = {Tensor{0.f, 1.f, -2.f}}, .out = {Tensor{0.f, 1.1752012f, -3.6268604f}}})
      .sample({.in = {Tensor{{0.5f}}}, .out = {Tensor{{0.52109531f}}}});
  r.define("Cosh")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Cosh{}))
      .grad([](const GradCtx& g) { return g.dy() * conj(sinh(g.x())); })
      .doc("The hyperbolic cosine.")
      .sample({.in = {Tensor{0.f, 1.f, -2.f}}, .out = {Tensor{1.f, 1.5430806f, 3.7621957f}}})
      .sample({.in = {Tensor{{0.5f}}}, .out = {Tensor{{1.1276260f}}}});
  r.define("Asinh")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Asinh{}))
      .grad([](const GradCtx& g) { return g.dy() / conj(cosh(g.y())); })
      .doc("The inverse hyperbolic sine.")
      .sample({.in = {Tensor{0.f, 1.f, -2.f}}, .out = {Tensor{0.f, 0.88137359f, -1.4436355f}}})
      .sample({.in = {Tensor{{0.5f}}}, .out = {Tensor{{0.48121183f}}}});
  r.define("Acosh")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Acosh{}))
      .grad([](const GradCtx& g) { return g.dy() / conj(sinh(g.y())); })
      .doc("The inverse hyperbolic cosine; NaN below 1.")
      .sample({.in = {Tensor{1.5f, 2.f, 10.f}}, .out = {Tensor{0.96242365f, 1.3169579f, 2.9932228f}}})
      .sample({.in = {Tensor{{0.5f}}}, .out = {Tensor{{NAN}}}, .differentiable = false});
  r.define("Atanh")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Atanh{}))
      .grad([](const GradCtx& g) { return g.dy() / (1 - square(conj(g.x()))); })
      .doc("The inverse hyperbolic tangent; NaN outside [-1, 1].")
      .sample({.in = {Tensor{0.f, 0.5f, -0.75f}}, .out = {Tensor{0.f, 0.54930614f, -0.97295507f}}})
      .sample({.in = {Tensor{{1.f, 2.f}}}, .out = {Tensor{{INFINITY, NAN}}}, .differentiable = false});
}

}  // namespace

void register_trigonometric(Registry& r) {
  register_trigonometric_functions(r);
  register_hyperbolic_functions(r);
}

RUNNEL_UNARY_FUNCTION(sin, "Sin")
RUNNEL_UNARY_FUNCTION(cos, "Cos")
RUNNEL_UNARY_FUNCTION(tan, "Tan")
RUNNEL_UNARY_FUNCTION(asin, "Asin")
RUNNEL_UNARY_FUNCTION(acos, "Acos")
RUNNEL_UNARY_FUNCTION(atan, "Atan")
RUNNEL_BINARY_FUNCTION(atan2, "Atan2")
RUNNEL_UNARY_FUNCTION(sinh, "Sinh")
RUNNEL_UNARY_FUNCTION(cosh, "Cosh")
RUNNEL_UNARY_FUNCTION(asinh, "Asinh")
RUNNEL_UNARY_FUNCTION(acosh, "Acosh")
RUNNEL_UNARY_FUNCTION(atanh, "Atanh")

}  // namespace runnel
