#include "runnel/graph/passes/pass.h"

#include "runnel/base/format.h"
#include "runnel/base/profile_scope.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/registry.h"
#include "runnel/tensor/profile_step.h"

namespace runnel {
namespace {

constexpr int kMostRounds = 8;

template <class Check>
void run_all(Graph& graph, const Check& check) {
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    for (const Pass& pass : all_passes()) {
      if (!pass.run || !(graph.plan_options.*pass.enabled)) continue;
      {
        profile::Span span(profile::Kind::pass, pass.name, profile::current_step());
        if (span) span.set_detail(graph.name());
        changed = pass.run(graph) || changed;
      }
      check();
    }
    if (!changed) return;
  }
}

}  // namespace

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes{
      {"constant_folding", &PlanOptions::constant_folding, true, fold_constants},
      {"algebra", &PlanOptions::algebra, true, simplify_algebra},
      {"common_subexpressions", &PlanOptions::common_subexpressions, true, merge_common_subexpressions},
      {"dead_code", &PlanOptions::dead_code, true, prune},
      {"fused_activations", &PlanOptions::fused_activations, true, fuse_activations},
      {"weight_packing", &PlanOptions::weight_packing, true, pack_weights},
      {"fused_updates", &PlanOptions::fused_updates, true, fuse_updates},
      {"early_updates", &PlanOptions::early_updates, true, hoist_updates},
      {"parallel_branches", &PlanOptions::parallel_branches, true, nullptr},
      {"elementwise_blocks", &PlanOptions::elementwise_blocks, true, nullptr},
      {"compiled_chains", &PlanOptions::compiled_chains, true, nullptr},
      {"memory_plan", &PlanOptions::memory_plan, true, nullptr},
      {"in_place", &PlanOptions::in_place, true, nullptr}};
  return passes;
}

void optimize(Graph& graph) {
  run_all(graph, [] {});
}
void optimize_and_verify(Graph& graph) {
  run_all(graph, [&] { graph.verify(); });
}

NodeView::NodeView(Graph& graph, const Node& node)
    : tensors_([&] {
        std::vector<Tensor> in;
        for (const NodeOutput& v : node.inputs) in.push_back(symbolic(graph.shared_from_this(), v));
        return in;
      }()),
      inputs_([&] {
        std::vector<const Tensor*> in;
        for (const Tensor& t : tensors_) in.push_back(&t);
        return in;
      }()),
      context_(*node.op, inputs_, node.attrs.get(), node.num_outputs()) {
  for (int i = 0; i < node.num_outputs(); ++i) context_.output(i, node.shape(i));
}

Uses::Uses(const Graph& graph) : entries_(static_cast<size_t>(graph.num_nodes())) {
  const auto note = [&](const Node* used, Node* user) {
    Entry& e = entries_[static_cast<size_t>(used->id)];
    ++e.count;
    e.user = user;
  };
  for (const auto& node : graph.nodes()) {
    for (const NodeOutput& in : node->inputs) note(in.node, node.get());
    for (const Node* in : node->control_inputs) note(in, nullptr);
  }
  for (const NodeOutput& out : graph.outputs()) note(out.node, nullptr);
}

Node* Uses::only(const Node& node) const {
  const Entry& e = entries_[static_cast<size_t>(node.id)];
  return e.count == 1 && e.user && e.user->inputs[0].node == &node ? e.user : nullptr;
}

void make_constant(Node& node, const Tensor& value) {
  static const OpDef& op = registry().get("Const");
  auto attrs = std::make_shared<ConstAttrs>();
  attrs->dtype = value.dtype();
  attrs->value = value;
  node.op = &op;
  node.attrs = std::move(attrs);
  node.inputs.clear();
  node.shapes = {value.shape()};
  node.values = {value};
  node.inferred = true;
}

}  // namespace runnel
