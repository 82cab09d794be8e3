#include "runnel/tensor/allocator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "runnel/autodiff/tape.h"
#include "runnel/ops/math.h"
#include "tests/support/resident.h"

namespace runnel {
namespace {

TEST(AllocatorTest, BlocksAreAlignedAndReused) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{1000}, size_t{70'000}, size_t{5'000'000}}) {
    void* block = host_memory::allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u) << bytes;
    std::memset(block, 1, bytes);
    host_memory::release(block, bytes);
    EXPECT_EQ(host_memory::allocate(bytes), block) << bytes;
    host_memory::release(block, bytes);
  }
}

TEST(AllocatorTest, BlocksInUseDoNotOverlap) {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (size_t i = 0; i < 500; ++i) {
    const size_t bytes = (i * 7919) % 100'000 + 1;
    blocks.emplace_back(static_cast<unsigned char*>(host_memory::allocate(bytes)), bytes);
    std::memset(blocks.back().first, static_cast<int>(i % 251), bytes);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(blocks[i].first[0], i % 251);
    EXPECT_EQ(blocks[i].first[blocks[i].second - 1], i % 251);
    host_memory::release(blocks[i].first, blocks[i].second);
  }
}

TEST(AllocatorTest, StatsFollowLargeBlocks) {
  const auto before = host_memory::stats();
  host_memory::reset_peak();
  {
    const Tensor t = Tensor::empty(float32, {1 << 20});
    EXPECT_GE(host_memory::stats().in_use - before.in_use, int64_t{4} << 20);
    EXPECT_GE(host_memory::stats().peak, before.in_use + (int64_t{4} << 20));
  }
  EXPECT_EQ(host_memory::stats().in_use, before.in_use);
  EXPECT_GT(host_memory::stats().cached, 0);
  host_memory::trim();
  EXPECT_EQ(host_memory::stats().cached, 0);
}

TEST(AllocatorTest, ASteadySmallOpAsksNothingOfTheSystem) {
  const Tensor x{1.f, 2.f, 3.f};
  Tensor y = x;
  for (int i = 0; i < 100; ++i) y = x + y;
  const int64_t before = host_memory::stats().from_system;
  for (int i = 0; i < 10'000; ++i) y = x + y;
  EXPECT_EQ(host_memory::stats().from_system, before);
}

TEST(AllocatorTest, BlocksFreedByAnotherThreadComeBack) {
  const int64_t before = host_memory::stats().from_system;
  for (int round = 0; round < 200; ++round) {
    std::vector<Tensor> made;
    for (int i = 0; i < 100; ++i) made.push_back(Tensor::empty(float32, {1000}));
    std::thread([&] { made.clear(); }).join();
  }
  // 20,000 blocks of 4 KB went through; nearly all were second-hand.
  EXPECT_LT(host_memory::stats().from_system - before, 2000);
}

TEST(AllocatorTest, AMillionEagerOpsLeaveTheProcessItsSize) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer keeps freed memory";
  const Tensor x{1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f, 9.f, 10.f};
  auto work = [&](int n) {
    Tensor y = x;
    for (int i = 0; i < n; ++i) y = x * 0.5f + y * 0.5f;
    GradientTape tape;
    tape.watch(x);
    Tensor z = x;
    for (int i = 0; i < n / 1000; ++i) z = z * x;
    tape.gradient(z, x);
  };
  work(10'000);
  const int64_t before = test::resident_bytes();
  for (int i = 0; i < 33; ++i) work(10'000);  // three ops a step: a million
  EXPECT_LT(test::resident_bytes() - before, int64_t{2} << 20);
}

}  // namespace
}  // namespace runnel
