// Our side of the pipeline benchmarks.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "bench/common.h"
#include "bench/shapes.h"
#include "runnel/runnel.h"

namespace {

using namespace runnel;
using data::AUTOTUNE;
using Calls = std::vector<std::function<void()>>;

// One epoch of shuffled, scaled batches.
Calls mnist_pipeline(int) {
  const Tensor images = Tensor::empty(uint8, {bench::kMnistImages, 28, 28});
  const Tensor labels = Tensor::empty(int64, {bench::kMnistImages});
  for (int64_t i = 0; i < images.num_elements(); ++i) images.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(i * 7);
  for (int64_t i = 0; i < labels.num_elements(); ++i) labels.mutable_data<int64_t>()[i] = i % 10;
  const auto scale = function([](Tensor x, Tensor y) { return std::tuple{cast(x, float32) / 255, y}; });
  const auto train = data::from_tensor_slices(images, labels)
                         .shuffle(bench::kMnistImages)
                         .map(scale, AUTOTUNE)
                         .batch(bench::kMnistBatch)
                         .prefetch(AUTOTUNE);
  return {[train] {
    float sum = 0;
    for (auto [x, y] : train) sum += x.data<float>()[0] + static_cast<float>(y.data<int64_t>()[0]);
    volatile float keep = sum;
    (void)keep;
  }};
}

// Computes for a while, on one core.
void compute(double microseconds) {
  const double end = bench::seconds() + microseconds * 1e-6;
  volatile double x = 1;
  while (bench::seconds() < end) {
    for (int k = 0; k < 50; ++k) x = x * 1.0000001;
  }
}

constexpr int64_t kOverlapElements = 100;
constexpr double kOverlapMicroseconds = 1000;

// A map that computes, and a consumer that sleeps or computes for as long.
data::Dataset<Tensor> slow_map(bool parallel) {
  const auto work = [](Tensor x) {
    compute(kOverlapMicroseconds);
    return x;
  };
  const auto d = data::range(kOverlapElements).map(work, parallel ? AUTOTUNE : 0);
  return parallel ? d.prefetch(AUTOTUNE) : d;
}
Calls overlap(bool parallel, bool sleeps) {
  return {[d = slow_map(parallel), sleeps] {
    for (const Tensor& x : d) {
      if (sleeps) {
        std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(kOverlapMicroseconds)));
      } else {
        compute(kOverlapMicroseconds);
      }
    }
  }};
}

// Files of 20 to 400 lines, each of which takes a while to read.
Calls uneven_files(const std::vector<int>& parallel) {
  std::vector<std::string> paths;
  const std::string dir = Env::posix().create_temp_dir();
  for (int f = 0; f < 8; ++f) {
    std::string text;
    for (int k = 0; k < 20 + 380 * (f * 5 % 8) / 7; ++k) text += "line " + std::to_string(k) + "\n";
    paths.push_back(join_path(dir, "file" + std::to_string(f)));
    Env::posix().write_file(paths.back(), as_bytes(text));
  }
  Calls calls;
  for (const int p : parallel) {
    const auto lines = [](Tensor path) {
      return data::TextLineDataset(path.item<std::string>()).map([](Tensor line) {
        compute(100);
        return line;
      });
    };
    const auto d = data::from_tensor_slices(Tensor::of<Bytes>(std::vector<Bytes>(paths.begin(), paths.end())))
                       .interleave(lines, {.cycle_length = 4, .num_parallel_calls = p})
                       .batch(16)
                       .prefetch(AUTOTUNE);
    calls.emplace_back([d] {
      for (const Tensor& x : d) (void)x;
    });
  }
  return calls;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"mnist_pipeline", mnist_pipeline},
      {"overlap_sleep", [](int) { return overlap(true, true); }},
      {"overlap_sleep_sequential", [](int) { return overlap(false, true); }},
      {"overlap_compute", [](int) { return overlap(true, false); }},
      {"overlap_compute_sequential", [](int) { return overlap(false, false); }},
      {"autotune_interleave", [](int) { return uneven_files({AUTOTUNE}); }},
      {"autotune_interleave_grid",
       [](int) {
         return uneven_files({1, 2, 3, 4});
       }},
      {"autotune_interleave_grid_worst", [](int) { return uneven_files({1}); }},
  };
  return bench::main_of(argc, argv, cases, set_num_threads);
}
