#pragma once

namespace runnel::pb {
class GraphDef;
}

namespace runnel {

// Graphs of TensorFlow 1 may have variables that are references (VariableV2, Assign, ApplyAdam, ...). Makes them those
// of resources that everything else here has: a handle in place of the variable, a read wherever its value is used, the
// op on resources in place of the one on references.
void use_resource_variables(pb::GraphDef& def);

}  // namespace runnel
