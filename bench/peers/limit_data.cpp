// The loop one would write by hand for shuffled batches of images: a permutation, then rows gathered and converted
// straight into the batch, batches shared out among threads. Nobody waits for anybody.
#include <omp.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "bench/common.h"
#include "bench/shapes.h"

namespace {

using Calls = std::vector<std::function<void()>>;

struct State {
  std::vector<uint8_t> images = std::vector<uint8_t>(static_cast<size_t>(bench::kMnistImages) * 784);
  std::vector<int64_t> labels = std::vector<int64_t>(static_cast<size_t>(bench::kMnistImages));
  std::vector<uint32_t> order = std::vector<uint32_t>(static_cast<size_t>(bench::kMnistImages));
  std::vector<std::vector<float>> x;
  std::vector<std::vector<int64_t>> y;
  std::mt19937_64 random{1};
};

Calls mnist_pipeline(int threads) {
  auto s = std::make_shared<State>();
  for (size_t i = 0; i < s->images.size(); ++i) s->images[i] = static_cast<uint8_t>(i * 7);
  for (size_t i = 0; i < s->labels.size(); ++i) s->labels[i] = static_cast<int64_t>(i % 10);
  constexpr int kBuffers = 8;
  s->x.assign(static_cast<size_t>(kBuffers * threads),
              std::vector<float>(static_cast<size_t>(bench::kMnistBatch) * 784));
  s->y.assign(static_cast<size_t>(kBuffers * threads), std::vector<int64_t>(static_cast<size_t>(bench::kMnistBatch)));
  return {[s, threads] {
    std::iota(s->order.begin(), s->order.end(), 0u);
    for (size_t i = s->order.size(); i > 1; --i) std::swap(s->order[i - 1], s->order[s->random() % i]);
    const long batches = bench::kMnistImages / bench::kMnistBatch;
    float sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum) schedule(dynamic, 8)
    for (long b = 0; b < batches; ++b) {
      const auto slot = static_cast<size_t>(omp_get_thread_num() * kBuffers + b % kBuffers);
      float* x = s->x[slot].data();
      int64_t* y = s->y[slot].data();
      for (long r = 0; r < bench::kMnistBatch; ++r) {
        const uint32_t row = s->order[static_cast<size_t>(b * bench::kMnistBatch + r)];
        const uint8_t* from = s->images.data() + static_cast<size_t>(row) * 784;
        for (int k = 0; k < 784; ++k) x[r * 784 + k] = static_cast<float>(from[k]) / 255.0f;
        y[r] = s->labels[row];
      }
      sum += x[0] + static_cast<float>(y[0]);
    }
    volatile float keep = sum;
    (void)keep;
  }};
}

}  // namespace

int main(int argc, char** argv) {
  return bench::main_of(argc, argv, {{"mnist_pipeline", mnist_pipeline}}, [](int n) { omp_set_num_threads(n); });
}
