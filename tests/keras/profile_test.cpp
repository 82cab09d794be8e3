// What profiles have of fit, evaluate and predict, and the profiles of the callback TensorBoard.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "runnel/base/profile_scope.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "runnel/summary/profiler.h"
#include "runnel/summary/trace.h"
#include "tests/summary/support.h"
#include "tests/support/expect_error.h"
#include "tests/support/profiles.h"

namespace runnel::keras {
namespace {

using profile::Event;
using profile::Kind;
using profile::Recording;
using test::TempDir;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<int64_t> numbers_of(const std::vector<Event>& events) {
  std::vector<int64_t> numbers;
  for (const Event& event : events) numbers.push_back(event.step);
  return numbers;
}

class KerasProfile : public testing::Test {
 protected:
  KerasProfile() {
    model.compile({.optimizer = "sgd", .loss = "mse"});
    model.fit(x, y, {.batch_size = 2, .verbose = 0});  // traces
  }
  void fit(const CallbackList& callbacks, int64_t epochs = 2) {
    model.fit(x, y, {.batch_size = 2, .epochs = epochs, .verbose = 0, .callbacks = callbacks});
  }
  // Folders of profiles.
  size_t profiles_in(const std::string& logdir) {
    const std::filesystem::path folder = std::filesystem::path(logdir) / "plugins" / "profile";
    if (!std::filesystem::exists(folder)) return 0;
    const auto all = std::filesystem::directory_iterator(folder);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }
  Tensor x = ones({6, 3}), y = zeros({6, 1});
  Sequential model{{layers::Dense({.units = 1, .input_shape = PartialShape{3}})}};
};

TEST_F(KerasProfile, FitMarksSteps) {
  const Recording r = recorded([&] { fit({}); });
  const std::vector<Event> steps = events_of(r, Kind::step, "train");
  EXPECT_THAT(numbers_of(steps), ElementsAre(0, 1, 2, 3, 4, 5));  // two epochs of three batches
  for (const Event& wait : events_of(r, Kind::input_wait, "iterator")) {
    const bool of_a_step = wait.step >= 0;
    EXPECT_EQ(of_a_step, std::ranges::any_of(steps, [&](const Event& step) { return is_inside(wait, step); }));
  }
  size_t runs = 0;
  for (const Event& run : events_of(r, Kind::run)) runs += run.step >= 0 && run.name.find("train") != std::string::npos;
  EXPECT_GE(runs, 6U);
}

TEST_F(KerasProfile, EvaluateAndPredictMarkThem) {
  const Recording r = recorded([&] {
    model.evaluate(x, y, {.batch_size = 2, .verbose = 0});
    model.predict(x, {.batch_size = 3, .verbose = 0});
  });
  EXPECT_THAT(numbers_of(events_of(r, Kind::step, "test")), ElementsAre(0, 1, 2));
  EXPECT_THAT(numbers_of(events_of(r, Kind::step, "predict")), ElementsAre(0, 1));
}

TEST_F(KerasProfile, TheCallbackProfilesBatches) {
  TempDir dir;
  fit({TensorBoard({.log_dir = dir.path(), .profile_batch = {2, 4}})});
  EXPECT_EQ(profiles_in(dir.path()), 1U);
  EXPECT_EQ(profile::current_recording(), 0U);
  EXPECT_THAT(test::tags_of(dir.path() + "/train"), Contains("batch_4@4"));
}

TEST_F(KerasProfile, TheCallbackMayProfileNothing) {
  TempDir dir;
  fit({TensorBoard({.log_dir = dir.path(), .profile_batch = 0})});
  fit({TensorBoard({.log_dir = dir.path() + "/late", .profile_batch = 100})});
  EXPECT_EQ(profiles_in(dir.path()) + profiles_in(dir.path() + "/late"), 0U);
  EXPECT_THAT(test::tags_of(dir.path() + "/late/train"), Not(Contains("batch_100@100")));
}

TEST_F(KerasProfile, FewerBatchesThanAskedFor) {
  TempDir dir;
  fit({TensorBoard({.log_dir = dir.path(), .profile_batch = {5, 20}})});
  EXPECT_EQ(profiles_in(dir.path()), 1U);
  EXPECT_THAT(test::tags_of(dir.path() + "/train"), Contains("batch_20@20"));
}

TEST_F(KerasProfile, AnotherProfileIsNoEndOfTheTraining) {
  TempDir dir;
  profiler::start(dir.path() + "/mine");
  testing::internal::CaptureStderr();
  fit({TensorBoard({.log_dir = dir.path() + "/logs", .profile_batch = 2})});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("another profile is being recorded"));
  profiler::stop();
  EXPECT_EQ(profiles_in(dir.path() + "/mine"), 1U);
  EXPECT_EQ(profiles_in(dir.path() + "/logs"), 0U);
  EXPECT_THAT(test::tags_of(dir.path() + "/logs/train"), Contains("batch_2@2"));  // the graphs are there
}

TEST_F(KerasProfile, ATrainingThatFailsLeavesNoProfileOn) {
  TempDir dir;
  struct Fails : Callback {
    void on_train_batch_end(int64_t, const Logs&) override { throw Error(Code::aborted, "stopped here"); }
  };
  test::expect_error(
      [&] {
        fit({TensorBoard({.log_dir = dir.path(), .profile_batch = {1, 3}}), Fails()});
      },
      Code::aborted, "stopped here");
  EXPECT_EQ(profile::current_recording(), 0U);
  const Recording r = recorded([] {});
  EXPECT_TRUE(r.events.empty());
}

}  // namespace
}  // namespace runnel::keras
