// The callables of a dataset compute alike on the threads of a pipeline and on the one that asks for elements.
#include "runnel/runnel.h"
#include "tests/data/helpers.h"

#if defined(__SSE2__)
namespace runnel::data {
namespace {

float tiny_product() {
  const volatile float a = 1e-40f, b = 1e20f;
  return a * b;
}

TEST(DataDenormals, AreZeroInMapsOnAllThreads) {
  const auto of_floats = from_tensor_slices(fill({64}, 1e-20f));
  for (const int parallel : {0, 3}) {
    const auto by_ops = of_floats.map([](Tensor x) { return x * 1e-20f; }, parallel);
    const auto by_hand = range(64).map([](Tensor) { return Tensor(tiny_product()); }, parallel);
    for (const auto& d : {by_ops, by_hand, by_hand.prefetch(4)}) {
      int count = 0;
      for (const Tensor& x : d) {
        EXPECT_EQ(x.item<float>(), 0.f);
        ++count;
      }
      EXPECT_EQ(count, 64);
    }
  }
  EXPECT_NE(tiny_product(), 0.f);
}

}  // namespace
}  // namespace runnel::data
#endif
