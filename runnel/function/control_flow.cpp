#include "runnel/function/control_flow.h"

#include "runnel/base/format.h"
#include "runnel/graph/control_flow_nodes.h"
#include "runnel/op/composed.h"

namespace runnel::function_detail {

void require_callable(const char* what, size_t k, bool callable, const SourceSite& where) {
  if (!callable) throw invalid_argument("[{}] branch {} is an empty std::function{}", what, k, where.at());
}

bool holds(const char* what, const Tensor& condition, const SourceSite& where) {
  return composed(where, [&] {
    require_single(what, condition.partial_shape(), {});
    return static_cast<bool>(condition);
  });
}

void require_branches(size_t count, const SourceSite& where) {
  if (count == 0) throw invalid_argument("[switch_case] there are no branches to choose from{}", where.at());
}

int64_t leading_dim(const Tensor& t) {
  if (t.rank() == 0) throw invalid_argument("[map_fn] a scalar has no elements to go through");
  return t.shape()[0];
}

Described describe_result(const BranchFn& f) {
  const Body body = trace_branch("probe", f);
  Described d;
  for (const Tensor& t : body.outputs) {
    d.dtypes.push_back(t.dtype());
    d.shapes.push_back(t.partial_shape());
  }
  return d;
}

}  // namespace runnel::function_detail

namespace runnel {

Tensor case_(const std::vector<Case>& cases, const std::function<Tensor()>& otherwise, SourceSite where) {
  using namespace function_detail;
  for (size_t k = 0; k < cases.size(); ++k) require_callable("case_", k, can_be_called(cases[k].branch), where);
  if (!otherwise) throw invalid_argument("[case_] `otherwise` is an empty std::function{}", where.at());
  std::function<Tensor()> chosen = otherwise;
  for (auto c = cases.rbegin(); c != cases.rend(); ++c) {
    chosen = [&each = *c, rest = std::move(chosen), where] {
      return choose("case_", Operand(each.condition, where), each.branch, rest);
    };
  }
  return chosen();
}

}  // namespace runnel
