#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "runnel/runnel.h"

namespace runnel {
namespace {

using testing::HasSubstr;

double mean_of(const std::vector<float>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}
double variance_of(const std::vector<float>& v) {
  const double m = mean_of(v);
  double s = 0;
  for (float x : v) s += (x - m) * (x - m);
  return s / static_cast<double>(v.size());
}

// The values that TensorFlow's guide to random numbers prints.
// The numbers are those that TensorFlow's guide "Random number generation" prints.
TEST(Random, GeneratorGivesTensorFlowsNumbers) {
  auto g = random::Generator::from_seed(1);
  const auto z = g.normal({2, 3}).to_vector<float>();
  const std::vector<float> expected{0.43842277f, -0.53439844f, -0.07710262f, 1.5658046f, -0.1012345f, -0.2744976f};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(z[i], expected[i], 1e-5) << i;
}
TEST(Random, SuccessiveDrawsGiveTensorFlowsNumbers) {
  auto g = random::Generator::from_seed(1);
  for (const float expected : {0.43842277f, 1.6272374f, 1.6307176f}) {
    EXPECT_NEAR(g.normal({}).item<float>(), expected, 1e-5);
  }
}
TEST(Random, StatelessNormalGivesTensorFlowsNumbers) {
  const auto z = random::stateless_normal({2, 3}, {1, 2}).to_vector<float>();
  const std::vector<float> expected{0.5441101f, 0.20738031f, 0.07356433f, 0.04643455f, -1.30159f, -0.95385665f};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(z[i], expected[i], 1e-5) << i;
}

TEST(Random, SeedFixesTheSequence) {
  random::set_seed(7);
  const auto a = random::uniform({5}).to_vector<float>();
  const auto b = random::uniform({5}).to_vector<float>();
  EXPECT_NE(a, b);
  random::set_seed(7);
  EXPECT_EQ(random::uniform({5}).to_vector<float>(), a);
  EXPECT_EQ(random::uniform({5}).to_vector<float>(), b);
  random::set_seed(8);
  EXPECT_NE(random::uniform({5}).to_vector<float>(), a);
}

TEST(Random, OpSeedHasAStreamOfItsOwn) {
  random::set_seed(7);
  const auto a = random::uniform({4}, 0, 1, float32, 3).to_vector<float>();
  const auto b = random::uniform({4}, 0, 1, float32, 3).to_vector<float>();
  EXPECT_NE(a, b);
  random::set_seed(7);
  random::normal({100});  // other draws do not disturb it
  EXPECT_EQ(random::uniform({4}, 0, 1, float32, 3).to_vector<float>(), a);
}

TEST(Random, SameBitsWithAnyNumberOfThreads) {
  for (const bool normal : {false, true}) {
    std::vector<std::vector<float>> drawn;
    for (int threads : {1, 2}) {
      set_num_threads(threads);
      random::set_seed(11);
      drawn.push_back((normal ? random::normal({100001}) : random::uniform({100001})).to_vector<float>());
    }
    EXPECT_EQ(drawn[0], drawn[1]);
  }
  for (int threads : {1, 2}) {
    static std::vector<float> truncated, gammas;
    set_num_threads(threads);
    random::set_seed(11);
    const auto t = random::truncated_normal({9999}).to_vector<float>();
    const auto g = random::gamma({3000}, Tensor{0.5f, 3.f}).to_vector<float>();
    if (threads == 1) {
      truncated = t;
      gammas = g;
    }
    EXPECT_EQ(t, truncated);
    EXPECT_EQ(g, gammas);
  }
}

TEST(Random, MomentsOfTheDistributions) {
  random::set_seed(1);
  const auto u = random::uniform({200000}, -1, 3).to_vector<float>();
  EXPECT_NEAR(mean_of(u), 1.0, 0.02);
  EXPECT_NEAR(variance_of(u), 16.0 / 12, 0.02);
  EXPECT_GE(*std::min_element(u.begin(), u.end()), -1.f);
  EXPECT_LT(*std::max_element(u.begin(), u.end()), 3.f);
  const auto z = random::normal({200000}, 2, 0.5).to_vector<float>();
  EXPECT_NEAR(mean_of(z), 2.0, 0.01);
  EXPECT_NEAR(variance_of(z), 0.25, 0.01);
  const auto t = random::truncated_normal({200000}).to_vector<float>();
  EXPECT_NEAR(mean_of(t), 0.0, 0.01);
  EXPECT_NEAR(variance_of(t), 0.7737, 0.01);  // of the normal cut at two standard deviations
  for (float x : t) ASSERT_LT(std::abs(x), 2.f);
  for (const float alpha : {0.3f, 1.f, 4.5f}) {
    const auto g = random::gamma({100000}, Tensor(alpha), Tensor(2.f)).to_vector<float>();
    EXPECT_NEAR(mean_of(g), alpha / 2, 0.03 * alpha + 0.005) << alpha;
    EXPECT_NEAR(variance_of(g), alpha / 4, 0.06 * alpha + 0.005) << alpha;
  }
}

TEST(Random, EveryFloatingDtype) {
  random::set_seed(3);
  for (DType dtype : {float16, bfloat16, float64}) {
    const Tensor u = random::uniform({1000}, 0, 1, dtype);
    EXPECT_EQ(u.dtype(), dtype);
    const auto v = cast(u, float32).to_vector<float>();
    EXPECT_NEAR(mean_of(v), 0.5, 0.05) << dtype_name(dtype);
    EXPECT_EQ(random::normal({3}, 0, 1, dtype).dtype(), dtype);
    EXPECT_EQ(random::truncated_normal({3}, 0, 1, dtype).dtype(), dtype);
  }
}

TEST(Random, Integers) {
  random::set_seed(5);
  const auto v = random::uniform({10000}, -2, 3, int32).to_vector<int32_t>();
  EXPECT_EQ(std::set<int32_t>(v.begin(), v.end()), (std::set<int32_t>{-2, -1, 0, 1, 2}));
  EXPECT_EQ(random::uniform({3}, 0, 10, int64).dtype(), int64);
  try {
    random::uniform({3}, 5, 5, int32);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("[RandomUniformInt] needs minval < maxval, got 5 and 5"));
    EXPECT_THAT(e.what(), HasSubstr("random_test.cpp"));
  }
  EXPECT_THROW(random::uniform({3}, 0, 1, bool_), Error);
}

TEST(Random, ShuffleIsAPermutationOfRows) {
  random::set_seed(9);
  const Tensor x = reshape(range(200), {100, 2});
  const auto v = random::shuffle(x).to_vector<int32_t>();
  std::set<int32_t> rows;
  bool moved = false;
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(v[2 * i] + 1, v[2 * i + 1]);
    rows.insert(v[2 * i]);
    moved = moved || v[2 * i] != static_cast<int32_t>(2 * i);
  }
  EXPECT_EQ(rows.size(), 100u);
  EXPECT_TRUE(moved);
  EXPECT_EQ(random::shuffle(Tensor{"a", "b"}).num_elements(), 2);
  EXPECT_EQ(random::shuffle(zeros({0, 3})).shape(), (Shape{0, 3}));
}

TEST(Random, CategoricalFollowsTheLogits) {
  random::set_seed(2);
  const Tensor logits{{std::log(0.1f), std::log(0.2f), std::log(0.7f)}, {-INFINITY, 0.f, -INFINITY}};
  const auto v = random::categorical(logits, 20000).to_vector<int64_t>();
  std::vector<double> share(3, 0);
  for (size_t i = 0; i < 20000; ++i) share[static_cast<size_t>(v[i])] += 1.0 / 20000;
  EXPECT_NEAR(share[0], 0.1, 0.01);
  EXPECT_NEAR(share[1], 0.2, 0.015);
  EXPECT_NEAR(share[2], 0.7, 0.015);
  for (size_t i = 20000; i < 40000; ++i) ASSERT_EQ(v[i], 1);
}

// What TensorFlow 2.15 draws with the global seed 3 and seed=4, which is an op with seed = 3, seed2 = 4.
TEST(Random, SeedsGiveTensorFlowsNumbers) {
  const auto first = [](auto draw) {
    random::set_seed(3);
    return draw();
  };
  const auto close = [](const Tensor& drawn, const std::vector<float>& expected) {
    const auto v = drawn.to_vector<float>();
    ASSERT_EQ(v.size(), expected.size());
    for (size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(v[i], expected[i], 1e-6) << i;
  };
  close(first([] { return random::uniform({3}, 0, 1, float32, 4); }), {0.9237367f, 0.37043047f, 0.94819844f});
  close(random::uniform({3}, 0, 1, float32, 4), {0.9067508f, 0.2926538f, 0.2204107f});
  close(first([] { return random::truncated_normal({4}, 0, 1, float32, 4); }),
        {0.28962207f, -0.27345106f, -0.29865932f, 0.13109374f});
  close(first([] {
          return random::gamma({2}, Tensor{0.5f, 2.f}, 1, 4);
        }),
        {0.03009898f, 1.6034636f, 0.3583955f, 1.8513086f});
  EXPECT_EQ(first([] { return random::uniform({4}, 0, 100, int32, 4); }).to_vector<int32_t>(),
            (std::vector<int32_t>{61, 60, 41, 94}));
  EXPECT_EQ(first([] {
              return random::shuffle(Tensor{1, 2, 3, 4, 5}, 4);
            }).to_vector<int32_t>(),
            (std::vector<int32_t>{2, 1, 5, 4, 3}));
  const Tensor logits{{0.f, 1.f}, {1.f, 0.f}};
  EXPECT_EQ(first([&] { return random::categorical(logits, 5, int32, 4); }).to_vector<int32_t>(),
            (std::vector<int32_t>{1, 1, 1, 1, 0, 0, 0, 0, 1, 0}));
}

TEST(Random, StatelessGammaGivesTensorFlowsNumbers) {
  const auto v = random::stateless_gamma({3, 2}, {1, 2}, Tensor{0.5f, 1.f}).to_vector<float>();
  const std::vector<float> expected{0.06695361f, 1.8935091f, 0.62823546f, 0.22994834f, 0.18136732f, 1.1978732f};
  ASSERT_EQ(v.size(), expected.size());
  for (size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(v[i], expected[i], 1e-6) << i;
}

TEST(Random, GammasMoveWithAlphaAsTensorFlowsDo) {
  const Tensor alpha{0.5f, 2.f};
  GradientTape tape;
  tape.watch(alpha);
  const Tensor draws = random::stateless_gamma({2, 2}, {1, 2}, alpha);
  const auto slopes = tape.gradient(draws, alpha).value().to_vector<float>();
  EXPECT_NEAR(slopes[0], 1.8916621f, 1e-5);
  EXPECT_NEAR(slopes[1], 2.5318222f, 1e-5);
}

// Above 1e5 the slope is that of an expansion: the same to both sides of it.
TEST(Random, GammasMoveEvenlyWithLargeAlpha) {
  const auto slopes = [](double a) {
    const Tensor alpha = Tensor::of<double>(std::vector<double>{a}, Shape{});
    GradientTape tape;
    tape.watch(alpha);
    const Tensor draws = random::stateless_gamma({50}, {1, 2}, alpha);
    return tape.jacobian(draws, alpha).to_vector<double>();
  };
  const std::vector<double> below = slopes(99999.99), above = slopes(100000.01);
  for (size_t i = 0; i < below.size(); ++i) EXPECT_NEAR(above[i], below[i], 2e-8);
}

TEST(Random, WrongDtypesAndSizesAreErrors) {
  const Tensor logits{{0.f, 1.f}};
  for (const DType dtype : {DType::string, float32, int8}) {
    EXPECT_THROW(random::categorical(logits, 2, dtype), Error) << dtype_name(dtype);
  }
  EXPECT_THROW(random::uniform({-1}), Error);
  EXPECT_THROW(random::gamma({-1}, 1.f), Error);
  EXPECT_THROW(random::stateless_normal({2, -1}, {1, 2}), Error);
}

TEST(Random, GeneratorsDrawTheSameInFunctions) {
  auto eager = random::Generator::from_seed(4), traced = random::Generator::from_seed(4);
  auto f = function([&](const Tensor& x) { return traced.normal(shape(x)) + traced.uniform({3}); },
                    {.input_signature = {TensorSpec({kUnknownDim}, float32)}});
  for (int i = 0; i < 2; ++i) {
    const Tensor expected = eager.normal({3}) + eager.uniform({3});
    EXPECT_EQ(f(zeros({3})).to_vector<float>(), expected.to_vector<float>());
  }
}

TEST(Random, EmptyAndScalarShapes) {
  EXPECT_EQ(random::uniform({0, 4}).shape(), (Shape{0, 4}));
  EXPECT_EQ(random::normal({}).rank(), 0);
  EXPECT_THROW(random::uniform({-2}), Error);
}

TEST(Random, GeneratorsSplitSkipAndReset) {
  auto g = random::Generator::from_seed(4);
  const auto first = g.uniform({3}).to_vector<float>();
  const auto second = g.uniform({3}).to_vector<float>();
  g.reset_from_seed(4);
  g.skip(3);
  EXPECT_EQ(g.uniform({3}).to_vector<float>(), second);
  EXPECT_NE(first, second);
  auto parts = g.split(2);
  EXPECT_NE(parts[0].normal({4}).to_vector<float>(), parts[1].normal({4}).to_vector<float>());
  EXPECT_EQ(g.make_seeds(3).shape(), (Shape{2, 3}));
  auto copy = random::Generator::from_state(g.state().value());
  EXPECT_EQ(copy.normal({2}).to_vector<float>(), g.normal({2}).to_vector<float>());
  EXPECT_THROW(random::Generator::from_state(Tensor{int64_t{1}}), Error);
}

}  // namespace
}  // namespace runnel
