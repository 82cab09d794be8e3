// predict beyond what models' own tests do: several threads, sizes as large as there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

TEST(Predict, FirstFromSeveralThreads) {
  for (int round = 0; round < 5; ++round) {
    Sequential model({Input({2}), Dense({.units = 1, .kernel_initializer = "ones"})});
    std::vector<float> sums(4);
    std::vector<std::thread> threads;
    for (size_t k = 0; k < sums.size(); ++k) {
      threads.emplace_back([&, k] {
        const Tensor x = ones({3, 2}) * static_cast<float>(k);
        sums[k] = reduce_sum(model.predict(x, {.verbose = 0})).item<float>();
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_THAT(sums, ::testing::ElementsAre(0, 6, 12, 18));
  }
}

TEST(Predict, OfSeveralOutputsSaysHowToGetThem) {
  const Tensor in = Input({2});
  Model model(in, {Dense({.units = 1})(in), Dense({.units = 1})(in)});
  test::expect_error(
      [&] {
        model.predict(ones({1, 2}), {.verbose = 0});
      },
      Code::invalid_argument, "model.predict(Nest(x))");
  EXPECT_EQ(model.predict(Nest(ones({1, 2})), {.verbose = 0}).size(), 2u);
}

TEST(Predict, TakesSizesAsLargeAsThereAre) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  Sequential model({Input({2}), Dense({.units = 1})});
  const Tensor x = ones({5, 2});
  EXPECT_EQ(model.predict(x, {.batch_size = 2, .verbose = 0, .steps = kMost}).dim(0), 5);
  EXPECT_EQ(model.predict(x, {.batch_size = kMost, .verbose = 0, .steps = kMost}).dim(0), 5);
  EXPECT_EQ(model.predict(x, {.batch_size = 2, .verbose = 0, .steps = 2}).dim(0), 4);
  EXPECT_EQ(model.predict(x, {.batch_size = 2, .verbose = 0, .steps = 1}).dim(0), 2);
  EXPECT_EQ(model.predict(x, {.batch_size = 2, .verbose = 0, .steps = 3}).dim(0), 5);
}

}  // namespace
}  // namespace runnel::keras
