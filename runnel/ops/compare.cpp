// Comparisons and tests of floating values.
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/ops/math_common.h"

namespace runnel {
namespace {

struct EqualAttrs {
  bool incompatible_shape_error = true;
  static constexpr auto fields() {
    return field_list(field("incompatible_shape_error", &EqualAttrs::incompatible_shape_error));
  }
};

// Do the shapes broadcast, as far as is known?
bool fit(const PartialShape& x, const PartialShape& y) {
  if (!x.has_rank() || !y.has_rank()) return true;
  for (int back = 1; back <= std::min(x.rank(), y.rank()); ++back) {
    const int64_t a = x[x.rank() - back], b = y[y.rank() - back];
    if (a != b && a != 1 && b != 1 && a >= 0 && b >= 0) return false;
  }
  return true;
}

void equal_shape(InferContext& c, const EqualAttrs& a) {
  if (a.incompatible_shape_error) return c.output(broadcast_shapes(c.input(0), c.input(1)));
  if (!fit(c.input(0), c.input(1))) return scalar_shape(c);
  if (c.input(0).is_static() && c.input(1).is_static()) return c.output(broadcast_shapes(c.input(0), c.input(1)));
  c.output(PartialShape::unknown());  // a scalar when the sizes turn out not to fit
}

// Strings are compared through pointers, which broadcast like any element.
template <class F>
void compare_strings(KernelContext& c) {
  struct Pointers {
    bool operator()(const Bytes* x, const Bytes* y) const { return F{}(*x, *y); }
  };
  const auto pointers = [&](int i) {
    std::vector<const Bytes*> all(static_cast<size_t>(c.in(i).num_elements()));
    for (size_t k = 0; k < all.size(); ++k) all[k] = c.in<Bytes>(i) + k;
    return all;
  };
  const auto x = pointers(0), y = pointers(1);
  cpu::binary_broadcast<Pointers, const Bytes*, bool>(x.data(), c.in(0).shape().dims(), y.data(),
                                                      c.in(1).shape().dims(), c.out<bool>(), c.out().shape().dims());
}

// Equal or NotEqual: what F says, or `otherwise` when the shapes do not fit (and that is no error).
template <class F, bool otherwise>
struct EqualKernel {
  static constexpr bool is_elementwise = true;
  template <class E, class A>
  static void run(KernelContext& c) {
    if (!fit(c.in(0).shape(), c.in(1).shape())) {
      *c.out<bool>() = otherwise;
    } else if constexpr (std::is_same_v<E, Bytes>) {
      compare_strings<F>(c);
    } else {
      Elementwise<F, false>::template run<E, A>(c);
    }
  }
};
template <bool otherwise, class F>
constexpr EqualKernel<F, otherwise> equality(F) {
  return {};
}

constexpr auto is_equal = [](const auto& x, const auto& y) { return x == y; };
constexpr auto is_unequal = [](const auto& x, const auto& y) { return !(x == y); };

}  // namespace

void register_compare(Registry& r) {
  r.define<EqualAttrs>("Equal")
      .in("x", data_types)
      .in("y")
      .out("z", DType::bool_)
      .shape([](InferContext& c, const EqualAttrs& a) { equal_shape(c, a); })
      .cpu(equality<false>(is_equal))
      .commutative()
      .doc("Is x equal to y? Without incompatible_shape_error, shapes that do not broadcast give one false.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1.f, 3.f}}, .out = {Tensor{true, false}}})
      .sample({.in = {Tensor{{1}, {2}}, Tensor{1, 2}}, .out = {Tensor{{true, false}, {false, true}}}})
      .sample({.in = {Tensor{"a", "b"}, Tensor("b")}, .out = {Tensor{false, true}}})
      .sample({.in = {Tensor{1, 2}, Tensor{1, 2, 3}}, .error = "do not broadcast"});

  r.define<EqualAttrs>("NotEqual")
      .in("x", data_types)
      .in("y")
      .out("z", DType::bool_)
      .shape([](InferContext& c, const EqualAttrs& a) { equal_shape(c, a); })
      .cpu(equality<true>(is_unequal))
      .commutative()
      .doc("Is x different from y? Without incompatible_shape_error, shapes that do not broadcast give one true.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1.f, 3.f}}, .out = {Tensor{false, true}}})
      .sample({.in = {Tensor{{1}, {2}}, Tensor{1, 2}}, .out = {Tensor{{false, true}, {true, false}}}})
      .sample({.in = {Tensor{1, 2}, Tensor{1, 2, 3}}, .error = "do not broadcast"});

  r.define("Less")
      .in("x", real_numbers)
      .in("y")
      .out("z", DType::bool_)
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return x < y; }))
      .doc("x < y, element by element.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor(2.f)}, .out = {Tensor{true, false, false}}})
      .sample({.in = {Tensor{{1}, {2}}, Tensor{1, 2}}, .out = {Tensor{{false, true}, {false, false}}}});
  r.define("LessEqual")
      .in("x", real_numbers)
      .in("y")
      .out("z", DType::bool_)
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return x <= y; }))
      .doc("x <= y, element by element.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor(2.f)}, .out = {Tensor{true, true, false}}})
      .sample({.in = {Tensor{{1}, {2}}, Tensor{1, 2}}, .out = {Tensor{{true, true}, {false, true}}}});
  r.define("Greater")
      .in("x", real_numbers)
      .in("y")
      .out("z", DType::bool_)
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return x > y; }))
      .doc("x > y, element by element.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor(2.f)}, .out = {Tensor{false, false, true}}})
      .sample({.in = {Tensor{{1}, {2}}, Tensor{1, 2}}, .out = {Tensor{{false, false}, {true, false}}}});
  r.define("GreaterEqual")
      .in("x", real_numbers)
      .in("y")
      .out("z", DType::bool_)
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return x >= y; }))
      .doc("x >= y, element by element.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor(2.f)}, .out = {Tensor{false, true, true}}})
      .sample({.in = {Tensor{{1}, {2}}, Tensor{1, 2}}, .out = {Tensor{{true, false}, {true, true}}}});

  r.define("IsNan")
      .in("x", floating)
      .out("y", DType::bool_)
      .shape(like<0>)
      .cpu(elementwise([](auto x) { return x != x; }))
      .doc("Which elements are NaN?")
      .sample({.in = {Tensor{1.f, NAN, INFINITY}}, .out = {Tensor{false, true, false}}})
      .sample({.in = {Tensor{{0.f, -INFINITY}}}, .out = {Tensor{{false, false}}}});
  r.define("IsInf")
      .in("x", floating)
      .out("y", DType::bool_)
      .shape(like<0>)
      .cpu(elementwise([](auto x) { return std::abs(x) == std::numeric_limits<decltype(x)>::infinity(); }))
      .doc("Which elements are infinite?")
      .sample({.in = {Tensor{1.f, NAN, INFINITY}}, .out = {Tensor{false, false, true}}})
      .sample({.in = {Tensor{{0.f, -INFINITY}}}, .out = {Tensor{{false, true}}}});
  r.define("IsFinite")
      .in("x", floating)
      .out("y", DType::bool_)
      .shape(like<0>)
      .cpu(elementwise([](auto x) { return std::abs(x) < std::numeric_limits<decltype(x)>::infinity(); }))
      .doc("Which elements are neither infinite nor NaN?")
      .sample({.in = {Tensor{1.f, NAN, INFINITY}}, .out = {Tensor{true, false, false}}})
      .sample({.in = {Tensor{{0.f, -INFINITY}}}, .out = {Tensor{{true, false}}}});
}

RUNNEL_BINARY_FUNCTION(less, "Less")
RUNNEL_BINARY_FUNCTION(less_equal, "LessEqual")
RUNNEL_BINARY_FUNCTION(greater, "Greater")
RUNNEL_BINARY_FUNCTION(greater_equal, "GreaterEqual")
RUNNEL_UNARY_FUNCTION(is_nan, "IsNan")
RUNNEL_UNARY_FUNCTION(is_inf, "IsInf")
RUNNEL_UNARY_FUNCTION(is_finite, "IsFinite")

Tensor equal(const Operand& x, const Operand& y) {
  static const Op<EqualAttrs> op("Equal");
  return op({x, y});
}
Tensor not_equal(const Operand& x, const Operand& y) {
  static const Op<EqualAttrs> op("NotEqual");
  return op({x, y});
}
Tensor detail::operator_equal(const Operand& x, const Operand& y) {
  static const Op<EqualAttrs> op("Equal");
  return op({x, y}, {.incompatible_shape_error = false});
}
Tensor detail::operator_not_equal(const Operand& x, const Operand& y) {
  static const Op<EqualAttrs> op("NotEqual");
  return op({x, y}, {.incompatible_shape_error = false});
}

}  // namespace runnel
