#pragma once

#include <string>
#include <vector>

#include "runnel/base/source_site.h"
#include "runnel/graph/graph_function.h"
#include "runnel/op/gradient.h"

namespace runnel {

// Calls a function on all its inputs, captured ones included. Eagerly its plan runs, and tapes that record are told of
// the call as one step; while tracing, its ops go into the graph that is being built.
RUNNEL_API std::vector<Tensor> call_function(const GraphFunctionPtr& f, const std::vector<Tensor>& inputs);

// The gradients of the inputs of a call of an extended function, given its inputs, all its outputs and their gradients.
RUNNEL_API Gradients function_gradient(const GraphFunctionPtr& extended, const std::vector<Tensor>& inputs,
                                       const std::vector<Tensor>& outputs, std::span<const Gradient> dy,
                                       const std::vector<bool>& needed);

struct CallAttrs {
  std::vector<DType> Tin;
  std::vector<DType> Tout;
  FuncAttr f;
  std::vector<PartialShape> output_shapes;          // ours: what is known of them, for the callers' graphs
  std::string config, config_proto, executor_type;  // TensorFlow's: read and written, nothing here asks for them
  static constexpr auto fields() {
    return field_list(field("Tin", &CallAttrs::Tin, {.required = true}),
                      field("Tout", &CallAttrs::Tout, {.required = true}), field("f", &CallAttrs::f),
                      field("_output_shapes", &CallAttrs::output_shapes), field("config", &CallAttrs::config),
                      field("config_proto", &CallAttrs::config_proto),
                      field("executor_type", &CallAttrs::executor_type));
  }
};

}  // namespace runnel
