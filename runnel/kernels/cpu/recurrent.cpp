#include "runnel/kernels/cpu/recurrent.h"

#include <algorithm>
#include <type_traits>

#include "runnel/base/cpu.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/gemm.h"
#include "runnel/kernels/cpu/packed_product.h"

#define RUNNEL_ISA_FILE "runnel/kernels/cpu/recurrent_isa.h"
#define RUNNEL_ISA_WITH_AVX512
#include "runnel/kernels/cpu/foreach_isa.h"

namespace runnel::cpu {
namespace {

// Rows of the batch that go through the steps together: enough to use what a step reads of the weights several times.
constexpr int64_t kSequenceRows = 16;

// An even number of parts, so that two threads get the same, of at most that many rows and at least four.
int64_t batch_parts(int64_t batch) {
  const int64_t parts = (batch + kSequenceRows - 1) / kSequenceRows;
  return batch < 8 ? 1 : parts + parts % 2;
}

// Kernels of at most this many bytes are multiplied with the inputs step by step, where the gates then are in the
// cache; larger ones in one product for all steps, which reads them less often.
constexpr int64_t kKernelOfSteps = 4 << 20;

// C = op(A) * op(B) + beta * C
template <class T>
void product(bool ta, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c,
             int64_t ldc) {
  if constexpr (std::is_same_v<T, float>) {
    gemm_f32(ta, false, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
  } else {
    gemm_plain<T>(ta, false, m, n, k, T(1), a, lda, b, ldb, beta, c, ldc);
  }
}

// The memory that a step keeps for the gradient.
template <class T, class P>
struct Kept {
  Kept(const Recurrence& r, P* p) : gates(p), h(p + r.rows() * r.kept_gates() * r.units), c(h + r.rows() * r.units) {}
  P *gates, *h, *c;
};

template <class T>
class ForwardSteps {
 public:
  ForwardSteps(const Recurrence& r, const RecurrentWeights<T>& w, const RecurrentForward<T>& f)
      : r_(r),
        f_(f),
        kept_(r, f.kept),
        in_steps_(r.inputs * r.gates() * r.units * static_cast<int64_t>(sizeof(T)) <= kKernelOfSteps),
        start_(start_of_rows(w)),
        of_h_(frame_, false, r.units, r.gates() * r.units, w.recurrent, r.gates() * r.units),
        of_x_(frame_, false, in_steps_ ? r.inputs : 0, first(), w.kernel, r.gates() * r.units),
        candidate_of_x_(frame_, false, in_steps_ && is_gru() ? r.inputs : 0, r.units, w.kernel + first(),
                        r.gates() * r.units) {
    if (!in_steps_) project(w);
    const int64_t parts = batch_parts(r.batch);
    parallel_for(parts, 1, [&](int64_t part, int64_t) { run(r.batch * part / parts, r.batch * (part + 1) / parts); });
  }

 private:
  bool is_gru() const { return r_.cell == CellKind::gru; }
  // The columns of the kernel whose sums stand first in a row of gates. Those of the GRU's candidate stand behind what
  // its reset gate multiplies, a product with the state alone.
  int64_t first() const { return (is_gru() ? 2 : r_.gates()) * r_.units; }

  // What a row of gates begins with before anything is multiplied.
  const T* start_of_rows(const RecurrentWeights<T>& w) {
    const int64_t u = r_.units, wide = r_.kept_gates() * u;
    T* start = frame_.template get<T>(wide);
    if (!w.bias) {
      std::fill_n(start, wide, T(0));
    } else if (!is_gru()) {
      std::copy_n(w.bias, wide, start);
    } else {
      for (int64_t j = 0; j < 2 * u; ++j) start[j] = w.bias[j] + w.bias[3 * u + j];
      std::copy_n(w.bias + 5 * u, u, start + 2 * u);
      std::copy_n(w.bias + 2 * u, u, start + 3 * u);
    }
    return start;
  }

  void project(const RecurrentWeights<T>& w) {
    const int64_t u = r_.units, all = r_.gates() * u, wide = r_.kept_gates() * u;
    for (int64_t row = 0; row < r_.rows(); ++row) std::copy_n(start_, wide, kept_.gates + row * wide);
    product<T>(false, r_.rows(), first(), r_.inputs, f_.x, r_.inputs, w.kernel, all, T(1), kept_.gates, wide);
    if (!is_gru()) return;
    product<T>(false, r_.rows(), u, r_.inputs, f_.x, r_.inputs, w.kernel + first(), all, T(1), kept_.gates + 3 * u,
               wide);
  }

  // Rows [begin, end) of the batch through all steps.
  void run(int64_t begin, int64_t end) const {
    const int64_t u = r_.units, rows = end - begin, wide = r_.kept_gates() * u, step = r_.row_step();
    ScratchFrame frame;
    T *h = frame.template get<T>(rows * u), *c = frame.template get<T>(rows * u);
    T* output = f_.mask ? frame.template get<T>(rows * u) : h;
    std::copy_n(f_.h + begin * u, rows * u, h);
    if (r_.states() == 2) std::copy_n(f_.c + begin * u, rows * u, c);
    if (f_.mask) std::fill_n(output, rows * u, T(0));
    for (int64_t s = 0; s < r_.time; ++s) {
      const int64_t t = r_.backwards ? r_.time - 1 - s : s, at = r_.row(begin, t);
      T* gates = kept_.gates + at * wide;
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t row = at + i * step;
        std::copy_n(h + i * u, u, kept_.h + row * u);
        if (r_.states() == 2) std::copy_n(c + i * u, u, kept_.c + row * u);
        if (in_steps_) std::copy_n(start_, wide, gates + i * step * wide);
      }
      of_h_.add_product(rows, h, u, gates, step * wide);
      if (in_steps_) of_x_.add_product(rows, f_.x + at * r_.inputs, step * r_.inputs, gates, step * wide);
      if (in_steps_ && is_gru()) {
        candidate_of_x_.add_product(rows, f_.x + at * r_.inputs, step * r_.inputs, gates + 3 * u, step * wide);
      }
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t row = at + i * step;
        if (!f_.mask || f_.mask[row]) {
          cell(gates + i * step * wide, c + i * u, h + i * u);
          if (f_.mask) std::copy_n(h + i * u, u, output + i * u);
        }
        if (f_.sequence) std::copy_n(output + i * u, u, f_.sequence + r_.row(begin + i, s) * u);
      }
    }
    if (r_.time > 0) {
      std::copy_n(output, rows * u, f_.last + begin * u);
    } else {
      std::fill_n(f_.last + begin * u, rows * u, T(0));
    }
    std::copy_n(h, rows * u, f_.last_h + begin * u);
    if (r_.states() == 2) std::copy_n(c, rows * u, f_.last_c + begin * u);
  }

  void cell(T* gates, T* c, T* h) const {
    switch (r_.cell) {
      case CellKind::simple: return RUNNEL_BEST_ISA(simple_row<T>)(r_.units, gates, c, h);
      case CellKind::lstm: return RUNNEL_BEST_ISA(lstm_row<T>)(r_.units, gates, c, h);
      case CellKind::gru: return RUNNEL_BEST_ISA(gru_row<T>)(r_.units, gates, c, h);
    }
  }

  Recurrence r_;
  RecurrentForward<T> f_;
  Kept<T, T> kept_;
  bool in_steps_;
  ScratchFrame frame_;
  const T* start_;
  PackedMatrix<T> of_h_, of_x_, candidate_of_x_;
};

template <class T>
class BackwardSteps {
 public:
  BackwardSteps(const Recurrence& r, const RecurrentWeights<T>& w, const RecurrentBackward<T>& b)
      : r_(r),
        b_(b),
        kept_(r, b.kept),
        inner_(r.cell == CellKind::gru ? frame_.template get<T>(r.rows() * r.units) : nullptr),
        of_gates_(frame_, true, direct(), r.units, w.recurrent, r.gates() * r.units),
        of_inner_(frame_, true, inner_ ? r.units : 0, r.units, w.recurrent + direct(), r.gates() * r.units) {
    const int64_t parts = batch_parts(r.batch);
    parallel_for(parts, 1, [&](int64_t part, int64_t) { run(r.batch * part / parts, r.batch * (part + 1) / parts); });
    weight_gradients();
  }

 private:
  // The columns of dz that are gradients of the product with the states, too.
  int64_t direct() const { return (r_.cell == CellKind::gru ? 2 : r_.gates()) * r_.units; }

  // Rows [begin, end) of the batch through all steps, the last one first.
  void run(int64_t begin, int64_t end) const {
    const int64_t u = r_.units, rows = end - begin, wide = r_.gates() * u, step = r_.row_step();
    ScratchFrame frame;
    T *dh = frame.template get<T>(rows * u), *dc = frame.template get<T>(rows * u);
    T* d_output = frame.template get<T>(rows * u);  // of the output that steps after this one repeat
    const auto start = [&](const T* from, T* to) {
      if (from) {
        std::copy_n(from + begin * u, rows * u, to);
      } else {
        std::fill_n(to, rows * u, T(0));
      }
    };
    start(b_.d_last_h, dh);
    start(b_.d_last_c, dc);
    start(b_.d_last, d_output);
    for (int64_t s = r_.time - 1; s >= 0; --s) {
      const int64_t t = r_.backwards ? r_.time - 1 - s : s, first = r_.row(begin, t);
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t row = first + i * step;
        if (b_.d_sequence) add(d_output + i * u, b_.d_sequence + r_.row(begin + i, s) * u);
        if (b_.mask && !b_.mask[row]) {
          std::fill_n(b_.dz + row * wide, wide, T(0));
          if (inner_) std::fill_n(inner_ + row * u, u, T(0));
          continue;
        }
        add(dh + i * u, d_output + i * u);
        std::fill_n(d_output + i * u, u, T(0));
        cell(row, dh + i * u, dc + i * u);
      }
      of_gates_.add_product(rows, b_.dz + first * wide, step * wide, dh, u);
      if (inner_) of_inner_.add_product(rows, inner_ + first * u, step * u, dh, u);
    }
    std::copy_n(dh, rows * u, b_.dh + begin * u);
    if (b_.dc) std::copy_n(dc, rows * u, b_.dc + begin * u);
  }

  void add(T* sum, const T* x) const {
    for (int64_t j = 0; j < r_.units; ++j) sum[j] += x[j];
  }

  // dh becomes what goes to the state before past the gates.
  void cell(int64_t row, T* dh, T* dc) const {
    const int64_t u = r_.units;
    const T* gates = kept_.gates + row * r_.kept_gates() * u;
    T* dz = b_.dz + row * r_.gates() * u;
    switch (r_.cell) {
      case CellKind::simple: RUNNEL_BEST_ISA(simple_row_gradient<T>)(u, gates, dh, dz); break;
      case CellKind::lstm: RUNNEL_BEST_ISA(lstm_row_gradient<T>)(u, gates, kept_.c + row * u, dh, dc, dz); break;
      case CellKind::gru:
        return RUNNEL_BEST_ISA(gru_row_gradient<T>)(u, gates, kept_.h + row * u, dh, dz, inner_ + row * u);
    }
    std::fill_n(dh, u, T(0));
  }

  // Each as one product over all steps.
  void weight_gradients() {
    const int64_t u = r_.units, rows = r_.rows(), wide = r_.gates() * u;
    product<T>(true, r_.inputs, wide, rows, b_.x, r_.inputs, b_.dz, wide, T(0), b_.d_kernel, wide);
    product<T>(true, u, direct(), rows, kept_.h, u, b_.dz, wide, T(0), b_.d_recurrent, wide);
    if (inner_) product<T>(true, u, u, rows, kept_.h, u, inner_, u, T(0), b_.d_recurrent + direct(), wide);
    if (!b_.d_bias) return;
    T* ones = frame_.template get<T>(rows);
    std::fill_n(ones, rows, T(1));
    product<T>(false, 1, wide, rows, ones, rows, b_.dz, wide, T(0), b_.d_bias, wide);
    if (!inner_) return;
    std::copy_n(b_.d_bias, direct(), b_.d_bias + wide);
    product<T>(false, 1, u, rows, ones, rows, inner_, u, T(0), b_.d_bias + wide + direct(), u);
  }

  Recurrence r_;
  RecurrentBackward<T> b_;
  Kept<T, const T> kept_;
  ScratchFrame frame_;
  T* inner_;  // the gradient of what the reset gate multiplies
  PackedMatrix<T> of_gates_, of_inner_;
};

}  // namespace

template <class T>
void recurrent_forward(const Recurrence& r, const RecurrentWeights<T>& w, const RecurrentForward<T>& f) {
  ForwardSteps<T>(r, w, f);
}
template <class T>
void recurrent_backward(const Recurrence& r, const RecurrentWeights<T>& w, const RecurrentBackward<T>& b) {
  BackwardSteps<T>(r, w, b);
}

template RUNNEL_API void recurrent_forward(const Recurrence&, const RecurrentWeights<float>&,
                                           const RecurrentForward<float>&);
template RUNNEL_API void recurrent_forward(const Recurrence&, const RecurrentWeights<double>&,
                                           const RecurrentForward<double>&);
template RUNNEL_API void recurrent_backward(const Recurrence&, const RecurrentWeights<float>&,
                                            const RecurrentBackward<float>&);
template RUNNEL_API void recurrent_backward(const Recurrence&, const RecurrentWeights<double>&,
                                            const RecurrentBackward<double>&);

}  // namespace runnel::cpu
