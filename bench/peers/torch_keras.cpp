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

struct MlpImpl : torch::nn::Module {
  torch::nn::Linear a = register_module("a", torch::nn::Linear(784, 100));
  torch::nn::Linear b = register_module("b", torch::nn::Linear(100, 10));
  at::Tensor forward(const at::Tensor& x) { return b(torch::relu(a(x.flatten(1)))); }
};
TORCH_MODULE(Mlp);

struct CnnImpl : torch::nn::Module {
  static torch::nn::Conv2d conv(int64_t in, int64_t out) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 5).padding(2));
  }
  torch::nn::Conv2d c1 = register_module("c1", conv(1, 32));
  torch::nn::Conv2d c2 = register_module("c2", conv(32, 64));
  torch::nn::Linear a = register_module("a", torch::nn::Linear(3136, 1024));
  torch::nn::Linear b = register_module("b", torch::nn::Linear(1024, 10));
  at::Tensor forward(const at::Tensor& x) {
    auto y = torch::max_pool2d(torch::relu(c1(x)), 2);
    y = torch::max_pool2d(torch::relu(c2(y)), 2);
    return b(torch::relu(a(y.flatten(1))));
  }
};
TORCH_MODULE(Cnn);

void use_channels_last(torch::nn::Module& model) {
  for (auto& p : model.parameters()) {
    if (p.dim() == 4) p.set_data(p.data().contiguous(at::MemoryFormat::ChannelsLast));
  }
}

// A training loop over tensors that are there already, one epoch.
template <class M>
Call epoch(int64_t count, bool channels_last) {
  M model;
  auto x = values({count, 1, 28, 28}, 9) + 0.5;
  if (channels_last) {
    use_channels_last(*model);
    x = x.contiguous(at::MemoryFormat::ChannelsLast);
  }
  auto adam = std::make_shared<torch::optim::Adam>(model->parameters(), torch::optim::AdamOptions(1e-3));
  return [=, y = at::arange(count) % 10]() mutable {
    for (int64_t i = 0; i < count; i += 50) {
      adam->zero_grad();
      torch::nn::functional::cross_entropy(model->forward(x.narrow(0, i, 50)), y.narrow(0, i, 50)).backward();
      adam->step();
    }
  };
}

Call predict1() {
  Mlp model;
  model->eval();
  return [model, x = values({1, 1, 28, 28}, 9)]() mutable {
    c10::InferenceMode no_gradients;
    torch::softmax(model->forward(x), 1);
  };
}

// MobileNetV2 with its inverted residuals.
struct MobileNetImpl : torch::nn::Module {
  struct Block {
    torch::nn::Sequential layers;
    bool adds;
  };
  static void convolve(torch::nn::Sequential& to, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                       int64_t groups, bool activate) {
    to->push_back(torch::nn::Conv2d(
        torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).groups(groups).bias(false)));
    to->push_back(torch::nn::BatchNorm2d(out));
    if (activate) to->push_back(torch::nn::ReLU6());
  }
  MobileNetImpl() {
    torch::nn::Sequential stem;
    convolve(stem, 3, 32, 3, 2, 1, true);
    add({stem, false});
    int64_t in = 32;
    const int64_t settings[7][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                    {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    for (const auto& [expansion, out, repeats, stride] : settings) {
      for (int64_t i = 0; i < repeats; ++i) {
        torch::nn::Sequential layers;
        const int64_t wide = in * expansion, step = i == 0 ? stride : 1;
        if (expansion != 1) convolve(layers, in, wide, 1, 1, 1, true);
        convolve(layers, wide, wide, 3, step, wide, true);
        convolve(layers, wide, out, 1, 1, 1, false);
        add({layers, step == 1 && in == out});
        in = out;
      }
    }
    torch::nn::Sequential head;
    convolve(head, in, 1280, 1, 1, 1, true);
    add({head, false});
    classifier = register_module("classifier", torch::nn::Linear(1280, 1000));
  }
  void add(Block block) {
    register_module("block" + std::to_string(blocks.size()), block.layers);
    blocks.push_back(std::move(block));
  }
  at::Tensor forward(at::Tensor x) {
    for (Block& block : blocks) {
      const auto y = block.layers->forward(x);
      x = block.adds ? x + y : y;
    }
    return classifier(x.mean({2, 3}));
  }
  std::vector<Block> blocks;
  torch::nn::Linear classifier = nullptr;
};
TORCH_MODULE(MobileNet);

Call mobilenetv2_step(bool channels_last) {
  MobileNet model;
  auto x = values({8, 3, 224, 224}, 9);
  if (channels_last) {
    use_channels_last(*model);
    x = x.contiguous(at::MemoryFormat::ChannelsLast);
  }
  auto sgd = std::make_shared<torch::optim::SGD>(model->parameters(), torch::optim::SGDOptions(0.01));
  return [=, y = at::arange(8)]() mutable {
    sgd->zero_grad();
    torch::nn::functional::cross_entropy(model->forward(x), y).backward();
    sgd->step();
  };
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"lstm_step",
       [](int) {
         return std::vector<Call>{lstm_step(true), lstm_step(false)};
       }},
      {"mlp_fit", [](int) { return std::vector<Call>{epoch<Mlp>(6000, false)}; }},
      {"cnn_fit",
       [](int) {
         return std::vector<Call>{epoch<Cnn>(300, false), epoch<Cnn>(300, true)};
       }},
      {"mlp_eager", [](int) { return std::vector<Call>{epoch<Mlp>(50, false)}; }},
      {"mlp_predict1", [](int) { return std::vector<Call>{predict1()}; }},
      {"mobilenetv2_step",
       [](int) {
         return std::vector<Call>{mobilenetv2_step(false), mobilenetv2_step(true)};
       }},
  };
  return bench::main_of(argc, argv, cases, [](int threads) { at::set_num_threads(threads); });
}
