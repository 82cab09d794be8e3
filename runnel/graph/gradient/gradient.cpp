#include "runnel/graph/gradient/gradient.h"

#include <algorithm>

#include "runnel/autodiff/record.h"
#include "runnel/base/format.h"
#include "runnel/graph/tracer.h"

namespace runnel {
namespace {

class ReverseWalk {
 public:
  ReverseWalk(std::shared_ptr<Graph> graph, const std::vector<bool>& needed_inputs) : graph_(std::move(graph)) {
    const auto n = static_cast<size_t>(graph_->num_nodes());
    needed_.resize(n);
    grads_.resize(n);
    for (size_t i = 0; i < graph_->inputs().size(); ++i) {
      const Node& input = *graph_->inputs()[i];
      needed_[static_cast<size_t>(input.id)] = needed_inputs[i] && is_differentiable(input.dtype());
    }
    for (const auto& node : graph_->nodes()) {
      grads_[static_cast<size_t>(node->id)].resize(static_cast<size_t>(node->num_outputs()));
      if (!node->op->grad) continue;
      for (const NodeOutput& in : node->inputs) {
        if (is_needed(in)) needed_[static_cast<size_t>(node->id)] = true;
      }
    }
  }

  void seed(const NodeOutput& at, const Tensor& dy) { accumulate(grad(at), dy); }

  void run() {
    for (size_t i = grads_.size(); i-- > 0;) {
      const Node& node = *graph_->nodes()[i];
      if (needed_[i] && node.op->grad) back(node);
    }
  }

  Gradient& grad(const NodeOutput& v) { return grads_[static_cast<size_t>(v.node->id)][static_cast<size_t>(v.index)]; }

 private:
  bool is_needed(const NodeOutput& v) const {
    return needed_[static_cast<size_t>(v.node->id)] && is_differentiable(v.node->dtype(v.index));
  }

  void back(const Node& node) {
    std::vector<Gradient> dy = std::move(grads_[static_cast<size_t>(node.id)]);
    if (std::none_of(dy.begin(), dy.end(), [](const Gradient& g) { return g.defined(); })) return;
    uint64_t wanted = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (is_needed(node.inputs[i])) wanted |= uint64_t{1} << std::min<size_t>(i, 63);
    }
    std::vector<Tensor> in;
    std::vector<Tensor> out;
    for (const NodeOutput& v : node.inputs) in.push_back(symbolic(graph_, v));
    for (int i = 0; i < node.num_outputs(); ++i) out.push_back(symbolic(graph_, {const_cast<Node*>(&node), i}));
    // Kept: the gradient of a loop or branch gives the node others.
    const SharedAttrs attrs = node.attrs;
    const std::vector<NodeOutput> inputs = node.inputs;
    const Gradients dx = node.op->grad(GradCtx(*node.op, in, out, dy, wanted), attrs.get());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (is_needed(inputs[i])) accumulate(grad(inputs[i]), dx[i]);
    }
  }

  std::shared_ptr<Graph> graph_;
  std::vector<bool> needed_;  // by node: depends on an input whose gradient is wanted
  std::vector<std::vector<Gradient>> grads_;
};

}  // namespace

BackwardGraph build_backward(const std::shared_ptr<Graph>& forward, const std::vector<NodeOutput>& outputs,
                             const std::vector<bool>& has_dy, const std::vector<bool>& needed) {
  BackwardGraph result;
  result.graph = std::make_shared<Graph>(forward->name() + "_grad");
  result.graph->plan_options = forward->plan_options;
  Tracer tracer(result.graph, forward);
  ReverseWalk walk(forward, needed);
  std::vector<Tensor> seeds;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!has_dy[i]) continue;
    const Node& node = *outputs[i].node;
    result.dy_of.push_back(static_cast<int>(i));
    seeds.push_back(tracer.add_parameter(node.dtype(outputs[i].index), node.shape(outputs[i].index)));
  }
  tracer.open();
  for (size_t k = 0; k < seeds.size(); ++k) walk.seed(outputs[static_cast<size_t>(result.dy_of[k])], seeds[k]);
  walk.run();
  std::vector<Tensor> values;
  for (size_t i = 0; i < forward->inputs().size(); ++i) {
    Node* input = forward->inputs()[i];
    Gradient g = needed[i] && is_differentiable(input->dtype()) ? walk.grad({input, 0}) : Gradient();
    if (!g.defined()) {
      result.result.push_back(Derivative::Kind::none);
    } else if (g.is_slices() && g.slices().dense_shape.defined()) {
      result.result.push_back(Derivative::Kind::slices);
      values.insert(values.end(), {g.slices().values, g.slices().indices, g.slices().dense_shape});
    } else {
      result.result.push_back(Derivative::Kind::dense);
      values.push_back(g.value());
    }
  }
  tracer.close();
  tracer.set_outputs(values);
  result.captures = tracer.captures();
  result.graph->sort();
  prune(*result.graph);
  return result;
}

}  // namespace runnel
