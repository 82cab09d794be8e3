// libtorch at what bench/ours/function.cpp does: eager chains and loops, training steps, single inferences.
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

Call chain50() {
  const std::vector<at::Tensor> x = {values({10}, 1), values({10}, 3)};
  const auto y = values({10}, 2);
  return [=, i = 0]() mutable {
    c10::InferenceMode no_gradients;
    auto z = x[static_cast<size_t>(i++ % 2)];
    for (int k = 0; k < 25; ++k) z = at::mul(at::add(z, y), y);
  };
}

Call loop10k() {
  return [bound = at::tensor(10000), start = at::tensor(1.0f)] {
    c10::InferenceMode no_gradients;
    auto i = at::tensor(0), y = start;
    while ((i < bound).item<bool>()) {
      y = y * 0.999f + 0.5f;
      i = i + 1;
    }
  };
}

Call chain8() {
  return [x = values({1 << 20}, 1), y = values({1 << 20}, 2)] {
    c10::InferenceMode no_gradients;
    auto z = x + y;
    z = z * x;
    z = z - y;
    z = at::relu(z);
    z = z * 0.5f;
    z = z + 1.0f;
    z = at::square(z);
    z = at::maximum(z, y);
  };
}

struct MlpImpl : torch::nn::Module {
  torch::nn::Linear a = register_module("a", torch::nn::Linear(784, 100));
  torch::nn::Linear b = register_module("b", torch::nn::Linear(100, 10));
  static std::vector<int64_t> input(int64_t batch) { return {batch, 784}; }
  at::Tensor forward(const at::Tensor& x) { return b(torch::relu(a(x))); }
};
TORCH_MODULE(Mlp);

torch::nn::Conv2d conv(int64_t in, int64_t out) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 5).padding(2));
}

struct CnnImpl : torch::nn::Module {
  torch::nn::Conv2d c1 = register_module("c1", conv(1, 32));
  torch::nn::Conv2d c2 = register_module("c2", conv(32, 64));
  torch::nn::Linear a = register_module("a", torch::nn::Linear(3136, 1024));
  torch::nn::Linear b = register_module("b", torch::nn::Linear(1024, 10));
  static std::vector<int64_t> input(int64_t batch) { return {batch, 1, 28, 28}; }
  at::Tensor forward(const at::Tensor& x) {
    auto y = torch::max_pool2d(torch::relu(c1(x)), 2);
    y = torch::max_pool2d(torch::relu(c2(y)), 2);
    return b(torch::relu(a(y.flatten(1))));
  }
};
TORCH_MODULE(Cnn);

template <class M>
Call step(bool channels_last) {
  M model;
  auto x = values(M::Impl::input(50), 9);
  if (channels_last) {
    x = x.contiguous(at::MemoryFormat::ChannelsLast);
    for (auto& p : model->parameters()) {
      if (p.dim() == 4) p.set_data(p.data().contiguous(at::MemoryFormat::ChannelsLast));
    }
  }
  const auto labels = at::arange(50) % 10;
  auto adam = std::make_shared<torch::optim::Adam>(model->parameters(), torch::optim::AdamOptions(1e-3));
  return [=]() mutable {
    adam->zero_grad();
    torch::nn::functional::cross_entropy(model->forward(x), labels).backward();
    adam->step();
  };
}

// Counts the bytes of tensors, as they are asked for.
class Counting : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) const override {
    char* block = static_cast<char*>(std::aligned_alloc(kHeader, (bytes + 2 * kHeader - 1) / kHeader * kHeader));
    *reinterpret_cast<size_t*>(block) = bytes;
    now += bytes;
    peak = std::max(peak, now);
    return {block + kHeader, block + kHeader, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  static inline size_t now = 0, peak = 0;

 private:
  static constexpr size_t kHeader = 64;
  static void release(void* data) {
    if (!data) return;
    char* block = static_cast<char*>(data) - kHeader;
    now -= *reinterpret_cast<size_t*>(block);
    std::free(block);
  }
};

// The most memory of tensors at a time during a step, above the variables and the optimizer's slots.
template <class M>
double step_peak() {
  static Counting counting;
  c10::SetAllocator(c10::kCPU, &counting, 255);
  size_t parameters = 0;
  {
    const M model;
    for (const auto& p : model->parameters()) parameters += p.nbytes();
  }
  const size_t before = Counting::now;
  const Call call = step<M>(false);
  for (int i = 0; i < 3; ++i) call();
  Counting::peak = 0;
  for (int i = 0; i < 3; ++i) call();
  return static_cast<double>(Counting::peak - before - 3 * parameters);
}

template <class M>
Call infer1() {
  M model;
  model->eval();
  return [model, x = values(M::Impl::input(1), 9)]() mutable {
    c10::InferenceMode no_gradients;
    model->forward(x);
  };
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::pair<const char*, Call (*)()>> calls = {
      {"function_chain50", chain50},
      {"while_loop_10k", loop10k},
      {"fused_chain8_1m", chain8},
      {"mlp_step_graph", [] { return step<Mlp>(false); }},
      {"cnn_step_graph", [] { return step<Cnn>(false); }},
      {"cnn_step_graph_channels_last", [] { return step<Cnn>(true); }},
      {"mlp_infer1", infer1<Mlp>},
      {"cnn_infer1", infer1<Cnn>},
  };
  std::vector<bench::Case> cases;
  for (const auto& [name, make] : calls) {
    cases.push_back({name, [make = make](int) { return std::vector<Call>{make()}; }});
  }
  for (const char* name : {"cnn_step_peak_graph", "cnn_step_peak_eager"}) {
    cases.push_back({name, nullptr, step_peak<Cnn>});
  }
  return bench::main_of(argc, argv, cases, [](int threads) { at::set_num_threads(threads); });
}
