#include <complex>
#include <cstring>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/movement.h"

namespace runnel {
namespace {

using test::expect_error;

void check_transpose(const Shape& from, const Dims& perm) {
  SCOPED_TRACE(from.str() + " by " + Shape(perm).str());
  Dims to;
  for (int64_t p : perm) to.push_back(from[static_cast<int>(p)]);
  expect_moved([&](const Tensor& x) { return transpose(x, Axes(int_vector(perm))); }, from, Shape(to),
               [&](const Dims& index) {
                 Dims at(index.size());
                 for (size_t i = 0; i < perm.size(); ++i) at[static_cast<size_t>(perm[i])] = index[i];
                 return ravel(at, from);
               });
}

TEST(Transpose, MovesElementsOfEveryDtype) {
  check_transpose({}, {});
  check_transpose({5}, {0});
  check_transpose({0, 3}, {1, 0});
  check_transpose({3, 4}, {1, 0});
  check_transpose({17, 33}, {1, 0});
  check_transpose({2, 3, 4}, {2, 0, 1});
  check_transpose({2, 3, 4}, {0, 2, 1});
  check_transpose({2, 3, 4}, {1, 0, 2});
  check_transpose({2, 3, 4, 5}, {3, 1, 0, 2});
  check_transpose({9, 10, 2}, {1, 0, 2});
  check_transpose({1, 7, 1, 6}, {3, 2, 1, 0});
  check_transpose({40, 3, 37}, {2, 1, 0});
}

TEST(Transpose, ReversesWithoutPermutationAndTakesNegativeOnes) {
  const Tensor x = numbered(float32, {2, 3, 4});
  EXPECT_EQ(transpose(x).shape().str(), "[4,3,2]");
  EXPECT_EQ(transpose(x, {-1, 0, 1}).shape().str(), "[4,2,3]");
  EXPECT_EQ(transpose(Tensor(1.f)).rank(), 0);
}

TEST(Transpose, ConjugatesWhenAsked) {
  const Tensor x{{std::complex<double>(1, 2), std::complex<double>(3, 4)}};
  EXPECT_EQ(transpose(x, {}, true).to_vector<std::complex<double>>(),
            (std::vector<std::complex<double>>{{1, -2}, {3, -4}}));
  EXPECT_EQ(transpose(Tensor{{1.f, 2.f}}, {}, true).to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(Transpose, SameBitsWithThreads) {
  const Tensor x = numbered(float32, {3, 200, 301});
  expect_same_with_threads([&] { return transpose(x, {2, 1, 0}); });
  expect_same_with_threads([&] { return transpose(x, {0, 2, 1}); });
  expect_same_with_threads([&] { return transpose(x, {1, 0, 2}); });
}

TEST(Transpose, SaysWhatIsWrong) {
  const Tensor x = numbered(float32, {2, 3});
  expect_error([&] { transpose(x, {0, 2}); }, Code::invalid_argument, "perm entry 2 is out of range for rank 2");
  expect_error([&] { transpose(x, {0}); }, Code::invalid_argument, "[Transpose] perm has 1 entries");
}

TEST(InvertPermutation, Undoes) {
  EXPECT_EQ(invert_permutation(Tensor{2, 0, 1}).to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 0}));
}

}  // namespace
}  // namespace runnel
