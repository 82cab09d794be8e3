// Reaching into shapes and elements: what is not there, and what would be gone.
#include <gtest/gtest.h>

#include <concepts>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "runnel/runnel.h"
#include "tests/support/caller_lines.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

TEST(ShapeIndex, CountsFromTheEndWhenNegative) {
  const Tensor x = zeros({2, 3, 4});
  EXPECT_EQ(x.shape()[-1], 4);
  EXPECT_EQ(x.shape()[-3], 2);
  EXPECT_EQ(x.shape().dim(-2), 3);
  EXPECT_EQ(x.dim(-1), 4);
  EXPECT_EQ((PartialShape{kUnknownDim, 7})[-1], 7);
  EXPECT_EQ((PartialShape{kUnknownDim, 7})[-2], kUnknownDim);
}

TEST(ShapeIndex, AnErrorNamesRankIndexAndLine) {
  const Tensor x = zeros({2, 3});
  EXPECT_NAMES_THIS_LINE(x.shape()[5]);
  EXPECT_NAMES_THIS_LINE(x.shape()[-3]);
  EXPECT_NAMES_THIS_LINE(x.dim(2));
  EXPECT_NAMES_THIS_LINE(PartialShape::unknown()[0]);
  const std::vector<int> none;
  EXPECT_NAMES_THIS_LINE(x.shape()[none.size() - 1]);
  EXPECT_NAMES_THIS_LINE(x.dim(none.size() - 2));
  EXPECT_EQ(x.dim(1u), 3);
  expect_error([&] { static_cast<void>(x.shape()[5]); }, Code::invalid_argument,
               "dimension 5 of the shape [2,3] of rank 2: it must be in [-2, 2)");
  expect_error([&] { static_cast<void>(PartialShape::unknown()[-1]); }, Code::invalid_argument,
               "dimension -1 of a shape of unknown rank");
}

// What would refer to a temporary that is gone does not compile, or is a value.
template <class View>
concept GivesSpan =
    std::convertible_to<View, std::span<const float>> || std::constructible_from<std::span<const float>, View>;
template <class View>
concept GivesPointer = requires(View view) { std::forward<View>(view).data(); };

TEST(Elements, OfATemporaryCannotDangle) {
  using View = HostView<float>;
  static_assert(GivesSpan<const View&> && GivesPointer<const View&>);
  static_assert(!GivesSpan<View> && !GivesPointer<View>);
  static_assert(std::same_as<decltype(std::declval<View>()[0]), float>);
  static_assert(std::same_as<decltype(std::declval<const Tensor&>().shape()), const Shape&>);
  static_assert(std::same_as<decltype(std::declval<Tensor>().shape()), Shape>);
  static_assert(std::same_as<decltype(std::declval<Shape>().dims()), Dims>);
  static_assert(std::same_as<decltype(std::declval<Gradient>().dense()), Tensor>);
  float sum = 0;
  for (const float v : (Tensor{1.f, 2.f} + 1.f).host<float>()) sum += v;
  EXPECT_EQ(sum, 5);
  int64_t elements = 1;
  for (const int64_t d : (zeros({2, 3}) + 1.f).shape()) elements *= d;
  EXPECT_EQ(elements, 6);
  const auto values = Tensor{1.f, 2.f}.host<float>();
  const std::span<const float> span = values;
  EXPECT_EQ(span[1], 2);
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), (std::vector<float>{1, 2}));
  EXPECT_EQ(values.end() - values.begin(), 2);
}

TEST(Elements, OnlyThoseThereAre) {
  const auto values = Tensor{1.f, 2.f}.host<float>();
  EXPECT_EQ(values[1], 2);
  expect_error([&] { static_cast<void>(values[2]); }, Code::out_of_range, "there is no element 2: the tensor has 2");
  expect_error([] { static_cast<void>(Tensor{1.f}.host<float>()[1]); }, Code::out_of_range, "no element 1");
  expect_error([] { static_cast<void>(zeros({0}).host<float>()[0]); }, Code::out_of_range, "the tensor has 0");
}

TEST(Elements, DataChecksDtypeAndPlace) {
  const Tensor x{1.f, 2.f};
  EXPECT_EQ(x.data<float>()[1], 2);
  EXPECT_NE(x.data<char>(), nullptr);
  EXPECT_EQ((Tensor{-1, 2}.data<uint32_t>()[1]), 2u);  // the unsigned integer of the same size
  expect_error([&] { x.data<double>(); }, Code::invalid_argument, "the tensor holds float32, read as float64");
  expect_error([&] { x.data<int32_t>(); }, Code::invalid_argument, "the tensor holds float32, read as int32");
  expect_error([&] { x.mutable_data<bool>(); }, Code::invalid_argument, "the tensor holds float32, read as bool");
  expect_error([] { Tensor().data<float>(); }, Code::failed_precondition, "refers to nothing");
  function([](const Tensor& y) {
    expect_error([&] { y.data<float>(); }, Code::failed_precondition, "has no value while a graph is being built");
    return y;
  })(x);
}

TEST(Elements, OneElementIsACppNumber) {
  EXPECT_EQ(float(Tensor(2.5)), 2.5f);
  EXPECT_EQ(int(Tensor(2.9)), 2);
  EXPECT_EQ(int(Tensor(-2.9)), -2);
  EXPECT_EQ(double(Tensor(7)), 7.0);
  EXPECT_EQ(static_cast<int64_t>(Tensor(true)), 1);
  EXPECT_EQ(float(constant(1.5, float16)), 1.5f);
  EXPECT_EQ(size_t(Tensor{{5}}), 5u);
  EXPECT_EQ(uint64_t(constant(uint64_t{1} << 63, uint64)) >> 63, 1u);
  EXPECT_EQ(uint64_t(Tensor(1e19)), static_cast<uint64_t>(1e19f));  // above the largest int64
  EXPECT_EQ(uint64_t(constant(7.9, float16)), 7u);
  EXPECT_EQ(uint64_t(Tensor(-0.5)), 0u);
  EXPECT_EQ(uint64_t(Tensor(true)), 1u);
  EXPECT_EQ(float(constant(1e300, float64)), INFINITY);  // as cast(x, float32)
  EXPECT_EQ(double(constant(1e300, float64)), 1e300);
  static_assert(std::constructible_from<signed char, Tensor> && std::constructible_from<long long, Tensor>);
  static_assert(!std::constructible_from<char, Tensor> && !std::constructible_from<wchar_t, Tensor>);
  expect_error([] { static_cast<void>(uint64_t(Tensor(1e20))); }, Code::invalid_argument, "does not fit");
  expect_error([] { static_cast<void>(uint64_t(Tensor(-1))); }, Code::invalid_argument, "does not fit");
  expect_error([] { static_cast<void>(uint64_t(Tensor(-1.f))); }, Code::invalid_argument, "does not fit");
  expect_error([] { static_cast<void>(uint64_t(Tensor(NAN))); }, Code::invalid_argument, "does not fit");
  expect_error([] { static_cast<void>(uint64_t(Tensor("1"))); }, Code::invalid_argument, "no C++ number");
  expect_error([] { static_cast<void>(uint64_t(Tensor{1, 2})); }, Code::invalid_argument, "one value asked");
  expect_error([] { static_cast<void>(int(Tensor(3e9))); }, Code::invalid_argument, "does not fit");
  expect_error([] { static_cast<void>(unsigned(Tensor(-1))); }, Code::invalid_argument, "does not fit");
  expect_error([] { static_cast<void>(int(Tensor(NAN))); }, Code::invalid_argument, "does not fit");
  expect_error([] { static_cast<void>(float(Tensor{1, 2})); }, Code::invalid_argument, "one value asked");
  expect_error([] { static_cast<void>(float(Tensor("1"))); }, Code::invalid_argument,
               "a string tensor is no C++ number");
}

TEST(Elements, AConditionIsOneValue) {
  expect_error(
      [] {
        static_cast<void>(static_cast<bool>(Tensor{1, 2}));
      },
      Code::invalid_argument, "a condition is one value, not a tensor of shape [2]: reduce_all or reduce_any");
}

}  // namespace
}  // namespace runnel
