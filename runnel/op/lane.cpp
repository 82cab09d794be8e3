#include "runnel/op/lane.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

namespace runnel {
namespace {

template <class F>
Lane step_of_two(LaneStep::Kind kind, const Lane& a, const Lane& b, F on_constants) {
  if (!a.code() && !b.code()) return on_constants(a.value(), b.value());
  LaneCode& code = a.code() ? *a.code() : *b.code();
  const int x = a.step_in(code), y = b.step_in(code);
  return {code, code.add({.kind = kind, .a = x, .b = y})};
}

Lane with_bits(LaneStep::Kind kind, const Lane& a, uint32_t bits) {
  LaneCode& code = *a.code();
  const int x = a.step_in(code), mask = code.constant(bits);
  return {code, code.add({.kind = kind, .a = x, .b = mask})};
}

LaneMask compared(LaneStep::Predicate predicate, const Lane& a, const Lane& b) {
  LaneCode& code = a.code() ? *a.code() : *b.code();
  const int x = a.step_in(code), y = b.step_in(code);
  return {code, code.add({.kind = LaneStep::compare, .predicate = predicate, .a = x, .b = y})};
}

}  // namespace

int Lane::step_in(LaneCode& code) const { return code_ ? step_ : code.constant(std::bit_cast<uint32_t>(value_)); }

Lane LaneCode::input(int number) { return {*this, add({.kind = LaneStep::input, .a = number})}; }

int LaneCode::constant(uint32_t bits) {
  const auto it = std::find_if(steps_.begin(), steps_.end(),
                               [&](const LaneStep& s) { return s.kind == LaneStep::constant && s.bits == bits; });
  return it != steps_.end() ? static_cast<int>(it - steps_.begin()) : add({.kind = LaneStep::constant, .bits = bits});
}

int LaneCode::add(const LaneStep& step) {
  steps_.push_back(step);
  return static_cast<int>(steps_.size()) - 1;
}

Lane operator+(const Lane& a, const Lane& b) { return step_of_two(LaneStep::add, a, b, std::plus{}); }
Lane operator-(const Lane& a, const Lane& b) { return step_of_two(LaneStep::subtract, a, b, std::minus{}); }
Lane operator*(const Lane& a, const Lane& b) { return step_of_two(LaneStep::multiply, a, b, std::multiplies{}); }
Lane operator/(const Lane& a, const Lane& b) { return step_of_two(LaneStep::divide, a, b, std::divides{}); }
Lane operator-(const Lane& a) { return a.code() ? with_bits(LaneStep::bit_xor, a, 0x80000000u) : Lane(-a.value()); }
Lane abs(const Lane& a) { return a.code() ? with_bits(LaneStep::bit_and, a, 0x7fffffffu) : Lane(std::abs(a.value())); }
LaneMask operator==(const Lane& a, const Lane& b) { return compared(LaneStep::equal, a, b); }
LaneMask operator!=(const Lane& a, const Lane& b) { return compared(LaneStep::not_equal, a, b); }
LaneMask operator<(const Lane& a, const Lane& b) { return compared(LaneStep::less, a, b); }
LaneMask operator<=(const Lane& a, const Lane& b) { return compared(LaneStep::less_equal, a, b); }
LaneMask operator>(const Lane& a, const Lane& b) { return compared(LaneStep::greater, a, b); }
LaneMask operator>=(const Lane& a, const Lane& b) { return compared(LaneStep::greater_equal, a, b); }
LaneMask operator&&(const LaneMask& a, const LaneMask& b) {
  return {a.code(), a.code().add({.kind = LaneStep::bit_and, .a = a.step(), .b = b.step()})};
}
LaneMask operator||(const LaneMask& a, const LaneMask& b) {
  return {a.code(), a.code().add({.kind = LaneStep::bit_or, .a = a.step(), .b = b.step()})};
}
Lane choose(const LaneMask& condition, const Lane& a, const Lane& b) {
  LaneCode& code = condition.code();
  const int x = a.step_in(code), y = b.step_in(code);
  return {code, code.add({.kind = LaneStep::select, .a = x, .b = y, .c = condition.step()})};
}

}  // namespace runnel
