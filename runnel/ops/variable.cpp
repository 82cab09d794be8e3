// Variables: reading and assigning.
#include <atomic>
#include <cstring>
#include <ostream>
#include <typeinfo>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/loops.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/math_common.h"
#include "runnel/ops/state.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/handle.h"

namespace runnel {
namespace {

struct VariableAttrs {
  DType dtype = DType::invalid;
  static constexpr auto fields() { return field_list(field("dtype", &VariableAttrs::dtype)); }
};

struct AssignAttrs {
  bool validate_shape = false;  // the new value has the shape of the one before, also where the variable has none
  static constexpr auto fields() { return field_list(field("validate_shape", &AssignAttrs::validate_shape)); }
};

void check_dtype(const VariableSlot& slot, const Tensor& value) {
  if (value.dtype() != slot.dtype) {
    throw invalid_argument("{} holds {}, assigned {}", slot.describe(), dtype_name(slot.dtype),
                           dtype_name(value.dtype()));
  }
}

void check_fits(const VariableSlot& slot, const Tensor& value) {
  check_dtype(slot, value);
  if (!slot.shape.compatible_with(value.partial_shape())) {
    throw invalid_argument("{} has shape {}, assigned {}", slot.describe(), slot.shape.str(),
                           value.partial_shape().str());
  }
}

template <class F, class T>
void update(KernelContext& c) {
  VariableSlot& slot = variable_slot(c.in(0));
  const Tensor& delta = c.in(1);
  check_dtype(slot, delta);
  std::lock_guard lock(slot.mutex);
  slot.require_value();
  if (!(slot.value.shape() == delta.shape())) {
    throw invalid_argument("{} has shape {}, the update {}", slot.describe(), slot.value.shape().str(),
                           delta.shape().str());
  }
  T* value = slot.writable().mutable_data<T>();
  cpu::binary_loop<F, T, T>(value, delta.data<T>(), value, delta.num_elements());
}

struct AddToValue {
  template <class T>
  T operator()(T x, T y) const {
    return static_cast<T>(wrapping(x) + wrapping(y));
  }
};
struct SubtractFromValue {
  template <class T>
  T operator()(T x, T y) const {
    return static_cast<T>(wrapping(x) - wrapping(y));
  }
};

}  // namespace

VariableSlot& variable_slot(const Tensor& handle) {
  if (!handle.defined() || handle.dtype() != DType::resource) {
    throw invalid_argument(
        "a variable's handle needed (resource), got {}",
        handle.defined() ? dtype_name(handle.dtype()) : "nothing: the Variable was never made, or was moved from");
  }
  const Tensor* known = handle.known_value();
  if (!known) {
    throw make_error(Code::failed_precondition,
                     "the variable is an argument of a graph: it is not known while tracing");
  }
  Object* object = referred_object(*known);
  if (object && typeid(*object) == typeid(VariableSlot)) return static_cast<VariableSlot&>(*object);  // the cheap way
  auto* slot = dynamic_cast<VariableSlot*>(object);
  if (!slot) throw invalid_argument("the resource is no variable");
  return *slot;
}

std::vector<SavableValue> VariableSlot::savable_values() {
  const auto get = [this] {
    const std::lock_guard lock(mutex);
    require_value();
    return std::vector<Tensor>{value.with_shape(value.shape())};  // a snapshot: later writes go elsewhere
  };
  const auto check = [this](const std::vector<Tensor>& saved) { check_fits(*this, saved.at(0)); };
  // Not an op: it happens once, whatever is being traced or recorded.
  const auto set = [this](const std::vector<Tensor>& saved) {
    const std::lock_guard lock(mutex);
    const Tensor fresh = value.defined() ? saved.at(0).to(value.device()) : saved.at(0);
    ++version;
    value = fresh.with_shape(fresh.shape());
  };
  return {{.name = "VARIABLE_VALUE", .full_name = name, .get = get, .check = check, .set = set}};
}

void VariableSlot::require_value() const {
  if (value.defined()) return;
  throw make_error(Code::failed_precondition, "{} has no value yet{}{}", describe(), advice.empty() ? "" : ": ",
                   advice);
}

uint64_t VariableSlot::next_id() {
  static std::atomic<uint64_t> made = 0;
  return ++made;
}

Tensor& VariableSlot::writable() {
  if (!value.device().is_host()) {
    throw make_error(Code::unimplemented, "{} lives on {}, which has no kernel for this update", describe(),
                     value.device_name());
  }
  ++version;
  packed_.clear();
  if (!value.impl()->buffer->unique() || value.impl()->buffer->is_foreign()) {
    Tensor copy = Tensor::empty(value.dtype(), value.shape());
    if (is_plain(dtype)) {
      std::memcpy(copy.mutable_data<char>(), value.raw(), value.num_bytes());
    } else {
      std::copy_n(value.data<Bytes>(), value.num_elements(), copy.mutable_data<Bytes>());
    }
    value = copy;
  }
  return value;
}

Tensor VariableSlot::packed(const std::string& layout, FunctionRef<Tensor(const Tensor&)> make) {
  require_value();
  std::erase_if(packed_, [&](const Packed& p) { return p.version != version; });
  for (const Packed& p : packed_) {
    if (p.layout == layout) return p.value;
  }
  packed_.push_back({layout, version, make(value)});
  return packed_.back().value;
}

void register_variable(Registry& r) {
  r.define<VariableAttrs>("ReadVariableOp")
      .in("resource", DType::resource)
      .out("value", "dtype")
      .shape([](InferContext& c, const VariableAttrs& a) {
        const Tensor* handle = c.constant(0);
        if (!handle) return c.output(PartialShape::unknown());
        const VariableSlot& slot = variable_slot(*handle);
        if (slot.dtype != a.dtype) {
          throw invalid_argument("{} holds {}, not {}", slot.describe(), dtype_name(slot.dtype), dtype_name(a.dtype));
        }
        c.output(slot.shape);
      })
      .forwards()
      .cpu([](KernelContext& c) {
        VariableSlot& slot = variable_slot(c.in(0));
        std::lock_guard lock(slot.mutex);
        slot.require_value();
        // A tensor of its own over the shared buffer: tapes tell reads apart.
        Tensor read = slot.value.with_shape(slot.value.shape());
        slot.last_reads[slot.num_reads++ % slot.last_reads.size()] = read.impl().get();
        c.forward(0, std::move(read));
      })
      .grad([](const GradCtx& g) { return g.raw_dy(); })
      .stateful()
      .reads_variable()
      .doc("The value of a variable at this moment.");

  r.define<AssignAttrs>("AssignVariableOp")
      .in("resource", DType::resource)
      .type("dtype", all_types)
      .in("value")
      .shape([](InferContext&) {})
      .cpu([](KernelContext& c, const AssignAttrs& a) {
        VariableSlot& slot = variable_slot(c.in(0));
        check_fits(slot, c.in(1));
        std::lock_guard lock(slot.mutex);
        if (a.validate_shape && slot.value.defined() && !(slot.value.shape() == c.in(1).shape())) {
          throw invalid_argument("{} has a value of shape {}, assigned {}", slot.describe(), slot.value.shape().str(),
                                 c.in(1).shape().str());
        }
        // A variable stays on its device.
        const Tensor value = slot.value.defined() ? c.in(1).to(slot.value.device()) : c.in(1);
        ++slot.version;
        slot.value = value.with_shape(value.shape());
      })
      .any_device()
      .stateful()
      .doc("Gives a variable a new value.");

  r.define("AssignAddVariableOp")
      .in("resource", DType::resource)
      .type("dtype", numbers)
      .in("value")
      .shape([](InferContext&) {})
      .cpu([]<class T>(KernelContext& c) { update<AddToValue, T>(c); })
      .stateful()
      .doc("Adds to a variable.");

  r.define("AssignSubVariableOp")
      .in("resource", DType::resource)
      .type("dtype", numbers)
      .in("value")
      .shape([](InferContext&) {})
      .cpu([]<class T>(KernelContext& c) { update<SubtractFromValue, T>(c); })
      .stateful()
      .doc("Subtracts from a variable.");
}

Variable::Variable(const Operand& initial_value, const VariableOptions& options) {
  composed(initial_value.where(), [&] {
    Tensor value = initial_value.is_literal() && options.dtype != DType::invalid ? initial_value.as(options.dtype)
                                                                                 : initial_value.value();
    if (options.dtype != DType::invalid && value.dtype() != options.dtype) {
      throw invalid_argument("[Variable] '{}' asks for {}, the initial value is {}", options.name,
                             dtype_name(options.dtype), dtype_name(value.dtype()));
    }
    if (Interceptor* tracer = current_interceptor()) {
      if (value.is_symbolic()) value = tracer->outside(value);
      tracer->variable_created(options.name);
    }
    auto slot = std::make_shared<VariableSlot>(
        options.name, value.dtype(), options.shape ? *options.shape : PartialShape(value.shape()), options.trainable);
    check_fits(*slot, value);
    slot->value = value.with_shape(value.shape());
    remember_variable(slot);
    handle_ = Tensor::empty(DType::resource, {});
    handle_.mutable_data<ResourceHandle>()->object = std::move(slot);
  });
}

Variable Variable::from_handle(const Tensor& handle, SourceSite where) {
  at_caller(where, [&] { variable_slot(handle); });  // throws when it is no variable
  Variable v;
  v.handle_ = handle;
  return v;
}

Shape Variable::shape(SourceSite where) const {
  VariableSlot& s = slot(where);
  std::lock_guard lock(s.mutex);
  at_caller(where, [&] { s.require_value(); });
  return s.value.shape();
}

const std::string& Variable::name(SourceSite where) const { return slot(where).name; }
DType Variable::dtype(SourceSite where) const { return slot(where).dtype; }
bool Variable::trainable(SourceSite where) const { return slot(where).trainable; }
VariableSlot& Variable::slot(SourceSite where) const {
  return at_caller(where, [&]() -> VariableSlot& { return variable_slot(handle_); });
}

Tensor Variable::value(SourceSite where) const {
  static const Op<VariableAttrs> op("ReadVariableOp");
  return composed(where, [&] { return op({handle_}, {.dtype = dtype()}); });
}

namespace {

template <class A>
void write_with(const Op<A>& op, const Variable& variable, const Operand& value) {
  composed(value.where(), [&] {
    const Tensor v = value.is_literal() ? value.as(variable.dtype()) : *value.tensor();
    if (current_interceptor()) check_fits(variable.slot(), v);  // a graph would find it only when it runs
    op.many({variable.handle(), v});
  });
}

}  // namespace

const Variable& Variable::assign(const Operand& value) const {
  static const Op<AssignAttrs> op("AssignVariableOp");
  write_with(op, *this, value);
  return *this;
}
const Variable& Variable::assign_add(const Operand& delta) const {
  static const Op op("AssignAddVariableOp");
  write_with(op, *this, delta);
  return *this;
}
const Variable& Variable::assign_sub(const Operand& delta) const {
  static const Op op("AssignSubVariableOp");
  write_with(op, *this, delta);
  return *this;
}

}  // namespace runnel
