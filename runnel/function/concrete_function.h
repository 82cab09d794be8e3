#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runnel/function/tensor_spec.h"
#include "runnel/ops/state.h"

namespace runnel {

class Graph;
class GraphFunction;
using GraphFunctionPtr = std::shared_ptr<const GraphFunction>;

// A function traced for one signature: a graph that can be looked at and called. Cheap to copy.
class RUNNEL_API ConcreteFunction {
 public:
  ConcreteFunction() = default;
  ConcreteFunction(GraphFunctionPtr function, size_t num_parameters)
      : function_(std::move(function)), num_parameters_(num_parameters) {}

  const std::string& name() const;
  const Graph& graph() const;  // runnel/graph/graph.h
  const GraphFunctionPtr& function() const { return function_; }
  std::vector<TensorSpec> inputs() const;  // parameters, without what was captured
  std::vector<TensorSpec> outputs() const;
  // Values from outside that the function uses, variables' handles included: the last inputs of the graph.
  const std::vector<Tensor>& captured_inputs() const;
  std::vector<Variable> captured_variables() const;
  std::vector<Variable> trainable_variables() const;
  size_t num_parameters() const { return num_parameters_; }
  size_t num_outputs() const;
  std::string to_text() const;

  // The tensors of the arguments, in order.
  std::vector<Tensor> operator()(const std::vector<Tensor>& parameters) const;

 private:
  const GraphFunction& made() const;  // an Error where there is none

  GraphFunctionPtr function_;
  size_t num_parameters_ = 0;
};

}  // namespace runnel
