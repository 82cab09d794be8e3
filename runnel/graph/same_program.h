#pragma once

#include "runnel/graph/tracer.h"

namespace runnel {

// Two traces of one piece of code: the first node of `b` that `a` has not at its place (another op, other inputs,
// attributes or constants, another captured tensor), or null where they are the same. Names do not count. A node that
// `b` lacks is given as that of `a`.
RUNNEL_API const Node* first_difference(const Tracer& a, const Tracer& b);

}  // namespace runnel
