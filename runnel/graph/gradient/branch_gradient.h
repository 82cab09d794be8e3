#pragma once

#include <memory>
#include <vector>

#include "runnel/graph/control_flow_nodes.h"
#include "runnel/op/gradient.h"

namespace runnel {

// Why a branch, loop or call whose results are values has no derivative of its own.
inline constexpr const char* kSymbolicOnly =
    "its derivative is made from the graph it is part of, and there is none here: call it inside a runnel::function";

// A node that calls functions, as a tape recorded it.
struct CalledNode {
  std::shared_ptr<Graph> graph;
  Node* node = nullptr;
  Tensors inputs;
  size_t first = 0;  // of the inputs that the functions get; a selector stands before

  Tensors arguments() const { return {inputs.begin() + static_cast<ptrdiff_t>(first), inputs.end()}; }
};
// The gradients of a node's inputs, given those of its outputs (all that it has by now).
using SiteGradientFn = Gradients (*)(const CalledNode& site, const Tensors& outputs, const std::vector<Gradient>& dy,
                                     const std::vector<bool>& needed);
// Gives the node outputs that the gradient needs, and tells tapes that knew it without them how they come about.
Tensors widened_outputs(const CalledNode& site, const Tensors& known, SiteGradientFn gradient);

// Of If and Case.
Gradients branch_gradient(const GradCtx& g);
// Of calls.
Gradients call_gradient(const GradCtx& g);
// Of calls of a function by itself.
Gradients self_call_gradient(const CalledNode& site, const Tensors& known, const std::vector<Gradient>& dy,
                             const std::vector<bool>& needed);

}  // namespace runnel
