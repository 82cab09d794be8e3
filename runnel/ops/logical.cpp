// Logic of bool tensors.
#include "runnel/ops/bitwise.h"
#include "runnel/ops/math_common.h"

namespace runnel {
namespace {

bool is_bool(const Operand& x, const Operand& y) {
  const Tensor* t = x.tensor() ? x.tensor() : y.tensor();
  return t && t->defined() && t->dtype() == DType::bool_;
}

}  // namespace

void register_logical(Registry& r) {
  r.define("LogicalAnd")
      .in("x", DType::bool_)
      .in("y", DType::bool_)
      .out("z", DType::bool_)
      .shape(broadcast<0, 1>)
      .cpu(booleans, elementwise([](bool x, bool y) { return static_cast<bool>(x & y); }))
      .commutative()
      .doc("x and y, element by element.")
      .sample({.in = {Tensor{true, true, false}, Tensor{true, false, false}}, .out = {Tensor{true, false, false}}})
      .sample({.in = {Tensor{{true}, {false}}, Tensor{true, false}}, .out = {Tensor{{true, false}, {false, false}}}});
  r.define("LogicalOr")
      .in("x", DType::bool_)
      .in("y", DType::bool_)
      .out("z", DType::bool_)
      .shape(broadcast<0, 1>)
      .cpu(booleans, elementwise([](bool x, bool y) { return static_cast<bool>(x | y); }))
      .commutative()
      .doc("x or y, element by element.")
      .sample({.in = {Tensor{true, true, false}, Tensor{true, false, false}}, .out = {Tensor{true, true, false}}})
      .sample({.in = {Tensor{{true}, {false}}, Tensor{true, false}}, .out = {Tensor{{true, true}, {true, false}}}});
  r.define("LogicalNot")
      .in("x", DType::bool_)
      .out("y", DType::bool_)
      .shape(like<0>)
      .cpu(booleans, elementwise([](bool x) { return !x; }))
      .doc("Not x, element by element.")
      .sample({.in = {Tensor{true, false}}, .out = {Tensor{false, true}}})
      .sample({.in = {Tensor{{true, true}}}, .out = {Tensor{{false, false}}}});
}

RUNNEL_BINARY_FUNCTION(logical_and, "LogicalAnd")
RUNNEL_BINARY_FUNCTION(logical_or, "LogicalOr")
RUNNEL_UNARY_FUNCTION(logical_not, "LogicalNot")

// As TensorFlow composes it.
Tensor logical_xor(const Operand& x, const Operand& y) {
  return logical_and(logical_or(x, y), logical_not(logical_and(x, y)));
}

Tensor detail::operator_and(const Operand& x, const Operand& y) {
  return is_bool(x, y) ? logical_and(x, y) : bitwise::bitwise_and(x, y);
}
Tensor detail::operator_or(const Operand& x, const Operand& y) {
  return is_bool(x, y) ? logical_or(x, y) : bitwise::bitwise_or(x, y);
}
Tensor detail::operator_xor(const Operand& x, const Operand& y) {
  return is_bool(x, y) ? logical_xor(x, y) : bitwise::bitwise_xor(x, y);
}
Tensor detail::operator_invert(const Operand& x) { return is_bool(x, x) ? logical_not(x) : bitwise::invert(x); }
Tensor detail::operator_not(const Operand& x) { return logical_not(x); }

}  // namespace runnel
