// Reductions over axes.
#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/register.h"

namespace runnel {
namespace {

struct ReduceAttrs {
  bool keep_dims = false;
  static constexpr auto fields() { return std::tuple{field("keep_dims", &ReduceAttrs::keep_dims)}; }
};

// Which dimensions of a tensor of this rank are reduced.
SmallVector<bool, 8> reduced_dims(const Dims& axes, int rank) {
  SmallVector<bool, 8> reduced(static_cast<size_t>(rank), false);
  for (int64_t a : axes) {
    const auto i = static_cast<size_t>(normalize_axis(a, rank));
    if (reduced[i]) throw invalid_argument("axis {} is named twice", a);
    reduced[i] = true;
  }
  return reduced;
}

void reduce_shape(InferContext& c, bool keep_dims) {
  const PartialShape& x = c.input(0);
  const auto axes = c.constant_ints(1);
  if (!x.has_rank() || !axes) {
    c.output(keep_dims && x.has_rank() ? PartialShape::unknown_dims(x.rank()) : PartialShape::unknown());
    return;
  }
  const auto reduced = reduced_dims(*axes, x.rank());
  Dims dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (!reduced[static_cast<size_t>(i)]) {
      dims.push_back(x[i]);
    } else if (keep_dims) {
      dims.push_back(1);
    }
  }
  c.output(PartialShape(dims));
}

// `t`, a result or gradient of reducing `x`, with the reduced dimensions put back as size 1.
Tensor with_kept_dims(const Tensor& t, const Tensor& x, const Tensor& axes, bool kept) {
  if (kept) return t;
  Dims dims = x.shape().dims();
  const auto reduced = reduced_dims(int_values(axes), x.rank());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (reduced[i]) dims[i] = 1;
  }
  return reshape(t, dims);
}

}  // namespace

void register_reduce(Registry& r) {
  r.define<ReduceAttrs>("Sum")
      .in("input", numbers)
      .in_host("reduction_indices", "Tidx")
      .out("output")
      .shape([](InferContext& c, const ReduceAttrs& a) { reduce_shape(c, a.keep_dims); })
      .cpu([]<class T>(KernelContext& c) {
        const Tensor& x = c.in(0);
        const auto reduced = reduced_dims(c.ints(1), x.rank());
        T* y = c.out<T>();
        std::fill_n(y, c.out().num_elements(), T(0));
        Dims stride(static_cast<size_t>(x.rank()), 0);
        int64_t s = 1;
        for (int i = x.rank() - 1; i >= 0; --i) {
          if (reduced[static_cast<size_t>(i)]) continue;
          stride[static_cast<size_t>(i)] = s;
          s *= x.shape()[i];
        }
        for (int64_t k = 0; k < x.num_elements(); ++k) {
          int64_t at = 0;
          int64_t rest = k;
          for (int i = x.rank() - 1; i >= 0; --i) {
            at += rest % x.shape()[i] * stride[static_cast<size_t>(i)];
            rest /= x.shape()[i];
          }
          y[at] = static_cast<T>(y[at] + c.in<T>(0)[k]);
        }
      })
      .grad([](const GradCtx& g, const ReduceAttrs& a) {
        const Tensor dy = with_kept_dims(g.dy(), g.x(0), g.x(1), a.keep_dims);
        return Gradients{broadcast_to(dy, shape(g.x(0))), {}};
      })
      .doc("The sum over the given axes.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{0}}, .out = {Tensor{4.f, 6.f}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{0, 1}}, .out = {Tensor(10.f)}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1}}, .error = "out of range"});
}

Tensor reduce_sum(const Operand& x, const Axes& axis, bool keepdims) {
  static const Op<ReduceAttrs> op("Sum");
  const Tensor value = x.value();
  return op({x, axis.tensor_for(value)}, {.keep_dims = keepdims});
}

}  // namespace runnel
