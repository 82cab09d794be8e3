// Reductions composed of others.
#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

// |x|^2, real also for complex x.
Tensor squared_magnitude(const Tensor& x) { return square(is_complex(x.dtype()) ? abs(x) : x); }

}  // namespace

namespace math {

Tensor reduce_variance(const Operand& x, const Axes& axis, bool keepdims) {
  return composed(x.where(), [&]() -> Tensor {
    const Tensor value = x.value();
    if (!is_float(value.dtype()) && !is_complex(value.dtype())) {
      throw invalid_argument("[Variance] input must be floating or complex, got {}", dtype_name(value.dtype()));
    }
    const Tensor mean = reduce_mean(Operand(value, x.where()), axis, true);
    return reduce_mean(squared_magnitude(value - mean), axis, keepdims);
  });
}

Tensor reduce_std(const Operand& x, const Axes& axis, bool keepdims) {
  return composed(x.where(), [&] { return sqrt(reduce_variance(x, axis, keepdims)); });
}

Tensor reduce_euclidean_norm(const Operand& x, const Axes& axis, bool keepdims) {
  return composed(x.where(), [&]() -> Tensor {
    const Tensor value = x.value();
    if (is_integer(value.dtype())) {
      const Tensor wide = cast(value, DType::float64);
      return cast(sqrt(reduce_sum(Operand(square(wide), x.where()), axis, keepdims)), value.dtype());
    }
    return sqrt(reduce_sum(Operand(squared_magnitude(value), x.where()), axis, keepdims));
  });
}

Tensor count_nonzero(const Operand& x, const Axes& axis, bool keepdims, DType dtype) {
  return composed(x.where(), [&]() -> Tensor {
    const Tensor value = x.value();
    const Tensor hits = value.dtype() == DType::bool_ ? value : not_equal(value, zeros_like(value));
    return cast(reduce_sum(Operand(cast(hits, DType::int64), x.where()), axis, keepdims), dtype);
  });
}

}  // namespace math

Tensor reduce_logsumexp(const Operand& x, const Axes& axis, bool keepdims) {
  return composed(x.where(), [&]() -> Tensor {
    const Tensor value = x.value();
    // Any constant may be taken out of the sum; the largest element keeps exp in range.
    const Tensor largest = reduce_max(Operand(value, x.where()), axis, true);
    const Tensor shift = stop_gradient(where(is_finite(largest), largest, zeros_like(largest)));
    const Tensor result = log(reduce_sum(exp(value - shift), axis, keepdims));
    return result + (keepdims ? shift : reshape(shift, shape_arg(result)));
  });
}

}  // namespace runnel
