// The function of a map writes large results straight into the batch; nobody's values change by it.
#include "runnel/tensor/output_destination.h"

#include "tests/data/helpers.h"

namespace runnel::data {
namespace {

constexpr int64_t kRow = 32768;  // floats: more than a row must have to be placed

Tensor counted(const Tensor& i) { return fill({kRow}, cast(i, float32)); }

void expect_rows(const Tensor& batch, int64_t first, float plus = 0) {
  for (int64_t i = 0; i < batch.dim(0); ++i) {
    for (const int64_t at : {int64_t{0}, kRow - 1}) {
      ASSERT_EQ(batch.data<float>()[i * kRow + at], static_cast<float>(first + i) + plus) << "row " << i;
    }
  }
}

TEST(OutputDestination, IsTakenOnceByWhatFits) {
  const Tensor room = zeros({2, 3});
  const void* at = room.raw();
  const Tensor x{1.f, 2.f, 3.f, 4.f, 5.f, 6.f};
  const OutputDestination placement(room);
  EXPECT_NE(add(Tensor{1.f, 2.f}, 1).raw(), at);          // another size
  EXPECT_NE(add(Tensor{1, 2, 3, 4, 5, 6}, 1).raw(), at);  // another dtype
  const Tensor first = add(x, 1);
  EXPECT_EQ(first.raw(), at);
  EXPECT_EQ(first.shape(), (Shape{6}));
  EXPECT_NE(add(x, 2).raw(), at);
  EXPECT_EQ(first.to_vector<float>(), (std::vector<float>{2, 3, 4, 5, 6, 7}));
}

TEST(OutputDestination, BatchesOfLargeRows) {
  for (const int parallel : {0, 1, 2}) {
    int64_t first = 0;
    for (const Tensor& batch : range(50).map(counted, parallel).batch(8)) {
      expect_rows(batch, first);
      first += batch.dim(0);
    }
    EXPECT_EQ(first, 50);
  }
}

TEST(OutputDestination, ValuesMadeOnTheWayMayBeKept) {
  std::vector<Tensor> kept;
  const auto d = range(20).map([&](const Tensor& i) {
    kept.push_back(counted(i));  // takes the room, and the result of the function does not
    return kept.back() + 0.5f;
  });
  int64_t first = 0;
  for (const Tensor& batch : d.batch(5)) {
    expect_rows(batch, first, 0.5f);
    first += batch.dim(0);
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i].data<float>()[0], static_cast<float>(i % 20));
    EXPECT_EQ(kept[i].data<float>()[kRow - 1], static_cast<float>(i % 20));
  }
}

TEST(OutputDestination, ResultsMayBeKeptAndGivenAgain) {
  std::vector<Tensor> kept;
  const auto d = range(12).map([&](const Tensor& i) {
    if (i.item<int64_t>() % 3 != 0) return kept.back();  // the one before
    kept.push_back(counted(i));
    return kept.back();
  });
  int64_t at = 0;
  for (const Tensor& batch : d.batch(4)) {
    for (int64_t i = 0; i < 4; ++i, ++at) {
      EXPECT_EQ(batch.data<float>()[i * kRow], static_cast<float>(at - at % 3));
    }
  }
}

TEST(OutputDestination, TracedFunctionsAndSeveralComponents) {
  const auto f = function([](const Tensor& i) { return std::tuple{fill({kRow}, cast(i, float32)) * 1.f, i}; });
  int64_t first = 0;
  for (const auto& [x, i] : range(20).map(f, 2).batch(5)) {
    expect_rows(x, first);
    EXPECT_EQ(i.data<int64_t>()[4], first + 4);
    first += 5;
  }
}

}  // namespace
}  // namespace runnel::data
