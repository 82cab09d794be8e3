// Saving and restoring 1 GB of variables by train::Checkpoint. Every save replaces the one before.
#include <unistd.h>

#include "bench/checkpoint_tensors.h"
#include "bench/common.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/runnel.h"
#include "runnel/track/checkpoint.h"

namespace {

using namespace runnel;
using Call = std::function<void()>;

struct Saved {
  std::string prefix = bench::checkpoint_folder() + "/runnel_bench_" + std::to_string(::getpid());
  std::vector<Variable> variables;
  train::Checkpoint checkpoint;

  Saved() {
    std::vector<train::CheckpointPart> parts;
    for (const auto& dims : bench::checkpoint_shapes()) {
      Tensor t = Tensor::empty(float32, Shape(Dims(dims.begin(), dims.end())));
      bench::fill(t.mutable_data<float>(), static_cast<size_t>(t.num_elements()),
                  static_cast<unsigned>(variables.size()));
      variables.emplace_back(t);
      parts.emplace_back(variables.back());
    }
    checkpoint.track("variables", parts);
  }
  ~Saved() { io::remove_checkpoint(prefix); }
};

std::vector<Call> save() {
  auto saved = std::make_shared<Saved>();
  return {[saved] { saved->checkpoint.write(saved->prefix); }};
}

std::vector<Call> restore() {
  auto saved = std::make_shared<Saved>();
  saved->checkpoint.write(saved->prefix);
  return {[saved] { saved->checkpoint.read(saved->prefix).assert_consumed(); }};
}

}  // namespace

int main(int argc, char** argv) {
  return bench::main_of(
      argc, argv, {{"ckpt_save_1gb", [](int) { return save(); }}, {"ckpt_restore_1gb", [](int) { return restore(); }}},
      [](int threads) { set_num_threads(threads); });
}
