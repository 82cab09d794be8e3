// Sessions: the part of a graph that is asked for, run with values for the rest.
#include <map>
#include <mutex>
#include <set>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/compat/v1_graph.h"
#include "runnel/graph/graph_function.h"
#include "runnel/op/composed.h"
#include "runnel/ops/lookup_table.h"
#include "runnel/ops/math.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/handle.h"

namespace runnel::compat::v1 {
namespace {

using OutputKey = std::pair<int, int>;  // of a node by id, and its output
OutputKey key_of(const NodeOutput& v) { return {v.node->id, v.index}; }

// What runs for one set of fetches and feeds.
struct Compiled {
  std::shared_ptr<const GraphFunction> function;  // inputs: those of the graph, then the fed ones
  size_t captures = 0;                            // inputs of the graph
  std::vector<bool> is_value;                     // per fetch
};

Compiled compile(const GraphState& state, const std::vector<NodeOutput>& feeds,
                 const std::vector<NodeOutput>& fetches) {
  std::map<const Node*, Node*> twin;
  const std::shared_ptr<runnel::Graph> graph = state.graph()->clone(&twin);
  graph->sort();  // a loop whose gradient was taken stands before what was added for it
  Compiled compiled;
  compiled.captures = graph->inputs().size();
  std::map<std::pair<const Node*, int>, Node*> fed;
  for (const NodeOutput& feed : feeds) {
    fed[{twin.at(feed.node), feed.index}] =
        graph->add_input(feed.node->dtype(feed.index), feed.node->shape(feed.index));
  }
  auto resolve = [&](NodeOutput v) {
    const auto it = fed.find({v.node, v.index});
    return it == fed.end() ? v : NodeOutput{it->second, 0};
  };
  // What was found of a value while building does not hold behind a fed one.
  std::set<const Node*> depends_on_feeds;
  for (const auto& node : graph->nodes()) {
    bool fed_before = false;
    for (NodeOutput& in : node->inputs) {
      const Node* built = in.node;
      in = resolve(in);
      fed_before = fed_before || in.node != built || depends_on_feeds.contains(built);
    }
    if (fed_before) {
      depends_on_feeds.insert(node.get());
      std::fill(node->values.begin(), node->values.end(), Tensor());
      node->elements.clear();
      node->inferred = false;
    }
    // Variables have other slots in every session.
    if (node->is("_Arg") && node->dtype() == DType::resource) node->values[0] = Tensor();
  }
  std::vector<NodeOutput> outputs;
  std::set<const Node*> needed(graph->inputs().begin(), graph->inputs().end());
  std::vector<const Node*> stack;
  for (const NodeOutput& fetch : fetches) {
    compiled.is_value.push_back(fetch.index >= 0);
    const NodeOutput at = resolve({twin.at(fetch.node), fetch.index});
    if (fetch.index >= 0) outputs.push_back(at);
    stack.push_back(at.node);
  }
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (!needed.insert(node).second) continue;
    if (node->is("Placeholder")) {
      throw invalid_argument("[Session.run] the placeholder '{}' ({}{}) must be fed", node->name,
                             dtype_name(node->dtype()), node->shape().str());
    }
    for (const NodeOutput& in : node->inputs) stack.push_back(in.node);
    for (const Node* in : node->control_inputs) stack.push_back(in);
  }
  graph->set_outputs(std::move(outputs));
  graph->sort();  // the fed inputs were added last
  std::vector<bool> keep;
  for (const auto& node : graph->nodes()) keep.push_back(needed.contains(node.get()));
  graph->retain(keep);
  compiled.function = std::make_shared<const GraphFunction>(graph);
  return compiled;
}

}  // namespace

class Session::State {
 public:
  explicit State(std::shared_ptr<GraphState> graph) : graph_(std::move(graph)) {}

  std::vector<Tensor> run(const std::vector<Fetch>& fetches, const FeedDict& feed_dict) {
    const OutsideTrace outside;  // this runs, though the graph may be open
    std::vector<NodeOutput> wanted;
    {
      const std::lock_guard lock(graph_->mutex);  // a fetched variable may become a node
      for (const Fetch& f : fetches) wanted.push_back(graph_->fetched(f));
    }
    std::vector<NodeOutput> fed;
    std::vector<Tensor> values;
    for (const auto& [tensor, value] : feed_dict) {
      fed.push_back(graph_->output_of(tensor));
      values.push_back(checked(fed.back(), value));
    }
    std::shared_ptr<const Compiled> compiled;
    std::vector<Tensor> inputs;
    {
      const std::lock_guard lock(mutex_);
      if (closed_) throw make_error(Code::failed_precondition, "[Session.run] the session is closed");
      const std::lock_guard reading(graph_->mutex);
      compiled = compiled_for(fed, wanted);
      for (size_t i = 0; i < compiled->captures; ++i) inputs.push_back(captured(graph_->tracer.captures()[i]));
    }
    inputs.insert(inputs.end(), values.begin(), values.end());
    const std::vector<Tensor> results = compiled->function->run(inputs);
    std::vector<Tensor> out;
    size_t at = 0;
    for (const bool value : compiled->is_value) out.push_back(value ? results[at++] : Tensor());
    return out;
  }

  // What a checkpoint knows of a variable, as it is in this session.
  SavableValue savable(const VariableSlot& variable) {
    const std::lock_guard lock(mutex_);
    if (closed_) throw make_error(Code::failed_precondition, "[Session] the session is closed");
    return variable_slot(own(variable)).savable_values().at(0);
  }

  std::vector<Fetch> initializers(const std::vector<const VariableSlot*>& wanted) const {
    const std::lock_guard lock(graph_->mutex);
    std::vector<Fetch> found;
    for (const GraphState::Declared& declared : graph_->variables) {
      if (std::find(wanted.begin(), wanted.end(), &declared.variable.slot()) == wanted.end()) continue;
      found.emplace_back(declared.initializer);
    }
    return found;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    compiled_.clear();
    variables_.clear();
    tables_.clear();
  }

 private:
  static Tensor checked(const NodeOutput& at, const Tensor& value) {
    const Node& node = *at.node;
    if (!value.defined() || value.is_symbolic()) {
      throw invalid_argument("[Session.run] what is fed for '{}' is no value", node.name);
    }
    if (!node.shape(at.index).compatible_with(value.shape())) {
      throw invalid_argument("[Session.run] a value of shape {} cannot be fed for '{}' of shape {}",
                             value.shape().str(), node.name, node.shape(at.index).str());
    }
    const DType dtype = node.dtype(at.index);
    if (value.dtype() == dtype) return value;
    if (!is_plain(value.dtype()) || !is_plain(dtype)) {
      throw invalid_argument("[Session.run] '{}' is {}, fed with {}", node.name, dtype_name(dtype),
                             dtype_name(value.dtype()));
    }
    return cast(value, dtype);
  }

  std::shared_ptr<const Compiled> compiled_for(const std::vector<NodeOutput>& fed,
                                               const std::vector<NodeOutput>& wanted) {
    std::pair<std::vector<OutputKey>, std::vector<OutputKey>> key;
    for (const NodeOutput& v : fed) key.first.push_back(key_of(v));
    for (const NodeOutput& v : wanted) key.second.push_back(key_of(v));
    std::shared_ptr<const Compiled>& known = compiled_[key];
    if (!known) known = std::make_shared<const Compiled>(compile(*graph_, fed, wanted));
    return known;
  }

  // A captured value as this session has it: variables of the graph, and tables that can change, are its own here.
  Tensor captured(const Tensor& value) {
    if (value.dtype() != DType::resource) return value;
    if (const auto* slot = referred_as<const VariableSlot>(value)) return own(*slot);
    const auto* table = referred_as<const Table>(value);
    return table && !table->type.fixed ? own(*table) : value;
  }
  Tensor own(const Table& table) {
    Tensor& own = tables_[&table];
    if (!own.defined()) {
      auto copy = table.empty_copy();
      const auto [keys, values] = table.contents();  // of before: nodes of the graph change those of sessions
      copy->replace(keys, values);
      own = handle_to_table(std::move(copy));
    }
    return own;
  }
  Tensor own(const VariableSlot& slot) {
    Tensor& own = variables_[&slot];
    if (!own.defined()) {
      own = Tensor::empty(DType::resource, {});
      auto copy = std::make_shared<VariableSlot>(slot.name, slot.dtype, slot.shape, slot.trainable);
      copy->advice = "run global_variables_initializer() in this session first";
      copy->value = slot.value;  // of a variable that was made eagerly; those of get_variable have none
      own.mutable_data<ResourceHandle>()->object = std::move(copy);
    }
    return own;
  }

  std::shared_ptr<GraphState> graph_;
  std::mutex mutex_;
  bool closed_ = false;
  std::map<std::pair<std::vector<OutputKey>, std::vector<OutputKey>>, std::shared_ptr<const Compiled>> compiled_;
  std::map<const VariableSlot*, Tensor> variables_;
  std::map<const Table*, Tensor> tables_;
};

Session::Session(const ConfigProto& config) : Session(get_default_graph(), config) {}
Session::Session(const Graph& graph, const ConfigProto& config) : state_(std::make_unique<State>(graph.state())) {
  if (config.intra_op_parallelism_threads > 0) set_num_threads(config.intra_op_parallelism_threads);
}
Session::~Session() = default;

std::vector<Tensor> Session::run_all(const std::vector<Fetch>& fetches, const FeedDict& feed_dict,
                                     const SourceSite& where) {
  return composed(where, [&] { return state_->run(fetches, feed_dict); });
}
Tensor Session::value_of(const VariableSlot& variable, SourceSite where) const {
  return composed(where, [&] { return state_->savable(variable).get().at(0); });
}
void Session::load(const VariableSlot& variable, const Tensor& value, SourceSite where) {
  composed(where, [&] {
    const SavableValue savable = state_->savable(variable);
    savable.check({value});
    savable.set({value});
  });
}
void Session::initialize(const std::vector<const VariableSlot*>& variables, SourceSite where) {
  run_all(state_->initializers(variables), {}, where);
}
void Session::close() { state_->close(); }

}  // namespace runnel::compat::v1
