// Ragged tensors: ranges, gathering, and what they are as sparse tensors.
#include <algorithm>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/sizes.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/debugging.h"
#include "runnel/ops/math.h"
#include "runnel/ops/ragged.h"

namespace runnel {
namespace {

struct RangeAttrs {
  DType Tsplits = DType::int64;
  static constexpr auto fields() {
    return field_list(field("Tsplits", &RangeAttrs::Tsplits, {.types = index_types.mask}));
  }
};
struct RaggedGatherAttrs {
  int64_t PARAMS_RAGGED_RANK = 1;
  int64_t OUTPUT_RAGGED_RANK = 0;
  static constexpr auto fields() {
    return field_list(
        field("PARAMS_RAGGED_RANK", &RaggedGatherAttrs::PARAMS_RAGGED_RANK, {.required = true, .minimum = 1}),
        field("OUTPUT_RAGGED_RANK", &RaggedGatherAttrs::OUTPUT_RAGGED_RANK, {.required = true, .minimum = 0}));
  }
};

// Splits as a tensor of int32 or int64.
Tensor splits_tensor(const Dims& splits, DType dtype) {
  if (dtype == DType::int32 && splits.back() > std::numeric_limits<int32_t>::max()) {
    throw invalid_argument("{} values are more than int32 row splits can count: use int64", splits.back());
  }
  return constant_ints_of(splits, dtype);
}

// Those of rows that all have `length` values.
Tensor even_splits(int64_t rows, int64_t length, DType dtype) {
  const int64_t values = checked_times(rows, length);
  if (dtype == DType::int32) splits_tensor({0, values}, dtype);  // an Error where they do not fit
  const Tensor splits = Tensor::empty(dtype, Shape{checked_plus(rows, 1)});
  index_types.for_each([&]<class I>() {
    if (dtype_of<I> != dtype) return;
    for (int64_t i = 0; i <= rows; ++i) splits.mutable_data<I>()[i] = static_cast<I>(i * length);
  });
  return splits;
}

// 0 first, never falling, the number of values last.
void require_splits(const Dims& splits, int64_t values, const char* name) {
  if (splits.empty() || splits[0] != 0) throw invalid_argument("{} must start with 0", name);
  for (size_t i = 1; i < splits.size(); ++i) {
    if (splits[i] < splits[i - 1]) throw invalid_argument("{} fall: {} after {}", name, splits[i], splits[i - 1]);
  }
  if (splits.back() != values) throw invalid_argument("{} end at {}, there are {} values", name, splits.back(), values);
}

template <class T>
void ragged_range(KernelContext& c, const RangeAttrs& a) {
  using C = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;
  int64_t n = kUnknownDim;  // of the vectors among the inputs; scalars serve every row
  for (int i = 0; i < 3; ++i) {
    if (c.in(i).rank() == 0) continue;
    const int64_t own = c.in(i).shape()[0];
    if (n >= 0 && own != n) throw invalid_argument("starts, limits and deltas differ in size: {} and {}", n, own);
    n = own;
  }
  if (n < 0) n = 1;
  const auto at = [&](int i, int64_t k) { return static_cast<C>(c.in<T>(i)[c.in(i).rank() == 0 ? 0 : k]); };
  Dims splits{0};
  for (int64_t k = 0; k < n; ++k) {
    const C start = at(0, k), limit = at(1, k), delta = at(2, k);
    if (delta == 0) throw invalid_argument("deltas[{}] is 0", k);
    double count = 0;
    if constexpr (std::is_integral_v<C>) {
      const __int128 span = static_cast<__int128>(limit) - start, step = delta;
      if ((span > 0) == (step > 0) && span != 0)
        count = static_cast<double>((span + step + (step > 0 ? -1 : 1)) / step);
    } else {
      count = (delta > 0 ? start < limit : start > limit) ? std::ceil(std::abs((limit - start) / delta)) : 0;
    }
    if (!(count <= static_cast<double>(int64_t{1} << 40)))
      throw invalid_argument("row {} would have {} values", k, count);
    splits.push_back(checked_plus(splits.back(), static_cast<int64_t>(count)));
  }
  const Tensor values = Tensor::empty(dtype_of<T>, Shape{splits.back()});
  T* to = values.mutable_data<T>();
  for (int64_t k = 0; k < n; ++k) {
    const auto row = static_cast<size_t>(k);
    C value = at(0, k);
    for (int64_t i = splits[row]; i < splits[row + 1]; ++i) {
      to[i] = static_cast<T>(value);
      // What follows the last value may be more than the type can hold.
      if (i + 1 < splits[row + 1]) value = static_cast<C>(value + at(2, k));
    }
  }
  c.forward(0, splits_tensor(splits, a.Tsplits));
  c.forward(1, values);
}

void ragged_to_sparse(KernelContext& c) {
  const int levels = c.num_inputs() - 1;
  const Tensor& flat = c.in(levels);
  std::vector<Dims> splits;
  for (int i = 0; i < levels; ++i) splits.push_back(c.ints(i));
  Dims shape;
  for (int i = 0; i < levels; ++i) {
    const Dims& s = splits[static_cast<size_t>(i)];
    const int64_t below =
        i + 1 < levels ? static_cast<int64_t>(splits[static_cast<size_t>(i) + 1].size()) - 1 : flat.shape()[0];
    require_splits(s, below, "row splits");
    if (i == 0) shape.push_back(static_cast<int64_t>(s.size()) - 1);
    int64_t longest = 0;
    for (size_t k = 1; k < s.size(); ++k) longest = std::max(longest, s[k] - s[k - 1]);
    shape.push_back(longest);
  }
  for (int d = 1; d < flat.rank(); ++d) shape.push_back(flat.shape()[d]);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t rows = flat.shape()[0];
  const int64_t inner = rows == 0 ? 0 : flat.num_elements() / rows;
  auto* to = c.allocate(0, Shape{rows * inner, rank}).mutable_data<int64_t>();
  Dims path(static_cast<size_t>(levels) + 1, 0);  // the place of a row of the flat values in every ragged dimension
  for (int64_t v = 0; v < rows && inner > 0; ++v) {
    int64_t at = v;
    for (int i = levels - 1; i >= 0; --i) {
      const Dims& s = splits[static_cast<size_t>(i)];
      const auto row = std::upper_bound(s.begin(), s.end(), at) - s.begin() - 1;
      path[static_cast<size_t>(i) + 1] = at - s[static_cast<size_t>(row)];
      at = row;
    }
    path[0] = at;
    for (int64_t k = 0; k < inner; ++k, to += rank) {
      std::copy(path.begin(), path.end(), to);
      int64_t rest = k;
      for (int64_t d = rank - 1; d > levels; --d) {
        to[d] = rest % shape[static_cast<size_t>(d)];
        rest /= shape[static_cast<size_t>(d)];
      }
    }
  }
  c.forward(1, flat.with_shape(Shape{rows * inner}));
  c.forward(2, constant_ints_of(shape, DType::int64));
}

void ragged_gather(KernelContext& c, const RaggedGatherAttrs& a) {
  const auto levels = static_cast<int>(a.PARAMS_RAGGED_RANK);
  const Tensor &flat = c.in(levels), &indices = c.in(levels + 1);
  const DType dtype = c.in(0).dtype();
  std::vector<Dims> splits;
  for (int i = 0; i < levels; ++i) splits.push_back(c.ints(i));
  for (int i = 0; i < levels; ++i) {
    require_splits(
        splits[static_cast<size_t>(i)],
        i + 1 < levels ? static_cast<int64_t>(splits[static_cast<size_t>(i) + 1].size()) - 1 : flat.shape()[0],
        "params_nested_splits");
  }
  // The dimensions of the indices, but the first, are rows of equal length.
  int out = 0;
  int64_t rows = indices.rank() == 0 ? 1 : indices.shape()[0];
  for (int d = 1; d < indices.rank(); ++d) {
    c.forward(out++, even_splits(rows, indices.shape()[d], dtype));
    rows *= indices.shape()[d];
  }
  // The rows that each index picks, as ranges of the level below, then of the one below that.
  std::vector<std::pair<int64_t, int64_t>> ranges;
  const Dims picked = int_values(indices);
  const auto size = static_cast<int64_t>(splits[0].size()) - 1;
  for (size_t i = 0; i < picked.size(); ++i) {
    if (picked[i] < 0 || picked[i] >= size) {
      throw invalid_argument("indices[{}] = {} is not in [0, {})", i, picked[i], size);
    }
    ranges.emplace_back(picked[i], picked[i] + 1);
  }
  for (int level = 0; level < levels; ++level) {
    const Dims& s = splits[static_cast<size_t>(level)];
    Dims own{0};
    for (auto& [begin, end] : ranges) {
      for (int64_t row = begin; row < end; ++row) {
        own.push_back(own.back() + s[static_cast<size_t>(row) + 1] - s[static_cast<size_t>(row)]);
      }
      begin = s[static_cast<size_t>(begin)];
      end = s[static_cast<size_t>(end)];
    }
    if (indices.rank() > 0 || level > 0) c.forward(out++, splits_tensor(own, dtype));
  }
  Dims dims = flat.shape().dims();
  const int64_t inner = dims[0] == 0 ? 0 : flat.num_elements() / dims[0];
  dims[0] = 0;
  for (const auto& [begin, end] : ranges) dims[0] += end - begin;
  const Tensor& values = c.allocate(out, Shape(dims));
  cpu::with_element(values.dtype(), [&]<class E>() {
    E* to = values.mutable_data<E>();
    for (const auto& [begin, end] : ranges) {
      cpu::copy_run(flat.data<E>() + begin * inner, to, (end - begin) * inner);
      to += (end - begin) * inner;
    }
  });
}

}  // namespace

void register_ragged_rows(Registry& r) {
  const auto longs = [](std::initializer_list<int64_t> v) { return Tensor::of<int64_t>(std::vector<int64_t>(v)); };
  r.define<RangeAttrs>("RaggedRange")
      .type("T", Types<BFloat16, float, double, int32_t, int64_t>{}, DType::int32)
      .in("starts", "T")
      .in("limits", "T")
      .in("deltas", "T")
      .out("rt_nested_splits", "Tsplits")
      .out("rt_dense_values", "T")
      .shape([](InferContext& c) {
        int64_t rows = kUnknownDim;  // of the vectors
        bool all_scalars = true;
        for (int i = 0; i < 3; ++i) {
          const PartialShape& s = c.input(i);
          if (s.rank() > 1) throw invalid_argument("starts, limits and deltas are scalars or vectors, got {}", s.str());
          all_scalars = all_scalars && s.rank() == 0;
          if (s.rank() != 1 || s[0] < 0) continue;
          if (rows >= 0 && s[0] != rows) throw invalid_argument("starts, limits and deltas differ in size");
          rows = s[0];
        }
        if (all_scalars) rows = 1;
        c.output(0, PartialShape{rows < 0 ? kUnknownDim : rows + 1});
        c.output(1, PartialShape{kUnknownDim});
      })
      .forwards()
      .cpu([]<class T>(KernelContext& c, const RangeAttrs& a) { ragged_range<T>(c, a); })
      .not_differentiable()
      .doc("A row start, start + delta, ... below limit for each start, limit and delta.")
      .sample({.in = {Tensor{0, 5, 8}, Tensor{3, 2, 8}, Tensor{1, -1, 1}},
               .out = {longs({0, 3, 6, 6}), Tensor{0, 1, 2, 5, 4, 3}}})
      .sample({.in = {Tensor(0), Tensor{3, 2}, Tensor(1)}, .out = {longs({0, 3, 5}), Tensor{0, 1, 2, 0, 1}}})
      .sample({.in = {Tensor{0}, Tensor{3}, Tensor{0}}, .error = "is 0"})
      .sample({.in = {Tensor{0, 1}, Tensor{3, 3, 3}, Tensor{1, 1}}, .error = "differ in size"})
      .sample({.in = {Tensor{7}, Tensor{9, 9, 9, 9}, Tensor(1)}, .error = "differ in size"})
      .sample({.in = {Tensor{0}, Tensor::empty(DType::int32, {0}), Tensor(1)}, .error = "differ in size"})
      .sample({.in = {Tensor{0}, Tensor{5}, Tensor{1}}, .out = {longs({0, 5}), Tensor{0, 1, 2, 3, 4}}});

  r.define("RaggedTensorToSparse")
      .type("T", all_types)
      .type("Tsplits", index_types, DType::int64)
      .in_list("rt_nested_splits", "RAGGED_RANK", "Tsplits")
      .at_least(1)
      .in("rt_dense_values", "T")
      .out("sparse_indices", DType::int64)
      .out("sparse_values", "T")
      .out("sparse_dense_shape", DType::int64)
      .shape([](InferContext& c) {
        const int levels = c.num_inputs() - 1;
        for (int i = 0; i < levels; ++i) c.require_rank(i, 1);
        c.require_rank_at_least(levels, 1);
        const PartialShape& flat = c.input(levels);
        const int64_t rank = flat.has_rank() ? levels + flat.rank() : kUnknownDim;
        c.output(0, PartialShape{kUnknownDim, rank});
        c.output(1, PartialShape{kUnknownDim});
        c.output(2, PartialShape{rank});
      })
      .forwards()
      .cpu([](KernelContext& c) { ragged_to_sparse(c); })
      .grad([](const GradCtx& g) {
        Gradients all(static_cast<size_t>(g.num_inputs()));
        all.back() = reshape(g.dy(1), shape(g.x(g.num_inputs() - 1)));
        return all;
      })
      .doc("The values of a ragged tensor at their indices.")
      .sample({.in = {longs({0, 2, 2, 3}), Tensor{1.f, 2.f, 3.f}},
               .out = {Tensor::of<int64_t>({0, 0, 0, 1, 2, 0}, Shape{3, 2}), Tensor{1.f, 2.f, 3.f}, longs({3, 2})}})
      .sample(
          {.in = {longs({0, 2}), longs({0, 1, 2}), Tensor{{1.f}, {2.f}}},
           .out = {Tensor::of<int64_t>({0, 0, 0, 0, 0, 1, 0, 0}, Shape{2, 4}), Tensor{1.f, 2.f}, longs({1, 2, 1, 1})}})
      .sample({.in = {longs({0, 2}), Tensor{1.f, 2.f, 3.f}}, .error = "end at 2, there are 3 values"});

  r.define<RaggedGatherAttrs>("RaggedGather")
      .type("Tvalues", data_types)
      .type("Tsplits", index_types, DType::int64)
      .in_list("params_nested_splits", "PARAMS_RAGGED_RANK", "Tsplits")
      .in("params_dense_values", "Tvalues")
      .type("Tindices", index_types)
      .in_host("indices", "Tindices")
      .out_list("output_nested_splits", "OUTPUT_RAGGED_RANK", "Tsplits")
      .out("output_dense_values", "Tvalues")
      .shape([](InferContext& c, const RaggedGatherAttrs& a) {
        const auto levels = static_cast<int>(a.PARAMS_RAGGED_RANK);
        for (int i = 0; i < levels; ++i) c.require_rank(i, 1);
        c.require_rank_at_least(levels, 1);
        const PartialShape &flat = c.input(levels), &at = c.input(levels + 1);
        if (at.has_rank() && a.OUTPUT_RAGGED_RANK != at.rank() + levels - 1) {
          throw invalid_argument("OUTPUT_RAGGED_RANK must be {}, got {}", at.rank() + levels - 1, a.OUTPUT_RAGGED_RANK);
        }
        for (int i = 0; i + 1 < c.num_outputs(); ++i) c.output(i, PartialShape{kUnknownDim});
        if (!flat.has_rank()) return c.output(c.num_outputs() - 1, flat);
        Dims dims = flat.dims();
        dims[0] = kUnknownDim;
        c.output(c.num_outputs() - 1, PartialShape(dims));
      })
      .cpu([](KernelContext& c, const RaggedGatherAttrs& a) { ragged_gather(c, a); })
      .grad([](const GradCtx& g, const RaggedGatherAttrs& a) {
        // The numbers of the values, gathered the same way, say where each came from.
        static const Op<RaggedGatherAttrs> op("RaggedGather");
        const auto levels = static_cast<int>(a.PARAMS_RAGGED_RANK);
        const Tensor& flat = g.x(levels);
        const Tensor n = shape(flat)[0];
        std::vector<Arg> args;
        for (int i = 0; i < levels; ++i) args.emplace_back(g.x(i));
        const Tensor numbers = range(n);
        args.emplace_back(numbers);
        args.emplace_back(g.x(levels + 1));
        const Tensor from = op.many(args, a).back();
        Gradients all(static_cast<size_t>(g.num_inputs()));
        all[static_cast<size_t>(levels)] = math::unsorted_segment_sum(g.dy(g.num_outputs() - 1), from, n);
        return all;
      })
      .doc("The rows of a ragged tensor that the indices name.")
      .sample({.in = {longs({0, 2, 2, 3}), Tensor{1.f, 2.f, 3.f}, Tensor{2, 0, 1}},
               .out = {longs({0, 1, 3, 3}), Tensor{3.f, 1.f, 2.f}}},
              {.PARAMS_RAGGED_RANK = 1, .OUTPUT_RAGGED_RANK = 1})
      .sample({.in = {longs({0, 2, 2, 3}), Tensor{1.f, 2.f, 3.f}, Tensor{{2, 0}, {1, 0}}},
               .out = {longs({0, 2, 4}), longs({0, 1, 3, 3, 5}), Tensor{3.f, 1.f, 2.f, 1.f, 2.f}}},
              {.PARAMS_RAGGED_RANK = 1, .OUTPUT_RAGGED_RANK = 2})
      .sample({.in = {longs({0, 2, 2, 3}), Tensor{1.f, 2.f, 3.f}, Tensor{3}}, .error = "indices[0] = 3"},
              {.PARAMS_RAGGED_RANK = 1, .OUTPUT_RAGGED_RANK = 1});
}

namespace ragged {

RaggedTensor range(const Operand& starts, const Operand& limits, const Operand& deltas, DType row_splits_dtype) {
  static const Op<RangeAttrs> op("RaggedRange");
  const auto parts = op.many({starts, limits, deltas}, {.Tsplits = row_splits_dtype});
  return RaggedTensor::from_row_splits(parts[1], parts[0], starts.where());
}

RaggedTensor gather(const RaggedTensor& params, const Operand& indices) {
  return composed(indices.where(), [&]() -> RaggedTensor {
    static const Op<RaggedGatherAttrs> op("RaggedGather");
    const Tensor at = indices.value();
    const PartialShape s = at.partial_shape();
    if (!s.has_rank() || s.rank() == 0) {
      throw invalid_argument("[RaggedGather] indices of known rank, 1 or more, are needed, got shape {}", s.str());
    }
    std::vector<Arg> args;
    for (const Tensor& splits : params.nested_row_splits()) args.emplace_back(splits);
    args.emplace_back(params.flat_values());
    args.emplace_back(at);
    auto parts = op.many(
        args, {.PARAMS_RAGGED_RANK = params.ragged_rank(), .OUTPUT_RAGGED_RANK = params.ragged_rank() + s.rank() - 1});
    const Tensor flat = parts.back();
    parts.pop_back();
    return RaggedTensor::from_nested_row_splits(flat, parts);
  });
}

SparseTensor to_sparse(const RaggedTensor& ragged, SourceSite where) {
  return composed(where, [&]() -> SparseTensor {
    static const Op op("RaggedTensorToSparse");
    std::vector<Arg> args;
    for (const Tensor& splits : ragged.nested_row_splits()) args.emplace_back(splits);
    args.emplace_back(ragged.flat_values());
    const auto parts = op.many(args);
    return {parts[0], parts[1], parts[2]};
  });
}

RaggedTensor from_value_rowids(const Tensor& values, const Tensor& value_rowids, const Tensor& nrows,
                               SourceSite where) {
  return composed(where, [&]() -> RaggedTensor {
    const Tensor ids = cast(value_rowids, DType::int64);
    const Tensor n = nrows.defined()
                         ? cast(nrows, DType::int64)
                         : maximum(reduce_max(concat({ids, constant_ints_of({-1}, DType::int64)}, 0)) + 1, 0);
    // Values stand in the order of their rows.
    debugging::assert_non_negative(ids, {.message = "[RaggedTensor] value_rowids must not be negative"});
    debugging::assert_greater_equal(ids(slice(1, none)), ids(slice(none, -1)),
                                    {.message = "[RaggedTensor] value_rowids must not fall"});
    if (nrows.defined()) {
      debugging::assert_less(ids, n, {.message = "[RaggedTensor] value_rowids must be less than nrows"});
    }
    const Tensor counts = math::unsorted_segment_sum(ones_like(ids), ids, n);
    return RaggedTensor::from_row_lengths(values, counts);
  });
}

RaggedTensor from_sparse(const SparseTensor& st_input, SourceSite where) {
  return composed(where, [&]() -> RaggedTensor {
    const PartialShape at = st_input.indices.partial_shape();
    if (at.has_rank() && at.rank() == 2 && at[1] >= 0 && at[1] != 2) {
      throw invalid_argument("[RaggedTensor] a sparse tensor of rank 2 is needed, got rank {}", at[1]);
    }
    // Every row must begin at its left end and have no gaps.
    if (const Tensor* known = st_input.indices.known_value()) {
      const Dims flat = int_values(*known);
      for (size_t i = 0; i < flat.size(); i += 2) {
        const int64_t expected = i > 0 && flat[i] == flat[i - 2] ? flat[i - 1] + 1 : 0;
        if (flat[i + 1] != expected || (i > 0 && flat[i] < flat[i - 2])) {
          throw invalid_argument("[RaggedTensor] row {} of the sparse tensor has a gap before column {}", flat[i],
                                 flat[i + 1]);
        }
      }
    }
    return from_value_rowids(st_input.values, st_input.indices(ellipsis, 0), st_input.dense_shape[0]);
  });
}

}  // namespace ragged
}  // namespace runnel
