#pragma once

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runnel/graph/graph.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/unrecorded.h"
#include "runnel/tensor/handle_log.h"

namespace runnel {

// What a Tensor is while a graph is being built: an output of one of its nodes.
class RUNNEL_API NodeSymbol : public Symbol {
 public:
  NodeSymbol(std::shared_ptr<Graph> graph, NodeOutput output) : graph_(std::move(graph)), output_(output) {}
  const PartialShape& shape() const override { return output_.node->shape(output_.index); }
  const Tensor* constant() const override {
    const Tensor& value = output_.node->values[static_cast<size_t>(output_.index)];
    return value.defined() ? &value : nullptr;
  }
  const Dims* elements() const override {
    const auto i = static_cast<size_t>(output_.index);
    const std::vector<Dims>& known = output_.node->elements;
    return i < known.size() && !known[i].empty() ? &known[i] : nullptr;
  }
  std::string described() const override;
  const std::shared_ptr<Graph>& graph() const { return graph_; }
  const NodeOutput& output() const { return output_; }

 private:
  std::shared_ptr<Graph> graph_;  // kept alive: a handle may outlive the trace
  NodeOutput output_;
};

// The symbol behind a tensor of a graph, or null.
RUNNEL_API const NodeSymbol* node_symbol(const Tensor& t);
RUNNEL_API Tensor symbolic(const std::shared_ptr<Graph>& graph, NodeOutput output);

// Another tracer, or none, takes the ops of this thread; tapes see nothing of them.
using TraceScope = ContextScope<&ThreadContext::interceptor, &ThreadContext::recorder, &ThreadContext::tape_level>;

// Builds a graph from the ops called on this thread while it is open. Values that were there before become captured
// inputs, values made meanwhile constants, tensors of an enclosing graph captured inputs too.
class RUNNEL_API Tracer : public Interceptor {
 public:
  // `parent`: the tracer whose tensors may be captured; null for a function of its own.
  explicit Tracer(const std::string& name, Tracer* parent = nullptr);
  // Goes on with a graph that exists (a backward function captures what it needs of its forward graph).
  Tracer(std::shared_ptr<Graph> graph, std::shared_ptr<Graph> source);
  ~Tracer() override;

  // Between open() and close() ops of this thread come here. Tapes that record outside see nothing of them.
  void open();
  void close();
  static Tracer* current();

  const std::shared_ptr<Graph>& graph() const { return graph_; }
  Tracer* parent() const { return parent_; }
  Tensor add_parameter(DType dtype, const PartialShape& shape, const std::string& name = "");
  // The output of a node of this graph that stands for the tensor; captures it where it comes from outside.
  NodeOutput localise(const Tensor& t, const SourceSite& where);
  void set_outputs(const std::vector<Tensor>& outputs);
  // Handles of the program that refer to this tensor refer to nothing once the trace, with all around it, is over.
  void void_at_end(const Tensor& stand_in);

  // What the captured inputs (the last of graph()->inputs()) stand for, in order.
  const std::vector<Tensor>& captures() const { return captures_; }
  // The captured input for a tensor from outside, if there is one.
  Node* captured_as(const Tensor& t) const;
  // Captured inputs of a body need not stay with it: the node that calls it has them as inputs.
  void forget_captures() { captures_.clear(); }

  bool allow_variables = true;  // may variables be created?
  int variables_created = 0;

  void call(const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs, int num_outputs,
            const SourceSite& where) override;
  Tensor outside(const Tensor& symbolic) override;
  void variable_created(const std::string& name) override;
  Tensor with_gradient(const Tensor& value, const std::vector<Tensor>& inputs,
                       const std::function<Gradients(const Tensor& dy)>& grad) override;

 private:
  Tracer& outermost();
  std::string child_name(const std::string& name);
  Node* capture(const Tensor& t);
  void order(Node* node, Inputs inputs);
  void find_values(const OpDef& op, Inputs inputs, const void* attrs, Node* node);

  // The order of effects: per resource its last writer and the readers since then; null is the world outside.
  struct Effects {
    Node* writer = nullptr;
    std::vector<Node*> readers;
  };

  std::shared_ptr<Graph> graph_;
  Tracer* parent_;
  int depth_ = 0;  // how many tracers are around it
  std::shared_ptr<Graph> source_;
  uint32_t epoch_;
  std::vector<Tensor> captures_;
  std::unordered_map<const void*, Node*> captured_;  // by impl, resource object or node output
  std::unordered_map<const TensorImpl*, Node*> constants_;
  std::vector<Tensor> keep_;  // of constants_: their addresses are keys
  std::map<std::pair<const Node*, int>, Node*> captured_outputs_;
  std::map<const void*, Effects> effects_;
  std::vector<Ref<TensorImpl>> void_at_end_;  // of the outermost tracer
  std::string scope_;                         // of a body: the names around it, and that of its block
  std::optional<TraceScope> open_;
  std::optional<ContextScope<&ThreadContext::name_scope>> open_scope_;
  int children_ = 0;
};

// While it lives, ops of this thread run at once though a trace is open: its tracer is set aside. So are the tapes, the
// log of handles and offered memory: what is made here outlives the calls around it.
class RUNNEL_API OutsideTrace {
 public:
  OutsideTrace() : trace_(nullptr, nullptr, new_tape_level()), scope_(nullptr, nullptr) {}

 private:
  TraceScope trace_;
  ContextScope<&ThreadContext::destination, &ThreadContext::graph> scope_;
  UnloggedHandles unlogged_;
};

}  // namespace runnel
