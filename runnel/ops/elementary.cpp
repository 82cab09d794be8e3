// Exponentials, logarithms, roots and powers.
#include <algorithm>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/vmath.h"
#include "runnel/ops/math_common.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {
namespace {

// Complex forms that keep their precision near zero, where the plain formula cancels.
template <class F, class Complex>
struct WithComplex {
  template <class T>
  auto operator()(T x) const {
    return F{}(x);
  }
  template <class T>
  auto operator()(std::complex<T> x) const {
    return Complex{}(x);
  }
  static void block(const float* x, float* y, int64_t n) { F::block(x, y, n); }
};
struct ComplexExpm1 {
  template <class T>
  std::complex<T> operator()(std::complex<T> z) const {
    const T s = std::sin(z.imag() / 2);
    return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * s * s, std::exp(z.real()) * std::sin(z.imag())};
  }
};
struct ComplexLog1p {
  template <class T>
  std::complex<T> operator()(std::complex<T> z) const {
    const T x = z.real(), y = z.imag();
    // |1 + z|^2 - 1 = x (2 + x) + y^2 cancels nothing for small z; large z do not need it.
    const bool small = std::abs(x) < T(0.5) && std::abs(y) < T(0.5);
    return {small ? std::log1p(x * (2 + x) + y * y) / 2 : std::log(std::abs(std::complex<T>(1 + x, y))),
            std::atan2(y, 1 + x)};
  }
};
using Expm1 = WithComplex<cpu::Expm1, ComplexExpm1>;
using Log1p = WithComplex<cpu::Log1p, ComplexLog1p>;

constexpr auto conjugate = [](auto x) {
  if constexpr (is_complex_element<decltype(x)>) {
    return std::conj(x);
  } else {
    return x;
  }
};

// A value and the gradient that comes back for it: nothing broadcasts.
void value_and_gradient(InferContext& c) {
  if (!c.input(0).compatible_with(c.input(1))) {
    throw invalid_argument("y and dy must have the same shape, got {} and {}", c.input(0).str(), c.input(1).str());
  }
  c.output(c.input(0).merged_with(c.input(1)));
}

// The derivatives of these functions are cheap in terms of their value: one kernel instead of several passes.
Tensor tanh_grad(const Tensor& y, const Tensor& dy) {
  static const Op op("TanhGrad");
  return op({y, dy});
}
Tensor sigmoid_grad(const Tensor& y, const Tensor& dy) {
  static const Op op("SigmoidGrad");
  return op({y, dy});
}
Tensor sqrt_grad(const Tensor& y, const Tensor& dy) {
  static const Op op("SqrtGrad");
  return op({y, dy});
}
Tensor rsqrt_grad(const Tensor& y, const Tensor& dy) {
  static const Op op("RsqrtGrad");
  return op({y, dy});
}
Tensor reciprocal_grad(const Tensor& y, const Tensor& dy) {
  static const Op op("ReciprocalGrad");
  return op({y, dy});
}

void register_exponentials(Registry& r) {
  r.define("Exp")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Exp{}))
      .grad([](const GradCtx& g) { return g.dy() * conj(g.y()); })
      .grad_reads({}, {0})
      .doc("e to the power x.")
      .sample({.in = {Tensor{0.f, 1.f, -1.f}}, .out = {Tensor{1.f, 2.7182817f, 0.36787945f}}})
      .sample({.in = {Tensor{{0.5f}, {2.f}}}, .out = {Tensor{{1.6487212f}, {7.389056f}}}});
  r.define("Expm1")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(Expm1{}))
      .grad([](const GradCtx& g) { return g.dy() * conj(exp(g.x())); })
      .grad_reads({0})
      .doc("exp(x) - 1, exact for small x.")
      .sample({.in = {Tensor{0.f, 1.f, 1e-6f}}, .out = {Tensor{0.f, 1.7182819f, 1.0000005e-6f}}})
      .sample({.in = {Tensor{{-1.f}}}, .out = {Tensor{{-0.63212055f}}}});
  r.define("Log")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Log{}))
      .grad([](const GradCtx& g) { return g.dy() / conj(g.x()); })
      .grad_reads({0})
      .doc("The natural logarithm.")
      .sample({.in = {Tensor{1.f, 2.f, 0.5f}}, .out = {Tensor{0.f, 0.6931472f, -0.6931472f}}})
      .sample({.in = {Tensor{{0.f, -1.f}}}, .out = {Tensor{{-INFINITY, NAN}}}, .differentiable = false});
  r.define("Log1p")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(Log1p{}))
      .grad([](const GradCtx& g) { return g.dy() / (conj(g.x()) + 1); })
      .grad_reads({0})
      .doc("log(1 + x), exact for small x.")
      .sample({.in = {Tensor{0.f, 1.f, 1e-6f}}, .out = {Tensor{0.f, 0.6931472f, 9.999995e-7f}}})
      .sample({.in = {Tensor{{-0.5f}}}, .out = {Tensor{{-0.6931472f}}}});

  r.define("Sigmoid")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Sigmoid{}))
      .grad([](const GradCtx& g) { return sigmoid_grad(conj(g.y()), g.dy()); })
      .post_op("Sigmoid")
      .grad_reads({}, {0})
      .doc("1 / (1 + exp(-x)).")
      .sample({.in = {Tensor{0.f, 1.f, -1.f}}, .out = {Tensor{0.5f, 0.7310586f, 0.26894143f}}})
      .sample({.in = {Tensor{{2.f}}}, .out = {Tensor{{0.880797f}}}});
  r.define("SigmoidGrad")
      .in("y", floating_or_complex)
      .in("dy")
      .out("z")
      .shape(value_and_gradient)
      .cpu(fusible([](auto y, auto dy) { return dy * y * (decltype(y)(1) - y); }))
      .grad([](const GradCtx& g) {
        const Tensor y = conj(g.x(0));
        return Gradients{g.want(0, [&] { return g.dy() * conj(g.x(1)) * (1 - y * 2); }),
                         g.want(1, [&] { return sigmoid_grad(y, g.dy()); })};
      })
      .doc("dy * y * (1 - y): the gradient of sigmoid by its value.")
      .sample({.in = {Tensor{0.5f, 0.75f}, Tensor{1.f, 2.f}}, .out = {Tensor{0.25f, 0.375f}}})
      .sample({.in = {Tensor{{0.25f}}, Tensor{{-1.f}}}, .out = {Tensor{{-0.1875f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{{1.f}}}, .error = "[1,2] and [1,1]"});

  r.define("Tanh")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Tanh{}))
      .grad([](const GradCtx& g) { return tanh_grad(conj(g.y()), g.dy()); })
      .post_op("Tanh")
      .grad_reads({}, {0})
      .doc("The hyperbolic tangent.")
      .sample({.in = {Tensor{0.f, 1.f, -1.f}}, .out = {Tensor{0.f, 0.7615942f, -0.7615942f}}})
      .sample({.in = {Tensor{{0.5f}}}, .out = {Tensor{{0.46211717f}}}});
  r.define("TanhGrad")
      .in("y", floating_or_complex)
      .in("dy")
      .out("z")
      .shape(value_and_gradient)
      .cpu(fusible([](auto y, auto dy) { return dy * (decltype(y)(1) - y * y); }))
      .grad([](const GradCtx& g) {
        const Tensor y = conj(g.x(0));
        return Gradients{g.want(0, [&] { return g.dy() * -2 * conj(g.x(1)) * y; }),
                         g.want(1, [&] { return tanh_grad(y, g.dy()); })};
      })
      .doc("dy * (1 - y * y): the gradient of tanh by its value.")
      .sample({.in = {Tensor{0.5f, -0.5f}, Tensor{1.f, 2.f}}, .out = {Tensor{0.75f, 1.5f}}})
      .sample({.in = {Tensor{{0.25f}}, Tensor{{-1.f}}}, .out = {Tensor{{-0.9375f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{{1.f}}}, .error = "[1,2] and [1,1]"});
}

void register_roots(Registry& r) {
  r.define("Sqrt")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Sqrt{}))
      .grad([](const GradCtx& g) { return sqrt_grad(g.y(), g.dy()); })
      .grad_reads({}, {0})
      .doc("The square root.")
      .sample({.in = {Tensor{1.f, 4.f, 0.25f}}, .out = {Tensor{1.f, 2.f, 0.5f}}})
      .sample({.in = {Tensor{{2.f}}}, .out = {Tensor{{1.4142135f}}}});
  // The gradients of the next three take the conjugate themselves, as TensorFlow's do.
  r.define("SqrtGrad")
      .in("y", floating_or_complex)
      .in("dy")
      .out("z")
      .shape(value_and_gradient)
      .cpu(elementwise([](auto y, auto dy) {  // what is not asked for has the slope 0 at 0, too
        using T = decltype(y);
        return dy == T(0) ? T(0) : T(0.5f) * dy / conjugate(y);
      }))
      .grad([](const GradCtx& g) {
        const Tensor part = g.dy() / g.x(0);
        return Gradients{g.want(0, [&] { return negative(conj(part)) * g.y(); }),
                         g.want(1, [&] { return part * 0.5; })};
      })
      .doc("dy / (2 conj(y)), 0 where dy is: the gradient of sqrt by its value.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1.f, 2.f}}, .out = {Tensor{0.5f, 0.5f}}})
      .sample({.in = {Tensor{0.f, 2.f}, Tensor{0.f, 1.f}}, .out = {Tensor{0.f, 0.25f}}, .differentiable = false})
      .sample({.in = {Tensor{{0.25f}}, Tensor{{-1.f}}}, .out = {Tensor{{-2.f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{{1.f}}}, .error = "[1,2] and [1,1]"});

  r.define("Rsqrt")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise(cpu::Rsqrt{}))
      .grad([](const GradCtx& g) { return rsqrt_grad(g.y(), g.dy()); })
      .grad_reads({}, {0})
      .doc("1 / sqrt(x).")
      .sample({.in = {Tensor{1.f, 4.f, 0.25f}}, .out = {Tensor{1.f, 0.5f, 2.f}}})
      .sample({.in = {Tensor{{2.f}}}, .out = {Tensor{{0.70710677f}}}});
  r.define("RsqrtGrad")
      .in("y", floating_or_complex)
      .in("dy")
      .out("z")
      .shape(value_and_gradient)
      .cpu(elementwise([](auto y, auto dy) {
        const auto c = conjugate(y);
        return decltype(y)(-0.5f) * (dy * c) * (c * c);
      }))
      .grad([](const GradCtx& g) {
        const Tensor y = conj(g.x(0));
        return Gradients{g.want(0, [&] { return conj(g.dy()) * -1.5 * g.x(1) * square(y); }),
                         g.want(1, [&] { return rsqrt_grad(y, g.dy()); })};
      })
      .doc("-dy conj(y)^3 / 2: the gradient of rsqrt by its value.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1.f, 2.f}}, .out = {Tensor{-0.5f, -8.f}}})
      .sample({.in = {Tensor{{0.5f}}, Tensor{{-1.f}}}, .out = {Tensor{{0.0625f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{{1.f}}}, .error = "[1,2] and [1,1]"});

  r.define("Reciprocal")
      .in("x", floating_or_complex)
      .out("y")
      .shape(like<0>)
      .cpu(fusible([](auto x) { return decltype(x)(1) / x; }))
      .grad([](const GradCtx& g) { return reciprocal_grad(g.y(), g.dy()); })
      .grad_reads({}, {0})
      .doc("1 / x.")
      .sample({.in = {Tensor{1.f, 4.f, -0.25f}}, .out = {Tensor{1.f, 0.25f, -4.f}}})
      .sample({.in = {Tensor{{2.f}}}, .out = {Tensor{{0.5f}}}});
  r.alias("Inv", "Reciprocal");
  r.define("ReciprocalGrad")
      .in("y", floating_or_complex)
      .in("dy")
      .out("z")
      .shape(value_and_gradient)
      .cpu(elementwise([](auto y, auto dy) {
        const auto c = conjugate(y);
        return -dy * c * c;
      }))
      .grad([](const GradCtx& g) {
        const Tensor y = conj(g.x(0));
        return Gradients{g.want(0, [&] { return conj(g.dy()) * -2 * g.x(1) * y; }),
                         g.want(1, [&] { return reciprocal_grad(y, g.dy()); })};
      })
      .doc("-dy conj(y)^2: the gradient of reciprocal by its value.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1.f, 2.f}}, .out = {Tensor{-1.f, -8.f}}})
      .sample({.in = {Tensor{{0.5f}}, Tensor{{-1.f}}}, .out = {Tensor{{0.25f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{{1.f}}}, .error = "[1,2] and [1,1]"});
  r.alias("InvGrad", "ReciprocalGrad");
}

struct Power {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      auto base = wrapping(x);
      decltype(base) result = 1;
      for (T n = y; n > 0; n = static_cast<T>(n >> 1)) {
        if (n & 1) result *= base;
        base *= base;
      }
      return static_cast<T>(result);
    } else if constexpr (is_complex_element<T>) {
      return y == T(0) ? T(1) : std::pow(x, y);
    } else {
      return std::pow(x, y);
    }
  }
  static void block(const float* x, const float* y, float* z, int64_t n) { cpu::vpow(x, y, z, n); }
};
struct SquareOf {
  template <class T>
  T operator()(T x) const {
    return x * x;
  }
};

struct PowerKernel {
  static constexpr bool is_elementwise = true;
  template <class E, class A>
  static void run(KernelContext& c) {
    const E* y = c.in<E>(1);
    const int64_t n = c.in(1).num_elements();
    if constexpr (std::is_integral_v<E>) {
      if (c.out().num_elements() > 0 && std::any_of(y, y + n, [](E v) { return v < 0; })) {
        throw invalid_argument("integers to negative integer powers are not allowed");
      }
    } else if constexpr (!is_complex_element<E>) {
      // The one power that every model takes, rounded right (pow is a little less sure of the last bit).
      if (n == 1 && *y == E(2) && c.in(0).shape() == c.out().shape()) {
        return cpu::unary_loop<SquareOf, E, E>(c.in<E>(0), c.out<E>(), c.out().num_elements());
      }
    }
    Elementwise<Power, false>::run<E, A>(c);
  }
};

void register_powers(Registry& r) {
  r.define("Pow")
      .in("x", floating_or_complex + signed_integers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(PowerKernel{})
      .grad([](const GradCtx& g) {
        const auto x_grad = [&] {
          const Tensor x = conj(g.x(0)), y = conj(g.x(1));
          return g.dy() * y * pow(x, y - 1);
        };
        // x^y follows y only where log(x) is defined; elsewhere its slope is taken as 0.
        const auto y_grad = [&] {
          const Tensor x = conj(g.x(0));
          const Tensor defined = is_complex(x.dtype()) ? not_equal(x, 0) : x > 0;
          const Tensor log_x = where(defined, log(where(defined, x, 1)), 0);
          return g.dy() * conj(g.y()) * log_x;
        };
        return binary_gradients(g, x_grad, y_grad);
      })
      .doc("x to the power y.")
      .sample({.in = {Tensor{2.f, 0.5f, 3.f}, Tensor{3.f, -1.f, 0.5f}}, .out = {Tensor{8.f, 2.f, 1.7320508f}}})
      .sample({.in = {Tensor{{1.5f}, {2.f}}, Tensor{2.f, 1.f}}, .out = {Tensor{{2.25f, 1.5f}, {4.f, 2.f}}}})
      .sample({.in = {Tensor{1.5f, -2.f}, Tensor(2.f)}, .out = {Tensor{2.25f, 4.f}}, .differentiable = false})
      .sample({.in = {Tensor{3, -2}, Tensor{2, 3}}, .out = {Tensor{9, -8}}})
      .sample({.in = {Tensor{3, 2}, Tensor(-1)}, .error = "negative integer powers"});
}

}  // namespace

void register_elementary(Registry& r) {
  register_exponentials(r);
  register_powers(r);
  register_roots(r);
}

RUNNEL_BINARY_FUNCTION(pow, "Pow")
RUNNEL_UNARY_FUNCTION(exp, "Exp")
RUNNEL_UNARY_FUNCTION(expm1, "Expm1")
RUNNEL_UNARY_FUNCTION(log, "Log")
RUNNEL_UNARY_FUNCTION(log1p, "Log1p")
RUNNEL_UNARY_FUNCTION(sigmoid, "Sigmoid")
RUNNEL_UNARY_FUNCTION(tanh, "Tanh")
RUNNEL_UNARY_FUNCTION(sqrt, "Sqrt")
RUNNEL_UNARY_FUNCTION(rsqrt, "Rsqrt")
RUNNEL_UNARY_FUNCTION(reciprocal, "Reciprocal")

}  // namespace runnel
