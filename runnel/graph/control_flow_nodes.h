#pragma once

// Internal: how branches and loops are put into graphs, and the attributes of their nodes.
#include <memory>
#include <string>
#include <vector>

#include "runnel/graph/control_flow.h"
#include "runnel/graph/graph_function.h"
#include "runnel/graph/tracer.h"

namespace runnel {

// A body with the state as its parameters.
RUNNEL_API Body trace_step(const std::string& name, const Tensors& state, const std::vector<PartialShape>& shapes,
                           const StepFn& f);
// The loop itself, once cond and body are traced with these shapes of the state.
RUNNEL_API Tensors emit_while(Body test, Body step, const Tensors& state, const std::vector<PartialShape>& shapes,
                              const SourceSite& where, const Tensors& first_captures = {});

// The graph of a body, in order and without what it does not need.
RUNNEL_API GraphFunctionPtr finish(Body& body);
RUNNEL_API GraphFunctionPtr function_ptr(const FuncAttr& f);
// Zeros in the place of a gradient of x; of a variable's handle, zeros like its value.
RUNNEL_API Tensor zero_gradient(const Tensor& x);

// An Error where a condition has surely more or fewer elements than one.
void require_single(const char* what, const PartialShape& condition, const SourceSite& where);

// What two shapes have in common.
RUNNEL_API PartialShape relaxed(const PartialShape& a, const PartialShape& b);

struct IfAttrs {
  std::vector<DType> Tin;
  std::vector<DType> Tout;
  FuncAttr then_branch;
  FuncAttr else_branch;
  std::vector<PartialShape> output_shapes;
  static constexpr auto fields() {
    return field_list(field("Tin", &IfAttrs::Tin, {.required = true}),
                      field("Tout", &IfAttrs::Tout, {.required = true}), field("then_branch", &IfAttrs::then_branch),
                      field("else_branch", &IfAttrs::else_branch), field("output_shapes", &IfAttrs::output_shapes));
  }
};
struct CaseAttrs {
  std::vector<DType> Tin;
  std::vector<DType> Tout;
  std::vector<FuncAttr> branches;
  std::vector<PartialShape> output_shapes;
  static constexpr auto fields() {
    return field_list(
        field("Tin", &CaseAttrs::Tin, {.required = true}), field("Tout", &CaseAttrs::Tout, {.required = true}),
        field("branches", &CaseAttrs::branches, {.minimum = 1}), field("output_shapes", &CaseAttrs::output_shapes));
  }
};
// A derivative of a loop walks its iterations backwards over values that were kept in lists: state that was added for
// it.
struct WhileRecord {
  GraphFunctionPtr body;  // extended
  int num_state = 0;      // of the loop when this was added
  int num_captures = 0;
  std::vector<Derivative::Saved> kept;  // inputs and outputs of `body`, one list each
  std::vector<int> shapes;              // state without a gradient that changes its shape: a list of shapes each
  int count = 0;                        // the state that counts iterations; those lists follow
};

// The state comes first among the inputs; what cond and body captured follows and is handed on unchanged.
struct WhileAttrs {
  std::vector<DType> T;
  FuncAttr cond;
  FuncAttr body;
  std::vector<PartialShape> output_shapes;
  int64_t num_state = 0;             // ours: how many of the inputs are state
  int64_t parallel_iterations = 10;  // read and written; iterations run one after the other
  std::vector<WhileRecord> records;  // not written: a loop that was read is extended anew
  static constexpr auto fields() {
    return field_list(field("T", &WhileAttrs::T, {.required = true}), field("cond", &WhileAttrs::cond),
                      field("body", &WhileAttrs::body), field("output_shapes", &WhileAttrs::output_shapes),
                      field("parallel_iterations", &WhileAttrs::parallel_iterations),
                      field("_num_state", &WhileAttrs::num_state));
  }
};

}  // namespace runnel
