#include "runnel/kernels/cpu/dnnl_common.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "runnel/kernels/cpu/scratch.h"

namespace runnel::cpu {
namespace {

// OpenMP as the library loaded it: the tests do not link it themselves.
int omp_get_max_threads() { return reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"))(); }
void omp_set_num_threads(int n) { reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))(n); }

TEST(OneThread, RestoresTheCallersCount) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(5);
  {
    OneThread outer;
    EXPECT_EQ(1, omp_get_max_threads());
    OneThread inner;
    EXPECT_EQ(1, omp_get_max_threads());
  }
  EXPECT_EQ(5, omp_get_max_threads());
  omp_set_num_threads(before);
}

struct Numbered : Plan {
  explicit Numbered(int64_t n) : number(n) {}
  int64_t number;
};

PlanKey key_of(int64_t n) {
  PlanKey key;
  key.add(n);
  for (int i = 0; i < 24; ++i) key.add(i);
  return key;
}

TEST(PlanCache, KeepsTheMostRecentlyUsed) {
  PlanCache cache(3);
  int made = 0;
  auto get = [&](int64_t n) {
    return cache
        .get<Numbered>(key_of(n),
                       [&] {
                         ++made;
                         return std::make_shared<Numbered>(n);
                       })
        ->number;
  };
  for (int64_t n : {1, 2, 3}) EXPECT_EQ(n, get(n));
  EXPECT_EQ(1, get(1));
  EXPECT_EQ(3, made);
  EXPECT_EQ(4, get(4));  // 2 leaves
  EXPECT_EQ(3u, cache.size());
  EXPECT_EQ(1, get(1));
  EXPECT_EQ(3, get(3));
  EXPECT_EQ(4, made);
  EXPECT_EQ(2, get(2));
  EXPECT_EQ(5, made);
}

struct SizedPlan : Plan {
  explicit SizedPlan(size_t n) : n(n) {}
  size_t bytes() const override { return n; }
  size_t n;
};

TEST(PlanCache, HoldsNoMoreBytesThanItMay) {
  PlanCache cache(100, 10);
  const auto get = [&](int64_t n) {
    PlanKey key;
    key.add(n);
    return cache.get<SizedPlan>(key, [n] { return std::make_shared<SizedPlan>(static_cast<size_t>(n)); })->n;
  };
  for (const int64_t n : {4, 5, 1}) get(n);
  EXPECT_EQ(cache.size(), 3u);
  get(3);  // without the 4, the oldest
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_EQ(get(50), 50u);  // more than all: alone
  EXPECT_EQ(cache.size(), 1u);
  get(2);
  EXPECT_EQ(cache.size(), 1u);
}

TEST(PlanCache, ServesManyThreads) {
  PlanCache cache(8);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 5000; ++i) {
        const int64_t n = (i * 7 + t) % 13;
        if (cache.get<Numbered>(key_of(n), [&] { return std::make_shared<Numbered>(n); })->number != n) ++wrong;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(0, wrong);
  EXPECT_LE(cache.size(), 8u);
}

TEST(Scratch, FramesNestAndReuse) {
  void* first = nullptr;
  for (int round = 0; round < 3; ++round) {
    ScratchFrame outer;
    auto* a = outer.get<int>(1000);
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(a) % 64);
    for (int i = 0; i < 1000; ++i) a[i] = i;
    {
      ScratchFrame inner;
      auto* big = inner.get<int>(3 << 20);
      big[0] = big[(3 << 20) - 1] = 7;
    }
    auto* b = outer.get<int>(1000);
    for (int i = 0; i < 1000; ++i) b[i] = -1;
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(i, a[i]);
    if (round == 1) first = a;
    if (round == 2) {
      EXPECT_EQ(first, a);  // settled
    }
  }
}

}  // namespace
}  // namespace runnel::cpu
