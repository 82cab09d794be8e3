// Many threads use one function at once: running, tracing, deriving. The sanitizer of threads watches.
#include <gtest/gtest.h>

#include <thread>

#include "runnel/function/natural.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

constexpr int kThreads = 6;

// Runs `body(t)` in every thread at once and hands on the first exception.
void in_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors(kThreads);
  std::atomic<int> ready = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      try {
        body(t);
      } catch (...) {
        errors[static_cast<size_t>(t)] = std::current_exception();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& e : errors) {
    if (e) std::rethrow_exception(e);
  }
}

TEST(Threads, LoopsBranchesAndLargeValues) {
  const Tensor w = random::normal({40, 40});
  auto f = function([&](const Tensor& x, const Tensor& n) {
    Tensor y = x;
    Tensor i = n * 0;
    WHILE(i < n) {
      IF(i % 2 == 0) { y = tanh(matmul(y, w)); }
      else {
        y = y * 0.5f + x;
      }
      i = i + 1;
    }
    return reduce_sum(y);
  });
  std::vector<Tensor> inputs;
  std::vector<float> want;
  for (int t = 0; t < kThreads; ++t) {
    inputs.push_back(random::normal({50 + 20 * t, 40}));
    want.push_back(f(inputs.back(), Tensor(t + 1)).item<float>());
  }
  in_threads([&](int t) {
    for (int k = 0; k < 20; ++k) {
      const int which = (t + k) % kThreads;
      const Tensor got = f(inputs[static_cast<size_t>(which)], Tensor(which + 1));
      EXPECT_EQ(got.item<float>(), want[static_cast<size_t>(which)]);
    }
  });
}

TEST(Threads, TraceTheSameFunctionForTheFirstTime) {
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> traces = 0;
    auto inner = function([&](const Tensor& x) {
      ++traces;
      return x * 2;
    });
    auto f = function([&](const Tensor& x) { return inner(x) + inner(x * x); });
    in_threads([&](int t) { EXPECT_EQ(f(Tensor(static_cast<float>(t))).item<float>(), 2.f * t + 2.f * t * t); });
    EXPECT_EQ(traces, 1);
    EXPECT_EQ(f.num_traces(), 1);
  }
}

TEST(Threads, DeriveTheSameFunctionForTheFirstTime) {
  for (int round = 0; round < 3; ++round) {
    auto f = function([](const Tensor& x) {
      return std::get<1>(while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                                    [](const Tensor& i, const Tensor& y) {
                                      return std::tuple{i + 1,
                                                        cond(
                                                            y > 0, [&] { return sin(y); }, [&] { return y * y; })};
                                    },
                                    std::tuple{Tensor(0), x}));
    });
    const Tensor x(0.5f);
    std::vector<float> slopes(kThreads);
    in_threads([&](int t) {
      GradientTape outer;
      outer.watch(x);
      GradientTape tape;
      tape.watch(x);
      const Tensor d = tape.gradient(f(x), x);
      slopes[static_cast<size_t>(t)] = d.item<float>() + Tensor(outer.gradient(d, x)).item<float>();
    });
    for (const float s : slopes) EXPECT_EQ(s, slopes[0]);
  }
}

TEST(Threads, UpdatesOfAVariableAreNotLost) {
  const Variable v(0.f);
  auto add = function([&](const Tensor& x) { v.assign_add(x); });
  add(Tensor(0.f));
  in_threads([&](int) {
    for (int k = 0; k < 50; ++k) add(Tensor(1.f));
  });
  EXPECT_EQ(v.value().item<float>(), 50.f * kThreads);
}

TEST(Threads, AnErrorOfOneIsNotTheOthers) {
  auto f = function([](const Tensor& x) {
    assert_(reduce_all(x > 0), {x});
    return reduce_sum(x);
  });
  f(ones({100}));
  in_threads([&](int t) {
    for (int k = 0; k < 20; ++k) {
      if (t % 2 == 0) {
        EXPECT_EQ(f(ones({100})).item<float>(), 100);
      } else {
        EXPECT_THROW(f(zeros({100})), Error);
      }
    }
  });
}

TEST(Threads, FewTracesAndManySignatures) {
  FunctionOptions options;
  options.max_traces = 2;
  auto f = function([](const Tensor& x) { return reduce_sum(x) * 2; }, options);
  testing::internal::CaptureStderr();
  in_threads([&](int t) {
    for (int k = 0; k < 10; ++k) {
      const int n = (t + k) % 5 + 1;
      EXPECT_EQ(f(ones({n})).item<float>(), 2.f * static_cast<float>(n));
    }
  });
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace runnel
