#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/gemm.h"
#include "runnel/kernels/cpu/isa.h"
#include "runnel/kernels/cpu/scratch.h"

namespace runnel::cpu {
namespace {

constexpr int64_t kBlock = 256;

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};

template <class T>
constexpr int kRows = IsComplex<T>::value ? 4 : 8;
template <class T>
constexpr int kColumns = sizeof(T) == 4 ? 16 : 8;

// Plain arithmetic: complex numbers without the library's recovery of infinities, integers that wrap around.
template <class T>
[[gnu::always_inline]] inline T multiply_add(T a, T b, T c) {
  if constexpr (IsComplex<T>::value) {
    return T(c.real() + (a.real() * b.real() - a.imag() * b.imag()),
             c.imag() + (a.real() * b.imag() + a.imag() * b.real()));
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;  // small ones would become int
    return static_cast<T>(static_cast<U>(c) + static_cast<U>(a) * static_cast<U>(b));
  } else {
    return c + a * b;
  }
}

// One row of a tile, for types that vectors hold; integers without a sign wrap around.
template <class T>
struct RowOf {
  using Element =
      typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  typedef Element type __attribute__((vector_size(kColumns<T> * sizeof(T))));
};

// acc[i][j] += sum_p a[p * kRows<T> + i] * b[p * kColumns + j]
template <class T>
[[gnu::always_inline]] inline void tile_body(int64_t k, const T* a, const T* b, T* acc) {
  constexpr int kN = kColumns<T>;
  if constexpr (IsComplex<T>::value) {
    T sum[kRows<T>][kN] = {};
    for (int64_t p = 0; p < k; ++p) {
      for (int i = 0; i < kRows<T>; ++i) {
        for (int j = 0; j < kN; ++j) sum[i][j] = multiply_add(a[p * kRows<T> + i], b[p * kN + j], sum[i][j]);
      }
    }
    for (int i = 0; i < kRows<T>; ++i) {
      for (int j = 0; j < kN; ++j) acc[i * kN + j] = sum[i][j];
    }
  } else {
    using Row = typename RowOf<T>::type;
    using Element = typename RowOf<T>::Element;
    Row sum[kRows<T>] = {};
    for (int64_t p = 0; p < k; ++p) {
      Row row;
      std::memcpy(&row, b + p * kN, sizeof row);
#pragma GCC unroll 8
      for (int i = 0; i < kRows<T>; ++i) {
        const auto x = static_cast<Element>(a[p * kRows<T> + i]);
        sum[i] += x * row;
      }
    }
    std::memcpy(acc, sum, sizeof sum);
  }
}
template <class T>
void tile_base(int64_t k, const T* a, const T* b, T* acc) {
  tile_body(k, a, b, acc);
}
template <class T>
RUNNEL_AVX2 void tile_avx2(int64_t k, const T* a, const T* b, T* acc) {
  tile_body(k, a, b, acc);
}
template <class T>
RUNNEL_AVX512 void tile_avx512(int64_t k, const T* a, const T* b, T* acc) {
  tile_body(k, a, b, acc);
}
template <class T>
auto tile_kernel() {
  if (has_avx512()) return &tile_avx512<T>;
  if (has_avx2()) return &tile_avx2<T>;
  return &tile_base<T>;
}

template <class T>
T conjugate(T x, bool on) {
  if constexpr (IsComplex<T>::value) return on ? std::conj(x) : x;
  (void)on;
  return x;
}

}  // namespace

template <class T>
void gemm_plain(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
                int64_t ldb, T beta, T* c, int64_t ldc, bool conj_a, bool conj_b) {
  if (m <= 0 || n <= 0) return;
  constexpr int kN = kColumns<T>;
  const int64_t a_row = ta ? 1 : lda, a_k = ta ? lda : 1, b_column = tb ? ldb : 1, b_k = tb ? 1 : ldb;
  auto scale = [&](T* row, int64_t columns) {
    for (int64_t j = 0; j < columns; ++j) row[j] = beta == T{} ? T{} : multiply_add(beta, row[j], T{});
  };
  if (k <= 0) {
    for (int64_t i = 0; i < m; ++i) scale(c + i * ldc, n);
    return;
  }
  const auto kernel = tile_kernel<T>();
  // A task owns rows; it packs its rows of A per block of k, and every panel of B as it comes.
  const double work = static_cast<double>(n) * static_cast<double>(k);
  const int64_t wanted = static_cast<int64_t>(std::max(1.0, 400e3 / work));
  const int64_t grain =
      std::max<int64_t>({(wanted + kRows<T> - 1) / kRows<T> * kRows<T>, m / 64 / kRows<T> * kRows<T>, 8 * kRows<T>});
  parallel_for(m, grain, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    T* pa = frame.get<T>(((end - begin) + kRows<T>)*kBlock);
    T* pb = frame.get<T>(kN * kBlock);
    T acc[kRows<T> * kN];
    for (int64_t i = begin; i < end; ++i) scale(c + i * ldc, n);
    for (int64_t k0 = 0; k0 < k; k0 += kBlock) {
      const int64_t kc = std::min(kBlock, k - k0);
      for (int64_t i = begin; i < end; i += kRows<T>) {
        T* out = pa + (i - begin) * kc;
        for (int64_t p = 0; p < kc; ++p) {
          for (int r = 0; r < kRows<T>; ++r) {
            out[p * kRows<T> + r] = i + r < end ? conjugate(a[(i + r) * a_row + (k0 + p) * a_k], conj_a) : T{};
          }
        }
      }
      for (int64_t j = 0; j < n; j += kN) {
        const int64_t columns = std::min<int64_t>(kN, n - j);
        for (int64_t p = 0; p < kc; ++p) {
          const T* src = b + (k0 + p) * b_k + j * b_column;
          for (int64_t q = 0; q < columns; ++q) pb[p * kN + q] = conjugate(src[q * b_column], conj_b);
          for (int64_t q = columns; q < kN; ++q) pb[p * kN + q] = T{};
        }
        for (int64_t i = begin; i < end; i += kRows<T>) {
          kernel(kc, pa + (i - begin) * kc, pb, acc);
          const int64_t rows = std::min<int64_t>(kRows<T>, end - i);
          for (int64_t r = 0; r < rows; ++r) {
            T* out = c + (i + r) * ldc + j;
            for (int64_t q = 0; q < columns; ++q) out[q] = multiply_add(alpha, acc[r * kN + q], out[q]);
          }
        }
      }
    }
  });
}

template <class T>
void gemm_batched_plain(int64_t batch, bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a,
                        int64_t lda, int64_t stride_a, const T* b, int64_t ldb, int64_t stride_b, T beta, T* c,
                        int64_t ldc, int64_t stride_c, bool conj_a, bool conj_b) {
  auto one = [&](int64_t i) {
    gemm_plain<T>(ta, tb, m, n, k, alpha, a + i * stride_a, lda, b + i * stride_b, ldb, beta, c + i * stride_c, ldc,
                  conj_a, conj_b);
  };
  if (batch < 8) {
    for (int64_t i = 0; i < batch; ++i) one(i);
    return;
  }
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) + 100.0;
  const auto grain = std::max<int64_t>((batch + 63) / 64, static_cast<int64_t>(400e3 / work));
  parallel_for(batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) one(i);
  });
}

#define RUNNEL_GEMM_PLAIN(T)                                                                                           \
  template RUNNEL_API void gemm_plain<T>(bool, bool, int64_t, int64_t, int64_t, T, const T*, int64_t, const T*,        \
                                         int64_t, T, T*, int64_t, bool, bool);                                         \
  template RUNNEL_API void gemm_batched_plain<T>(int64_t, bool, bool, int64_t, int64_t, int64_t, T, const T*, int64_t, \
                                                 int64_t, const T*, int64_t, int64_t, T, T*, int64_t, int64_t, bool,   \
                                                 bool);
RUNNEL_GEMM_PLAIN(float)
RUNNEL_GEMM_PLAIN(double)
RUNNEL_GEMM_PLAIN(int16_t)
RUNNEL_GEMM_PLAIN(int32_t)
RUNNEL_GEMM_PLAIN(int64_t)
RUNNEL_GEMM_PLAIN(std::complex<float>)
RUNNEL_GEMM_PLAIN(std::complex<double>)
#undef RUNNEL_GEMM_PLAIN

}  // namespace runnel::cpu
