// Reductions over axes.
#include "runnel/kernels/cpu/reduce.h"

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/cumulative.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce_util.h"
#include "runnel/ops/segment.h"

namespace runnel {
namespace {

using cpu::Reduction;

struct ReduceAttrs {
  bool keep_dims = false;
  static constexpr auto fields() { return field_list(field("keep_dims", &ReduceAttrs::keep_dims)); }
};

constexpr auto reduce_shape = [](InferContext& c, const ReduceAttrs& a) {
  const PartialShape& x = c.input(0);
  const auto axes = c.constant_ints(1);
  if (!x.has_rank() || !axes) {
    c.output(a.keep_dims && x.has_rank() ? PartialShape::unknown_dims(x.rank()) : PartialShape::unknown());
    return;
  }
  const auto reduced = reduced_dims(*axes, x.rank());
  Dims dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (!reduced[static_cast<size_t>(i)]) {
      dims.push_back(x[i]);
    } else if (a.keep_dims) {
      dims.push_back(1);
    }
  }
  c.output(PartialShape(dims));
};

template <Reduction op, class T>
void reduce_kernel(KernelContext& c) {
  const Tensor& x = c.in(0);
  Dims axes = c.ints(1);
  for (int64_t& a : axes) a = normalize_axis(a, x.rank());
  cpu::reduce<T>(op, c.in<T>(0), x.shape().dims(), axes, c.out<T>());
}

// `t`, a result or gradient of reducing x(0) over x(1), with the reduced dimensions put back as size 1.
Tensor with_kept_dims(const Tensor& t, const GradCtx& g, const ReduceAttrs& a) {
  return a.keep_dims ? t : reshape(t, kept_shape(g.x(0), g.x(1)));
}

// Shares the gradient equally among the elements that equal the result.
constexpr auto extreme_grad = [](const GradCtx& g, const ReduceAttrs& a) -> Gradients {
  const Tensor dy = with_kept_dims(g.dy(), g, a);
  const Tensor chosen = cast(equal(with_kept_dims(g.y(), g, a), g.x(0)), dy.dtype());
  return {chosen * (dy / reduce_sum(chosen, g.x(1), true)), {}};
};

constexpr auto mean_grad = [](const GradCtx& g, const ReduceAttrs& a) -> Gradients {
  Tensor dy = with_kept_dims(g.dy(), g, a);
  const PartialShape from = g.x(0).partial_shape();
  const PartialShape to = g.y().partial_shape();
  if (from.is_static() && to.is_static()) {
    const auto count = static_cast<double>(Shape(from).num_elements() / std::max<int64_t>(1, Shape(to).num_elements()));
    // A count beyond float16's range would turn the gradient into 0.
    dy = dy.dtype() == DType::float16 ? dy * (1 / count) : dy / count;
  } else {
    const Tensor count = cast(size(g.x(0)), DType::float64) / cast(maximum(size(g.y()), 1), DType::float64);
    dy = dy.dtype() == DType::float16 ? dy * cast(reciprocal(count), dy.dtype()) : dy / cast(count, dy.dtype());
  }
  return {broadcast_to(dy, shape_arg(g.x(0))), {}};
};

// Axis by axis, without division, so that zeros do no harm: the derivative along one axis is the product of the
// elements before and after, and the derivative with respect to the products of one axis is found first.
Tensor prod_grad_over(const Tensor& x, const Tensor& dy, const std::vector<Tensor>& axes, size_t i) {
  if (i == axes.size()) return dy;
  const Tensor rest = i + 1 == axes.size() ? dy : prod_grad_over(reduce_prod(x, axes[i], true), dy, axes, i + 1);
  const Tensor before = math::cumprod(x, axes[i], true);
  const Tensor after = math::cumprod(x, axes[i], true, true);
  return rest * conj(before * after);
}

constexpr auto prod_grad = [](const GradCtx& g, const ReduceAttrs& a) -> Gradients {
  std::vector<Tensor> axes;
  const PartialShape listed = g.x(1).partial_shape();
  if (const auto known = static_ints(g.x(1))) {
    for (int64_t axis : *known) axes.push_back(int_scalar(axis));
  } else if (listed.is_static()) {
    axes = unstack(reshape(g.x(1), {-1}), 0, Shape(listed).num_elements());
  } else {
    throw make_error(Code::unimplemented, "[Prod] gradient over an unknown number of axes");
  }
  const Tensor dy = with_kept_dims(g.dy(), g, a);
  return {prod_grad_over(g.x(0), dy, axes, 0), {}};
};

}  // namespace

SmallVector<bool, 8> reduced_dims(const Dims& axes, int rank) {
  SmallVector<bool, 8> reduced(static_cast<size_t>(rank), false);
  for (int64_t a : axes) {
    const auto i = static_cast<size_t>(normalize_axis(a, rank));
    if (reduced[i]) throw invalid_argument("axis {} is named twice", a);
    reduced[i] = true;
  }
  return reduced;
}

ShapeArg kept_shape(const Tensor& x, const Tensor& axes) {
  const PartialShape known = x.partial_shape();
  const auto list = static_ints(axes);
  if (known.is_static() && list) {
    Dims dims = known.dims();
    const auto reduced = reduced_dims(*list, known.rank());
    for (size_t i = 0; i < dims.size(); ++i) {
      if (reduced[i]) dims[i] = 1;
    }
    return dims;
  }
  const Tensor sizes = shape(x);
  const Tensor flat = cast(reshape(axes, {-1}), DType::int32);
  const Tensor rank = size(sizes);
  const Tensor reduced = math::unsorted_segment_sum(ones_like(flat), floormod(flat, rank), rank);
  return sizes * (1 - reduced) + reduced;
}

void register_reduce(Registry& r) {
  r.define<ReduceAttrs>("Sum")
      .in("input", numbers)
      .in_host("reduction_indices", "Tidx")
      .out("output")
      .shape(reduce_shape)
      .cpu([]<class T>(KernelContext& c) { reduce_kernel<Reduction::sum, T>(c); })
      .grad([](const GradCtx& g, const ReduceAttrs& a) {
        return Gradients{broadcast_to(with_kept_dims(g.dy(), g, a), shape_arg(g.x(0))), {}};
      })
      .grad_reads({})
      .doc("The sum over the given axes.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{0}}, .out = {Tensor{4.f, 6.f}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{0, 1}}, .out = {Tensor(10.f)}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor(-1)}, .out = {Tensor{{3.f}, {7.f}}}}, {.keep_dims = true})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1}}, .error = "out of range"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{0, -1}}, .error = "named twice"});

  r.define<ReduceAttrs>("Mean")
      .in("input", numbers)
      .in_host("reduction_indices", "Tidx")
      .out("output")
      .shape(reduce_shape)
      .cpu([]<class T>(KernelContext& c) { reduce_kernel<Reduction::mean, T>(c); })
      .grad(mean_grad)
      .grad_reads({})
      .doc("The mean over the given axes; of integers, rounded towards zero.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 6.f}}, Tensor{0}}, .out = {Tensor{2.f, 4.f}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 6.f}}, Tensor{1, 0}}, .out = {Tensor{{3.f}}}}, {.keep_dims = true});

  r.define<ReduceAttrs>("Max")
      .in("input", real_numbers)
      .in_host("reduction_indices", "Tidx")
      .out("output")
      .shape(reduce_shape)
      .cpu([]<class T>(KernelContext& c) { reduce_kernel<Reduction::max, T>(c); })
      .grad(extreme_grad)
      .doc("The largest element over the given axes.")
      .sample({.in = {Tensor{{1.f, 5.f}, {3.f, 4.f}}, Tensor{0}}, .out = {Tensor{3.f, 5.f}}})
      .sample({.in = {Tensor{{1.f, 5.f}, {3.f, 4.f}}, Tensor{0, 1}}, .out = {Tensor{{5.f}}}}, {.keep_dims = true});

  r.define<ReduceAttrs>("Min")
      .in("input", real_numbers)
      .in_host("reduction_indices", "Tidx")
      .out("output")
      .shape(reduce_shape)
      .cpu([]<class T>(KernelContext& c) { reduce_kernel<Reduction::min, T>(c); })
      .grad(extreme_grad)
      .doc("The smallest element over the given axes.")
      .sample({.in = {Tensor{{1.f, 5.f}, {3.f, 4.f}}, Tensor{1}}, .out = {Tensor{1.f, 3.f}}})
      .sample({.in = {Tensor{{1.f, 5.f}, {3.f, 4.f}}, Tensor{0, 1}}, .out = {Tensor{{1.f}}}}, {.keep_dims = true});

  r.define<ReduceAttrs>("Prod")
      .in("input", numbers)
      .in_host("reduction_indices", "Tidx")
      .out("output")
      .shape(reduce_shape)
      .cpu([]<class T>(KernelContext& c) { reduce_kernel<Reduction::prod, T>(c); })
      .grad(prod_grad)
      .doc("The product over the given axes.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{0}}, .out = {Tensor{3.f, 8.f}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{0, 1}}, .out = {Tensor{{24.f}}}}, {.keep_dims = true})
      .sample({.in = {Tensor{{2.f, 0.f, 3.f}, {0.f, 5.f, 0.f}}, Tensor(1)}, .out = {Tensor{0.f, 0.f}}});

  r.define<ReduceAttrs>("Any")
      .in("input", DType::bool_)
      .type("Tidx", index_types, DType::int32)
      .in_host("reduction_indices", "Tidx")
      .out("output", DType::bool_)
      .shape(reduce_shape)
      .cpu([](KernelContext& c) { reduce_kernel<Reduction::any, bool>(c); })
      .doc("Whether any element over the given axes is true.")
      .sample({.in = {Tensor{{true, false}, {false, false}}, Tensor{1}}, .out = {Tensor{true, false}}})
      .sample({.in = {Tensor{{true, false}}, Tensor{0, 1}}, .out = {Tensor{{true}}}}, {.keep_dims = true});

  r.define<ReduceAttrs>("All")
      .in("input", DType::bool_)
      .type("Tidx", index_types, DType::int32)
      .in_host("reduction_indices", "Tidx")
      .out("output", DType::bool_)
      .shape(reduce_shape)
      .cpu([](KernelContext& c) { reduce_kernel<Reduction::all, bool>(c); })
      .doc("Whether every element over the given axes is true.")
      .sample({.in = {Tensor{{true, false}, {true, true}}, Tensor{1}}, .out = {Tensor{false, true}}})
      .sample({.in = {Tensor{{true, false}}, Tensor{0, 1}}, .out = {Tensor{{false}}}}, {.keep_dims = true});
}

#define RUNNEL_REDUCTION(function, Name)                                 \
  Tensor function(const Operand& x, const Axes& axis, bool keepdims) {   \
    static const Op<ReduceAttrs> op(Name);                               \
    return op({x, axis.tensor_for(x.value())}, {.keep_dims = keepdims}); \
  }
RUNNEL_REDUCTION(reduce_sum, "Sum")
RUNNEL_REDUCTION(reduce_mean, "Mean")
RUNNEL_REDUCTION(reduce_max, "Max")
RUNNEL_REDUCTION(reduce_min, "Min")
RUNNEL_REDUCTION(reduce_prod, "Prod")
RUNNEL_REDUCTION(reduce_any, "Any")
RUNNEL_REDUCTION(reduce_all, "All")
#undef RUNNEL_REDUCTION

}  // namespace runnel
