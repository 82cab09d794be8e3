#include "runnel/keras/op_layer.h"

#include "runnel/base/format.h"
#include "runnel/keras/functional.h"
#include "runnel/op/op_def.h"

namespace runnel::keras {
namespace {

class OpRecorder : public Interceptor {
 public:
  void call(const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs, int num_outputs,
            const SourceSite& where) override {
    const auto layer =
        std::make_shared<OpLayer>(op, op.attrs.copy ? op.attrs.copy(attrs) : nullptr, num_outputs, where);
    std::vector<Tensor> in;
    for (const Tensor* t : inputs) in.push_back(*t);
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

OpLayer::OpLayer(const OpDef& op, SharedAttrs attrs, int num_outputs, const SourceSite& where)
    : Layer(LayerOptions{.name = unique_name("tf." + to_snake_case(op.name))}),
      op_(op),
      attrs_(std::move(attrs)),
      num_outputs_(num_outputs),
      where_(where) {
  set_autocast(false);
}

Nest OpLayer::call(const Nest& inputs, const CallArgs&) {
  const std::vector<Tensor> in = nest::flatten(inputs);
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
