// Many threads use one function at once: running, tracing, deriving. The sanitizer of threads watches.
#include <gtest/gtest.h>
#include <atomic>
#include <chrono>
#include <thread>

#include "runnel/function/traced_blocks.h"
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

// Ends the program where `body` takes too long: a deadlock would hang the suite.
void in_time(const std::function<void()>& body) {
  std::atomic<bool> done = false;
  std::thread watch([&] {
    for (int k = 0; k < 1200 && !done; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (!done) {
      std::fprintf(stderr, "threads wait for each other\n");
      std::abort();
    }
  });
  body();
  done = true;
  watch.join();
}

TEST(Threads, WorkersTraceWhileATraceWaitsForThem) {
  in_time([] {
    for (int round = 0; round < 100; ++round) {
      auto inner = function([](const Tensor& i) { return i * 2; });
      auto f = function([&](const Tensor& x) {
        int64_t sum = 0;
        auto it = data::range(20).map(inner, 2).make_iterator();
        while (const auto each = it.next()) sum += each->item<int64_t>();
        return x * static_cast<float>(sum);
      });
      EXPECT_EQ(f(Tensor(1.f)).item<float>(), 380);
    }
  });
}

TEST(Threads, WorkersCallTheFunctionThatIsBeingTraced) {
  in_time([] {
    for (int round = 0; round < 20; ++round) {
      std::function<Tensor(const Tensor&)> twice;
      auto f = function([&](const Tensor& x, bool all) {
        if (!all) return x * 2;
        float sum = 0;
        auto it = data::range(8).map([&](const Tensor& i) { return twice(i); }, 2).make_iterator();
        while (const auto each = it.next()) sum += static_cast<float>(each->item<int64_t>());
        return x * sum;
      });
      twice = [&](const Tensor& i) { return f(i, false); };
      EXPECT_EQ(f(Tensor(1.f), true).item<float>(), 56);
      EXPECT_EQ(f.num_traces(), 2);
    }
  });
}

TEST(Threads, AnIteratorThatEndsInATraceJoinsItsWorkers) {
  in_time([] {
    for (int round = 0; round < 20; ++round) {
      std::function<Tensor(const Tensor&)> twice;
      auto f = function([&](const Tensor& x, bool all) {
        if (!all) return x * 2;
        auto it = data::range(1000).map([&](const Tensor& i) { return twice(i); }, 2).make_iterator();
        return x * static_cast<float>(it.next()->item<int64_t>() + 1);
      });
      twice = [&](const Tensor& i) { return f(i, false); };
      EXPECT_EQ(f(Tensor(3.f), true).item<float>(), 3);
    }
  });
}

TEST(Threads, TwoFunctionsCallEachOther) {
  in_time([] {
    for (int round = 0; round < 50; ++round) {
      std::function<Tensor(const Tensor&)> call_f, call_g;
      auto f = function([&](const Tensor& x, int depth) { return depth == 0 ? x + 1 : call_g(x) * 2; });
      auto g = function([&](const Tensor& x, int depth) { return depth == 0 ? x + 10 : call_f(x) * 3; });
      call_f = [&](const Tensor& x) { return f(x, 0); };
      call_g = [&](const Tensor& x) { return g(x, 0); };
      in_threads([&](int t) {
        if (t % 2 == 0) {
          EXPECT_EQ(f(Tensor(1.f), 1).item<float>(), 22);
        } else {
          EXPECT_EQ(g(Tensor(1.f), 1).item<float>(), 6);
        }
      });
      EXPECT_EQ(f.num_traces(), 2);
      EXPECT_EQ(g.num_traces(), 2);
    }
  });
}

TEST(Threads, TheFirstTraceMakesTheVariables) {
  for (int round = 0; round < 10; ++round) {
    Variable v;
    std::atomic<int> made = 0;
    auto f = function([&](const Tensor& x) {
      if (!v.defined()) {
        ++made;
        v = Variable(2.f);
      }
      return x * v;
    });
    in_threads([&](int t) { EXPECT_EQ(f(Tensor(static_cast<float>(t))).item<float>(), 2.f * t); });
    EXPECT_EQ(made, 1);
  }
}

TEST(Threads, ATraceThatFailsGivesItsTurnOn) {
  std::atomic<int> calls = 0;
  auto f = function([&](const Tensor& x) {
    if (++calls < 4) throw Error(Code::aborted, "not yet");
    return x * 2;
  });
  std::atomic<int> failures = 0;
  in_time([&] {
    in_threads([&](int) {
      try {
        EXPECT_EQ(f(Tensor(1.f)).item<float>(), 2);
      } catch (const Error&) {
        ++failures;
      }
    });
  });
  EXPECT_EQ(failures, 3);
  EXPECT_EQ(f.num_traces(), 1);
}

}  // namespace
}  // namespace runnel
