#include "runnel/kernels/cpu/dense_spectrum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "runnel/base/cpu.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/dense_reflections.h"
#include "runnel/kernels/cpu/scratch.h"

#define RUNNEL_ISA_FILE "runnel/kernels/cpu/dense_spectrum_isa.h"
#include "runnel/kernels/cpu/foreach_isa.h"

// Both reduce the matrix by reflections to one with two diagonals, whose small problem is solved in double precision by
// sweeps of rotations. The rotations of many sweeps are kept and turn the vectors, rows of a matrix, later and
// together: strips of columns are apart.

namespace runnel::cpu {
namespace {

// Beside their neighbours on the diagonal such numbers count as 0. The sweeps run in double, which has no more digits
// than a matrix of doubles.
template <class T>
constexpr double kNothing = std::numeric_limits<T>::epsilon() / (std::is_same_v<T, float> ? 64 : 2);
constexpr int kMostSweeps = 60;  // for each value
constexpr int64_t kPad = 16;     // rows of vectors are whole vectors

// Divides the matrix by a power of two near its largest element, and tells which: sums of squares then fit. Zero where
// an element is not finite.
template <class T>
double take_scale(int64_t count, T* a) {
  T most = 0;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    finite &= std::isfinite(a[i]);
    most = std::max(most, std::abs(a[i]));
  }
  if (!finite) return 0;
  if (most == 0) return 1;
  const double scale = std::ldexp(1.0, std::clamp(std::ilogb(most), -1000, 1000)), inverse = 1 / scale;
  for (int64_t i = 0; i < count; ++i) a[i] = static_cast<T>(a[i] * inverse);
  return scale;
}

// The reflection I - tau * v * transpose(v) that leaves of x its first element alone, which is returned; x becomes v.
template <class T>
T make_reflection(int64_t n, T* x, T& tau) {
  const Reflection<T> r = reflection_of(n, x, n > 1 ? RUNNEL_BEST_ISA(spectrum_dot<T>)(n - 1, x + 1, x + 1) : T(0));
  x[0] = 1;
  tau = r.tau;
  if (r.tau != 0) {
    for (int64_t i = 1; i < n; ++i) x[i] = static_cast<T>(x[i] / r.divisor);
  }
  return r.left;
}

// Vectors as rows, turned by rotations that wait until there are many.
template <class T>
class TurnedRows {
 public:
  TurnedRows(ScratchFrame& frame, int64_t n) : n_(n), ld_((n + kPad - 1) / kPad * kPad), rows_(frame.get<T>(n * ld_)) {
    std::fill_n(rows_, n * ld_, T(0));
    for (int64_t i = 0; i < n; ++i) rows_[i * ld_ + i] = 1;
  }
  T* row(int64_t i) { return rows_ + i * ld_; }
  int64_t columns() const { return n_; }

  // Rotations of one sweep follow, of the rows `from` and on (step 1), or `from` and back (-1).
  void begin(int64_t from, int64_t step) {
    if (static_cast<int64_t>(cosines_.size()) > kWaiting) flush();
    sweeps_.push_back({from, step, cosines_.size(), 0});
  }
  void add(double c, double s) {
    cosines_.push_back(static_cast<T>(c));
    sines_.push_back(static_cast<T>(s));
    ++sweeps_.back().count;
  }
  void flush() {
    constexpr int64_t kStrip = 64;
    parallel_for((ld_ + kStrip - 1) / kStrip, 1, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin * kStrip; j < std::min(ld_, end * kStrip); j += kStrip) {
        for (const Sweep& s : sweeps_) {
          RUNNEL_BEST_ISA(rotate_rows<T>)
          (s.count, cosines_.data() + s.at, sines_.data() + s.at, s.step * ld_, rows_ + s.from * ld_ + j,
           std::min(kStrip, ld_ - j));
        }
      }
    });
    sweeps_.clear();
    cosines_.clear();
    sines_.clear();
  }

  // Every row becomes itself times the last of these reflections, then the one before, and so on. Row i of w, of n
  // numbers, has its vector from i on; vectors act on the columns from `first` on.
  void reflect(int64_t first, int64_t count, const T* w, const T* tau) {
    for (int64_t j = (count - 1) / kReflections * kReflections; j >= 0 && count > 0; j -= kReflections) {
      ScratchFrame frame;
      Reflections<T>(frame, std::min(kReflections, count - j), n_ - first - j, w + j * n_ + j, n_, tau + j)
          .apply(true, n_, rows_ + first + j, ld_);
    }
  }

  void copy_sorted(const std::vector<int64_t>& order, T* out) {
    for (int64_t i = 0; i < n_; ++i) std::copy_n(row(order[static_cast<size_t>(i)]), n_, out + i * n_);
  }
  void negate(int64_t i) {
    for (int64_t j = 0; j < n_; ++j) row(i)[j] = -row(i)[j];
  }

 private:
  static constexpr int64_t kWaiting = 1 << 14;
  struct Sweep {
    int64_t from, step;
    size_t at;
    int64_t count;
  };
  int64_t n_, ld_;
  T* rows_;
  std::vector<Sweep> sweeps_;
  std::vector<T> cosines_, sines_;
};

struct Rotation {
  double c, s, r;  // (c s; -s c) * (f, g) = (r, 0)
};
Rotation rotation(double f, double g) {
  if (g == 0) return {1, 0, f};
  const double square = f * f + g * g;
  if (square > 1e-280) [[likely]] {
    const double r = std::sqrt(square), inverse = 1 / r;
    return {f * inverse, g * inverse, r};
  }
  const double r = std::hypot(f, g);
  return r == 0 ? Rotation{1, 0, 0} : Rotation{f / r, g / r, r};
}

// Eigenvalues of the symmetric matrix with the diagonal d and, beside it, e (n - 1 numbers): implicit QL with
// Wilkinson's shift.
template <class T>
bool tridiagonal_eigen(int64_t n, double* d, double* e, TurnedRows<T>* vectors) {
  for (int64_t l = 0; l < n; ++l) {
    for (int sweep = 0;; ++sweep) {
      int64_t m = l;
      while (m + 1 < n && std::abs(e[m]) > kNothing<T> * (std::abs(d[m]) + std::abs(d[m + 1]))) ++m;
      if (m == l) break;
      if (sweep == kMostSweeps || !std::isfinite(e[l])) return false;
      double g = (d[l + 1] - d[l]) / (2 * e[l]);
      g = d[m] - d[l] + e[l] / (g + std::copysign(std::sqrt(g * g + 1), g));
      double s = 1, c = 1, p = 0;
      if (vectors) vectors->begin(m, -1);
      for (int64_t i = m - 1; i >= l; --i) {
        const double f = s * e[i], b = c * e[i];
        const Rotation turn = rotation(g, f);
        if (i + 1 < m) e[i + 1] = turn.r;
        c = turn.c, s = turn.s;
        g = d[i + 1] - p;
        const double t = (d[i] - g) * s + 2 * c * b;
        p = s * t;
        d[i + 1] = g + p;
        g = c * t - b;
        if (vectors) vectors->add(c, s);
      }
      d[l] -= p;
      e[l] = g;
      if (m < n - 1) e[m] = 0;
    }
  }
  return true;
}

// A sweep of Golub and Kahan over rows [low, high] of the upper bidiagonal matrix with d and, above it, e.
template <class T>
void bidiagonal_sweep(int64_t low, int64_t high, double* d, double* e, TurnedRows<T>* u, TurnedRows<T>* v) {
  // Wilkinson's shift: the eigenvalue of the last 2x2 of B^T * B that is nearest to its last element.
  const double em = high - 1 > low ? e[high - 2] : 0;
  const double a = d[high - 1] * d[high - 1] + em * em, b = d[high - 1] * e[high - 1];
  const double c = d[high] * d[high] + e[high - 1] * e[high - 1];
  const double half = (a - c) / 2;
  const double shift =
      half == 0 && b == 0 ? c : c - b * b / (half + std::copysign(std::sqrt(half * half + b * b), half));
  double y = d[low] * d[low] - shift, z = d[low] * e[low];
  if (u) u->begin(low, 1), v->begin(low, 1);
  for (int64_t k = low; k < high; ++k) {
    const Rotation right = rotation(y, z);
    if (k > low) e[k - 1] = right.r;
    y = right.c * d[k] + right.s * e[k];
    e[k] = right.c * e[k] - right.s * d[k];
    z = right.s * d[k + 1];
    d[k + 1] = right.c * d[k + 1];
    const Rotation left = rotation(y, z);
    d[k] = left.r;
    y = left.c * e[k] + left.s * d[k + 1];
    d[k + 1] = left.c * d[k + 1] - left.s * e[k];
    if (k + 1 < high) {
      z = left.s * e[k + 1];
      e[k + 1] = left.c * e[k + 1];
    }
    if (u) u->add(left.c, left.s), v->add(right.c, right.s);
  }
  e[high - 1] = y;
}

// Where d[k] is nothing, its row can be emptied: e[k] is turned away into the rows below.
template <class T>
void empty_row(int64_t k, int64_t high, double* d, double* e, TurnedRows<T>* u) {
  if (u) u->flush();  // the rotations below come after those that wait
  double f = e[k];
  e[k] = 0;
  d[k] = 0;
  for (int64_t i = k + 1; i <= high && f != 0; ++i) {
    const Rotation turn = rotation(d[i], f);
    d[i] = turn.r;
    f = i < high ? -turn.s * e[i] : 0;
    if (i < high) e[i] = turn.c * e[i];
    if (!u) continue;
    // Rows k and i, which need not be neighbours.
    T *x = u->row(i), *y = u->row(k);
    for (int64_t j = 0; j < u->columns(); ++j) {
      const T p = x[j], q = y[j];
      x[j] = static_cast<T>(turn.c) * p + static_cast<T>(turn.s) * q;
      y[j] = static_cast<T>(turn.c) * q - static_cast<T>(turn.s) * p;
    }
  }
}

template <class T>
bool bidiagonal_values(int64_t n, double* d, double* e, TurnedRows<T>* u, TurnedRows<T>* v) {
  double size = 0;
  for (int64_t i = 0; i < n; ++i) size = std::max({size, std::abs(d[i]), i + 1 < n ? std::abs(e[i]) : 0});
  if (!std::isfinite(size)) return false;
  int64_t high = n - 1;
  for (int64_t left = kMostSweeps * n; high > 0; --left) {
    if (left == 0) return false;
    const auto nothing = [&](int64_t i) {
      return std::abs(e[i]) <= kNothing<T> * (std::abs(d[i]) + std::abs(d[i + 1]));
    };
    if (nothing(high - 1)) {
      e[--high] = 0;
      continue;
    }
    int64_t low = high - 1;
    while (low > 0 && !nothing(low - 1)) --low;
    if (low > 0) e[low - 1] = 0;
    int64_t zero = low;
    while (zero < high && std::abs(d[zero]) > kNothing<T> * size * 1e-6) ++zero;
    if (zero < high) {
      empty_row(zero, high, d, e, u);
    } else {
      bidiagonal_sweep(low, high, d, e, u, v);
    }
  }
  return true;
}

std::vector<int64_t> sorted(int64_t n, const double* values, bool rising) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return rising ? values[i] < values[j] : values[i] > values[j]; });
  return order;
}

void sort_values(const std::vector<int64_t>& order, double* values) {
  std::vector<double> all;
  for (const int64_t i : order) all.push_back(values[i]);
  std::copy(all.begin(), all.end(), values);
}

}  // namespace

template <class T>
bool symmetric_eigen(int64_t n, T* a, double* values, T* v) {
  ScratchFrame frame;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) a[i * n + j] = a[j * n + i];
  }
  const double scale = take_scale(n * n, a);
  if (scale == 0) return false;
  std::vector<double> e(static_cast<size_t>(n));
  std::vector<T> tau(static_cast<size_t>(n));
  T* w = frame.get<T>(n);
  // Row k, behind its diagonal, becomes a vector of reflection k, which acts on rows and columns k + 1 and on.
  for (int64_t k = 0; k + 1 < n; ++k) {
    const int64_t length = n - k - 1;
    T *x = a + k * n + k + 1, *rest = a + (k + 1) * n + k + 1;
    values[k] = a[k * n + k];
    T& t = tau[static_cast<size_t>(k)];
    e[static_cast<size_t>(k)] = make_reflection(length, x, t);
    if (t == 0) continue;
    const int64_t grain = std::max<int64_t>(32, (64 << 10) / length);
    parallel_for(length, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) w[i] = t * RUNNEL_BEST_ISA(spectrum_dot<T>)(length, rest + i * n, x);
    });
    const T half = T(-0.5) * t * RUNNEL_BEST_ISA(spectrum_dot<T>)(length, w, x);
    RUNNEL_BEST_ISA(add_two<T>)(length, half, x, T(0), x, w);
    parallel_for(length, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        RUNNEL_BEST_ISA(add_two<T>)(length, -x[i], w, -w[i], x, rest + i * n);
      }
    });
  }
  values[n - 1] = a[n * n - 1];
  const auto scale_back = [&] { std::for_each(values, values + n, [&](double& value) { value *= scale; }); };
  if (!v) {
    if (!tridiagonal_eigen<T>(n, values, e.data(), nullptr)) return false;
    scale_back();
    std::sort(values, values + n);
    return true;
  }
  TurnedRows<T> vectors(frame, n);
  if (!tridiagonal_eigen(n, values, e.data(), &vectors)) return false;
  scale_back();
  vectors.flush();
  vectors.reflect(1, n - 1, a + 1, tau.data());
  const std::vector<int64_t> order = sorted(n, values, true);
  vectors.copy_sorted(order, v);
  sort_values(order, values);
  return true;
}

template <class T>
bool singular_values(int64_t n, T* a, double* values, T* u, T* v) {
  const double scale = take_scale(n * n, a);
  if (scale == 0) return false;
  ScratchFrame frame;
  std::vector<double> e(static_cast<size_t>(n));
  std::vector<T> left(static_cast<size_t>(n)), right(static_cast<size_t>(n));
  T *columns = frame.get<T>(n * n), *w = frame.get<T>(n);  // columns: vectors of the reflections of columns
  for (int64_t k = 0; k < n; ++k) {
    const int64_t rows = n - k, rest = n - k - 1;
    T *x = columns + k * n + k, *row = a + k * n + k + 1;
    for (int64_t i = 0; i < rows; ++i) x[i] = a[(k + i) * n + k];
    T& t = left[static_cast<size_t>(k)];
    values[k] = make_reflection(rows, x, t);
    if (rest == 0) break;
    // The other columns: w = transpose(A) * x.
    std::fill_n(w, rest, T(0));
    for (int64_t i = 0; i < rows; ++i) {
      RUNNEL_BEST_ISA(add_two<T>)(rest, x[i], row + i * n, T(0), row + i * n, w);
    }
    for (int64_t i = 0; i < rows; ++i) RUNNEL_BEST_ISA(add_two<T>)(rest, -t * x[i], w, T(0), w, row + i * n);
    T& r = right[static_cast<size_t>(k)];
    e[static_cast<size_t>(k)] = make_reflection(rest, row, r);
    for (int64_t i = 1; i < rows; ++i) {
      T* other = row + i * n;
      RUNNEL_BEST_ISA(add_two<T>)
      (rest, -r * RUNNEL_BEST_ISA(spectrum_dot<T>)(rest, other, row), row, T(0), row, other);
    }
  }
  if (u) {
    TurnedRows<T> of_u(frame, n), of_v(frame, n);
    if (!bidiagonal_values(n, values, e.data(), &of_u, &of_v)) return false;
    of_u.flush();
    of_v.flush();
    of_u.reflect(0, n, columns, left.data());
    of_v.reflect(1, n - 1, a + 1, right.data());
    for (int64_t i = 0; i < n; ++i) {
      values[i] *= scale;
      if (values[i] < 0) values[i] = -values[i], of_v.negate(i);
    }
    const std::vector<int64_t> order = sorted(n, values, false);
    of_u.copy_sorted(order, u);
    of_v.copy_sorted(order, v);
    sort_values(order, values);
    return true;
  }
  if (!bidiagonal_values<T>(n, values, e.data(), nullptr, nullptr)) return false;
  for (int64_t i = 0; i < n; ++i) values[i] = std::abs(values[i]) * scale;
  std::sort(values, values + n, std::greater<>());
  return true;
}

template RUNNEL_API bool symmetric_eigen(int64_t, float*, double*, float*);
template RUNNEL_API bool symmetric_eigen(int64_t, double*, double*, double*);
template RUNNEL_API bool singular_values(int64_t, float*, double*, float*, float*);
template RUNNEL_API bool singular_values(int64_t, double*, double*, double*, double*);

}  // namespace runnel::cpu
