#include "runnel/keras/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runnel/function/function.h"
#include "runnel/keras/layer.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using metrics::MetricOptions;
using test::expect_close;
using test::expect_error;
using test::random_tensor;
using test::values_of;

double result_of(Metric& metric) { return metric.result().item<float>(); }

TEST(MetricState, MeanIsWeightedAndResettable) {
  metrics::Mean mean;
  EXPECT_EQ(mean.name(), "mean");
  EXPECT_EQ(result_of(mean), 0);  // nothing yet
  mean.update_state(Tensor{1.f, 3.f, 5.f, 7.f});
  EXPECT_FLOAT_EQ(result_of(mean), 4);
  mean.update_state(Tensor(10.f), Tensor(4.f));  // counts four times
  EXPECT_FLOAT_EQ(result_of(mean), 56.f / 8);
  mean.reset_state();
  EXPECT_EQ(result_of(mean), 0);
  EXPECT_FLOAT_EQ(mean(Tensor{1.f, 3.f}, Tensor{3.f, 1.f}).item<float>(), 1.5f);
  EXPECT_FLOAT_EQ(mean(Tensor{{1, 2}, {3, 4}}, Tensor{0, 2}).item<float>(), (6.f + 14) / (4 + 4));  // of integers
  expect_error(
      [&] {
        mean.update_state(Tensor{1.f, 2.f, 3.f}, Tensor{1.f, 2.f});
      },
      Code::invalid_argument, "[mean] sample_weight of shape [2] does not fit values of shape [3]");
}

TEST(MetricState, WeightsOfFewerDimensions) {
  metrics::Mean mean;
  const Tensor values{{{1.f, 3.f}, {5.f, 7.f}}, {{2.f, 2.f}, {2.f, 2.f}}};
  mean.update_state(values, Tensor{1.f, 3.f});  // the rest is averaged first: 4 and 2
  EXPECT_FLOAT_EQ(result_of(mean), (4 + 3 * 2) / 4.f);
  metrics::Sum sum;
  sum.update_state(values, Tensor{1.f, 3.f});  // summed first: 16 and 8
  EXPECT_FLOAT_EQ(result_of(sum), 16 + 3 * 8);
  sum.update_state(Tensor(1.f));
  EXPECT_FLOAT_EQ(result_of(sum), 41);
}

TEST(MetricState, VariablesAreTrackedUnderKerasNames) {
  const auto names = [](const Metric& metric) {
    std::vector<std::string> out;
    for (const Trackable::Edge& edge : metric.edges()) out.push_back(edge.name);
    return out;
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(names(metrics::Mean()), List({"total", "count"}));
  EXPECT_EQ(names(metrics::Sum()), List({"total"}));
  EXPECT_EQ(names(metrics::SparseCategoricalAccuracy()), List({"total", "count", "_fn_kwargs"}));
  EXPECT_EQ(names(metrics::Precision()), List({"thresholds", "true_positives", "false_positives"}));
  EXPECT_EQ(names(metrics::AUC()), List({"true_positives", "true_negatives", "false_positives", "false_negatives"}));
  EXPECT_EQ(names(metrics::TruePositives()), List({"thresholds", "accumulator"}));
  EXPECT_FALSE(metrics::Mean().variables()[0].trainable());
}

TEST(MetricState, NamesCountUp) {
  clear_session();
  metrics::Precision a, b;
  metrics::AUC area;
  EXPECT_EQ(a.name(), "precision");
  EXPECT_EQ(b.name(), "precision_1");
  EXPECT_EQ(area.name(), "auc");
  EXPECT_EQ(metrics::MeanIoU(3).name(), "mean_io_u");
  EXPECT_EQ(metrics::Recall({.name = "r"}).name(), "r");
  EXPECT_EQ(metrics::F1Score().name(), "f1_score");
  EXPECT_EQ(metrics::LogCoshError().name(), "logcosh");
}

TEST(MetricState, InAFunctionWithAnUnknownBatch) {
  metrics::SparseCategoricalAccuracy accuracy;
  metrics::Mean mean;
  auto step = function(
      [&](const Tensor& labels, const Tensor& scores) {
        accuracy.update_state(labels, scores);
        mean.update_state(reduce_sum(scores, -1));
        return std::pair(accuracy.result(), mean.result());
      },
      {.input_signature = {{{-1}, DType::int32}, {{-1, 3}, DType::float32}}});
  const Tensor scores{{0.1f, 0.7f, 0.2f}, {0.5f, 0.2f, 0.3f}, {0.f, 0.f, 1.f}};
  auto [first, first_mean] = step(Tensor{1, 0, 0}, scores);
  EXPECT_FLOAT_EQ(first.item<float>(), 2.f / 3);
  EXPECT_FLOAT_EQ(first_mean.item<float>(), 1);
  auto [second, second_mean] = step(Tensor{2}, Tensor{{0.f, 1.f, 5.f}});
  EXPECT_FLOAT_EQ(second.item<float>(), 3.f / 4);
  EXPECT_FLOAT_EQ(second_mean.item<float>(), 9.f / 4);
  EXPECT_EQ(step.num_traces(), 1);
  accuracy.reset_state();
  EXPECT_FLOAT_EQ(step(Tensor{1}, Tensor{{1.f, 0.f, 0.f}}).first.item<float>(), 0);
}

TEST(MetricAccuracy, EqualValues) {
  metrics::Accuracy accuracy;
  accuracy.update_state(Tensor{1, 2, 3, 4}, Tensor{0.f, 2.f, 3.f, 4.f});
  EXPECT_FLOAT_EQ(result_of(accuracy), 0.75f);
  accuracy.reset_state();
  accuracy.update_state(Tensor{1, 2, 3, 4}, Tensor{0.f, 2.f, 3.f, 4.f}, Tensor{1.f, 1.f, 0.f, 0.f});
  EXPECT_FLOAT_EQ(result_of(accuracy), 0.5f);
  expect_error([&] { accuracy(Tensor{1}); }, Code::invalid_argument, "[accuracy] update_state needs");
}

TEST(MetricAccuracy, Binary) {
  const Tensor truth{{1.f, 0.f}, {1.f, 1.f}};
  const Tensor guess{{0.6f, 0.5f}, {0.2f, 0.7f}};
  expect_close(metrics::binary_accuracy(truth, guess), {1, 0.5}, {2}, 1e-6);
  expect_close(metrics::binary_accuracy(truth, guess, 0.65), {0.5, 0.5}, {2}, 1e-6);
  metrics::BinaryAccuracy metric({.threshold = 0.1});
  EXPECT_FLOAT_EQ(metric(truth, guess).item<float>(), 0.75f);
  metrics::BinaryAccuracy columns;
  columns.update_state(Tensor{1, 0, 1}, Tensor{{0.9f}, {0.8f}, {0.7f}});
  EXPECT_FLOAT_EQ(result_of(columns), 2.f / 3);
}

TEST(MetricAccuracy, Categorical) {
  const Tensor scores{{0.1f, 0.9f, 0.8f}, {0.05f, 0.95f, 0.f}};
  metrics::CategoricalAccuracy accuracy;
  EXPECT_FLOAT_EQ(accuracy(Tensor{{0, 0, 1}, {0, 1, 0}}, scores).item<float>(), 0.5f);
  EXPECT_FLOAT_EQ(accuracy(Tensor{{0, 1, 0}, {0, 0, 1}}, scores, Tensor{0.7f, 0.3f}).item<float>(), 1.7f / 3);
  expect_error([&] { accuracy.update_state(Tensor{2, 1}, scores); }, Code::invalid_argument, "use the sparse form");
}

TEST(MetricAccuracy, SparseCategorical) {
  const Tensor scores = random_tensor({40, 7}, DType::float32, 3);
  std::vector<int> labels;
  double right = 0;
  for (int i = 0; i < 40; ++i) {
    labels.push_back(i % 7);
    const auto row = values_of(scores[i]);
    right += std::max_element(row.begin(), row.end()) - row.begin() == i % 7;
  }
  for (const DType dtype : {DType::uint8, DType::int32, DType::int64, DType::float32}) {
    const Tensor truth = cast(Tensor::of<int>(labels), dtype);
    metrics::SparseCategoricalAccuracy metric;
    EXPECT_FLOAT_EQ(metric(truth, scores).item<float>(), static_cast<float>(right / 40));
    EXPECT_FLOAT_EQ(metric(expand_dims(truth, 1), scores).item<float>(), static_cast<float>(right / 40));
    EXPECT_FLOAT_EQ(metric(reshape(truth, {8, 5}), reshape(scores, {8, 5, 7})).item<float>(),
                    static_cast<float>(right / 40));
  }
}

TEST(MetricAccuracy, TopK) {
  const Tensor scores = random_tensor({30, 9}, DType::float32, 4);
  std::vector<int> labels;
  std::vector<double> expected;
  for (int i = 0; i < 30; ++i) {
    labels.push_back((i * 5) % 9);
    const auto row = values_of(scores[i]);
    int better = 0;
    for (const double v : row) better += v > row[static_cast<size_t>(labels.back())];
    expected.push_back(better < 3);
  }
  const Tensor truth = Tensor::of<int>(labels);
  expect_close(metrics::sparse_top_k_categorical_accuracy(truth, scores, 3), expected, {30}, 1e-6);
  expect_close(metrics::top_k_categorical_accuracy(one_hot(truth, 9), scores, 3), expected, {30}, 1e-6);
  expect_close(metrics::sparse_top_k_categorical_accuracy(reshape(truth, {5, 6}), reshape(scores, {5, 6, 9}), 3),
               expected, {5, 6}, 1e-6);
  double share = 0;
  for (const double v : expected) share += v / 30;
  metrics::SparseTopKCategoricalAccuracy sparse({.k = 3});
  metrics::TopKCategoricalAccuracy dense({.k = 3});
  EXPECT_NEAR(sparse(truth, scores).item<float>(), share, 1e-6);
  EXPECT_NEAR(dense(one_hot(truth, 9), scores).item<float>(), share, 1e-6);
}

TEST(MetricMeans, LossesAsMetrics) {
  const Tensor truth{{0.f, 1.f}, {2.f, 0.f}, {1.f, 1.f}};
  const Tensor guess{{1.f, 1.f}, {0.f, 0.f}, {1.f, 4.f}};
  metrics::MeanSquaredError squared;
  EXPECT_FLOAT_EQ(squared(truth, guess).item<float>(), 7.f / 3);
  squared.reset_state();
  EXPECT_FLOAT_EQ(squared(truth, guess, Tensor{1.f, 0.f, 3.f}).item<float>(), 14.f / 4);  // divided by the weights
  metrics::RootMeanSquaredError root;
  EXPECT_FLOAT_EQ(root(truth, guess).item<float>(), std::sqrt(7.f / 3));
  EXPECT_FLOAT_EQ(metrics::MeanAbsoluteError()(truth, guess).item<float>(), 1);
  metrics::CosineSimilarity cosine;  // the loss has the other sign
  EXPECT_NEAR(cosine(Tensor{{0.f, 1.f}, {1.f, 1.f}}, Tensor{{1.f, 0.f}, {1.f, 1.f}}).item<float>(), 0.5, 1e-6);
  const Tensor p{{0.05f, 0.95f, 0.f}, {0.1f, 0.8f, 0.1f}};
  metrics::SparseCategoricalCrossentropy sparse;
  EXPECT_NEAR(sparse(Tensor{1, 2}, p).item<float>(), -(std::log(0.95) + std::log(0.1)) / 2, 1e-5);
  metrics::CategoricalCrossentropy dense;
  EXPECT_NEAR(dense(one_hot(Tensor{1, 2}, 3), p).item<float>(), -(std::log(0.95) + std::log(0.1)) / 2, 1e-5);
  metrics::BinaryCrossentropy binary({.from_logits = true});
  EXPECT_NEAR(binary(Tensor{{1.f}}, Tensor{{2.f}}).item<float>(), std::log(1 + std::exp(-2.0)), 1e-6);
  metrics::MeanMetricWrapper wrapped([](const Tensor&, const Tensor& y) { return reduce_max(y, -1); }, "largest");
  EXPECT_FLOAT_EQ(wrapped(truth, guess).item<float>(), 5.f / 3);
  EXPECT_EQ(wrapped.name(), "largest");
}

struct LargestGuess : Metric {
  LargestGuess() : Metric("largest_guess") {}
  void update_state(const Tensor&, const Tensor& y_pred, const Tensor&) override {
    largest.assign(maximum(largest, reduce_max(y_pred)));
  }
  Tensor result() const override { return largest; }
  Variable largest = add_weight("largest");
};

TEST(MetricArguments, AccuracyFollowsTheShapes) {
  const auto value = [](const MetricArg& arg, const Tensor& truth, const Tensor& guess) {
    const MetricPtr metric = resolve_metric(arg, truth.partial_shape(), guess.partial_shape());
    return (*metric)(truth, guess).item<float>();
  };
  const Tensor scores{{0.1f, 0.9f}, {0.8f, 0.2f}, {0.3f, 0.7f}};
  EXPECT_FLOAT_EQ(value("accuracy", Tensor{1, 1, 1}, scores), 2.f / 3);
  EXPECT_FLOAT_EQ(value("acc", Tensor{{1}, {1}, {1}}, scores), 2.f / 3);
  EXPECT_FLOAT_EQ(value("accuracy", one_hot(Tensor{1, 1, 1}, 2), scores), 2.f / 3);
  EXPECT_FLOAT_EQ(value("accuracy", Tensor{{1.f}, {0.f}}, Tensor{{0.9f}, {0.8f}}), 0.5f);
  EXPECT_NEAR(value("crossentropy", Tensor{1, 1, 1}, scores), -(std::log(0.9) + std::log(0.2) + std::log(0.7)) / 3,
              1e-5);
  EXPECT_EQ(resolve_metric("acc", {-1}, {-1, 2})->name(), "acc");
  EXPECT_EQ(resolve_metric("accuracy", {-1}, {-1, 2}, "digits_")->name(), "digits_accuracy");
}

TEST(MetricArguments, NamesObjectsAndFunctions) {
  clear_session();
  const PartialShape any{-1, 3};
  EXPECT_EQ(resolve_metric("mse", any, any)->name(), "mse");
  EXPECT_EQ(resolve_metric("MeanSquaredError", any, any)->name(), "mean_squared_error");
  EXPECT_EQ(resolve_metric("AUC", any, any)->class_name(), "AUC");
  EXPECT_EQ(resolve_metric(metrics::Precision({.top_k = 2}), any, any)->name(), "precision");
  const auto custom = std::make_shared<LargestGuess>();
  EXPECT_EQ(resolve_metric(custom, any, any), custom);
  custom->update_state(Tensor{0.f}, Tensor{1.f, 5.f, 2.f}, {});
  EXPECT_EQ(result_of(*custom), 5);
  const MetricPtr own =
      resolve_metric(MetricArg([](const Tensor&, const Tensor& p) { return reduce_sum(p, -1); }, "sum_of"), any, any);
  EXPECT_FLOAT_EQ((*own)(Tensor{{0.f}}, Tensor{{1.f, 2.f}}).item<float>(), 3);
  EXPECT_EQ(own->name(), "sum_of");
  // The metric cosine_similarity is not the loss.
  EXPECT_NEAR((*metrics::get("cosine_similarity"))(Tensor{{1.f, 0.f}}, Tensor{{2.f, 0.f}}).item<float>(), 1, 1e-6);
  expect_error([&] { resolve_metric("acuracy", any, any); }, Code::invalid_argument,
               "unknown metric 'acuracy'; there are acc, crossentropy, ce, accuracy,");
}

TEST(MetricArguments, SettingsThatAreNotGivenAreNull) {
  const auto settings = [](const Metric& metric) {
    const Config config = metric.get_config();
    Config::Map own;
    for (const auto& [key, value] : config.entries()) {
      if (key != "name" && key != "dtype") own.emplace_back(key, value);
    }
    return Config(own).to_json();
  };
  EXPECT_EQ(settings(metrics::Recall()), R"({"thresholds":null,"top_k":null,"class_id":null})");
  EXPECT_EQ(settings(metrics::TruePositives()), R"({"thresholds":null})");
  EXPECT_EQ(settings(metrics::FBetaScore()), R"({"average":null,"beta":1.0,"threshold":null})");
  EXPECT_EQ(settings(metrics::PrecisionAtRecall(0.75)), R"({"num_thresholds":200,"recall":0.75,"class_id":null})");
  const MetricPtr best = metrics::deserialize(Config::from_json(
      R"({"class_name":"Precision","config":{"name":"p","thresholds":null,"top_k":1,"class_id":null}})"));
  EXPECT_FLOAT_EQ((*best)(Tensor{{0, 1}, {0, 1}}, Tensor{{0.1f, 0.3f}, {0.4f, 0.2f}}).item<float>(), 0.5f);
  expect_error([] { metrics::Precision bad({.top_k = 0}); }, Code::invalid_argument, "top_k must be positive, got 0");
  expect_error([] { metrics::F1Score bad({.threshold = -1}); }, Code::invalid_argument, "threshold must lie in (0, 1]");
  expect_error([] { metrics::F1Score bad({.average = ""}); }, Code::invalid_argument, "average must be micro");
}

TEST(MetricArguments, Configurations) {
  const metrics::Precision precision({.thresholds = {0.25}, .class_id = 3, .name = "p"});
  EXPECT_EQ(
      metrics::serialize(precision).to_json(),
      R"({"class_name":"Precision","config":{"name":"p","dtype":"float32","thresholds":[0.25],"top_k":null,"class_id":3}})");
  for (const MetricPtr& metric : std::vector<MetricPtr>{
           std::make_shared<metrics::BinaryAccuracy>(metrics::BinaryAccuracyOptions{.threshold = 0.25}),
           std::make_shared<metrics::AUC>(metrics::AUCOptions{.num_thresholds = 10, .curve = "PR"}),
           std::make_shared<metrics::PrecisionAtRecall>(0.75), std::make_shared<metrics::MeanIoU>(3),
           std::make_shared<metrics::F1Score>(metrics::F1ScoreOptions{.average = "micro"}),
           std::make_shared<metrics::Recall>(metrics::PrecisionOptions{.top_k = 2}),
           std::make_shared<metrics::RecallAtPrecision>(metrics::CurvePointOptions{.class_id = 1}),
           std::make_shared<metrics::Mean>("m")}) {
    EXPECT_EQ(metrics::deserialize(metrics::serialize(*metric))->get_config(), metric->get_config()) << metric->name();
  }
}

}  // namespace
}  // namespace runnel::keras
