// Norms, normalising and clipping.
#include "runnel/ops/norm.h"

#include <cmath>

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/linalg.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

Tensor sum_of_squares(const Tensor& x, const Axes& axis, bool keepdims) {
  return reduce_sum(is_complex(x.dtype()) ? real(x * conj(x)) : square(x), axis, keepdims);
}

// The largest singular value of the matrices over the axes `row` and `column`, the axes kept with size 1.
Tensor spectral_norm(const Tensor& x, int row, int column) {
  Dims perm;
  const int rank = x.partial_shape().rank();
  for (int i = 0; i < rank; ++i) {
    if (i != row && i != column) perm.push_back(i);
  }
  perm.push_back(row);
  perm.push_back(column);
  const Tensor values = linalg::svdvals(transpose(x, Axes(int_vector(perm))));
  const Tensor top = expand_dims(reduce_max(values, -1, true), -1);
  Dims back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return transpose(top, Axes(int_vector(back)));
}

Tensor norm_over(const Tensor& x, const NormOrder& ord, const std::vector<int64_t>& axis, bool keepdims) {
  if (axis.size() > 2) throw invalid_argument("[Norm] axis must name one or two axes, got {}", axis.size());
  const bool matrix = axis.size() == 2;
  const Axes axes = axis.empty() ? Axes() : Axes(axis);
  const bool named = !ord.name().empty();
  if (named && ord.name() != "euclidean" && ord.name() != "fro") {
    throw invalid_argument("[Norm] ord '{}' is not known: euclidean, fro or a number", ord.name());
  }
  if (ord.name() == "fro" && axis.size() == 1)
    throw invalid_argument("[Norm] 'fro' is the norm of matrices, name two axes");
  if (!named && !(ord.p() > 0)) throw invalid_argument("[Norm] ord must be positive, got {}", ord.p());
  if (named || (ord.p() == 2 && !matrix)) return sqrt(sum_of_squares(x, axes, keepdims));

  const Tensor size = abs(x);
  Tensor result;
  if (!matrix) {
    if (ord.p() == 1) return reduce_sum(size, axes, keepdims);
    if (std::isinf(ord.p())) return reduce_max(size, axes, keepdims);
    return pow(reduce_sum(pow(size, ord.p()), axes, keepdims), 1 / ord.p());
  }
  const PartialShape known = x.partial_shape();
  if (!known.has_rank()) throw make_error(Code::unimplemented, "[Norm] of matrices in a tensor of unknown rank");
  const int row = normalize_axis(axis[0], known.rank());
  const int column = normalize_axis(axis[1], known.rank());
  if (row == column) throw invalid_argument("[Norm] axis {} is named twice", axis[0]);
  if (ord.p() == 1) {
    result = reduce_max(reduce_sum(size, row, true), column, true);
  } else if (std::isinf(ord.p())) {
    result = reduce_max(reduce_sum(size, column, true), row, true);
  } else if (ord.p() == 2) {
    result = spectral_norm(x, row, column);
  } else {
    throw invalid_argument("[Norm] matrices have the norms 1, 2, infinity, fro and euclidean, not {}", ord.p());
  }
  return keepdims ? result : squeeze(result, {row, column});
}

Tensor clip_scale(const Tensor& norm, const Tensor& limit) {
  // norm - norm is 0, or NaN where the norm is not finite, so that a broken gradient is seen.
  return limit * minimum(1 / norm, 1 / limit) + (norm - norm);
}

Gradients as_gradients(const std::vector<Tensor>& list) {
  Gradients gradients;
  for (const Tensor& t : list) gradients.push_back(t.defined() ? Gradient(t) : Gradient());
  return gradients;
}

// The same rows of the same whole, other values.
Gradient with_values(const Gradient& like, const Tensor& values) {
  if (!like.is_slices()) return values;
  return IndexedSlices{values, like.slices().indices, like.slices().dense_shape};
}
const Tensor& values_of(const Gradient& g) { return g.is_slices() ? g.slices().values : g.dense(); }

}  // namespace

Tensor norm(const Operand& tensor, const NormOrder& ord, const std::vector<int64_t>& axis, bool keepdims) {
  return composed(tensor.where(), [&] { return norm_over(tensor.value(), ord, axis, keepdims); });
}
Tensor norm(const Operand& tensor, const NormOrder& ord, int64_t axis, bool keepdims) {
  return composed(tensor.where(), [&] { return norm_over(tensor.value(), ord, {axis}, keepdims); });
}

Tensor clip_by_norm(const Operand& t, const Operand& clip_norm, const Axes& axes) {
  return composed(t.where(), [&]() -> Tensor {
    const Tensor x = t.value();
    const Tensor limit = clip_norm.is_literal() ? clip_norm.as(x.dtype()) : clip_norm.value();
    const Tensor sum = reduce_sum(square(Operand(x, t.where())), axes, true);
    // The root of 0 has no derivative: it is taken of 1 there.
    const Tensor positive = sum > 0;
    const Tensor length = where(positive, sqrt(where(positive, sum, ones_like(sum))), sum);
    return x * limit / maximum(length, limit);
  });
}

Gradient clip_gradient_by_norm(const Gradient& t, const Operand& clip_norm) {
  return composed(clip_norm.where(), [&]() -> Gradient {
    if (!t.defined()) return t;
    return with_values(t, clip_by_norm(values_of(t), clip_norm));
  });
}

std::pair<Gradients, Tensor> clip_by_global_norm(const Gradients& t_list, const Operand& clip_norm,
                                                 const Tensor& use_norm) {
  return composed(clip_norm.where(), [&]() -> std::pair<Gradients, Tensor> {
    const Tensor norm = use_norm.defined() ? use_norm : linalg::global_norm(t_list);
    const Tensor limit = clip_norm.is_literal() ? clip_norm.as(norm.dtype()) : clip_norm.value();
    const Tensor scale = clip_scale(norm, limit);
    Gradients clipped;
    for (const Gradient& g : t_list) {
      if (!g.defined()) {
        clipped.emplace_back();
      } else {
        const Tensor& values = values_of(g);
        clipped.push_back(
            with_values(g, values * (scale.dtype() == values.dtype() ? scale : cast(scale, values.dtype()))));
      }
    }
    return {std::move(clipped), norm};
  });
}

std::pair<std::vector<Tensor>, Tensor> clip_by_global_norm(const std::vector<Tensor>& t_list, const Operand& clip_norm,
                                                           const Tensor& use_norm) {
  return composed(clip_norm.where(), [&]() -> std::pair<std::vector<Tensor>, Tensor> {
    auto [clipped, norm] = clip_by_global_norm(as_gradients(t_list), clip_norm, use_norm);
    std::vector<Tensor> tensors;
    for (const Gradient& g : clipped) tensors.push_back(g.dense());
    return {std::move(tensors), norm};
  });
}

namespace linalg {

Tensor global_norm(const Gradients& t_list, SourceSite where) {
  return composed(where, [&]() -> Tensor {
    Tensor sum;
    for (const Gradient& g : t_list) {
      if (!g.defined()) continue;
      const Tensor part = sum_of_squares(values_of(g), {}, false);
      if (!sum.defined()) {
        sum = part;
      } else {
        sum = sum + (part.dtype() == sum.dtype() ? part : cast(part, sum.dtype()));
      }
    }
    return sum.defined() ? sqrt(sum) : Tensor(0.f);
  });
}
Tensor global_norm(const std::vector<Tensor>& t_list, SourceSite where) {
  return global_norm(as_gradients(t_list), where);
}

}  // namespace linalg

namespace math {
Tensor l2_normalize(const Operand& x, const Axes& axis, double epsilon) {
  return composed(x.where(), [&]() -> Tensor {
    const Tensor value = x.value();
    const Tensor scale = rsqrt(maximum(sum_of_squares(value, axis, true), epsilon));
    return value * (is_complex(value.dtype()) ? cast(scale, value.dtype()) : scale);
  });
}
}  // namespace math

namespace nn {
Moments moments(const Operand& x, const Axes& axes, bool keepdims) {
  return composed(x.where(), [&]() -> Moments {
    const Tensor given = x.value();
    const Tensor value = given.dtype() == DType::float16 ? cast(given, DType::float32) : given;
    const Tensor mean = reduce_mean(Operand(value, x.where()), axes, true);
    Tensor variance = reduce_mean(math::squared_difference(value, mean), axes, keepdims);
    Tensor middle = keepdims ? mean : reshape(mean, shape_arg(variance));
    if (value.dtype() != given.dtype()) {
      middle = cast(middle, given.dtype());
      variance = cast(variance, given.dtype());
    }
    return {middle, variance};
  });
}
}  // namespace nn

}  // namespace runnel
