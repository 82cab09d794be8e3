// Matrix products.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/kernels/compute_view.h"
#include "runnel/kernels/cpu/gemm.h"
#include "runnel/kernels/cpu/gemm_bf16.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/broadcast_grad.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

struct MatMulAttrs {
  bool transpose_a = false;
  bool transpose_b = false;
  static constexpr auto fields() {
    return field_list(field("transpose_a", &MatMulAttrs::transpose_a), field("transpose_b", &MatMulAttrs::transpose_b));
  }
};

struct BatchMatMulAttrs {
  bool adj_x = false;
  bool adj_y = false;
  static constexpr auto fields() {
    return field_list(field("adj_x", &BatchMatMulAttrs::adj_x), field("adj_y", &BatchMatMulAttrs::adj_y));
  }
};

inline constexpr auto matmul_types = floating + Types<int32_t, int64_t>{} + complexes;

// The product of the last two dimensions of a and b, with the leading ones broadcast.
PartialShape product_shape(const PartialShape& a, const PartialShape& b, bool ta, bool tb) {
  if (!a.has_rank() || !b.has_rank()) return PartialShape::unknown();
  const int ra = a.rank();
  const int rb = b.rank();
  const int64_t m = a[ra - (ta ? 1 : 2)];
  const int64_t ka = a[ra - (ta ? 2 : 1)];
  const int64_t kb = b[rb - (tb ? 1 : 2)];
  const int64_t n = b[rb - (tb ? 2 : 1)];
  if (ka >= 0 && kb >= 0 && ka != kb) {
    throw invalid_argument("inner dimensions differ: {}{} x {}{}", a.str(), ta ? " transposed" : "", b.str(),
                           tb ? " transposed" : "");
  }
  auto leading = [](const PartialShape& s) { return PartialShape(Dims(s.begin(), s.begin() + (s.rank() - 2))); };
  const PartialShape batch = broadcast_shapes(leading(a), leading(b));
  Dims dims = batch.dims();
  dims.push_back(m);
  dims.push_back(n);
  return PartialShape(dims);
}

struct Problem {
  bool ta, tb, conj;  // conj: transposed operands are conjugated too
  int64_t m, n, k;
};

template <class T>
void product(const Problem& p, int64_t batch, const T* a, int64_t stride_a, const T* b, int64_t stride_b, T* c) {
  const int64_t lda = std::max<int64_t>(1, p.ta ? p.m : p.k);
  const int64_t ldb = std::max<int64_t>(1, p.tb ? p.k : p.n);
  const int64_t ldc = std::max<int64_t>(1, p.n);
  if constexpr (std::is_same_v<T, float>) {
    if (batch == 1) {
      cpu::gemm_f32(p.ta, p.tb, p.m, p.n, p.k, 1.f, a, lda, b, ldb, 0.f, c, ldc);
    } else {
      cpu::gemm_batched_f32(batch, p.ta, p.tb, p.m, p.n, p.k, 1.f, a, lda, stride_a, b, ldb, stride_b, 0.f, c, ldc,
                            p.m * p.n);
    }
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    cpu::gemm_batched_bf16(batch, p.ta, p.tb, p.m, p.n, p.k, a, lda, stride_a, b, ldb, stride_b, c, ldc, p.m * p.n);
  } else {
    cpu::gemm_batched_plain<T>(batch, p.ta, p.tb, p.m, p.n, p.k, T(1), a, lda, stride_a, b, ldb, stride_b, T(0), c, ldc,
                               p.m * p.n, p.conj && p.ta, p.conj && p.tb);
  }
}

// Each element of the product is the sum of `inner` products.
double product_flops(const Tensor& product, int64_t inner) {
  return 2.0 * static_cast<double>(product.num_elements()) * static_cast<double>(inner);
}

// Offsets of the matrices of an operand for every matrix of the broadcast result.
std::vector<int64_t> matrix_offsets(const Shape& operand, const Shape& out) {
  const int batch_rank = out.rank() - 2;
  const int lead = out.rank() - operand.rank();
  std::vector<int64_t> offsets{0};
  int64_t step = 1;
  Dims strides(static_cast<size_t>(batch_rank), 0);
  for (int i = operand.rank() - 1; i >= 0; --i) {
    if (i < operand.rank() - 2 && operand[i] != 1) strides[static_cast<size_t>(i + lead)] = step;
    step *= operand[i];
  }
  for (int i = 0; i < batch_rank; ++i) {
    std::vector<int64_t> next;
    for (int64_t base : offsets) {
      for (int64_t j = 0; j < out[i]; ++j) next.push_back(base + j * strides[static_cast<size_t>(i)]);
    }
    offsets = std::move(next);
  }
  return offsets;
}

// The common difference of offsets, or -1.
int64_t uniform_stride(const std::vector<int64_t>& offsets) {
  if (offsets.size() < 2) return 0;
  const int64_t step = offsets[1] - offsets[0];
  for (size_t i = 2; i < offsets.size(); ++i) {
    if (offsets[i] - offsets[i - 1] != step) return -1;
  }
  return step;
}

// How the matrices of two operands meet: shapes are those of the tensors, none of them empty.
struct OperandShapes {
  const Shape &a, &b, &c;
  bool ta, tb, conj;
};

template <class T>
void multiply_as_they_are(const OperandShapes& of, const T* a, const T* b, T* c) {
  const Shape& s = of.c;
  Problem p{of.ta, of.tb, of.conj, s[s.rank() - 2], s[s.rank() - 1], of.a[of.a.rank() - (of.ta ? 2 : 1)]};
  const int64_t matrices = s.num_elements() / (p.m * p.n);
  if (matrices > 1 && of.b.num_elements() == p.k * p.n && !p.ta && of.a.num_elements() == matrices * p.m * p.k) {
    p.m *= matrices;  // one matrix b for all: the rows of every a make one tall matrix
    return product<T>(p, 1, a, 0, b, 0, c);
  }
  const std::vector<int64_t> at_a = matrix_offsets(of.a, s);
  const std::vector<int64_t> at_b = matrix_offsets(of.b, s);
  const int64_t step_a = uniform_stride(at_a);
  const int64_t step_b = uniform_stride(at_b);
  if (step_a >= 0 && step_b >= 0) return product<T>(p, matrices, a, step_a, b, step_b, c);
  for (int64_t i = 0; i < matrices; ++i) {
    product<T>(p, 1, a + at_a[static_cast<size_t>(i)], 0, b + at_b[static_cast<size_t>(i)], 0, c + i * p.m * p.n);
  }
}

template <class T>
void multiply_matrices(const Tensor& a, const Tensor& b, const Tensor& c, bool ta, bool tb, bool conj) {
  if (c.num_elements() == 0) return;
  if (a.num_elements() == 0) {
    std::fill_n(c.mutable_data<T>(), c.num_elements(), T(0));
    return;
  }
  const OperandShapes of{a.shape(), b.shape(), c.shape(), ta, tb, conj};
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (cpu::multiplies_bf16()) {
      return multiply_as_they_are<T>(of, a.data<T>(), b.data<T>(), c.mutable_data<T>());
    }
  }
  const ComputeIn<T> in_a(a);
  const ComputeIn<T> in_b(b);
  const ComputeOut<T> out(c);
  multiply_as_they_are<cpu::compute_t<T>>(of, in_a.data(), in_b.data(), out.data());
  out.store();
}

Tensor mat_mul(const Operand& a, const Operand& b, bool transpose_a, bool transpose_b) {
  static const Op<MatMulAttrs> op("MatMul");
  return op({a, b}, {.transpose_a = transpose_a, .transpose_b = transpose_b});
}
Tensor batch_mat_mul(const Operand& x, const Operand& y, bool adj_x, bool adj_y) {
  static const Op<BatchMatMulAttrs> op("BatchMatMulV2");
  return op({x, y}, {.adj_x = adj_x, .adj_y = adj_y});
}

Gradients matmul_grad(const GradCtx& g, const MatMulAttrs& at) {
  const Tensor dy = g.dy();
  const Tensor a = conj(g.x(0));
  const Tensor b = conj(g.x(1));
  const bool ta = at.transpose_a;
  const bool tb = at.transpose_b;
  return Gradients{g.want(0, [&] { return ta ? mat_mul(b, dy, tb, true) : mat_mul(dy, b, false, !tb); }),
                   g.want(1, [&] { return tb ? mat_mul(dy, a, true, ta) : mat_mul(a, dy, !ta, false); })};
}

Gradients batch_matmul_grad(const GradCtx& g, const BatchMatMulAttrs& at) {
  const Tensor dy = g.dy();
  const bool ax = at.adj_x;
  const bool ay = at.adj_y;
  return Gradients{g.want(0,
                          [&] {
                            const Tensor d =
                                ax ? batch_mat_mul(g.x(1), dy, ay, true) : batch_mat_mul(dy, g.x(1), false, !ay);
                            return sum_to_shape_of(d, g.x(0));
                          }),
                   g.want(1, [&] {
                     const Tensor d = ay ? batch_mat_mul(dy, g.x(0), true, ax) : batch_mat_mul(g.x(0), dy, !ax, false);
                     return sum_to_shape_of(d, g.x(1));
                   })};
}

}  // namespace

void register_matmul(Registry& r) {
  r.define<MatMulAttrs>("MatMul")
      .in("a", matmul_types)
      .in("b")
      .out("product")
      .shape([](InferContext& c, const MatMulAttrs& a) {
        c.require_rank(0, 2);
        c.require_rank(1, 2);
        c.output(product_shape(c.input(0), c.input(1), a.transpose_a, a.transpose_b));
      })
      .cpu([]<class T>(KernelContext& c, const MatMulAttrs& a) {
        multiply_matrices<T>(c.in(0), c.in(1), c.out(), a.transpose_a, a.transpose_b, false);
      })
      .flops([](const KernelContext& c, const MatMulAttrs& a) {
        return product_flops(c.out(), c.in(0).shape()[a.transpose_a ? 0 : 1]);
      })
      .grad([](const GradCtx& g, const MatMulAttrs& a) { return matmul_grad(g, a); })
      .grad_reads({0, 1})
      .fused_by("_FusedMatMul")
      .doc("The product of two matrices, either of them transposed first.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{{5.f}, {6.f}}}, .out = {Tensor{{17.f}, {39.f}}}})
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}}, Tensor{{0.5f, -1.f}, {2.f, 1.f}}}, .error = "inner dimensions differ"})
      .sample({.in = {Tensor{{1.f, 3.f}, {2.f, 4.f}}, Tensor{{5.f, 6.f}}}, .out = {Tensor{{17.f}, {39.f}}}},
              {.transpose_a = true, .transpose_b = true});

  r.define<BatchMatMulAttrs>("BatchMatMulV2")
      .in("x", matmul_types + Types<int16_t>{})
      .in("y")
      .out("output")
      .shape([](InferContext& c, const BatchMatMulAttrs& a) {
        c.require_rank_at_least(0, 2);
        c.require_rank_at_least(1, 2);
        c.output(product_shape(c.input(0), c.input(1), a.adj_x, a.adj_y));
      })
      .cpu([]<class T>(KernelContext& c, const BatchMatMulAttrs& a) {
        multiply_matrices<T>(c.in(0), c.in(1), c.out(), a.adj_x, a.adj_y, true);
      })
      .flops([](const KernelContext& c, const BatchMatMulAttrs& a) {
        const Shape& x = c.in(0).shape();
        return product_flops(c.out(), x[x.rank() - (a.adj_x ? 2 : 1)]);
      })
      .grad([](const GradCtx& g, const BatchMatMulAttrs& a) { return batch_matmul_grad(g, a); })
      .grad_reads({0, 1})
      .doc(
          "Products of the matrices in the last two dimensions; leading dimensions broadcast. adj_x and adj_y "
          "take the conjugate transpose first.")
      .sample({.in = {Tensor{{{1.f, 2.f}}, {{3.f, 4.f}}}, Tensor{{{5.f}, {6.f}}}}, .out = {Tensor{{{17.f}}, {{39.f}}}}})
      .sample(
          {.in = {Tensor{{{1.f}, {2.f}}}, Tensor{{{5.f, 6.f}}, {{1.f, -1.f}}}}, .out = {Tensor{{{17.f}}, {{-1.f}}}}},
          {.adj_x = true, .adj_y = true});
  r.alias("BatchMatMul", "BatchMatMulV2");
}

Tensor matmul(const Operand& a, const Operand& b, const MatMulOptions& o) {
  return composed(a.where(), [&]() -> Tensor {
    if ((o.transpose_a && o.adjoint_a) || (o.transpose_b && o.adjoint_b)) {
      throw invalid_argument("[MatMul] an operand is either transposed or its adjoint is taken, not both");
    }
    const Tensor x = a.value();
    const Tensor y = b.value();
    const bool ta = o.transpose_a || o.adjoint_a;
    const bool tb = o.transpose_b || o.adjoint_b;
    const PartialShape sx = x.partial_shape();
    const PartialShape sy = y.partial_shape();
    if (sx.rank() == 2 && sy.rank() == 2) {
      return mat_mul(Operand(o.adjoint_a ? conj(x) : x, a.where()), Operand(o.adjoint_b ? conj(y) : y, b.where()), ta,
                     tb);
    }
    // The batched op takes adjoints: a plain transpose of a complex operand is the adjoint of its conjugate.
    return batch_mat_mul(Operand(o.transpose_a ? conj(x) : x, a.where()),
                         Operand(o.transpose_b ? conj(y) : y, b.where()), ta, tb);
  });
}

}  // namespace runnel
