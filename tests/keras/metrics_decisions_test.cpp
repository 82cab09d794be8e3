#include <gtest/gtest.h>

#include <cmath>

#include "runnel/function/function.h"
#include "runnel/keras/metrics.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using test::expect_close;
using test::expect_error;
using test::random_tensor;
using test::values_of;

float value_of(const Metric& metric) { return metric.result().item<float>(); }

struct NaiveCounts {
  double tp = 0, fp = 0, tn = 0, fn = 0;
};
NaiveCounts naive_counts(const Tensor& truth, const Tensor& guess, const Tensor& weight, double threshold) {
  const auto t = values_of(truth), p = values_of(guess), w = values_of(weight);
  NaiveCounts c;
  for (size_t i = 0; i < p.size(); ++i) {
    double& cell = t[i] != 0 ? (p[i] > threshold ? c.tp : c.fn) : (p[i] > threshold ? c.fp : c.tn);
    cell += w[i];
  }
  return c;
}

const Tensor kScores = random_tensor({60}, DType::float32, 6, 0, 1);
const Tensor kLabels = cast(random_tensor({60}, DType::float32, 7, 0, 1) + 0.4 * kScores > 0.7, DType::int32);
const Tensor kWeights = random_tensor({60}, DType::float32, 8, 0.1, 2);

TEST(MetricDecisions, TheFourCounts) {
  const NaiveCounts half = naive_counts(kLabels, kScores, ones_like(kScores), 0.5);
  EXPECT_FLOAT_EQ(metrics::TruePositives()(kLabels, kScores).item<float>(), half.tp);
  EXPECT_FLOAT_EQ(metrics::FalsePositives()(kLabels, kScores).item<float>(), half.fp);
  EXPECT_FLOAT_EQ(metrics::TrueNegatives()(kLabels, kScores).item<float>(), half.tn);
  EXPECT_FLOAT_EQ(metrics::FalseNegatives()(kLabels, kScores).item<float>(), half.fn);
  metrics::FalseNegatives several({.thresholds = {0.2, 0.9}});
  several.update_state(kLabels, kScores, kWeights);
  several.update_state(kLabels, kScores, kWeights);
  expect_close(
      several.result(),
      {2 * naive_counts(kLabels, kScores, kWeights, 0.2).fn, 2 * naive_counts(kLabels, kScores, kWeights, 0.9).fn}, {2},
      1e-5);
  expect_error([] { metrics::TruePositives bad({.thresholds = {1.5}}); }, Code::invalid_argument,
               "thresholds must lie in [0, 1]");
}

TEST(MetricDecisions, PrecisionAndRecall) {
  metrics::Precision precision;
  metrics::Recall recall;
  EXPECT_EQ(value_of(precision), 0);
  precision.update_state(kLabels, kScores, kWeights);
  recall.update_state(kLabels, kScores, kWeights);
  const NaiveCounts c = naive_counts(kLabels, kScores, kWeights, 0.5);
  EXPECT_NEAR(value_of(precision), c.tp / (c.tp + c.fp), 1e-6);
  EXPECT_NEAR(value_of(recall), c.tp / (c.tp + c.fn), 1e-6);
  metrics::Recall two({.thresholds = {0.3, 0.8}});
  two.update_state(kLabels, kScores);
  const NaiveCounts low = naive_counts(kLabels, kScores, ones_like(kScores), 0.3);
  const NaiveCounts high = naive_counts(kLabels, kScores, ones_like(kScores), 0.8);
  expect_close(two.result(), {low.tp / (low.tp + low.fn), high.tp / (high.tp + high.fn)}, {2}, 1e-6);
  auto step = function([&](const Tensor& t, const Tensor& p) { return precision(t, p); });
  precision.reset_state();
  const NaiveCounts one = naive_counts(kLabels, kScores, ones_like(kScores), 0.5);
  EXPECT_NEAR(step(kLabels, kScores).item<float>(), one.tp / (one.tp + one.fp), 1e-6);
  expect_error([&] { precision.update_state(Tensor{1}, Tensor{1.5f}); }, Code::invalid_argument,
               "predictions must lie in [0, 1], got 1.5 to 1.5");
  expect_error([&] { step(Tensor{1}, Tensor{1.5f}); }, Code::invalid_argument, "predictions must lie in [0, 1]");
}

TEST(MetricDecisions, TopKAndClass) {
  const Tensor truth{{0, 1, 1, 0}, {1, 0, 0, 0}};
  const Tensor guess{{0.1f, 0.4f, 0.3f, 0.2f}, {0.1f, 0.6f, 0.2f, 0.f}};
  metrics::Precision two({.top_k = 2});  // classes 1, 2 of the first row and 1, 2 of the second
  EXPECT_FLOAT_EQ(two(truth, guess).item<float>(), 0.5f);
  metrics::Recall best({.top_k = 1});
  EXPECT_FLOAT_EQ(best(truth, guess).item<float>(), 1.f / 3);
  metrics::Precision second({.thresholds = {0.35}, .class_id = 1});
  EXPECT_FLOAT_EQ(second(truth, guess).item<float>(), 0.5f);
  metrics::Precision weighted({.thresholds = {0.35}, .class_id = 1});
  EXPECT_FLOAT_EQ(weighted(truth, guess, Tensor{3.f, 1.f}).item<float>(), 0.75f);
}

// The curve by its definition: the counts at every threshold, then a sum of trapezoids.
double naive_roc_area(const Tensor& truth, const Tensor& guess, const Tensor& weight,
                      const std::vector<double>& thresholds) {
  double area = 0, last_x = 0, last_y = 0;
  for (size_t i = 0; i < thresholds.size(); ++i) {
    const NaiveCounts c = naive_counts(truth, guess, weight, thresholds[i]);
    const double x = c.fp / (c.fp + c.tn), y = c.tp / (c.tp + c.fn);
    if (i > 0) area += (last_x - x) * (last_y + y) / 2;
    last_x = x, last_y = y;
  }
  return area;
}

std::vector<double> even_thresholds(int n) {
  std::vector<double> out;
  for (int i = 0; i < n; ++i) out.push_back(static_cast<double>(i) / (n - 1));
  out.front() -= 1e-7;
  out.back() += 1e-7;
  return out;
}

TEST(MetricCurves, AreaUnderRoc) {
  metrics::AUC area;
  EXPECT_NEAR(area(kLabels, kScores).item<float>(),
              naive_roc_area(kLabels, kScores, ones_like(kScores), even_thresholds(200)), 1e-5);
  area.reset_state();
  area.update_state(kLabels, kScores, kWeights);
  EXPECT_NEAR(value_of(area), naive_roc_area(kLabels, kScores, kWeights, even_thresholds(200)), 1e-5);
  metrics::AUC chosen({.thresholds = {0.7, 0.25}});
  EXPECT_NEAR(chosen(kLabels, kScores).item<float>(),
              naive_roc_area(kLabels, kScores, ones_like(kScores), {-1e-7, 0.25, 0.7, 1 + 1e-7}), 1e-5);
  // Every pair in the right order; predictions of exactly 0 and 1 among them.
  metrics::AUC perfect;
  EXPECT_NEAR(perfect(Tensor{0, 0, 1, 1}, Tensor{0.f, 0.3f, 0.6f, 1.f}).item<float>(), 1, 1e-6);
  metrics::AUC worked({.num_thresholds = 3});
  EXPECT_NEAR(worked(Tensor{0, 0, 1, 1}, Tensor{0.f, 0.5f, 0.3f, 0.9f}).item<float>(), 0.75, 1e-6);
  metrics::AUC logits({.from_logits = true});
  EXPECT_NEAR(logits(kLabels, log(kScores / (1 - kScores))).item<float>(),
              naive_roc_area(kLabels, kScores, ones_like(kScores), even_thresholds(200)), 1e-2);
}

TEST(MetricCurves, ConfigurationsHaveTheThresholdsThatWereGiven) {
  const Config plain = metrics::AUC({.num_thresholds = 10, .name = "area"}).get_config();
  EXPECT_EQ(plain.to_json(),
            R"({"name":"area","dtype":"float32","num_thresholds":10,"curve":"ROC","summation_method":"interpolation",)"
            R"("multi_label":false,"num_labels":null,"label_weights":null,"from_logits":false})");
  metrics::AUC chosen({.num_thresholds = 10, .name = "area", .thresholds = {0.75, 0.25}});
  const Config config = chosen.get_config();
  EXPECT_EQ(config["num_thresholds"].as_int(), 4) << "with both ends";
  EXPECT_EQ(config["thresholds"].as_doubles(), (std::vector<double>{0.25, 0.75}));
  const MetricPtr copy = metrics::deserialize(metrics::serialize(chosen));
  EXPECT_EQ(copy->get_config(), config);
  EXPECT_EQ(copy->variables()[0].shape(), (Shape{4}));
  EXPECT_EQ((*copy)(kLabels, kScores).item<float>(), chosen(kLabels, kScores).item<float>());
}

TEST(MetricCurves, LabelsApart) {
  const Tensor labels = stack({kLabels, 1 - kLabels}, 1), scores = stack({kScores, kScores}, 1);
  const double first = naive_roc_area(kLabels, kScores, ones_like(kScores), even_thresholds(200));
  const double second = naive_roc_area(1 - kLabels, kScores, ones_like(kScores), even_thresholds(200));
  metrics::AUC each({.multi_label = true, .num_labels = 2});
  EXPECT_NEAR(each(labels, scores).item<float>(), (first + second) / 2, 1e-5);
  EXPECT_EQ(each.variables()[0].shape(), (Shape{200, 2}));
  metrics::AUC weighted({.multi_label = true, .num_labels = 2, .label_weights = {3, 1}});
  weighted.update_state(labels, scores);
  EXPECT_NEAR(value_of(weighted), (3 * first + second) / 4, 1e-5);
  EXPECT_EQ(metrics::deserialize(metrics::serialize(weighted))->get_config(), weighted.get_config());
  // All together, a column counting as much as its weight says.
  metrics::AUC together({.label_weights = {1, 0}});
  EXPECT_NEAR(together(labels, scores).item<float>(), first, 1e-5);
  expect_error([] { metrics::AUC bad({.multi_label = true}); }, Code::invalid_argument, "num_labels");
  expect_error([&] { each.update_state(kLabels, kScores); }, Code::invalid_argument, "[batch, 2]");
}

TEST(MetricCurves, SummationMethods) {
  const Tensor truth{0, 0, 1, 1};
  const Tensor guess{0.f, 0.5f, 0.3f, 0.9f};
  // At -eps, 0.5, 1 + eps: tp 2, 1, 0; fp 2, 0, 0; so x 1, 0, 0 and y 1, 0.5, 0.
  EXPECT_NEAR(metrics::AUC({.num_thresholds = 3, .summation_method = "minoring"})(truth, guess).item<float>(), 0.5,
              1e-6);
  EXPECT_NEAR(metrics::AUC({.num_thresholds = 3, .summation_method = "majoring"})(truth, guess).item<float>(), 1, 1e-6);
  // Precision by recall: precision 0.5, 1, 0 at recall 1, 0.5, 0.
  EXPECT_NEAR(
      metrics::AUC({.num_thresholds = 3, .curve = "PR", .summation_method = "minoring"})(truth, guess).item<float>(),
      0.25, 1e-6);
  EXPECT_NEAR(
      metrics::AUC({.num_thresholds = 3, .curve = "PR", .summation_method = "majoring"})(truth, guess).item<float>(), 1,
      1e-6);
  // Interpolated: from 1 true of 1 found to 2 of 4, slope 1/3 and intercept 2/3: (1/3)(1 + (2/3) ln 4) / 2 over
  // the positives; then from 0 of 0 to 1 of 1, slope 1: 1/2.
  EXPECT_NEAR(metrics::AUC({.num_thresholds = 3, .curve = "PR"})(truth, guess).item<float>(),
              (1.0 / 3) * (1 + (2.0 / 3) * std::log(4.0)) / 2 + 0.5, 1e-5);
  expect_error([] { metrics::AUC bad({.curve = "XY"}); }, Code::invalid_argument, "curve must be ROC or PR");
  expect_error([] { metrics::AUC bad({.num_thresholds = 1}); }, Code::invalid_argument, "num_thresholds");
}

TEST(MetricCurves, OneQuantityAtAnother) {
  struct Point {
    double sensitivity, specificity, precision;
  };
  std::vector<Point> points;
  for (int i = 0; i < 200; ++i) {
    const NaiveCounts c = naive_counts(kLabels, kScores, kWeights, i / 199.0);
    points.push_back({c.tp / (c.tp + c.fn), c.tn / (c.tn + c.fp), c.tp + c.fp > 0 ? c.tp / (c.tp + c.fp) : 0});
  }
  const auto best = [&](double Point::*wanted, double Point::*reached, double value) {
    double out = 0;
    for (const Point& p : points) {
      if (p.*reached >= value) out = std::max(out, p.*wanted);
    }
    return out;
  };
  const auto run = [](Metric&& metric) { return metric(kLabels, kScores, kWeights).item<float>(); };
  EXPECT_NEAR(run(metrics::SensitivityAtSpecificity(0.6)), best(&Point::sensitivity, &Point::specificity, 0.6), 1e-5);
  EXPECT_NEAR(run(metrics::SpecificityAtSensitivity(0.6)), best(&Point::specificity, &Point::sensitivity, 0.6), 1e-5);
  EXPECT_NEAR(run(metrics::PrecisionAtRecall(0.6)), best(&Point::precision, &Point::sensitivity, 0.6), 1e-5);
  EXPECT_NEAR(run(metrics::RecallAtPrecision(0.6)), best(&Point::sensitivity, &Point::precision, 0.6), 1e-5);
  EXPECT_EQ(metrics::RecallAtPrecision(0.6).class_name(), "RecallAtPrecision");
  expect_error([] { metrics::PrecisionAtRecall bad(2.0); }, Code::invalid_argument, "recall must lie in [0, 1]");
}

TEST(MetricDecisions, FScores) {
  const Tensor truth{{1, 1, 1}, {1, 0, 0}, {1, 1, 0}};
  const Tensor guess{{0.2f, 0.6f, 0.7f}, {0.2f, 0.6f, 0.6f}, {0.6f, 0.8f, 0.f}};
  // Above 0.5: class 0: tp 1 fn 2; class 1: tp 2 fp 1; class 2: tp 1 fp 1.
  const auto score = [](double tp, double fp, double fn, double beta) {
    return (1 + beta * beta) * tp / ((1 + beta * beta) * tp + beta * beta * fn + fp);
  };
  const std::vector<double> ones = {score(1, 0, 2, 1), score(2, 1, 0, 1), score(1, 1, 0, 1)};
  metrics::F1Score each({.threshold = 0.5});
  expect_close(each(truth, guess), ones, {3}, 1e-6);
  expect_close(each(truth, guess), ones, {3}, 1e-6);  // the same batch twice changes nothing
  expect_close(metrics::F1Score({.average = "macro", .threshold = 0.5})(truth, guess),
               {(ones[0] + ones[1] + ones[2]) / 3}, {}, 1e-6);
  expect_close(metrics::F1Score({.average = "micro", .threshold = 0.5})(truth, guess), {score(4, 2, 2, 1)}, {}, 1e-6);
  expect_close(metrics::F1Score({.average = "weighted", .threshold = 0.5})(truth, guess),
               {(3 * ones[0] + 2 * ones[1] + ones[2]) / 6}, {}, 1e-6);
  metrics::FBetaScore twice({.beta = 2, .threshold = 0.5});
  expect_close(twice(truth, guess), {score(1, 0, 2, 2), score(2, 1, 0, 2), score(1, 1, 0, 2)}, {3}, 1e-6);
  // Without a threshold the largest of a row: classes 2, 1 and 2 (both of equal size), 1; none of a row of zeros.
  metrics::F1Score largest;
  expect_close(largest(concat({truth, Tensor{{0, 0, 1}}}, 0), concat({guess, Tensor{{0.f, 0.f, 0.f}}}, 0)),
               {0, score(1, 1, 1, 1), score(1, 1, 1, 1)}, {3}, 1e-6);
  metrics::F1Score weighted({.threshold = 0.5});
  expect_close(weighted(truth, guess, Tensor{1.f, 0.f, 2.f}), {score(2, 0, 1, 1), 1, 1}, {3}, 1e-6);
  expect_error(
      [] {
        metrics::F1Score f;
        f.update_state(Tensor{1, 0}, Tensor{0.5f, 0.5f});
      },
      Code::invalid_argument, "must both be [batch, classes], got [2] and [2]");
  expect_error(
      [] {
        metrics::F1Score f;
        f.result();
      },
      Code::failed_precondition, "before the first update_state");
}

TEST(MetricIoU, Classes) {
  const Tensor truth{0, 0, 1, 1, 2};
  const Tensor guess{0, 1, 0, 1, 2};
  metrics::IoU first({.num_classes = 4, .target_class_ids = {0}});
  EXPECT_FLOAT_EQ(first(truth, guess).item<float>(), 1.f / 3);
  metrics::MeanIoU mean(4);  // class 3 never appears and does not count
  EXPECT_FLOAT_EQ(mean(truth, guess).item<float>(), (1.f / 3 + 1.f / 3 + 1) / 3);
  metrics::MeanIoU weighted(3);
  EXPECT_FLOAT_EQ(weighted(truth, guess, Tensor{0.3f, 0.3f, 0.3f, 0.1f, 1.f}).item<float>(),
                  (0.3f / 0.9f + 0.1f / 0.7f + 1) / 3);
  metrics::OneHotIoU one_hot_labels({.num_classes = 3, .target_class_ids = {0, 2}});
  EXPECT_FLOAT_EQ(one_hot_labels(one_hot(truth, 3), one_hot(guess, 3) * 0.4).item<float>(), (1.f / 3 + 1) / 2);
  metrics::OneHotMeanIoU one_hot_mean(3);
  EXPECT_FLOAT_EQ(one_hot_mean(one_hot(truth, 3), one_hot(guess, 3)).item<float>(), (1.f / 3 + 1.f / 3 + 1) / 3);
  metrics::BinaryIoU binary({.threshold = 0.3});
  EXPECT_FLOAT_EQ(binary(Tensor{0, 1, 0, 1}, Tensor{0.1f, 0.2f, 0.4f, 0.7f}).item<float>(), 1.f / 3);
  auto step = function([&](const Tensor& t, const Tensor& p) { return mean(t, p); });
  EXPECT_FLOAT_EQ(step(truth, guess).item<float>(), (1.f / 3 + 1.f / 3 + 1) / 3);
  expect_error([&] { mean.update_state(Tensor{9}, Tensor{0}); }, Code::invalid_argument,
               "class 9 is not below num_classes 4");
  expect_error([&] { step(zeros_like(truth), guess + 5); }, Code::invalid_argument, "a class is not below num_classes");
  expect_error([] { metrics::IoU none(metrics::IoUOptions{}); }, Code::invalid_argument,
               "num_classes must be positive");
}

}  // namespace
}  // namespace runnel::keras
