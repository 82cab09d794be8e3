#pragma once

#include "runnel/graph/graph.h"

namespace runnel {

// What a call of an op says of the elements of its integer outputs when only some elements of its inputs are known:
// the sizes that stack({shape(x)[0], 4}) spells out for an x of shape [?,3] are [?,4]. Goes into node.elements.
// Ops that compute element by element or only move elements are run on what is known.
void find_elements(const OpDef& op, Inputs inputs, const void* attrs, Node& node);

}  // namespace runnel
