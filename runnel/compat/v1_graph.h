#pragma once

// Internal: what a v1 graph holds.
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runnel/compat/v1.h"
#include "runnel/graph/graph.h"
#include "runnel/graph/tracer.h"
#include "runnel/io/checkpoint_slice.h"

namespace runnel::compat::v1 {

// A tracer that leaves the order of effects to control_dependencies and updates.
class GraphTracer : public Tracer {
 public:
  GraphTracer() : Tracer("v1") {}
  void call(const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs, int num_outputs,
            const SourceSite& where) override;
  std::vector<std::vector<Node*>> dependencies;  // of the open scopes of control_dependencies
  std::optional<int> ordered_from;               // inside updates(): the first node whose effects are kept in order
};

class GraphState : public std::enable_shared_from_this<GraphState> {
 public:
  struct Declared {
    Variable variable;
    Operation initializer;
    Tensor read;
  };

  struct OpenVariableScope {
    std::string prefix;  // with those around it and a slash at the end
    bool reuse;
  };

  // What a variable is a part of.
  struct PartOf {
    std::string name;
    Shape shape;
    io::CheckpointSlice slice;
  };

  GraphTracer tracer;
  std::vector<Declared> variables;
  std::map<const VariableSlot*, PartOf> parts;  // of partitioned variables
  std::vector<OpenVariableScope> variable_scopes;
  std::map<std::string, std::vector<Tensor>> collections;
  std::mutex mutex;  // of the graph and `variables` while sessions run, on several threads

  const std::shared_ptr<runnel::Graph>& graph() const { return tracer.graph(); }
  Operation operation(Node* node) const { return Operation(graph(), node); }
  Operation last() const { return operation(graph()->nodes().back().get()); }
  // Gives the newest node a name, unless it is taken.
  void name_last(const std::string& wish) { name(*graph()->nodes().back(), wish); }
  void name(Node& node, const std::string& wish) { node.name = graph()->unique_name(wish); }
  // The value that is fetched; an output of -1 for a node without one.
  NodeOutput fetched(const Fetch& fetch);
  NodeOutput output_of(const Tensor& tensor) const;  // an Error when the tensor is not of this graph
  const Declared& declared(const Variable& variable);
  // Makes it a variable of the graph, with nodes that assign its initial value and read it.
  void declare(const Variable& variable, const Tensor& initial_value);
  // Another initial value than it was declared with.
  void set_initial_value(const Variable& variable, const Tensor& value);
  // Variables that were made elsewhere (weights of Keras layers) belong to the graph once it uses them: their
  // initializer assigns the value they have now.
  void declare_captured();
};

// Do ops of this thread go into the body of a branch, a loop or a function of the graph?
bool is_inside_block(const GraphState& state);
// The graph that ops of this thread go into; an Error naming the caller when they run eagerly.
GraphState& current_state(const char* caller);
// The same for what adds operations to the graph itself: an Error in the body of a branch, a loop or a function too.
GraphState& building_state(const char* caller);

}  // namespace runnel::compat::v1
