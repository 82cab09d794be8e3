#include "runnel/ops/tensor_array.h"

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"
#include "runnel/ops/tensor_list.h"

namespace runnel {

// Shared by all arrays that come from one by changes; `element_shape` may be refined on the way.
class TensorArray::Spec : public CompositeSpec {
 public:
  std::string describe() const override { return fmt::format("a TensorArray of {}", dtype_name(dtype)); }
  bool fits(const CompositeSpec& other) const override {
    const auto* array = dynamic_cast<const Spec*>(&other);
    return array && array->dtype == dtype && array->dynamic_size == dynamic_size;
  }

  DType dtype = DType::invalid;
  PartialShape element_shape = PartialShape::unknown();
  bool dynamic_size = false;
  bool infer_shape = true;
  std::string name;
};

namespace {

Tensor as_integers(const Operand& value, DType dtype) {
  if (value.is_literal()) return value.as(dtype);
  return value.tensor()->dtype() == dtype || !is_integer(value.tensor()->dtype()) ? *value.tensor()
                                                                                  : cast(*value.tensor(), dtype);
}

PartialShape without_first(const PartialShape& shape) {
  if (!shape.has_rank() || shape.rank() == 0) return PartialShape::unknown();
  return PartialShape(Dims(shape.begin() + 1, shape.end()));
}

// Parts of a split differ in their first dimension.
PartialShape first_unknown(const PartialShape& shape) {
  if (!shape.has_rank() || shape.rank() == 0) return PartialShape::unknown();
  Dims dims = shape.dims();
  dims[0] = kUnknownDim;
  return PartialShape(dims);
}

}  // namespace

TensorArray::TensorArray(DType dtype, const Operand& size, const TensorArrayOptions& options) {
  composed(size.where(), [&] {
    auto spec = std::make_shared<Spec>();
    spec->dtype = dtype;
    spec->element_shape = options.element_shape;
    spec->dynamic_size = options.dynamic_size;
    spec->infer_shape = options.infer_shape;
    spec->name = options.name;
    const Tensor n = as_integers(size, DType::int32);
    flow_ = list_ops::reserve(list_ops::element_shape_tensor(options.element_shape), Operand(n, size.where()), dtype);
    spec_ = std::move(spec);
  });
}

const TensorArray::Spec& TensorArray::fixed(const SourceSite& where) const {
  if (!spec_) {
    throw at_line(make_error(Code::failed_precondition, "[TensorArray] this array was never made: it has no elements"),
                  where);
  }
  return *spec_;
}
DType TensorArray::dtype(SourceSite where) const { return fixed(where).dtype; }
const PartialShape& TensorArray::element_shape(SourceSite where) const { return fixed(where).element_shape; }
bool TensorArray::dynamic_size(SourceSite where) const { return fixed(where).dynamic_size; }
const std::string& TensorArray::name(SourceSite where) const { return fixed(where).name; }
CompositeSpecPtr TensorArray::composite_spec() const { return spec_; }

TensorArray TensorArray::from_components(const CompositeSpecPtr& spec, const std::vector<Tensor>& parts,
                                         SourceSite where) {
  auto own = std::dynamic_pointer_cast<const Spec>(spec);
  if (!own || parts.size() != 1) {
    throw at_line(invalid_argument("[nest] a TensorArray asked of another composite"), where);
  }
  return TensorArray(std::move(own), parts[0]);
}

TensorArray TensorArray::with_flow(Tensor flow, const PartialShape& element, const char* method) const {
  const Spec& now = fixed();
  if (!now.element_shape.compatible_with(element)) {
    throw invalid_argument("[TensorArray] '{}'.{}: an element of shape {} does not fit the others, of shape {}",
                           now.name, method, element.str(), now.element_shape.str());
  }
  if (!now.infer_shape) return TensorArray(spec_, std::move(flow));
  const PartialShape merged = now.element_shape.merged_with(element);
  if (merged == now.element_shape) return TensorArray(spec_, std::move(flow));
  auto refined = std::make_shared<Spec>(now);
  refined->element_shape = merged;
  return TensorArray(std::move(refined), std::move(flow));
}

Tensor TensorArray::typed(const Operand& value, const char* method) const {
  const DType own = dtype();
  const Tensor t = value.is_literal() ? value.as(own) : *value.tensor();
  if (t.defined() && t.dtype() != own) {
    throw invalid_argument("[TensorArray] '{}'.{}: the array holds {}, got {}", name(), method, dtype_name(own),
                           dtype_name(t.dtype()));
  }
  return t;
}

// While tracing the op checks when it runs; here the array can be named.
void TensorArray::check_index(const Tensor& index, const char* method, bool may_grow) const {
  if (!defined() || flow_.is_symbolic() || !index.defined() || index.is_symbolic()) return;
  const int64_t n = tensor_list(flow_).size();
  for (int64_t i : int_values(index)) {
    if (i >= 0 && (i < n || may_grow)) continue;
    throw make_error(Code::out_of_range, "[TensorArray] '{}'.{}: index {} is out of range: the array has size {}",
                     name(), method, i, n);
  }
}

void TensorArray::check_length(int64_t n, const char* method) const {
  if (dynamic_size() || n < 0 || flow_.is_symbolic()) return;
  const int64_t own = tensor_list(flow_).size();
  if (own != n) {
    throw invalid_argument("[TensorArray] '{}'.{}: {} elements for an array of size {} that is not dynamic_size",
                           name(), method, n, own);
  }
}

Tensor TensorArray::size(SourceSite where) const {
  return composed(where, [&]() -> Tensor {
    fixed();
    return list_ops::length(flow_);
  });
}

Tensor TensorArray::read(const Operand& index) const {
  return composed(index.where(), [&]() -> Tensor {
    const Spec& spec = fixed();
    const Tensor i = as_integers(index, DType::int32);
    check_index(i, "read", false);
    return list_ops::get_item(flow_, Operand(i, index.where()), list_ops::element_shape_tensor(spec.element_shape),
                              spec.dtype);
  });
}

TensorArray TensorArray::write(const Operand& index, const Operand& value) const {
  return composed(index.where(), [&]() -> TensorArray {
    const Tensor i = as_integers(index, DType::int32);
    const Tensor t = typed(value, "write");
    check_index(i, "write", dynamic_size());
    Tensor flow = list_ops::set_item(flow_, Operand(i, index.where()), Operand(t, value.where()), dynamic_size());
    return with_flow(std::move(flow), t.partial_shape(), "write");
  });
}

Tensor TensorArray::stack(SourceSite where) const {
  return composed(where, [&]() -> Tensor {
    const Spec& spec = fixed();
    return list_ops::stack(flow_, list_ops::element_shape_tensor(spec.element_shape), spec.dtype);
  });
}

TensorArray TensorArray::unstack(const Operand& value) const {
  return composed(value.where(), [&]() -> TensorArray {
    const Tensor t = typed(value, "unstack");
    const PartialShape shape = t.partial_shape();
    if (shape.has_rank() && shape.rank() > 0) check_length(shape[0], "unstack");
    const PartialShape element = without_first(shape);
    return with_flow(list_ops::from_tensor(Operand(t, value.where()), list_ops::element_shape_tensor(element)), element,
                     "unstack");
  });
}

Tensor TensorArray::gather(const Operand& indices) const {
  return composed(indices.where(), [&]() -> Tensor {
    const Spec& spec = fixed();
    const Tensor i = as_integers(indices, DType::int32);
    check_index(i, "gather", false);
    return list_ops::gather(flow_, Operand(i, indices.where()), list_ops::element_shape_tensor(spec.element_shape),
                            spec.dtype);
  });
}

TensorArray TensorArray::scatter(const Operand& indices, const Operand& value) const {
  return composed(indices.where(), [&]() -> TensorArray {
    const Tensor i = as_integers(indices, DType::int32);
    const Tensor t = typed(value, "scatter");
    check_index(i, "scatter", dynamic_size());
    Tensor flow = list_ops::scatter_into(flow_, Operand(t, value.where()), i);
    return with_flow(std::move(flow), without_first(t.partial_shape()), "scatter");
  });
}

Tensor TensorArray::concat(SourceSite where) const {
  return composed(where, [&]() -> Tensor {
    const Spec& spec = fixed();
    const PartialShape parts = first_unknown(spec.element_shape);
    return list_ops::concat(flow_, list_ops::element_shape_tensor(parts), Tensor::empty(DType::int64, {0}), spec.dtype)
        .tensor;
  });
}

TensorArray TensorArray::split(const Operand& value, const Operand& lengths) const {
  return composed(value.where(), [&]() -> TensorArray {
    const Tensor t = typed(value, "split");
    const Tensor n = as_integers(lengths, DType::int64);
    const PartialShape count = n.partial_shape();
    if (count.has_rank() && count.rank() == 1) check_length(count[0], "split");
    const PartialShape element = first_unknown(t.partial_shape());
    Tensor flow = list_ops::split(Operand(t, value.where()), list_ops::element_shape_tensor(element), n);
    return with_flow(std::move(flow), element, "split");
  });
}

TensorArray TensorArray::identity(SourceSite where) const {
  return composed(where, [&]() -> TensorArray {
    fixed();
    return TensorArray(spec_, runnel::identity(flow_));
  });
}

}  // namespace runnel
