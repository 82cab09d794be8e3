#pragma once

#include "runnel/keras/layer.h"
#include "runnel/op/dispatch.h"

namespace runnel::keras {

// An op called on described tensors, as a layer of the model (Keras's TFOpLambda).
class OpLayer : public Layer {
 public:
  OpLayer(const OpDef& op, SharedAttrs attrs, int num_outputs, const SourceSite& where);
  std::string class_name() const override { return "TFOpLambda"; }
  Config get_config() const override;
  Nest call(const Nest& inputs, const CallArgs& args) override;

 private:
  const OpDef& op_;
  SharedAttrs attrs_;
  int num_outputs_;
  SourceSite where_;
};

// Takes the ops called on described tensors.
Interceptor& op_recorder();

}  // namespace runnel::keras
