// libtorch at what bench/ours/keras.cpp does: training steps of layers and models.
#include <ATen/Parallel.h>
#include <torch/torch.h>

#include "bench/common.h"

namespace {

using Call = std::function<void()>;

at::Tensor values(at::IntArrayRef shape, unsigned seed) {
  auto t = at::empty(shape, at::kFloat);
  bench::fill(t.data_ptr<float>(), static_cast<size_t>(t.numel()), seed);
  return t;
}

// LSTM(256) over 40 steps of 128 numbers, batch 50: the mean of squares of the last output's distance from a target.
Call lstm_step(bool batch_first) {
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(128, 256).batch_first(batch_first));
  auto adam = std::make_shared<torch::optim::Adam>(lstm->parameters(), torch::optim::AdamOptions(1e-3));
  const auto x = batch_first ? values({50, 40, 128}, 9) : values({40, 50, 128}, 9);
  return [=, target = values({50, 256}, 10)]() mutable {
    adam->zero_grad();
    const auto state = std::get<1>(lstm->forward(x));
    torch::mse_loss(std::get<0>(state)[0], target).backward();
    adam->step();
  };
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"lstm_step", [](int) { return std::vector<Call>{lstm_step(true), lstm_step(false)}; }},
  };
  return bench::main_of(argc, argv, cases, [](int threads) { at::set_num_threads(threads); });
}
