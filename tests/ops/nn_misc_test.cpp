#include <algorithm>

#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel {
namespace {

using namespace test;

TEST(NnDropout, KeepsTheSumAndDropsTheRate) {
  for (DType dtype : {float32, float64, float16, bfloat16}) {
    random::set_seed(7);
    const Tensor x = tensor_of(std::vector<double>(40000, 1.0), {200, 200}, dtype);
    const auto y = values_of(nn::dropout(x, 0.25));
    const auto dropped = static_cast<double>(std::count(y.begin(), y.end(), 0.0));
    EXPECT_NEAR(dropped / 40000, 0.25, 0.015) << dtype_name(dtype);
    for (double v : y) ASSERT_TRUE(v == 0 || std::abs(v - 4.0 / 3.0) < 0.01) << v;
  }
}

TEST(NnDropout, SameSeedSameMask) {
  const Tensor x = random_tensor({50, 3}, float32, 1, 1, 2);
  random::set_seed(3);
  const Tensor first = nn::dropout(x, 0.5, {.seed = 5});
  random::set_seed(3);
  expect_same_bits(first, nn::dropout(x, 0.5, {.seed = 5}));
  expect_same_bits(x, nn::dropout(x, 0));
}

TEST(NnDropout, NoiseShapeIsShared) {
  const Tensor x = random_tensor({20, 6}, float32, 1, 1, 2);
  const auto y = values_of(nn::dropout(x, 0.5, {.noise_shape = Tensor{20, 1}}));
  for (size_t r = 0; r < 20; ++r) {
    for (size_t c = 1; c < 6; ++c) EXPECT_EQ(y[r * 6 + c] == 0, y[r * 6] == 0);
  }
}

TEST(NnDropout, GradientIsTheMask) {
  const Tensor x = random_tensor({8, 5}, float64, 1, 1, 2);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = nn::dropout(x, 0.5);
  const auto d = values_of(tape.gradient(y, x).value());
  const auto v = values_of(y);
  for (size_t i = 0; i < v.size(); ++i) EXPECT_EQ(d[i], v[i] == 0 ? 0 : 2);
}

TEST(NnDropout, Errors) {
  expect_error([] { nn::dropout(Tensor{1.f}, 1.0); }, Code::invalid_argument, "rate must be in [0, 1), got 1");
  expect_error([] { nn::dropout(Tensor{1.f}, -0.1); }, Code::invalid_argument, "rate");
  expect_error([] { nn::dropout(Tensor{1}, 0.5); }, Code::invalid_argument, "int32");
}

TEST(NnEmbedding, RowsAndSparseGradient) {
  const Variable table(Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  const Tensor ids{{2, 0}, {2, 2}};
  GradientTape tape;
  const Tensor rows = nn::embedding_lookup(table, ids);
  EXPECT_EQ(rows.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(rows.to_vector<float>(), (std::vector<float>{5, 6, 1, 2, 5, 6, 5, 6}));
  const Gradient d = tape.gradient(rows, table);
  EXPECT_TRUE(d.is_slices());
  EXPECT_EQ(d.value().to_vector<float>(), (std::vector<float>{1, 1, 0, 0, 3, 3}));
  expect_error([&] { nn::embedding_lookup(table, Tensor{3}); }, Code::invalid_argument, "3");
}

TEST(NnInTopK, AgainstCounting) {
  const Tensor p = random_tensor({40, 9}, float32, 2);
  const auto v = values_of(p);
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < 40; ++i) targets.push_back(i % 9);
  for (int64_t k : {1, 3, 9}) {
    const auto got = nn::in_top_k(Tensor::of(targets), p, k).to_vector<bool>();
    for (size_t i = 0; i < 40; ++i) {
      int64_t better = 0;
      for (size_t c = 0; c < 9; ++c) better += v[i * 9 + c] > v[i * 9 + i % 9];
      EXPECT_EQ(got[i], better < k);
    }
  }
  const float nan = std::nanf("");
  EXPECT_EQ(nn::in_top_k(Tensor{0, 1, 5}, Tensor{{nan, 1.f}, {nan, 1.f}, {2.f, 1.f}}, 2).to_vector<bool>(),
            (std::vector<bool>{false, false, false}));
  expect_error([&] { nn::in_top_k(Tensor{0, 1}, p, 1); }, Code::invalid_argument, "2 targets");
}

TEST(NnZeroFraction, CountsZeros) {
  EXPECT_EQ(nn::zero_fraction(Tensor{0.f, 1.f, 0.f, -0.f}).item<float>(), 0.75f);
  EXPECT_EQ(nn::zero_fraction(Tensor{0, 1, 2, 3}).item<float>(), 0.25f);
}

}  // namespace
}  // namespace runnel
