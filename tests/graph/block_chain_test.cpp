// Chains of elementwise ops that run block by block give the bits of the ops run one by one.
#include "runnel/graph/executor/block_chain.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runnel/graph/passes/pass.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

Tensor values(const Shape& shape, int64_t seed) {
  return random::stateless_uniform(shape, Tensor{seed, int64_t{3}}, -2.0, 2.0);
}

void expect_same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].shape(), b[i].shape());
    EXPECT_EQ(0, std::memcmp(a[i].raw(), b[i].raw(), a[i].num_bytes())) << "result " << i;
  }
}

template <class F>
void check(F f, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> eager = f(inputs);
  const int before = num_threads();
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    const auto traced = function(f);
    expect_same_bits(traced(inputs), eager);
    expect_same_bits(traced(inputs), eager);  // into memory that the frame kept
  }
  set_num_threads(before);
  enable_pass("elementwise_blocks", false);
  expect_same_bits(function(f)(inputs), eager);
  enable_pass("elementwise_blocks", true);
}

using Tensors = std::vector<Tensor>;

TEST(BlockChain, ChainsOfEveryLength) {
  for (const int64_t n : {32768, 32769, 65536, 200'003}) {
    for (int length = 1; length < 6; ++length) {
      check(
          [=](const Tensors& in) {
            Tensor z = in[0];
            for (int i = 0; i < length; ++i) z = tanh(z * in[1] + 0.25f);
            return Tensors{z};
          },
          {values({n}, 1), values({n}, 2)});
    }
  }
}

TEST(BlockChain, OtherTypesScalarsAndValuesUsedOutside) {
  check(
      [](const Tensors& in) {
        const Tensor sum = in[0] + in[1];       // stored: a result
        const Tensor large = abs(sum) > in[2];  // bool, with a scalar that is not a constant
        const Tensor kept = where(large, sum, square(in[0]));
        const Tensor total = reduce_sum(kept);  // ends the chain
        const Tensor count = cast(cast(large, int32) * 3, float32);
        return Tensors{sum, total, count * kept + total, exp(sum) * sum};
      },
      {values({300, 301}, 1), values({300, 301}, 2), Tensor(0.5f)});
}

TEST(BlockChain, MatricesWithRowsAreLeftAlone) {
  check([](const Tensors& in) { return Tensors{nn::relu((in[0] + in[1]) * 2) - in[1]}; },
        {values({300, 301}, 1), values({301}, 2)});
}

TEST(BlockChain, GradientsAndManyThreads) {
  check(
      [](const Tensors& in) {
        GradientTape tape;
        tape.watch(in);
        const Tensor y = sigmoid(in[0]) * tanh(in[1] * in[0]);
        Tensors out{y};
        for (const Gradient& g : tape.gradient(y, in)) out.push_back(g.value());
        return out;
      },
      {values({100'000}, 1), values({100'000}, 2)});
}

TEST(BlockChain, AnErrorNamesTheNodeAndTheFunctionStaysUsable) {
  const auto f = function([](const Tensor& a, const Tensor& b) { return floordiv(a + 1, b) * 2; });
  const Tensor a = fill({50'000}, 7), good = fill({50'000}, 2), bad = concat({fill({49'999}, 2), Tensor{0}}, 0);
  try {
    f(a, bad);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("[FloorDiv]"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("node '"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("block_chain_test.cpp"), std::string::npos) << e.what();
  }
  EXPECT_EQ(f(a, good).to_vector<int>(), std::vector<int>(50'000, 8));
}

}  // namespace
}  // namespace runnel
