#include "runnel/kernels/cpu/dense_spectrum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
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

constexpr float kNothing = std::numeric_limits<float>::epsilon() / 64;
constexpr int kMostSweeps = 60;  // for each value
constexpr int64_t kPad = 16;     // rows of vectors are whole vectors

// Divides the matrix by a power of two near its largest element, and tells which: sums of squares then fit. Zero where
// an element is not finite.
double take_scale(int64_t count, float* a) {
  float most = 0;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    finite &= std::isfinite(a[i]);
    most = std::max(most, std::abs(a[i]));
  }
  if (!finite) return 0;
  if (most == 0) return 1;
  const double scale = std::ldexp(1.0, std::ilogb(most)), inverse = 1 / scale;
  for (int64_t i = 0; i < count; ++i) a[i] = static_cast<float>(a[i] * inverse);
  return scale;
}

// The reflection I - tau * v * transpose(v) that leaves of x its first element alone, which is returned; x becomes v.
float make_reflection(int64_t n, float* x, float& tau) {
  const Reflection r = reflection_of(n, x, n > 1 ? RUNNEL_BEST_ISA(spectrum_dot)(n - 1, x + 1, x + 1) : 0.0f);
  x[0] = 1;
  tau = r.tau;
  if (r.tau != 0) {
    for (int64_t i = 1; i < n; ++i) x[i] = static_cast<float>(x[i] / r.divisor);
  }
  return r.left;
}

// Vectors as rows, turned by rotations that wait until there are many.
class TurnedRows {
 public:
  TurnedRows(ScratchFrame& frame, int64_t n)
      : n_(n), ld_((n + kPad - 1) / kPad * kPad), rows_(frame.get<float>(n * ld_)) {
    std::fill_n(rows_, n * ld_, 0.0f);
    for (int64_t i = 0; i < n; ++i) rows_[i * ld_ + i] = 1;
  }
  float* row(int64_t i) { return rows_ + i * ld_; }
  int64_t columns() const { return n_; }

  // Rotations of one sweep follow, of the rows `from` and on (step 1), or `from` and back (-1).
  void begin(int64_t from, int64_t step) {
    if (static_cast<int64_t>(cosines_.size()) > kWaiting) flush();
    sweeps_.push_back({from, step, cosines_.size(), 0});
  }
  void add(double c, double s) {
    cosines_.push_back(static_cast<float>(c));
    sines_.push_back(static_cast<float>(s));
    ++sweeps_.back().count;
  }
  void flush() {
    constexpr int64_t kStrip = 64;
    parallel_for((ld_ + kStrip - 1) / kStrip, 1, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin * kStrip; j < std::min(ld_, end * kStrip); j += kStrip) {
        for (const Sweep& s : sweeps_) {
          RUNNEL_BEST_ISA(rotate_rows)
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
  void reflect(int64_t first, int64_t count, const float* w, const float* tau) {
    for (int64_t j = (count - 1) / kReflections * kReflections; j >= 0 && count > 0; j -= kReflections) {
      ScratchFrame frame;
      Reflections(frame, std::min(kReflections, count - j), n_ - first - j, w + j * n_ + j, n_, tau + j)
          .apply(true, n_, rows_ + first + j, ld_);
    }
  }

  void copy_sorted(const std::vector<int64_t>& order, float* out) {
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
  float* rows_;
  std::vector<Sweep> sweeps_;
  std::vector<float> cosines_, sines_;
};

struct Rotation {
  double c, s, r;  // (c s; -s c) * (f, g) = (r, 0)
};
Rotation rotation(double f, double g) {
  if (g == 0) return {1, 0, f};
  const double r = std::sqrt(f * f + g * g), inverse = 1 / r;  // of float's range: the squares are normal doubles
  return {f * inverse, g * inverse, r};
}

// Eigenvalues of the symmetric matrix with the diagonal d and, beside it, e (n - 1 numbers): implicit QL with
// Wilkinson's shift.
bool tridiagonal_eigen(int64_t n, double* d, double* e, TurnedRows* vectors) {
  for (int64_t l = 0; l < n; ++l) {
    for (int sweep = 0;; ++sweep) {
      int64_t m = l;
      while (m + 1 < n && std::abs(e[m]) > kNothing * (std::abs(d[m]) + std::abs(d[m + 1]))) ++m;
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
void bidiagonal_sweep(int64_t low, int64_t high, double* d, double* e, TurnedRows* u, TurnedRows* v) {
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
void empty_row(int64_t k, int64_t high, double* d, double* e, TurnedRows* u) {
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
    float *x = u->row(i), *y = u->row(k);
    for (int64_t j = 0; j < u->columns(); ++j) {
      const float p = x[j], q = y[j];
      x[j] = static_cast<float>(turn.c) * p + static_cast<float>(turn.s) * q;
      y[j] = static_cast<float>(turn.c) * q - static_cast<float>(turn.s) * p;
    }
  }
}

bool bidiagonal_values(int64_t n, double* d, double* e, TurnedRows* u, TurnedRows* v) {
  double size = 0;
  for (int64_t i = 0; i < n; ++i) size = std::max({size, std::abs(d[i]), i + 1 < n ? std::abs(e[i]) : 0});
  if (!std::isfinite(size)) return false;
  int64_t high = n - 1;
  for (int64_t left = kMostSweeps * n; high > 0; --left) {
    if (left == 0) return false;
    const auto nothing = [&](int64_t i) { return std::abs(e[i]) <= kNothing * (std::abs(d[i]) + std::abs(d[i + 1])); };
    if (nothing(high - 1)) {
      e[--high] = 0;
      continue;
    }
    int64_t low = high - 1;
    while (low > 0 && !nothing(low - 1)) --low;
    if (low > 0) e[low - 1] = 0;
    int64_t zero = low;
    while (zero < high && std::abs(d[zero]) > kNothing * size * 1e-6) ++zero;
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

bool symmetric_eigen(int64_t n, float* a, double* values, float* v) {
  ScratchFrame frame;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) a[i * n + j] = a[j * n + i];
  }
  const double scale = take_scale(n * n, a);
  if (scale == 0) return false;
  std::vector<double> e(static_cast<size_t>(n));
  std::vector<float> tau(static_cast<size_t>(n));
  float* w = frame.get<float>(n);
  // Row k, behind its diagonal, becomes a vector of reflection k, which acts on rows and columns k + 1 and on.
  for (int64_t k = 0; k + 1 < n; ++k) {
    const int64_t length = n - k - 1;
    float *x = a + k * n + k + 1, *rest = a + (k + 1) * n + k + 1;
    values[k] = a[k * n + k];
    float& t = tau[static_cast<size_t>(k)];
    e[static_cast<size_t>(k)] = make_reflection(length, x, t);
    if (t == 0) continue;
    const int64_t grain = std::max<int64_t>(32, (64 << 10) / length);
    parallel_for(length, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) w[i] = t * RUNNEL_BEST_ISA(spectrum_dot)(length, rest + i * n, x);
    });
    const float half = -0.5f * t * RUNNEL_BEST_ISA(spectrum_dot)(length, w, x);
    RUNNEL_BEST_ISA(add_two)(length, half, x, 0.0f, x, w);
    parallel_for(length, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        RUNNEL_BEST_ISA(add_two)(length, -x[i], w, -w[i], x, rest + i * n);
      }
    });
  }
  values[n - 1] = a[n * n - 1];
  const auto scale_back = [&] { std::for_each(values, values + n, [&](double& value) { value *= scale; }); };
  if (!v) {
    if (!tridiagonal_eigen(n, values, e.data(), nullptr)) return false;
    scale_back();
    std::sort(values, values + n);
    return true;
  }
  TurnedRows vectors(frame, n);
  if (!tridiagonal_eigen(n, values, e.data(), &vectors)) return false;
  scale_back();
  vectors.flush();
  vectors.reflect(1, n - 1, a + 1, tau.data());
  const std::vector<int64_t> order = sorted(n, values, true);
  vectors.copy_sorted(order, v);
  sort_values(order, values);
  return true;
}

bool singular_values(int64_t n, float* a, double* values, float* u, float* v) {
  const double scale = take_scale(n * n, a);
  if (scale == 0) return false;
  ScratchFrame frame;
  std::vector<double> e(static_cast<size_t>(n));
  std::vector<float> left(static_cast<size_t>(n)), right(static_cast<size_t>(n));
  float *columns = frame.get<float>(n * n), *w = frame.get<float>(n);  // columns: vectors of the reflections of columns
  for (int64_t k = 0; k < n; ++k) {
    const int64_t rows = n - k, rest = n - k - 1;
    float *x = columns + k * n + k, *row = a + k * n + k + 1;
    for (int64_t i = 0; i < rows; ++i) x[i] = a[(k + i) * n + k];
    float& t = left[static_cast<size_t>(k)];
    values[k] = make_reflection(rows, x, t);
    if (rest == 0) break;
    // The other columns: w = transpose(A) * x.
    std::fill_n(w, rest, 0.0f);
    for (int64_t i = 0; i < rows; ++i) {
      RUNNEL_BEST_ISA(add_two)(rest, x[i], row + i * n, 0.0f, row + i * n, w);
    }
    for (int64_t i = 0; i < rows; ++i) RUNNEL_BEST_ISA(add_two)(rest, -t * x[i], w, 0.0f, w, row + i * n);
    float& r = right[static_cast<size_t>(k)];
    e[static_cast<size_t>(k)] = make_reflection(rest, row, r);
    for (int64_t i = 1; i < rows; ++i) {
      float* other = row + i * n;
      RUNNEL_BEST_ISA(add_two)
      (rest, -r * RUNNEL_BEST_ISA(spectrum_dot)(rest, other, row), row, 0.0f, row, other);
    }
  }
  if (u) {
    TurnedRows of_u(frame, n), of_v(frame, n);
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
  if (!bidiagonal_values(n, values, e.data(), nullptr, nullptr)) return false;
  for (int64_t i = 0; i < n; ++i) values[i] = std::abs(values[i]) * scale;
  std::sort(values, values + n, std::greater<>());
  return true;
}

}  // namespace runnel::cpu
