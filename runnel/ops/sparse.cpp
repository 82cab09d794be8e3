// Sparse tensors.
#include "runnel/op/composed.h"
#include "runnel/ops/composite.h"

#include <algorithm>
#include <numeric>
#include <ostream>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/broadcast_grad.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

struct SparseToDenseAttrs {
  bool validate_indices = true;
  static constexpr auto fields() {
    return field_list(field("validate_indices", &SparseToDenseAttrs::validate_indices));
  }
};

// Indices given as a matrix, as a vector (of positions in a vector) or as one position.
int64_t index_count(const Shape& indices) { return indices.rank() == 0 ? 1 : indices[0]; }

template <class I>
void check_index(const I* at, const Shape& whole, int64_t i, const I* previous) {
  const auto depth = static_cast<size_t>(whole.rank());
  auto text = [&] { return fmt::format("indices[{}] = [{}]", i, fmt::join(std::span<const I>(at, depth), ",")); };
  for (size_t d = 0; d < depth; ++d) {
    if (at[d] < 0 || at[d] >= whole[static_cast<int>(d)]) {
      throw invalid_argument("{} is out of bounds: the shape is {}", text(), whole.str());
    }
  }
  if (!previous) return;
  if (std::equal(at, at + depth, previous)) throw invalid_argument("{} is repeated", text());
  if (std::lexicographical_compare(at, at + depth, previous, previous + depth)) {
    throw invalid_argument("{} is out of order: sort them with sparse::reorder", text());
  }
}

template <class I>
void put_values(KernelContext& c, bool validate) {
  const Tensor& out = c.out();
  const Shape& whole = out.shape();
  const int64_t n = index_count(c.in(0).shape());
  const I* indices = c.in<I>(0);
  const bool same = c.in(2).rank() == 0;  // one value for all positions
  cpu::copy_strided(out.dtype(), Dims{out.num_elements()}, c.in(3).raw(), Dims{0}, out.mutable_data<char>(), Dims{1});
  cpu::with_element(out.dtype(), [&]<class E>() {
    for (int64_t i = 0; i < n; ++i) {
      const I* at = indices + i * whole.rank();
      check_index(at, whole, i, validate && i > 0 ? at - whole.rank() : nullptr);
      int64_t flat = 0;
      for (int d = 0; d < whole.rank(); ++d) flat = flat * whole[d] + at[d];
      out.mutable_data<E>()[flat] = c.in<E>(2)[same ? 0 : i];
    }
  });
}

}  // namespace

void register_sparse(Registry& r) {
  r.define<SparseToDenseAttrs>("SparseToDense")
      .type("T", data_types)
      .type("Tindices", index_types)
      .in("sparse_indices", "Tindices")
      .in_host("output_shape", "Tindices")
      .in("sparse_values", "T")
      .in("default_value", "T")
      .out("dense", "T")
      .shape([](InferContext& c) {
        c.require_rank(3, 0);
        const PartialShape &indices = c.input(0), &values = c.input(2);
        if (indices.rank() > 2) throw invalid_argument("indices have rank {}, more than 2", indices.rank());
        const PartialShape whole = constant_sizes(c, 1);
        if (indices.has_rank() && whole.has_rank()) {
          const int64_t depth = indices.rank() == 2 ? indices[1] : 1;
          if (depth >= 0 && depth != whole.rank()) {
            throw invalid_argument("indices {} do not fit the shape {}", indices.str(), whole.str());
          }
        }
        if (values.rank() > 1) throw invalid_argument("values must be a vector or a scalar, got {}", values.str());
        if (values.rank() == 1 && indices.has_rank() && values[0] >= 0) {
          const int64_t n = indices.rank() == 0 ? 1 : indices[0];
          if (n >= 0 && n != values[0]) throw invalid_argument("{} values for {} indices", values[0], n);
        }
        c.output(whole);
      })
      .cpu([](KernelContext& c, const SparseToDenseAttrs& a) {
        if (c.in(0).dtype() == DType::int32) {
          put_values<int32_t>(c, a.validate_indices);
        } else {
          put_values<int64_t>(c, a.validate_indices);
        }
      })
      .grad([](const GradCtx& g) {
        const PartialShape indices = g.x(0).partial_shape(), values = g.x(2).partial_shape();
        Tensor at = g.x(0);
        if (indices.rank() == 1) at = expand_dims(at, 1);
        if (indices.rank() == 0) at = reshape(at, {1, 1});
        if (!indices.has_rank()) at = reshape(at, stack({Tensor(-1), rank(g.dy())}));
        const Tensor dy = g.dy();
        const Tensor inside = gather_nd(dy, at);
        const Tensor dvalues =
            values.has_rank() ? (values.rank() == 0 ? reduce_sum(inside) : inside) : sum_to_shape_of(inside, g.x(2));
        return Gradients{{}, {}, dvalues, g.want(3, [&] { return reduce_sum(dy) - reduce_sum(inside); })};
      })
      .doc("A dense tensor with values at the given indices and default_value elsewhere.")
      .sample({.in = {Tensor{{0, 1}, {1, 0}}, Tensor{2, 2}, Tensor{5.f, 6.f}, Tensor(0.f)},
               .out = {Tensor{{0.f, 5.f}, {6.f, 0.f}}}})
      .sample({.in = {Tensor{0, 2}, Tensor{3}, Tensor(5.f), Tensor(1.f)}, .out = {Tensor{5.f, 1.f, 5.f}}})
      .sample(
          {.in = {Tensor{1, 0}, Tensor{3}, Tensor{5.f, 6.f}, Tensor(1.f)}, .error = "indices[1] = [0] is out of order"})
      .sample({.in = {Tensor{1, 1}, Tensor{3}, Tensor{5.f, 6.f}, Tensor(1.f)}, .error = "is repeated"})
      .sample({.in = {Tensor{1, 3}, Tensor{3}, Tensor{5.f, 6.f}, Tensor(1.f)}, .error = "is out of bounds"});

  r.define("SparseReorder")
      .type("T", all_types)
      .in("input_indices", DType::int64)
      .in("input_values", "T")
      .in_host("input_shape", DType::int64)
      .out("output_indices", DType::int64)
      .out("output_values", "T")
      .shape([](InferContext& c) {
        c.require_rank(0, 2);
        c.require_rank(1, 1);
        c.require_rank(2, 1);
        c.output(0, c.input(0));
        c.output(1, c.input(1));
        const PartialShape &indices = c.input(0), &values = c.input(1), &shape = c.input(2);
        if (indices.has_rank() && shape.has_rank() && indices[1] >= 0 && shape[0] >= 0 && indices[1] != shape[0]) {
          throw invalid_argument("indices of rank {} for a shape of rank {}", indices[1], shape[0]);
        }
        if (indices.has_rank() && values.has_rank() && indices[0] >= 0 && values[0] >= 0 && indices[0] != values[0]) {
          throw invalid_argument("{} values for {} indices", values[0], indices[0]);
        }
      })
      .cpu([](KernelContext& c) {
        const int64_t n = c.in(0).shape()[0], depth = c.in(0).shape()[1];
        const int64_t* at = c.in<int64_t>(0);
        std::vector<int64_t> order(static_cast<size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          return std::lexicographical_compare(at + a * depth, at + (a + 1) * depth, at + b * depth,
                                              at + (b + 1) * depth);
        });
        cpu::with_element(c.in(1).dtype(), [&]<class E>() {
          for (int64_t i = 0; i < n; ++i) {
            const int64_t from = order[static_cast<size_t>(i)];
            std::copy_n(at + from * depth, depth, c.out<int64_t>(0) + i * depth);
            c.out<E>(1)[i] = c.in<E>(1)[from];
          }
        });
      })
      .grad([](const GradCtx& g) {
        // The same reordering of positions says where each value went.
        static const Op op("SparseReorder");
        const Tensor n = size(g.x(1), DType::int64);
        const Tensor positions = range(zeros_like(n), n, ones_like(n));
        const Tensor came_from = op.many({g.x(0), positions, g.x(2)})[1];
        return Gradients{{}, gather(g.dy(1), invert_permutation(came_from)), {}};
      })
      .doc("Indices and values in row-major order of the indices.")
      .sample({.in = {Tensor{{int64_t{1}, int64_t{0}}, {int64_t{0}, int64_t{1}}}, Tensor{5.f, 6.f},
                      Tensor{int64_t{2}, int64_t{2}}},
               .out = {Tensor{{int64_t{0}, int64_t{1}}, {int64_t{1}, int64_t{0}}}, Tensor{6.f, 5.f}}})
      .sample({.in = {Tensor{{int64_t{2}}, {int64_t{0}}, {int64_t{1}}}, Tensor{1.f, 2.f, 3.f}, Tensor{int64_t{3}}},
               .out = {Tensor{{int64_t{0}}, {int64_t{1}}, {int64_t{2}}}, Tensor{2.f, 3.f, 1.f}}})
      .sample({.in = {Tensor{{int64_t{2}}}, Tensor{1.f}, Tensor{int64_t{3}, int64_t{1}}},
               .error = "indices of rank 1 for a shape of rank 2"});
}

Tensor to_dense(const IndexedSlices& slices, SourceSite where) { return Gradient(slices).value(where); }

namespace sparse {

Tensor to_dense(const SparseTensor& sp_input, const Tensor& default_value, bool validate_indices, SourceSite where) {
  return composed(where, [&]() -> Tensor {
    static const Op<SparseToDenseAttrs> op("SparseToDense");
    return op({sp_input.indices, sp_input.dense_shape, sp_input.values,
               default_value.defined() ? default_value : zeros({}, sp_input.dtype())},
              {.validate_indices = validate_indices});
  });
}

SparseTensor from_dense(const Operand& tensor) {
  return composed(tensor.where(), [&]() -> SparseTensor {
    const Tensor x = tensor.value();
    const Tensor at = where(x.dtype() == DType::bool_ ? x : not_equal(x, zeros({}, x.dtype())));
    return {at, gather_nd(x, at), shape(x, DType::int64)};
  });
}

SparseTensor reorder(const SparseTensor& sp_input, SourceSite where) {
  return composed(where, [&]() -> SparseTensor {
    static const Op op("SparseReorder");
    const auto sorted = op.many({sp_input.indices, sp_input.values, sp_input.dense_shape});
    return {sorted[0], sorted[1], sp_input.dense_shape};
  });
}

SparseTensor eye(int64_t num_rows, int64_t num_columns, DType dtype, SourceSite where) {
  return composed(where, [&]() -> SparseTensor {
    if (num_columns < 0) num_columns = num_rows;
    const Tensor diagonal = range(std::min(num_rows, num_columns));
    return {stack({diagonal, diagonal}, 1), ones({std::min(num_rows, num_columns)}, dtype),
            constant_ints_of({num_rows, num_columns}, DType::int64)};
  });
}

}  // namespace sparse

std::ostream& operator<<(std::ostream& out, const SparseTensor& s) {
  return out << "SparseTensor(indices=" << s.indices << ", values=" << s.values << ", dense_shape=" << s.dense_shape
             << ")";
}

}  // namespace runnel
