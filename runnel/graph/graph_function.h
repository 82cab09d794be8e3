#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runnel/graph/graph.h"

namespace runnel {

class GraphFunction;
class Plan;
struct SelfDerivative;
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
  explicit GraphFunction(std::shared_ptr<Graph> graph);
  ~GraphFunction() override;

  const std::string& name() const { return graph_->name(); }
  const Graph& graph() const { return *graph_; }
  const std::shared_ptr<Graph>& graph_ptr() const { return graph_; }
  const Plan& plan() const;             // made with the first use; executor/plan.h
  const Graph& planned_graph() const {  // after the passes
    plan();
    return *planned_graph_;
  }
  bool has_side_effects() const;
  // How many orders of derivatives it returns the intermediates for.
  int orders() const { return static_cast<int>(served_.size()); }
  // By order: how many of its outputs, from the first on, may have gradients then. `complete`: any, in every order.
  const std::vector<size_t>& served() const { return served_; }
  bool is_complete() const { return complete_; }
  void set_orders(std::vector<size_t> served, bool complete) {
    served_ = std::move(served);
    complete_ = complete;
  }

  // Values of the last inputs, which callers need not give: what a function captured.
  std::vector<Tensor> captures;

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;

  // The function that also returns, after its outputs, the intermediates that derivatives of so many orders need. The
  // outputs for one order are the first of those for the next. Made once.
  GraphFunctionPtr extended(int orders) const;
  // The derivative of an extended function: which outputs have gradients, and which inputs' are needed. Null where one
  // order more is needed.
  const Derivative* find_derivative(const std::vector<bool>& has_dy, const std::vector<bool>& needed) const;
  const Derivative& derivative(const std::vector<bool>& has_dy, const std::vector<bool>& needed) const;

  // The derivative of a function that calls itself, once it was asked for.
  mutable std::shared_ptr<SelfDerivative> self_derivative;

 private:
  std::shared_ptr<Graph> graph_;
  mutable std::once_flag planned_;
  mutable std::shared_ptr<Graph> planned_graph_;  // after the passes; the graph itself stays as it was traced
  mutable std::unique_ptr<Plan> plan_;
  using Pattern = std::pair<std::vector<bool>, std::vector<bool>>;
  GraphFunctionPtr extend_once() const;
  std::shared_ptr<const Derivative> build_derivative(const Pattern& pattern) const;

  mutable std::mutex mutex_;  // of what follows
  mutable GraphFunctionPtr more_;
  mutable std::map<Pattern, std::shared_ptr<const Derivative>> derivatives_;
  std::vector<size_t> served_;
  bool complete_ = false;
};

// A function that calls itself refers to itself so: its graph would keep itself alive otherwise.
class RUNNEL_API RecursiveFunction : public FunctionBody {
 public:
  std::weak_ptr<const GraphFunction> target;
  // Set where it is another function that also returns a list, as output number `list_at`, of what the derivative of
  // that one needs.
  std::shared_ptr<const RecursiveFunction> base;
  size_t list_at = 0;
};

// The graph behind a function attribute; null where it is no graph.
RUNNEL_API const GraphFunction* graph_function(const FuncAttr& f);
RUNNEL_API bool has_side_effects(const FuncAttr& f);

// For the ops that call functions. In their shape functions: an Error where the attribute names no function.
RUNNEL_API void require_function(const FuncAttr& f, const char* attribute);
// In their kernels: the function, an Error where it is gone, or does not take inputs of these dtypes. Calls add what
// the function has captured to inputs that lack it (`adds_captures`); branches and loops get it as inputs.
RUNNEL_API const GraphFunction& called_function(const FuncAttr& f, const char* attribute,
                                                std::span<const Tensor* const> inputs, bool adds_captures = false);
// An Error where the function gives other outputs than these dtypes say, whose place is made already.
RUNNEL_API void require_outputs(const GraphFunction& f, const char* attribute, std::span<const DType> dtypes);
// The shapes that an attribute states for the outputs: of nothing more than it says is anything known.
RUNNEL_API const PartialShape& stated_shape(const std::vector<PartialShape>& shapes, int i);
// An Error where an output has another shape than was stated: what comes later relies on that.
RUNNEL_API void require_stated_shapes(const std::vector<PartialShape>& shapes, std::span<const Tensor> outputs);
RUNNEL_API FuncAttr func_attr(const GraphFunctionPtr& f);

// Calls the ops of the graph one by one on these inputs: run, traced or recorded as calls of ops are.
RUNNEL_API std::vector<Tensor> replay(const Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace runnel
