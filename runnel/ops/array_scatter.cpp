// Scattering: ScatterNd and the TensorScatter ops.
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

// Unsigned where C++ would not define what happens on overflow; TensorFlow wraps around.
template <class T>
using Wrapping =
    std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, std::make_unsigned<T>, std::type_identity<T>>;
template <class T>
using wrapping_t = typename Wrapping<T>::type;

struct Assign {
  template <class T>
  static void apply(T& slot, const T& update) {
    slot = update;
  }
};
struct AddTo {
  template <class T>
  static void apply(T& slot, const T& update) {
    if constexpr (std::is_same_v<T, Bytes>) {
      slot = Bytes(slot.str() + update.str());  // strings are joined
    } else {
      using W = wrapping_t<T>;
      slot = static_cast<T>(static_cast<W>(slot) + static_cast<W>(update));
    }
  }
};
struct SubtractFrom {
  template <class T>
  static void apply(T& slot, const T& update) {
    using W = wrapping_t<T>;
    slot = static_cast<T>(static_cast<W>(slot) - static_cast<W>(update));
  }
};
struct Smaller {
  template <class T>
  static void apply(T& slot, const T& update) {
    if (update < slot || update != update) slot = update;
  }
};
struct Larger {
  template <class T>
  static void apply(T& slot, const T& update) {
    if (update > slot || update != update) slot = update;
  }
};

// Checks that `updates` has one slice of `whole` for each index.
void check_updates(const PartialShape& indices, const PartialShape& updates, const PartialShape& whole) {
  if (!indices.has_rank() || !updates.has_rank() || !whole.has_rank()) return;
  const int64_t depth = indices[indices.rank() - 1];
  if (depth < 0) return;
  if (depth > whole.rank()) {
    throw invalid_argument("indices name {} dimensions, shape {} has {}", depth, whole.str(), whole.rank());
  }
  Dims dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), whole.begin() + depth, whole.end());
  if (!updates.compatible_with(PartialShape(dims))) {
    throw invalid_argument("updates have shape {}, not {} as indices {} into {} ask for", updates.str(),
                           PartialShape(dims).str(), indices.str(), whole.str());
  }
}

// The row of `out` (seen as rows of `inner` elements) that each index names.
template <class I>
std::vector<int64_t> rows_of(const Tensor& indices, const Shape& whole) {
  const auto depth = static_cast<int>(indices.shape()[indices.rank() - 1]);
  int64_t n = 1;
  for (int d = 0; d + 1 < indices.rank(); ++d) n *= indices.shape()[d];
  std::vector<int64_t> rows(static_cast<size_t>(n));
  const I* at = indices.data<I>();
  for (int64_t i = 0; i < n; ++i, at += depth) {
    int64_t row = 0;
    for (int d = 0; d < depth; ++d) {
      if (at[d] < 0 || at[d] >= whole[d]) {
        throw invalid_argument("indices[{}] = [{}] does not lie within shape {}", i,
                               fmt::join(std::span<const I>(at, static_cast<size_t>(depth)), ","), whole.str());
      }
      row = row * whole[d] + at[d];
    }
    rows[static_cast<size_t>(i)] = row;
  }
  return rows;
}

// Combines the updates into `out`, in their order for every slot whatever the number of threads.
template <class F, class T>
void scatter(const Tensor& indices, const Tensor& updates, const Tensor& out) {
  const std::vector<int64_t> rows =
      indices.dtype() == DType::int32 ? rows_of<int32_t>(indices, out.shape()) : rows_of<int64_t>(indices, out.shape());
  if (updates.num_elements() == 0) return;
  const auto depth = static_cast<int>(indices.shape()[indices.rank() - 1]);
  int64_t slots = 1;
  for (int d = 0; d < depth; ++d) slots *= out.shape()[d];
  const int64_t inner = out.num_elements() / slots;
  T* to = out.mutable_data<T>();
  const T* from = updates.data<T>();
  auto combine = [&](int64_t first_row, int64_t last_row, int64_t begin, int64_t end) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] < first_row || rows[i] >= last_row) continue;
      T* slot = to + rows[i] * inner;
      const T* update = from + static_cast<int64_t>(i) * inner;
      for (int64_t k = begin; k < end; ++k) F::apply(slot[k], update[k]);
    }
  };
  constexpr int64_t kSerial = 1 << 15;
  constexpr int64_t kColumns = 2048;
  if (updates.num_elements() <= kSerial) return combine(0, slots, 0, inner);
  if (inner >= 2 * kColumns) {
    return parallel_for(inner, kColumns, [&](int64_t begin, int64_t end) { combine(0, slots, begin, end); });
  }
  parallel_for(slots, (slots + 7) / 8, [&](int64_t begin, int64_t end) { combine(begin, end, 0, inner); });
}

template <class F, class T>
void tensor_scatter(KernelContext& c) {
  cpu::copy_elements(c.out().dtype(), c.in(0).raw(), c.out<char>(), c.out().num_elements());
  scatter<F, T>(c.in(1), c.in(2), c.out());
}

void tensor_scatter_shape(InferContext& c) {
  c.require_rank_at_least(1, 1);
  check_updates(c.input(1), c.input(2), c.input(0));
  c.output(c.input(0));
}

auto tensor_scatter_op(OpBuilder<NoAttrs, Types<>> op, auto types) {
  auto made = op.in("tensor", types);
  made.type("Tindices", index_types);
  made.in("indices", "Tindices").in("updates").out("output").shape(tensor_scatter_shape);
  made.sample(
      {.in = {Tensor{1.f, 2.f}, Tensor{{2}}, Tensor{1.f}}, .error = "indices[0] = [2] does not lie within shape [2]"});
  made.sample({.in = {Tensor{1.f, 2.f}, Tensor{{0}}, Tensor{1.f, 2.f}}, .error = "updates have shape [2], not [1]"});
  return made;
}

// Ties share the gradient evenly, as for reductions.
Gradients extreme_grad(const GradCtx& g) {
  const Tensor &x = g.x(0), &indices = g.x(1), &updates = g.x(2);
  const Tensor dy = g.dy();
  const Tensor from_x = cast(equal(x, g.y()), dy.dtype());
  const Tensor from_updates = cast(equal(updates, gather_nd(g.y(), indices)), dy.dtype());
  const Tensor ties = from_x + scatter_nd(indices, from_updates, shape(x, indices.dtype()));
  const Tensor share = dy / ties;
  return {share * from_x, {}, gather_nd(share, indices) * from_updates};
}

}  // namespace

void register_array_scatter(Registry& r) {
  r.define("ScatterNd")
      .type("T", data_types)
      .type("Tindices", index_types)
      .in("indices", "Tindices")
      .in("updates", "T")
      .in_host("shape", "Tindices")
      .out("output", "T")
      .shape([](InferContext& c) {
        c.require_rank_at_least(0, 1);
        const PartialShape whole = constant_sizes(c, 2);
        check_updates(c.input(0), c.input(1), whole);
        c.output(whole);
      })
      .cpu([]<class T>(KernelContext& c) {
        std::fill_n(c.out<T>(), c.out().num_elements(), T());
        scatter<AddTo, T>(c.in(0), c.in(1), c.out());
      })
      .grad([](const GradCtx& g) {
        return Gradients{{}, gather_nd(g.dy(), g.x(0)), {}};
      })
      .doc("Zeros of the given shape with each update added at the position its index names; strings are joined.")
      .sample({.in = {Tensor{{1}, {3}, {1}}, Tensor{1.f, 2.f, 4.f}, Tensor{4}}, .out = {Tensor{0.f, 5.f, 0.f, 2.f}}})
      .sample({.in = {Tensor{{1}}, Tensor{{1.f, 2.f}}, Tensor{2, 2}}, .out = {Tensor{{0.f, 0.f}, {1.f, 2.f}}}})
      .sample({.in = {Tensor{{1}, {1}}, Tensor{"a", "b"}, Tensor{2}}, .out = {Tensor{"", "ab"}}})
      .sample({.in = {Tensor{{2}}, Tensor{1.f}, Tensor{2}}, .error = "indices[0] = [2] does not lie within shape [2]"})
      .sample({.in = {Tensor{{2}}, Tensor{1.f, 2.f}, Tensor{2}}, .error = "updates have shape [2], not [1]"});

  tensor_scatter_op(r.define("TensorScatterUpdate"), data_types)
      .cpu([]<class T>(KernelContext& c) { tensor_scatter<Assign, T>(c); })
      .grad([](const GradCtx& g) {
        const Tensor dy = g.dy();
        return Gradients{tensor_scatter_nd_update(dy, g.x(1), zeros_like(g.x(2))), {}, gather_nd(dy, g.x(1))};
      })
      .doc("The tensor with slices replaced by updates at the positions the indices name.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{{2}, {0}}, Tensor{8.f, 9.f}}, .out = {Tensor{9.f, 2.f, 8.f}}});

  tensor_scatter_op(r.define("TensorScatterAdd"), numbers)
      .cpu([]<class T>(KernelContext& c) { tensor_scatter<AddTo, T>(c); })
      .grad([](const GradCtx& g) {
        return Gradients{g.dy(), {}, gather_nd(g.dy(), g.x(1))};
      })
      .doc("The tensor with updates added at the positions the indices name.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{{2}, {2}}, Tensor{8.f, 9.f}}, .out = {Tensor{1.f, 2.f, 20.f}}});

  tensor_scatter_op(r.define("TensorScatterSub"), numbers)
      .cpu([]<class T>(KernelContext& c) { tensor_scatter<SubtractFrom, T>(c); })
      .grad([](const GradCtx& g) {
        return Gradients{g.dy(), {}, negative(gather_nd(g.dy(), g.x(1)))};
      })
      .doc("The tensor with updates subtracted at the positions the indices name.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{{2}, {2}}, Tensor{8.f, 9.f}}, .out = {Tensor{1.f, 2.f, -14.f}}});

  tensor_scatter_op(r.define("TensorScatterMin"), real_numbers)
      .cpu([]<class T>(KernelContext& c) { tensor_scatter<Smaller, T>(c); })
      .grad([](const GradCtx& g) { return extreme_grad(g); })
      .doc("The tensor with the smaller of itself and the updates at the positions the indices name.")
      .sample({.in = {Tensor{1.f, 5.f, 3.f}, Tensor{{0}, {1}}, Tensor{8.f, 2.f}}, .out = {Tensor{1.f, 2.f, 3.f}}});

  tensor_scatter_op(r.define("TensorScatterMax"), real_numbers)
      .cpu([]<class T>(KernelContext& c) { tensor_scatter<Larger, T>(c); })
      .grad([](const GradCtx& g) { return extreme_grad(g); })
      .doc("The tensor with the larger of itself and the updates at the positions the indices name.")
      .sample({.in = {Tensor{1.f, 5.f, 3.f}, Tensor{{0}, {1}}, Tensor{8.f, 2.f}}, .out = {Tensor{8.f, 5.f, 3.f}}});
}

Tensor scatter_nd(const Operand& indices, const Operand& updates, const ShapeArg& shape) {
  return composed(indices.where(), [&]() -> Tensor {
    static const Op op("ScatterNd");
    // The shape takes the dtype of the indices.
    Tensor whole = shape.tensor();
    const Tensor at = indices.value();
    if (whole.dtype() != at.dtype()) {
      const auto sizes = static_ints(whole);
      whole = sizes ? constant_ints_of(*sizes, at.dtype()) : cast(whole, at.dtype());
    }
    return op({Operand(at, indices.where()), updates, whole});
  });
}

Tensor tensor_scatter_nd_update(const Operand& tensor, const Operand& indices, const Operand& updates) {
  static const Op op("TensorScatterUpdate");
  return op({tensor, indices, updates});
}
Tensor tensor_scatter_nd_add(const Operand& tensor, const Operand& indices, const Operand& updates) {
  static const Op op("TensorScatterAdd");
  return op({tensor, indices, updates});
}
Tensor tensor_scatter_nd_sub(const Operand& tensor, const Operand& indices, const Operand& updates) {
  static const Op op("TensorScatterSub");
  return op({tensor, indices, updates});
}
Tensor tensor_scatter_nd_min(const Operand& tensor, const Operand& indices, const Operand& updates) {
  static const Op op("TensorScatterMin");
  return op({tensor, indices, updates});
}
Tensor tensor_scatter_nd_max(const Operand& tensor, const Operand& indices, const Operand& updates) {
  static const Op op("TensorScatterMax");
  return op({tensor, indices, updates});
}

Tensor Gradient::value(SourceSite where) const {
  if (dense_.defined()) return dense_;
  return composed(where, [&] {
    if (!slices_) {
      const TensorImpl* none = dense_.impl().get();
      throw make_error(Code::failed_precondition, "{}",
                       none && none->symbol ? none->symbol->described()
                                            : "there is no gradient: the target does not depend on the source");
    }
    return scatter_nd(expand_dims(slices_->indices, 1), slices_->values, slices_->dense_shape);
  });
}

IndexedSlices merge_slices(const IndexedSlices& a, const IndexedSlices& b, SourceSite where) {
  return composed(where, [&]() -> IndexedSlices {
    Tensor indices[] = {a.indices, b.indices};
    unify_index_types(indices);
    return {concat({a.values, b.values}, 0), concat({indices[0], indices[1]}, 0), a.dense_shape};
  });
}

}  // namespace runnel
