#include "runnel/kernels/cpu/copy.h"

#include <immintrin.h>

#include <algorithm>
#include <cstdlib>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/kernels/cpu/isa.h"

namespace runnel::cpu {
namespace {

// Elements that one chunk of a parallel copy moves.
constexpr int64_t kChunk = 1 << 15;
constexpr int64_t kTile = 32;

// The loops of a copy, outermost first: ordered by the target's strides, neighbours merged where both sides step
// through them uniformly, sizes of 1 dropped.
struct Plan {
  Dims dims, from, to;
  int64_t count = 1;

  int rank() const { return static_cast<int>(dims.size()); }
  void push(int64_t n, int64_t f, int64_t t) {
    dims.push_back(n);
    from.push_back(f);
    to.push_back(t);
  }
};

Plan make_plan(std::span<const int64_t> dims, std::span<const int64_t> from, std::span<const int64_t> to) {
  Plan plan;
  SmallVector<int, 8> order;
  for (size_t i = 0; i < dims.size(); ++i) {
    plan.count *= dims[i];
    if (dims[i] != 1) order.push_back(static_cast<int>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return std::abs(to[static_cast<size_t>(a)]) > std::abs(to[static_cast<size_t>(b)]);
  });
  for (int o : order) {
    const auto i = static_cast<size_t>(o);
    if (!plan.dims.empty() && plan.from.back() == from[i] * dims[i] && plan.to.back() == to[i] * dims[i]) {
      plan.dims.back() *= dims[i];
      plan.from.back() = from[i];
      plan.to.back() = to[i];
    } else {
      plan.push(dims[i], from[i], to[i]);
    }
  }
  if (plan.dims.empty()) plan.push(1, 1, 1);
  return plan;
}

// Offsets of both sides while walking the first `rank` loops of a plan in order.
class Cursor {
 public:
  Cursor(const Plan& plan, int rank, int64_t at) : plan_(plan), rank_(rank), index_(static_cast<size_t>(rank)) {
    for (int d = rank - 1; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      index_[i] = at % plan.dims[i];
      at /= plan.dims[i];
      from += index_[i] * plan.from[i];
      to += index_[i] * plan.to[i];
    }
  }
  void next() {
    for (int d = rank_ - 1; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      from += plan_.from[i];
      to += plan_.to[i];
      if (++index_[i] < plan_.dims[i]) return;
      index_[i] = 0;
      from -= plan_.from[i] * plan_.dims[i];
      to -= plan_.to[i] * plan_.dims[i];
    }
  }
  int64_t from = 0;
  int64_t to = 0;

 private:
  const Plan& plan_;
  int rank_;
  Dims index_;
};

// Calls body(cursor, begin, end) for pieces of the innermost loop, large plans in parallel.
template <class Body>
void for_rows(const Plan& plan, const Body& body) {
  const int outer = plan.rank() - 1;
  const int64_t inner = plan.dims.back();
  const int64_t rows = plan.count / inner;
  const int64_t piece = std::min(inner, kChunk);
  const int64_t pieces = (inner + piece - 1) / piece;
  parallel_for(rows * pieces, std::max<int64_t>(1, kChunk / piece), [&](int64_t begin, int64_t end) {
    Cursor cursor(plan, outer, begin / pieces);
    for (int64_t u = begin; u < end; ++u) {
      const int64_t at = u % pieces * piece;
      body(cursor, at, std::min(inner, at + piece));
      if (at + piece >= inner) cursor.next();
    }
  });
}

// to[a * to_stride + b] = from[b * from_stride + a] for a in [0, n), b in [0, m): a tile of a transposition.
template <class E>
void tile_plain(const E* from, int64_t from_stride, E* to, int64_t to_stride, int64_t n, int64_t m) {
  for (int64_t a = 0; a < n; ++a) {
    for (int64_t b = 0; b < m; ++b) to[a * to_stride + b] = from[b * from_stride + a];
  }
}

RUNNEL_AVX2 inline void transpose_8x8(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  __m256 r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_stride);
  for (int i = 0; i < 4; ++i) {
    s[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    s[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    r[4 * i] = _mm256_shuffle_ps(s[4 * i], s[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm256_shuffle_ps(s[4 * i], s[4 * i + 2], 0xee);
    r[4 * i + 2] = _mm256_shuffle_ps(s[4 * i + 1], s[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm256_shuffle_ps(s[4 * i + 1], s[4 * i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

RUNNEL_AVX2 inline void transpose_4x4(const double* from, int64_t from_stride, double* to, int64_t to_stride) {
  const __m256d a = _mm256_loadu_pd(from), b = _mm256_loadu_pd(from + from_stride),
                c = _mm256_loadu_pd(from + 2 * from_stride), d = _mm256_loadu_pd(from + 3 * from_stride);
  const __m256d ab = _mm256_unpacklo_pd(a, b), ba = _mm256_unpackhi_pd(a, b), cd = _mm256_unpacklo_pd(c, d),
                dc = _mm256_unpackhi_pd(c, d);
  _mm256_storeu_pd(to, _mm256_permute2f128_pd(ab, cd, 0x20));
  _mm256_storeu_pd(to + to_stride, _mm256_permute2f128_pd(ba, dc, 0x20));
  _mm256_storeu_pd(to + 2 * to_stride, _mm256_permute2f128_pd(ab, cd, 0x31));
  _mm256_storeu_pd(to + 3 * to_stride, _mm256_permute2f128_pd(ba, dc, 0x31));
}

// The registers hold bits only: no arithmetic touches them.
template <class E>
RUNNEL_AVX2 void tile_avx2(const E* from, int64_t from_stride, E* to, int64_t to_stride, int64_t n, int64_t m) {
  using F = std::conditional_t<sizeof(E) == 4, float, double>;
  constexpr int64_t kSide = sizeof(E) == 4 ? 8 : 4;
  int64_t a = 0;
  for (; a + kSide <= n; a += kSide) {
    int64_t b = 0;
    for (; b + kSide <= m; b += kSide) {
      const F* f = reinterpret_cast<const F*>(from + b * from_stride + a);
      F* t = reinterpret_cast<F*>(to + a * to_stride + b);
      if constexpr (sizeof(E) == 4) {
        transpose_8x8(f, from_stride, t, to_stride);
      } else {
        transpose_4x4(f, from_stride, t, to_stride);
      }
    }
    tile_plain(from + b * from_stride + a, from_stride, to + a * to_stride + b, to_stride, kSide, m - b);
  }
  tile_plain(from + a, from_stride, to + a * to_stride, to_stride, n - a, m);
}

template <class E>
void tile(const E* from, int64_t from_stride, E* to, int64_t to_stride, int64_t n, int64_t m) {
  if constexpr (std::is_trivially_copyable_v<E> && (sizeof(E) == 4 || sizeof(E) == 8)) {
    if (has_avx2()) return tile_avx2(from, from_stride, to, to_stride, n, m);
  }
  tile_plain(from, from_stride, to, to_stride, n, m);
}

// The innermost loop steps by one in the target, loop `across` by one in the source: both in tiles, so that each
// cache line is used whole while it is there.
template <class E>
void copy_transposed(const Plan& plan, size_t across, const E* from, E* to) {
  const size_t last = plan.dims.size() - 1;
  Plan outer;
  outer.count = plan.count / (plan.dims[across] * plan.dims[last]);
  for (size_t i = 0; i < last; ++i) {
    if (i != across) outer.push(plan.dims[i], plan.from[i], plan.to[i]);
  }
  const int64_t n = plan.dims[across], m = plan.dims[last];
  const int64_t from_stride = plan.from[last], to_stride = plan.to[across];
  const int64_t strips = (n + kTile - 1) / kTile;
  const int64_t grain = std::max<int64_t>(1, kChunk / (std::min(n, kTile) * m));
  parallel_for(outer.count * strips, grain, [&](int64_t begin, int64_t end) {
    Cursor cursor(outer, outer.rank(), begin / strips);
    for (int64_t u = begin; u < end; ++u) {
      const int64_t a = u % strips * kTile;
      const int64_t rows = std::min(kTile, n - a);
      const E* f = from + cursor.from + a;
      E* t = to + cursor.to + a * to_stride;
      for (int64_t b = 0; b < m; b += kTile) {
        tile(f + b * from_stride, from_stride, t + b, to_stride, rows, std::min(kTile, m - b));
      }
      if (a + kTile >= n) cursor.next();
    }
  });
}

// to[i] = from[-i]
template <class E>
RUNNEL_INLINE void reverse_body(const E* from, E* to, int64_t n) {
  if constexpr (has_loose_integer<E>) {
    const auto* f = reinterpret_cast<const typename LooseInteger<sizeof(E)>::type*>(from);
    auto* t = reinterpret_cast<typename LooseInteger<sizeof(E)>::type*>(to);
    RUNNEL_IVDEP
    for (int64_t i = 0; i < n; ++i) t[i] = f[-i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
  }
}
template <class E>
void reverse_plain(const E* from, E* to, int64_t n) {
  reverse_body(from, to, n);
}
template <class E>
RUNNEL_AVX2 void reverse_avx2(const E* from, E* to, int64_t n) {
  reverse_body(from, to, n);
}

template <class E>
void run(const Plan& plan, const E* from, E* to);

// Short runs that are contiguous on both sides move as one larger element.
template <class E>
bool run_widened(const Plan& plan, const E* from, E* to) {
  if constexpr (!std::is_trivially_copyable_v<E> || sizeof(E) == 16) {
    return false;
  } else {
    const int64_t inner = plan.dims.back();
    const int64_t bytes = inner * static_cast<int64_t>(sizeof(E));
    if (plan.rank() < 2 || (bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16)) return false;
    Plan wide;
    wide.count = plan.count / inner;
    for (size_t i = 0; i + 1 < plan.dims.size(); ++i) {
      if (plan.from[i] % inner != 0 || plan.to[i] % inner != 0) return false;
      wide.push(plan.dims[i], plan.from[i] / inner, plan.to[i] / inner);
    }
    auto go = [&]<size_t N>() { run(wide, reinterpret_cast<const Cell<N>*>(from), reinterpret_cast<Cell<N>*>(to)); };
    if (bytes == 2) go.template operator()<2>();
    if (bytes == 4) go.template operator()<4>();
    if (bytes == 8) go.template operator()<8>();
    if (bytes == 16) go.template operator()<16>();
    return true;
  }
}

template <class E>
void run(const Plan& plan, const E* from, E* to) {
  const int64_t from_step = plan.from.back();
  const int64_t to_step = plan.to.back();
  if (from_step == 1 && to_step == 1) {
    if (run_widened(plan, from, to)) return;
    return for_rows(plan, [&](const Cursor& c, int64_t begin, int64_t end) {
      copy_run(from + c.from + begin, to + c.to + begin, end - begin);
    });
  }
  if (from_step == 0 && to_step == 1) {
    return for_rows(plan, [&](const Cursor& c, int64_t begin, int64_t end) {
      const E value = from[c.from];
      fill_run(value, to + c.to + begin, end - begin);
    });
  }
  if (to_step == 1) {
    for (size_t i = 0; i + 1 < plan.dims.size(); ++i) {
      if (plan.from[i] == 1) return copy_transposed(plan, i, from, to);
    }
  }
  if (from_step == -1 && to_step == 1) {
    const auto reverse = std::is_trivially_copyable_v<E> && has_avx2() ? &reverse_avx2<E> : &reverse_plain<E>;
    return for_rows(plan, [&](const Cursor& c, int64_t begin, int64_t end) {
      reverse(from + c.from - begin, to + c.to + begin, end - begin);
    });
  }
  for_rows(plan, [&](const Cursor& c, int64_t begin, int64_t end) {
    const E* f = from + c.from;
    E* t = to + c.to;
    for (int64_t i = begin; i < end; ++i) t[i * to_step] = f[i * from_step];
  });
}

}  // namespace

void copy_strided(DType dtype, std::span<const int64_t> dims, const void* from, std::span<const int64_t> from_strides,
                  void* to, std::span<const int64_t> to_strides) {
  const Plan plan = make_plan(dims, from_strides, to_strides);
  if (plan.count == 0) return;
  with_element(dtype, [&]<class E>() { run(plan, static_cast<const E*>(from), static_cast<E*>(to)); });
}

void copy_elements(DType dtype, const void* from, void* to, int64_t n) {
  with_element(dtype, [&]<class E>() {
    const E* f = static_cast<const E*>(from);
    E* t = static_cast<E*>(to);
    parallel_for(n, kChunk * 2, [&](int64_t begin, int64_t end) { copy_run(f + begin, t + begin, end - begin); });
  });
}

void transpose_tile(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t n, int64_t m) {
  tile(from, from_stride, to, to_stride, n, m);
}

runnel::Dims dense_strides(std::span<const int64_t> dims) {
  Dims strides(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = step;
    step *= dims[i];
  }
  return strides;
}

}  // namespace runnel::cpu
