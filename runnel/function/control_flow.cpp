#include "runnel/function/control_flow.h"

#include "runnel/base/format.h"

namespace runnel::function_detail {

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
  std::function<Tensor()> chosen = otherwise;
  for (auto c = cases.rbegin(); c != cases.rend(); ++c) {
    chosen = [&each = *c, rest = std::move(chosen), where] {
      return cond(Operand(each.condition, where), each.branch, rest);
    };
  }
  return chosen();
}

}  // namespace runnel
