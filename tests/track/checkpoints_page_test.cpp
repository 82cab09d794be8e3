// The code of docs/checkpoints.md, so that what is copied from there compiles; and it runs.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <thread>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "runnel/track/checkpoint.h"
#include "runnel/track/checkpoints_iterator.h"
#include "tests/support/temp_dir.h"

namespace runnel::checkpoints_page {
namespace {

// clang-format off

struct Linear : keras::Model {
  keras::layers::Dense dense{this, "dense", {.units = 1}};
  Tensor call(const Tensor& x, const keras::CallArgs&) override { return dense(x); }
};

void train_and_save() {
  Linear model;
  keras::optimizers::Adam optimizer(0.01);
  train::Checkpoint checkpoint({{"myAwesomeModel", &model}, {"myAwesomeOptimizer", &optimizer}});
  for (int batch = 1; batch <= 200; ++batch) {
    const Tensor x = random::uniform({32, 3}), y = reduce_sum(x, -1, true);
    GradientTape tape;
    const Tensor loss = reduce_mean(square(model(x) - y));
    optimizer.apply_gradients(zip(tape.gradient(loss, model.variables()), model.variables()));
    if (batch % 100 == 0) std::cout << checkpoint.save("./save/model.ckpt") << '\n';   // ./save/model.ckpt-1, then -2
  }
}

void restore_and_test() {
  Linear model;
  train::Checkpoint checkpoint({{"myAwesomeModel", &model}});
  checkpoint.restore(train::latest_checkpoint("./save")).expect_partial();   // without the optimizer
  std::cout << model(ones({1, 3})) << '\n';
}

void values_that_wait() {
  Linear model;
  train::Checkpoint checkpoint({{"myAwesomeModel", &model}});
  const train::RestoreStatus status = checkpoint.restore(train::latest_checkpoint("./save"));
  std::cout << status;                       // pending     myAwesomeModel/dense/kernel                    float32  [3,1]
  model(ones({1, 3}));
  std::cout << status;                       // matched     myAwesomeModel/dense/kernel                    float32  [3,1]
  status.assert_existing_objects_matched().expect_partial();
}

void evaluate_all() {
  Linear model;
  train::Checkpoint checkpoint({{"myAwesomeModel", &model}});
  for (const std::string& path : train::checkpoints_iterator("./save", {.timeout = 0})) {   // seconds; none: for ever
    checkpoint.restore(path).expect_partial();
    std::cout << path << ' ' << model(ones({1, 3})) << '\n';
  }
}

void go_on(int64_t until) {
  Linear model;
  keras::optimizers::Adam optimizer(0.01);
  auto iterator = data::range(1000).shuffle(100, {.seed = 1}).repeat().batch(8).make_iterator();
  auto noise = random::Generator::from_seed(1);
  const Variable step(int64_t{0}, {.name = "step"});
  train::Checkpoint checkpoint(
      {{"model", &model}, {"optimizer", &optimizer}, {"iterator", iterator}, {"noise", noise}, {"step", step}});
  checkpoint.restore(train::latest_checkpoint("./run"));
  while (step.value().item<int64_t>() < until) {
    const Tensor x = expand_dims(cast(*iterator.next(), float32) / 1000, -1) + noise.normal({8, 1}, 0, 0.01);
    GradientTape tape;
    const Tensor loss = reduce_mean(square(model(x) - 2 * x));
    optimizer.apply_gradients(zip(tape.gradient(loss, model.variables()), model.variables()));
    step.assign_add(int64_t{1});
    if (step.value().item<int64_t>() % 10 == 0) checkpoint.save("./run/ckpt");
  }
}

void look() {
  for (const train::CheckpointVariable& v : train::list_variables("./save")) {   // or the prefix of one checkpoint
    std::cout << v.name << ' ' << dtype_name(v.dtype) << ' ' << v.shape.str() << '\n';
  }
  const Tensor kernel = train::load_variable("./save", "myAwesomeModel/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE");
  const train::CheckpointContents all = train::load_checkpoint("./save");
  std::cout << all.has_tensor("step/.ATTRIBUTES/VARIABLE_VALUE") << kernel << '\n';
}

void two_steps(const train::Checkpoint& checkpoint) {
  const train::Snapshot snapshot = checkpoint.capture();
  std::thread writer([&] { train::write_snapshot("./save/background", snapshot); });
  writer.join();
}

// clang-format on

TEST(CheckpointsPage, ProgramsRun) {
  const test::TempDir dir;
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  train_and_save();
  restore_and_test();
  evaluate_all();
  values_that_wait();
  go_on(20);
  go_on(50);
  look();
  const Variable v(1.f);
  two_steps(train::Checkpoint({{"v", v}}));
  const std::string out = testing::internal::GetCapturedStdout(), log = testing::internal::GetCapturedStderr();
  std::filesystem::current_path(here);
  EXPECT_EQ(out.substr(0, 42), "./save/model.ckpt-1\n./save/model.ckpt-2\ntf");
  EXPECT_NE(out.find("\npending     myAwesomeModel/dense/kernel "), std::string::npos) << out;
  EXPECT_NE(out.find("\nmatched     myAwesomeModel/dense/kernel "), std::string::npos);
  EXPECT_EQ(log, "");
  EXPECT_TRUE(std::filesystem::exists(dir.file("run/ckpt-5.index")));
  EXPECT_EQ(train::load_variable(dir.file("save/background"), "v/.ATTRIBUTES/VARIABLE_VALUE").item<float>(), 1);
}

}  // namespace
}  // namespace runnel::checkpoints_page
