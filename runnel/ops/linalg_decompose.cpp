// QR, singular values and Hermitian eigenvalues.
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/linalg.h"
#include "runnel/ops/linalg_factor.h"
#include "runnel/ops/linalg_large.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"

namespace runnel {
namespace {

struct QrAttrs {
  bool full_matrices = false;
  static constexpr auto fields() { return field_list(field("full_matrices", &QrAttrs::full_matrices)); }
};
struct SvdAttrs {
  bool compute_uv = true;
  bool full_matrices = false;
  static constexpr auto fields() {
    return field_list(field("compute_uv", &SvdAttrs::compute_uv), field("full_matrices", &SvdAttrs::full_matrices));
  }
};
struct EighAttrs {
  bool compute_v = true;
  static constexpr auto fields() { return field_list(field("compute_v", &EighAttrs::compute_v)); }
};

using linalg::adjoint;
using linalg::band_part;
using linalg::diag_part;

Tensor times(const Tensor& a, const Tensor& b) { return matmul(a, b); }

// x * r^-H for upper triangular r.
Tensor right_solve(const Tensor& x, const Tensor& r) {
  return adjoint(linalg::triangular_solve(r, adjoint(x), false, false));
}

// 1 / (w[j] - w[i]) off the diagonal, 0 on it (and where two values coincide: the derivative is not defined there).
Tensor inverse_gaps(const Tensor& w) {
  const Tensor gaps = expand_dims(w, -2) - expand_dims(w, -1);
  const Tensor equal_values = equal(gaps, zeros_like(gaps));
  return where(equal_values, zeros_like(gaps), 1 / where(equal_values, ones_like(gaps), gaps));
}

// The gradient of QR for matrices with at least as many rows as columns.
Tensor qr_grad_tall(const Tensor& q, const Tensor& r, const Tensor& dq, const Tensor& dr) {
  const Tensor qdq = matmul(q, dq, {.adjoint_a = true});
  const Tensor rdr = matmul(r, dr, {.adjoint_b = true});
  const Tensor skew = qdq - adjoint(qdq) + rdr - adjoint(rdr);
  // The diagonal, imaginary numbers (0 of real matrices), belongs half to each triangle.
  const Tensor lower = linalg::set_diag(band_part(skew, -1, 0), diag_part(skew) * 0.5);
  return times(q, dr + right_solve(lower, r)) + right_solve(dq - times(q, qdq), r);
}

Tensor qr_grad(const GradCtx& g) {
  const Tensor& q = g.y(0);
  const Tensor& r = g.y(1);
  const int64_t rows = matrix_rows(g.x());
  const int64_t cols = matrix_cols(g.x());
  if (matrix_cols(q) != std::min(rows, cols)) {
    throw make_error(Code::unimplemented, "[Qr] there is no gradient with full_matrices of a tall matrix");
  }
  if (rows >= cols) return qr_grad_tall(q, r, g.dy(0), g.dy(1));
  // a = [x y], r = [u v]: x = q u is the square case, and y depends on q through v = q^H y.
  const Tensor y = g.x()(ellipsis, slice(rows, none));
  const Tensor u = r(ellipsis, slice(none, rows));
  const Tensor du = g.dy(1)(ellipsis, slice(none, rows));
  const Tensor dv = g.dy(1)(ellipsis, slice(rows, none));
  const Tensor dx = qr_grad_tall(q, u, g.dy(0) + matmul(y, dv, {.adjoint_b = true}), du);
  return concat({dx, times(q, dv)}, -1);
}

// By singular values, which are real, also where the op gives them as complex numbers.
Tensor by_values(const GradCtx& g) {
  if (!is_complex(g.x().dtype())) return g.dy(0);
  const Tensor d = real(g.dy(0));
  return complex(d, zeros_like(d));
}

Tensor svd_grad(const GradCtx& g, const SvdAttrs& a) {
  const int64_t rows = matrix_rows(g.x());
  const int64_t cols = matrix_cols(g.x());
  if (!a.compute_uv || (!g.has_dy(1) && !g.has_dy(2))) {
    Tensor u = a.compute_uv ? g.y(1) : Tensor();
    Tensor v = a.compute_uv ? g.y(2) : Tensor();
    if (!a.compute_uv || a.full_matrices) {
      const linalg::SvdResult thin = linalg::svd(g.x());
      u = thin.u;
      v = thin.v;
    }
    return matmul(u * expand_dims(by_values(g), -2), v, {.adjoint_b = true});
  }
  if (a.full_matrices && rows != cols) {
    throw make_error(Code::unimplemented, "[Svd] there is no gradient with full_matrices unless the matrix is square");
  }
  const Tensor& s = g.y(0);
  const Tensor& u = g.y(1);
  const Tensor& v = g.y(2);
  const Tensor du = g.dy(1);
  const Tensor dv = g.dy(2);
  const Tensor f = inverse_gaps(s * s);     // of a complex matrix s is complex too, its imaginary part 0
  const Tensor row_s = expand_dims(s, -2);  // scales columns
  const Tensor column_s = expand_dims(s, -1);
  const Tensor vdv = matmul(v, dv, {.adjoint_a = true});
  const Tensor j = f * matmul(u, du, {.adjoint_a = true});
  const Tensor k = f * vdv;
  Tensor core = (j + adjoint(j)) * row_s + column_s * (k + adjoint(k)) + linalg::diag(by_values(g));
  const Tensor inverse_s = 1 / row_s;
  if (is_complex(g.x().dtype())) {  // the phases of the vectors
    const Tensor phases = diag_part(vdv);
    core = core + linalg::diag((conj(phases) - phases) / s * 0.5);
  }
  Tensor result = matmul(times(u, core), v, {.adjoint_b = true});
  if (rows > cols) {
    const Tensor outside = du - times(u, matmul(u, du, {.adjoint_a = true}));
    result = result + matmul(outside * inverse_s, v, {.adjoint_b = true});
  }
  if (cols > rows) {
    const Tensor outside = dv - times(v, vdv);
    result = result + matmul(u * inverse_s, outside, {.adjoint_b = true});
  }
  return result;
}

Tensor eigh_grad(const GradCtx& g, const EighAttrs& a) {
  const DType dtype = g.x().dtype();
  Tensor v;
  Tensor core = linalg::diag(cast(g.dy(0), dtype));
  if (a.compute_v) {
    v = g.y(1);
    if (g.has_dy(1)) {
      core = core + cast(inverse_gaps(g.y(0)), dtype) * matmul(v, g.dy(1), {.adjoint_a = true});
    }
  } else {
    v = linalg::eigh(g.x()).v;
  }
  const Tensor full = matmul(times(v, core), v, {.adjoint_b = true});
  // Only the lower triangle is read: it carries the derivative of both.
  const Tensor lower = band_part(full + adjoint(full), -1, 0);
  return linalg::set_diag(lower, diag_part(lower) * 0.5);
}

}  // namespace

void register_linalg_decompose(Registry& r) {
  r.define<QrAttrs>("Qr")
      .in("input", half_matrix_types)
      .out("q")
      .out("r")
      .shape([](InferContext& c, const QrAttrs& a) {
        require_matrices(c, 0);
        const PartialShape& s = c.input(0);
        if (!s.has_rank()) return unknown_shape(c);
        const int64_t m = s[s.rank() - 2];
        const int64_t n = s[s.rank() - 1];
        const int64_t k = a.full_matrices ? m : min_dim(m, n);
        c.output(0, batch_and(s, {m, k}));
        c.output(1, batch_and(s, {k, n}));
      })
      .cpu([]<class T>(KernelContext& c) {
        const int64_t k = matrix_cols(c.out(0));
        for_each_matrix(c.in(0), [&](int64_t i) {
          if (c.in(0).num_elements() == 0) {
            mutable_matrix_at<T>(c.out(0), i).setIdentity();
            return;
          }
          if constexpr (may_be_large<T>) {
            const int64_t m = matrix_rows(c.in(0)), n = matrix_cols(c.in(0));
            if (std::min(m, n) >= kLargeMatrix) {
              return large_qr(m, n, k, c.in<T>(0) + i * m * n, c.out<T>(0) + i * m * k, c.out<T>(1) + i * k * n);
            }
          }
          const auto qr = qr_factors<Wide<T>>(wide_matrix_at<T>(c.in(0), i), k);
          mutable_matrix_at<T>(c.out(0), i) = qr.q.template cast<T>();
          mutable_matrix_at<T>(c.out(1), i) = qr.r.template cast<T>();
        });
      })
      .grad([](const GradCtx& g) { return qr_grad(g); })
      .doc("input = q * r with orthonormal columns in q and upper triangular r.")
      .sample({.in = {Tensor{{3.f, 1.f}, {4.f, 2.f}}}})
      .sample({.in = {Tensor{{3.f, 1.f}, {4.f, 2.f}, {0.5f, -1.f}}}})
      .sample({.in = {Tensor{{3.f, 1.f, 2.f}, {4.f, 2.f, -1.f}}}})
      .sample({.in = {Tensor{1.f}}, .error = "rank 2 or more"});

  r.define<SvdAttrs>("Svd")
      .in("input", matrix_types)
      .out("s")
      .out("u")
      .out("v")
      .shape([](InferContext& c, const SvdAttrs& a) {
        require_matrices(c, 0);
        const PartialShape& s = c.input(0);
        if (!s.has_rank()) return unknown_shape(c);
        const int64_t m = s[s.rank() - 2];
        const int64_t n = s[s.rank() - 1];
        const int64_t k = min_dim(m, n);
        c.output(0, batch_and(s, {k}));
        c.output(1, a.compute_uv ? batch_and(s, {m, a.full_matrices ? m : k}) : PartialShape{0});
        c.output(2, a.compute_uv ? batch_and(s, {n, a.full_matrices ? n : k}) : PartialShape{0});
      })
      .cpu([]<class T>(KernelContext& c, const SvdAttrs& a) {
        const int64_t k = std::min(matrix_rows(c.in(0)), matrix_cols(c.in(0)));
        for_each_matrix(c.in(0), [&](int64_t i) {
          if (k == 0) {
            if (a.compute_uv) {
              mutable_matrix_at<T>(c.out(1), i).setIdentity();
              mutable_matrix_at<T>(c.out(2), i).setIdentity();
            }
            return;
          }
          if constexpr (may_be_large<T>) {
            const int64_t m = matrix_rows(c.in(0)), n = matrix_cols(c.in(0));
            std::vector<double> values(static_cast<size_t>(k));
            const auto part = [&](int o) {
              const Tensor& t = c.out(o);
              return a.compute_uv ? c.out<T>(o) + i * matrix_rows(t) * matrix_cols(t) : static_cast<T*>(nullptr);
            };
            if (k >= kLargeMatrix &&
                large_svd(m, n, c.in<T>(0) + i * m * n, a.full_matrices, values.data(), part(1), part(2))) {
              for (int64_t j = 0; j < k; ++j) c.out<T>(0)[i * k + j] = static_cast<T>(values[static_cast<size_t>(j)]);
              return;
            }
          }
          const auto svd = svd_factors<Wide<T>>(wide_matrix_at<T>(c.in(0), i), a.compute_uv, a.full_matrices);
          for (int64_t j = 0; j < k; ++j) c.out<T>(0)[i * k + j] = T(static_cast<RealOf<T>>(svd.s[j]));
          if (a.compute_uv) {
            mutable_matrix_at<T>(c.out(1), i) = svd.u.template cast<T>();
            mutable_matrix_at<T>(c.out(2), i) = svd.v.template cast<T>();
          }
        });
      })
      .grad([](const GradCtx& g, const SvdAttrs& a) { return svd_grad(g, a); })
      .doc(
          "input = u * diag(s) * adjoint(v) with orthonormal u, v and descending s; all NaN where input is not finite.")
      .sample({.in = {Tensor{{NAN, 1.f}, {0.5f, 2.f}}},
               .out = {Tensor{NAN, NAN}, Tensor{{NAN, NAN}, {NAN, NAN}}, Tensor{{NAN, NAN}, {NAN, NAN}}},
               .differentiable = false})
      .sample({.in = {Tensor{{3.f, 1.f}, {0.5f, 2.f}}}, .free_phases = true})
      .sample({.in = {Tensor{{3.f, 0.f}, {0.f, -2.f}}},
               .out = {Tensor{3.f, 2.f}, Tensor::empty(DType::float32, {0}), Tensor::empty(DType::float32, {0})}},
              {.compute_uv = false})
      .sample({.in = {Tensor{{3.f, 1.f}, {0.5f, 2.f}, {1.f, 1.f}}}, .free_phases = true});

  r.define<EighAttrs>("SelfAdjointEigV2")
      .in("input", matrix_types)
      .out("e")
      .out("v")
      .shape([](InferContext& c, const EighAttrs& a) {
        require_square(c, 0);
        const PartialShape& s = c.input(0);
        if (!s.has_rank()) return unknown_shape(c);
        c.output(0, batch_and(s, {s[s.rank() - 1]}));
        c.output(1, a.compute_v ? s : PartialShape{0});
      })
      .cpu([]<class T>(KernelContext& c, const EighAttrs& a) {
        const int64_t n = matrix_rows(c.in(0));
        for_each_matrix(c.in(0), [&](int64_t i) {
          if (n == 0) return;
          if constexpr (may_be_large<T>) {
            std::vector<double> values(static_cast<size_t>(n));
            if (n >= kLargeMatrix && large_eigh(n, c.in<T>(0) + i * n * n, values.data(),
                                                a.compute_v ? c.out<T>(1) + i * n * n : static_cast<T*>(nullptr))) {
              for (int64_t j = 0; j < n; ++j) c.out<T>(0)[i * n + j] = static_cast<T>(values[static_cast<size_t>(j)]);
              return;
            }
          }
          const auto eigh = eigh_factors<Wide<T>>(wide_matrix_at<T>(c.in(0), i), a.compute_v);
          for (int64_t j = 0; j < n; ++j) c.out<T>(0)[i * n + j] = T(static_cast<RealOf<T>>(eigh.e[j]));
          if (a.compute_v) mutable_matrix_at<T>(c.out(1), i) = eigh.v.template cast<T>();
        });
      })
      .grad([](const GradCtx& g, const EighAttrs& a) { return eigh_grad(g, a); })
      .doc("Eigenvalues (ascending) and eigenvectors of Hermitian matrices; only the lower triangle is read.")
      // Complex eigenvectors are known but for a phase: their gradient is right for functions that do not see it.
      .sample({.in = {Tensor{{2.f, 0.5f}, {0.5f, 1.f}}}, .free_phases = true})
      .sample({.in = {Tensor{{2.f, 9.f}, {0.f, 1.f}}}, .out = {Tensor{1.f, 2.f}, Tensor::empty(DType::float32, {0})}},
              {.compute_v = false});
}

namespace linalg {
namespace {

// Singular values, which the op gives in the dtype of its matrices.
Tensor real_values(const Tensor& s) { return is_complex(s.dtype()) ? real(s) : s; }

}  // namespace

QrResult qr(const Operand& input, bool full_matrices) {
  static const Op<QrAttrs> op("Qr");
  auto both = op.many({input}, {.full_matrices = full_matrices});
  return {both[0], both[1]};
}
SvdResult svd(const Operand& tensor, bool full_matrices) {
  return composed(tensor.where(), [&]() -> SvdResult {
    static const Op<SvdAttrs> op("Svd");
    const auto all = op.many({tensor}, {.full_matrices = full_matrices});
    return {real_values(all[0]), all[1], all[2]};
  });
}
Tensor svdvals(const Operand& tensor) {
  return composed(tensor.where(), [&] {
    static const Op<SvdAttrs> op("Svd");
    return real_values(op.many({tensor}, {.compute_uv = false})[0]);
  });
}
EighResult eigh(const Operand& tensor) {
  static const Op<EighAttrs> op("SelfAdjointEigV2");
  auto both = op.many({tensor});
  return {both[0], both[1]};
}
Tensor eigvalsh(const Operand& tensor) {
  static const Op<EighAttrs> op("SelfAdjointEigV2");
  return op.many({tensor}, {.compute_v = false})[0];
}

Tensor matrix_transpose(const Operand& a) {
  return composed(a.where(), [&]() -> Tensor {
    const Tensor x = a.value();
    Dims perm;
    for (int i = 0; i < x.partial_shape().rank(); ++i) perm.push_back(i);
    if (perm.size() < 2) {
      throw invalid_argument("[matrix_transpose] matrices needed, got shape {}", x.partial_shape().str());
    }
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return transpose(x, int_vector(perm));
  });
}
Tensor adjoint(const Operand& matrix) {
  return composed(matrix.where(), [&] { return conj(matrix_transpose(matrix)); });
}
Tensor trace(const Operand& x) {
  return composed(x.where(), [&] { return reduce_sum(diag_part(x), -1); });
}
Tensor matvec(const Operand& a, const Operand& b) {
  return composed(a.where(), [&] { return squeeze(matmul(a, expand_dims(b, -1)), {-1}); });
}

}  // namespace linalg
}  // namespace runnel
