// Quotients and remainders.
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/remainder.h"
#include "runnel/op/composed.h"
#include "runnel/ops/math_common.h"

namespace runnel {
namespace {

template <class T>
bool has_zero(const T* x, int64_t n) {
  bool found = false;
  for (int64_t i = 0; i < n; ++i) found |= x[i] == T(0);
  return found;
}

// An elementwise kernel that refuses integer divisors of zero before it starts.
template <class F>
struct CheckedDivision {
  static constexpr bool is_elementwise = true;
  template <class E, class A>
  static void run(KernelContext& c) {
    if constexpr (std::is_integral_v<E>) {
      if (c.out().num_elements() > 0 && has_zero(c.in<E>(1), c.in(1).num_elements())) {
        throw invalid_argument("integer division by zero: y has a zero");
      }
    }
    Elementwise<F, false>::template run<E, A>(c);
  }
};
template <class F>
constexpr CheckedDivision<F> checked(F) {
  return {};
}

// C++'s quotient, towards zero, for y != 0; the smallest integer over -1 wraps around.
template <class T>
T quotient(T x, T y) {
  if constexpr (sizeof(T) < 8) {
    // In double: exact, and vectors have it. Where y is -1, a sign is all there is to do.
    const bool negates = std::is_signed_v<T> && y == T(-1);
    const double by = negates ? 1.0 : static_cast<double>(y);
    const T q = static_cast<T>(static_cast<std::conditional_t<std::is_signed_v<T>, int32_t, int64_t>>(x / by));
    return negates ? static_cast<T>(0 - wrapping(x)) : q;
  } else {
    if constexpr (std::is_signed_v<T>) {
      if (y == T(-1)) return static_cast<T>(0 - wrapping(x));
    }
    return static_cast<T>(x / y);
  }
}
template <class T>
T remainder(T x, T y) {
  return static_cast<T>(wrapping(x) - wrapping(quotient(x, y)) * wrapping(y));
}

constexpr auto floor_div = [](auto x, auto y) {
  using T = decltype(x);
  if constexpr (std::is_integral_v<T>) {
    const T q = quotient(x, y);
    if constexpr (std::is_signed_v<T>) {
      const T m = static_cast<T>(wrapping(x) - wrapping(q) * wrapping(y));
      return static_cast<T>(q - T((m != 0) & ((m < 0) != (y < 0))));
    } else {
      return q;
    }
  } else {
    return std::floor(x / y);
  }
};
struct FloorMod {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      const T m = remainder(x, y);
      if constexpr (std::is_signed_v<T>) {
        return static_cast<T>(((m != 0) & ((m < 0) != (y < 0))) ? m + y : m);
      } else {
        return m;
      }
    } else {
      return cpu::floor_mod(x, y);
    }
  }
  static void block(const float* x, const float* y, float* z, int64_t n) { cpu::vfloor_mod(x, y, z, n); }
};
constexpr auto truncate_div = [](auto x, auto y) {
  if constexpr (std::is_integral_v<decltype(x)>) {
    return quotient(x, y);
  } else {
    return std::trunc(x / y);
  }
};
struct TruncateMod {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return remainder(x, y);
    } else {
      return cpu::truncate_mod(x, y);
    }
  }
  static void block(const float* x, const float* y, float* z, int64_t n) { cpu::vtruncate_mod(x, y, z, n); }
};

// The type of true division; invalid where the operands need no conversion.
DType true_division_dtype(DType dtype) {
  if (!is_integer(dtype)) return DType::invalid;
  return dtype_size(dtype) <= 2 ? DType::float32 : DType::float64;
}

Gradients quotient_gradients(const GradCtx& g) {
  return binary_gradients(
      g, [&] { return g.dy() / conj(g.x(1)); }, [&] { return g.dy() * conj(negative(g.y()) / g.x(1)); });
}

int divided_by_one(InferContext& c) { return c.is_scalar(1, 1) ? 0 : -1; }

}  // namespace

void register_division(Registry& r) {
  r.define("RealDiv")
      .in("x", floating_or_complex)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(fusible([](auto x, auto y) { return x / y; }))
      .grad([](const GradCtx& g) { return quotient_gradients(g); })
      .same_as(divided_by_one)
      .doc("x / y, element by element.")
      .sample({.in = {Tensor{1.f, -2.f, 3.f}, Tensor{2.f, 4.f, -1.f}}, .out = {Tensor{0.5f, -0.5f, -3.f}}})
      .sample({.in = {Tensor{{1.f}, {2.f}}, Tensor{2.f, 4.f}}, .out = {Tensor{{0.5f, 0.25f}, {1.f, 0.5f}}}});

  r.define("Div")
      .in("x", numbers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(checked([](auto x, auto y) {
        if constexpr (std::is_integral_v<decltype(x)>) {
          return quotient(x, y);
        } else {
          return x / y;
        }
      }))
      .same_as(divided_by_one)
      .grad([](const GradCtx& g) { return quotient_gradients(g); })
      .doc("x / y as in C: quotients of integers are cut off towards zero.")
      .sample({.in = {Tensor{1.f, -2.f}, Tensor{2.f, 4.f}}, .out = {Tensor{0.5f, -0.5f}}})
      .sample({.in = {Tensor{8, 6}, Tensor{2, 3}}, .out = {Tensor{4, 2}}})
      .sample({.in = {Tensor{1, 2}, Tensor{1, 0}}, .error = "division by zero"});

  r.define("DivNoNan")
      .in("x", floating_or_complex)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return y == decltype(y)(0) ? decltype(x)(0) : x / y; }))
      .grad([](const GradCtx& g) {
        return binary_gradients(
            g, [&] { return divide_no_nan(g.dy(), conj(g.x(1))); },
            [&] { return g.dy() * divide_no_nan(negative(conj(g.y())), conj(g.x(1))); });
      })
      .doc("x / y, and 0 wherever y is 0.")
      .sample({.in = {Tensor{1.f, -2.f}, Tensor{2.f, 4.f}}, .out = {Tensor{0.5f, -0.5f}}})
      .sample({.in = {Tensor{1.f, 0.f}, Tensor(0.f)}, .out = {Tensor{0.f, 0.f}}, .differentiable = false});

  r.define("Xdivy")
      .in("x", floating_or_complex)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return x == decltype(x)(0) ? decltype(x)(0) : x / y; }))
      .grad([](const GradCtx& g) {
        const auto nonzero = [&] { return cast(not_equal(g.x(0), 0), g.x(0).dtype()); };
        return binary_gradients(
            g, [&] { return g.dy() * conj(xdivy(nonzero(), g.x(1))); },
            [&] { return g.dy() * conj(xdivy(negative(g.x(0)), square(g.x(1)))); });
      })
      .doc("x / y, and 0 wherever x is 0.")
      .sample({.in = {Tensor{1.f, -2.f}, Tensor{2.f, 4.f}}, .out = {Tensor{0.5f, -0.5f}}})
      .sample({.in = {Tensor{0.f, 0.f}, Tensor{0.f, 1.f}}, .out = {Tensor{0.f, 0.f}}, .differentiable = false});

  r.define("FloorDiv")
      .in("x", real_numbers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(checked(floor_div))
      .not_differentiable()
      .doc("The largest integer at most x / y, as // in Python.")
      .sample({.in = {Tensor{7.f, -7.f}, Tensor(2.f)}, .out = {Tensor{3.f, -4.f}}, .differentiable = false})
      .sample({.in = {Tensor{7, 5}, Tensor{{2}, {3}}}, .out = {Tensor{{3, 2}, {2, 1}}}})
      .sample({.in = {Tensor{1, 2}, Tensor(0)}, .error = "division by zero"});

  r.define("FloorMod")
      .in("x", real_numbers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(checked(FloorMod{}))
      .grad([](const GradCtx& g) {
        return binary_gradients(
            g, [&] { return g.dy(); }, [&] { return g.dy() * negative(floordiv(g.x(0), g.x(1))); });
      })
      .doc("x - y * floor(x / y): the remainder with the sign of y, as % in Python.")
      .sample({.in = {Tensor{7.5f, -7.f}, Tensor(2.f)}, .out = {Tensor{1.5f, 1.f}}, .differentiable = false})
      .sample({.in = {Tensor{7.5f, -7.25f}, Tensor{{2.f}, {3.f}}}, .out = {Tensor{{1.5f, 0.75f}, {1.5f, 1.75f}}}})
      .sample({.in = {Tensor{7, 5}, Tensor{4, 3}}, .out = {Tensor{3, 2}}})
      .sample({.in = {Tensor{1, 2}, Tensor(0)}, .error = "division by zero"});

  r.define("TruncateDiv")
      .in("x", real_numbers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(checked(truncate_div))
      .not_differentiable()
      .doc("x / y cut off towards zero, as in C.")
      .sample({.in = {Tensor{7.f, -7.f}, Tensor(2.f)}, .out = {Tensor{3.f, -3.f}}, .differentiable = false})
      .sample({.in = {Tensor{7, 5}, Tensor{2, 3}}, .out = {Tensor{3, 1}}})
      .sample({.in = {Tensor{1, 2}, Tensor(0)}, .error = "division by zero"});

  r.define("TruncateMod")
      .in("x", floating + index_types)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(checked(TruncateMod{}))
      .grad([](const GradCtx& g) {
        return binary_gradients(
            g, [&] { return g.dy(); }, [&] { return g.dy() * negative(truncatediv(g.x(0), g.x(1))); });
      })
      .doc("The remainder with the sign of x, as % in C.")
      .sample({.in = {Tensor{7.5f, -7.5f}, Tensor(2.f)}, .out = {Tensor{1.5f, -1.5f}}})
      .sample({.in = {Tensor{-7, 5}, Tensor{4, 3}}, .out = {Tensor{-3, 2}}})
      .sample({.in = {Tensor{1, 2}, Tensor(0)}, .error = "division by zero"});
  r.alias("Mod", "TruncateMod");
}

RUNNEL_BINARY_FUNCTION(realdiv, "RealDiv")
RUNNEL_BINARY_FUNCTION(divide_no_nan, "DivNoNan")
RUNNEL_BINARY_FUNCTION(xdivy, "Xdivy")
RUNNEL_BINARY_FUNCTION(floordiv, "FloorDiv")
RUNNEL_BINARY_FUNCTION(floormod, "FloorMod")
RUNNEL_BINARY_FUNCTION(truncatediv, "TruncateDiv")
RUNNEL_BINARY_FUNCTION(truncatemod, "TruncateMod")

Tensor mod(const Operand& x, const Operand& y) { return floormod(x, y); }
Tensor truediv(const Operand& x, const Operand& y) { return divide(x, y); }
Tensor divide(const Operand& x, const Operand& y) {
  const Tensor* known = x.tensor() ? x.tensor() : y.tensor();
  const DType dtype = known && known->defined() ? known->dtype() : x.natural_dtype();
  const DType quotient = true_division_dtype(dtype);
  if (quotient == DType::invalid) return realdiv(x, y);
  return composed(x.where(), [&] {
    const auto converted = [&](const Operand& o) {
      const Tensor t = o.is_literal() ? o.as(dtype) : *o.tensor();
      if (t.dtype() != dtype) {
        throw invalid_argument("[RealDiv] x is {}, y is {}: cast one of them", dtype_name(dtype),
                               dtype_name(t.dtype()));
      }
      return cast(t, quotient);
    };
    const Tensor a = converted(x);
    return realdiv(a, converted(y));
  });
}

}  // namespace runnel
