// Traced functions: chains of small and of large ops, a loop, and whole training steps of two MNIST models.
#include "bench/ours/mnist_step.h"
#include "runnel/graph/passes/pass.h"
#include "runnel/tensor/allocator.h"

namespace {

using namespace runnel;
using bench::Cnn, bench::Mlp, bench::values;
using Call = std::function<void()>;

// 50 ops, none of which can be folded.
Tensor chain50(Tensor z, const Tensor& y) {
  for (int i = 0; i < 25; ++i) z = multiply(add(z, y), y);
  return z;
}

Call chain50_traced() {
  const std::vector<Tensor> x = {values({10}, 1), values({10}, 3)};
  const Tensor y = values({10}, 2);
  return [=, f = function(chain50), i = 0]() mutable { f(x[static_cast<size_t>(i++ % 2)], y); };
}
Call chain50_eager() {
  const std::vector<Tensor> x = {values({10}, 1), values({10}, 3)};
  const Tensor y = values({10}, 2);
  return [=, i = 0]() mutable { chain50(x[static_cast<size_t>(i++ % 2)], y); };
}

Call loop10k() {
  auto f = function([](const Tensor& bound, const Tensor& start) {
    auto [i, y] = while_loop([&](const Tensor& i, const Tensor&) { return i < bound; },
                             [](const Tensor& i, const Tensor& y) { return std::tuple(i + 1, y * 0.999f + 0.5f); },
                             std::tuple(Tensor(0), start));
    return y;
  });
  return [f, bound = Tensor(10000), start = Tensor(1.0f)] { f(bound, start); };
}

// Two loops that do not need each other.
Call two_loops(bool side_by_side) {
  const auto loops = [](const Tensor& bound, const Tensor& start) {
    const auto loop = [&](const Tensor& from) {
      auto [i, y] = while_loop([&](const Tensor& i, const Tensor&) { return i < bound; },
                               [](const Tensor& i, const Tensor& y) { return std::tuple(i + 1, y * 0.999f + 0.5f); },
                               std::tuple(Tensor(0), from));
      return y;
    };
    return loop(start) + loop(start * 2);
  };
  auto f = function(loops, {.plan = {.parallel_branches = side_by_side}});
  return [=, bound = Tensor(1000), start = Tensor(1.f)] { f(bound, start); };
}

Call chain8() {
  auto f = function([](const Tensor& x, const Tensor& y) {
    Tensor z = x + y;
    z = z * x;
    z = z - y;
    z = nn::relu(z);
    z = z * 0.5f;
    z = z + 1.0f;
    z = square(z);
    return maximum(z, y);
  });
  return [f, x = values({1 << 20}, 1), y = values({1 << 20}, 2)] { f(x, y); };
}

template <class M>
Call step(bool traced) {
  return bench::train_step(std::make_shared<M>(), traced);
}

// The most memory of tensors at a time during a step, above the variables and the optimizer's slots.
template <class M>
double step_peak(bool traced) {
  const auto before = host_memory::stats().in_use;
  const double state = [] {
    const M model;
    return static_cast<double>(host_memory::stats().in_use);
  }();
  const Call call = step<M>(traced);
  for (int i = 0; i < 3; ++i) call();
  host_memory::reset_peak();
  for (int i = 0; i < 3; ++i) call();
  return static_cast<double>(host_memory::stats().peak) - (state - static_cast<double>(before));
}

template <class M>
Call infer1() {
  auto model = std::make_shared<M>();
  auto f = function([model](const Tensor& x) { return model->logits(x); });
  return [f, x = values(M::input(1), 9)] { f(x); };
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::pair<const char*, Call (*)()>> calls = {
      {"function_chain50", chain50_traced},
      {"function_chain50_eager", chain50_eager},
      {"while_loop_10k", loop10k},
      {"two_loops", [] { return two_loops(true); }},
      {"two_loops_sequential", [] { return two_loops(false); }},
      {"fused_chain8_1m", chain8},
      {"mlp_step_graph", [] { return step<Mlp>(true); }},
      {"mlp_step_eager", [] { return step<Mlp>(false); }},
      {"cnn_step_graph", [] { return step<Cnn>(true); }},
      {"cnn_step_eager", [] { return step<Cnn>(false); }},
      {"mlp_infer1", infer1<Mlp>},
      {"cnn_infer1", infer1<Cnn>},
  };
  std::vector<bench::Case> cases;
  for (const auto& [name, make] : calls) {
    cases.push_back({name, [make = make](int) { return std::vector<Call>{make()}; }});
  }
  cases.push_back({"cnn_step_peak_graph", nullptr, [] { return step_peak<Cnn>(true); }});
  cases.push_back({"cnn_step_peak_eager", nullptr, [] { return step_peak<Cnn>(false); }});
  return bench::main_of(argc, argv, cases, set_num_threads);
}
