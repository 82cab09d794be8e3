#pragma once

#include <vector>

#include "runnel/keras/layer.h"
#include "runnel/op/dispatch.h"

namespace runnel::keras {

// An op called on described tensors, as a layer of the model (Keras's TFOpLambda).
class OpLayer : public Layer {
 public:
  // An input of the op that is a variable: every call reads it anew.
  struct VariableInput {
    size_t place;
    Variable variable;
  };
  OpLayer(const OpDef& op, SharedAttrs attrs, int num_outputs, std::vector<VariableInput> variables,
          const SourceSite& where);
  std::string class_name() const override { return "TFOpLambda"; }
  Config get_config() const override;
  Nest call(const Nest& inputs, const CallArgs& args) override;  // all but the variables

 private:
  const OpDef& op_;
  SharedAttrs attrs_;
  int num_outputs_;
  std::vector<VariableInput> variables_;
  SourceSite where_;
};

// Takes the ops called on described tensors.
Interceptor& op_recorder();

}  // namespace runnel::keras
