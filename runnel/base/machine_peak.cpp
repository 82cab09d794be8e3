#include "runnel/base/machine_peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "runnel/base/cpu.h"
#include "runnel/base/function_ref.h"
#include "runnel/base/parallel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace runnel {
namespace {

constexpr int64_t kRepeats = 250'000;  // of each chunk: half a millisecond
constexpr int64_t kChunks = 4;         // for each thread, so that one that starts late takes fewer
constexpr int kRounds = 5;             // the best of them counts: others are disturbed
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

// On as many threads as the pool has, but not on those: whoever asks may be inside a parallel_for, where the pool
// serves nobody else, and what is measured counts for the whole program.
void on_own_threads(int64_t pieces, FunctionRef<void(int64_t)> work) {
  std::atomic<int64_t> next = 0;
  const auto take_pieces = [&] {
    for (int64_t i = next++; i < pieces; i = next++) work(i);
  };
  std::vector<std::jthread> others;
  try {
    for (int i = 1; i < num_threads(); ++i) others.emplace_back(take_pieces);
  } catch (const std::system_error&) {  // the system has no more threads: those that there are take all pieces
  }
  take_pieces();
}

double measure_flops() {
  const MultiplyAdd loop = widest_multiply_add();
  const int64_t chunks = kChunks * num_threads();
  const double seconds = shortest_seconds(kRounds, [&] {
    on_own_threads(chunks, [&](int64_t) {
      volatile float sink = loop.run();
      static_cast<void>(sink);
    });
  });
  return static_cast<double>(chunks * kRepeats * kSums * loop.lanes * 2) / seconds;
}

double measure_bytes() {
  constexpr int64_t size = int64_t{64} << 20;  // twice, which most caches do not hold
  constexpr int64_t piece = int64_t{1} << 20;
  const auto from = std::make_unique_for_overwrite<char[]>(size);
  const auto to = std::make_unique_for_overwrite<char[]>(size);
  on_own_threads(size / piece, [&](int64_t i) {  // the pages are there before the clock runs
    std::memset(from.get() + i * piece, 1, piece);
    std::memset(to.get() + i * piece, 2, piece);
  });
  const double seconds = shortest_seconds(3, [&] {
    on_own_threads(size / piece, [&](int64_t i) { std::memcpy(to.get() + i * piece, from.get() + i * piece, piece); });
  });
  return static_cast<double>(2 * size) / seconds;
}

}  // namespace

const MachinePeak& machine_peak() {
  static const MachinePeak peak{.flops_per_second = measure_flops(), .bytes_per_second = measure_bytes()};
  return peak;
}

}  // namespace runnel
