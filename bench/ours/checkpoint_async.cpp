// What asynchronous saves cost a training step: every 100 steps of the CNN its weights and the slots of Adam are saved.
#include <algorithm>

#include "bench/ours/mnist_step.h"
#include "runnel/tensor/allocator.h"
#include "runnel/track/checkpoint_manager.h"

namespace {

using namespace runnel;

constexpr int kInterval = 100, kSteps = 3 * kInterval, kWarm = 10;

struct Training {
  std::shared_ptr<bench::Cnn> model = std::make_shared<bench::Cnn>();
  std::function<void()> step = bench::train_step(model, true);
  train::Checkpoint checkpoint;
  std::string dir = Env::posix().create_temp_dir();
  train::CheckpointManager manager{checkpoint, dir, 3};

  Training() {
    int number = 0;
    for (const auto* list : {&model->variables, &model->m, &model->v}) {
      for (const Variable& variable : *list) checkpoint.track("v" + std::to_string(number++), variable);
    }
    for (int i = 0; i < kWarm; ++i) step();
  }
  ~Training() {
    manager.sync();
    Env::posix().remove_tree(dir);
  }
  void run(bool saving) {
    for (int i = 1; i <= kSteps; ++i) {
      step();
      if (saving && i % kInterval == 0) {
        manager.save({}, {.options = {.experimental_enable_async_checkpoint = true}});
      }
    }
    manager.sync();  // what is still to be written counts too
  }
};

double seconds_of_step(bool saving) {
  Training training;
  const double begin = bench::seconds();
  training.run(saving);
  return (bench::seconds() - begin) / kSteps;
}

// The most memory that saving adds while the steps go on.
double extra_peak() {
  Training training;
  const auto peak_of = [&](bool saving) {
    host_memory::reset_peak();
    training.run(saving);
    return static_cast<double>(host_memory::stats().peak);
  };
  const double without = peak_of(false);
  return std::max(peak_of(true) - without, 1.0);
}

// What the weights and slots take.
double bytes_of_variables() {
  const auto before = host_memory::stats().in_use;
  const bench::Cnn model;
  return static_cast<double>(host_memory::stats().in_use - before);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"ckpt_async_cnn_step", nullptr, [] { return seconds_of_step(true); }},
      {"ckpt_async_cnn_step_plain", nullptr, [] { return seconds_of_step(false); }},
      {"ckpt_async_cnn_peak", nullptr, extra_peak},
      {"ckpt_async_cnn_peak_copy", nullptr, bytes_of_variables},
  };
  return bench::main_of(argc, argv, cases, set_num_threads);
}
