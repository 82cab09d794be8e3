#include "runnel/ops/broadcast_grad.h"

#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel {

Tensor sum_to_shape_of(const Tensor& dy, const Tensor& x) {
  if (!dy.is_symbolic() && !x.is_symbolic() && dy.shape() == x.shape()) return dy;  // nearly always
  const PartialShape from = dy.partial_shape();
  const PartialShape to = x.partial_shape();
  if (from.is_static() && to.is_static()) {
    if (from == to) return dy;
    const int lead = from.rank() - to.rank();
    Dims axes;
    for (int i = 0; i < from.rank(); ++i) {
      if (i < lead || (to[i - lead] == 1 && from[i] != 1)) axes.push_back(i);
    }
    const Tensor summed = axes.empty() ? dy : reduce_sum(dy, Axes(int_vector(axes)));
    return reshape(summed, Shape(to));
  }
  // Shapes known only when the graph runs: the axes are computed there.
  static const Op op("BroadcastGradientArgs");
  const Tensor shape_x = shape(x);
  const auto axes = op.many({shape_x, shape(dy)});
  return reshape(reduce_sum(dy, Axes(axes[0])), ShapeArg(shape_x));
}

}  // namespace runnel
