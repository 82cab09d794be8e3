// The product of a sparse and a dense matrix.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/sparse.h"

namespace runnel {
namespace {

struct SparseMatmulAttrs {
  bool adjoint_a = false;
  bool adjoint_b = false;
  static constexpr auto fields() {
    return field_list(field("adjoint_a", &SparseMatmulAttrs::adjoint_a),
                      field("adjoint_b", &SparseMatmulAttrs::adjoint_b));
  }
};

template <class T>
T conjugate(T x) {
  if constexpr (requires { x.imag(); }) {
    return std::conj(x);
  } else {
    return x;
  }
}

template <class T, class I>
void sparse_product(KernelContext& c, const SparseMatmulAttrs& a) {
  using C = cpu::compute_t<T>;
  const Shape &b = c.in(3).shape(), &y = c.out().shape();
  const int64_t inner = b[a.adjoint_b ? 1 : 0], width = y[1];
  const I* at = c.in<I>(0);
  const T* values = c.in<T>(1);
  const T* right = c.in<T>(3);
  std::vector<C> sums(static_cast<size_t>(y.num_elements()), C(0));
  for (int64_t i = 0; i < c.in(1).num_elements(); ++i) {
    const auto row = static_cast<int64_t>(at[2 * i + (a.adjoint_a ? 1 : 0)]);
    const auto k = static_cast<int64_t>(at[2 * i + (a.adjoint_a ? 0 : 1)]);
    if (row < 0 || row >= y[0] || k < 0 || k >= inner) {
      throw invalid_argument("a_indices[{}] = [{}, {}] is outside the matrix", i, at[2 * i], at[2 * i + 1]);
    }
    const C value = a.adjoint_a ? conjugate(static_cast<C>(values[i])) : static_cast<C>(values[i]);
    C* to = sums.data() + row * width;
    if (a.adjoint_b) {
      for (int64_t j = 0; j < width; ++j) to[j] += value * conjugate(static_cast<C>(right[j * inner + k]));
    } else {
      for (int64_t j = 0; j < width; ++j) to[j] += value * static_cast<C>(right[k * width + j]);
    }
  }
  std::transform(sums.begin(), sums.end(), c.out<T>(), [](C x) { return static_cast<T>(x); });
}

Tensor adjoint_of(const Tensor& x) { return transpose(x, {}, true); }

}  // namespace

void register_sparse_matmul(Registry& r) {
  const auto at = [](std::initializer_list<int64_t> v) {
    return Tensor::of<int64_t>(std::vector<int64_t>(v), Shape{static_cast<int64_t>(v.size()) / 2, 2});
  };
  const Tensor shape{int64_t{2}, int64_t{3}};
  r.define<SparseMatmulAttrs>("SparseTensorDenseMatMul")
      .type("T", floating + Types<int32_t>{} + complexes)
      .type("Tindices", index_types, DType::int64)
      .in("a_indices", "Tindices")
      .in("a_values", "T")
      .in_host("a_shape", DType::int64)
      .in("b", "T")
      .out("product", "T")
      .shape([](InferContext& c, const SparseMatmulAttrs& a) {
        c.require_rank(0, 2);
        c.require_rank(1, 1);
        c.require_rank(2, 1);
        c.require_rank(3, 2);
        const PartialShape &indices = c.input(0), &values = c.input(1), &b = c.input(3);
        if (indices.has_rank() && indices[1] >= 0 && indices[1] != 2) {
          throw invalid_argument("a_indices must be [n, 2], got {}", indices.str());
        }
        if (indices.has_rank() && values.has_rank() && indices[0] >= 0 && values[0] >= 0 && indices[0] != values[0]) {
          throw invalid_argument("{} values for {} indices", values[0], indices[0]);
        }
        const PartialShape left = c.constant_shape(2);
        for (int64_t size : c.constant_ints(2).value_or(Dims())) {
          if (size < 0) throw invalid_argument("a_shape has a negative size: {}", size);
        }
        if (left.has_rank() && left.rank() != 2) throw invalid_argument("a_shape must be 2 sizes, got {}", left.rank());
        const int64_t rows = left.has_rank() ? left[a.adjoint_a ? 1 : 0] : kUnknownDim;
        const int64_t inner = left.has_rank() ? left[a.adjoint_a ? 0 : 1] : kUnknownDim;
        const int64_t other = b.has_rank() ? b[a.adjoint_b ? 1 : 0] : kUnknownDim;
        if (inner >= 0 && other >= 0 && inner != other) {
          throw invalid_argument("inner sizes differ: {} of a, {} of b", inner, other);
        }
        c.output(PartialShape{rows, b.has_rank() ? b[a.adjoint_b ? 0 : 1] : kUnknownDim});
      })
      .cpu([]<class T>(KernelContext& c, const SparseMatmulAttrs& a) {
        if (c.in(0).dtype() == DType::int32) {
          sparse_product<T, int32_t>(c, a);
        } else {
          sparse_product<T, int64_t>(c, a);
        }
      })
      .flops([](const KernelContext& c) {
        return 2 * static_cast<double>(c.in(1).num_elements()) * static_cast<double>(c.out().shape()[1]);
      })
      .grad([](const GradCtx& g, const SparseMatmulAttrs& a) {
        static const Op<SparseMatmulAttrs> op("SparseTensorDenseMatMul");
        const Tensor dy = g.dy();
        Gradients all(4);
        all[1] = g.want(1, [&] {
          const Tensor rows = g.x(0)(ellipsis, 0), columns = g.x(0)(ellipsis, 1);
          const Tensor right = a.adjoint_b ? adjoint_of(g.x(3)) : g.x(3);
          const Tensor part = gather(dy, a.adjoint_a ? columns : rows);
          const Tensor other = gather(right, a.adjoint_a ? rows : columns);
          const Tensor sum = reduce_sum(part * conj(other), -1);
          return a.adjoint_a ? conj(sum) : sum;
        });
        all[3] = g.want(3, [&] {
          const Tensor d = op({g.x(0), g.x(1), g.x(2), dy}, {.adjoint_a = !a.adjoint_a});
          return a.adjoint_b ? adjoint_of(d) : d;
        });
        return all;
      })
      .grad_reads({0, 1, 2, 3})
      .doc("The product of a sparse matrix, given by its elements, and a dense one.")
      .sample({.in = {at({0, 0, 0, 2, 1, 1}), Tensor{1.f, 2.f, 3.f}, shape, Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}},
               .out = {Tensor{{11.f, 14.f}, {9.f, 12.f}}}})
      .sample({.in = {at({0, 0, 0, 2, 1, 1}), Tensor{1.f, 2.f, 3.f}, shape, Tensor{{1.f}, {2.f}}},
               .out = {Tensor{{1.f}, {6.f}, {2.f}}}},
              {.adjoint_a = true})
      .sample(
          {.in = {at({1, 1, 1, 1}), Tensor{1.f, 2.f}, shape, Tensor{{1.f, 2.f, 3.f}}}, .out = {Tensor{{0.f}, {6.f}}}},
          {.adjoint_b = true})
      .sample({.in = {at({0, 3}), Tensor{1.f}, shape, Tensor{{1.f}, {3.f}, {5.f}}}, .error = "outside the matrix"})
      .sample({.in = {at({0, 0}), Tensor{1.f}, shape, Tensor{{1.f}, {3.f}}}, .error = "inner sizes differ"});
}

namespace sparse {

Tensor sparse_dense_matmul(const SparseTensor& sp_a, const Operand& b, bool adjoint_a, bool adjoint_b,
                           SourceSite where) {
  static const Op<SparseMatmulAttrs> op("SparseTensorDenseMatMul");
  return op({sp_a.indices, sp_a.values, sp_a.dense_shape, b}, {.adjoint_a = adjoint_a, .adjoint_b = adjoint_b}, &where);
}

Tensor sparse_dense_matmul(const Operand& a, const SparseTensor& sp_b, bool adjoint_a, bool adjoint_b) {
  // a b = (b' a')'
  return composed(a.where(),
                  [&] { return adjoint_of(sparse_dense_matmul(sp_b, a, !adjoint_b, !adjoint_a, a.where())); });
}

}  // namespace sparse
}  // namespace runnel
