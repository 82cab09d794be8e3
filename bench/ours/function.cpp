// Traced functions: chains of small and of large ops, a loop, and whole training steps of two MNIST models.
#include "bench/common.h"
#include "runnel/graph/passes/pass.h"
#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"
#include "runnel/tensor/allocator.h"

namespace {

using namespace runnel;
using Call = std::function<void()>;

Tensor values(const Shape& shape, unsigned seed, float scale = 1) {
  Tensor t = Tensor::empty(float32, shape);
  bench::fill(t.mutable_data<float>(), static_cast<size_t>(t.num_elements()), seed);
  return scale == 1 ? t : t * scale;
}

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

struct Model {
  std::vector<Variable> variables, m, v;
  Variable beta1_power{Tensor(1.0f)}, beta2_power{Tensor(1.0f)};

  Variable weight(const Shape& shape) {
    variables.emplace_back(values(shape, static_cast<unsigned>(variables.size()) + 1, 0.1f));
    m.emplace_back(zeros(shape));
    v.emplace_back(zeros(shape));
    return variables.back();
  }
  void adam(const std::vector<Gradient>& gradients) {
    beta1_power.assign(beta1_power * 0.9f);
    beta2_power.assign(beta2_power * 0.999f);
    for (size_t i = 0; i < variables.size(); ++i) {
      call_op("ResourceApplyAdam",
              {variables[i].handle(), m[i].handle(), v[i].handle(), beta1_power.value(), beta2_power.value(),
               Tensor(0.001f), Tensor(0.9f), Tensor(0.999f), Tensor(1e-7f), gradients[i].value()});
    }
  }
};

struct Mlp : Model {
  Variable w1 = weight({784, 100}), b1 = weight({100}), w2 = weight({100, 10}), b2 = weight({10});
  static Shape input(int64_t batch) { return {batch, 784}; }
  Tensor logits(const Tensor& x) const { return matmul(nn::relu(matmul(x, w1) + b1), w2) + b2; }
};

struct Cnn : Model {
  Variable k1 = weight({5, 5, 1, 32}), c1 = weight({32}), k2 = weight({5, 5, 32, 64}), c2 = weight({64});
  Variable w1 = weight({3136, 1024}), b1 = weight({1024}), w2 = weight({1024, 10}), b2 = weight({10});
  static Shape input(int64_t batch) { return {batch, 28, 28, 1}; }
  Tensor logits(const Tensor& x) const {
    Tensor y = nn::max_pool2d(nn::relu(nn::bias_add(nn::conv2d(x, k1, {.padding = "SAME"}), c1)));
    y = nn::max_pool2d(nn::relu(nn::bias_add(nn::conv2d(y, k2, {.padding = "SAME"}), c2)));
    return matmul(nn::relu(matmul(reshape(y, {-1, 3136}), w1) + b1), w2) + b2;
  }
};

template <class M>
Call step(bool traced) {
  auto model = std::make_shared<M>();
  auto body = [model](const Tensor& x, const Tensor& labels) {
    GradientTape tape;
    const Tensor loss = reduce_mean(nn::sparse_softmax_cross_entropy_with_logits(labels, model->logits(x)));
    model->adam(tape.gradient(loss, model->variables));
    return loss;
  };
  const Tensor x = values(M::input(50), 9), labels = range(50) % 10;
  if (!traced) return [=] { body(x, labels); };
  return [=, f = function(body)] { f(x, labels); };
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
