// The operators: which operands they take, what they leave alone, and whose line they name.
#include <gtest/gtest.h>

#include <complex>
#include <optional>
#include <sstream>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

template <class T>
void expect_values(const Tensor& got, const std::vector<T>& expected) {
  EXPECT_EQ(got.to_vector<T>(), expected);
}

TEST(MathOperators, TakeTensorsVariablesGradientsAndNumbers) {
  const Tensor x{1.f, 4.f};
  const Variable w(Tensor{2.f, 3.f});
  expect_values<float>(2 + x, {3, 6});
  expect_values<float>(x - w, {-1, 1});
  expect_values<float>(w * w, {4, 9});
  expect_values<float>(w / 2, {1, 1.5});
  expect_values<float>(5.5 % x, {0.5, 1.5});
  expect_values<float>(-w, {-2, -3});
  expect_values<bool>(w < x, {false, true});
  expect_values<bool>(x <= 1, {true, false});
  expect_values<bool>(3 > w, {true, false});
  expect_values<bool>(x >= 4.0, {false, true});
  expect_values<bool>(x == w, {false, false});
  expect_values<bool>(x != 4, {true, false});
  GradientTape tape;
  const Tensor y = w * w;
  const Gradient dw = tape.gradient(y, w);
  expect_values<float>(dw + 1, {5, 7});
  expect_values<float>(w - dw, {-2, -3});
}

TEST(MathOperators, LogicalOfBoolsAndBitwiseOfIntegers) {
  const Tensor p{true, true, false}, q{true, false, false};
  expect_values<bool>(p & q, {true, false, false});
  expect_values<bool>(p | q, {true, true, false});
  expect_values<bool>(p ^ q, {false, true, false});
  expect_values<bool>(~p, {false, false, true});
  expect_values<bool>(!p, {false, false, true});
  expect_values<bool>(p & true, {true, true, false});
  const Tensor a{12, 7};
  expect_values<int32_t>(a & 10, {8, 2});
  expect_values<int32_t>(3 | a, {15, 7});
  expect_values<int32_t>(a ^ a, {0, 0});
  expect_values<int32_t>(~a, {-13, -8});
  expect_error([&] { (void)(Tensor{1.f} & Tensor{2.f}); }, Code::invalid_argument, "[BitwiseAnd]");
}

TEST(MathOperators, LeaveOtherTypesAlone) {
  static_assert(std::is_same_v<decltype(1 + 2), int>);
  static_assert(std::is_same_v<decltype(std::string("a") + "b"), std::string>);
  static_assert(std::is_same_v<decltype(Half(1.f) < Half(2.f)), bool>);
  static_assert(std::is_same_v<decltype(Half(1.f) + Half(2.f)), Half>);
  static_assert(std::is_same_v<decltype(Half(1.f) * 2.f), float>);
  static_assert(std::is_same_v<decltype(Shape{1} == Shape{1}), bool>);
  static_assert(std::is_same_v<decltype(DType::int32 == DType::int64), bool>);
  static_assert(std::is_same_v<decltype(std::complex<float>() * 2.f), std::complex<float>>);
  static_assert(std::is_same_v<decltype(Bytes("a") == Bytes("b")), bool>);
  std::optional<Tensor> maybe;
  EXPECT_TRUE(!maybe);
  EXPECT_TRUE(maybe == std::nullopt);
  std::ostringstream out;
  out << 1 + 2 << "x" << (Half(1.f) == Half(1.f));
  EXPECT_EQ(out.str(), "3x1");
}

TEST(MathOperators, TruthOfOneElement) {
  const Tensor x(3.f);
  EXPECT_TRUE(x > 2 && x < 4);
  if (!(x == 3)) FAIL();
}

TEST(MathOperators, StringsCompare) {
  const Tensor s{"a", "b"};
  expect_values<bool>(s == "b", {false, true});
  expect_values<bool>(s != Tensor{"a", "a"}, {false, true});
}

TEST(MathOperators, EqualityOfShapesThatDoNotFit) {
  const Tensor a{1, 2}, b{1, 2, 3};
  EXPECT_FALSE(static_cast<bool>(a == b));
  EXPECT_TRUE(static_cast<bool>(a != b));
  EXPECT_EQ((a == b).rank(), 0);
  expect_error([&] { equal(a, b); }, Code::invalid_argument, "do not broadcast");
}

TEST(MathOperators, ErrorsNameTheLineOfTheExpression) {
  const Tensor a{1.f, 2.f}, b{1.f, 2.f, 3.f};
  const int here = __LINE__ + 1;
  const auto fail = [&] { return a + b; };
  expect_error(fail, Code::invalid_argument, "math_operators_test.cpp:" + std::to_string(here));
  const int there = __LINE__ + 1;
  const auto literal = [&] { return 2.5 * Tensor{1, 2}; };
  expect_error(literal, Code::invalid_argument, "math_operators_test.cpp:" + std::to_string(there));
  const int far = __LINE__ + 1;
  const auto quotient = [&] { return Tensor{1, 2} / Tensor{1, 2, 3}; };
  expect_error(quotient, Code::invalid_argument, "math_operators_test.cpp:" + std::to_string(far));
}

TEST(MathOperators, OperandsOfMixedDtypesAreRefused) {
  expect_error([] { return Tensor{1} + Tensor{1.f}; }, Code::invalid_argument, "cast one of them");
  expect_error([] { return Tensor{1} / Tensor{1.f}; }, Code::invalid_argument, "cast one of them");
}

}  // namespace
}  // namespace runnel
