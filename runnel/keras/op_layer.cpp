#include "runnel/keras/op_layer.h"

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/functional.h"
#include "runnel/op/composed.h"
#include "runnel/op/op_def.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/handle.h"

namespace runnel::keras {
namespace {

// As Keras does: the layer of an op has no weights.
void warn_of_variables(const OpDef& op, std::vector<Variable> used, const SourceSite& where) {
  std::erase_if(used, [](const Variable& v) { return !v.trainable(); });
  for (const Variable& v : StrayVariables::add(used)) {
    log_warning(
        "[{}] variable '{}' is used in an op between the layers of a functional model, but is no part of it: it is not "
        "trained and saved with the model. Make it a weight of a layer of your own (add_weight) that calls the op{}",
        op.name, v.name(), user_line(where).at());
  }
}

class OpRecorder : public Interceptor {
 public:
  void call(const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs, int num_outputs,
            const SourceSite& where) override {
    std::vector<Tensor> in;
    std::vector<OpLayer::VariableInput> variables;
    std::vector<Variable> used;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& t = *inputs[i];
      if (const Variable variable = variable_just_read(t); variable.defined()) {
        variables.push_back({i, variable});
        used.push_back(variable);
        continue;
      }
      in.push_back(t);
      if (t.defined() && t.dtype() == DType::resource && !t.is_symbolic() && referred_as<VariableSlot>(t)) {
        used.push_back(Variable::from_handle(t));  // the op reads it by itself
      }
    }
    warn_of_variables(op, std::move(used), where);
    const auto layer = std::make_shared<OpLayer>(op, op.attrs.copy ? op.attrs.copy(attrs) : nullptr, num_outputs,
                                                 std::move(variables), where);
    const std::vector<Tensor> made = nest::flatten(record_call(*layer, Nest(in), {}));
    std::copy(made.begin(), made.end(), outputs);
  }
  Tensor outside(const Tensor&) override {
    throw make_error(Code::failed_precondition, "[Variable] a tensor of a functional model has no value here");
  }
  void variable_created(const std::string&) override {}
  Tensor with_gradient(const Tensor&, const std::vector<Tensor>&,
                       const std::function<Gradients(const Tensor& dy)>&) override {
    throw make_error(Code::unimplemented,
                     "[custom_gradient] a tensor of a functional model has no derivative here: call it inside a layer");
  }
};

}  // namespace

Interceptor& op_recorder() {
  static OpRecorder recorder;
  return recorder;
}

OpLayer::OpLayer(const OpDef& op, SharedAttrs attrs, int num_outputs, std::vector<VariableInput> variables,
                 const SourceSite& where)
    : Layer(LayerOptions{.name = unique_name("tf." + to_snake_case(op.name))}),
      op_(op),
      attrs_(std::move(attrs)),
      num_outputs_(num_outputs),
      variables_(std::move(variables)),
      where_(where) {
  set_autocast(false);
}

Nest OpLayer::call(const Nest& inputs, const CallArgs&) {
  std::vector<Tensor> in = nest::flatten(inputs);
  for (const VariableInput& v : variables_) {
    in.insert(in.begin() + static_cast<ptrdiff_t>(v.place), v.variable.value(where_));
  }
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : in) pointers.push_back(&t);
  std::vector<Tensor> out(static_cast<size_t>(num_outputs_));
  dispatch(op_, pointers, attrs_.get(), out.data(), num_outputs_, where_);
  return out;
}

Config OpLayer::get_config() const {
  throw make_error(
      Code::unimplemented,
      "[keras] op {} between the layers of a model cannot be written down: put it into a layer of your own", op_.name);
}

}  // namespace runnel::keras
