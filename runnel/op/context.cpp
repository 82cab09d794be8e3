#include "runnel/op/context.h"

#include <cstring>

#include "runnel/base/format.h"
#include "runnel/op/op_def.h"
#include "runnel/tensor/output_destination.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {
namespace {

constexpr int64_t kMaxElements = 256;  // of a vector of sizes or axes; longer ones are data

}  // namespace

Dims int_values(const Tensor& t) {
  Dims values;
  if (!signed_integers.contains(t.dtype())) {
    throw invalid_argument("signed integers needed, got {}", dtype_name(t.dtype()));
  }
  signed_integers.for_each([&]<class T>() {
    if (t.dtype() != dtype_of<T>) return;
    auto view = t.host<T>();
    values.assign(view.begin(), view.end());
  });
  return values;
}

const Tensor* InferContext::constant(int i) const {
  const Tensor* value = inputs_[static_cast<size_t>(i)]->known_value();
  asked_in_vain_ = asked_in_vain_ || value == nullptr;
  return value;
}

std::optional<Dims> InferContext::constant_ints(int i) const {
  const Tensor* t = constant(i);
  if (!t) return std::nullopt;
  if (t->rank() > 1) {
    throw invalid_argument("{} must be a scalar or a vector, got shape {}", op_.input_name(i), t->shape().str());
  }
  return int_values(*t);
}

std::optional<Dims> InferContext::partial_ints(int i) const {
  const Tensor& t = *inputs_[static_cast<size_t>(i)];
  if (t.dtype() != DType::int32 && t.dtype() != DType::int64) return std::nullopt;
  if (const Tensor* value = t.known_value()) {
    return value->rank() <= 1 ? std::optional(int_values(*value)) : std::nullopt;
  }
  if (const Dims* known = t.impl()->symbol->elements()) return *known;
  const PartialShape& s = input(i);
  if (!s.is_static() || s.rank() > 1) return std::nullopt;
  const int64_t n = s.rank() == 0 ? 1 : s[0];
  if (n > kMaxElements) return std::nullopt;
  return Dims(static_cast<size_t>(n), kUnknownDim);
}

PartialShape InferContext::constant_shape(int i) const {
  const PartialShape& spelled = input(i);
  if (spelled.has_rank() && spelled.rank() != 1) {
    throw invalid_argument("{} must be a vector of sizes, got shape {}", op_.input_name(i), spelled.str());
  }
  auto values = constant_ints(i);
  if (!values) values = partial_ints(i);
  if (values) {
    for (int64_t d : *values) {
      if (d < kUnknownDim) {
        throw invalid_argument("{} has a negative size: [{}]", op_.input_name(i), comma_separated(*values));
      }
    }
    return PartialShape(*values);
  }
  return PartialShape::unknown();
}

bool InferContext::is_scalar(int i, double number) const {
  const Tensor* t = constant(i);
  if (!t || t->rank() != 0 || !t->device().is_host()) return false;
  bool equal = false;
  numbers.for_each([&]<class T>() {
    if (dtype_of<T> != t->dtype()) return;
    const T value = static_cast<T>(static_cast<float>(number));
    equal = std::memcmp(t->data<T>(), &value, sizeof(T)) == 0;
  });
  return equal;
}

void InferContext::require_rank(int i, int rank) const {
  const PartialShape& s = input(i);
  if (s.has_rank() && s.rank() != rank) {
    throw invalid_argument("{} must have rank {}, got shape {}", op_.input_name(i), rank, s.str());
  }
}

void InferContext::require_rank_at_least(int i, int rank) const {
  const PartialShape& s = input(i);
  if (s.has_rank() && s.rank() < rank) {
    throw invalid_argument("{} must have rank {} or more, got shape {}", op_.input_name(i), rank, s.str());
  }
}

Tensor make_output(DType dtype, const Shape& shape, Device& home) {
  if (home.is_host()) {
    if (Tensor placed = OutputDestination::take(dtype, shape); placed.defined()) [[unlikely]]
      return placed;
  }
  return Tensor::empty(dtype, shape, home);
}

Tensor& KernelContext::allocate(int i, const Shape& shape) const {
  return outputs_[i] = make_output(output_dtypes_[i], shape, op_.output_home(i, output_dtypes_[i], device_));
}

Dims KernelContext::ints(int i) const { return int_values(in(i)); }

int64_t KernelContext::int_scalar(int i) const {
  if (in(i).num_elements() != 1) {
    throw invalid_argument("{} must be one integer, got shape {}", op_.input_name(i), in(i).shape().str());
  }
  return int_values(in(i))[0];
}

}  // namespace runnel
