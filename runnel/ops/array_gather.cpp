// Gathering: GatherV2 and GatherNd.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

// Elements that one chunk of a parallel gather moves.
constexpr int64_t kChunk = 1 << 15;

struct GatherAttrs {
  int64_t batch_dims = 0;
  static constexpr auto fields() { return field_list(field("batch_dims", &GatherAttrs::batch_dims)); }
};

int64_t product(const Dims& dims, int begin, int end) {
  int64_t n = 1;
  for (int d = begin; d < end; ++d) n *= dims[static_cast<size_t>(d)];
  return n;
}

int normalized_batch_dims(int64_t batch_dims, int indices_rank) {
  if (batch_dims < -indices_rank || batch_dims > indices_rank) {
    throw invalid_argument("batch_dims {} is out of range for indices of rank {}", batch_dims, indices_rank);
  }
  return static_cast<int>(batch_dims < 0 ? batch_dims + indices_rank : batch_dims);
}

PartialShape gathered(const PartialShape& params, const PartialShape& indices, int axis, int batch) {
  if (axis < batch) throw invalid_argument("axis {} must not be smaller than batch_dims {}", axis, batch);
  Dims dims;
  for (int d = 0; d < axis; ++d) dims.push_back(params[d]);
  for (int d = 0; d < batch; ++d) {
    const int64_t n = indices[d];
    int64_t& size = dims[static_cast<size_t>(d)];
    if (size >= 0 && n >= 0 && size != n) {
      throw invalid_argument("batch dimension {} differs: params {}, indices {}", d, params.str(), indices.str());
    }
    if (size < 0) size = n;
  }
  dims.insert(dims.end(), indices.begin() + batch, indices.end());
  dims.insert(dims.end(), params.begin() + axis + 1, params.end());
  return PartialShape(dims);
}

template <class I>
void check_indices(const Tensor& indices, int64_t size) {
  const I* at = indices.data<I>();
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    if (at[i] < 0 || at[i] >= size) [[unlikely]] {
      throw invalid_argument("indices[{}] = {} is not in [0, {})", i, at[i], size);
    }
  }
}

template <class E, class I>
void gather_rows(const Tensor& params, const Tensor& indices, const Tensor& out, int axis, int batch) {
  const Dims& p = params.shape().dims();
  const int64_t batches = product(p, 0, batch);
  const int64_t outer = product(p, batch, axis);
  const int64_t size = p[static_cast<size_t>(axis)];
  const int64_t inner = product(p, axis + 1, params.rank());
  check_indices<I>(indices, size);
  if (out.num_elements() == 0) return;
  const int64_t count = indices.num_elements() / batches;
  const E* from = params.data<E>();
  const I* at = indices.data<I>();
  E* to = out.mutable_data<E>();
  parallel_for(batches * outer * count, std::max<int64_t>(1, kChunk / inner), [&](int64_t begin, int64_t end) {
    int64_t block = begin / count;
    int64_t i = begin % count;
    for (int64_t row = begin; row < end; ++block, i = 0) {
      const E* base = from + block * size * inner;
      const I* index = at + block / outer * count;
      const int64_t stop = std::min(count, i + (end - row));
      for (; i < stop; ++i, ++row) cpu::copy_run(base + index[i] * inner, to + row * inner, inner);
    }
  });
}

// A size that may be known only when the graph runs; then a scalar tensor gives it.
struct Extent {
  int64_t known = kUnknownDim;
  Tensor computed;

  Extent(int64_t n) : known(n) {}  // NOLINT: implicit
  explicit Extent(Tensor t) : computed(std::move(t)) {}
};

// The sizes of dimensions [begin, end) of x multiplied.
Extent extent_of(const Tensor& x, int begin, int end, DType index_type) {
  const PartialShape s = x.partial_shape();
  int64_t known = 1;
  Tensor unknown;
  for (int d = begin; d < end; ++d) {
    if (s[d] >= 0) {
      known *= s[d];
    } else {
      const Tensor n = shape(x, index_type)[d];
      unknown = unknown.defined() ? unknown * n : n;
    }
  }
  if (!unknown.defined()) return known;
  return Extent(known == 1 ? unknown : unknown * known);
}
Extent operator*(const Extent& a, const Extent& b) {
  if (a.known >= 0 && b.known >= 0) return a.known * b.known;
  if (a.known >= 0) return Extent(b.computed * a.known);
  if (b.known >= 0) return Extent(a.computed * b.known);
  return Extent(a.computed * b.computed);
}

// A vector of sizes of the given dtype.
Tensor sizes(std::initializer_list<Extent> extents, DType index_type) {
  std::vector<Tensor> each;
  Dims known;
  for (const Extent& e : extents) known.push_back(e.known);
  if (std::count(known.begin(), known.end(), kUnknownDim) == 0) {
    return constant_ints_of(known, index_type);
  }
  for (const Extent& e : extents) {
    each.push_back(e.known >= 0 ? reshape(constant_ints_of({e.known}, index_type), Shape{}) : e.computed);
  }
  return stack(each);
}

// What a gather goes through: [batches, outer, size, inner] of the parameters, [batches, count] indices.
struct GatherExtents {
  Extent batches;
  Extent outer;
  Extent size;
  Extent inner;
  Extent count;
};

// The same as extent_of where ranks or bounds are known only when the graph runs.
Extent extent_between(const Tensor& sizes, const Tensor& begin, const Tensor& end) {
  const Tensor at = range(size(sizes));
  return Extent(reduce_prod(where(logical_and(at >= begin, at < end), sizes, ones_like(sizes))));
}
GatherExtents dynamic_extents(const Tensor& params, const Tensor& indices, const Tensor& axis, int64_t batch_dims) {
  const DType type = indices.dtype();
  const Tensor p = shape(params, type);
  const Tensor i = shape(indices, type);
  const auto counted = [](const Tensor& at, const Tensor& rank) { return where(less(at, 0), at + rank, at); };
  const Tensor along = counted(cast(reshape(axis, Shape{}), DType::int32), size(p));
  const Tensor batch = counted(int_scalar(batch_dims), size(i));
  return {extent_between(p, zeros_like(batch), batch), extent_between(p, batch, along),
          extent_between(p, along, along + 1), extent_between(p, along + 1, size(p)),
          extent_between(i, batch, size(i))};
}

// The gradient of a gather along an axis other than the first, or in batches: rows of [batches * size] slots.
Tensor dense_gather_grad(const Tensor& dy, const Tensor& params, const Tensor& indices, const GatherExtents& extents) {
  const DType type = indices.dtype();
  const auto& [batches, outer, size, inner, count] = extents;
  // Outer positions move behind the gathered ones, so that each index owns one row.
  Tensor rows = dy;
  if (outer.known != 1) {
    rows = transpose(reshape(dy, sizes({batches, outer, count, inner}, type)), {0, 2, 1, 3});
  }
  rows = reshape(rows, sizes({batches * count, outer * inner}, type));
  Tensor at = indices;
  if (batches.known != 1) {
    const Tensor n = reshape(sizes({size}, type), Shape{});
    const Tensor b = reshape(sizes({batches}, type), Shape{});
    const Tensor starts = range(zeros_like(b), b, ones_like(b)) * n;
    at = reshape(indices, sizes({batches, count}, type)) + expand_dims(starts, 1);
  }
  at = reshape(at, sizes({batches * count, 1}, type));
  Tensor sum = scatter_nd(at, rows, sizes({batches * size, outer * inner}, type));
  if (outer.known != 1) {
    sum = transpose(reshape(sum, sizes({batches, size, outer, inner}, type)), {0, 2, 1, 3});
  }
  return reshape(sum, shape_arg(params));
}

// Indices of a dtype that shapes can have.
Tensor sizeable(const Tensor& indices) {
  return index_types.contains(indices.dtype()) ? indices : cast(indices, DType::int32);
}

Gradient gather_grad(const GradCtx& g, const GatherAttrs& a) {
  const Tensor& params = g.x(0);
  const Tensor indices = sizeable(g.x(1));
  const PartialShape p = params.partial_shape();
  const PartialShape i = indices.partial_shape();
  const auto at = static_ints(g.x(2));
  if (at && (*at)[0] == 0 && a.batch_dims == 0 && !p.has_rank()) {
    const Tensor whole = shape(params);
    const Tensor rows = concat({reshape(size(indices), {1}), whole(runnel::slice(1, none))}, 0);
    return IndexedSlices{reshape(g.dy(), rows), reshape(indices, {-1}), whole};
  }
  if (!at || !p.has_rank() || (!i.has_rank() && ((*at)[0] != 0 || a.batch_dims != 0))) {
    return dense_gather_grad(g.dy(), params, indices, dynamic_extents(params, indices, g.x(2), a.batch_dims));
  }
  const int axis = normalize_axis((*at)[0], p.rank());
  const int batch = a.batch_dims == 0 ? 0 : normalized_batch_dims(a.batch_dims, i.rank());
  if (axis > 0 || batch > 0) {
    const DType type = indices.dtype();
    return dense_gather_grad(g.dy(), params, indices,
                             {extent_of(params, 0, batch, type), extent_of(params, batch, axis, type),
                              extent_of(params, axis, axis + 1, type), extent_of(params, axis + 1, p.rank(), type),
                              extent_of(indices, batch, i.rank(), type)});
  }
  const Tensor whole = shape(params);
  Dims row = p.dims();
  row[0] = i.is_static() ? Shape(i).num_elements() : -1;
  const bool known = std::count(row.begin() + 1, row.end(), kUnknownDim) == 0;
  const Tensor values = known
                            ? reshape(g.dy(), row)
                            : reshape(g.dy(), concat({reshape(size(indices), {1}), whole(runnel::slice(1, none))}, 0));
  return IndexedSlices{values, reshape(indices, {-1}), whole};
}

// Where each row of positions points to.
class NdOffsets {
 public:
  NdOffsets(const Tensor& params, const Tensor& indices)
      : sizes_(params.shape().dims()), depth_(indices.shape()[indices.rank() - 1]), inner_(1) {
    const auto depth = static_cast<size_t>(depth_);
    for (size_t d = sizes_.size(); d-- > depth;) inner_ *= sizes_[d];
    steps_.resize(depth);
    int64_t step = inner_;
    for (size_t d = depth; d-- > 0; step *= sizes_[d]) steps_[d] = step;
  }
  int64_t inner() const { return inner_; }

  // Of the rows [begin, begin + n) of `at`.
  template <class I>
  void find(const I* at, int64_t begin, int64_t n, int64_t* offsets) const {
    std::fill_n(offsets, n, 0);
    const I* first = at + begin * depth_;
    for (int64_t d = 0; d < depth_; ++d) {
      const auto size = static_cast<uint64_t>(sizes_[static_cast<size_t>(d)]);
      const int64_t step = steps_[static_cast<size_t>(d)];
      bool outside = false;
      for (int64_t i = 0; i < n; ++i) {
        const auto index = static_cast<int64_t>(first[i * depth_ + d]);
        const bool inside = static_cast<uint64_t>(index) < size;
        outside |= !inside;
        offsets[i] += (inside ? index : 0) * step;
      }
      if (outside) [[unlikely]] {
        for (int64_t i = 0;; ++i) require_inside(first + i * depth_, begin + i);
      }
    }
  }

 private:
  template <class I>
  void require_inside(const I* position, int64_t row) const {
    for (int64_t d = 0; d < depth_; ++d) {
      const int64_t size = sizes_[static_cast<size_t>(d)];
      if (position[d] >= 0 && position[d] < size) continue;
      throw invalid_argument("indices[{}] has {} for dimension {}, which is not in [0, {})", row, position[d], d, size);
    }
  }

  Dims sizes_;
  int64_t depth_;
  int64_t inner_;  // elements at a position
  Dims steps_;
};

template <class E, class I>
void gather_nd_rows(const Tensor& params, const Tensor& indices, const Tensor& out) {
  const NdOffsets positions(params, indices);
  const int64_t inner = positions.inner();
  const E* from = params.data<E>();
  const I* at = indices.data<I>();
  E* to = out.mutable_data<E>();
  constexpr int64_t kBlock = 256;
  const int64_t rows = product(indices.shape().dims(), 0, indices.rank() - 1);
  parallel_for(rows, std::max<int64_t>(1, kChunk / std::max<int64_t>(1, inner)), [&](int64_t begin, int64_t end) {
    int64_t offsets[kBlock];
    for (int64_t row = begin; row < end; row += kBlock) {
      const int64_t n = std::min(kBlock, end - row);
      positions.find(at, row, n, offsets);
      if (inner == 1) {
        for (int64_t i = 0; i < n; ++i) to[row + i] = from[offsets[i]];
      } else {
        for (int64_t i = 0; i < n; ++i) cpu::copy_run(from + offsets[i], to + (row + i) * inner, inner);
      }
    }
  });
}

}  // namespace

void register_array_gather(Registry& r) {
  r.define<GatherAttrs>("GatherV2")
      .type("Tparams", all_types)
      .type("Tindices", narrow_index_types)
      .in("params", "Tparams")
      .in("indices", "Tindices")
      .type("Taxis", index_types)
      .in_host("axis", "Taxis")
      .out("output", "Tparams")
      .moves()
      .shape([](InferContext& c, const GatherAttrs& a) {
        const PartialShape& params = c.input(0);
        const PartialShape& indices = c.input(1);
        c.require_rank_at_least(0, 1);
        const auto at = c.constant_ints(2);
        if (at && at->size() != 1) throw invalid_argument("axis must be one integer, got {}", at->size());
        if (!params.has_rank() || !indices.has_rank()) return c.output(PartialShape::unknown());
        const int batch = normalized_batch_dims(a.batch_dims, indices.rank());
        if (!at) return c.output(PartialShape::unknown_dims(params.rank() - 1 + indices.rank() - batch));
        c.output(gathered(params, indices, normalize_axis((*at)[0], params.rank()), batch));
      })
      .cpu([](KernelContext& c, const GatherAttrs& a) {
        const int axis = normalize_axis(c.int_scalar(2), c.in(0).rank());
        const int batch = normalized_batch_dims(a.batch_dims, c.in(1).rank());
        cpu::with_element(c.in(0).dtype(), [&]<class E>() {
          narrow_index_types.for_each([&]<class I>() {
            if (c.in(1).dtype() == dtype_of<I>) gather_rows<E, I>(c.in(0), c.in(1), c.out(), axis, batch);
          });
        });
      })
      .grad([](const GradCtx& g, const GatherAttrs& a) {
        return Gradients{gather_grad(g, a), {}, {}};
      })
      .doc("Slices of params along an axis, at the given indices.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}, Tensor{2, 0, 2}, Tensor(0)},
               .out = {Tensor{{5.f, 6.f}, {1.f, 2.f}, {5.f, 6.f}}}})
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}, Tensor{{2, 0}}, Tensor(-1)},
               .out = {Tensor{{{3.f, 1.f}}, {{6.f, 4.f}}}}})
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}, Tensor{{2, 0}, {1, 1}}, Tensor(1)},
               .out = {Tensor{{3.f, 1.f}, {5.f, 5.f}}}},
              {.batch_dims = 1})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{0, 2}, Tensor(0)}, .error = "indices[1] = 2 is not in [0, 2)"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{0}, Tensor(1)}, .error = "out of range"});

  r.define("GatherNd")
      .type("Tparams", all_types)
      .type("Tindices", narrow_index_types)
      .in("params", "Tparams")
      .in("indices", "Tindices")
      .out("output", "Tparams")
      .moves()
      .shape([](InferContext& c) {
        const PartialShape& params = c.input(0);
        const PartialShape& indices = c.input(1);
        c.require_rank_at_least(1, 1);
        if (!params.has_rank() || !indices.has_rank()) return c.output(PartialShape::unknown());
        const int64_t depth = indices[indices.rank() - 1];
        if (depth < 0) return c.output(PartialShape::unknown());
        if (depth > params.rank()) {
          throw invalid_argument("indices name {} dimensions, params {} has {}", depth, params.str(), params.rank());
        }
        Dims dims(indices.begin(), indices.end() - 1);
        dims.insert(dims.end(), params.begin() + depth, params.end());
        c.output(PartialShape(dims));
      })
      .cpu([](KernelContext& c) {
        cpu::with_element(c.in(0).dtype(), [&]<class E>() {
          narrow_index_types.for_each([&]<class I>() {
            if (c.in(1).dtype() == dtype_of<I>) gather_nd_rows<E, I>(c.in(0), c.in(1), c.out());
          });
        });
      })
      .grad([](const GradCtx& g) {
        const Tensor indices = sizeable(g.x(1));
        return Gradients{scatter_nd(indices, g.dy(), shape(g.x(0), indices.dtype())), {}};
      })
      .doc("Slices of params at positions: the last dimension of indices names leading dimensions of params.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{{0, 1}, {1, 0}}}, .out = {Tensor{2.f, 3.f}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{{1}, {1}}}, .out = {Tensor{{3.f, 4.f}, {3.f, 4.f}}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{{3}}}, .error = "not in [0, 2)"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{{0, 0}}}, .error = "indices name 2 dimensions"});
}

Tensor gather(const Operand& params, const Operand& indices, int axis, int batch_dims) {
  return composed(params.where(), [&]() -> Tensor {
    static const Op<GatherAttrs> op("GatherV2");
    // As in TensorFlow the axis follows the batch dimensions unless it is named.
    if (axis == 0 && batch_dims != 0) {
      const PartialShape s = indices.value().partial_shape();
      axis = batch_dims > 0 || !s.has_rank() ? batch_dims : batch_dims + s.rank();
    }
    return op({params, indices, int_scalar(axis)}, {.batch_dims = batch_dims});
  });
}

Tensor gather_nd(const Operand& params, const Operand& indices, int batch_dims) {
  return composed(params.where(), [&]() -> Tensor {
    static const Op op("GatherNd");
    if (batch_dims == 0) return op({params, indices});
    // The batch dimensions become named ones: each index gets its own batch position in front.
    const Tensor at = indices.value();
    const PartialShape s = at.partial_shape();
    if (!s.has_rank() || batch_dims < 0 || batch_dims >= s.rank()) {
      throw invalid_argument("[GatherNd] batch_dims {} must be in [0, {}), less than the rank of indices", batch_dims,
                             s.rank());
    }
    std::vector<Tensor> columns;
    const Tensor whole = shape(at, at.dtype());
    const Tensor column = concat({whole(runnel::slice(none, -1)), ones_like(whole(runnel::slice(0, 1)))}, 0);
    for (int d = 0; d < batch_dims; ++d) {
      const Tensor n = whole[d];
      Dims along(static_cast<size_t>(s.rank()), 1);
      along[static_cast<size_t>(d)] = -1;
      columns.push_back(broadcast_to(reshape(range(zeros_like(n), n, ones_like(n)), along), column));
    }
    columns.push_back(at);
    return op({params, concat(columns, -1)});
  });
}

}  // namespace runnel
