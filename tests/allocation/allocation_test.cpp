// Counts every allocation of the process (this program replaces malloc's callers operator new and aligned_alloc):
// a small op in its steady state makes none.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <vector>

#include "runnel/autodiff/tape.h"
#include "runnel/ops/lookup.h"
#include "runnel/ops/math.h"
#include "runnel/tensor/allocator.h"

namespace {

std::atomic<int64_t> allocations{0};
thread_local int64_t fails_in = 0;  // the number of the next allocation that finds no memory; 0: none

void* counted(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (fails_in > 0 && --fails_in == 0) throw std::bad_alloc();
  if (void* p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
  throw std::bad_alloc();
}
void* counted_aligned(size_t bytes, std::align_val_t align) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const auto a = static_cast<size_t>(align);
  if (void* p = std::aligned_alloc(a, (bytes + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t bytes) { return counted(bytes); }
void* operator new[](size_t bytes) { return counted(bytes); }
void* operator new(size_t bytes, std::align_val_t align) { return counted_aligned(bytes, align); }
void* operator new[](size_t bytes, std::align_val_t align) { return counted_aligned(bytes, align); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }

namespace runnel {
namespace {

// Allocations of the heap and of the tensor memory's own source while `step` runs, after it has warmed up.
template <class F>
int64_t allocations_of(int times, F step) {
  for (int i = 0; i < 100; ++i) step();
  host_memory::stats();  // allocates when first called
  const int64_t before = allocations.load() + host_memory::stats().from_system;
  for (int i = 0; i < times; ++i) step();
  return allocations.load() + host_memory::stats().from_system - before;
}

Tensor ten(float value) {
  Tensor t = Tensor::empty(float32, {10});
  for (int i = 0; i < 10; ++i) t.mutable_data<float>()[i] = value;
  return t;
}

TEST(AllocationTest, TheCounterCounts) {
  static int* volatile kept = nullptr;  // the compiler may leave out a pair of new and delete that nobody sees
  EXPECT_EQ(allocations_of(10,
                           [] {
                             kept = new int(1);
                             delete kept;
                           }),
            10);
}

TEST(AllocationTest, AddMakesNone) {
  const Tensor x = ten(1);
  const Tensor y = ten(2);
  Tensor z;
  EXPECT_EQ(allocations_of(1000, [&] { z = add(x, y); }), 0);
  EXPECT_EQ(allocations_of(1000, [&] { z = x * y - x; }), 0);
  EXPECT_EQ(z.host<float>()[9], 1);
}

TEST(AllocationTest, ALiteralMakesNone) {
  const Tensor x = ten(1);
  Tensor z;
  EXPECT_EQ(allocations_of(1000, [&] { z = 2 * x + 0.5f; }), 0);
  EXPECT_EQ(z.host<float>()[0], 2.5f);
}

TEST(AllocationTest, ATableStaysWholeWithoutMemory) {
  std::vector<int64_t> numbers(20);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  const Tensor all = Tensor::of<int64_t>(numbers), missing(int64_t{-1});
  int failed = 0;
  for (int64_t n = 1; n < 60; ++n) {
    lookup::MutableHashTable table(DType::int64, DType::int64, missing);
    table.insert(Tensor{int64_t{100}}, Tensor{int64_t{100}});
    fails_in = n;
    try {
      table.insert(all, all);
    } catch (const std::exception&) {
      ++failed;
    }
    fails_in = 0;
    table.insert(Tensor{int64_t{200}, int64_t{300}}, Tensor{int64_t{200}, int64_t{300}});
    const std::vector<int64_t> found = table.lookup(all).to_vector<int64_t>();
    int64_t there = 3;
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] == -1) continue;
      EXPECT_EQ(found[i], numbers[i]) << "allocation " << n;
      ++there;
    }
    EXPECT_EQ(table.size(), there);
    const auto [keys, values] = table.export_contents();
    EXPECT_EQ(keys.to_vector<int64_t>(), values.to_vector<int64_t>());
  }
  EXPECT_GT(failed, 20);
}

TEST(AllocationTest, RecordingGrowsOnlyTheTape) {
  const Tensor x = ten(1);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor y = x;
  // The tape keeps the tensors, so their memory is fresh; its own lists double now and then.
  const int64_t made = allocations_of(1000, [&] { y = y + x; });
  EXPECT_LT(made, 2500);
}

}  // namespace
}  // namespace runnel
