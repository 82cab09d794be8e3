#include "runnel/base/parallel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runnel/base/error.h"

#if defined(__SANITIZE_THREAD__)
#define RUNNEL_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RUNNEL_UNDER_TSAN 1
#endif
#endif

namespace runnel {
namespace {

// Threads of this process that the pool owns.
int worker_count() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    if (FILE* f = std::fopen((task.path() / "comm").c_str(), "r")) {
      char line[64] = {};
      if (std::fgets(line, sizeof(line), f) != nullptr) name = line;
      std::fclose(f);
    }
    if (name == "runnel\n") ++count;
  }
  return count;
}

// The system lists a joined thread for a moment longer, and a new one before it has its name: so this waits, within
// reason.
int worker_count_settling_at(int expected) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (worker_count() != expected && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return worker_count();
}

class ParallelFor : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_num_threads(GetParam()); }
  void TearDown() override { set_num_threads(2); }
};
INSTANTIATE_TEST_SUITE_P(Threads, ParallelFor, testing::Values(1, 2, 5));

TEST_P(ParallelFor, CoversEveryRangeExactlyOnce) {
  for (int64_t n : {0, 1, 2, 7, 64, 1000, 4097}) {
    for (int64_t grain : {1, 2, 3, 64, 999, 1000, 5000}) {
      std::mutex mutex;
      std::set<std::pair<int64_t, int64_t>> seen;
      int calls = 0;
      parallel_for(n, grain, [&](int64_t begin, int64_t end) {
        const std::lock_guard lock(mutex);
        seen.emplace(begin, end);
        ++calls;
      });
      std::set<std::pair<int64_t, int64_t>> want;
      for (int64_t i = 0; i < n; i += grain) want.emplace(i, std::min(n, i + grain));
      ASSERT_EQ(seen, want) << n << " by " << grain;
      ASSERT_EQ(calls, static_cast<int>(want.size()));
    }
  }
}

TEST_P(ParallelFor, WritesOfAllRangesAreVisibleAfterwards) {
  std::vector<int64_t> out(10000);
  for (int round = 0; round < 300; ++round) {
    parallel_for(10000, 100, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[static_cast<size_t>(i)] = i * round;
    });
    for (int64_t i = 0; i < 10000; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], i * round);
  }
}

TEST_P(ParallelFor, NestedCallsRunOnTheSameThread) {
  std::atomic<int> inner{0};
  std::atomic<bool> moved{false};
  parallel_for(64, 1, [&](int64_t, int64_t) {
    const auto me = std::this_thread::get_id();
    int64_t next = 0;
    parallel_for(100, 9, [&](int64_t begin, int64_t end) {
      if (std::this_thread::get_id() != me || begin != next) moved = true;
      next = end;
      ++inner;
      parallel_for(4, 1, [&](int64_t, int64_t) {
        if (std::this_thread::get_id() != me) moved = true;
      });
    });
  });
  EXPECT_EQ(inner, 64 * 12);
  EXPECT_FALSE(moved);
}

TEST_P(ParallelFor, LowestExceptionWinsAndEveryRangeRuns) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> calls{0};
    try {
      parallel_for(200, 1, [&](int64_t begin, int64_t) {
        ++calls;
        if (begin >= 37 && begin % 2 == 1) throw std::runtime_error(std::to_string(begin));
      });
      FAIL() << "nothing thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "37");
    }
    EXPECT_EQ(calls, 200);
    std::atomic<int64_t> sum{0};
    parallel_for(100, 10, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 100);
  }
}

TEST_P(ParallelFor, SingleRangeExceptionPasses) {
  EXPECT_THROW(parallel_for(3, 5, [](int64_t, int64_t) { throw Error(Code::aborted, "x"); }), Error);
}

TEST_P(ParallelFor, SerialScopeKeepsToTheCaller) {
  const auto me = std::this_thread::get_id();
  const SerialScope outer;
  { const SerialScope inner; }
  int64_t next = 0;
  bool in_order = true;
  parallel_for(1000, 1, [&](int64_t begin, int64_t end) {
    in_order &= begin == next && std::this_thread::get_id() == me;
    next = end;
  });
  EXPECT_TRUE(in_order);
}

TEST_P(ParallelFor, ManyCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      std::vector<int64_t> out(500);
      for (int round = 0; round < 400; ++round) {
        parallel_for(500, 1 + (round % 17), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) out[static_cast<size_t>(i)] = i + round + c;
          if (round % 50 == 7) parallel_for(8, 1, [](int64_t, int64_t) {});
        });
        for (int64_t i = 0; i < 500; ++i) wrong += out[static_cast<size_t>(i)] != i + round + c;
        try {
          parallel_for(40, 3, [&](int64_t begin, int64_t) {
            if (begin >= 12) throw begin;
          });
          ++wrong;
        } catch (int64_t begin) {
          wrong += begin != 12;
        }
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(ParallelFor, ReduceHasTheBitsOfTheOrderedSum) {
  std::vector<float> x(100003);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1.0f / static_cast<float>(1 + (i * 7919) % 1000);
  const int64_t n = static_cast<int64_t>(x.size());
  const auto sum = [&](int64_t begin, int64_t end) {
    float s = 0;
    for (int64_t i = begin; i < end; ++i) s += x[static_cast<size_t>(i)];
    return s;
  };
  float want = 0;
  for (int64_t i = 0; i < n; i += 1000) want += sum(i, std::min(n, i + 1000));
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(parallel_reduce(n, 1000, 0.0f, sum, [](float a, float b) { return a + b; }), want);
  }
  const auto join = [](std::string a, std::string b) { return a + b; };
  const auto name = [](int64_t begin, int64_t end) { return std::to_string(begin) + "-" + std::to_string(end) + " "; };
  EXPECT_EQ(parallel_reduce(7, 3, std::string(">"), name, join), ">0-3 3-6 6-7 ");
  EXPECT_EQ(parallel_reduce(3, 3, std::string(">"), name, join), ">0-3 ");
  EXPECT_EQ(parallel_reduce(0, 3, std::string(">"), name, join), ">");
  EXPECT_TRUE(parallel_reduce(
      64, 1, false, [](int64_t b, int64_t) { return b == 50; }, [](bool a, bool b) { return a || b; }));
}

// What the caller touched last is what it touches first in the next call.
TEST_P(ParallelFor, CallsTakeTurnsInTheirDirection) {
  const auto me = std::this_thread::get_id();
  const int64_t n = 60, first_share = n / GetParam();
  const auto callers_order = [&] {
    std::vector<int64_t> order;
    parallel_for(n, 1, [&](int64_t i, int64_t) {
      if (std::this_thread::get_id() == me) order.push_back(i);
    });
    order.resize(static_cast<size_t>(first_share));
    return order;
  };
  std::vector<int64_t> up(static_cast<size_t>(first_share));
  std::iota(up.begin(), up.end(), 0);
  const std::vector<int64_t> down(up.rbegin(), up.rend());
  bool goes_up = callers_order() == up;
  for (int call = 0; call < 10; ++call) {
    goes_up = !goes_up;
    EXPECT_EQ(callers_order(), goes_up ? up : down);
  }
}

TEST_P(ParallelFor, WakesWorkersThatWentToSleep) {
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> calls{0};
    parallel_for(8, 1, [&](int64_t, int64_t) { ++calls; });
    ASSERT_EQ(calls, 8);
  }
}

TEST(Parallel, WorkersTakePart) {
  set_num_threads(3);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  // One worker has to be given a processor while the caller works; on a busy machine that takes a while.
  for (int round = 0; round < 200 && ids.size() < 2; ++round) {
    parallel_for(16, 1, [&](int64_t, int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
  }
  EXPECT_GE(ids.size(), 2u);
  EXPECT_LE(ids.size(), 3u);
  set_num_threads(2);
}

TEST(Parallel, ThreadCountMayChangeBetweenSections) {
  for (int n : {4, 1, 2, 7, 1, 3}) {
    set_num_threads(n);
    EXPECT_EQ(num_threads(), n);
    std::atomic<int64_t> sum{0};
    parallel_for(1000, 7, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 1000);
    EXPECT_EQ(worker_count_settling_at(n - 1), n - 1);
  }
  set_num_threads(2);
}

TEST(Parallel, ThreadCountMayChangeBesideOtherCallers) {
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 2; ++c) {
    callers.emplace_back([&] {
      while (!stop) {
        std::atomic<int64_t> sum{0};
        parallel_for(300, 2, [&](int64_t begin, int64_t end) { sum += end - begin; });
        wrong += sum != 300;
      }
    });
  }
  for (int round = 0; round < 30; ++round) set_num_threads(1 + round % 4);
  stop = true;
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
  set_num_threads(1);
  EXPECT_EQ(worker_count_settling_at(0), 0);
  set_num_threads(2);
}

TEST(Parallel, RefusesBadArguments) {
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(set_num_threads(-3), Error);
  EXPECT_THROW(set_num_threads(1 << 20), Error);
  EXPECT_THROW(parallel_for(10, 0, [](int64_t, int64_t) {}), Error);
  set_num_threads(2);
  try {
    parallel_for(4, 1, [](int64_t, int64_t) { set_num_threads(3); });
    FAIL() << "nothing thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::failed_precondition);
  }
  EXPECT_EQ(num_threads(), 2);
}

// The status of a child that runs f and then exits; kills it (and says -1) when it hangs.
template <class F>
int run_in_child(F&& f) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    f();
    std::_Exit(9);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Parallel, ForkedChildStartsOver) {
#ifdef RUNNEL_UNDER_TSAN
  GTEST_SKIP() << "ThreadSanitizer does not follow threads made after fork";
#endif
  set_num_threads(3);
  parallel_for(100, 1, [](int64_t, int64_t) {});
  std::atomic<bool> stop{false};
  std::thread busy([&] {  // so that some children are born while the pool runs a job of another thread
    while (!stop) parallel_for(64, 1, [](int64_t, int64_t) {});
  });
  for (int round = 0; round < 10; ++round) {
    const int status = run_in_child([] {
      std::atomic<int> calls{0};
      for (int i = 0; i < 20; ++i) parallel_for(100, 1, [&](int64_t, int64_t) { ++calls; });
      const bool workers = worker_count() == 2;
      set_num_threads(2);
      parallel_for(100, 1, [&](int64_t, int64_t) { ++calls; });
      std::_Exit(calls == 2100 && workers ? 0 : 1);
    });
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
  set_num_threads(2);
}

struct CallsAtExit {
  std::atomic<int> calls{0};
  ~CallsAtExit() {
    parallel_for(10, 1, [&](int64_t, int64_t) { ++calls; });
    set_num_threads(2);
    std::_Exit(calls == 10 ? 7 : 8);
  }
};

// A program of its own: what happens at exit is the point. Run through fork and exec of this same test
// program.
TEST(ParallelExit, DISABLED_ExitsWhileWorkersWait) {
  static const CallsAtExit at_exit;  // made before the pool, so destroyed after it has shut down
  set_num_threads(4);
  parallel_for(100, 1, [](int64_t, int64_t) {});
  std::exit(0);
}
TEST(ParallelExit, DISABLED_ExitsInsideARange) {
  set_num_threads(4);
  parallel_for(100, 1, [](int64_t begin, int64_t) {
    if (begin == 50) std::exit(6);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
}
TEST(ParallelExit, DISABLED_ReadsTheEnvironment) {
  try {
    std::_Exit(num_threads());
  } catch (const Error& e) {
    std::_Exit(std::string(e.what()).find("RUNNEL_NUM_THREADS") != std::string::npos ? 100 : 101);
  }
}

int run_self(const std::string& test, const char* threads = nullptr) {
  const std::string exe = std::filesystem::read_symlink("/proc/self/exe");
  const std::string filter = "--gtest_filter=ParallelExit.DISABLED_" + test;
  const pid_t pid = fork();
  if (pid == 0) {
    if (threads != nullptr) setenv("RUNNEL_NUM_THREADS", threads, 1);
    alarm(60);
    if (std::freopen("/dev/null", "w", stdout) == nullptr) std::_Exit(99);
    execl(exe.c_str(), exe.c_str(), filter.c_str(), "--gtest_also_run_disabled_tests", nullptr);
    std::_Exit(98);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Parallel, ExitIsClean) {
  for (int round = 0; round < 5; ++round) EXPECT_EQ(run_self("ExitsWhileWorkersWait"), 7);
}

TEST(Parallel, ExitInsideARangeDoesNotHang) {
#ifdef RUNNEL_UNDER_TSAN
  GTEST_SKIP() << "ThreadSanitizer counts the unjoined workers as leaks";
#endif
  EXPECT_EQ(run_self("ExitsInsideARange"), 6);
}

TEST(Parallel, EnvironmentSetsTheDefault) {
  EXPECT_EQ(run_self("ReadsTheEnvironment", "3"), 3);
  EXPECT_EQ(run_self("ReadsTheEnvironment", "0"), 100);
  EXPECT_EQ(run_self("ReadsTheEnvironment", "two"), 100);
  EXPECT_EQ(run_self("ReadsTheEnvironment", "2x"), 100);
  EXPECT_EQ(run_self("ReadsTheEnvironment", ""), 100);
}

}  // namespace
}  // namespace runnel
