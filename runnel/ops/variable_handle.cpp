// Variables as graphs make them: by name, without a value at first.
#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/named_resources.h"
#include "runnel/ops/state.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/handle.h"

namespace runnel {
namespace {

struct DestroyAttrs {
  bool ignore_lookup_error = true;
  static constexpr auto fields() {
    return field_list(field("ignore_lookup_error", &DestroyAttrs::ignore_lookup_error));
  }
};

// TensorFlow's name for a resource that nobody shares.
constexpr std::string_view kAnonymous = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

Tensor handle_of(const VariableHandleAttrs& a) {
  const bool anonymous = a.shared_name == kAnonymous;
  const std::string& shown = anonymous || a.shared_name.empty() ? a.debug_name : a.shared_name;
  auto object = named_resource(
      "variable", anonymous ? ResourceHome() : a.home, a.container, anonymous ? std::string() : a.shared_name,
      [&] { return std::make_shared<VariableSlot>(shown.empty() ? "Variable" : shown, a.dtype, a.shape, true); });
  const auto& slot = static_cast<const VariableSlot&>(*object);
  if (slot.dtype != a.dtype || !slot.shape.compatible_with(a.shape)) {
    throw invalid_argument("{} is {}{}, this asks for {}{}", slot.describe(), dtype_name(slot.dtype), slot.shape.str(),
                           dtype_name(a.dtype), a.shape.str());
  }
  Tensor handle = Tensor::empty(DType::resource, {});
  handle.mutable_data<ResourceHandle>()->object = std::move(object);
  return handle;
}

Tensor sample_variable(bool with_value) {
  const Variable v(Tensor{1.f, 2.f});
  if (!with_value) v.slot().value = {};
  return v.handle();
}

}  // namespace

void register_variable_handle(Registry& r) {
  r.define<VariableHandleAttrs>("VarHandleOp")
      .out("resource", DType::resource)
      .shape(scalar_shape)
      .forwards()
      .cpu([](KernelContext& c, const VariableHandleAttrs& a) { c.forward(0, handle_of(a)); })
      .stateful()
      .doc("The variable of that shared_name, which has no value until one is assigned; a new one without a name.");

  r.define("VarIsInitializedOp")
      .in("resource", DType::resource)
      .out("is_initialized", DType::bool_)
      .shape(scalar_shape)
      .cpu([](KernelContext& c) {
        VariableSlot& slot = variable_slot(c.in(0));
        const std::lock_guard lock(slot.mutex);
        *c.out<bool>() = slot.value.defined();
      })
      .any_device()
      .stateful()
      .doc("Whether a variable has a value.")
      .sample({.out = {Tensor(true)}, .make = [] { return std::vector<Tensor>{sample_variable(true)}; }})
      .sample({.out = {Tensor(false)}, .make = [] { return std::vector<Tensor>{sample_variable(false)}; }});

  r.define<DestroyAttrs>("DestroyResourceOp")
      .in("resource", DType::resource)
      .shape([](InferContext&) {})
      .cpu([](KernelContext& c, const DestroyAttrs& a) {
        Object* object = referred_object(c.in(0));
        if (!object) throw invalid_argument("the handle refers to nothing");
        auto* slot = dynamic_cast<VariableSlot*>(object);
        const bool named = forget_resource(object);
        if (!slot) return;
        const std::lock_guard lock(slot->mutex);
        if (named) {
          slot->value = {};
        } else if (!slot->value.defined() && !a.ignore_lookup_error) {
          throw make_error(Code::not_found, "{} does not exist any more", slot->describe());
        }
      })
      .any_device()
      .stateful()
      .doc("Forgets the name of a variable or table; the value of a variable that had one is gone for everyone.");

  r.define("DisableCopyOnRead")
      .in("resource", DType::resource)
      .shape([](InferContext&) {})
      .cpu([](KernelContext& c) { variable_slot(c.in(0)); })
      .any_device()
      .stateful()
      .doc("Does nothing: reading a variable never copies it here.")
      .sample({.make = [] { return std::vector<Tensor>{sample_variable(true)}; }});
}

}  // namespace runnel
