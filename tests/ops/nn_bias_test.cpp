#include "runnel/tensor/type_sets.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel {
namespace {

using namespace test;

TEST(NnBias, EveryTypeAndRank) {
  real_numbers.for_each([]<class T>() {
    for (const Shape& shape : {Shape{4, 3}, Shape{2, 3, 5, 10}, Shape{2, 3, 64}, Shape{0, 3}, Shape{300, 700}}) {
      const int64_t channels = shape[shape.rank() - 1];
      const Tensor x = random_tensor(shape, dtype_of<T>, 1, 0, 9);
      const Tensor b = random_tensor({channels}, dtype_of<T>, 2, 0, 9);
      const auto bias = values_of(b);
      std::vector<double> expected = values_of(x);
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % bias.size()];
      expect_close(nn::bias_add(x, b), expected, shape, tolerance(dtype_of<T>));
    }
  });
}

TEST(NnBias, Gradients) {
  const TensorFunction f = [](const std::vector<Tensor>& t) { return nn::bias_add(t[0], t[1]) * t[0] * t[1]; };
  expect_gradients(f, {random_tensor({2, 3, 4}, float64, 3), random_tensor({4}, float64, 4)});
  GradientTape tape;
  const Tensor x = random_tensor({501, 33}, float32, 5);
  const Tensor b = random_tensor({33}, float32, 6);
  tape.watch(b);
  const Tensor d = tape.gradient(nn::bias_add(x, b), b, x).value();
  std::vector<double> expected(33, 0);
  const auto v = values_of(x);
  for (size_t i = 0; i < v.size(); ++i) expected[i % 33] += v[i];
  expect_close(d, expected, {33}, 1e-5);
}

TEST(NnBias, Errors) {
  const Tensor x = random_tensor({2, 3});
  expect_error(
      [&] {
        nn::bias_add(x, Tensor{1.f, 2.f});
      },
      Code::invalid_argument, "value has 3 channels (NHWC): [2,3] + [2]");
  expect_error([&] { nn::bias_add(Tensor{1.f, 2.f}, Tensor{1.f, 2.f}); }, Code::invalid_argument, "rank 2 or more");
  expect_error([&] { nn::bias_add(x, random_tensor({1, 3})); }, Code::invalid_argument, "rank 1");
  expect_error([&] { nn::bias_add(x, Tensor{1.f, 2.f, 3.f}, "NCW"); }, Code::invalid_argument, "NCW");
  expect_error([&] { nn::bias_add(x, Tensor{1, 2, 3}); }, Code::invalid_argument, "int32");
}

}  // namespace
}  // namespace runnel
