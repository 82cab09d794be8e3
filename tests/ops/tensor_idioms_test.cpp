// How tensors are written down, indexed and rebound.
#include <type_traits>

#include "runnel/function/traced_blocks.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using Floats = std::vector<float>;
using Ints32 = std::vector<int32_t>;

TEST(TensorIdioms, CompoundAssignmentRebindsTheHandle) {
  Tensor x{1.f, 2.f};
  const Tensor before = x;
  x += 1;
  x -= Tensor{0.5f, 0.5f};
  x *= 4;
  (x /= 2) += 1;
  EXPECT_EQ(x.to_vector<float>(), (Floats{4.f, 6.f}));
  EXPECT_EQ(before.to_vector<float>(), (Floats{1.f, 2.f}));
  const Variable v(3.f);
  x += v;
  EXPECT_EQ(x.to_vector<float>(), (Floats{7.f, 9.f}));
  Tensor n{7, 8};
  n += 1;
  EXPECT_EQ(n.dtype(), DType::int32);
  expect_error([&] { n += 0.5; }, Code::invalid_argument, "tensor_idioms_test.cpp");
}

TEST(TensorIdioms, CompoundAssignmentIsRecordedAndTraced) {
  const Tensor x{3.f};
  GradientTape tape;
  tape.watch(x);
  Tensor y = x;
  y *= x;
  y += x;
  EXPECT_EQ(tape.gradient(y, x).value().to_vector<float>(), (Floats{7.f}));

  auto powers = function([](Tensor n) {
    Tensor sum = constant(0), power = constant(1), i = constant(0);
    WHILE(i < n) {
      sum += power;
      power *= 2;
      i += 1;
    }
    IF(sum > 100) { sum -= 100; }
    else {
      sum *= 1;
    }
    return sum;
  });
  EXPECT_EQ(powers(constant(5)).item<int32_t>(), 31);
  EXPECT_EQ(powers(constant(7)).item<int32_t>(), 27);
}

template <class X, class Y>
concept AddAssignable = requires(X& x, const Y& y) { x += y; };
template <class X>
concept ElementAssignable = requires(X& x) { x[0] = 5; };

TEST(TensorIdioms, WhatWouldChangeNothingDoesNotCompile) {
  static_assert(!std::is_assignable_v<decltype(std::declval<Tensor&>()[0]), int>);
  static_assert(!std::is_assignable_v<decltype(std::declval<Tensor&>()[0]), Tensor>);
  static_assert(!ElementAssignable<Tensor> && !ElementAssignable<const Tensor>);
  static_assert(std::is_assignable_v<Tensor&, int> && std::is_move_assignable_v<Tensor>);
  static_assert(AddAssignable<Tensor, int> && AddAssignable<Tensor, Variable> && AddAssignable<Variable, int>);
  static_assert(!AddAssignable<const Tensor, int>);
}

TEST(TensorIdioms, ConstantsOfVectors) {
  EXPECT_EQ(constant(Floats{1.f, 2.f}).to_vector<float>(), (Floats{1.f, 2.f}));
  const Tensor doubles = constant(std::vector<double>{1.5, 2.5});
  EXPECT_EQ(doubles.dtype(), DType::float32);  // as {1.5, 2.5} are
  EXPECT_EQ(constant(std::vector<double>{0.1}, float64).item<double>(), 0.1);
  EXPECT_EQ(constant(std::vector<int64_t>{1, 2}).dtype(), DType::int64);
  const Tensor nested = constant(std::vector<std::vector<int>>{{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(nested.shape(), (Shape{2, 3}));
  EXPECT_EQ(nested.to_vector<int32_t>(), (Ints32{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(constant(std::vector<std::vector<bool>>{{true}, {false}}).shape(), (Shape{2, 1}));
  const std::vector<std::string> words{"a", "bc"};
  EXPECT_EQ(constant(words).to_vector<std::string>(), words);
  EXPECT_EQ(constant(Ints32{1, 2, 3, 4}, int32, {2, 2}).shape(), (Shape{2, 2}));
  EXPECT_EQ(constant(Floats{}).shape(), (Shape{0}));
  EXPECT_EQ(reduce_sum(Floats{1.f, 2.f}).item<float>(), 3.f);  // wherever a list may stand
  expect_error([] { constant(std::vector<Floats>{{1.f}, {1.f, 2.f}}); }, Code::invalid_argument, "rectangular");
}

TEST(TensorIdioms, AnythingIsConvertedToATensor) {
  EXPECT_EQ(convert_to_tensor({1, 2}, float32).to_vector<float>(), (Floats{1.f, 2.f}));
  EXPECT_EQ(convert_to_tensor(3).dtype(), int32);
  const Variable v(Tensor{4.f});
  const Tensor read = convert_to_tensor(v, float32);
  v.assign(Tensor{5.f});
  EXPECT_EQ(read.to_vector<float>(), (Floats{4.f}));
  expect_error([&] { convert_to_tensor(v, int32); }, Code::invalid_argument,
               "[convert_to_tensor] the value is float32, asked for int32");
  expect_error([] { convert_to_tensor(2.5, int32); }, Code::invalid_argument, "[convert_to_tensor]");
}

TEST(TensorIdioms, TensorsOfStrings) {
  const std::vector<std::string> words{"a", "bc", "d", ""};
  EXPECT_EQ(Tensor::of(words).to_vector<std::string>(), words);
  EXPECT_EQ(Tensor::of(words, {2, 2}).shape(), (Shape{2, 2}));
  expect_error([&] { Tensor::of(words, {3}); }, Code::invalid_argument, "do not fill");
}

TEST(TensorIdioms, PositionsMayBeTensors) {
  const Tensor x{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}};
  EXPECT_EQ(x[constant(1)].to_vector<float>(), (Floats{4.f, 5.f, 6.f}));
  EXPECT_EQ(x[constant(-1, int64)].to_vector<float>(), (Floats{4.f, 5.f, 6.f}));
  EXPECT_EQ(x[Variable(0)].to_vector<float>(), (Floats{1.f, 2.f, 3.f}));
  EXPECT_EQ(x(all, constant(2)).to_vector<float>(), (Floats{3.f, 6.f}));
  EXPECT_EQ(x(constant(1, int16), -1).item<float>(), 6.f);
  EXPECT_EQ(x(ellipsis, newaxis, constant(0)).shape(), (Shape{2, 1}));
  expect_error([&] { x[constant(2)]; }, Code::out_of_range, "index 2 is out of range for dimension 0 of size 2");
  expect_error([&] { x[Tensor{0, 1}]; }, Code::invalid_argument, "must be a scalar");
  expect_error([&] { x[constant(true)]; }, Code::invalid_argument, "boolean_mask");
}

TEST(TensorIdioms, BoundsOfSlicesMayBeTensors) {
  const Tensor x = range(10);
  const Tensor two = constant(2), five = constant(5, int64);
  EXPECT_EQ(x(slice(two, five)).to_vector<int32_t>(), (Ints32{2, 3, 4}));
  EXPECT_EQ(x[slice(two, five)].to_vector<int32_t>(), (Ints32{2, 3, 4}));
  EXPECT_EQ(x(slice(two, none)).num_elements(), 8);
  EXPECT_EQ(x(slice(none, five)).num_elements(), 5);
  EXPECT_EQ(x(slice(two, -1, 3)).to_vector<int32_t>(), (Ints32{2, 5, 8}));
  EXPECT_EQ(x(slice(-two, none)).to_vector<int32_t>(), (Ints32{8, 9}));
  const auto later = slice(two + 1, two + 3);  // keeps what its bounds were made from
  EXPECT_EQ(x(later).to_vector<int32_t>(), (Ints32{3, 4}));
}

TEST(TensorIdioms, IndicesAreTracedWithTheirGradients) {
  auto element = function([](Tensor x, Tensor i) { return x[i]; });
  auto window = function([](Tensor x, Tensor i) { return x(slice(i, i + 2)); });
  const Tensor x{1.f, 2.f, 3.f, 4.f};
  EXPECT_EQ(element(x, constant(2)).item<float>(), 3.f);
  EXPECT_EQ(window(x, constant(1)).to_vector<float>(), (Floats{2.f, 3.f}));
  GradientTape tape;
  tape.watch(x);
  const Tensor y = reduce_sum(window(x, constant(1)) * 3.f) + element(x, constant(3));
  EXPECT_EQ(tape.gradient(y, x).value().to_vector<float>(), (Floats{0.f, 3.f, 3.f, 1.f}));

  auto sum = function([](Tensor x) {
    Tensor total = constant(0.f), i = constant(0);
    WHILE(i < size(x)) {
      total += x[i];
      i += 1;
    }
    return total;
  });
  EXPECT_EQ(sum(x).item<float>(), 10.f);
}

}  // namespace
}  // namespace runnel
