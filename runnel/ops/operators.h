#pragma once

// Operators of tensors: + - * / % and comparisons, & | ^ ~ ! on bool and integer tensors. At least one operand is
// a Tensor or stands for one (Variable, Gradient); the other may be a number. Comparisons give bool tensors.
// `x += y` is `x = x + y`: the handle x refers to another value from then on, copies of it do not. Of a Variable it
// changes the value, for all its copies: `w += y` is `w.assign_add(y)`.

#include <concepts>
#include <type_traits>

#include "runnel/op/operand.h"
#include "runnel/ops/state.h"

namespace runnel {

// What an operator takes as a tensor. Types that test as bool (std::optional<Tensor>) keep their own operators; a
// Gradient says so whether there is one, and computes as a tensor.
template <class V>
concept TensorLike = HasTensorValue<V> && !std::derived_from<V, Operand> &&
                     (std::same_as<V, Gradient> || !std::is_constructible_v<bool, const V&>);

// The two kinds of operands never convert from the same thing: every expression has one reading, and expressions
// without a tensor never get here. Both keep the line of the expression.
class TensorOperand : public Operand {
 public:
  TensorOperand(const Tensor& t, Location where = Location::current()) : Operand(t, where) {}        // NOLINT
  TensorOperand(Tensor&& t, Location where = Location::current()) : Operand(std::move(t), where) {}  // NOLINT
  template <TensorLike V>
  TensorOperand(const V& v, Location where = Location::current()) : Operand(v, where) {}  // NOLINT
  TensorOperand(const Operand& o) : Operand(o, Copy{}) {}                                 // NOLINT
};
class LiteralOperand : public Operand {
 public:
  template <Number T>
  LiteralOperand(T number, Location where = Location::current()) : Operand(number, where) {}  // NOLINT
  template <Text T>
  LiteralOperand(const T& text, Location where = Location::current()) : Operand(text, where) {}  // NOLINT
};

RUNNEL_API Tensor add(const Operand& x, const Operand& y);
RUNNEL_API Tensor subtract(const Operand& x, const Operand& y);
RUNNEL_API Tensor multiply(const Operand& x, const Operand& y);
RUNNEL_API Tensor divide(const Operand& x, const Operand& y);
RUNNEL_API Tensor floormod(const Operand& x, const Operand& y);
RUNNEL_API Tensor negative(const Operand& x);
RUNNEL_API Tensor less(const Operand& x, const Operand& y);
RUNNEL_API Tensor less_equal(const Operand& x, const Operand& y);
RUNNEL_API Tensor greater(const Operand& x, const Operand& y);
RUNNEL_API Tensor greater_equal(const Operand& x, const Operand& y);

namespace detail {
// As `==` in TensorFlow: shapes that do not broadcast make unequal tensors, not an Error.
RUNNEL_API Tensor operator_equal(const Operand& x, const Operand& y);
RUNNEL_API Tensor operator_not_equal(const Operand& x, const Operand& y);
// Logical for bool, bitwise for integers.
RUNNEL_API Tensor operator_and(const Operand& x, const Operand& y);
RUNNEL_API Tensor operator_or(const Operand& x, const Operand& y);
RUNNEL_API Tensor operator_xor(const Operand& x, const Operand& y);
RUNNEL_API Tensor operator_invert(const Operand& x);
RUNNEL_API Tensor operator_not(const Operand& x);
}  // namespace detail

#define RUNNEL_BINARY_OPERATOR(sign, function)                                                            \
  inline Tensor operator sign(const TensorOperand& x, const TensorOperand& y) { return function(x, y); }  \
  inline Tensor operator sign(const TensorOperand& x, const LiteralOperand& y) { return function(x, y); } \
  inline Tensor operator sign(const LiteralOperand& x, const TensorOperand& y) { return function(x, y); }
RUNNEL_BINARY_OPERATOR(+, add)
RUNNEL_BINARY_OPERATOR(-, subtract)
RUNNEL_BINARY_OPERATOR(*, multiply)
RUNNEL_BINARY_OPERATOR(/, divide)
RUNNEL_BINARY_OPERATOR(%, floormod)
RUNNEL_BINARY_OPERATOR(<, less)
RUNNEL_BINARY_OPERATOR(<=, less_equal)
RUNNEL_BINARY_OPERATOR(>, greater)
RUNNEL_BINARY_OPERATOR(>=, greater_equal)
RUNNEL_BINARY_OPERATOR(==, detail::operator_equal)
RUNNEL_BINARY_OPERATOR(!=, detail::operator_not_equal)
RUNNEL_BINARY_OPERATOR(&, detail::operator_and)
RUNNEL_BINARY_OPERATOR(|, detail::operator_or)
RUNNEL_BINARY_OPERATOR(^, detail::operator_xor)
#undef RUNNEL_BINARY_OPERATOR

inline Tensor& operator+=(Tensor& x, const Operand& y) { return x = add(Operand(x, y.where()), y); }
inline Tensor& operator-=(Tensor& x, const Operand& y) { return x = subtract(Operand(x, y.where()), y); }
inline Tensor& operator*=(Tensor& x, const Operand& y) { return x = multiply(Operand(x, y.where()), y); }
inline Tensor& operator/=(Tensor& x, const Operand& y) { return x = divide(Operand(x, y.where()), y); }
// Of a handle without a name (w[0], x(slice(0, 1)), w.value()) they would change nothing.
Tensor& operator+=(Tensor&& x, const Operand& y) = delete;
Tensor& operator-=(Tensor&& x, const Operand& y) = delete;
Tensor& operator*=(Tensor&& x, const Operand& y) = delete;
Tensor& operator/=(Tensor&& x, const Operand& y) = delete;

inline const Variable& operator+=(const Variable& w, const Operand& y) { return w.assign_add(y); }
inline const Variable& operator-=(const Variable& w, const Operand& y) { return w.assign_sub(y); }
inline const Variable& operator*=(const Variable& w, const Operand& y) {
  return w.assign(multiply(Operand(w, y.where()), y));
}
inline const Variable& operator/=(const Variable& w, const Operand& y) {
  return w.assign(divide(Operand(w, y.where()), y));
}

inline Tensor operator-(const TensorOperand& x) { return negative(x); }
inline Tensor operator~(const TensorOperand& x) { return detail::operator_invert(x); }
// Exact, for Tensor itself tests as bool; the line of the expression is lost.
inline Tensor operator!(const Tensor& x) { return detail::operator_not(Operand(x, SourceSite())); }

}  // namespace runnel
