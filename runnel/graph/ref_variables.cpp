#include "runnel/graph/ref_variables.h"

#include <runnel_pb/graph.pb.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/op/registry.h"

namespace runnel {
namespace {

// What an output refers to, and the update that must have happened before it is used.
struct Reference {
  std::string variable;
  std::string after;
};

bool makes_variable(const std::string& op) { return op == "VariableV2" || op == "Variable"; }

// The op on resources that does what an op on references does; null for other ops.
const OpDef* resource_op(const std::string& op) {
  static const std::map<std::string, std::string> renamed{{"Assign", "AssignVariableOp"},
                                                          {"AssignAdd", "AssignAddVariableOp"},
                                                          {"AssignSub", "AssignSubVariableOp"},
                                                          {"IsVariableInitialized", "VarIsInitializedOp"}};
  if (const auto it = renamed.find(op); it != renamed.end()) return registry().find(it->second);
  for (const char* family : {"Apply", "SparseApply", "Scatter"}) {
    if (op.starts_with(family)) return registry().find("Resource" + op);
  }
  return nullptr;
}

std::string node_of(const std::string& input) { return input.substr(0, input.find(':')); }
bool is_control(const std::string& input) { return input.starts_with('^'); }

class RefRewriter {
 public:
  explicit RefRewriter(pb::GraphDef& def) : def_(def) {}

  void run() {
    find_references();
    if (refs_.empty()) return;
    for (const pb::NodeDef& node : def_.node()) names_.insert(node.name());
    std::vector<pb::NodeDef> all;
    for (pb::NodeDef& node : *def_.mutable_node()) {
      rewrite(node, all);
      all.push_back(node);
    }
    def_.clear_node();
    for (pb::NodeDef& node : all) *def_.add_node() = std::move(node);
  }

 private:
  void find_references() {
    for (const pb::NodeDef& node : def_.node()) {
      if (!makes_variable(node.op())) continue;
      if (!node.attr().contains("dtype")) {
        throw invalid_argument("[from_graph_def] node '{}' ({}) says nothing of attribute 'dtype'", node.name(),
                               node.op());
      }
      refs_[node.name()] = {node.name(), ""};
      variables_[node.name()] = &node;
    }
    // Updates hand on the reference that they get; one may get it of another.
    for (bool more = !refs_.empty(); more;) {
      more = false;
      for (const pb::NodeDef& node : def_.node()) {
        if (refs_.contains(node.name()) || node.input_size() == 0 || node.op() == "IsVariableInitialized") continue;
        if (!resource_op(node.op()) || !refs_.contains(node_of(node.input(0)))) continue;
        refs_[node.name()] = {refs_[node_of(node.input(0))].variable, node.name()};
        more = true;
      }
    }
  }

  void rewrite(pb::NodeDef& node, std::vector<pb::NodeDef>& all) {
    if (makes_variable(node.op())) {
      node.set_op("VarHandleOp");
      std::string& shared = *(*node.mutable_attr())["shared_name"].mutable_s();
      if (shared.empty()) shared = node.name();
      return;
    }
    const OpDef* op = resource_op(node.op());
    const bool update = op && node.input_size() > 0 && refs_.contains(node_of(node.input(0)));
    std::set<std::string> controls;
    for (int i = 0; i < node.input_size(); ++i) {
      const std::string input = node.input(i);
      const auto ref = refs_.find(node_of(input));
      if (is_control(input) || ref == refs_.end()) continue;
      const bool wants_handle = update && static_cast<size_t>(i) < op->inputs.size() &&
                                op->inputs[static_cast<size_t>(i)].dtype == DType::resource;
      if (wants_handle) {
        node.set_input(i, ref->second.variable);
        if (!ref->second.after.empty()) controls.insert("^" + ref->second.after);
      } else {
        node.set_input(i, read(node, ref->second, all));
      }
    }
    for (const std::string& control : controls) node.add_input(control);
    if (!update) return;
    node.set_op(op->name);
    if (const auto type = node.attr().find("T"); type != node.attr().end()) {
      const pb::AttrValue dtype = type->second;
      (*node.mutable_attr())["dtype"] = dtype;
    }
  }

  std::string unique(std::string name) {
    for (int i = 1; !names_.insert(name).second; ++i) name += fmt::format("_{}", i);
    return name;
  }

  // A read of the variable when `user` may run, in the shape that the variable says it has.
  std::string read(const pb::NodeDef& user, const Reference& ref, std::vector<pb::NodeDef>& all) {
    const pb::NodeDef& variable = *variables_.at(ref.variable);
    pb::NodeDef node;
    node.set_name(unique(user.name() + "/" + ref.variable + "/ReadVariableOp"));
    node.set_op("ReadVariableOp");
    node.add_input(ref.variable);
    for (const std::string& input : user.input()) {
      if (is_control(input)) node.add_input(input);
    }
    if (!ref.after.empty()) node.add_input("^" + ref.after);
    (*node.mutable_attr())["dtype"] = variable.attr().at("dtype");
    all.push_back(node);
    const auto shape = variable.attr().find("shape");
    if (shape == variable.attr().end() || shape->second.shape().unknown_rank()) return node.name();
    pb::NodeDef shaped;
    shaped.set_name(unique(user.name() + "/" + ref.variable + "/EnsureShape"));
    shaped.set_op("EnsureShape");
    shaped.add_input(node.name());
    (*shaped.mutable_attr())["T"] = variable.attr().at("dtype");
    (*shaped.mutable_attr())["shape"] = shape->second;
    all.push_back(shaped);
    return shaped.name();
  }

  pb::GraphDef& def_;
  std::map<std::string, Reference> refs_;
  std::map<std::string, const pb::NodeDef*> variables_;
  std::set<std::string> names_;
};

}  // namespace

void use_resource_variables(pb::GraphDef& def) { RefRewriter(def).run(); }

}  // namespace runnel
