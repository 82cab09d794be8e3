// The elementwise loops and reductions one would write by hand for just this case: AVX2 intrinsics,
// contiguous memory of a known size, an OpenMP team, no promise about bits across thread counts.
#include <immintrin.h>
#include <omp.h>

#include <cmath>
#include <cstdlib>
#include <memory>

#include "bench/common.h"

namespace {

using Call = std::function<void()>;
using V = __m256;

constexpr long kSize = 1 << 20;
constexpr long kSide = 1 << 10;

struct Array {
  float* data = static_cast<float*>(std::aligned_alloc(64, kSize * sizeof(float)));
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { std::free(data); }
};
struct Values {
  Array a, b, y;
};

std::shared_ptr<Values> values(float scale, float shift) {
  auto v = std::make_shared<Values>();
  bench::fill(v->a.data, kSize, 1);
  bench::fill(v->b.data, kSize, 2);
  bench::fill(v->y.data, kSize, 3);
  for (long i = 0; i < kSize; ++i) v->a.data[i] = v->a.data[i] * scale + shift;
  return v;
}

V set(float x) { return _mm256_set1_ps(x); }
V at(const float* p) { return _mm256_loadu_ps(p); }

// Calls body(begin, end) on every thread with its share of [0, n), a multiple of 32.
template <class Body>
void shares(long n, const Body& body) {
#pragma omp parallel
  {
    const long threads = omp_get_num_threads(), t = omp_get_thread_num();
    const long blocks = n / 32;
    body(blocks * t / threads * 32, blocks * (t + 1) / threads * 32);
  }
}

template <class F>
Call unary(F f, float scale = 1, float shift = 0) {
  const auto v = values(scale, shift);
  return [v, f] {
    const float* x = v->a.data;
    float* y = v->y.data;
    shares(kSize, [=](long begin, long end) {
      for (long i = begin; i < end; i += 32) {
        const V a = f(at(x + i)), b = f(at(x + i + 8)), c = f(at(x + i + 16)), d = f(at(x + i + 24));
        _mm256_storeu_ps(y + i, a);
        _mm256_storeu_ps(y + i + 8, b);
        _mm256_storeu_ps(y + i + 16, c);
        _mm256_storeu_ps(y + i + 24, d);
      }
    });
  };
}

template <class F>
Call binary(F f) {
  const auto v = values(1, 0);
  return [v, f] {
    const float *a = v->a.data, *b = v->b.data;
    float* y = v->y.data;
    shares(kSize, [=](long begin, long end) {
      for (long i = begin; i < end; i += 32) {
        for (long j = i; j < i + 32; j += 8) _mm256_storeu_ps(y + j, f(at(a + j), at(b + j)));
      }
    });
  };
}

// exp by 2^n e^r with a polynomial of degree 5; no care for denormal results.
V exp(V x) {
  x = _mm256_min_ps(_mm256_max_ps(x, set(-87.3f)), set(88.7f));
  const V n = _mm256_round_ps(_mm256_mul_ps(x, set(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  V r = _mm256_fnmadd_ps(n, set(0.693145752f), x);
  r = _mm256_fnmadd_ps(n, set(1.42860677e-6f), r);
  V p = set(1.0f / 720);
  p = _mm256_fmadd_ps(p, r, set(1.0f / 120));
  p = _mm256_fmadd_ps(p, r, set(1.0f / 24));
  p = _mm256_fmadd_ps(p, r, set(1.0f / 6));
  p = _mm256_fmadd_ps(p, r, set(0.5f));
  p = _mm256_fmadd_ps(p, r, set(1.0f));
  p = _mm256_fmadd_ps(p, r, set(1.0f));
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)));
}

// log of positive normal numbers by the series of atanh.
V log(V x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i k = _mm256_srai_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3)), 23);
  const V m = _mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(k, 23)));
  const V f = _mm256_sub_ps(m, set(1)), s = _mm256_div_ps(f, _mm256_add_ps(f, set(2))), z = _mm256_mul_ps(s, s);
  V p = set(2.0f / 9);
  p = _mm256_fmadd_ps(p, z, set(2.0f / 7));
  p = _mm256_fmadd_ps(p, z, set(2.0f / 5));
  p = _mm256_fmadd_ps(p, z, set(2.0f / 3));
  p = _mm256_fmadd_ps(_mm256_mul_ps(p, z), s, _mm256_add_ps(s, s));
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(k), set(0.693147181f), p);
}

V tanh(V x) {
  const V e = exp(_mm256_add_ps(x, x));
  return _mm256_sub_ps(set(1), _mm256_div_ps(set(2), _mm256_add_ps(e, set(1))));
}

float lanes_sum(V v) {
  float l[8];
  _mm256_storeu_ps(l, v);
  return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

float sum(const float* x, long n) {
  V a = _mm256_setzero_ps(), b = a, c = a, d = a;
  for (long i = 0; i < n; i += 32) {
    a = _mm256_add_ps(a, at(x + i));
    b = _mm256_add_ps(b, at(x + i + 8));
    c = _mm256_add_ps(c, at(x + i + 16));
    d = _mm256_add_ps(d, at(x + i + 24));
  }
  return lanes_sum(_mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d)));
}

// NaN propagates here too: an unordered comparison is gathered beside the maximum.
float max(const float* x, long n) {
  V a = set(-INFINITY), b = a, nan = _mm256_setzero_ps();
  for (long i = 0; i < n; i += 16) {
    const V p = at(x + i), q = at(x + i + 8);
    a = _mm256_max_ps(a, p);
    b = _mm256_max_ps(b, q);
    nan = _mm256_or_ps(nan, _mm256_cmp_ps(p, q, _CMP_UNORD_Q));
  }
  float l[8];
  _mm256_storeu_ps(l, _mm256_max_ps(a, b));
  return _mm256_movemask_ps(nan) ? NAN : *std::max_element(l, l + 8);
}

template <class F, class Combine>
Call whole(F f, Combine combine) {
  const auto v = values(1, 0);
  return [v, f, combine] {
    float partial[256][16];  // a cache line each
    int count = 1;
    shares(kSize, [&](long begin, long end) {
      if (omp_get_thread_num() == 0) count = omp_get_num_threads();
      partial[omp_get_thread_num()][0] = f(v->a.data + begin, end - begin);
    });
    for (int t = 1; t < count; ++t) partial[0][0] = combine(partial[0][0], partial[t][0]);
    v->y.data[0] = partial[0][0];
  };
}

Call sum_rows() {
  const auto v = values(1, 0);
  return [v] {
    shares(kSide, [&](long begin, long end) {
      for (long r = begin; r < end; ++r) v->y.data[r] = sum(v->a.data + r * kSide, kSide);
    });
  };
}

// Each thread sums its share of the rows into a row of its own.
Call sum_cols() {
  const auto v = values(1, 0);
  return [v] {
    static float partial[256][kSide];
    int count = 1;
    shares(kSide, [&](long begin, long end) {
      if (omp_get_thread_num() == 0) count = omp_get_num_threads();
      float* acc = partial[omp_get_thread_num()];
      std::fill(acc, acc + kSide, 0.0f);
      for (long r = begin; r < end; r += 8) {
        const float* x = v->a.data + r * kSide;
        for (long j = 0; j < kSide; j += 8) {
          V s = at(acc + j);
          for (long k = 0; k < 8; ++k) s = _mm256_add_ps(s, at(x + k * kSide + j));
          _mm256_storeu_ps(acc + j, s);
        }
      }
    });
    for (long j = 0; j < kSide; ++j) {
      float s = 0;
      for (int t = 0; t < count; ++t) s += partial[t][j];
      v->y.data[j] = s;
    }
  };
}

template <class Make>
bench::Case one(const char* name, Make make) {
  return {name, [make](int) { return std::vector<Call>{make()}; }};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      one("elementwise_add", [] { return binary([](V a, V b) { return _mm256_add_ps(a, b); }); }),
      one("elementwise_mul", [] { return binary([](V a, V b) { return _mm256_mul_ps(a, b); }); }),
      one("elementwise_relu", [] { return unary([](V x) { return _mm256_max_ps(x, _mm256_setzero_ps()); }); }),
      one("exp", [] { return unary([](V x) { return exp(x); }, 20); }),
      one("log", [] { return unary([](V x) { return log(x); }, 20, 10.5f); }),
      one("tanh", [] { return unary([](V x) { return tanh(x); }, 8); }),
      one("reduce_sum", [] { return whole(sum, [](float a, float b) { return a + b; }); }),
      one("reduce_sum_rows", sum_rows),
      one("reduce_sum_cols", sum_cols),
      one("reduce_max", [] { return whole(max, [](float a, float b) { return a > b ? a : b; }); }),
  };
  return bench::main_of(argc, argv, cases, [](int threads) { omp_set_num_threads(threads); });
}
