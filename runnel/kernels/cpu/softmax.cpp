#include "runnel/kernels/cpu/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/scratch.h"

namespace runnel::cpu {
namespace {

template <class T>
struct RowKernelsOf {
  T (*max)(const T* x, int64_t n);
  T (*exp)(const T* x, T* y, int64_t n, T shift);
  void (*affine)(const T* x, T* y, int64_t n, T scale, T offset);
  T (*weighted)(const T* x, const T* weights, int64_t n, T shift);
  void (*minus)(const T* e, const T* labels, T* y, int64_t n, T scale);
};
using RowKernels = RowKernelsOf<float>;

}  // namespace
}  // namespace runnel::cpu

#define RUNNEL_ISA_FILE "runnel/kernels/cpu/softmax_isa.h"
#include "runnel/kernels/cpu/foreach_isa.h"

namespace runnel::cpu {
namespace {

constexpr int64_t kTask = 8192;  // exponentials worth a task of their own

template <class T>
const RowKernelsOf<T>& row_kernels();

template <>
const RowKernelsOf<float>& row_kernels<float>() {
  return RUNNEL_BEST_ISA(kRowKernels);
}

template <>
const RowKernelsOf<double>& row_kernels<double>() {
  static constexpr RowKernelsOf<double> kernels = {
      [](const double* x, int64_t n) {
        double m = -std::numeric_limits<double>::infinity();
        for (int64_t i = 0; i < n; ++i) m = x[i] <= m || m != m ? m : x[i];
        return m;
      },
      [](const double* x, double* y, int64_t n, double shift) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) {
          const double e = std::exp(x[i] - shift);
          if (y) y[i] = e;
          sum += e;
        }
        return sum;
      },
      [](const double* x, double* y, int64_t n, double scale, double offset) {
        for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale - offset;
      },
      [](const double* x, const double* weights, int64_t n, double shift) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += weights[i] == 0 ? 0 : weights[i] * (shift - x[i]);
        return sum;
      },
      [](const double* e, const double* labels, double* y, int64_t n, double scale) {
        for (int64_t i = 0; i < n; ++i) y[i] = e[i] * scale - labels[i];
      },
  };
  return kernels;
}

template <class Body>
void for_rows(int64_t rows, int64_t cols, const Body& body) {
  if (rows * cols <= kTask) return body(int64_t{0}, rows);
  parallel_for(rows, std::max<int64_t>(1, kTask / cols), body);
}

template <class T>
void softmax(const T* x, T* y, int64_t rows, int64_t cols, bool log) {
  if constexpr (std::is_same_v<T, float>) {
    if (!log && cols <= RUNNEL_BEST_ISA(kNarrowSoftmax)) {
      return for_rows(rows, cols, [&](int64_t begin, int64_t end) {
        RUNNEL_BEST_ISA(narrow_softmax)(x + begin * cols, y + begin * cols, end - begin, cols);
      });
    }
  }
  const auto& k = row_kernels<T>();
  for_rows(rows, cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* in = x + r * cols;
      T* out = y + r * cols;
      const T m = k.max(in, cols);
      if (log) {
        const T sum = k.exp(in, nullptr, cols, m);
        // In two steps: max + log(sum) rounded to one number would lose the digits of the small logarithm.
        k.affine(in, out, cols, T(1), m);
        k.affine(out, out, cols, T(1), std::log(sum));
      } else {
        const T sum = k.exp(in, out, cols, m);
        k.affine(out, out, cols, T(1) / sum, T(0));
      }
    }
  });
}

template <class T>
void logsumexp(const T* x, T* y, int64_t rows, int64_t cols) {
  const auto& k = row_kernels<T>();
  for_rows(rows, cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T m = k.max(x + r * cols, cols);
      if (std::isinf(m)) m = 0;  // all -inf, or an infinity: exp gives the right limit by itself
      y[r] = m + std::log(k.exp(x + r * cols, nullptr, cols, m));
    }
  });
}

template <class T>
void softmax_cross_entropy(const T* logits, const T* labels, T* loss, T* backprop, int64_t rows, int64_t cols) {
  const auto& k = row_kernels<T>();
  for_rows(rows, cols, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    T* scratch = frame.get<T>(cols);
    for (int64_t r = begin; r < end; ++r) {
      const T* in = logits + r * cols;
      const T m = k.max(in, cols);
      k.affine(in, scratch, cols, T(1), m);  // first: backprop may be the logits
      const T sum = k.exp(scratch, backprop ? backprop + r * cols : nullptr, cols, T(0));
      loss[r] = k.weighted(scratch, labels + r * cols, cols, std::log(sum));
      if (backprop) k.minus(backprop + r * cols, labels + r * cols, backprop + r * cols, cols, T(1) / sum);
    }
  });
}

}  // namespace

void softmax_rows(const float* x, float* y, int64_t rows, int64_t cols, bool log) { softmax(x, y, rows, cols, log); }
void softmax_rows(const double* x, double* y, int64_t rows, int64_t cols, bool log) { softmax(x, y, rows, cols, log); }
void logsumexp_rows(const float* x, float* y, int64_t rows, int64_t cols) { logsumexp(x, y, rows, cols); }
void logsumexp_rows(const double* x, double* y, int64_t rows, int64_t cols) { logsumexp(x, y, rows, cols); }
void softmax_cross_entropy_rows(const float* logits, const float* labels, float* loss, float* backprop, int64_t rows,
                                int64_t cols) {
  softmax_cross_entropy(logits, labels, loss, backprop, rows, cols);
}
void softmax_cross_entropy_rows(const double* logits, const double* labels, double* loss, double* backprop,
                                int64_t rows, int64_t cols) {
  softmax_cross_entropy(logits, labels, loss, backprop, rows, cols);
}

template <class T, class Label>
void sparse_softmax_cross_entropy_rows(const T* logits, const Label* labels, T* loss, T* backprop, int64_t rows,
                                       int64_t cols) {
  const auto& k = row_kernels<T>();
  for_rows(rows, cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* in = logits + r * cols;
      T* out = backprop ? backprop + r * cols : nullptr;
      const T m = k.max(in, cols);
      const T shifted = in[labels[r]] - m;
      const T sum = k.exp(in, out, cols, m);
      loss[r] = std::log(sum) - shifted;
      if (!out) continue;
      k.affine(out, out, cols, T(1) / sum, T(0));
      out[labels[r]] -= T(1);
    }
  });
}

template RUNNEL_API void sparse_softmax_cross_entropy_rows(const float*, const int32_t*, float*, float*, int64_t,
                                                           int64_t);
template RUNNEL_API void sparse_softmax_cross_entropy_rows(const float*, const int64_t*, float*, float*, int64_t,
                                                           int64_t);
template RUNNEL_API void sparse_softmax_cross_entropy_rows(const double*, const int32_t*, double*, double*, int64_t,
                                                           int64_t);
template RUNNEL_API void sparse_softmax_cross_entropy_rows(const double*, const int64_t*, double*, double*, int64_t,
                                                           int64_t);

}  // namespace runnel::cpu
