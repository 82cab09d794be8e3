#include "runnel/graph/passes/pass.h"

#include <mutex>
#include <set>

#include "runnel/base/format.h"
#include "runnel/op/registry.h"

namespace runnel {
namespace {

struct Switches {
  std::mutex mutex;
  std::set<std::string> off;
};
Switches& switches() {
  static Switches s;
  return s;
}

constexpr int kMostRounds = 8;

template <class Check>
void run_all(Graph& graph, const Check& check) {
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    for (const Pass& pass : all_passes()) {
      if (!pass.run || !pass_is_enabled(pass.name)) continue;
      changed = pass.run(graph) || changed;
      check();
    }
    if (!changed) return;
  }
}

}  // namespace

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes{{"constant_folding", true, fold_constants},
                                        {"algebra", true, simplify_algebra},
                                        {"common_subexpressions", true, merge_common_subexpressions},
                                        {"dead_code", true, prune},
                                        {"elementwise_blocks", true, nullptr}};
  return passes;
}

void enable_pass(const std::string& name, bool enabled) {
  bool known = false;
  for (const Pass& p : all_passes()) known = known || p.name == name;
  if (!known) throw make_error(Code::not_found, "no pass is called '{}'", name);
  const std::lock_guard lock(switches().mutex);
  if (enabled) {
    switches().off.erase(name);
  } else {
    switches().off.insert(name);
  }
}

bool pass_is_enabled(const std::string& name) {
  const std::lock_guard lock(switches().mutex);
  return !switches().off.contains(name);
}

void optimize(Graph& graph) {
  run_all(graph, [] {});
}
void optimize_and_verify(Graph& graph) {
  run_all(graph, [&] { graph.verify(); });
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
