// libtorch's Adam at what bench/ours/optimizer.cpp does.
#include <ATen/Parallel.h>
#include <torch/torch.h>

#include "bench/common.h"
#include "bench/shapes.h"

namespace {

using Call = std::function<void()>;

std::vector<Call> step(const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<at::Tensor> parameters;
  for (const auto& shape : shapes) {
    const auto values = [&](unsigned seed) {
      auto t = at::empty(shape, at::kFloat);
      bench::fill(t.data_ptr<float>(), static_cast<size_t>(t.numel()), seed);
      return t;
    };
    parameters.push_back(values(1).requires_grad_());
    parameters.back().mutable_grad() = values(2);
  }
  auto adam = std::make_shared<torch::optim::Adam>(parameters, torch::optim::AdamOptions(1e-3));
  return {[=] { adam->step(); }};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<bench::Case> cases;
  for (const std::string ending : {"", "_traced"}) {
    cases.push_back({"adam_fused" + ending, [](int) { return step(bench::cnn_parameters()); }});
    cases.push_back({"adam_fused_small" + ending, [](int) { return step(bench::many_small_parameters()); }});
  }
  return bench::main_of(argc, argv, cases, [](int threads) { at::set_num_threads(threads); });
}
