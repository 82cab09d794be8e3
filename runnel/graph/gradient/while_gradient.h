#pragma once

#include "runnel/graph/control_flow_nodes.h"
#include "runnel/op/gradient.h"

namespace runnel {

Gradients while_gradient(const GradCtx& g, const WhileAttrs& then);

}  // namespace runnel
