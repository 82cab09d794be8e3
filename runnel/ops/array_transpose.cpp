// Transposition and permutations.
#include <complex>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

// `perm` with negative entries counted from the end; an Error unless it names every dimension once.
Dims checked_permutation(Dims perm, int rank) {
  if (static_cast<int>(perm.size()) != rank) {
    throw invalid_argument("perm has {} entries for a tensor of rank {}", perm.size(), rank);
  }
  SmallVector<bool, 8> seen(perm.size(), false);
  for (int64_t& p : perm) {
    p = normalize_axis(p, rank, "perm entry");
    bool& taken = seen[static_cast<size_t>(p)];
    if (taken) throw invalid_argument("perm [{}] names dimension {} twice", comma_separated(perm), p);
    taken = true;
  }
  return perm;
}

void transpose_shape(InferContext& c) {
  const PartialShape& x = c.input(0);
  c.require_rank(1, 1);
  const auto perm = c.constant_ints(1);
  if (!x.has_rank()) return c.output(perm ? PartialShape::unknown_dims(static_cast<int>(perm->size())) : x);
  if (!perm) return c.output(PartialShape::unknown_dims(x.rank()));
  Dims dims;
  for (int64_t p : checked_permutation(*perm, x.rank())) dims.push_back(x[static_cast<int>(p)]);
  c.output(PartialShape(dims));
}

void transpose_kernel(KernelContext& c) {
  const Dims perm = checked_permutation(c.ints(1), c.in(0).rank());
  const Dims strides = cpu::dense_strides(c.in(0).shape().dims());
  const Dims& dims = c.out().shape().dims();
  Dims from;
  for (int64_t p : perm) from.push_back(strides[static_cast<size_t>(p)]);
  cpu::copy_strided(c.out().dtype(), dims, c.in(0).raw(), from, c.out<char>(), cpu::dense_strides(dims));
}

// The permutation that undoes `perm`.
Tensor inverse(const Tensor& perm, int rank) {
  const auto values = static_ints(perm);
  if (!values) return invert_permutation(perm);
  const Dims checked = checked_permutation(*values, rank < 0 ? static_cast<int>(values->size()) : rank);
  Dims undo(checked.size());
  for (size_t i = 0; i < checked.size(); ++i) undo[static_cast<size_t>(checked[i])] = static_cast<int64_t>(i);
  return int_vector(undo);
}

}  // namespace

void register_array_transpose(Registry& r) {
  r.define("Transpose")
      .in("x", all_types)
      .in_host("perm", "Tperm")
      .out("y")
      .moves()
      .shape(transpose_shape)
      .cpu([](KernelContext& c) { transpose_kernel(c); })
      .grad([](const GradCtx& g) {
        return Gradients{transpose(g.dy(), Axes(inverse(g.x(1), g.x(0).partial_shape().rank()))), {}};
      })
      .grad_reads({})
      .doc("The dimensions in another order: dimension i of y is dimension perm[i] of x.")
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}, Tensor{1, 0}},
               .out = {Tensor{{1.f, 4.f}, {2.f, 5.f}, {3.f, 6.f}}}})
      .sample({.in = {Tensor{{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}}, Tensor{2, 0, 1}},
               .out = {Tensor{{{1.f, 3.f, 5.f}}, {{2.f, 4.f, 6.f}}}}})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{0, 0}}, .error = "names dimension 0 twice"})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{0}}, .error = "1 entries for a tensor of rank 2"});

  r.define("ConjugateTranspose")
      .in("x", all_types)
      .in_host("perm", "Tperm")
      .out("y")
      .shape(transpose_shape)
      .cpu([](KernelContext& c) {
        transpose_kernel(c);
        complexes.for_each([&]<class T>() {
          if (dtype_of<T> != c.out().dtype()) return;
          T* y = c.out<T>();
          for (int64_t i = 0; i < c.out().num_elements(); ++i) y[i] = std::conj(y[i]);
        });
      })
      .grad([](const GradCtx& g) {
        return Gradients{transpose(g.dy(), Axes(inverse(g.x(1), g.x(0).partial_shape().rank())), true), {}};
      })
      .doc("Transpose with complex elements conjugated.")
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{1, 0}}, .out = {Tensor{{1.f}, {2.f}}}})
      .sample({.in = {Tensor{{std::complex<float>(1, 2), std::complex<float>(3, -4)}}, Tensor{1, 0}},
               .out = {Tensor{{std::complex<float>(1, -2)}, {std::complex<float>(3, 4)}}}});

  r.define("InvertPermutation")
      .in("x", index_types, DType::int32)
      .out("y")
      .shape([](InferContext& c) {
        c.require_rank(0, 1);
        c.output(c.input(0));
      })
      .cpu([]<class T>(KernelContext& c) {
        const int64_t n = c.in(0).num_elements();
        std::fill_n(c.out<T>(), n, T(-1));
        for (int64_t i = 0; i < n; ++i) {
          const int64_t at = c.in<T>(0)[i];
          if (at < 0 || at >= n) throw invalid_argument("entry {} is {}, not in [0, {})", i, at, n);
          if (c.out<T>()[at] != T(-1)) throw invalid_argument("{} appears twice: not a permutation", at);
          c.out<T>()[at] = static_cast<T>(i);
        }
      })
      .doc("The permutation that undoes the given one: y[x[i]] = i.")
      .sample({.in = {Tensor{3, 0, 2, 1}}, .out = {Tensor{1, 3, 2, 0}}})
      .sample({.in = {Tensor{0, 2}}, .error = "not in [0, 2)"})
      .sample({.in = {Tensor{0, 0}}, .error = "appears twice"});
}

Tensor transpose(const Operand& a, const Axes& perm, bool conjugate) {
  return composed(a.where(), [&]() -> Tensor {
    static const Op plain("Transpose");
    static const Op conjugated("ConjugateTranspose");
    const bool conj = conjugate && !a.is_literal() && is_complex(a.tensor()->dtype());
    const Op<>& op = conj ? conjugated : plain;
    if (perm.given()) return op({a, perm.tensor_for(a.value())});
    const Tensor x = a.value();
    const PartialShape shape = x.partial_shape();
    if (!shape.has_rank()) {
      const Tensor n = rank(x);
      return op({a, range(n - 1, -1, -1)});
    }
    Dims reversed;
    for (int i = shape.rank() - 1; i >= 0; --i) reversed.push_back(i);
    return op({a, int_vector(reversed)});
  });
}

Tensor invert_permutation(const Operand& x) {
  static const Op op("InvertPermutation");
  return op({x});
}

}  // namespace runnel
