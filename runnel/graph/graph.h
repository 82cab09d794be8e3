#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/source_site.h"
#include "runnel/graph/plan_options.h"
#include "runnel/op/op_def.h"

namespace runnel {

class Graph;
class ResourceSpace;  // ops/named_resources.h
struct Node;

// One output of a node.
struct NodeOutput {
  Node* node = nullptr;
  int index = 0;
  friend bool operator==(const NodeOutput& a, const NodeOutput& b) = default;
};

// One call of an op: the only kind of thing a graph is made of. Parameters are nodes of op "_Arg", constants "Const".
struct Node {
  int id = 0;        // its place in Graph::nodes()
  std::string name;  // unique in the graph
  const OpDef* op = nullptr;
  SharedAttrs attrs;
  std::vector<NodeOutput> inputs;
  std::vector<Node*> control_inputs;  // run before this one though no value says so
  // Of the outputs, as far as they are known before the graph runs:
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  std::vector<Tensor> values;  // undefined where not known
  // Integer scalars and vectors of which only some elements are known: kUnknownDim for the others. Empty where none is.
  std::vector<Dims> elements;
  // Every shape is known and no value that the shape function wanted was missing: it need not run again.
  bool inferred = false;
  SourceSite where;

  int num_outputs() const { return static_cast<int>(dtypes.size()); }
  bool is(std::string_view op_name) const { return op->name == op_name; }
  DType dtype(int i = 0) const { return dtypes[static_cast<size_t>(i)]; }
  const PartialShape& shape(int i = 0) const { return shapes[static_cast<size_t>(i)]; }
  template <class A>
  const A& attrs_as() const {
    return *static_cast<const A*>(attrs.get());
  }
};

// Does its kernel hand on a buffer instead of writing to one (OpDef::forwards)? A Cast does so only to the same dtype.
inline bool hands_on(const Node& node) {
  if (!node.op->forwards || !node.op->elementwise) return node.op->forwards;
  const NodeOutput& in = node.inputs[0];
  return in.node->dtype(in.index) == node.dtype();
}

// Nodes in an order in which each comes after what it needs. Built by a Tracer; passes change it.
class RUNNEL_API Graph : public std::enable_shared_from_this<Graph> {
 public:
  explicit Graph(std::string name) : name_(std::move(name)) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const std::string& name() const { return name_; }
  const std::deque<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  // Parameters first, captured values after them: nodes of op "_Arg".
  const std::vector<Node*>& inputs() const { return inputs_; }
  const std::vector<NodeOutput>& outputs() const { return outputs_; }
  void set_outputs(std::vector<NodeOutput> outputs) { outputs_ = std::move(outputs); }

  // Adds a node whose outputs are described by the caller. It is called `wish`, or like its op, as far as that is free.
  Node* add(const OpDef& op, std::vector<NodeOutput> inputs, SharedAttrs attrs, std::vector<DType> dtypes,
            std::vector<PartialShape> shapes, const SourceSite& where, const std::string& wish = "");
  Node* add_input(DType dtype, const PartialShape& shape, const std::string& name = "");
  Node* add_constant(const Tensor& value, const SourceSite& where);
  // Takes the last node away, which nobody uses.
  std::unique_ptr<Node> pop_back();
  // Puts the inputs into another order; all of them are given.
  void order_inputs(std::vector<Node*> inputs);
  std::string unique_name(const std::string& wish);
  std::string free_name(const std::string& wish) const;  // what unique_name would give

  // Another graph with the same nodes; `map` gets the copy of each node where asked for.
  std::shared_ptr<Graph> clone(std::map<const Node*, Node*>* map = nullptr) const;
  // Drops the nodes for which `keep` is false (by id) and numbers the rest anew. Handles to dropped nodes stay valid.
  void retain(const std::vector<bool>& keep);
  // Moves the nodes into an order in which each comes after what it needs; an Error where there is a cycle.
  void sort();
  // Another order of all nodes, in which each comes after what it needs.
  void reorder(const std::vector<Node*>& order);

  PlanOptions plan_options;

  // Functions that nodes refer to weakly.
  std::vector<std::shared_ptr<const FunctionBody>> keep;
  // Of a graph that was read: where its nodes find what they name.
  std::shared_ptr<const ResourceSpace> resources;

  // Does running it do more than compute its outputs?
  bool is_stateful() const;
  bool has_stateful_ops() const;  // also those that only read
  // Throws Error (internal) naming the first rule that is broken: order, indices, dtypes, unique names.
  void verify() const;

  std::string to_text() const;
  std::string to_dot() const;
  // The bytes of TensorFlow's GraphDef, the functions that nodes call in its library. Parameters become Placeholder
  // nodes (captured variables of dtype resource), results Identity nodes at the end. from_graph_def reads it back.
  std::string to_graph_def() const;
  // The same to be looked at: with what is known of shapes (`_output_shapes`), and also ops of this library that
  // TensorFlow does not have. `as_it_runs`: those that passes made are not taken apart either.
  std::string to_shown_graph_def(bool as_it_runs = false) const;

 private:
  std::string name_;
  std::deque<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Node>> dropped_;
  std::vector<Node*> inputs_;
  std::vector<NodeOutput> outputs_;
  std::map<std::string, int, std::less<>> names_;
};

// Drops the nodes that neither outputs nor side effects need; true when there were some.
RUNNEL_API bool prune(Graph& graph);

// Must the node run although nobody uses its outputs?
RUNNEL_API bool has_side_effect(const Node& node);
// The functions among the node's attributes.
RUNNEL_API std::vector<FuncAttr> functions_of(const Node& node);

struct ArgAttrs {
  DType T = DType::invalid;
  int64_t index = 0;
  static constexpr auto fields() {
    return field_list(field("T", &ArgAttrs::T), field("index", &ArgAttrs::index, {.required = true, .minimum = 0}));
  }
};
struct ConstAttrs {
  DType dtype = DType::invalid;
  Tensor value;
  static constexpr auto fields() {
    return field_list(field("dtype", &ConstAttrs::dtype), field("value", &ConstAttrs::value));
  }
};

}  // namespace runnel
