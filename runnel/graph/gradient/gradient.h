#pragma once

#include <memory>
#include <vector>

#include "runnel/autodiff/record.h"
#include "runnel/graph/graph.h"
#include "runnel/graph/graph_function.h"

namespace runnel {

// Can a result of this dtype have a gradient? (A variable's handle as an input has one, that of its value.)
inline bool has_gradient(DType t) { return is_differentiable(t) && t != DType::resource; }

// The graph that computes the gradients of the inputs of `forward` from those of its outputs.
struct BackwardGraph {
  std::shared_ptr<Graph> graph;
  std::vector<int> dy_of;
  std::vector<Tensor> captures;  // what the inputs after the gradients stand for: tensors of `forward`, or values
  std::vector<Derivative::Kind> result;
};

// `outputs` are values of `forward`; `has_dy` says which of them have gradients, `needed` which inputs want them.
RUNNEL_API BackwardGraph build_backward(const std::shared_ptr<Graph>& forward, const std::vector<NodeOutput>& outputs,
                                        const std::vector<bool>& has_dy, const std::vector<bool>& needed);

}  // namespace runnel
