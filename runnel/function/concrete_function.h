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

  const std::string& name(SourceSite where = SourceSite::current()) const;
  const Graph& graph(SourceSite where = SourceSite::current()) const;  // runnel/graph/graph.h
  const GraphFunctionPtr& function() const { return function_; }
  std::vector<TensorSpec> inputs(
      SourceSite where = SourceSite::current()) const;  // parameters, without what was captured
  std::vector<TensorSpec> outputs(SourceSite where = SourceSite::current()) const;
  // Values from outside that the function uses, variables' handles included: the last inputs of the graph.
  const std::vector<Tensor>& captured_inputs(SourceSite where = SourceSite::current()) const;
  std::vector<Variable> captured_variables(SourceSite where = SourceSite::current()) const;
  std::vector<Variable> trainable_variables(SourceSite where = SourceSite::current()) const;
  size_t num_parameters() const { return num_parameters_; }
  size_t num_outputs(SourceSite where = SourceSite::current()) const;
  std::string to_text(SourceSite where = SourceSite::current()) const;

  // The tensors of the arguments, in order.
  std::vector<Tensor> operator()(const std::vector<Tensor>& parameters, SourceSite where = SourceSite::current()) const;

 private:
  const GraphFunction& made(const SourceSite& where) const;  // an Error where there is none

  GraphFunctionPtr function_;
  size_t num_parameters_ = 0;
};

}  // namespace runnel
