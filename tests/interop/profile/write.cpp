// usage: write_profiles FOLDER    two profiles, one made by hand and one recorded; read.py has TensorBoard read them.
#include <cstdio>
#include <exception>

#include "runnel/io/profile_files.h"
#include "runnel/runnel.h"
#include "runnel/summary/profiler.h"
#include "tests/support/made_profiles.h"

using namespace runnel;

namespace {

void record_training(const std::string& folder) {
  const Variable w(random::normal({784, 100}));
  const Variable v(random::normal({100, 10}));
  auto train_step = function([&](const Tensor& x) {
    GradientTape tape;
    const Tensor loss = reduce_mean(square(matmul(nn::relu(matmul(x, w)), v)));
    const auto gradients = tape.gradient(loss, {w, v});
    w.assign_sub(gradients[0] * 0.001f);
    v.assign_sub(gradients[1] * 0.001f);
    return loss;
  });
  auto batches = data::range(1000)
                     .map(
                         [](const Tensor&) {
                           return random::uniform({50, 784});
                         },
                         {.num_parallel_calls = 2})
                     .prefetch(2)
                     .make_iterator();
  train_step(*batches.next());
  profiler::start(folder);
  for (int64_t step = 0; step < 7; ++step) {
    const profiler::Trace trace("train", step);
    train_step(*batches.next());
  }
  profiler::stop();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  io::write_profile_folder(test::training_recording(), folder + "/made");
  record_training(folder + "/recorded");
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
