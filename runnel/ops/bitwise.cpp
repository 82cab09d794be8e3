// Bits of integers.
#include "runnel/ops/bitwise.h"

#include <algorithm>

#include "runnel/ops/math_common.h"

namespace runnel {
namespace {

// A count that C++ can shift by.
template <class T>
int shift_count(T y) {
  constexpr int last = static_cast<int>(sizeof(T) * 8) - 1;
  return static_cast<int>(y < T(0) ? T(0) : std::min(y, static_cast<T>(last)));
}

}  // namespace

void register_bitwise(Registry& r) {
  r.define("BitwiseAnd")
      .in("x", integers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return static_cast<decltype(x)>(x & y); }))
      .commutative()
      .doc("The bits that both have.")
      .sample({.in = {Tensor{12, 7}, Tensor{10, 3}}, .out = {Tensor{8, 3}}})
      .sample({.in = {Tensor{{12}, {7}}, Tensor{10, 3}}, .out = {Tensor{{8, 0}, {2, 3}}}});
  r.define("BitwiseOr")
      .in("x", integers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return static_cast<decltype(x)>(x | y); }))
      .commutative()
      .doc("The bits that either has.")
      .sample({.in = {Tensor{12, 7}, Tensor{10, 3}}, .out = {Tensor{14, 7}}})
      .sample({.in = {Tensor{{12}, {7}}, Tensor{10, 3}}, .out = {Tensor{{14, 15}, {15, 7}}}});
  r.define("BitwiseXor")
      .in("x", integers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return static_cast<decltype(x)>(x ^ y); }))
      .commutative()
      .doc("The bits that just one has.")
      .sample({.in = {Tensor{12, 7}, Tensor{10, 3}}, .out = {Tensor{6, 4}}})
      .sample({.in = {Tensor{{12}, {7}}, Tensor{10, 3}}, .out = {Tensor{{6, 15}, {13, 4}}}});
  r.define("Invert")
      .in("x", integers)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise([](auto x) { return static_cast<decltype(x)>(~x); }))
      .doc("Every bit the other way.")
      .sample({.in = {Tensor{0, -1, 5}}, .out = {Tensor{-1, 0, -6}}})
      .sample({.in = {Tensor{{1, 2}}}, .out = {Tensor{{-2, -3}}}});
  r.define("LeftShift")
      .in("x", integers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return static_cast<decltype(x)>(wrapping(x) << shift_count(y)); }))
      .doc("x shifted left by y bits; y is taken into [0, width).")
      .sample({.in = {Tensor{1, 3}, Tensor{3, 2}}, .out = {Tensor{8, 12}}})
      .sample({.in = {Tensor{1, 1}, Tensor{{1}, {2}}}, .out = {Tensor{{2, 2}, {4, 4}}}});
  r.define("RightShift")
      .in("x", integers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return static_cast<decltype(x)>(x >> shift_count(y)); }))
      .doc("x shifted right by y bits, keeping the sign; y is taken into [0, width).")
      .sample({.in = {Tensor{8, 13}, Tensor{3, 2}}, .out = {Tensor{1, 3}}})
      .sample({.in = {Tensor{8, 16}, Tensor{{1}, {2}}}, .out = {Tensor{{4, 8}, {2, 4}}}});
}

namespace bitwise {
RUNNEL_BINARY_FUNCTION(bitwise_and, "BitwiseAnd")
RUNNEL_BINARY_FUNCTION(bitwise_or, "BitwiseOr")
RUNNEL_BINARY_FUNCTION(bitwise_xor, "BitwiseXor")
RUNNEL_UNARY_FUNCTION(invert, "Invert")
RUNNEL_BINARY_FUNCTION(left_shift, "LeftShift")
RUNNEL_BINARY_FUNCTION(right_shift, "RightShift")
}  // namespace bitwise

}  // namespace runnel
