#include "runnel/keras/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "runnel/runnel.h"

namespace runnel::keras::optimizers::schedules {
namespace {

using testing::HasSubstr;

// The schedule at many steps against a formula: eagerly, and as a function of the step traced once. Its description
// makes the same schedule.
void check_schedule(const LearningRateSchedule& schedule, const std::function<double(double)>& formula) {
  auto traced = function([&](const Tensor& step) { return schedule(step); });
  const SchedulePtr copy = deserialize(Config::from_json(serialize(schedule).to_json()));
  for (const int64_t step : {0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 14, 15, 19, 20, 25, 29, 31, 45, 100}) {
    const Tensor at(step);
    const double expected = formula(static_cast<double>(step));
    const Tensor got = schedule(at);
    EXPECT_EQ(got.dtype(), float32);
    EXPECT_NEAR(got.item<float>(), expected, 2e-6) << schedule.class_name() << " at " << step;
    EXPECT_NEAR(traced(at).item<float>(), expected, 2e-6) << schedule.class_name() << " at " << step;
    EXPECT_EQ((*copy)(at).item<float>(), got.item<float>());
  }
  EXPECT_EQ(traced.num_traces(), 1);
}

TEST(Schedules, ExponentialDecay) {
  check_schedule(ExponentialDecay({.initial_learning_rate = 0.5, .decay_steps = 10, .decay_rate = 0.9}),
                 [](double s) { return 0.5 * std::pow(0.9, s / 10); });
  check_schedule(
      ExponentialDecay({.initial_learning_rate = 0.5, .decay_steps = 10, .decay_rate = 0.9, .staircase = true}),
      [](double s) { return 0.5 * std::pow(0.9, std::floor(s / 10)); });
}

TEST(Schedules, PiecewiseConstantDecay) {
  check_schedule(PiecewiseConstantDecay({.boundaries = {4, 10}, .values = {1, 0.5, 0.1}}), [](double s) {
    return s <= 4 ? 1 : s <= 10 ? 0.5 : 0.1;
  });
  EXPECT_THROW(PiecewiseConstantDecay({.boundaries = {4, 10}, .values = {1, 0.5}}), Error);
  EXPECT_THROW(PiecewiseConstantDecay({}), Error);
}

TEST(Schedules, PolynomialDecay) {
  check_schedule(
      PolynomialDecay({.initial_learning_rate = 0.5, .decay_steps = 10, .end_learning_rate = 0.01, .power = 2}),
      [](double s) { return (0.5 - 0.01) * std::pow(1 - std::min(s, 10.0) / 10, 2) + 0.01; });
  check_schedule(
      PolynomialDecay({.initial_learning_rate = 0.5, .decay_steps = 10, .end_learning_rate = 0.01, .cycle = true}),
      [](double s) {
        const double length = s == 0 ? 10 : 10 * std::ceil(s / 10);
        return (0.5 - 0.01) * (1 - s / length) + 0.01;
      });
}

TEST(Schedules, InverseTimeDecay) {
  check_schedule(InverseTimeDecay({.initial_learning_rate = 0.5, .decay_steps = 4, .decay_rate = 0.5}),
                 [](double s) { return 0.5 / (1 + 0.5 * s / 4); });
  check_schedule(
      InverseTimeDecay({.initial_learning_rate = 0.5, .decay_steps = 4, .decay_rate = 0.5, .staircase = true}),
      [](double s) { return 0.5 / (1 + 0.5 * std::floor(s / 4)); });
}

double cosine(double fraction, double alpha) { return (1 - alpha) * 0.5 * (1 + std::cos(M_PI * fraction)) + alpha; }

TEST(Schedules, CosineDecay) {
  check_schedule(CosineDecay({.initial_learning_rate = 0.5, .decay_steps = 20, .alpha = 0.1}),
                 [](double s) { return 0.5 * cosine(std::min(s, 20.0) / 20, 0.1); });
  check_schedule(
      CosineDecay(
          {.initial_learning_rate = 0.1, .decay_steps = 20, .alpha = 0.1, .warmup_target = 0.5, .warmup_steps = 10}),
      [](double s) {
        if (s < 10) return 0.1 + (0.5 - 0.1) * s / 10;
        return 0.5 * cosine((std::min(s, 30.0) - 10) / 20, 0.1);
      });
}

TEST(Schedules, CosineDecayRestarts) {
  check_schedule(CosineDecayRestarts({.initial_learning_rate = 0.5, .first_decay_steps = 6, .t_mul = 1, .m_mul = 0.5}),
                 [](double s) {
                   const double i = std::floor(s / 6);
                   return 0.5 * std::pow(0.5, i) * cosine(s / 6 - i, 0);
                 });
  // Decays of 10, 20, 40, ... steps.
  check_schedule(
      CosineDecayRestarts({.initial_learning_rate = 0.5, .first_decay_steps = 10, .m_mul = 0.5, .alpha = 0.1}),
      [](double s) {
        double length = 10, top = 1;
        while (s >= length) {
          s -= length;
          length *= 2;
          top *= 0.5;
        }
        return 0.5 * ((1 - 0.1) * 0.5 * top * (1 + std::cos(M_PI * s / length)) + 0.1);
      });
}

struct InverseRate : LearningRateSchedule {
  Tensor operator()(const Operand& step) const override { return 0.5 / (cast(step, float32) + 1); }
};

TEST(Schedules, CanBeWritten) {
  EXPECT_EQ(InverseRate()(int64_t{3}).item<float>(), 0.125f);
  try {
    serialize(InverseRate());
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("no get_config()"));
  }
  try {
    deserialize(Config::from_json(R"({"class_name": "Warmup", "config": {}})"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("'Warmup'; there are"));
  }
  EXPECT_EQ(serialize(CosineDecay({.initial_learning_rate = 0.5, .decay_steps = 4})).to_json(),
            R"({"class_name":"CosineDecay","config":{"initial_learning_rate":0.5,"decay_steps":4.0,"alpha":0.0,)"
            R"("name":null,"warmup_target":null,"warmup_steps":0.0}})");
}

}  // namespace
}  // namespace runnel::keras::optimizers::schedules
