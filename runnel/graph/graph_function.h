#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runnel/graph/executor/plan.h"
#include "runnel/graph/graph.h"

namespace runnel {

class GraphFunction;
using GraphFunctionPtr = std::shared_ptr<const GraphFunction>;

// How the derivative of a function is computed: a backward function of (the gradients of the outputs `dy_of`, then the
// values `saved` of the forward run).
struct Derivative {
  GraphFunctionPtr backward;
  std::vector<int> dy_of;  // outputs whose gradients are the first inputs of `backward`
  enum class From : uint8_t { input, output, value };
  struct Saved {
    From from;  // an input or output of the forward function, or a value of its own
    int index;
    Tensor value;
  };
  std::vector<Saved> saved;  // the inputs of `backward` after those
  // What `backward` returns for each input of the function: nothing, a tensor, or IndexedSlices (three tensors).
  enum class Kind : uint8_t { none, dense, slices };
  std::vector<Kind> result;
};

// A graph that can be called: by functions, and by nodes as their branch or body.
class RUNNEL_API GraphFunction : public FunctionBody, public std::enable_shared_from_this<GraphFunction> {
 public:
  explicit GraphFunction(std::shared_ptr<Graph> graph) : graph_(std::move(graph)) {}

  const std::string& name() const { return graph_->name(); }
  const Graph& graph() const { return *graph_; }
  const std::shared_ptr<Graph>& graph_ptr() const { return graph_; }
  const Plan& plan() const;  // made with the first use
  bool has_side_effects() const;
  // Does it return all that derivatives need?
  bool is_extended() const { return is_extended_; }
  void mark_extended() { is_extended_ = true; }

  // Values of the last inputs, which callers need not give: what a function captured.
  std::vector<Tensor> captures;

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;

  // The function that also returns, after its outputs, the intermediates that its derivative needs; with all_orders
  // those that derivatives of any order need. Made once.
  GraphFunctionPtr extended(bool all_orders) const;
  // The derivative of an extended function: which outputs have gradients, and which inputs' are needed.
  const Derivative& derivative(const std::vector<bool>& has_dy, const std::vector<bool>& needed) const;

 private:
  std::shared_ptr<Graph> graph_;
  mutable std::once_flag planned_;
  mutable std::shared_ptr<Graph> planned_graph_;  // after the passes; the graph itself stays as it was traced
  mutable std::unique_ptr<Plan> plan_;
  mutable std::recursive_mutex mutex_;
  mutable GraphFunctionPtr extended_[2];
  bool is_extended_ = false;
  mutable std::map<std::pair<std::vector<bool>, std::vector<bool>>, std::unique_ptr<Derivative>> derivatives_;
};

// A function that calls itself refers to itself so: its graph would keep itself alive otherwise.
class RUNNEL_API RecursiveFunction : public FunctionBody {
 public:
  std::weak_ptr<const GraphFunction> target;
};

// The graph behind a function attribute; null where it is no graph.
RUNNEL_API const GraphFunction* graph_function(const FuncAttr& f);
RUNNEL_API bool has_side_effects(const FuncAttr& f);
RUNNEL_API FuncAttr func_attr(const GraphFunctionPtr& f);

// Calls the ops of the graph one by one on these inputs: run, traced or recorded as calls of ops are.
RUNNEL_API std::vector<Tensor> replay(const Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace runnel
