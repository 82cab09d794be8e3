#include "runnel/kernels/cpu/top_k.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <type_traits>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/convert.h"

#define RUNNEL_ISA_FILE "runnel/kernels/cpu/top_k_isa.h"
#define RUNNEL_ISA_WITH_AVX512
#include "runnel/base/cpu.h"
#include "runnel/kernels/cpu/foreach_isa.h"

namespace runnel::cpu {
namespace {

// An unsigned integer that is smaller the larger x is; equal values (the two zeros too) have equal keys.
template <class T>
using Key = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
template <class T>
Key<T> descending_key(T x) {
  using U = Key<T>;
  if constexpr (is_half<T>) {
    return descending_key(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<T>) {
    constexpr U sign = U{1} << (sizeof(U) * 8 - 1);
    if (x != x) return static_cast<U>(~U{0});
    // Without a branch on the sign, which would be guessed wrong.
    const U bits = x == 0 ? U{0} : std::bit_cast<U>(x);
    const U of_negative = static_cast<U>(U{0} - (bits >> (sizeof(U) * 8 - 1)));
    return static_cast<U>(bits ^ (~of_negative & ~sign));
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::make_signed_t<U>, U>;
    constexpr U flip = std::is_signed_v<T> ? U{1} << (sizeof(U) * 8 - 1) : U{0};
    return static_cast<U>(~(static_cast<U>(static_cast<Wide>(x)) ^ flip));
  }
}

// Sorting compares the key first, then the position.
struct WideEntry {
  uint64_t key;
  uint32_t at;
  bool operator<(const WideEntry& o) const { return key != o.key ? key < o.key : at < o.at; }
  uint32_t position() const { return at; }
};
struct PackedEntry {
  uint64_t packed;  // a 32-bit key above the position
  bool operator<(const PackedEntry& o) const { return packed < o.packed; }
  uint32_t position() const { return static_cast<uint32_t>(packed); }
};

PackedEntry entry(uint32_t key, int64_t at) { return {uint64_t{key} << 32 | static_cast<uint32_t>(at)}; }
WideEntry entry(uint64_t key, int64_t at) { return {key, static_cast<uint32_t>(at)}; }

template <class Entry>
void select(Entry* entries, int64_t n, int64_t k) {
  if (k < n) std::nth_element(entries, entries + k, entries + n);
  std::sort(entries, entries + k);
}

// Of a row with many more elements than k, those that may be among its best k; says how many. `kept` has room for
// kRoom * k: whenever it is full, the best k stay, and what is no better than the last of them is passed over.
constexpr int64_t kRoom = 4;
template <class T, class Entry>
int64_t candidates(const T* row, int64_t n, int64_t k, Entry* kept) {
  const int64_t room = kRoom * k;
  int64_t count = 0;
  for (int64_t i = 0; i < room; ++i) kept[count++] = entry(descending_key(row[i]), i);
  Entry last{};
  const auto keep_best = [&] {
    std::nth_element(kept, kept + k - 1, kept + count);
    last = kept[k - 1];
    count = k;
  };
  const auto look_at = [&](int64_t i) {
    const Entry e = entry(descending_key(row[i]), i);
    if (e < last) kept[count++] = e;
    if (count == room) keep_best();
  };
  keep_best();
  constexpr int64_t kSieved = 256;
  for (int64_t begin = room; begin < n; begin += kSieved) {
    const int64_t end = std::min(n, begin + kSieved);
    if constexpr (std::is_same_v<T, float>) {
      // Most are no better than the last of the best; one that is NaN is no bound.
      if (const float bound = row[last.position()]; bound == bound) {
        uint32_t at[kSieved];
        const int64_t found = RUNNEL_BEST_ISA(greater_than)(row + begin, end - begin, bound, at);
        for (int64_t f = 0; f < found; ++f) look_at(begin + at[f]);
        continue;
      }
    }
    for (int64_t i = begin; i < end; ++i) look_at(i);
  }
  return count;
}

}  // namespace

template <class T, class Index>
void top_k(const T* x, int64_t rows, int64_t n, int64_t k, T* values, Index* indices) {
  using Entry = decltype(entry(descending_key(T()), 0));
  if (k == 0) return;
  parallel_for(rows, std::max<int64_t>(1, 4096 / n), [&](int64_t begin, int64_t end) {
    const bool few = k <= n / (4 * kRoom);
    const auto entries = std::make_unique_for_overwrite<Entry[]>(static_cast<size_t>(few ? kRoom * k : n));
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * n;
      int64_t count = n;
      if (few) {
        count = candidates(row, n, k, entries.get());
      } else {
        for (int64_t i = 0; i < n; ++i) entries[static_cast<size_t>(i)] = entry(descending_key(row[i]), i);
      }
      select(entries.get(), count, k);
      for (int64_t i = 0; i < k; ++i) {
        const uint32_t at = entries[static_cast<size_t>(i)].position();
        values[r * k + i] = row[at];
        indices[r * k + i] = static_cast<Index>(at);
      }
    }
  });
}

#define RUNNEL_TOP_K(T)                                                   \
  template void top_k(const T*, int64_t, int64_t, int64_t, T*, int32_t*); \
  template void top_k(const T*, int64_t, int64_t, int64_t, T*, int64_t*);
RUNNEL_TOP_K(float)
RUNNEL_TOP_K(double)
RUNNEL_TOP_K(Half)
RUNNEL_TOP_K(BFloat16)
RUNNEL_TOP_K(int8_t)
RUNNEL_TOP_K(int16_t)
RUNNEL_TOP_K(int32_t)
RUNNEL_TOP_K(int64_t)
RUNNEL_TOP_K(uint8_t)
RUNNEL_TOP_K(uint16_t)
RUNNEL_TOP_K(uint32_t)
RUNNEL_TOP_K(uint64_t)

}  // namespace runnel::cpu
