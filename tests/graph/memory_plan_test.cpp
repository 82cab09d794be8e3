// The memory of plans: how much, that nothing overlaps what lives, and that results are their owners' alone.
#include "runnel/graph/executor/memory_plan.h"
#include "runnel/graph/executor/plan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "runnel/graph/graph_function.h"
#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"
#include "runnel/tensor/allocator.h"

namespace runnel {
namespace {

void expect_sound(const std::vector<MemoryRequest>& requests, const MemoryPlan& plan) {
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kMemoryAlign, 0);
    EXPECT_LE(plan.offsets[i] + requests[i].bytes, plan.size);
    for (size_t k = 0; k < i; ++k) {
      if (requests[i].begin > requests[k].end || requests[k].begin > requests[i].end) continue;
      const bool apart = plan.offsets[i] + requests[i].bytes <= plan.offsets[k] ||
                         plan.offsets[k] + requests[k].bytes <= plan.offsets[i];
      EXPECT_TRUE(apart) << i << " and " << k;
    }
  }
}

// Lives as graphs have them: most values die soon, some wait for the backward pass.
std::vector<MemoryRequest> random_graph(uint32_t seed) {
  std::mt19937 random(seed);
  const int steps = 5 + static_cast<int>(random() % 120);
  std::vector<MemoryRequest> requests;
  for (int i = 0; i < steps; ++i) {
    const int64_t bytes = int64_t{1} << (8 + random() % 12);
    const bool waits = random() % 3 == 0;
    const int end = waits ? steps - i / 2 : i + 1 + static_cast<int>(random() % 4);
    requests.push_back({bytes + static_cast<int64_t>(random() % static_cast<uint32_t>(bytes)), i, std::max(i, end)});
  }
  return requests;
}

TEST(MemoryPlan, RandomLivesNeedLittleMoreThanTheyMust) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    const std::vector<MemoryRequest> requests = random_graph(seed);
    const MemoryPlan plan = plan_memory(requests);
    expect_sound(requests, plan);
    EXPECT_LE(static_cast<double>(plan.size), 1.1 * static_cast<double>(largest_live(requests))) << "seed " << seed;
    EXPECT_EQ(plan.offsets, plan_memory(requests).offsets);
  }
}

TEST(MemoryPlan, SmallCases) {
  EXPECT_EQ(plan_memory({}).size, 0);
  EXPECT_EQ(plan_memory({{100, 0, 1}, {100, 1, 2}, {100, 2, 3}}).size, 256);
  EXPECT_EQ(largest_live({{100, 0, 1}, {100, 1, 2}, {100, 2, 3}}), 200);
  EXPECT_EQ(plan_memory({{100, 0, 0}, {60, 1, 1}, {64, 2, 2}}).size, 128);
}

struct Model {
  std::vector<Variable> variables, m, v;
  Variable weight(const Shape& shape) {
    variables.emplace_back(random::stateless_normal(shape, Tensor{static_cast<int>(variables.size()), 3}) * 0.1f);
    m.emplace_back(zeros(shape));
    v.emplace_back(zeros(shape));
    return variables.back();
  }
  void adam(const std::vector<Gradient>& gradients) const {
    for (size_t i = 0; i < variables.size(); ++i) {
      call_op("ResourceApplyAdam", {variables[i].handle(), m[i].handle(), v[i].handle(), Tensor(0.5f), Tensor(0.5f),
                                    Tensor(0.001f), Tensor(0.9f), Tensor(0.999f), Tensor(1e-7f), gradients[i].value()});
    }
  }
};
struct Mlp : Model {
  Variable w1 = weight({784, 100}), b1 = weight({100}), w2 = weight({100, 10}), b2 = weight({10});
  static Shape input(int64_t n) { return {n, 784}; }
  Tensor logits(const Tensor& x) const { return matmul(nn::relu(matmul(x, w1) + b1), w2) + b2; }
};
struct Cnn : Model {
  Variable k1 = weight({5, 5, 1, 32}), c1 = weight({32}), k2 = weight({5, 5, 32, 64}), c2 = weight({64});
  Variable w1 = weight({3136, 1024}), b1 = weight({1024}), w2 = weight({1024, 10}), b2 = weight({10});
  static Shape input(int64_t n) { return {n, 28, 28, 1}; }
  Tensor logits(const Tensor& x) const {
    Tensor y = nn::max_pool2d(nn::relu(nn::bias_add(nn::conv2d(x, k1, {.padding = "SAME"}), c1)));
    y = nn::max_pool2d(nn::relu(nn::bias_add(nn::conv2d(y, k2, {.padding = "SAME"}), c2)));
    return matmul(nn::relu(matmul(reshape(y, {-1, 3136}), w1) + b1), w2) + b2;
  }
};

template <class M>
struct Step {
  M model;
  Tensor operator()(const Tensor& x, const Tensor& labels) const {
    GradientTape tape;
    const Tensor loss = reduce_mean(nn::sparse_softmax_cross_entropy_with_logits(labels, model.logits(x)));
    model.adam(tape.gradient(loss, model.variables));
    return loss;
  }
};

// Bytes taken at the same time above what was there before the call.
template <class F>
int64_t peak_of(const F& f) {
  host_memory::reset_peak();
  const int64_t before = host_memory::stats().in_use;
  f();
  return host_memory::stats().peak - before;
}

template <class M>
void check_step(int64_t n, double most_megabytes, double most_eager) {
  const Tensor x = random::stateless_normal(M::input(n), Tensor{1, 2}), labels = range(static_cast<int>(n)) % 10;
  const auto step = std::make_shared<Step<M>>();
  auto f = function([step](const Tensor& a, const Tensor& b) { return (*step)(a, b); });
  const auto twin = std::make_shared<Step<M>>();
  for (int i = 0; i < 2; ++i) {
    const Tensor traced = f(x, labels), eager = (*twin)(x, labels);
    EXPECT_EQ(traced.to_vector<float>(), eager.to_vector<float>());
  }
  for (size_t i = 0; i < step->model.variables.size(); ++i) {
    EXPECT_EQ(step->model.variables[i].value().template to_vector<float>(),
              twin->model.variables[i].value().template to_vector<float>());
  }
  const Plan::MemoryUse use = f.get_concrete_function(x, labels).function()->plan().memory_use();
  EXPECT_GT(use.live, 0);
  EXPECT_LE(static_cast<double>(use.arena), 1.1 * static_cast<double>(use.live));
  const auto peak = static_cast<double>(peak_of([&] { f(x, labels); })) / 1e6;
  EXPECT_LE(peak, most_megabytes);
  const auto eager_peak = static_cast<double>(peak_of([&] { (*twin)(x, labels); })) / 1e6;
  EXPECT_LE(eager_peak, most_eager);
  std::printf("arena %.2f MB, live %.2f MB, peak %.2f MB, eager %.2f MB\n", static_cast<double>(use.arena) / 1e6,
              static_cast<double>(use.live) / 1e6, peak, eager_peak);
}

TEST(MemoryPlan, OfAStepOfTheMlp) { check_step<Mlp>(50, 0.6, 1); }
TEST(MemoryPlan, OfAStepOfTheCnn) { check_step<Cnn>(50, 25, 45); }

TEST(MemoryPlan, ResultsAndHeldValuesAreOutside) {
  const Variable kept(zeros({64}));
  auto f = function([&](const Tensor& x) {
    const Tensor a = x * 2.f, b = a + 1.f;
    kept.assign(b);
    const Tensor c = reshape(exp(b), {8, 8});
    return std::vector<Tensor>{c, c * 3.f, transpose(c), a};
  });
  std::vector<std::vector<Tensor>> results;
  std::vector<Tensor> assigned;
  for (int i = 0; i < 4; ++i) {
    results.push_back(f(fill({64}, static_cast<float>(i))));
    assigned.push_back(kept.value());
  }
  for (int i = 0; i < 4; ++i) {
    const float b = 2.f * static_cast<float>(i) + 1, c = exp(Tensor(b)).to_vector<float>()[0];
    EXPECT_EQ(assigned[static_cast<size_t>(i)].to_vector<float>(), std::vector<float>(64, b));
    const auto& r = results[static_cast<size_t>(i)];
    EXPECT_EQ(r[0].to_vector<float>(), std::vector<float>(64, c));
    EXPECT_EQ(r[1].to_vector<float>(), std::vector<float>(64, 3 * c));
    EXPECT_EQ(r[2].to_vector<float>(), std::vector<float>(64, c));
    EXPECT_EQ(r[3].to_vector<float>(), std::vector<float>(64, b - 1));
  }
}

TEST(MemoryPlan, ChainsNeedOneBlock) {
  const auto f = function([](const Tensor& x) {
    Tensor y = x * 2.f;
    for (int i = 0; i < 10; ++i) y = tanh(y) + reduce_sum(y);
    return reduce_max(y);
  });
  const Tensor x = zeros({1000});
  f(x);
  // y and tanh(y), and the sums.
  EXPECT_LE(f.get_concrete_function(x).function()->plan().memory_use().arena, 2 * 4032 + 2 * 64);
}

TEST(MemoryPlan, ThreadsHaveArenasOfTheirOwn) {
  const auto f = function([](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 8; ++i) y = matmul(tanh(y), y) * 0.01f + y;
    return y;
  });
  std::vector<Tensor> in;
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < 4; ++i) {
    in.push_back(random::stateless_normal({48, 48}, Tensor{i, 1}));
    expected.push_back(f(in.back()).to_vector<float>());
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) wrong += f(in[t]).to_vector<float>() != expected[t];
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace runnel
