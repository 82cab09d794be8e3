#include <cmath>

#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel {
namespace {

using namespace test;

// Along the middle of [outer, n, inner].
std::vector<double> naive_softmax(const std::vector<double>& x, int64_t outer, int64_t n, int64_t inner, bool log) {
  std::vector<double> y(x.size());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      auto at = [&](int64_t k) { return static_cast<size_t>((o * n + k) * inner + i); };
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += std::exp(x[at(k)]);
      for (int64_t k = 0; k < n; ++k) y[at(k)] = log ? x[at(k)] - std::log(sum) : std::exp(x[at(k)]) / sum;
    }
  }
  return y;
}

TEST(NnSoftmax, EveryAxisAndType) {
  const Shape shape{3, 5, 7};
  for (DType dtype : {float32, float64, float16, bfloat16}) {
    const Tensor x = random_tensor(shape, dtype, 2, -4, 4);
    const auto v = values_of(x);
    for (bool log : {false, true}) {
      auto f = [log](const Tensor& t, int axis) { return log ? nn::log_softmax(t, axis) : nn::softmax(t, axis); };
      expect_close(f(x, -1), naive_softmax(v, 15, 7, 1, log), shape, tolerance(dtype));
      expect_close(f(x, 2), naive_softmax(v, 15, 7, 1, log), shape, tolerance(dtype));
      expect_close(f(x, 1), naive_softmax(v, 3, 5, 7, log), shape, tolerance(dtype));
      expect_close(f(x, -3), naive_softmax(v, 1, 3, 35, log), shape, tolerance(dtype));
    }
  }
}

TEST(NnSoftmax, EmptyAndErrors) {
  EXPECT_EQ(nn::softmax(random_tensor({0, 4})).shape(), (Shape{0, 4}));
  EXPECT_EQ(nn::softmax(random_tensor({4, 0})).shape(), (Shape{4, 0}));
  expect_error([] { nn::softmax(random_tensor({2, 3}), 2); }, Code::invalid_argument, "axis 2 is out of range");
  expect_error([] { nn::softmax(Tensor(1.f)); }, Code::invalid_argument, "rank 1 or more");
}

TEST(NnSoftmax, Gradients) {
  const Tensor x = random_tensor({3, 4}, float64, 8, -2, 2);
  expect_gradients([](const std::vector<Tensor>& t) { return nn::softmax(t[0]); }, {x});
  expect_gradients([](const std::vector<Tensor>& t) { return nn::softmax(t[0], 0); }, {x});
  expect_gradients([](const std::vector<Tensor>& t) { return nn::log_softmax(t[0]); }, {x});
}

TEST(NnCrossEntropy, AgainstTheDefinition) {
  for (DType dtype : {float32, float64, float16, bfloat16}) {
    const Tensor x = random_tensor({6, 9}, dtype, 3, -3, 3);
    const Tensor labels = nn::softmax(random_tensor({6, 9}, dtype, 4, -3, 3));
    const auto logs = naive_softmax(values_of(x), 6, 9, 1, true);
    const auto l = values_of(labels);
    std::vector<double> expected(6, 0), sparse;
    for (size_t i = 0; i < logs.size(); ++i) expected[i / 9] -= l[i] * logs[i];
    expect_close(nn::softmax_cross_entropy_with_logits(labels, x), expected, {6}, 4 * tolerance(dtype));
    const std::vector<int64_t> classes{0, 8, 3, 4, 4, 1};
    for (size_t i = 0; i < 6; ++i) sparse.push_back(-logs[i * 9 + static_cast<size_t>(classes[i])]);
    expect_close(nn::sparse_softmax_cross_entropy_with_logits(Tensor::of(classes), x), sparse, {6}, tolerance(dtype));
    expect_close(nn::sparse_softmax_cross_entropy_with_logits(Tensor{0, 8, 3, 4, 4, 1}, x), sparse, {6},
                 tolerance(dtype));
  }
}

TEST(NnCrossEntropy, HigherRanksAndAxis) {
  const Tensor x = random_tensor({2, 3, 4}, float64, 3, -3, 3);
  const auto logs = naive_softmax(values_of(x), 6, 4, 1, true);
  std::vector<double> expected;
  for (size_t i = 0; i < 6; ++i) expected.push_back(-logs[i * 4 + i % 4]);
  const Tensor classes{{0, 1, 2}, {3, 0, 1}};
  expect_close(nn::sparse_softmax_cross_entropy_with_logits(classes, x), expected, {2, 3}, 1e-12);
  const Tensor dense = cast(one_hot(classes, 4), float64);
  expect_close(nn::softmax_cross_entropy_with_logits(dense, x), expected, {2, 3}, 1e-12);
  expect_close(nn::softmax_cross_entropy_with_logits(transpose(dense, {0, 2, 1}), transpose(x, {0, 2, 1}), 1), expected,
               {2, 3}, 1e-12);
  expect_close(nn::softmax_cross_entropy_with_logits(one_hot(Tensor{1}, 4), x[0](slice(0, 1))), {-logs[1]}, {1}, 1e-6);
  EXPECT_EQ(
      nn::sparse_softmax_cross_entropy_with_logits(Tensor::of(std::vector<int32_t>{}), random_tensor({0, 3})).shape(),
      Shape{0});
}

TEST(NnCrossEntropy, LargeLogitsStayFinite) {
  const Tensor x{{1000.f, -1000.f}};
  EXPECT_EQ(nn::sparse_softmax_cross_entropy_with_logits(Tensor{0}, x).item<float>(), 0.f);
  EXPECT_EQ(nn::sparse_softmax_cross_entropy_with_logits(Tensor{1}, x).item<float>(), 2000.f);
}

TEST(NnCrossEntropy, Gradients) {
  const Tensor x = random_tensor({3, 4}, float64, 8, -2, 2);
  const Tensor labels = nn::softmax(random_tensor({3, 4}, float64, 9));
  expect_gradients([&](const std::vector<Tensor>& t) { return nn::softmax_cross_entropy_with_logits(labels, t[0]); },
                   {x});
  expect_gradients([&](const std::vector<Tensor>& t) { return nn::softmax_cross_entropy_with_logits(t[0], x); },
                   {labels});
  expect_gradients(
      [](const std::vector<Tensor>& t) {
        return nn::sparse_softmax_cross_entropy_with_logits(Tensor{0, 3, 1}, t[0]);
      },
      {x});
  const Tensor z = random_tensor({3, 4}, float64, 10, 0, 1);
  expect_gradients([](const std::vector<Tensor>& t) { return nn::sigmoid_cross_entropy_with_logits(t[0], t[1]); },
                   {z, x});
  expect_gradients([](const std::vector<Tensor>& t) { return nn::weighted_cross_entropy_with_logits(t[0], t[1], 3.0); },
                   {z, x});
  expect_gradients([](const std::vector<Tensor>& t) { return nn::l2_loss(t[0]); }, {x});
}

TEST(NnCrossEntropy, SigmoidAndWeighted) {
  const Tensor x = random_tensor({5, 3}, float64, 1, -6, 6);
  const Tensor z = random_tensor({5, 3}, float64, 2, 0, 1);
  std::vector<double> plain, weighted;
  for (size_t i = 0; i < 15; ++i) {
    const double p = 1 / (1 + std::exp(-values_of(x)[i]));
    const double l = values_of(z)[i];
    plain.push_back(-l * std::log(p) - (1 - l) * std::log(1 - p));
    weighted.push_back(-2.5 * l * std::log(p) - (1 - l) * std::log(1 - p));
  }
  expect_close(nn::sigmoid_cross_entropy_with_logits(z, x), plain, {5, 3}, 1e-11);
  expect_close(nn::weighted_cross_entropy_with_logits(z, x, 2.5), weighted, {5, 3}, 1e-11);
  EXPECT_EQ(nn::sigmoid_cross_entropy_with_logits(Tensor{0.f, 1.f}, Tensor{-500.f, -500.f}).to_vector<float>(),
            (std::vector<float>{0.f, 500.f}));
}

TEST(NnCrossEntropy, Errors) {
  const Tensor x = random_tensor({2, 3});
  expect_error(
      [&] {
        nn::sparse_softmax_cross_entropy_with_logits(Tensor{1, 3}, x);
      },
      Code::invalid_argument, "label 3 (number 1)");
  expect_error(
      [&] {
        nn::sparse_softmax_cross_entropy_with_logits(Tensor{-1, 0}, x);
      },
      Code::invalid_argument, "label -1");
  expect_error([&] { nn::sparse_softmax_cross_entropy_with_logits(Tensor{1}, x); }, Code::invalid_argument, "1 labels");
  expect_error(
      [&] {
        nn::sparse_softmax_cross_entropy_with_logits(Tensor{1.f, 0.f}, x);
      },
      Code::invalid_argument, "labels");
  expect_error([&] { nn::sparse_softmax_cross_entropy_with_logits(Tensor(1), x); }, Code::invalid_argument,
               "one dimension less");
  expect_error(
      [&] {
        nn::softmax_cross_entropy_with_logits(random_tensor({2, 4}), x);
      },
      Code::invalid_argument, "do not broadcast: [2,3] with [2,4]");
}

TEST(NnSoftmax, SameBitsWithOneAndTwoThreads) {
  const Tensor x = random_tensor({1021, 97}, float32, 9, -5, 5);
  const Tensor labels = nn::softmax(random_tensor({1021, 97}, float32, 10, -5, 5));
  auto run = [&] {
    return std::vector<Tensor>{nn::softmax(x), nn::log_softmax(x), nn::softmax_cross_entropy_with_logits(labels, x),
                               nn::l2_loss(x)};
  };
  set_num_threads(1);
  const auto one = run();
  set_num_threads(2);
  const auto two = run();
  for (size_t i = 0; i < one.size(); ++i) expect_same_bits(one[i], two[i]);
}

TEST(NnCrossEntropy, FunctionsNeedNotKnowTheNumberOfClasses) {
  const Tensor x = random_tensor({2, 3, 4}, float32, 9), labels = nn::softmax(random_tensor({2, 3, 4}, float32, 10));
  const Tensor classes{{0, 3, 1}, {2, 2, 0}};
  const auto unknown = [](int rank, DType dtype) { return TensorSpec(PartialShape::unknown_dims(rank), dtype); };
  auto dense = function([](const Tensor& y, const Tensor& z) { return nn::softmax_cross_entropy_with_logits(y, z); },
                        {.input_signature = {unknown(3, float32), unknown(3, float32)}});
  expect_same_bits(dense(labels, x), nn::softmax_cross_entropy_with_logits(labels, x));
  auto sparse =
      function([](const Tensor& y, const Tensor& z) { return nn::sparse_softmax_cross_entropy_with_logits(y, z); },
               {.input_signature = {unknown(2, int32), unknown(3, float32)}});
  expect_same_bits(sparse(classes, x), nn::sparse_softmax_cross_entropy_with_logits(classes, x));
}

TEST(NnL2Loss, SumOfSquares) {
  for (DType dtype : {float32, float64, float16, bfloat16}) {
    const Tensor x = random_tensor({37, 41}, dtype, 6);
    double sum = 0;
    for (double v : values_of(x)) sum += v * v / 2;
    expect_close(nn::l2_loss(x), {sum}, {}, tolerance(dtype));
  }
}

}  // namespace
}  // namespace runnel
