#pragma once

// Branches and loops as nodes of a graph whose bodies are graphs, as far as the templates of function/ need them. What
// the nodes are is in graph/control_flow_nodes.h.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runnel/base/source_site.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

class Tracer;

using Tensors = std::vector<Tensor>;
using BranchFn = std::function<Tensors()>;
using StepFn = std::function<Tensors(const Tensors& state)>;

// Is a graph being built from the ops of this thread?
RUNNEL_API bool is_tracing();

// An Error that says `what` where calls inside one another have used up the stack: before code of the user runs that
// may call itself.
RUNNEL_API void require_stack(const char* what, const SourceSite& where);

// A body that was traced inside another graph; its captured inputs are values of that graph.
struct RUNNEL_API Body {
  Body();
  ~Body();
  Body(Body&& other) noexcept;
  Body& operator=(Body&& other) noexcept;

  std::unique_ptr<Tracer> tracer;
  Tensors outputs;
};
// Traces `f` into a graph of its own below the current one.
RUNNEL_API Body trace_branch(const std::string& name, const BranchFn& f);

// One of the branches by a bool (or number: not zero), traced into the current graph. Each gives as many tensors, of
// the same dtypes. Errors say `what`.
RUNNEL_API Tensors add_cond(const Tensor& predicate, Body then_body, Body else_body, const SourceSite& where,
                            const char* what = "cond");
// Branch i by an int32; the last one when i is out of range.
RUNNEL_API Tensors add_case(const Tensor& index, std::vector<Body> branches, const SourceSite& where);

struct WhileOptions {
  std::vector<PartialShape> shape_invariants = {};  // per state tensor; empty: found by relaxation
  int64_t maximum_iterations = -1;
};
using ConditionFn = std::function<Tensor(const Tensors& state)>;
// state = body(state) while cond(state). Shapes of the state that change are made unknown where they do.
// `first_captures` are the first of the captured inputs, used or not.
RUNNEL_API Tensors add_while(const ConditionFn& cond, const StepFn& body, const Tensors& state,
                             const WhileOptions& options, const SourceSite& where, const Tensors& first_captures = {});

}  // namespace runnel
