// Classes and functions of one's own by name, in configurations and out of them.
#include "runnel/keras/serialization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using runnel::test::expect_close;
using runnel::test::expect_error;
using runnel::test::values_of;
using utils::get_registered_name;
using utils::register_keras_serializable;

// A plain layer: what it inherits is enough to come back.
struct Twice : Layer {
  using Layer::Layer;
  Variable w;
  void build(const PartialShape& input) override {
    w = add_weight({.name = "w", .shape = {known_dim(input, -1)}, .initializer = "ones"});
  }
  Tensor call(const Tensor& x, const CallArgs&) override { return x * w * 2; }
};

// A layer with a setting, written out by hand.
struct Power : Layer {
  explicit Power(double exponent, LayerOptions options = {}) : Layer(std::move(options)), exponent(exponent) {}
  double exponent;
  Tensor call(const Tensor& x, const CallArgs&) override { return pow(x, exponent); }
  Config get_config() const override {
    Config config = Layer::get_config();
    config.set("exponent", exponent);
    return config;
  }
  static std::shared_ptr<Power> from_config(const Config& config) {
    return std::make_shared<Power>(config["exponent"].as_double(), layer_options_from_config(config));
  }
};

struct Halving : Optimizer {
  Halving() : Optimizer(0.5, {.name = "halving"}) {}
  void update_step(const Gradient&, const Variable& variable) override {
    variable.assign(variable.value() * learning_rate().value());
  }
};
struct Against : Optimizer {
  using Optimizer::Optimizer;
  void update_step(const Gradient& gradient, const Variable& variable) override {
    variable.assign_sub(gradient * learning_rate());
  }
};

struct Quartic : Loss {
  using Loss::Loss;
  Tensor call(const Tensor& y_true, const Tensor& y_pred) override { return reduce_mean(pow(y_pred - y_true, 4), -1); }
};

struct LargestError : Metric {
  using Metric::Metric;
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor&) override {
    largest.assign(maximum(largest, reduce_max(abs(y_pred - y_true))));
  }
  Tensor result() const override { return largest; }
  Variable largest = add_weight("largest");
};

// Callables: an initializer with a setting, one without.
struct Ramp {
  double step = 1;
  static constexpr auto fields() { return field_list(field("step", &Ramp::step)); }
  Tensor operator()(const Shape& shape, DType dtype) const {
    return reshape(cast(range(shape.num_elements()), dtype) * step, shape);
  }
};
struct SumIsOne {
  Tensor operator()(const Tensor& w) const { return w / reduce_sum(w); }
};

struct Flat : optimizers::schedules::LearningRateSchedule {
  Tensor operator()(const Operand&) const override { return Tensor(0.25f); }
  Config get_config() const override { return Config::Map{}; }
};

// Registering again changes nothing, so every test may do it.
void register_all() {
  register_keras_serializable<Twice>();
  register_keras_serializable<Power>("Tests");
  register_keras_serializable<Halving>();
  register_keras_serializable<Against>("Tests", "Opposite");
  register_keras_serializable<Quartic>();
  register_keras_serializable<LargestError>();
  register_keras_serializable<Ramp>();
  register_keras_serializable<SumIsOne>();
  register_keras_serializable<Flat>();
  static const auto squash = [](const Tensor& x) { return x / (abs(x) + 1); };
  register_keras_serializable("squash", squash);
  static const auto largest_weight = [](const Tensor& w) { return reduce_max(abs(w)) * 0.5; };
  register_keras_serializable("largest_weight", largest_weight, "Tests");
  static const auto cubic = [](const Tensor& t, const Tensor& p) { return reduce_mean(pow(abs(p - t), 3), -1); };
  register_keras_serializable("cubic", cubic);
}

TEST(Serialization, NamesOfClasses) {
  register_all();
  EXPECT_EQ(get_registered_name<Twice>(), "Custom>Twice");
  EXPECT_EQ(get_registered_name<Power>(), "Tests>Power");
  EXPECT_EQ(get_registered_name<Against>(), "Tests>Opposite");
  struct Stranger : Layer {};
  EXPECT_EQ(get_registered_name<Stranger>(), "Stranger");
  EXPECT_EQ(get_registered_name<Dense>(), "Dense");
  EXPECT_EQ(class_name_of(typeid(std::vector<std::pair<int, std::string>>)), "vector");
}

TEST(Serialization, AModelOfOnesOwnParts) {
  register_all();
  const Tensor in = Input({3}, {.name = "in"});
  Tensor x = make<Dense>({.units = 2,
                          .activation = "squash",
                          .kernel_initializer = Ramp{0.5},
                          .kernel_regularizer = "Tests>largest_weight",
                          .kernel_constraint = SumIsOne(),
                          .name = "dense"})(in);
  const auto twice = std::make_shared<Twice>(LayerOptions{.name = "twice"});
  const auto power = std::make_shared<Power>(3, LayerOptions{.name = "power"});
  x = (*power)((*twice)(x));
  const Model model(in, x, {.name = "own"});

  const std::string json = model.to_json();
  EXPECT_THAT(json, testing::HasSubstr(R"("class_name":"Custom>Twice")"));
  EXPECT_THAT(json, testing::HasSubstr(R"("class_name":"Tests>Power")"));
  EXPECT_THAT(json, testing::HasSubstr(R"("activation":"Custom>squash")"));
  EXPECT_THAT(json, testing::HasSubstr(R"("kernel_initializer":{"class_name":"Custom>Ramp","config":{"step":0.5}})"));
  EXPECT_THAT(json, testing::HasSubstr(R"("kernel_regularizer":"Tests>largest_weight")"));
  EXPECT_THAT(json, testing::HasSubstr(R"("kernel_constraint":{"class_name":"Custom>SumIsOne","config":{}})"));

  const ModelPtr copy = model_from_json(json);
  EXPECT_EQ(copy->to_json(), json);
  const Tensor input{{1.f, -2.f, 3.f}};
  // 0.5 * (0 1; 2 3; 4 5): x . w = (4, 5) -> (4/5, 5/6), doubled, to the third power.
  const std::vector<double> expected{1.6 * 1.6 * 1.6, std::pow(10.0 / 6, 3)};
  expect_close((*copy)(input), expected, {1, 2}, 1e-5);
  ASSERT_EQ(copy->losses().size(), 1u);
  EXPECT_NEAR(copy->losses()[0].item<float>(), 0.5 * 2.5, 1e-6);
  Layer& dense = copy->get_layer("dense");
  const Constraint* constraint = dense.constraint_of(dense.weights()[0]);
  ASSERT_NE(constraint, nullptr);
  EXPECT_NEAR(reduce_sum((*constraint)(dense.weights()[0].value())).item<float>(), 1, 1e-6);
}

TEST(Serialization, OptimizersLossesMetricsAndSchedules) {
  register_all();
  for (const OptimizerPtr& optimizer :
       {OptimizerPtr(std::make_shared<Halving>()),
        OptimizerPtr(std::make_shared<Against>(0.125, OptimizerOptions{.name = "against", .clipnorm = 2}))}) {
    if (optimizer->name() == "halving") optimizer->set_learning_rate(0.25);
    const Config config = optimizers::serialize(*optimizer);
    const OptimizerPtr copy = optimizers::deserialize(Config::from_json(config.to_json()));
    const Optimizer &made = *copy, &given = *optimizer;
    EXPECT_EQ(typeid(made), typeid(given));
    EXPECT_EQ(optimizers::serialize(*copy), config);
  }
  EXPECT_EQ(optimizers::serialize(Halving())["class_name"].as_text(), "Custom>Halving");
  const optimizers::SGD scheduled{Flat()};
  const OptimizerPtr again = optimizers::deserialize(optimizers::serialize(scheduled));
  EXPECT_EQ(again->learning_rate().value().item<float>(), 0.25f);

  const LossPtr loss = losses::deserialize(losses::serialize(Quartic("sum", "q")));
  EXPECT_EQ(loss->name(), "q");
  EXPECT_EQ((*loss)(Tensor{{0.f}, {1.f}}, Tensor{{2.f}, {1.f}}).item<float>(), 16.f);
  const LossPtr function = losses::get("cubic");
  EXPECT_EQ((*function)(Tensor{{0.f}}, Tensor{{2.f}}).item<float>(), 8.f);
  EXPECT_EQ(losses::serialize(*function), Config("Custom>cubic"));
  EXPECT_EQ((*losses::deserialize(Config("Custom>cubic")))(Tensor{{0.f}}, Tensor{{3.f}}).item<float>(), 27.f);

  const Config of_metric = metrics::serialize(LargestError("worst"));
  EXPECT_EQ(of_metric["class_name"].as_text(), "Custom>LargestError");
  const MetricPtr metric = metrics::deserialize(of_metric);
  EXPECT_EQ(metric->name(), "worst");
  EXPECT_EQ((*metric)(Tensor{1.f, 2.f}, Tensor{1.5f, 0.f}).item<float>(), 2.f);
  EXPECT_EQ(metrics::serialize(*metrics::get("cubic")), Config("Custom>cubic"));
}

TEST(Serialization, CompileTakesNames) {
  register_all();
  utils::set_random_seed(1);
  Sequential model({Dense({.units = 1, .kernel_initializer = "ones"})});
  model.compile({.optimizer = "Halving", .loss = "cubic", .metrics = {"LargestError", "cubic"}});
  const Logs logs = model.train_on_batch(Tensor{{2.f}, {4.f}}, Tensor{{1.f}, {1.f}});
  EXPECT_NEAR(logs["loss"], (1 + 27) / 2.0, 1e-5);
  EXPECT_NEAR(logs["largest_error"], 3, 1e-6);
  EXPECT_NEAR(logs["cubic"], 14, 1e-5);
  EXPECT_EQ(model.get_weights()[0].item<float>(), 0.5f);
}

TEST(Serialization, Errors) {
  register_all();
  struct Other : Layer {};
  expect_error([] { register_keras_serializable<Other>("Custom", "Twice"); }, Code::already_exists, "'Custom>Twice'");
  expect_error([] { register_keras_serializable<Other>("Custom", "a>b"); }, Code::invalid_argument, "'>'");
  // The same name in two packages: each by its full name.
  struct First : Layer {};
  struct Second : Layer {};
  register_keras_serializable<First>("one", "Same");
  register_keras_serializable<Second>("two", "Same");
  EXPECT_NE(dynamic_cast<First*>(layer_from_config(object_config("one>Same", {})).get()), nullptr);
  EXPECT_NE(dynamic_cast<Second*>(layer_from_config(object_config("two>Same", {})).get()), nullptr);
  expect_error([] { layer_from_config(object_config("Same", {})); }, Code::invalid_argument, "several packages");
  expect_error([] { layer_from_config(object_config("Nobody", {})); }, Code::not_found, "Nobody");
  expect_error([] { losses::get("nobody"); }, Code::invalid_argument, "nobody");
  expect_error([] { Activation("nobody"); }, Code::not_found, "nobody");
  const Activation bare = [](const Tensor& x) { return x; };
  expect_error([&] { bare.config(); }, Code::failed_precondition, "register_keras_serializable");
}

}  // namespace
}  // namespace runnel::keras
