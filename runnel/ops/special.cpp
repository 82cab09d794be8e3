// Error functions, the gamma function's family, and products with logarithms.
#include "runnel/kernels/cpu/special.h"

#include <cmath>
#include <numbers>

#include "runnel/kernels/cpu/vmath.h"
#include "runnel/ops/math_common.h"

namespace runnel {
namespace {

constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;

Tensor nonzero(const Tensor& x) { return cast(not_equal(x, 0), x.dtype()); }

void register_error_functions(Registry& r) {
  r.define("Erf")
      .in("x", floating)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Erf{}))
      .grad([](const GradCtx& g) { return g.dy() * (exp(negative(square(g.x()))) * kTwoOverSqrtPi); })
      .doc("The error function.")
      .sample({.in = {Tensor{0.f, 0.5f, -1.f}}, .out = {Tensor{0.f, 0.52049988f, -0.84270079f}}})
      .sample({.in = {Tensor{{2.f}}}, .out = {Tensor{{0.99532227f}}}});
  r.define("Erfc")
      .in("x", floating)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Erfc{}))
      .grad([](const GradCtx& g) { return g.dy() * (exp(negative(square(g.x()))) * -kTwoOverSqrtPi); })
      .doc("1 - erf(x), exact for large x.")
      .sample({.in = {Tensor{0.f, 0.5f, -1.f}}, .out = {Tensor{1.f, 0.47950012f, 1.8427008f}}})
      .sample({.in = {Tensor{{3.f}}}, .out = {Tensor{{2.2090497e-05f}}}});
  r.define("Erfinv")
      .in("x", floating)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Erfinv{}))
      .grad([](const GradCtx& g) { return g.dy() * (exp(square(g.y())) * (1 / kTwoOverSqrtPi)); })
      .doc("The inverse of erf: infinite at -1 and 1, NaN beyond.")
      .sample({.in = {Tensor{0.f, 0.5f, -0.75f}}, .out = {Tensor{0.f, 0.47693628f, -0.81341985f}}})
      .sample({.in = {Tensor{{1.f, 2.f}}}, .out = {Tensor{{INFINITY, NAN}}}, .differentiable = false});
}

void register_gamma_functions(Registry& r) {
  r.define("Lgamma")
      .in("x", floating)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Lgamma{}))
      .grad([](const GradCtx& g) { return g.dy() * digamma(g.x()); })
      .doc("The logarithm of |gamma(x)|.")
      .sample({.in = {Tensor{0.5f, 3.f, 4.5f}}, .out = {Tensor{0.57236494f, 0.69314718f, 2.4537366f}}})
      .sample({.in = {Tensor{{-0.5f}}}, .out = {Tensor{{1.2655121f}}}});
  r.define("Digamma")
      .in("x", floating)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Digamma{}))
      .grad([](const GradCtx& g) { return g.dy() * polygamma(1, g.x()); })
      .doc("The derivative of lgamma.")
      .sample({.in = {Tensor{0.5f, 1.f, 4.5f}}, .out = {Tensor{-1.9635100f, -0.57721566f, 1.3888709f}}})
      .sample({.in = {Tensor{{-0.5f}}}, .out = {Tensor{{0.036489974f}}}});
  r.define("Polygamma")
      .type("T", Types<float, double>{})
      .in("a")
      .in("x")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto n, auto x) { return static_cast<decltype(x)>(cpu::polygamma(n, x)); }))
      .grad([](const GradCtx& g) {
        return Gradients{{},
                         g.want(1, [&] { return sum_to_shape_of(g.dy() * polygamma(g.x(0) + 1, g.x(1)), g.x(1)); })};
      })
      .doc("The derivative of digamma of order a = 0, 1, ... The gradient by a is not defined.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1.f, 1.f}}, .out = {Tensor{1.6449341f, -2.4041138f}}, .fixed = {0}})
      .sample({.in = {Tensor{{0.f}, {1.f}}, Tensor{2.f, 0.5f}},
               .out = {Tensor{{0.42278434f, -1.9635100f}, {0.64493407f, 4.9348022f}}},
               .fixed = {0}});
  r.define("RandomGammaGrad")
      .type("T", Types<float, double>{})
      .in("alpha")
      .in("sample")
      .out("output")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto a, auto x) { return static_cast<decltype(x)>(cpu::gamma_draw_slope(a, x)); }))
      .not_differentiable()
      .doc("How draws from Gamma(alpha, 1) move with alpha while their quantiles stay.")
      .sample({.in = {Tensor{0.5f, 2.f, 10.f}, Tensor{0.3f, 5.f, 30.f}},
               .out = {Tensor{1.0098021f, 1.6580689f, 1.6746942f}}})
      .sample({.in = {Tensor{{100.f}, {-1.f}}, Tensor{90.f, 0.f}}, .out = {Tensor{{0.94982493f, 0.f}, {NAN, 0.f}}}})
      .sample({.in = {Tensor{INFINITY, 2.f, 1e30f}, Tensor{1.f, INFINITY, 1e30f}}, .out = {Tensor{0.f, 0.f, 1.f}}});
  r.define("Zeta")
      .type("T", Types<float, double>{})
      .in("x")
      .in("q")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto q) { return static_cast<decltype(x)>(cpu::zeta(x, q)); }))
      .grad([](const GradCtx& g) {
        return Gradients{{}, g.want(1, [&] {
                           const Tensor slope = negative(g.x(0)) * zeta(g.x(0) + 1, g.x(1));
                           return sum_to_shape_of(g.dy() * slope, g.x(1));
                         })};
      })
      .doc("Hurwitz's zeta: the sum of (q + k)^-x over k = 0, 1, ... The gradient by x is not defined.")
      .sample({.in = {Tensor{2.f, 4.f}, Tensor{1.f, 1.f}}, .out = {Tensor{1.6449341f, 1.0823232f}}, .fixed = {0}})
      .sample({.in = {Tensor{{3.f}}, Tensor(0.5f)}, .out = {Tensor{{8.4143983f}}}, .fixed = {0}});
}

struct XTimesLog {
  template <class T>
  T operator()(T x, T y) const {
    return x == T(0) ? T(0) : x * std::log(y);
  }
  static void block(const float* x, const float* y, float* z, int64_t n) { cpu::vxlogy(x, y, z, n); }
};
struct XTimesLog1p {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (is_complex_element<T>) {
      return x == T(0) ? T(0) : x * std::log(T(1) + y);
    } else {
      return x == T(0) ? T(0) : x * std::log1p(y);
    }
  }
  static void block(const float* x, const float* y, float* z, int64_t n) { cpu::vxlog1py(x, y, z, n); }
};

void register_logarithmic_products(Registry& r) {
  r.define("Xlogy")
      .in("x", floating_or_complex)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise(XTimesLog{}))
      .grad([](const GradCtx& g) {
        return binary_gradients(
            g, [&] { return g.dy() * conj(xlogy(nonzero(g.x(0)), g.x(1))); },
            [&] { return g.dy() * conj(xdivy(g.x(0), g.x(1))); });
      })
      .doc("x * log(y), and 0 wherever x is 0.")
      .sample({.in = {Tensor{2.f, -1.f}, Tensor{2.f, 0.5f}}, .out = {Tensor{1.3862944f, 0.69314718f}}})
      .sample({.in = {Tensor{{0.f}, {0.f}}, Tensor{0.f, 2.f}},
               .out = {Tensor{{0.f, 0.f}, {0.f, 0.f}}},
               .differentiable = false});
  r.define("Xlog1py")
      .in("x", floating_or_complex)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise(XTimesLog1p{}))
      .grad([](const GradCtx& g) {
        return binary_gradients(
            g, [&] { return g.dy() * conj(xlog1py(nonzero(g.x(0)), g.x(1))); },
            [&] { return g.dy() * conj(xdivy(g.x(0), g.x(1) + 1)); });
      })
      .doc("x * log(1 + y), and 0 wherever x is 0.")
      .sample({.in = {Tensor{2.f, -1.f}, Tensor{1.f, -0.5f}}, .out = {Tensor{1.3862944f, 0.69314718f}}})
      .sample({.in = {Tensor{{0.f}, {0.f}}, Tensor{-1.f, 1.f}},
               .out = {Tensor{{0.f, 0.f}, {0.f, 0.f}}},
               .differentiable = false});
}

}  // namespace

void register_special(Registry& r) {
  register_error_functions(r);
  register_gamma_functions(r);
  register_logarithmic_products(r);
}

RUNNEL_UNARY_FUNCTION(erf, "Erf")
RUNNEL_UNARY_FUNCTION(erfc, "Erfc")
RUNNEL_UNARY_FUNCTION(erfinv, "Erfinv")
RUNNEL_UNARY_FUNCTION(lgamma, "Lgamma")
RUNNEL_UNARY_FUNCTION(digamma, "Digamma")
RUNNEL_BINARY_FUNCTION(polygamma, "Polygamma")
RUNNEL_BINARY_FUNCTION(zeta, "Zeta")
RUNNEL_BINARY_FUNCTION(xlogy, "Xlogy")
RUNNEL_BINARY_FUNCTION(xlog1py, "Xlog1py")

}  // namespace runnel
