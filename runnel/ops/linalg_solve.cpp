// Inverses, determinants, solves, LU and Cholesky.
#include <limits>

#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/broadcast_grad.h"
#include "runnel/ops/linalg.h"
#include "runnel/ops/linalg_factor.h"
#include "runnel/ops/linalg_large.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"

namespace runnel {
namespace {

struct AdjointAttrs {
  bool adjoint = false;
  static constexpr auto fields() { return field_list(field("adjoint", &AdjointAttrs::adjoint)); }
};
struct TriangularAttrs {
  bool lower = true;
  bool adjoint = false;
  static constexpr auto fields() {
    return field_list(field("lower", &TriangularAttrs::lower), field("adjoint", &TriangularAttrs::adjoint));
  }
};
struct LuAttrs {
  DType output_idx_type = DType::int32;
  static constexpr auto fields() {
    return field_list(field("output_idx_type", &LuAttrs::output_idx_type, {.types = index_types.mask}));
  }
};

void solve_shape(InferContext& c, bool broadcast_batch) {
  require_square(c, 0);
  require_matrices(c, 1);
  const PartialShape& a = c.input(0);
  const PartialShape& b = c.input(1);
  if (!a.has_rank() || !b.has_rank()) return c.output(PartialShape::unknown());
  const int64_t n = a[a.rank() - 1];
  const int64_t rows = b[b.rank() - 2];
  if (n >= 0 && rows >= 0 && n != rows) {
    throw invalid_argument("a matrix of shape {} does not fit a right-hand side of shape {}", a.str(), b.str());
  }
  const PartialShape batch_a(Dims(a.begin(), a.end() - 2));
  const PartialShape batch_b(Dims(b.begin(), b.end() - 2));
  const PartialShape batch = broadcast_batch ? broadcast_shapes(batch_a, batch_b) : batch_a.merged_with(batch_b);
  Dims dims = batch.dims();
  dims.push_back(rows >= 0 ? rows : n);
  dims.push_back(b[b.rank() - 1]);
  c.output(PartialShape(dims));
}

// Matrix number i, its adjoint if asked.
template <class T>
Matrix<Wide<T>> operand_at(const Tensor& t, int64_t i, bool adjoint) {
  Matrix<Wide<T>> m = wide_matrix_at<T>(t, i);
  if (adjoint) m.adjointInPlace();
  return m;
}

// The adjoint is asked for of small matrices alone.
template <class T>
LuFactors<Wide<T>> lu_at(const Tensor& t, int64_t i, bool adjoint = false) {
  if constexpr (may_be_large<T>) {
    const int64_t n = matrix_rows(t);
    if (n >= kLargeMatrix) {
      Matrix<T> lu(n, n);
      LuFactors<double> factors;
      factors.row_to.resize(n);
      factors.sign_of_rows = large_lu(n, t.data<T>() + i * n * n, lu.data(), factors.row_to.data());
      factors.lu = lu.template cast<double>();
      return factors;
    }
  }
  return lu_factors(operand_at<T>(t, i, adjoint));
}

template <class T>
LuFactors<Wide<T>> regular_lu_at(const Tensor& t, int64_t i, bool adjoint = false) {
  LuFactors<Wide<T>> lu = lu_at<T>(t, i, adjoint);
  lu.require_regular();
  return lu;
}

template <class T>
void set_matrix_at(const Tensor& t, int64_t i, const Matrix<Wide<T>>& m) {
  mutable_matrix_at<T>(t, i) = m.template cast<T>();
}

// `t` of the batch's shape as [..., 1, 1], to weigh matrices.
Tensor per_matrix(const Tensor& t) { return expand_dims(expand_dims(t, -1), -1); }

Tensor broadcast_batch_to(const Tensor& t, const Tensor& like) {
  Dims dims(like.shape().begin(), like.shape().end() - 2);
  dims.push_back(matrix_rows(t));
  dims.push_back(matrix_cols(t));
  return t.shape().dims() == dims ? t : broadcast_to(t, dims);
}

Gradients solve_gradients(const GradCtx& g, const Tensor& grad_b, bool adjoint) {
  const Tensor& c = g.y();
  const Tensor grad_a =
      adjoint ? negative(matmul(c, grad_b, {.adjoint_b = true})) : negative(matmul(grad_b, c, {.adjoint_b = true}));
  return {grad_a, grad_b};
}

}  // namespace

void register_linalg_solve(Registry& r) {
  r.define<AdjointAttrs>("MatrixInverse")
      .in("input", half_matrix_types)
      .out("output")
      .shape([](InferContext& c) {
        require_square(c, 0);
        c.output(c.input(0));
      })
      .cpu([]<class T>(KernelContext& c, const AdjointAttrs& a) {
        for_each_matrix(c.in(0), [&](int64_t i) {
          if constexpr (may_be_large<T>) {
            const int64_t n = matrix_rows(c.in(0));
            if (n >= kLargeMatrix) return large_inverse(n, c.in<T>(0) + i * n * n, a.adjoint, c.out<T>() + i * n * n);
          }
          const auto lu = regular_lu_at<T>(c.in(0), i, a.adjoint);
          set_matrix_at<T>(c.out(), i, lu.solve(Matrix<Wide<T>>::Identity(lu.lu.rows(), lu.lu.cols())));
        });
      })
      .grad([](const GradCtx& g, const AdjointAttrs& a) {
        const Tensor& y = g.y();
        const Tensor inner = matmul(g.dy(), y, {.adjoint_a = a.adjoint, .adjoint_b = !a.adjoint});
        return a.adjoint ? negative(matmul(y, inner)) : negative(matmul(y, inner, {.adjoint_a = true}));
      })
      .doc("The inverse of square matrices, of their adjoint if asked.")
      .sample({.in = {Tensor{{2.f, 1.f}, {1.f, 1.f}}}, .out = {Tensor{{1.f, -1.f}, {-1.f, 2.f}}}})
      .sample({.in = {Tensor{{2.f, 0.5f}, {1.f, 1.f}}}}, {.adjoint = true})
      .sample({.in = {Tensor{{1.f, 2.f}, {2.f, 4.f}}}, .error = "not invertible"})
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}}}, .error = "square"});

  r.define("MatrixDeterminant")
      .in("input", matrix_types)
      .out("output")
      .shape([](InferContext& c) {
        require_square(c, 0);
        c.output(batch_and(c.input(0), {}));
      })
      .cpu([]<class T>(KernelContext& c) {
        for_each_matrix(c.in(0), [&](int64_t i) {
          const auto lu = lu_at<T>(c.in(0), i);
          c.out<T>()[i] = static_cast<T>(lu.lu.diagonal().prod() * lu.sign_of_rows);
        });
      })
      .grad([](const GradCtx& g) { return per_matrix(g.dy() * conj(g.y())) * linalg::inv(g.x(), true); })
      .doc("The determinant of square matrices.")
      .sample({.in = {Tensor{{2.f, 1.f}, {1.f, 3.f}}}, .out = {Tensor(5.f)}})
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}}}, .error = "square"});

  r.define("LogMatrixDeterminant")
      .in("input", matrix_types)
      .out("sign")
      .out("log_abs_determinant")
      .shape([](InferContext& c) {
        require_square(c, 0);
        c.output(0, batch_and(c.input(0), {}));
        c.output(1, batch_and(c.input(0), {}));
      })
      .cpu([]<class T>(KernelContext& c) {
        for_each_matrix(c.in(0), [&](int64_t i) {
          const auto lu = lu_at<T>(c.in(0), i);
          Wide<T> sign(lu.sign_of_rows);
          double log_abs = 0;
          for (Eigen::Index k = 0; k < lu.lu.rows(); ++k) {
            const Wide<T> d = lu.lu(k, k);
            const double size = std::abs(d);
            log_abs += std::log(size);
            sign = size > 0 ? sign * (d / size) : Wide<T>(0);
          }
          c.out<T>(0)[i] = static_cast<T>(sign);
          c.out<T>(1)[i] = T(static_cast<RealOf<T>>(log_abs));
        });
      })
      .grad([](const GradCtx& g) {
        Tensor d = g.dy(1);
        if (is_complex(g.x().dtype())) {  // the sign of a real one does not change
          // The logarithm is real. sign = exp(i * angle), and the angle changes by the imaginary part of
          // trace(inv(x) * dx).
          const Tensor by_log = real(d);
          d = complex(by_log, g.has_dy(0) ? imag(g.dy(0) * conj(g.y(0))) : zeros_like(by_log));
        }
        return per_matrix(d) * linalg::inv(g.x(), true);
      })
      .doc("Sign and logarithm of the absolute value of the determinant.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}}, .out = {Tensor(-1.f), Tensor(0.6931472f)}});

  r.define<AdjointAttrs>("MatrixSolve")
      .in("matrix", matrix_types)
      .in("rhs")
      .out("output")
      .shape([](InferContext& c) { solve_shape(c, false); })
      .cpu([]<class T>(KernelContext& c, const AdjointAttrs& a) {
        if (c.out().num_elements() == 0) return;
        for_each_matrix(c.in(0), [&](int64_t i) {
          if constexpr (may_be_large<T>) {
            const int64_t n = matrix_rows(c.in(0)), m = matrix_cols(c.out());
            if (n >= kLargeMatrix) {
              return large_solve(n, m, c.in<T>(0) + i * n * n, a.adjoint, c.in<T>(1) + i * n * m,
                                 c.out<T>() + i * n * m);
            }
          }
          set_matrix_at<T>(c.out(), i, regular_lu_at<T>(c.in(0), i, a.adjoint).solve(wide_matrix_at<T>(c.in(1), i)));
        });
      })
      .grad([](const GradCtx& g, const AdjointAttrs& a) {
        return solve_gradients(g, linalg::solve(g.x(0), g.dy(), !a.adjoint), a.adjoint);
      })
      .doc("Solves linear equations: output with matrix * output = rhs.")
      .sample({.in = {Tensor{{2.f, 1.f}, {1.f, 1.f}}, Tensor{{1.f}, {2.f}}}, .out = {Tensor{{-1.f}, {3.f}}}})
      .sample({.in = {Tensor{{2.f, 1.f}, {0.5f, 1.f}}, Tensor{{1.f}, {2.f}}}}, {.adjoint = true})
      .sample({.in = {Tensor{{2.f, 1.f}, {1.f, 1.f}}, Tensor{{1.f}}}, .error = "does not fit"});

  r.define<TriangularAttrs>("MatrixTriangularSolve")
      .in("matrix", half_matrix_types)
      .in("rhs")
      .out("output")
      .shape([](InferContext& c) { solve_shape(c, true); })
      .cpu([]<class T>(KernelContext& c, const TriangularAttrs& a) {
        if (c.out().num_elements() == 0) return;
        const Tensor m = broadcast_batch_to(c.in(0), c.out());
        const Tensor b = broadcast_batch_to(c.in(1), c.out());
        for_each_matrix(c.out(), [&](int64_t i) {
          if constexpr (may_be_large<T>) {
            const int64_t n = matrix_rows(m), columns = matrix_cols(b);
            if (n >= kLargeMatrix) {
              return large_triangular_solve(n, columns, m.data<T>() + i * n * n, a.lower, a.adjoint,
                                            b.data<T>() + i * n * columns, c.out<T>() + i * n * columns);
            }
          }
          set_matrix_at<T>(c.out(), i,
                           solve_triangular(operand_at<T>(m, i, a.adjoint), wide_matrix_at<T>(b, i),
                                            a.lower != a.adjoint));  // the adjoint of a lower triangle is an upper one
        });
      })
      .grad([](const GradCtx& g, const TriangularAttrs& a) {
        Gradients d = solve_gradients(g, linalg::triangular_solve(g.x(0), g.dy(), a.lower, !a.adjoint), a.adjoint);
        const Tensor grad_a = d[0];
        return Gradients{
            sum_to_shape_of(a.lower ? linalg::band_part(grad_a, -1, 0) : linalg::band_part(grad_a, 0, -1), g.x(0)),
            sum_to_shape_of(d[1], g.x(1))};
      })
      .doc("Solves linear equations with a triangular matrix; a zero on its diagonal gives infinity or NaN.")
      .sample({.in = {Tensor{{2.f, 0.f}, {1.f, 1.f}}, Tensor{{2.f}, {3.f}}}, .out = {Tensor{{1.f}, {2.f}}}})
      .sample({.in = {Tensor{{2.f, 0.5f}, {9.f, 1.f}}, Tensor{{2.f}, {3.f}}}}, {.lower = false, .adjoint = true})
      .sample({.in = {Tensor{{0.f, 0.f}, {1.f, 1.f}}, Tensor{{0.f}, {3.f}}},
               .out = {Tensor{{NAN}, {NAN}}},
               .differentiable = false});

  r.define("Cholesky")
      .in("input", matrix_types)
      .out("output")
      .shape([](InferContext& c) {
        require_square(c, 0);
        c.output(c.input(0));
      })
      .cpu([]<class T>(KernelContext& c) {
        for_each_matrix(c.in(0), [&](int64_t i) {
          const int64_t n = matrix_rows(c.in(0));
          if (n == 0) return;
          if constexpr (may_be_large<T>) {
            if (n >= kLargeMatrix) return large_cholesky(n, c.in<T>(0) + i * n * n, c.out<T>() + i * n * n);
          }
          set_matrix_at<T>(c.out(), i, cholesky_factor(wide_matrix_at<T>(c.in(0), i)));
        });
      })
      .grad([](const GradCtx& g) {
        const Tensor& l = g.y();
        Tensor middle = matmul(l, g.dy(), {.adjoint_a = true});
        middle = linalg::set_diag(middle, linalg::diag_part(middle) * 0.5);
        middle = linalg::band_part(middle, -1, 0);
        // L^-H * middle * L^-1, then its Hermitian part.
        const Tensor left = linalg::triangular_solve(l, middle, true, true);
        const Tensor both = linalg::adjoint(linalg::triangular_solve(l, linalg::adjoint(left), true, true));
        return (both + linalg::adjoint(both)) * 0.5;
      })
      .doc("The lower triangular L with L * adjoint(L) = input, NaN where input is not positive definite.")
      .sample({.in = {Tensor{{4.f, 2.f}, {2.f, 5.f}}},
               .out = {Tensor{{2.f, 0.f}, {1.f, 2.f}}},
               // The gradient is symmetric, as TensorFlow's: element by element it is right for 1x1 only.
               .differentiable = false})
      .sample({.in = {Tensor{{{4.f}}, {{9.f}}}}, .out = {Tensor{{{2.f}}, {{3.f}}}}})
      .sample(
          {.in = {Tensor{{1.f, 2.f}, {2.f, 1.f}}}, .out = {Tensor{{NAN, 0.f}, {NAN, NAN}}}, .differentiable = false});

  r.define<LuAttrs>("Lu")
      .in("input", matrix_types)
      .out("lu")
      .out("p", "output_idx_type")
      .shape([](InferContext& c) {
        require_square(c, 0);
        c.output(0, c.input(0));
        const PartialShape& s = c.input(0);
        c.output(1, s.has_rank() ? batch_and(s, {s[s.rank() - 1]}) : s);
      })
      .cpu([]<class T>(KernelContext& c) {
        const int64_t n = matrix_rows(c.in(0));
        for_each_matrix(c.in(0), [&](int64_t i) {
          const auto lu = regular_lu_at<T>(c.in(0), i);
          set_matrix_at<T>(c.out(0), i, lu.lu);
          for (int64_t k = 0; k < n; ++k) {
            const int64_t at = i * n + lu.row_to[k];
            if (c.output_dtype(1) == DType::int32) {
              c.out<int32_t>(1)[at] = static_cast<int32_t>(k);
            } else {
              c.out<int64_t>(1)[at] = k;
            }
          }
        });
      })
      .grad([](const GradCtx& g) {
        const Tensor& lu = g.y(0);
        const Tensor dlu = g.dy(0);
        const Tensor unit = ones_like(linalg::diag_part(lu));
        const Tensor l = linalg::set_diag(linalg::band_part(lu, -1, 0), unit);
        const Tensor u = linalg::band_part(lu, 0, -1);
        const Tensor dl = dlu - linalg::band_part(dlu, 0, -1);
        const Tensor du = linalg::band_part(dlu, 0, -1);
        const Tensor ldl = matmul(l, dl, {.adjoint_a = true});
        const Tensor lower = ldl - linalg::band_part(ldl, 0, -1);
        const Tensor upper = linalg::band_part(matmul(du, u, {.adjoint_b = true}), 0, -1);
        const Tensor left = linalg::triangular_solve(l, lower + upper, true, true);
        const Tensor rows = linalg::adjoint(linalg::triangular_solve(u, linalg::adjoint(left), false, false));
        // Back to the order of the input: row k of L * U is row p[k] there.
        const Tensor order = cast(one_hot(g.y(1), static_cast<int>(matrix_rows(lu))), lu.dtype());
        return matmul(order, rows, {.transpose_a = true});
      })
      .doc("LU with row pivoting: gather(input, p) = L * U.")
      .sample({.in = {Tensor{{1.f, 2.f}, {4.f, 2.f}}}, .out = {Tensor{{4.f, 2.f}, {0.25f, 1.5f}}, Tensor{1, 0}}});
}

namespace linalg {

Tensor inv(const Operand& input, bool adjoint) {
  static const Op<AdjointAttrs> op("MatrixInverse");
  return op({input}, {.adjoint = adjoint});
}
Tensor det(const Operand& input) {
  static const Op op("MatrixDeterminant");
  return op({input});
}
SlogdetResult slogdet(const Operand& input) {
  static const Op op("LogMatrixDeterminant");
  auto both = op.many({input});
  return {both[0], both[1]};
}
Tensor logdet(const Operand& matrix) {
  return composed(matrix.where(), [&]() -> Tensor {
    const Tensor l = cholesky(matrix);
    return reduce_sum(log(real(diag_part(l))), -1) * 2;
  });
}
Tensor solve(const Operand& matrix, const Operand& rhs, bool adjoint) {
  static const Op<AdjointAttrs> op("MatrixSolve");
  return op({matrix, rhs}, {.adjoint = adjoint});
}
Tensor triangular_solve(const Operand& matrix, const Operand& rhs, bool lower, bool adjoint) {
  static const Op<TriangularAttrs> op("MatrixTriangularSolve");
  return op({matrix, rhs}, {.lower = lower, .adjoint = adjoint});
}
Tensor cholesky(const Operand& input) {
  static const Op op("Cholesky");
  return op({input});
}
Tensor cholesky_solve(const Operand& chol, const Operand& rhs) {
  return composed(chol.where(), [&]() -> Tensor {
    const Tensor l = chol.value();
    return triangular_solve(l, triangular_solve(l, rhs), true, true);
  });
}
namespace {

// Cholesky's factor of adjoint(a) * a, or of a * adjoint(a), plus l2 on the diagonal.
Tensor gramian_factor(const Tensor& a, bool tall, double l2) {
  Tensor gramian = matmul(a, a, {.adjoint_a = tall, .adjoint_b = !tall});
  if (l2 != 0) gramian = set_diag(gramian, diag_part(gramian) + l2);
  return cholesky(gramian);
}

// The shortest of the nearest solutions: singular values that are next to nothing count as none.
Tensor by_singular_values(const Tensor& a, const Tensor& b) {
  const SvdResult svd = linalg::svd(a);
  const double smallest =
      svd.s.dtype() == DType::float64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const PartialShape s = svd.s.partial_shape();
  const Tensor counts = svd.s > reduce_max(svd.s, -1, true) * (smallest * static_cast<double>(s[s.rank() - 1]));
  const Tensor inverse = where(counts, 1 / where(counts, svd.s, 1), 0);
  const Tensor parts = matmul(svd.u, b, {.adjoint_a = true});
  return matmul(svd.v, cast(expand_dims(inverse, -1), parts.dtype()) * parts);
}

}  // namespace

Tensor lstsq(const Operand& matrix, const Operand& rhs, double l2_regularizer, bool fast) {
  return composed(matrix.where(), [&]() -> Tensor {
    const Tensor a = matrix.value(), b = rhs.value();
    const PartialShape s = a.partial_shape();
    if (!s.has_rank() || s.rank() < 2 || s[s.rank() - 1] < 0 || s[s.rank() - 2] < 0) {
      throw invalid_argument("[linalg::lstsq] matrices of known size needed, got shape {}", s.str());
    }
    if (!fast) return by_singular_values(a, b);
    const bool tall = s[s.rank() - 2] >= s[s.rank() - 1];
    const Tensor factor = gramian_factor(a, tall, l2_regularizer);
    if (tall) return cholesky_solve(factor, matmul(a, b, {.adjoint_a = true}));
    return matmul(a, cholesky_solve(factor, b), {.adjoint_a = true});
  });
}
LuResult lu(const Operand& input, DType output_idx_type) {
  static const Op<LuAttrs> op("Lu");
  auto both = op.many({input}, {.output_idx_type = output_idx_type});
  return {both[0], both[1]};
}

}  // namespace linalg
}  // namespace runnel
