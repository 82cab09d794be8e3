#include "runnel/kernels/cpu/fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/plan_cache.h"

namespace runnel::cpu {
namespace {

constexpr int64_t kLargestRadix = 31;

// Plain products: those of std::complex look for infinities.
template <class T>
std::complex<T> times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// exp(sign * 2 pi i k / n), good to the last bit for any k < n.
std::complex<double> root_of_unity(int64_t k, int64_t n, double sign) {
  // In the first eighth of the circle, where sine and cosine are exact enough, and mirrored from there.
  int64_t eighths = 8 * k / n;
  const auto angle = [&](int64_t part) {
    return 2 * std::numbers::pi * static_cast<double>(part) / static_cast<double>(8 * n);
  };
  const int64_t rest = 8 * k - eighths * n;  // in eighths of a step
  const bool odd = eighths % 2 == 1;
  const double a = angle(odd ? n - rest : rest);
  double c = std::cos(a), s = std::sin(a);
  if (odd) std::swap(c, s);
  switch (eighths / 2) {
    case 0: break;
    case 1: std::swap(c, s), c = -c; break;
    case 2: c = -c, s = -s; break;
    default: std::swap(c, s), s = -s; break;
  }
  return {c, sign * s};
}

// n as a product of small numbers, fours before twos; nothing when a prime factor is too large.
std::vector<int64_t> radices_of(int64_t n) {
  std::vector<int64_t> radices;
  for (int64_t p : {4, 2, 3, 5}) {
    for (; n % p == 0; n /= p) radices.push_back(p);
  }
  for (int64_t p = 7; p <= kLargestRadix && n > 1; p += 2) {
    for (; n % p == 0; n /= p) radices.push_back(p);
  }
  return n == 1 ? radices : std::vector<int64_t>{};
}

// One stage of the self-sorting (Stockham) transform: `s` interleaved transforms of length `length` become s * p of
// length length / p. from[q + s (j + m k)] for k < p are combined into to[q + s (p j + r)] for r < p.
template <class T, bool inverse>
struct Stage {
  using Complex = std::complex<T>;
  const Complex* roots;
  int64_t n, length, s;

  static Complex rotated(Complex a) { return inverse ? Complex(-a.imag(), a.real()) : Complex(a.imag(), -a.real()); }
  Complex twiddle(int64_t j, int64_t r) const { return roots[n / length * j * r]; }

  void two(const Complex* from, Complex* to) const {
    const int64_t m = length / 2;
    for (int64_t j = 0; j < m; ++j) {
      const Complex w = twiddle(j, 1);
      const Complex *a = from + s * j, *b = from + s * (j + m);
      Complex* y = to + s * 2 * j;
      for (int64_t q = 0; q < s; ++q) {
        y[q] = a[q] + b[q];
        y[q + s] = times(a[q] - b[q], w);
      }
    }
  }
  void three(const Complex* from, Complex* to) const {
    const int64_t m = length / 3;
    const T half_root3 = static_cast<T>(std::numbers::sqrt3 / 2);
    for (int64_t j = 0; j < m; ++j) {
      const Complex w1 = twiddle(j, 1), w2 = twiddle(j, 2);
      const Complex *a = from + s * j, *b = a + s * m, *c = b + s * m;
      Complex* y = to + s * 3 * j;
      for (int64_t q = 0; q < s; ++q) {
        const Complex sum = b[q] + c[q];
        const Complex middle = a[q] - sum * T(0.5);
        const Complex side = rotated(b[q] - c[q]) * half_root3;
        y[q] = a[q] + sum;
        y[q + s] = times(middle + side, w1);
        y[q + 2 * s] = times(middle - side, w2);
      }
    }
  }
  void four(const Complex* from, Complex* to) const {
    const int64_t m = length / 4;
    for (int64_t j = 0; j < m; ++j) {
      const Complex w1 = twiddle(j, 1), w2 = twiddle(j, 2), w3 = twiddle(j, 3);
      const Complex *a = from + s * j, *b = a + s * m, *c = b + s * m, *d = c + s * m;
      Complex* y = to + s * 4 * j;
      for (int64_t q = 0; q < s; ++q) {
        const Complex even = a[q] + c[q], odd = b[q] + d[q];
        const Complex across = a[q] - c[q], turned = rotated(b[q] - d[q]);
        y[q] = even + odd;
        y[q + s] = times(across + turned, w1);
        y[q + 2 * s] = times(even - odd, w2);
        y[q + 3 * s] = times(across - turned, w3);
      }
    }
  }
  void any(const Complex* from, Complex* to, int64_t p) const {
    const int64_t m = length / p;
    Complex parts[kLargestRadix], unit[kLargestRadix];
    for (int64_t k = 0; k < p; ++k) unit[k] = roots[n / p * k];
    for (int64_t j = 0; j < m; ++j) {
      for (int64_t q = 0; q < s; ++q) {
        for (int64_t k = 0; k < p; ++k) parts[k] = from[q + s * (j + m * k)];
        for (int64_t r = 0; r < p; ++r) {
          Complex sum = parts[0];
          for (int64_t k = 1; k < p; ++k) sum += times(parts[k], unit[k * r % p]);
          to[q + s * (p * j + r)] = times(sum, twiddle(j, r));
        }
      }
    }
  }
  void run(const Complex* from, Complex* to, int64_t p) const {
    if (p == 2) return two(from, to);
    if (p == 3) return three(from, to);
    if (p == 4) return four(from, to);
    any(from, to, p);
  }
};

}  // namespace

template <class T>
FourierPlan<T>::FourierPlan(int64_t n, bool inverse) : n_(n), radices_(radices_of(n)) {
  const double sign = inverse ? 1 : -1;
  if (n <= 1) return;
  if (!radices_.empty()) {
    for (int64_t k = 0; k < n; ++k) roots_.emplace_back(root_of_unity(k, n, sign));
    return;
  }
  int64_t longer = 1;
  while (longer < 2 * n - 1) longer *= 2;
  forward_ = std::make_unique<FourierPlan>(longer, false);
  backward_ = std::make_unique<FourierPlan>(longer, true);
  kernel_.assign(static_cast<size_t>(longer), Complex());
  for (int64_t k = 0; k < n; ++k) {
    // k * k is taken modulo 2 n, after which the angle repeats.
    const auto square = static_cast<int64_t>(static_cast<unsigned __int128>(k) * static_cast<uint64_t>(k) %
                                             static_cast<uint64_t>(2 * n));
    const Complex c(root_of_unity(square, 2 * n, sign));
    chirp_.push_back(c);
    kernel_[static_cast<size_t>(k)] = std::conj(c);
    if (k > 0) kernel_[static_cast<size_t>(longer - k)] = std::conj(c);
  }
  std::vector<Complex> scratch(static_cast<size_t>(forward_->scratch_size()));
  forward_->run(kernel_.data(), scratch.data());
  for (Complex& k : kernel_) k /= static_cast<T>(longer);
}

template <class T>
int64_t FourierPlan<T>::scratch_size() const {
  return forward_ ? forward_->size() + forward_->scratch_size() : n_;
}

template <class T>
size_t FourierPlan<T>::bytes() const {
  const size_t own = (roots_.capacity() + chirp_.capacity() + kernel_.capacity()) * sizeof(Complex);
  return own + (forward_ ? forward_->bytes() + backward_->bytes() : 0);
}

template <class T>
void FourierPlan<T>::run(Complex* x, Complex* scratch) const {
  if (n_ <= 1) return;
  if (forward_) {
    convolve(x, scratch);
  } else {
    stages(x, scratch);
  }
}

template <class T>
void FourierPlan<T>::stages(Complex* x, Complex* scratch) const {
  const bool inverse = n_ > 2 && roots_[1].imag() > 0;
  Complex* from = x;
  Complex* to = scratch;
  int64_t length = n_, s = 1;
  for (int64_t p : radices_) {
    if (inverse) {
      Stage<T, true>{roots_.data(), n_, length, s}.run(from, to, p);
    } else {
      Stage<T, false>{roots_.data(), n_, length, s}.run(from, to, p);
    }
    std::swap(from, to);
    length /= p;
    s *= p;
  }
  if (from != x) std::copy_n(from, n_, x);
}

template <class T>
void FourierPlan<T>::convolve(Complex* x, Complex* scratch) const {
  Complex* work = scratch;
  Complex* inner = scratch + forward_->size();
  for (int64_t k = 0; k < n_; ++k) work[k] = times(x[k], chirp_[static_cast<size_t>(k)]);
  std::fill(work + n_, work + forward_->size(), Complex());
  forward_->run(work, inner);
  for (int64_t k = 0; k < forward_->size(); ++k) work[k] = times(work[k], kernel_[static_cast<size_t>(k)]);
  backward_->run(work, inner);
  for (int64_t k = 0; k < n_; ++k) x[k] = times(work[k], chirp_[static_cast<size_t>(k)]);
}

namespace {

// A transform and, where it stands for one of real numbers, the roots that put the halves of that together.
template <class T>
struct KeptPlan : Plan {
  KeptPlan(int64_t n, bool inverse) : transform(n, inverse) {}
  size_t bytes() const override { return transform.bytes() + roots.capacity() * sizeof(std::complex<T>); }
  FourierPlan<T> transform;
  std::vector<std::complex<T>> roots;
};

constexpr int64_t kLongestKept = 1 << 17;  // up to 16 MB, where the number has a large prime factor
constexpr size_t kPlansKept = 64, kBytesKept = 32 << 20;

template <class T>
PlanCache& kept_plans() {
  static auto& cache = *new PlanCache(kPlansKept, kBytesKept);
  return cache;
}

template <class T, class Make>
std::shared_ptr<const KeptPlan<T>> kept_plan(int64_t n, bool inverse, bool real, Make make) {
  if (n > kLongestKept) return make();
  PlanKey key;
  for (int64_t word : {n, int64_t{inverse}, int64_t{real}}) key.add(word);
  return kept_plans<T>().template get<KeptPlan<T>>(key, make);
}

// Of n complex numbers.
template <class T>
std::shared_ptr<const KeptPlan<T>> complex_plan(int64_t n, bool inverse) {
  return kept_plan<T>(n, inverse, false, [&] { return std::make_shared<KeptPlan<T>>(n, inverse); });
}

// Of n real numbers: an even number of them is a transform of half as many complex ones.
template <class T>
std::shared_ptr<const KeptPlan<T>> real_plan(int64_t n, bool inverse) {
  return kept_plan<T>(n, inverse, true, [&] {
    const bool even = n % 2 == 0;
    auto plan = std::make_shared<KeptPlan<T>>(even ? n / 2 : n, inverse);
    for (int64_t k = 0; even && k <= n / 2; ++k) plan->roots.emplace_back(root_of_unity(k, n, inverse ? 1 : -1));
    return plan;
  });
}

int64_t rows_per_task(int64_t n) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(n, 1)); }

}  // namespace

template <class T>
void fourier_axis(std::complex<T>* x, int64_t outer, int64_t n, int64_t inner, bool inverse) {
  if (n <= 1 || outer == 0 || inner == 0) return;
  const auto kept = complex_plan<T>(n, inverse);
  const FourierPlan<T>& plan = kept->transform;
  if (inner == 1) {
    parallel_for(outer, rows_per_task(n), [&](int64_t begin, int64_t end) {
      std::vector<std::complex<T>> scratch(static_cast<size_t>(plan.scratch_size()));
      for (int64_t row = begin; row < end; ++row) plan.run(x + row * n, scratch.data());
    });
    return;
  }
  // Some columns at a time, so that what is read lies together.
  constexpr int64_t kColumns = 16;
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  parallel_for(outer * blocks, rows_per_task(n * kColumns), [&](int64_t begin, int64_t end) {
    std::vector<std::complex<T>> columns(static_cast<size_t>(n * kColumns));
    std::vector<std::complex<T>> scratch(static_cast<size_t>(plan.scratch_size()));
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b % blocks * kColumns;
      const int64_t count = std::min(kColumns, inner - first);
      std::complex<T>* base = x + b / blocks * n * inner + first;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = 0; k < count; ++k) columns[static_cast<size_t>(k * n + i)] = base[i * inner + k];
      }
      for (int64_t k = 0; k < count; ++k) plan.run(columns.data() + k * n, scratch.data());
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = 0; k < count; ++k) base[i * inner + k] = columns[static_cast<size_t>(k * n + i)];
      }
    }
  });
}

// An even number of real numbers is a transform of half as many complex ones: even ones as real parts, odd ones as
// imaginary. With E and O the transforms of both, Y[k] = E[k] + exp(-2 pi i k / n) O[k].
template <class T>
void real_to_complex(const T* x, int64_t rows, int64_t n, int64_t stride, std::complex<T>* y) {
  if (n == 0 || rows == 0) return;
  const int64_t width = n / 2 + 1;
  const bool even = n % 2 == 0;
  const auto kept = real_plan<T>(n, false);
  const FourierPlan<T>& plan = kept->transform;
  const std::vector<std::complex<T>>& roots = kept->roots;
  parallel_for(rows, rows_per_task(n), [&](int64_t begin, int64_t end) {
    std::vector<std::complex<T>> row(static_cast<size_t>(plan.size()));
    std::vector<std::complex<T>> scratch(static_cast<size_t>(plan.scratch_size()));
    for (int64_t r = begin; r < end; ++r) {
      const T* from = x + r * stride;
      std::complex<T>* to = y + r * width;
      if (!even) {
        for (int64_t i = 0; i < n; ++i) row[static_cast<size_t>(i)] = from[i];
        plan.run(row.data(), scratch.data());
        std::copy_n(row.data(), width, to);
        continue;
      }
      const int64_t half = n / 2;
      for (int64_t i = 0; i < half; ++i) row[static_cast<size_t>(i)] = {from[2 * i], from[2 * i + 1]};
      plan.run(row.data(), scratch.data());
      const auto put = [&](int64_t k, std::complex<T> a, std::complex<T> b) {
        const std::complex<T> e = (a + b) * T(0.5);
        const std::complex<T> d = (a - b) * T(0.5);
        to[k] = e + times({d.imag(), -d.real()}, roots[static_cast<size_t>(k)]);
      };
      put(0, row[0], std::conj(row[0]));
      for (int64_t k = 1; k < half; ++k) {
        put(k, row[static_cast<size_t>(k)], std::conj(row[static_cast<size_t>(half - k)]));
      }
      put(half, row[0], std::conj(row[0]));
      to[0].imag(0);
      to[half].imag(0);
    }
  });
}

template <class T>
void complex_to_real(const std::complex<T>* x, int64_t rows, int64_t n, T* y) {
  if (n == 0 || rows == 0) return;
  const int64_t width = n / 2 + 1;
  const bool even = n % 2 == 0;
  const auto kept = real_plan<T>(n, true);
  const FourierPlan<T>& plan = kept->transform;
  const std::vector<std::complex<T>>& roots = kept->roots;
  parallel_for(rows, rows_per_task(n), [&](int64_t begin, int64_t end) {
    std::vector<std::complex<T>> row(static_cast<size_t>(plan.size()));
    std::vector<std::complex<T>> scratch(static_cast<size_t>(plan.scratch_size()));
    for (int64_t r = begin; r < end; ++r) {
      const std::complex<T>* from = x + r * width;
      T* to = y + r * n;
      if (!even) {
        row[0] = from[0].real();
        for (int64_t k = 1; k < width; ++k) {
          row[static_cast<size_t>(k)] = from[k];
          row[static_cast<size_t>(n - k)] = std::conj(from[k]);
        }
        plan.run(row.data(), scratch.data());
        for (int64_t i = 0; i < n; ++i) to[i] = row[static_cast<size_t>(i)].real();
        continue;
      }
      const int64_t half = n / 2;
      for (int64_t k = 0; k < half; ++k) {
        const std::complex<T> a = k == 0 ? std::complex<T>(from[0].real()) : from[k];
        const std::complex<T> b = k == 0 ? std::complex<T>(from[half].real()) : std::conj(from[half - k]);
        const std::complex<T> odd = times(a - b, roots[static_cast<size_t>(k)]);
        row[static_cast<size_t>(k)] = a + b + std::complex<T>(-odd.imag(), odd.real());
      }
      plan.run(row.data(), scratch.data());
      for (int64_t i = 0; i < half; ++i) {
        to[2 * i] = row[static_cast<size_t>(i)].real();
        to[2 * i + 1] = row[static_cast<size_t>(i)].imag();
      }
    }
  });
}

#define RUNNEL_FFT(T)                                                                      \
  template class FourierPlan<T>;                                                           \
  template void fourier_axis<T>(std::complex<T>*, int64_t, int64_t, int64_t, bool);        \
  template void real_to_complex<T>(const T*, int64_t, int64_t, int64_t, std::complex<T>*); \
  template void complex_to_real<T>(const std::complex<T>*, int64_t, int64_t, T*);
RUNNEL_FFT(float)
RUNNEL_FFT(double)
#undef RUNNEL_FFT

}  // namespace runnel::cpu
