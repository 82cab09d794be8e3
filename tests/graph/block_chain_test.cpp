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
  expect_same_bits(function(f, {.plan = {.elementwise_blocks = false}})(inputs), eager);
  expect_same_bits(function(f, {.plan = {.compiled_chains = false}})(inputs), eager);
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

// Loops that pass values on to kernels, to each other and out; more values at a time than registers, so that a chain is
// several loops.
TEST(BlockChain, CompiledLoopsAmongKernels) {
  for (const int64_t n : {32768, 70'001}) {
    check(
        [](const Tensors& in) {
          const Tensor a = in[0] * 2 - in[1], b = square(a) + in[2];  // a is needed once more at the end
          const Tensor c = tanh(b / 3);                               // a kernel
          const Tensor d = nn::leaky_relu(c - in[0], 0.3), e = maximum(d, a) * in[2];
          return Tensors{e, b, clip_by_value(exp(e) - a, -1, 1)};
        },
        {values({n}, 1), values({n}, 2), Tensor(0.75f)});
    check(
        [](const Tensors& in) {
          Tensors many;
          for (int i = 0; i < 40; ++i) many.push_back(in[0] * (0.5f + static_cast<float>(i)));
          Tensor sum = in[1];
          for (const Tensor& t : many) sum = sum - t * sum;
          return Tensors{sum, many[7]};
        },
        {values({n}, 1), values({n}, 2)});
  }
}

// A scalar that is a view of a tensor is read again for every block: nothing may be written over that tensor before the
// last one.
TEST(BlockChain, ViewsOfWhatAChainCouldOverwrite) {
  for (const bool kernel : {false, true}) {
    check(
        [=](const Tensors& in) {
          const Tensor t = tanh(in[0]), s = t[0], y = in[1] * s;
          const Tensor b = t - (kernel ? exp(y) : y);
          return Tensors{concat({b, b}, 0)};
        },
        {values({200'003}, 1), values({200'003}, 2)});
  }
}

TEST(BlockChain, LongChains) {
  check(
      [](const Tensors& in) {
        Tensor z = in[0];
        for (int i = 0; i < 300; ++i) z = z * in[1] + 0.125f;
        return Tensors{z};
      },
      {values({40'000}, 1), values({40'000}, 2) * 0.25f});
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
