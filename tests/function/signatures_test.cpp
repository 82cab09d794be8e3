// What tells one call of a function from another: a trace never serves a call it was not made for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <concepts>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runnel/runnel.h"

namespace runnel {
namespace {

using ::testing::ElementsAre;

// The trace does not capture the variable, so it ends, and the next may be where it was.
TEST(Signatures, AVariableIsNotTakenForOneThatIsGone) {
  auto f = function([](const Tensor& x, const Variable& v) { return zeros(v.shape()) + x; });
  for (int n = 1; n < 20; ++n) {
    const Variable v(ones({n}));
    EXPECT_EQ(f(Tensor(1.f), v).shape(), Shape{n});
    EXPECT_EQ(f(Tensor(2.f), v).shape(), Shape{n});
  }
  EXPECT_EQ(f.num_traces(), 19);
}

enum class SignatureColour { first = 1 };
enum class SignatureSize { first = 1 };

TEST(Signatures, EnumsOfDifferentTypesDiffer) {
  auto f = function(
      [](const Tensor& x, auto kind) { return std::same_as<decltype(kind), SignatureColour> ? x * 10 : x * 20; });
  EXPECT_EQ(f(Tensor(1.f), SignatureColour::first).item<float>(), 10);
  EXPECT_EQ(f(Tensor(1.f), SignatureSize::first).item<float>(), 20);
  EXPECT_EQ(f(Tensor(2.f), SignatureColour::first).item<float>(), 20);
  EXPECT_EQ(f.num_traces(), 2);
}

TEST(Signatures, ArraysVectorsAndTuplesDiffer) {
  auto same = function([](const auto& xs) { return xs; });
  const auto array = same(std::array<Tensor, 3>{Tensor(3.f), Tensor(4.f), Tensor(5.f)});
  EXPECT_EQ(array[2].item<float>(), 5);
  const auto vector = same(std::vector<Tensor>{Tensor(1.f), Tensor(2.f), Tensor(6.f)});
  ASSERT_EQ(vector.size(), 3U);
  EXPECT_EQ(vector[2].item<float>(), 6);
  EXPECT_THAT(same.why_retraced(), ElementsAre("the C++ types of the arguments"));

  auto count = function([](const auto&... xs) { return Tensor(static_cast<int>(sizeof...(xs))) + 0; });
  EXPECT_EQ(count(Tensor(1.f), Tensor(2.f)).item<int32_t>(), 2);
  EXPECT_EQ(count(std::tuple{Tensor(1.f), Tensor(2.f)}).item<int32_t>(), 1);
}

TEST(Signatures, ATensorSpecSharesTheTraceOfTensors) {
  auto f = function([](const Tensor& x, int n) { return x * n; });
  f.get_concrete_function(TensorSpec{PartialShape{2}, DType::float32}, 3);
  EXPECT_EQ(f(Tensor{1.f, 2.f}, 3).to_vector<float>(), (std::vector<float>{3, 6}));
  EXPECT_EQ(f.num_traces(), 1);
}

// The trace outlives the caller's characters.
TEST(Signatures, ReturnedTextsAreCopies) {
  auto f = function([](const Tensor& x, auto name) { return std::pair(x + 1, name); });
  const std::string text = "a text that is long enough to be on the heap";
  {
    const auto gone = std::make_unique<std::string>(text);
    EXPECT_EQ(f(Tensor(1.f), gone->c_str()).second, text);
  }
  const auto by_pointer = f(Tensor(1.f), text.c_str());
  static_assert(std::same_as<decltype(by_pointer.second), std::string>);
  EXPECT_EQ(by_pointer.second, text);
  EXPECT_EQ(f.num_traces(), 1);
  const auto by_string = f(Tensor(1.f), text);
  EXPECT_EQ(by_string.second, text);
  EXPECT_EQ(by_string.first.item<float>(), 2);
  EXPECT_EQ(f.num_traces(), 2);
}

TEST(Signatures, ReferencesToArgumentsCanBeReturned) {
  auto f = function([](const std::vector<Tensor>& all) -> const Tensor& { return all[0]; });
  const std::vector<Tensor> all{Tensor(1.f), Tensor(2.f)};
  EXPECT_EQ(f(all).item<float>(), 1);
  check_tracing(true);
  EXPECT_EQ(f(all).item<float>(), 1);
  check_tracing(false);
  run_functions_eagerly(true);
  EXPECT_EQ(f(std::vector<Tensor>{Tensor(5.f)}).item<float>(), 5);
  run_functions_eagerly(false);
}

}  // namespace
}  // namespace runnel
