#include "runnel/base/machine_peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>

#include "runnel/base/cpu.h"
#include "runnel/base/cpu_count.h"
#include "runnel/base/parallel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace runnel {
namespace {

constexpr int64_t kRepeats = 1'000'000;  // of each round: two milliseconds
constexpr int kRounds = 5;               // the best of them counts: others are disturbed
// Twelve sums: more than one thread of a CPU has under way at a time.
constexpr int kSums = 12;

// Each function does kRepeats * kSums vector steps of multiply and add, and gives a number that depends on all of them.
// The factors keep the sums near 1: no denormals, no infinities.
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) float multiply_add_avx2() {
  __m256 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm256_set1_ps(1.f + static_cast<float>(i) * 0.01f);
  const __m256 factor = _mm256_set1_ps(0.999f), more = _mm256_set1_ps(0.001f);
  for (int64_t k = 0; k < kRepeats; ++k) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, more);
  }
  for (int i = 1; i < kSums; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  return _mm256_cvtss_f32(sums[0]);
}
__attribute__((target("avx512f"))) float multiply_add_avx512() {
  __m512 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_set1_ps(1.f + static_cast<float>(i) * 0.01f);
  const __m512 factor = _mm512_set1_ps(0.999f), more = _mm512_set1_ps(0.001f);
  for (int64_t k = 0; k < kRepeats; ++k) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, more);
  }
  for (int i = 1; i < kSums; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  return _mm512_cvtss_f32(sums[0]);
}
float multiply_add_baseline() {
  __m128 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm_set1_ps(1.f + static_cast<float>(i) * 0.01f);
  const __m128 factor = _mm_set1_ps(0.999f), more = _mm_set1_ps(0.001f);
  for (int64_t k = 0; k < kRepeats; ++k) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = _mm_add_ps(_mm_mul_ps(sums[i], factor), more);
  }
  for (int i = 1; i < kSums; ++i) sums[0] = _mm_add_ps(sums[0], sums[i]);
  return _mm_cvtss_f32(sums[0]);
}
#endif

struct MultiplyAdd {
  float (*run)();
  int lanes;
};
MultiplyAdd widest_multiply_add() {
  if (has_avx512()) return {multiply_add_avx512, 16};
  if (has_avx2()) return {multiply_add_avx2, 8};
  return {multiply_add_baseline, 4};
}

template <class Work>
double shortest_seconds(int rounds, Work&& work) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = Clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

// Of one thread, times those that can run at once: whoever asks may be inside a parallel_for, where the pool serves
// nobody else.
double measure_flops() {
  const MultiplyAdd loop = widest_multiply_add();
  const double seconds = shortest_seconds(kRounds, [&] {
    volatile float sink = loop.run();
    static_cast<void>(sink);
  });
  return static_cast<double>(kRepeats * kSums * loop.lanes * 2) / seconds * std::min(num_threads(), usable_cpus());
}

double measure_bytes() {
  constexpr int64_t size = int64_t{64} << 20;  // twice, which most caches do not hold
  constexpr int64_t piece = int64_t{1} << 20;
  const auto from = std::make_unique_for_overwrite<char[]>(size);
  const auto to = std::make_unique_for_overwrite<char[]>(size);
  parallel_for(size, piece, [&](int64_t begin, int64_t end) {  // the pages are there before the clock runs
    std::memset(from.get() + begin, 1, static_cast<size_t>(end - begin));
    std::memset(to.get() + begin, 2, static_cast<size_t>(end - begin));
  });
  const double seconds = shortest_seconds(3, [&] {
    parallel_for(size, piece, [&](int64_t begin, int64_t end) {
      std::memcpy(to.get() + begin, from.get() + begin, static_cast<size_t>(end - begin));
    });
  });
  return static_cast<double>(2 * size) / seconds;
}

}  // namespace

const MachinePeak& machine_peak() {
  // Memory is measured with the pool, so from a thread that is in no parallel_for and no SerialScope.
  static const MachinePeak peak{.flops_per_second = measure_flops(),
                                .bytes_per_second = std::async(std::launch::async, measure_bytes).get()};
  return peak;
}

}  // namespace runnel
