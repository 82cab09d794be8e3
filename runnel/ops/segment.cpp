// Reductions over rows that share an id.
#include "runnel/ops/segment.h"

#include <limits>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/segment.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

using cpu::SegmentOp;

// The shape of ids followed by the dimensions of `data` that the ids do not cover must be that of `data`.
void check_prefix(const PartialShape& data, const PartialShape& ids) {
  if (!data.has_rank() || !ids.has_rank()) return;
  bool fits = ids.rank() <= data.rank();
  for (int i = 0; fits && i < ids.rank(); ++i) fits = ids[i] < 0 || data[i] < 0 || ids[i] == data[i];
  if (!fits)
    throw invalid_argument("segment_ids {} do not fit the leading dimensions of data {}", ids.str(), data.str());
}

constexpr auto sorted_shape = [](InferContext& c) {
  c.require_rank_at_least(0, 1);
  c.require_rank(1, 1);
  check_prefix(c.input(0), c.input(1));
  if (!c.input(0).has_rank()) return c.output(PartialShape::unknown());
  Dims dims = c.input(0).dims();
  dims[0] = kUnknownDim;
  c.output(PartialShape(dims));
};

constexpr auto unsorted_shape = [](InferContext& c) {
  c.require_rank(2, 0);
  const PartialShape& data = c.input(0);
  const PartialShape& ids = c.input(1);
  check_prefix(data, ids);
  const auto segments = c.constant_ints(2);
  if (segments && (*segments)[0] < 0) throw invalid_argument("num_segments is {}", (*segments)[0]);
  if (!data.has_rank() || !ids.has_rank()) return c.output(PartialShape::unknown());
  Dims dims{segments ? (*segments)[0] : kUnknownDim};
  dims.append(data.begin() + ids.rank(), data.end());
  c.output(PartialShape(dims));
};

template <SegmentOp op, class T>
T empty_value(bool sorted) {
  if constexpr (op == SegmentOp::prod) {
    return T(1);
  } else if constexpr (op == SegmentOp::max) {
    return sorted ? T(0) : std::numeric_limits<T>::lowest();
  } else if constexpr (op == SegmentOp::min) {
    return sorted ? T(0) : std::numeric_limits<T>::max();
  } else {
    return T(0);
  }
}

template <SegmentOp op, class T>
void sorted_kernel(KernelContext& c) {
  const Dims ids = c.ints(1);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) throw invalid_argument("segment_ids[{}] is negative: {}", i, ids[i]);
    if (i > 0 && ids[i] < ids[i - 1]) {
      throw invalid_argument("segment_ids are not sorted: {} follows {} at position {}", ids[i], ids[i - 1], i);
    }
  }
  Dims dims = c.in(0).shape().dims();
  const int64_t rows = dims[0];
  const int64_t width = rows == 0 ? 0 : c.in(0).num_elements() / rows;
  dims[0] = ids.empty() ? 0 : ids.back() + 1;
  const Tensor& y = c.allocate(0, Shape(dims));
  cpu::segment_reduce<T>(op, c.in<T>(0), ids.data(), rows, width, dims[0], empty_value<op, T>(true),
                         y.mutable_data<T>());
}

template <SegmentOp op, class T>
void unsorted_kernel(KernelContext& c) {
  const Dims ids = c.ints(1);
  const int64_t segments = c.int_scalar(2);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= segments)
      throw invalid_argument("segment_ids[{}] = {} is not below num_segments {}", i, ids[i], segments);
  }
  const int64_t width = segments == 0 ? 0 : c.out().num_elements() / segments;
  cpu::segment_reduce<T>(op, c.in<T>(0), ids.data(), static_cast<int64_t>(ids.size()), width, segments,
                         empty_value<op, T>(false), c.out<T>());
}

// `t`, shaped like the leading dimensions of `data`, with dimensions of size 1 for the others.
Tensor with_trailing_ones(const Tensor& t, const Tensor& data) {
  const PartialShape s = t.partial_shape();
  const PartialShape d = data.partial_shape();
  if (s.is_static() && d.has_rank()) {
    Dims dims = s.dims();
    dims.resize(static_cast<size_t>(d.rank()), 1);
    return reshape(t, dims);
  }
  return reshape(t, concat({shape(t), fill(reshape(rank(data) - rank(t), {1}), 1)}, 0));
}

// gather(params, ids) with zeros where an id is negative.
Tensor gather_rows(const Tensor& params, const Tensor& ids) {
  const Tensor rows = gather(params, maximum(ids, 0));
  return where(with_trailing_ones(ids >= 0, rows), rows, zeros_like(rows));
}

// How to gather the rows of a result, and how to sum rows into one: sorted and unsorted ids.
struct Sorted {
  const GradCtx& g;
  Tensor spread(const Tensor& t) const { return gather(t, g.x(1)); }
  Tensor sum(const Tensor& rows) const { return math::segment_sum(rows, g.x(1)); }
  Tensor prod(const Tensor& rows) const { return math::segment_prod(rows, g.x(1)); }
};
struct Unsorted {
  const GradCtx& g;
  Tensor spread(const Tensor& t) const { return gather_rows(t, g.x(1)); }
  Tensor sum(const Tensor& rows) const { return math::unsorted_segment_sum(rows, g.x(1), g.x(2)); }
  Tensor prod(const Tensor& rows) const { return math::unsorted_segment_prod(rows, g.x(1), g.x(2)); }
};

// Shares the gradient equally among the rows that equal the result.
template <class Ids>
Tensor segment_extreme_grad(const GradCtx& g, const Ids& ids) {
  const Tensor& data = g.x(0);
  const Tensor chosen = cast(equal(data, ids.spread(g.y())), data.dtype());
  return chosen * ids.spread(g.dy() / maximum(ids.sum(chosen), 1));
}

// The product of the others: the whole divided by the element, except where the element is the only zero.
template <class Ids>
Tensor segment_prod_grad(const GradCtx& g, const Ids& ids) {
  const Tensor& data = g.x(0);
  const Tensor is_zero = equal(data, zeros_like(data));
  const Tensor zero_count = ids.sum(cast(is_zero, DType::int32));
  const Tensor nonzero = where(is_zero, ones_like(data), data);
  const Tensor nonzero_prod = ids.spread(ids.prod(nonzero));
  const Tensor zeros_among = ids.spread(zero_count) - cast(is_zero, DType::int32);
  const Tensor others = where(equal(zeros_among, 0), nonzero_prod / nonzero, zeros_like(data));
  return ids.spread(g.dy()) * conj(others);
}

template <class Ids>
constexpr auto sum_grad_of = [](const GradCtx& g) { return Ids{g}.spread(g.dy()); };
template <class Ids>
constexpr auto extreme_grad_of = [](const GradCtx& g) { return segment_extreme_grad(g, Ids{g}); };
template <class Ids>
constexpr auto prod_grad_of = [](const GradCtx& g) { return segment_prod_grad(g, Ids{g}); };

template <class Set>
auto define_sorted(Registry& r, const char* name, Set types) {
  auto op = r.define(name).in("data", types).type("Tindices", index_types);
  op.in("segment_ids", "Tindices").out("output").shape(sorted_shape);
  return op;
}
template <class Set, class Ids = decltype(index_types)>
auto define_unsorted(Registry& r, const char* name, Set types, Ids ids = {}) {
  auto op = r.define(name).in("data", types).type("Tindices", ids);
  op.in("segment_ids", "Tindices").in_host("num_segments", "Tnumsegments").out("output").shape(unsorted_shape);
  return op;
}

void register_sorted(Registry& r) {
  const Tensor x{{1.f, 2.f}, {3.f, -1.f}, {5.f, 7.f}};
  const Tensor ids{0, 0, 2};
  define_sorted(r, "SegmentSum", numbers)
      .cpu([]<class T>(KernelContext& c) { sorted_kernel<SegmentOp::sum, T>(c); })
      .grad(sum_grad_of<Sorted>)
      .doc("Row i is the sum of the rows of data with id i; the ids increase.")
      .sample({.in = {x, ids}, .out = {Tensor{{4.f, 1.f}, {0.f, 0.f}, {5.f, 7.f}}}})
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{0, 1, 1}}, .out = {Tensor{1.f, 5.f}}})
      .sample({.in = {x, Tensor{1, 0, 2}}, .error = "not sorted"})
      .sample({.in = {x, Tensor{-1, 0, 2}}, .error = "negative"})
      .sample({.in = {x, Tensor{0, 1}}, .error = "do not fit"});
  define_sorted(r, "SegmentMean", numbers)
      .cpu([]<class T>(KernelContext& c) { sorted_kernel<SegmentOp::mean, T>(c); })
      .grad([](const GradCtx& g) {
        const Tensor count = cast(maximum(math::segment_sum(ones_like(g.x(1)), g.x(1)), 1), g.x(0).dtype());
        return gather(g.dy() / with_trailing_ones(count, g.dy()), g.x(1));
      })
      .doc("Row i is the mean of the rows of data with id i; the ids increase.")
      .sample({.in = {x, ids}, .out = {Tensor{{2.f, 0.5f}, {0.f, 0.f}, {5.f, 7.f}}}})
      .sample({.in = {Tensor{1.f, 2.f, 4.f}, Tensor{0, 1, 1}}, .out = {Tensor{1.f, 3.f}}});
  define_sorted(r, "SegmentMax", real_numbers)
      .cpu([]<class T>(KernelContext& c) { sorted_kernel<SegmentOp::max, T>(c); })
      .grad(extreme_grad_of<Sorted>)
      .doc("Row i is the largest of the rows of data with id i, element by element; the ids increase.")
      .sample({.in = {x, ids}, .out = {Tensor{{3.f, 2.f}, {0.f, 0.f}, {5.f, 7.f}}}})
      .sample({.in = {Tensor{1.f, 2.f, 4.f}, Tensor{0, 1, 1}}, .out = {Tensor{1.f, 4.f}}});
  define_sorted(r, "SegmentMin", real_numbers)
      .cpu([]<class T>(KernelContext& c) { sorted_kernel<SegmentOp::min, T>(c); })
      .grad(extreme_grad_of<Sorted>)
      .doc("Row i is the smallest of the rows of data with id i, element by element; the ids increase.")
      .sample({.in = {x, ids}, .out = {Tensor{{1.f, -1.f}, {0.f, 0.f}, {5.f, 7.f}}}})
      .sample({.in = {Tensor{1.f, 2.f, 4.f}, Tensor{0, 1, 1}}, .out = {Tensor{1.f, 2.f}}});
  define_sorted(r, "SegmentProd", numbers)
      .cpu([]<class T>(KernelContext& c) { sorted_kernel<SegmentOp::prod, T>(c); })
      .grad(prod_grad_of<Sorted>)
      .doc("Row i is the product of the rows of data with id i; the ids increase.")
      .sample({.in = {x, ids}, .out = {Tensor{{3.f, -2.f}, {1.f, 1.f}, {5.f, 7.f}}}})
      .sample({.in = {Tensor{1.f, 2.f, 4.f}, Tensor{0, 1, 1}}, .out = {Tensor{1.f, 8.f}}});
}

void register_unsorted(Registry& r) {
  const Tensor x{{1.f, 2.f}, {3.f, -1.f}, {5.f, 7.f}};
  const Tensor ids{1, 0, 1};
  define_unsorted(r, "UnsortedSegmentSum", numbers, narrow_index_types)
      .cpu([]<class T>(KernelContext& c) { unsorted_kernel<SegmentOp::sum, T>(c); })
      .grad(sum_grad_of<Unsorted>)
      .doc("Row i is the sum of the rows of data with id i; rows with a negative id are left out.")
      .sample({.in = {x, ids, Tensor(3)}, .out = {Tensor{{3.f, -1.f}, {6.f, 9.f}, {0.f, 0.f}}}})
      .sample({.in = {x, Tensor{{0, -1}, {1, 1}, {0, 0}}, Tensor(2)}, .out = {Tensor{13.f, 2.f}}})
      .sample({.in = {x, Tensor{0, 3, 1}, Tensor(3)}, .error = "not below num_segments"})
      .sample({.in = {x, Tensor{0, 1}, Tensor(3)}, .error = "do not fit"})
      .sample({.in = {x, ids, Tensor(-1)}, .error = "num_segments is -1"});
  define_unsorted(r, "UnsortedSegmentMax", real_numbers)
      .cpu([]<class T>(KernelContext& c) { unsorted_kernel<SegmentOp::max, T>(c); })
      .grad(extreme_grad_of<Unsorted>)
      .doc("Row i is the largest of the rows of data with id i, element by element; the lowest value without any.")
      .sample({.in = {x, ids, Tensor(2)}, .out = {Tensor{{3.f, -1.f}, {5.f, 7.f}}}})
      .sample({.in = {x, Tensor{{0, -1}, {1, 1}, {0, 0}}, Tensor(2)}, .out = {Tensor{7.f, 3.f}}});
  define_unsorted(r, "UnsortedSegmentMin", real_numbers)
      .cpu([]<class T>(KernelContext& c) { unsorted_kernel<SegmentOp::min, T>(c); })
      .grad(extreme_grad_of<Unsorted>)
      .doc("Row i is the smallest of the rows of data with id i, element by element; the highest value without any.")
      .sample({.in = {x, ids, Tensor(2)}, .out = {Tensor{{3.f, -1.f}, {1.f, 2.f}}}})
      .sample({.in = {x, Tensor{{0, -1}, {1, 1}, {0, 0}}, Tensor(2)}, .out = {Tensor{1.f, -1.f}}});
  define_unsorted(r, "UnsortedSegmentProd", numbers)
      .cpu([]<class T>(KernelContext& c) { unsorted_kernel<SegmentOp::prod, T>(c); })
      .grad(prod_grad_of<Unsorted>)
      .doc("Row i is the product of the rows of data with id i; 1 without any.")
      .sample({.in = {x, ids, Tensor(3)}, .out = {Tensor{{3.f, -1.f}, {5.f, 14.f}, {1.f, 1.f}}}})
      .sample({.in = {x, Tensor{{0, -1}, {1, 1}, {0, 0}}, Tensor(2)}, .out = {Tensor{35.f, -3.f}}});
}

// The number of rows of every segment, at least 1, shaped to divide `sums`.
Tensor segment_sizes(const Operand& ids, const Operand& num_segments, const Tensor& sums) {
  const Tensor count = maximum(math::unsorted_segment_sum(ones_like(ids), ids, num_segments), 1);
  return with_trailing_ones(cast(count, sums.dtype()), sums);
}

}  // namespace

void register_segment(Registry& r) {
  register_sorted(r);
  register_unsorted(r);
}

namespace math {

#define RUNNEL_SORTED(function, Name)                                \
  Tensor function(const Operand& data, const Operand& segment_ids) { \
    static const Op op(Name);                                        \
    return op({data, segment_ids});                                  \
  }
#define RUNNEL_UNSORTED(function, Name)                                                           \
  Tensor function(const Operand& data, const Operand& segment_ids, const Operand& num_segments) { \
    static const Op op(Name);                                                                     \
    return op({data, segment_ids, num_segments});                                                 \
  }
RUNNEL_SORTED(segment_sum, "SegmentSum")
RUNNEL_SORTED(segment_mean, "SegmentMean")
RUNNEL_SORTED(segment_max, "SegmentMax")
RUNNEL_SORTED(segment_min, "SegmentMin")
RUNNEL_SORTED(segment_prod, "SegmentProd")
RUNNEL_UNSORTED(unsorted_segment_sum, "UnsortedSegmentSum")
RUNNEL_UNSORTED(unsorted_segment_max, "UnsortedSegmentMax")
RUNNEL_UNSORTED(unsorted_segment_min, "UnsortedSegmentMin")
RUNNEL_UNSORTED(unsorted_segment_prod, "UnsortedSegmentProd")
#undef RUNNEL_SORTED
#undef RUNNEL_UNSORTED

Tensor unsorted_segment_mean(const Operand& data, const Operand& segment_ids, const Operand& num_segments) {
  return composed(data.where(), [&]() -> Tensor {
    const Tensor sums = unsorted_segment_sum(data, segment_ids, num_segments);
    return sums / segment_sizes(segment_ids, num_segments, sums);
  });
}
Tensor unsorted_segment_sqrt_n(const Operand& data, const Operand& segment_ids, const Operand& num_segments) {
  return composed(data.where(), [&]() -> Tensor {
    const Tensor sums = unsorted_segment_sum(data, segment_ids, num_segments);
    return sums / sqrt(segment_sizes(segment_ids, num_segments, sums));
  });
}

}  // namespace math
}  // namespace runnel
