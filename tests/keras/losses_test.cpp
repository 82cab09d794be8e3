#include "runnel/keras/losses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runnel/function/function.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using test::expect_close;
using test::expect_error;
using test::expect_gradients;
using test::random_tensor;
using test::tensor_of;
using test::values_of;

using RowLoss = std::function<double(const std::vector<double>& truth, const std::vector<double>& guess)>;

double clip_probability(double p) { return std::min(std::max(p, 1e-7), 1 - 1e-7); }

double mean_of(const std::vector<double>& truth, const std::vector<double>& guess,
               const std::function<double(double t, double p)>& f) {
  double sum = 0;
  for (size_t i = 0; i < truth.size(); ++i) sum += f(truth[i], guess[i]);
  return sum / static_cast<double>(truth.size());
}

// One value per row of [rows, width], by a plain loop.
std::vector<double> by_rows(const Tensor& truth, const Tensor& guess, const RowLoss& loss) {
  const auto width = static_cast<size_t>(guess.dim(-1));
  const auto t = values_of(truth);
  const auto p = values_of(guess);
  std::vector<double> out;
  for (size_t i = 0; i < p.size(); i += width) {
    out.push_back(loss({t.begin() + i, t.begin() + i + width}, {p.begin() + i, p.begin() + i + width}));
  }
  return out;
}

// Values against a loop, in float64 and float32, eagerly and in a function; the gradient by differences.
void check_function(const losses::LossFunction& f, const RowLoss& reference, const Tensor& truth, const Tensor& guess) {
  const std::vector<double> expected = by_rows(truth, guess, reference);
  const Shape rows{guess.dim(0)};
  expect_close(f(truth, guess), expected, rows, 1e-9);
  const Tensor truth32 = cast(truth, DType::float32);
  const Tensor guess32 = cast(guess, DType::float32);
  expect_close(f(truth32, guess32), expected, rows, 1e-4);
  auto traced = function(f);
  expect_close(traced(truth, guess), expected, rows, 1e-9);
  expect_gradients([&](const std::vector<Tensor>& x) { return f(truth, x[0]); }, {guess}, 12, 1e-5, false);
}

const Tensor kAny = random_tensor({4, 5}, DType::float64, 1, -2, 2);
const Tensor kAnyTruth = random_tensor({4, 5}, DType::float64, 2, -2, 2);
const Tensor kProbability = random_tensor({4, 5}, DType::float64, 3, 0.05, 0.95);
const Tensor kProbabilityTruth = random_tensor({4, 5}, DType::float64, 4, 0.05, 0.95);

TEST(LossFunctions, SquaredAndAbsoluteErrors) {
  check_function(
      losses::mean_squared_error,
      [](auto& t, auto& p) { return mean_of(t, p, [](double a, double b) { return (a - b) * (a - b); }); }, kAnyTruth,
      kAny);
  check_function(
      losses::mean_absolute_error,
      [](auto& t, auto& p) { return mean_of(t, p, [](double a, double b) { return std::abs(a - b); }); }, kAnyTruth,
      kAny);
  check_function(
      losses::mean_absolute_percentage_error,
      [](auto& t, auto& p) { return 100 * mean_of(t, p, [](double a, double b) { return std::abs((a - b) / a); }); },
      kAnyTruth, kAny);
  check_function(
      losses::mean_squared_logarithmic_error,
      [](auto& t, auto& p) {
        return mean_of(t, p, [](double a, double b) {
          const double d = std::log(std::max(a, 1e-7) + 1) - std::log(std::max(b, 1e-7) + 1);
          return d * d;
        });
      },
      kAnyTruth, kAny);
}

TEST(LossFunctions, HuberAndLogCosh) {
  for (const double delta : {1.0, 0.3}) {
    check_function([delta](const Tensor& t, const Tensor& p) { return losses::huber(t, p, delta); },
                   [delta](auto& t, auto& p) {
                     return mean_of(t, p, [delta](double a, double b) {
                       const double d = std::abs(a - b);
                       return d <= delta ? d * d / 2 : delta * (d - delta / 2);
                     });
                   },
                   kAnyTruth, kAny);
  }
  check_function(
      losses::log_cosh,
      [](auto& t, auto& p) { return mean_of(t, p, [](double a, double b) { return std::log(std::cosh(a - b)); }); },
      kAnyTruth, kAny);
  // Far from the truth cosh overflows, its logarithm does not.
  expect_close(losses::log_cosh(Tensor{0.f}, Tensor{500.f}), {500 - std::log(2.0)}, {}, 1e-6);
}

TEST(LossFunctions, Distributions) {
  check_function(
      losses::kl_divergence,
      [](auto& t, auto& p) { return 5 * mean_of(t, p, [](double a, double b) { return a * std::log(a / b); }); },
      kProbabilityTruth, kProbability);
  check_function(
      losses::poisson,
      [](auto& t, auto& p) { return mean_of(t, p, [](double a, double b) { return b - a * std::log(b + 1e-7); }); },
      kProbabilityTruth, kProbability);
  for (const double smoothing : {0.0, 0.2}) {
    check_function(
        [&](const Tensor& t, const Tensor& p) { return losses::binary_crossentropy(t, p, false, smoothing); },
        [&](auto& t, auto& p) {
          return mean_of(t, p, [&](double a, double b) {
            const double y = a * (1 - smoothing) + smoothing / 2;
            return -(y * std::log(b + 1e-7) + (1 - y) * std::log(1 - b + 1e-7));
          });
        },
        kProbabilityTruth, kProbability);
    check_function([&](const Tensor& t, const Tensor& p) { return losses::binary_crossentropy(t, p, true, smoothing); },
                   [&](auto& t, auto& p) {
                     return mean_of(t, p, [&](double a, double x) {
                       const double y = a * (1 - smoothing) + smoothing / 2;
                       return -(y * std::log(1 / (1 + std::exp(-x))) + (1 - y) * std::log(1 / (1 + std::exp(x))));
                     });
                   },
                   kProbabilityTruth, kAny);
  }
}

TEST(LossFunctions, CategoricalCrossentropy) {
  for (const double smoothing : {0.0, 0.1}) {
    const auto smooth = [&](double y) { return y * (1 - smoothing) + smoothing / 5; };
    check_function(
        [&](const Tensor& t, const Tensor& p) { return losses::categorical_crossentropy(t, p, false, smoothing); },
        [&](auto& t, auto& p) {  // rows of probabilities are scaled to add up to one
          double sum = 0, loss = 0;
          for (const double v : p) sum += v;
          for (size_t i = 0; i < p.size(); ++i) loss -= smooth(t[i]) * std::log(p[i] / sum);
          return loss;
        },
        kProbabilityTruth, kProbability);
  }
  check_function([](const Tensor& t, const Tensor& p) { return losses::categorical_crossentropy(t, p, true); },
                 [](auto& t, auto& x) {
                   double sum = 0, loss = 0;
                   for (const double v : x) sum += std::exp(v);
                   for (size_t i = 0; i < x.size(); ++i) loss -= t[i] * (x[i] - std::log(sum));
                   return loss;
                 },
                 nn::softmax(kAnyTruth), kAny);
  // Along another axis: the transposed problem.
  const Tensor across =
      losses::categorical_crossentropy(transpose(kProbabilityTruth), transpose(kProbability), false, 0, 0);
  expect_close(across, values_of(losses::categorical_crossentropy(kProbabilityTruth, kProbability)), {4}, 1e-12);
  // Certain and wrong: as far as the clipping goes.
  expect_close(losses::categorical_crossentropy(Tensor{{1.f, 0.f}}, Tensor{{0.f, 1.f}}), {-std::log(1e-7)}, {1}, 1e-5);
  expect_error(
      [] {
        losses::categorical_crossentropy(Tensor{{1.f}, {0.f}}, Tensor{{0.5f, 0.5f}, {0.5f, 0.5f}});
      },
      Code::invalid_argument, "[2,1] does not fit y_pred of shape [2,2]");
}

TEST(LossFunctions, SparseCategoricalCrossentropy) {
  const std::vector<int> labels = {3, 0, 4, 1};
  const auto expected = [&](bool logits, const Tensor& guess) {
    const auto p = values_of(guess);
    std::vector<double> out;
    for (size_t i = 0; i < 4; ++i) {
      double sum = 0;
      for (size_t j = 0; j < 5; ++j) sum += logits ? std::exp(p[i * 5 + j]) : clip_probability(p[i * 5 + j]);
      const double v = p[i * 5 + static_cast<size_t>(labels[i])];
      out.push_back(std::log(sum) - (logits ? v : std::log(clip_probability(v))));
    }
    return out;
  };
  const Tensor truth{3, 0, 4, 1};
  for (const bool logits : {false, true}) {
    const Tensor guess = logits ? kAny : kProbability;
    const auto f = [&](const Tensor& t, const Tensor& p) {
      return losses::sparse_categorical_crossentropy(t, p, logits);
    };
    for (const DType dtype : {DType::uint8, DType::int32, DType::int64, DType::float32}) {
      expect_close(f(cast(truth, dtype), guess), expected(logits, guess), {4}, 1e-9);
      expect_close(f(expand_dims(cast(truth, dtype), 1), guess), expected(logits, guess), {4}, 1e-9);
    }
    expect_close(function(f)(truth, guess), expected(logits, guess), {4}, 1e-9);
    expect_gradients([&](const std::vector<Tensor>& x) { return f(truth, x[0]); }, {guess}, 20, 1e-5, true);
    // Images of labels, and classes along another axis.
    const Tensor grid = reshape(guess, {2, 2, 5});
    expect_close(f(reshape(truth, {2, 2}), grid), expected(logits, guess), {2, 2}, 1e-9);
    expect_close(f(reshape(truth, {2, 2, 1}), grid), expected(logits, guess), {2, 2}, 1e-9);
    expect_close(losses::sparse_categorical_crossentropy(truth, transpose(guess), logits, 0), expected(logits, guess),
                 {4}, 1e-9);
  }
}

TEST(LossFunctions, SparseCategoricalCrossentropyOfSoftmaxHasTheGradientOfLogits) {
  // p - one_hot(label): clipping does not matter inside (0, 1).
  const Tensor logits = random_tensor({3, 4}, DType::float32, 5);
  const Tensor labels{2, 0, 3};
  GradientTape tape;
  tape.watch(logits);
  const Tensor p = nn::softmax(logits);
  const Tensor loss = reduce_sum(losses::sparse_categorical_crossentropy(labels, p));
  std::vector<double> expected = values_of(p);
  for (size_t i = 0; i < 3; ++i) expected[i * 4 + static_cast<size_t>(labels.host<int>()[i])] -= 1;
  expect_close(tape.gradient(loss, logits).value(), expected, {3, 4}, 1e-5);
}

TEST(LossFunctions, ProbabilitiesAreClipped) {
  const Tensor certain{{1.f, 0.f}, {0.f, 1.f}};
  const double far = -std::log(1e-7);
  expect_close(losses::sparse_categorical_crossentropy(Tensor{1, 1}, certain), {far, 0}, {2}, 1e-5);
  // 1 - 1e-7 is 1 - 1.19e-7 in float32, and the logarithm is that of the clipped probability plus 1e-7.
  expect_close(losses::binary_crossentropy(Tensor{{0.f}, {1.f}}, Tensor{{1.f}, {1.f}}), {-std::log(2.19e-7), 0}, {2},
               1e-2);
}

TEST(LossFunctions, LabelsOutsideTheClassesAreNamed) {
  const Tensor p{{0.5f, 0.5f}, {0.5f, 0.5f}};
  const auto f = [](const Tensor& t, const Tensor& y) { return losses::sparse_categorical_crossentropy(t, y); };
  expect_error(
      [&] {
        f(Tensor{0, 7}, p);
      },
      Code::invalid_argument, "label 7 (number 1) is outside the valid range [0, 2)");
  expect_error([&] { f(Tensor{-1, 0}, p); }, Code::invalid_argument, "label -1");
  auto traced = function(f);
  expect_error(
      [&] {
        traced(Tensor{0, 7}, p);
      },
      Code::invalid_argument, "label 7 (number 1) is outside the valid range [0, 2)");
  expect_error(
      [&] {
        f(Tensor{{1, 0}, {0, 1}}, p);
      },
      Code::invalid_argument, "for one-hot labels use the categorical form");
  expect_error(
      [&] {
        f(Tensor{1, 0, 1}, p);
      },
      Code::invalid_argument, "y_true of shape [3] does not fit y_pred of shape [2,2]");
}

TEST(LossFunctions, Margins) {
  const Tensor signs = where(kAnyTruth > 0, ones_like(kAnyTruth), -ones_like(kAnyTruth));
  const RowLoss hinge = [](auto& t, auto& p) {
    return mean_of(t, p, [](double a, double b) { return std::max(1 - a * b, 0.0); });
  };
  check_function(losses::hinge, hinge, signs, kAny);
  check_function(
      losses::squared_hinge,
      [](auto& t, auto& p) {
        return mean_of(t, p, [](double a, double b) { return std::pow(std::max(1 - a * b, 0.0), 2); });
      },
      signs, kAny);
  // Labels 0 and 1 mean -1 and 1.
  expect_close(losses::hinge((signs + 1) / 2, kAny), by_rows(signs, kAny, hinge), {4}, 1e-12);
  check_function(
      losses::categorical_hinge,
      [](auto& t, auto& p) {
        double right = 0, wrong = -1e9;
        for (size_t i = 0; i < p.size(); ++i) {
          right += t[i] * p[i];
          wrong = std::max(wrong, (1 - t[i]) * p[i]);
        }
        return std::max(wrong - right + 1, 0.0);
      },
      cast(one_hot(Tensor{1, 3, 0, 2}, 5), DType::float64), kAny);
}

TEST(LossFunctions, CosineSimilarity) {
  check_function([](const Tensor& t, const Tensor& p) { return losses::cosine_similarity(t, p); },
                 [](auto& t, auto& p) {
                   double tp = 0, tt = 0, pp = 0;
                   for (size_t i = 0; i < p.size(); ++i) tp += t[i] * p[i], tt += t[i] * t[i], pp += p[i] * p[i];
                   return -tp / std::sqrt(tt * pp);
                 },
                 kAnyTruth, kAny);
  expect_close(losses::cosine_similarity(transpose(kAnyTruth), transpose(kAny), 0),
               values_of(losses::cosine_similarity(kAnyTruth, kAny)), {4}, 1e-12);
}

TEST(LossFunctions, ShapesThatDoNotFitAreNamed) {
  expect_error(
      [] {
        losses::mean_squared_error(Tensor{{1.f, 2.f, 3.f}}, Tensor{{1.f, 2.f}});
      },
      Code::invalid_argument, "[mean_squared_error] y_true of shape [1,3] does not fit y_pred of shape [1,2]");
}

}  // namespace
}  // namespace runnel::keras
