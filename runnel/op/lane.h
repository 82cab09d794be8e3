#pragma once

// What an elementwise op does to one float, as data: the op's own function, called with Lanes in place of numbers,
// writes down what it computes. Chains of such ops are compiled into one loop (kernels/cpu/lane_loop.h).
//
//   LaneCode code;
//   Lane y = f(code.input(0), code.input(1));  // f = [](auto a, auto b) { return a * b + 1; }
//
// A function meant for both says choose(c, a, b) for c ? a : b, and abs(x) unqualified.

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "runnel/base/export.h"

namespace runnel {

class LaneCode;

struct LaneStep {
  enum Kind : uint8_t {
    input,     // number a
    constant,  // of these bits
    add,
    subtract,
    multiply,
    divide,
    bit_and,
    bit_or,
    bit_xor,
    compare,  // all bits set or none
    select,   // a where the bits of c are set, else b
  };
  enum Predicate : uint8_t { equal, not_equal, less, less_equal, greater, greater_equal };  // as of C++

  Kind kind;
  Predicate predicate = equal;  // of compare
  int a = -1, b = -1, c = -1;   // operands: numbers of earlier steps
  uint32_t bits = 0;
};

// A float of which only how it is computed is known; a constant belongs to no code yet.
class RUNNEL_API Lane {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  Lane(T value) : value_(static_cast<float>(value)) {}  // NOLINT(google-explicit-constructor): as numbers convert
  Lane(LaneCode& code, int step) : code_(&code), step_(step) {}

  LaneCode* code() const { return code_; }
  float value() const { return value_; }  // of a constant
  int step_in(LaneCode& code) const;      // its number there

 private:
  LaneCode* code_ = nullptr;
  int step_ = -1;
  float value_ = 0;
};

// The outcome of a comparison.
class LaneMask {
 public:
  LaneMask(LaneCode& code, int step) : code_(&code), step_(step) {}
  LaneCode& code() const { return *code_; }
  int step() const { return step_; }

 private:
  LaneCode* code_;
  int step_;
};

class RUNNEL_API LaneCode {
 public:
  Lane input(int number);
  int constant(uint32_t bits);
  int add(const LaneStep& step);
  const std::vector<LaneStep>& steps() const { return steps_; }

 private:
  std::vector<LaneStep> steps_;
};

RUNNEL_API Lane operator+(const Lane& a, const Lane& b);
RUNNEL_API Lane operator-(const Lane& a, const Lane& b);
RUNNEL_API Lane operator*(const Lane& a, const Lane& b);
RUNNEL_API Lane operator/(const Lane& a, const Lane& b);
RUNNEL_API Lane operator-(const Lane& a);
RUNNEL_API Lane abs(const Lane& a);
// Of comparisons one side at least is no constant.
RUNNEL_API LaneMask operator==(const Lane& a, const Lane& b);
RUNNEL_API LaneMask operator!=(const Lane& a, const Lane& b);
RUNNEL_API LaneMask operator<(const Lane& a, const Lane& b);
RUNNEL_API LaneMask operator<=(const Lane& a, const Lane& b);
RUNNEL_API LaneMask operator>(const Lane& a, const Lane& b);
RUNNEL_API LaneMask operator>=(const Lane& a, const Lane& b);
RUNNEL_API LaneMask operator&&(const LaneMask& a, const LaneMask& b);
RUNNEL_API LaneMask operator||(const LaneMask& a, const LaneMask& b);
RUNNEL_API Lane choose(const LaneMask& condition, const Lane& a, const Lane& b);

template <class T>
constexpr T choose(bool condition, T a, T b) {
  return condition ? a : b;
}

}  // namespace runnel
