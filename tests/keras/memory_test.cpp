// Training and prediction hold on to nothing: the process keeps its size however long they go on.
#include <gtest/gtest.h>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/resident.h"

namespace runnel::keras {
namespace {

constexpr int64_t kMayGrow = int64_t{2} << 20;

TEST(KerasMemory, FitKeepsTheSizeOfTheProcess) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer keeps freed memory";
  const Tensor x = random::stateless_normal({72, 8}, {1, 2});
  const Tensor y = cast(range(72) % 4, int32);
  Sequential model(
      {Dense({.units = 16, .activation = "relu"}), Dropout({.rate = 0.1}), Dense({.units = 4}), Softmax()});
  model.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  const auto train = [&](int64_t epochs) {
    model.fit(x, y, {.batch_size = 16, .epochs = epochs, .verbose = 0, .validation_data = SampleData(x, y)});
  };
  train(20);
  const int64_t before = test::resident_bytes();
  train(100);
  EXPECT_LT(test::resident_bytes() - before, kMayGrow);
}

TEST(KerasMemory, PredictKeepsTheSizeOfTheProcess) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer keeps freed memory";
  const Tensor x = random::stateless_normal({5, 8}, {3, 4});
  Sequential model({Dense({.units = 16, .activation = "relu"}), Dense({.units = 4})});
  const auto predict = [&](int times) {
    for (int i = 0; i < times; ++i) ASSERT_EQ(model.predict(x, {.verbose = 0}).shape(), (Shape{5, 4}));
  };
  predict(1000);
  const int64_t before = test::resident_bytes();
  predict(10'000);
  EXPECT_LT(test::resident_bytes() - before, kMayGrow);
}

}  // namespace
}  // namespace runnel::keras
