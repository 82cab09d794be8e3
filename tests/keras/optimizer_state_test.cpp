// What all optimizers share: their state, its names, descriptions, gradients that are missing, averages, constraints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runnel/base/log.h"
#include "runnel/keras/loss_scale_optimizer.h"
#include "runnel/keras/optimizers.h"
#include "runnel/runnel.h"

namespace runnel::keras {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::vector<std::string> edge_names(const Trackable& object) {
  std::vector<std::string> names;
  for (const auto& edge : object.children()) names.push_back(edge.name);
  return names;
}

float scalar_of(const Variable& v) { return v.value().item<float>(); }

TEST(OptimizerState, HasKerasNamesAndOrder) {
  const Variable a(Tensor{1.f, 2.f}, {.name = "dense/kernel"}), b(Tensor(3.f), {.name = "dense/bias"});
  optimizers::Adam adam({.amsgrad = true, .use_ema = true});
  EXPECT_EQ(adam.variables().size(), 1u);
  adam.build({a, b});
  std::vector<std::string> names;
  for (const Variable& v : adam.variables()) names.push_back(v.name());
  EXPECT_THAT(names, ElementsAre("iteration", "Adam/average/dense/kernel", "Adam/average/dense/bias",
                                 "Adam/m/dense/kernel", "Adam/v/dense/kernel", "Adam/m/dense/bias", "Adam/v/dense/bias",
                                 "Adam/vhat/dense/kernel", "Adam/vhat/dense/bias"));
  for (const Variable& v : adam.variables()) EXPECT_FALSE(v.trainable());
  EXPECT_EQ(adam.slot("m", b).name(), "Adam/m/dense/bias");
  EXPECT_THAT(edge_names(adam),
              ElementsAre("_variables", "_iterations", "_learning_rate", "_index_dict",
                          "_model_variables_moving_average", "_momentums", "_velocities", "_velocity_hats"));
  const Trackable::Edge* list = adam.find_edge("_variables");
  ASSERT_TRUE(list && list->object);
  EXPECT_EQ(list->object->edges().size(), 9u);
  EXPECT_EQ(Variable::from_handle(list->object->find_edge("3")->handle).name(), "Adam/m/dense/kernel");
  optimizers::Nadam nadam(optimizers::schedules::ExponentialDecay({.initial_learning_rate = 0.5}));
  nadam.build({a});
  EXPECT_THAT(edge_names(nadam), ElementsAre("_variables", "_iterations", "_current_learning_rate", "_index_dict",
                                             "_momentums", "_velocities", "_u_product"));
}

TEST(OptimizerState, IsReadAndWritten) {
  const Variable w(Tensor{1.f, 2.f});
  optimizers::Adam adam, other;
  for (int i = 0; i < 3; ++i) adam.apply_gradients({{Tensor{0.5f, -1.f}, w}});
  EXPECT_THAT(message_of([&] { other.set_weights(adam.get_weights()); }), HasSubstr("call build() first"));
  other.build({w});
  other.set_weights(adam.get_weights());
  EXPECT_EQ(other.iterations().value().item<int64_t>(), 3);
  EXPECT_EQ(other.slot("v", w).value().to_vector<float>(), adam.slot("v", w).value().to_vector<float>());
  EXPECT_THAT(message_of([&] {
                other.set_weights({Tensor(int64_t{1}), Tensor{1.f}, Tensor{1.f}});
              }),
              HasSubstr("has shape [2], the value [1]"));
}

TEST(OptimizerState, LearningRateIsReadWhenTheFunctionRuns) {
  const Variable w(Tensor(0.f));
  optimizers::SGD sgd(0.5);
  auto step = function([&](const Tensor& g) { sgd.apply_gradients({{g, w}}); });
  step(Tensor(1.f));
  EXPECT_EQ(scalar_of(w), -0.5f);
  sgd.set_learning_rate(2);
  step(Tensor(1.f));
  EXPECT_EQ(scalar_of(w), -2.5f);
  EXPECT_EQ(step.num_traces(), 1);
  // A variable that others change.
  const Variable rate(Tensor(1.f));
  optimizers::SGD shared(rate);
  auto other = function([&](const Tensor& g) { shared.apply_gradients({{g, w}}); });
  other(Tensor(1.f));
  rate.assign(4);
  other(Tensor(1.f));
  EXPECT_EQ(scalar_of(w), -7.5f);
}

TEST(OptimizerState, SchedulesFollowTheSteps) {
  const auto halving = optimizers::schedules::ExponentialDecay({.initial_learning_rate = 1, .decay_rate = 0.5});
  for (const bool traced : {false, true}) {
    const Variable w(Tensor(0.f));
    optimizers::SGD sgd(halving);
    EXPECT_EQ(scalar_of(sgd.learning_rate()), 1.f);
    auto step = function([&](const Tensor& g) { sgd.apply_gradients({{g, w}}); });
    for (int i = 0; i < 3; ++i) traced ? step(Tensor(1.f)) : sgd.apply_gradients({{Tensor(1.f), w}});
    EXPECT_EQ(scalar_of(w), -1.75f);
    EXPECT_EQ(scalar_of(sgd.learning_rate()), 0.25f);
    EXPECT_THAT(message_of([&] { sgd.set_learning_rate(1); }), HasSubstr("follows a schedule"));
  }
}

TEST(OptimizerState, GradientsMayBeMissing) {
  const Variable used(Tensor(1.f), {.name = "used"}), unused(Tensor(2.f), {.name = "unused"});
  optimizers::SGD sgd(1.0);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) sgd.minimize([&] { return used * 3; }, {used, unused});
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("Gradients do not exist for variables ['unused'] when minimizing the loss."));
  EXPECT_EQ(log.find("unused"), log.rfind("unused")) << "one warning";
  EXPECT_EQ(scalar_of(used), -5.f);
  EXPECT_EQ(scalar_of(unused), 2.f);
  EXPECT_EQ(sgd.variables().size(), 3u);
  EXPECT_THAT(message_of([&] {
                sgd.minimize([] { return Tensor(1.f) * 2; }, {used, unused});
              }),
              HasSubstr("No gradients provided for any variable: ['used', 'unused']"));
  const Variable late(Tensor(1.f), {.name = "late"});
  EXPECT_THAT(message_of([&] { sgd.apply_gradients({{Tensor(1.f), late}}); }), HasSubstr("'late' is not among the 2"));
}

TEST(OptimizerState, AveragesMove) {
  for (const bool traced : {false, true}) {
    // 2 * 0.5^3 + 1 * 0.5 * 0.5^2 + 0 * 0.5 * 0.5 - 1 * 0.5 = -0.125 takes the place of the variable at step 3.
    const Variable w(Tensor(2.f));
    optimizers::SGD sgd({.learning_rate = 1, .use_ema = true, .ema_momentum = 0.5, .ema_overwrite_frequency = 3});
    auto step = function([&](const Tensor& g) { sgd.apply_gradients({{g, w}}); });
    std::vector<float> values;
    for (int i = 0; i < 4; ++i) {
      traced ? step(Tensor(1.f)) : sgd.apply_gradients({{Tensor(1.f), w}});
      values.push_back(scalar_of(w));
    }
    EXPECT_THAT(values, ElementsAre(1.f, 0.f, -0.125f, -1.125f));
    EXPECT_EQ(scalar_of(sgd.slot("average", w)), -0.625f);
    sgd.finalize_variable_values({w});
    EXPECT_EQ(scalar_of(w), -0.625f);
  }
}

TEST(OptimizerState, ConstraintsFollowUpdates) {
  const Variable w(Tensor{1.f, -1.f}), free(Tensor{1.f, -1.f});
  const Constraint not_negative = [](const Tensor& t) { return maximum(t, 0); };
  const ConstraintLookup lookup = [&](const Variable& v) { return &v.slot() == &w.slot() ? &not_negative : nullptr; };
  optimizers::SGD sgd(1.0);
  auto step = function([&](const Tensor& g) { sgd.apply_gradients({{g, w}, {g, free}}, lookup); });
  step(Tensor{0.5f, 0.5f});
  EXPECT_THAT(w.value().to_vector<float>(), ElementsAre(0.5f, 0.f));
  EXPECT_THAT(free.value().to_vector<float>(), ElementsAre(0.5f, -1.5f));
}

TEST(OptimizerState, WeightsMayBeKeptFromDecay) {
  const Variable kernel(Tensor(2.f), {.name = "dense/kernel"}), bias(Tensor(2.f), {.name = "dense/bias"}),
      gamma(Tensor(2.f), {.name = "gamma"});
  optimizers::SGD sgd({.learning_rate = 1, .weight_decay = 0.25});
  sgd.exclude_from_weight_decay({gamma}, {"bi.s$"});
  const Tensor zero(0.f);
  sgd.apply_gradients({{zero, kernel}, {zero, bias}, {zero, gamma}});
  EXPECT_EQ(scalar_of(kernel), 1.5f);
  EXPECT_EQ(scalar_of(bias), 2.f);
  EXPECT_EQ(scalar_of(gamma), 2.f);
  EXPECT_THAT(message_of([&] { sgd.exclude_from_weight_decay({kernel}); }), HasSubstr("before the optimizer is built"));
}

TEST(OptimizerState, IsDescribed) {
  optimizers::RMSprop rmsprop({.learning_rate = 0.25, .rho = 0.5, .centered = true, .clipnorm = 2.0});
  rmsprop.set_learning_rate(0.5);
  const Config config = optimizers::serialize(rmsprop);
  EXPECT_EQ(config.to_json(),
            R"({"class_name":"RMSprop","config":{"name":"RMSprop","weight_decay":null,"clipnorm":2.0,)"
            R"("global_clipnorm":null,"clipvalue":null,"use_ema":false,"ema_momentum":0.99,)"
            R"("ema_overwrite_frequency":100,"jit_compile":false,"is_legacy_optimizer":false,"learning_rate":0.5,)"
            R"("rho":0.5,"momentum":0.0,"epsilon":1e-07,"centered":true}})");
  for (const char* name :
       {"sgd", "adam", "adamw", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", "ftrl", "Adam", "FTRL"}) {
    const OptimizerPtr made = optimizers::get(name);
    EXPECT_EQ(optimizers::serialize(*optimizers::deserialize(optimizers::serialize(*made))),
              optimizers::serialize(*made));
  }
  EXPECT_THAT(message_of([] { optimizers::get("adman"); }), HasSubstr("'adman'; there are SGD, Adam"));
  optimizers::Adam scheduled(optimizers::schedules::CosineDecay({.initial_learning_rate = 0.5, .decay_steps = 10}));
  const OptimizerPtr copy = optimizers::deserialize(optimizers::serialize(scheduled));
  EXPECT_EQ(copy->get_config(), scheduled.get_config());
  EXPECT_EQ(copy->get_config()["learning_rate"]["class_name"].as_text(), "CosineDecay");
}

TEST(OptimizerState, ArgumentsAreNamesObjectsOrShared) {
  EXPECT_FALSE(OptimizerArg());
  EXPECT_EQ(OptimizerArg("adam").get()->class_name(), "Adam");
  const auto shared = std::make_shared<optimizers::SGD>(0.5);
  EXPECT_EQ(OptimizerArg(shared).get(), shared);
  // What is moved in keeps its state.
  const Variable w(Tensor(1.f));
  optimizers::Nadam nadam(0.5);
  nadam.apply_gradients({{Tensor(1.f), w}});
  const OptimizerArg moved = std::move(nadam);
  EXPECT_EQ(moved.get()->iterations().value().item<int64_t>(), 1);
  EXPECT_THAT(edge_names(*moved.get()), ElementsAre("_variables", "_iterations", "_learning_rate", "_index_dict",
                                                    "_momentums", "_velocities", "_u_product"));
  moved.get()->apply_gradients({{Tensor(1.f), w}});
  EXPECT_EQ(moved.get()->iterations().value().item<int64_t>(), 2);
}

TEST(OptimizerState, SettingsAreChecked) {
  EXPECT_THAT(message_of([] { optimizers::Adam({.clipnorm = 1.0, .global_clipnorm = 2.0}); }),
              HasSubstr("exclude each other"));
  EXPECT_THAT(message_of([] { optimizers::Adam({.use_ema = true, .ema_momentum = 2}); }),
              HasSubstr("in [0, 1], got 2"));
  EXPECT_THAT(message_of([] { optimizers::SGD({.momentum = -1}); }), HasSubstr("[SGD] momentum"));
  EXPECT_THAT(message_of([] { optimizers::Ftrl({.learning_rate_power = 1}); }),
              HasSubstr("[Ftrl] learning_rate_power"));
  EXPECT_THAT(message_of([] { optimizers::Adagrad({.initial_accumulator_value = -1}); }), HasSubstr("negative"));
}

struct SignDescent : Optimizer {
  SignDescent() : Optimizer(0.5, {.name = "SignDescent"}) {}
  void create_slots() override { add_slots({{"steps", 1}}); }
  void update_step(const Gradient& gradient, const Variable& variable) override {
    slot("steps", variable).assign_add(ones_like(variable));
    variable.assign_sub(sign(gradient) * learning_rate());
  }
};

TEST(OptimizerState, OptimizersCanBeWritten) {
  const Variable w(Tensor{3.f, -3.f});
  SignDescent descent;
  auto step = function([&] { descent.minimize([&] { return reduce_sum(w * w); }, {w}); });
  for (int i = 0; i < 3; ++i) step();
  EXPECT_THAT(w.value().to_vector<float>(), ElementsAre(1.5f, -1.5f));
  EXPECT_THAT(descent.slot("steps", w).value().to_vector<float>(), ElementsAre(4.f, 4.f));
}

TEST(LossScale, ScalesLossAndGradients) {
  const Variable w(Tensor(1.f));
  mixed_precision::LossScaleOptimizer optimizer(optimizers::SGD(0.25));
  EXPECT_EQ(optimizer.loss_scale().item<float>(), 32768.f);
  optimizer.minimize([&] { return w * w; }, {w});
  EXPECT_EQ(scalar_of(w), 0.5f);
  EXPECT_EQ(optimizer.get_scaled_loss(Tensor(2.f)).item<float>(), 65536.f);
  const auto unscaled = optimizer.get_unscaled_gradients(
      {Tensor(32768.f), Gradient(), IndexedSlices{Tensor{{65536.f}}, Tensor{1}, Tensor{3, 1}}});
  EXPECT_EQ(unscaled[0].value().item<float>(), 1.f);
  EXPECT_FALSE(unscaled[1].defined());
  EXPECT_EQ(unscaled[2].slices().values.item<float>(), 2.f);
  EXPECT_THAT(edge_names(optimizer),
              ElementsAre("_variables", "_iterations", "_learning_rate", "_index_dict", "momentums", "loss_scale"));
  EXPECT_THAT(edge_names(*optimizer.find_edge("loss_scale")->object), ElementsAre("current_loss_scale", "good_steps"));
  EXPECT_EQ(optimizer.variables().size(), 2u);
}

TEST(LossScale, FollowsTheGradients) {
  for (const bool traced : {false, true}) {
    const Variable w(Tensor(0.f)), unused(Tensor(0.f));
    mixed_precision::LossScaleOptimizer optimizer(optimizers::Adam(0.5),
                                                  {.initial_scale = 4, .dynamic_growth_steps = 2});
    auto step = function([&](const Tensor& g) { optimizer.apply_gradients({{g, w}, {Gradient(), unused}}); });
    const float inf = std::numeric_limits<float>::infinity();
    std::vector<float> scales, counts;
    int64_t moved = 0;
    for (const float g : {1.f, 1.f, 1.f, inf, 1.f, NAN, inf, inf, inf}) {
      const float before = scalar_of(w);
      traced ? step(Tensor(g)) : optimizer.apply_gradients({{Tensor(g), w}, {Gradient(), unused}});
      moved += scalar_of(w) != before;
      scales.push_back(optimizer.loss_scale().item<float>());
      counts.push_back(static_cast<float>(optimizer.dynamic_counter().value().item<int64_t>()));
    }
    EXPECT_THAT(scales, ElementsAre(4, 8, 8, 4, 4, 2, 1, 1, 1));
    EXPECT_THAT(counts, ElementsAre(1, 0, 1, 0, 1, 0, 0, 0, 0));
    EXPECT_EQ(moved, 4) << "steps that are not finite change nothing";
    EXPECT_EQ(optimizer.slot("m", w).name(), "m/" + w.name());  // without "Adam/", as in Keras
    EXPECT_EQ(optimizer.iterations().value().item<int64_t>(), 9);
    EXPECT_TRUE(std::isfinite(scalar_of(w)));
  }
}

TEST(LossScale, IsDescribed) {
  mixed_precision::LossScaleOptimizer fixed(optimizers::SGD(0.5), {.dynamic = false, .initial_scale = 8});
  EXPECT_EQ(fixed.loss_scale().item<float>(), 8.f);
  const Config config = optimizers::serialize(fixed);
  EXPECT_EQ(optimizers::serialize(*optimizers::deserialize(config)), config);
  EXPECT_THAT(message_of([] { mixed_precision::LossScaleOptimizer("sgd", {.dynamic = false}); }),
              HasSubstr("initial_scale"));
  EXPECT_THAT(
      message_of([] {
        mixed_precision::LossScaleOptimizer(OptimizerArg(std::make_shared<mixed_precision::LossScaleOptimizer>("sgd")));
      }),
      HasSubstr("already"));
}

}  // namespace
}  // namespace runnel::keras
