#include "runnel/graph/graph.h"

#include <set>

#include "runnel/base/format.h"
#include "runnel/graph/graph_function.h"
#include "runnel/op/registry.h"

namespace runnel {
namespace {

std::string lower_case(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

}  // namespace

// As in TensorFlow, names that differ in nothing but their case are taken for one: "mean" beside "Mean" is "mean_1".
std::string Graph::unique_name(const std::string& wish) {
  const std::string key = lower_case(wish);
  auto [it, fresh] = names_.try_emplace(key, 0);
  if (fresh) return wish;
  for (;;) {
    const int number = ++it->second;
    if (names_.try_emplace(fmt::format("{}_{}", key, number), 0).second) return fmt::format("{}_{}", wish, number);
  }
}

std::string Graph::free_name(const std::string& wish) const {
  const std::string key = lower_case(wish);
  const auto taken = names_.find(key);
  if (taken == names_.end()) return wish;
  for (int n = taken->second + 1;; ++n) {
    if (!names_.contains(fmt::format("{}_{}", key, n))) return fmt::format("{}_{}", wish, n);
  }
}

Node* Graph::add(const OpDef& op, std::vector<NodeOutput> inputs, SharedAttrs attrs, std::vector<DType> dtypes,
                 std::vector<PartialShape> shapes, const SourceSite& where, const std::string& wish) {
  auto node = std::make_unique<Node>();
  node->id = num_nodes();
  const std::string& name = wish.empty() ? op.name : wish;
  node->name = unique_name(name.starts_with('_') ? name.substr(1) : name);  // as names may begin in TensorFlow
  node->op = &op;
  node->attrs = std::move(attrs);
  node->inputs = std::move(inputs);
  node->values.resize(dtypes.size());
  node->dtypes = std::move(dtypes);
  node->shapes = std::move(shapes);
  node->where = where;
  nodes_.push_back(std::move(node));
  return nodes_.back().get();
}

Node* Graph::add_input(DType dtype, const PartialShape& shape, const std::string& name) {
  static const OpDef& op = registry().get("_Arg");
  auto attrs = std::make_shared<ArgAttrs>();
  attrs->T = dtype;
  attrs->index = static_cast<int64_t>(inputs_.size());
  Node* node = add(op, {}, std::move(attrs), {dtype}, {shape}, {}, name.empty() ? "unknown" : name);
  inputs_.push_back(node);
  return node;
}

std::unique_ptr<Node> Graph::pop_back() {
  std::unique_ptr<Node> last = std::move(nodes_.back());
  nodes_.pop_back();
  return last;
}

void Graph::order_inputs(std::vector<Node*> inputs) {
  inputs_ = std::move(inputs);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    auto attrs = std::make_shared<ArgAttrs>(inputs_[i]->attrs_as<ArgAttrs>());
    attrs->index = static_cast<int64_t>(i);
    inputs_[i]->attrs = std::move(attrs);
  }
}

Node* Graph::add_constant(const Tensor& value, const SourceSite& where) {
  static const OpDef& op = registry().get("Const");
  auto attrs = std::make_shared<ConstAttrs>();
  attrs->dtype = value.dtype();
  attrs->value = value;
  Node* node = add(op, {}, std::move(attrs), {value.dtype()}, {value.shape()}, where);
  node->values[0] = value;
  return node;
}

std::shared_ptr<Graph> Graph::clone(std::map<const Node*, Node*>* map) const {
  auto copy = std::make_shared<Graph>(name_);
  copy->names_ = names_;
  copy->keep = keep;
  copy->resources = resources;
  copy->plan_options = plan_options;
  for (const auto& node : nodes_) {
    copy->nodes_.push_back(std::make_unique<Node>(*node));
    if (map) (*map)[node.get()] = copy->nodes_.back().get();
  }
  // Once all are there: in a graph that is not sorted a node may stand before what it needs.
  const auto twin_of = [&](const Node* node) { return copy->nodes_[static_cast<size_t>(node->id)].get(); };
  for (auto& twin : copy->nodes_) {
    for (NodeOutput& in : twin->inputs) in.node = twin_of(in.node);
    for (Node*& in : twin->control_inputs) in = twin_of(in);
  }
  for (const Node* n : inputs_) copy->inputs_.push_back(twin_of(n));
  for (const NodeOutput& o : outputs_) copy->outputs_.push_back({twin_of(o.node), o.index});
  return copy;
}

void Graph::retain(const std::vector<bool>& keep) {
  std::deque<std::unique_ptr<Node>> rest;
  for (auto& node : nodes_) {
    if (keep[static_cast<size_t>(node->id)]) {
      rest.push_back(std::move(node));
    } else {
      dropped_.push_back(std::move(node));
    }
  }
  // Nobody kept depends on a dropped node by value; edges of order alone are dropped with it.
  std::set<const Node*> alive;
  for (auto& node : rest) alive.insert(node.get());
  nodes_ = std::move(rest);
  int id = 0;
  for (auto& node : nodes_) {
    node->id = id++;
    std::erase_if(node->control_inputs, [&](const Node* n) { return !alive.contains(n); });
  }
}

void Graph::sort() {
  std::deque<std::unique_ptr<Node>> sorted;
  std::vector<uint8_t> state(nodes_.size(), 0);  // 1: being visited, 2: placed
  std::vector<std::pair<Node*, size_t>> stack;
  for (auto& start : nodes_) {
    if (start && state[static_cast<size_t>(start->id)] == 0) stack.emplace_back(start.get(), 0);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      uint8_t& mark = state[static_cast<size_t>(node->id)];
      mark = std::max<uint8_t>(mark, 1);
      const size_t edges = node->inputs.size() + node->control_inputs.size();
      if (next == edges) {
        if (mark == 1) {
          mark = 2;
          sorted.push_back(std::move(nodes_[static_cast<size_t>(node->id)]));
        }
        stack.pop_back();
        continue;
      }
      Node* need =
          next < node->inputs.size() ? node->inputs[next].node : node->control_inputs[next - node->inputs.size()];
      ++next;
      const uint8_t other = state[static_cast<size_t>(need->id)];
      if (other == 1) throw make_error(Code::internal, "graph {}: a cycle through '{}'", name_, need->name);
      if (other == 0) stack.emplace_back(need, 0);
    }
  }
  nodes_ = std::move(sorted);
  int id = 0;
  for (auto& node : nodes_) node->id = id++;
}

void Graph::reorder(const std::vector<Node*>& order) {
  std::deque<std::unique_ptr<Node>> moved;
  for (const Node* node : order) moved.push_back(std::move(nodes_[static_cast<size_t>(node->id)]));
  nodes_ = std::move(moved);
  int id = 0;
  for (auto& node : nodes_) node->id = id++;
}

bool prune(Graph& graph) {
  const auto& nodes = graph.nodes();
  std::vector<bool> needed(nodes.size(), false);
  for (const Node* n : graph.inputs()) needed[static_cast<size_t>(n->id)] = true;
  for (const NodeOutput& out : graph.outputs()) needed[static_cast<size_t>(out.node->id)] = true;
  bool all = true;
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!needed[i]) needed[i] = has_side_effect(*nodes[i]);
    if (!needed[i]) {
      all = false;
      continue;
    }
    for (const NodeOutput& in : nodes[i]->inputs) needed[static_cast<size_t>(in.node->id)] = true;
  }
  if (!all) graph.retain(needed);
  return !all;
}

bool has_side_effect(const Node& node) {
  if (!node.op->stateful) return false;
  const std::vector<FuncAttr> functions = functions_of(node);
  if (functions.empty()) return !node.op->reads_variable;
  for (const FuncAttr& f : functions) {
    if (has_side_effects(f)) return true;
  }
  return false;
}

bool Graph::is_stateful() const {
  for (const auto& node : nodes_) {
    if (has_side_effect(*node)) return true;
  }
  return false;
}

bool Graph::has_stateful_ops() const {
  for (const auto& node : nodes_) {
    if (node->op->stateful) return true;
  }
  return false;
}

std::vector<FuncAttr> functions_of(const Node& node) {
  std::vector<FuncAttr> all;
  for (const AttrSpec& spec : node.op->attrs.specs) {
    if (std::holds_alternative<FuncAttr>(spec.default_value)) {
      FuncAttr f = std::get<FuncAttr>(spec.get(node.attrs.get()));
      if (f.body) all.push_back(std::move(f));
    } else if (std::holds_alternative<std::vector<FuncAttr>>(spec.default_value)) {
      const AttrValue value = spec.get(node.attrs.get());
      for (const FuncAttr& f : std::get<std::vector<FuncAttr>>(value)) all.push_back(f);
    }
  }
  return all;
}

void Graph::verify() const {
  auto fail = [&](const Node* node, const std::string& what) {
    throw make_error(Code::internal, "graph {}: {}: {}", name_, node ? node->name : "outputs", what);
  };
  std::set<std::string> names;
  int id = 0;
  for (const auto& node : nodes_) {
    if (node->id != id++) fail(node.get(), fmt::format("its id {} is not its place {}", node->id, id - 1));
    if (!names.insert(node->name).second) fail(node.get(), "its name is taken");
    const auto check = [&](const Node* from, int index) {
      if (from->id < 0 || from->id >= num_nodes() || nodes_[static_cast<size_t>(from->id)].get() != from) {
        fail(node.get(), "an input is of no node of this graph");
      }
      if (from->id >= node->id) fail(node.get(), fmt::format("'{}' stands after it", from->name));
      if (index < 0 || index >= from->num_outputs()) {
        fail(node.get(), fmt::format("'{}' has no output {}", from->name, index));
      }
    };
    for (const NodeOutput& in : node->inputs) check(in.node, in.index);
    for (const Node* in : node->control_inputs) {
      if (in->id >= node->id) fail(node.get(), fmt::format("'{}', which it waits for, stands after it", in->name));
    }
    if (node->shapes.size() != node->dtypes.size() || node->values.size() != node->dtypes.size()) {
      fail(node.get(), "dtypes, shapes and values differ in number");
    }
    if (node->num_outputs() != node->op->num_outputs(node->attrs.get())) fail(node.get(), "wrong number of outputs");
    if (!node->op->has_list_input && node->inputs.size() != node->op->inputs.size()) {
      fail(node.get(), "wrong number of inputs");
    }
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i]->is("_Arg") || inputs_[i]->attrs_as<ArgAttrs>().index != static_cast<int64_t>(i)) {
      fail(inputs_[i], "is no parameter, or of another number");
    }
  }
  for (const NodeOutput& out : outputs_) {
    if (!out.node || out.node->id >= num_nodes() || nodes_[static_cast<size_t>(out.node->id)].get() != out.node ||
        out.index >= out.node->num_outputs()) {
      fail(nullptr, "an output is of no node of this graph");
    }
  }
}

}  // namespace runnel
