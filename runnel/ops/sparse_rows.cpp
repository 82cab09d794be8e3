// Sparse tensors in other shapes, joined, and with their empty rows filled.
#include <algorithm>
#include <numeric>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/sizes.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/sparse.h"

namespace runnel {
namespace {

struct SparseConcatAttrs {
  int64_t concat_dim = 0;
  static constexpr auto fields() {
    return field_list(field("concat_dim", &SparseConcatAttrs::concat_dim, {.required = true}));
  }
};

void require_inside(const int64_t* at, const Dims& shape, int64_t i) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (at[d] < 0 || at[d] >= shape[d]) {
      throw invalid_argument("indices[{}] = [{}] is outside the shape [{}]", i, comma_separated({at, shape.size()}),
                             comma_separated({shape.data(), shape.size()}));
    }
  }
}

// The sizes asked for, the one that is -1 worked out.
Dims resolved_shape(const Dims& have, Dims want) {
  const int64_t total = checked_product(have);
  int64_t known = 1;
  int64_t* open = nullptr;
  for (int64_t& size : want) {
    if (size < -1) throw invalid_argument("new_shape has a negative size: {}", size);
    if (size == -1 && open) throw invalid_argument("new_shape has more than one -1");
    if (size == -1) {
      open = &size;
    } else {
      known = checked_times(known, size);
    }
  }
  if (open) {
    if (known == 0) throw invalid_argument("the size that is -1 cannot be worked out: the others multiply to 0");
    *open = total / known;
    known *= *open;
  }
  if (known != total) throw invalid_argument("a tensor of {} elements cannot have a shape of {}", total, known);
  return want;
}

void reshape_sparse(KernelContext& c) {
  const Dims from = c.ints(1), to = resolved_shape(from, c.ints(2));
  const int64_t n = c.in(0).shape()[0];
  if (c.in(0).shape()[1] != static_cast<int64_t>(from.size())) {
    throw invalid_argument("indices {} do not fit a shape of {} sizes", c.in(0).shape().str(), from.size());
  }
  if (from == to) {
    c.forward(0, c.in(0).with_shape(c.in(0).shape()));
    c.forward(1, c.in(1).with_shape(c.in(1).shape()));
    return;
  }
  // An index outside the shape stands for the place that its number would have, which may be before the first or behind
  // the last one: only the first dimension has room for that. Numbers wrap around.
  const bool nothing = checked_product(to) == 0;
  Dims strides(to.size(), 1);
  for (size_t d = to.size(); d-- > 1;) strides[d - 1] = nothing ? 1 : strides[d] * to[d];
  const int64_t* at = c.in<int64_t>(0);
  auto* out = c.allocate(0, Shape{n, static_cast<int64_t>(to.size())}).mutable_data<int64_t>();
  for (int64_t i = 0; i < n; ++i, at += from.size(), out += to.size()) {
    if (nothing) require_inside(at, from, i);
    uint64_t number = 0;
    for (size_t d = 0; d < from.size(); ++d) {
      number = number * static_cast<uint64_t>(from[d]) + static_cast<uint64_t>(at[d]);
    }
    auto flat = static_cast<int64_t>(number);
    for (size_t d = 0; d < to.size(); flat %= strides[d], ++d) out[d] = flat / strides[d];
  }
  std::copy(to.begin(), to.end(), c.allocate(1, Shape{static_cast<int64_t>(to.size())}).mutable_data<int64_t>());
}

void fill_rows(KernelContext& c) {
  const Dims shape = c.ints(2);
  const Shape& s = c.in(0).shape();
  const int64_t n = s[0], rank = s[1];
  if (shape.empty() || static_cast<int64_t>(shape.size()) != rank || c.in(1).shape()[0] != n) {
    throw invalid_argument("indices {}, values {} and a dense_shape of {} sizes do not fit each other", s.str(),
                           c.in(1).shape().str(), shape.size());
  }
  const int64_t rows = shape[0];
  if (rows < 0) throw invalid_argument("dense_shape has a negative size: {}", rows);
  const int64_t* at = c.in<int64_t>(0);
  bool* empty = c.allocate(2, Shape{rows}).mutable_data<bool>();
  std::vector<int64_t> next(static_cast<size_t>(rows), 0);  // how many elements a row has, then where its next one goes
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = at[i * rank];
    if (row < 0 || row >= rows) throw invalid_argument("indices[{}, 0] = {} is not in [0, {})", i, row, rows);
    ++next[static_cast<size_t>(row)];
  }
  int64_t total = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t count = next[static_cast<size_t>(row)];
    empty[row] = count == 0;
    next[static_cast<size_t>(row)] = total;
    total += std::max<int64_t>(count, 1);
  }
  auto* indices = c.allocate(0, Shape{total, rank}).mutable_data<int64_t>();
  auto* map = c.allocate(3, Shape{n}).mutable_data<int64_t>();
  const Tensor& values = c.allocate(1, Shape{total});
  cpu::with_element(values.dtype(), [&]<class E>() {
    E* to = values.mutable_data<E>();
    for (int64_t row = 0; row < rows; ++row) {
      if (!empty[row]) continue;
      const int64_t k = next[static_cast<size_t>(row)];
      std::fill_n(indices + k * rank, rank, 0);
      indices[k * rank] = row;
      to[k] = *c.in(3).data<E>();
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t k = next[static_cast<size_t>(at[i * rank])]++;
      std::copy_n(at + i * rank, rank, indices + k * rank);
      to[k] = c.in(1).data<E>()[i];
      map[i] = k;
    }
  });
}

void join_sparse(KernelContext& c, const SparseConcatAttrs& a) {
  const int n = c.num_inputs() / 3;
  Dims shape = c.ints(2 * n);
  const auto rank = static_cast<int64_t>(shape.size());
  const auto axis = static_cast<size_t>(normalize_axis(a.concat_dim, static_cast<int>(rank), "concat_dim"));
  int64_t total = 0;
  std::vector<std::pair<int, int64_t>> order;  // input, element
  Dims begins;
  int64_t joined = 0;
  for (int k = 0; k < n; ++k) {
    const Shape& s = c.in(k).shape();
    const Dims own = c.ints(2 * n + k);
    if (static_cast<int64_t>(own.size()) != rank || s[1] != rank || c.in(n + k).shape()[0] != s[0]) {
      throw invalid_argument("indices {}, values {} and a shape of {} sizes do not fit each other or rank {}", s.str(),
                             c.in(n + k).shape().str(), own.size(), rank);
    }
    for (size_t d = 0; d < own.size(); ++d) {
      if (own[d] < 0) throw invalid_argument("shape {} has a negative size: {}", k, own[d]);
      if (d != axis && own[d] != shape[d]) {
        throw invalid_argument("sizes of dimension {} differ: {} and {}", d, shape[d], own[d]);
      }
    }
    begins.push_back(joined);
    joined = checked_plus(joined, own[axis]);
    total += s[0];
    for (int64_t i = 0; i < s[0]; ++i) order.emplace_back(k, i);
  }
  shape[axis] = joined;
  const auto place = [&](const std::pair<int, int64_t>& e, size_t d) {
    const int64_t at = c.in<int64_t>(e.first)[e.second * rank + static_cast<int64_t>(d)];
    return d == axis ? at + begins[static_cast<size_t>(e.first)] : at;
  };
  std::stable_sort(order.begin(), order.end(), [&](const auto& x, const auto& y) {
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t p = place(x, d), q = place(y, d);
      if (p != q) return p < q;
    }
    return false;
  });
  auto* indices = c.allocate(0, Shape{total, rank}).mutable_data<int64_t>();
  const Tensor& values = c.allocate(1, Shape{total});
  cpu::with_element(values.dtype(), [&]<class E>() {
    E* to = values.mutable_data<E>();
    for (const auto& e : order) {
      for (size_t d = 0; d < shape.size(); ++d) *indices++ = place(e, d);
      *to++ = c.in(n + e.first).data<E>()[e.second];
    }
  });
  std::copy(shape.begin(), shape.end(), c.allocate(2, Shape{rank}).mutable_data<int64_t>());
}

}  // namespace

void register_sparse_rows(Registry& r) {
  const auto places = [](std::initializer_list<int64_t> v, int64_t rank) {
    return Tensor::of<int64_t>(std::vector<int64_t>(v), Shape{static_cast<int64_t>(v.size()) / rank, rank});
  };
  const auto sizes = [](std::initializer_list<int64_t> v) { return Tensor::of<int64_t>(std::vector<int64_t>(v)); };

  r.define("SparseReshape")
      .in("input_indices", DType::int64)
      .in_host("input_shape", DType::int64)
      .in_host("new_shape", DType::int64)
      .out("output_indices", DType::int64)
      .out("output_shape", DType::int64)
      .shape([](InferContext& c) {
        c.require_rank(0, 2);
        c.require_rank(1, 1);
        c.require_rank(2, 1);
        const int64_t n = c.input(0).has_rank() ? c.input(0)[0] : kUnknownDim;
        const int64_t rank = c.input(2).has_rank() ? c.input(2)[0] : kUnknownDim;
        c.output(0, PartialShape{n, rank});
        c.output(1, PartialShape{rank});
      })
      .forwards()
      .cpu([](KernelContext& c) { reshape_sparse(c); })
      .doc("The indices of the same elements in another shape, one size of which may be -1.")
      .sample({.in = {places({0, 0, 1, 2}, 2), sizes({2, 3}), sizes({3, -1})},
               .out = {places({0, 0, 2, 1}, 2), sizes({3, 2})}})
      .sample({.in = {places({1, 2}, 2), sizes({2, 3}), sizes({6})}, .out = {places({5}, 1), sizes({6})}})
      .sample({.in = {places({1, 2}, 2), sizes({2, 3}), sizes({4})}, .error = "6 elements cannot have a shape of 4"})
      .sample({.in = {places({-5, 7}, 2), sizes({2, 3}), sizes({3, 2})}, .out = {places({-4, 0}, 2), sizes({3, 2})}})
      .sample({.in = {places({5, 0}, 2), sizes({2, 3}), sizes({3, 2})}, .out = {places({7, 1}, 2), sizes({3, 2})}})
      .sample({.in = {places({5, 0}, 2), sizes({2, 3}), sizes({2, -1})}, .out = {places({5, 0}, 2), sizes({2, 3})}})
      .sample({.in = {places({1, 1}, 2), sizes({int64_t{1} << 32, int64_t{1} << 32}), sizes({-1})},
               .error = "more than can be counted"})
      .sample({.in = {places({0, 0}, 2), sizes({0, 3}), sizes({0})}, .error = "outside the shape"});

  r.define("SparseFillEmptyRows")
      .type("T", all_types)
      .in("indices", DType::int64)
      .in("values", "T")
      .in_host("dense_shape", DType::int64)
      .in("default_value", "T")
      .out("output_indices", DType::int64)
      .out("output_values", "T")
      .out("empty_row_indicator", DType::bool_)
      .out("reverse_index_map", DType::int64)
      .shape([](InferContext& c) {
        c.require_rank(0, 2);
        c.require_rank(1, 1);
        c.require_rank(2, 1);
        c.require_rank(3, 0);
        const PartialShape &indices = c.input(0), whole = c.constant_shape(2);
        c.output(0, PartialShape{kUnknownDim, indices.has_rank() ? indices[1] : kUnknownDim});
        c.output(1, PartialShape{kUnknownDim});
        c.output(2, PartialShape{whole.has_rank() && whole.rank() > 0 ? whole[0] : kUnknownDim});
        c.output(3, PartialShape{indices.has_rank() ? indices[0] : kUnknownDim});
      })
      .forwards()
      .cpu([](KernelContext& c) { fill_rows(c); })
      .grad([](const GradCtx& g) {
        const Tensor dy = g.dy(1);
        // What no value went to is the default's, and nothing else: dy may hold large numbers, or some that are none.
        const auto of_default = [&] {
          const Tensor& map = g.y(3);
          const Tensor taken = scatter_nd(expand_dims(map, -1), ones_like(map), shape(dy, DType::int64));
          return reduce_sum(where(greater(taken, zeros_like(taken)), zeros_like(dy), dy));
        };
        return Gradients{{}, gather(dy, g.y(3)), {}, g.want(3, of_default)};
      })
      .doc("Every row without an element gets default_value in its first place; rows then stand in order.")
      .sample({.in = {places({2, 1, 0, 1, 2, 0}, 2), Tensor{3.f, 1.f, 2.f}, sizes({4, 2}), Tensor(9.f)},
               .out = {places({0, 1, 1, 0, 2, 1, 2, 0, 3, 0}, 2), Tensor{1.f, 9.f, 3.f, 2.f, 9.f},
                       Tensor{false, true, false, true}, sizes({2, 0, 3})}})
      .sample({.in = {places({4, 0}, 2), Tensor{3.f}, sizes({4, 2}), Tensor(9.f)}, .error = "is not in [0, 4)"});

  r.define<SparseConcatAttrs>("SparseConcat")
      .type("T", all_types)
      .in_list("indices", "N", DType::int64)
      .at_least(2)
      .in_list("values", "N")
      .in_list("shapes", "N", DType::int64)
      .out("output_indices", DType::int64)
      .out("output_values", "T")
      .out("output_shape", DType::int64)
      .shape([](InferContext& c, const SparseConcatAttrs&) {
        const int n = c.num_inputs() / 3;
        int64_t rank = kUnknownDim;
        for (int k = 0; k < n; ++k) {
          c.require_rank(k, 2);
          c.require_rank(n + k, 1);
          c.require_rank(2 * n + k, 1);
          if (c.input(2 * n + k).has_rank() && c.input(2 * n + k)[0] >= 0) rank = c.input(2 * n + k)[0];
        }
        c.output(0, PartialShape{kUnknownDim, rank});
        c.output(1, PartialShape{kUnknownDim});
        c.output(2, PartialShape{rank});
      })
      .cpu([](KernelContext& c, const SparseConcatAttrs& a) { join_sparse(c, a); })
      .not_differentiable()
      .doc("Sparse tensors one after the other along concat_dim, in row-major order.")
      .sample({.in = {places({0, 1, 1, 0}, 2), places({0, 0}, 2), Tensor{1.f, 2.f}, Tensor{3.f}, sizes({2, 2}),
                      sizes({2, 3})},
               .out = {places({0, 1, 0, 2, 1, 0}, 2), Tensor{1.f, 3.f, 2.f}, sizes({2, 5})}},
              {.concat_dim = 1})
      .sample({.in = {places({0, 1}, 2), places({0, 0}, 2), Tensor{1.f}, Tensor{3.f}, sizes({2, 2}), sizes({2, 3})},
               .error = "sizes of dimension 1 differ"},
              {.concat_dim = 0})
      .sample({.in = {places({0, 1}, 2), places({0, 0}, 2), Tensor{1.f}, Tensor{3.f}, sizes({2, -1}), sizes({2, 3})},
               .error = "a negative size: -1"},
              {.concat_dim = 1});
}

namespace sparse {

SparseTensor reshape(const SparseTensor& sp_input, const ShapeArg& shape) {
  return composed(shape.where(), [&]() -> SparseTensor {
    static const Op op("SparseReshape");
    const auto parts = op.many({sp_input.indices, sp_input.dense_shape, cast(shape.tensor(), DType::int64)});
    return {parts[0], sp_input.values, parts[1]};
  });
}

SparseTensor concat(int64_t axis, const std::vector<SparseTensor>& sp_inputs, bool expand_nonconcat_dims,
                    SourceSite where) {
  return composed(where, [&]() -> SparseTensor {
    static const Op<SparseConcatAttrs> op("SparseConcat");
    if (sp_inputs.empty()) throw invalid_argument("[SparseConcat] nothing to join");
    if (sp_inputs.size() == 1) return sp_inputs[0];
    std::vector<Tensor> shapes;
    for (const SparseTensor& s : sp_inputs) shapes.push_back(s.dense_shape);
    if (expand_nonconcat_dims) {
      const Tensor largest = reduce_max(stack(shapes), 0);
      const PartialShape rank = largest.partial_shape();
      if (!rank.is_static()) throw invalid_argument("[SparseConcat] the rank must be known to expand sizes");
      const int at = normalize_axis(axis, static_cast<int>(rank[0]), "[SparseConcat] axis");
      const Tensor here = equal(range(static_cast<int32_t>(rank[0])), at);
      for (Tensor& s : shapes) s = runnel::where(here, s, largest);
    }
    std::vector<Arg> args;
    for (const SparseTensor& s : sp_inputs) args.emplace_back(s.indices);
    for (const SparseTensor& s : sp_inputs) args.emplace_back(s.values);
    for (const Tensor& s : shapes) args.emplace_back(s);
    const auto parts = op.many(args, {.concat_dim = axis});
    return {parts[0], parts[1], parts[2]};
  });
}

FilledRows fill_empty_rows(const SparseTensor& sp_input, const Operand& default_value, SourceSite where) {
  static const Op op("SparseFillEmptyRows");
  const auto parts = op.many({sp_input.indices, sp_input.values, sp_input.dense_shape, default_value}, {}, &where);
  return {{parts[0], parts[1], sp_input.dense_shape}, parts[2]};
}

}  // namespace sparse
}  // namespace runnel
