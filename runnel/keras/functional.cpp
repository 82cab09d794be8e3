#include "runnel/keras/functional.h"

#include <algorithm>
#include <atomic>

#include "runnel/base/format.h"
#include "runnel/graph/tracer.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/model.h"
#include "runnel/keras/op_layer.h"
#include "runnel/op/composed.h"
#include "runnel/op/owned_symbol.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel::keras {
namespace {

// What stands behind a described tensor.
class CallSymbol : public OwnedSymbol {
 public:
  CallSymbol(FunctionalNodePtr node, size_t index, PartialShape shape)
      : node_(std::move(node)), index_(index), shape_(std::move(shape)) {}
  const PartialShape& shape() const override { return shape_; }
  Interceptor& owner() const override { return op_recorder(); }
  const FunctionalNodePtr& node() const { return node_; }
  size_t index() const { return index_; }

 private:
  FunctionalNodePtr node_;
  size_t index_;
  PartialShape shape_;
};

const CallSymbol* call_symbol(const Tensor& t) {
  return t.is_symbolic() ? dynamic_cast<const CallSymbol*>(t.impl()->symbol.get()) : nullptr;
}

Nest described_outputs(LayerPtr layer, Nest inputs, const CallArgs& args, const NestOf<TensorSpec>& outputs) {
  static std::atomic<int64_t> calls = 0;
  const auto node = std::make_shared<const FunctionalNode>(
      FunctionalNode{std::move(layer), std::move(inputs), args, outputs, calls.fetch_add(1)});
  size_t index = 0;
  return nest::map_structure(
      [&](const TensorSpec& spec) {
        return Tensor(make_ref<TensorImpl>(spec.dtype, std::make_shared<CallSymbol>(node, index++, spec.shape)));
      },
      outputs);
}

NestOf<TensorSpec> traced_outputs(Tracer& tracer, Layer& layer, const Nest& parameters, const CallArgs& args) {
  tracer.open();
  const Nest outputs = [&] {
    const TracedLosses nothing_stays;
    return layer(parameters, args);
  }();
  tracer.close();
  return nest::map_structure([](const Tensor& t) { return TensorSpec{t.partial_shape(), t.dtype(), ""}; }, outputs);
}

}  // namespace

DescribedTensor described(const Tensor& t) {
  const CallSymbol* symbol = call_symbol(t);
  return symbol ? DescribedTensor{symbol->node(), symbol->index()} : DescribedTensor{};
}

bool is_described(const Nest& tensors) {
  if (tensors.is_leaf()) return call_symbol(tensors.leaf()) != nullptr;
  return std::any_of(tensors.items().begin(), tensors.items().end(), is_described);
}

Tensor Input(const PartialShape& shape, const InputOptions& options, SourceSite where) {
  return composed(where, [&] {
    if (!shape.has_rank()) throw invalid_argument("[Input] the number of dimensions of an input must be known");
    Dims dims{options.batch_size};
    for (const int64_t d : shape) dims.push_back(d);
    for (const int64_t d : dims) {
      if (d >= 0 || d == kUnknownDim) continue;
      throw invalid_argument("[Input] the size of a dimension is {}: give -1 where it is not known", d);
    }
    const PartialShape batched(dims);
    const std::string name = options.name.empty() ? unique_name("input", 1) : options.name;
    auto layer = std::make_shared<InputLayer>(
        InputLayerOptions{.batch_input_shape = batched, .name = name, .dtype = Policy(options.dtype)});
    return described_outputs(std::move(layer), Nest(), {}, NestOf<TensorSpec>(TensorSpec{batched, options.dtype, name}))
        .leaf();
  });
}

NestOf<TensorSpec> infer_outputs(Layer& layer, const NestOf<TensorSpec>& inputs, const CallArgs& args) {
  Tracer tracer(layer.name());
  const Nest parameters =
      nest::map_structure([&](const TensorSpec& spec) { return tracer.add_parameter(spec.dtype, spec.shape); }, inputs);
  return traced_outputs(tracer, layer, parameters, args);
}

Nest record_call(Layer& layer, const Nest& given, const CallArgs& told) {
  // Initial states that are described are inputs like the sequence, as Keras has it.
  Nest inputs = given;
  CallArgs args = told;
  if (std::any_of(args.initial_state.begin(), args.initial_state.end(), call_symbol) && given.is_leaf()) {
    std::vector<Nest> all{given};
    all.insert(all.end(), args.initial_state.begin(), args.initial_state.end());
    inputs = Nest::list(std::move(all));
    args.initial_state.clear();
  }
  for (const Tensor& t : {args.mask, args.attention_mask}) {
    if (!t.defined() || !call_symbol(t)) continue;
    throw make_error(Code::unimplemented,
                     "[{}] a mask of layer '{}' is a tensor of a functional model: masks there come with the inputs "
                     "(Embedding with mask_zero); otherwise write a model class",
                     layer.class_name(), layer.name());
  }
  // The order of the inputs is written down, the names are not.
  const auto* model = dynamic_cast<const Model*>(&layer);
  if (model && model->is_functional() && inputs.kind() == NestKind::map) inputs = model->graph().in_order(inputs);
  LayerPtr owner = layer.weak_from_this().lock();
  if (!owner) {
    throw make_error(Code::failed_precondition,
                     "[{}] layer '{}' is used to describe a functional model, which would outlive it: make it with "
                     "keras::make<{}>(...) or std::make_shared, or apply it in place: {}(...)(x)",
                     layer.class_name(), layer.name(), layer.class_name(), layer.class_name());
  }
  Tracer tracer(layer.name());
  const Nest parameters = nest::map_structure(
      [&](const Tensor& t) { return call_symbol(t) ? tracer.add_parameter(t.dtype(), t.partial_shape()) : t; }, inputs);
  return described_outputs(std::move(owner), inputs, args, traced_outputs(tracer, layer, parameters, args));
}

FunctionalGraph::FunctionalGraph(Nest inputs, Nest outputs) : inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  std::vector<const FunctionalNode*> given;
  for (const Tensor& t : nest::flatten(inputs_)) {
    const DescribedTensor d = described(t);
    if (!d.node) throw invalid_argument("[Model] an input of a functional model must be made by keras::Input");
    given.push_back(d.node.get());
    nodes_.push_back(d.node);
  }
  std::vector<FunctionalNodePtr> open;
  for (const Tensor& t : nest::flatten(outputs_)) {
    const DescribedTensor d = described(t);
    if (!d.node) {
      throw invalid_argument("[Model] an output of a functional model must come from its inputs through layers or ops");
    }
    open.push_back(d.node);
  }
  const auto known = [&](const FunctionalNodePtr& node) {
    return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
  };
  while (!open.empty()) {
    const FunctionalNodePtr node = open.back();
    open.pop_back();
    if (known(node)) continue;
    if (nest::flatten(node->inputs).empty()) {
      throw invalid_argument(
          "[Model] graph disconnected: the outputs depend on input '{}', which is not among the inputs of the model",
          node->layer->name());
    }
    nodes_.push_back(node);
    for (const Tensor& t : nest::flatten(node->inputs)) {
      if (const DescribedTensor d = described(t); d.node) open.push_back(d.node);
    }
  }
  std::sort(nodes_.begin(), nodes_.end(), [](const auto& a, const auto& b) { return a->order < b->order; });

  for (const FunctionalNodePtr& node : nodes_) {
    first_slots_.emplace_back(node.get(), num_slots_);
    num_slots_ += static_cast<int>(nest::flatten(node->outputs).size());
  }
  input_tensors_ = nest::flatten(inputs_);
  for (const Tensor& t : input_tensors_) input_slots_.push_back(source_of(t).slot);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const FunctionalNodePtr& node = nodes_[i];
    if (std::find(given.begin(), given.end(), node.get()) != given.end()) continue;
    Step step{node, {}, first_slots_[i].second};
    for (const Tensor& t : nest::flatten(node->inputs)) step.sources.push_back(source_of(t));
    steps_.push_back(std::move(step));
  }
  for (const Tensor& t : nest::flatten(outputs_)) results_.push_back(source_of(t));
  order_layers();
}

FunctionalGraph::Source FunctionalGraph::source_of(const Tensor& t) const {
  const DescribedTensor d = described(t);
  if (!d.node) return {-1, t};
  for (const auto& [node, slot] : first_slots_) {
    if (node == d.node.get()) return {slot + static_cast<int>(d.index), {}};
  }
  return {-1, t};
}

Tensor FunctionalGraph::conform(const Tensor& given, size_t i) const {
  const Tensor& input = input_tensors_[i];
  const PartialShape& wanted = input.partial_shape();
  Tensor value = given;
  const PartialShape& shape = given.partial_shape();
  if (shape.has_rank() && shape.rank() == wanted.rank() + 1 && shape[shape.rank() - 1] == 1) {
    value = squeeze(value, {-1});
  } else if (shape.has_rank() && shape.rank() + 1 == wanted.rank() && wanted[wanted.rank() - 1] == 1) {
    value = expand_dims(value, -1);
  }
  if (checks_input_shapes && !value.partial_shape().compatible_with(wanted)) {
    const bool one_short = shape.has_rank() && shape.rank() + 1 == wanted.rank();
    throw invalid_argument("[Model] input '{}' has shape {}, got {}{}", described(input).node->layer->name(),
                           wanted.str(), given.partial_shape().str(),
                           one_short ? ": where that is a single sample, expand_dims(x, 0) makes a batch of it" : "");
  }
  return value.dtype() == input.dtype() ? value : cast(value, input.dtype());
}

std::vector<Tensor> FunctionalGraph::in_order(const Nest& values) const {
  const auto is_leaf = [](const Nest& item) { return item.is_leaf(); };
  const bool is_map = inputs_.kind() == NestKind::map;
  const bool is_flat = inputs_.is_leaf() || std::all_of(inputs_.items().begin(), inputs_.items().end(), is_leaf);
  if (values.kind() != NestKind::map || (!is_map && !is_flat)) return nest::flatten(values);
  std::vector<std::string> names = inputs_.keys();
  for (size_t i = 0; !is_map && i < input_tensors_.size(); ++i) {
    names.push_back(described(input_tensors_[i]).node->layer->name());
  }
  const std::vector<std::string>& keys = values.keys();
  std::vector<Tensor> found;
  for (const std::string& name : names) {
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) {
      throw invalid_argument(
          "[Model] the map of inputs has no entry '{}': the inputs of the model are '{}', the map has '{}'. Name the "
          "entries as the inputs: keras::Input(shape, {{.name = \"{}\"}})",
          name, fmt::join(names, "', '"), fmt::join(keys, "', '"), keys.empty() ? name : keys[0]);
    }
    for (const Tensor& t : nest::flatten(values[name])) found.push_back(t);
  }
  return found;
}

Nest FunctionalGraph::run(const Nest& values, const CallArgs& args) const {
  const std::vector<Tensor> given = in_order(values);
  if (given.size() != input_slots_.size()) {
    throw invalid_argument("[Model] the model has {} inputs, got {}", input_slots_.size(), given.size());
  }
  std::vector<Tensor> slots(static_cast<size_t>(num_slots_));
  for (size_t i = 0; i < given.size(); ++i) slots[static_cast<size_t>(input_slots_[i])] = conform(given[i], i);
  const auto value = [&](const Source& s) { return s.slot < 0 ? s.constant : slots[static_cast<size_t>(s.slot)]; };
  for (const Step& step : steps_) {
    std::vector<Tensor> in;
    for (const Source& s : step.sources) in.push_back(value(s));
    CallArgs told = step.node->args;
    if (!told.training) told.training = args.training;
    const Nest out = (*step.node->layer)(nest::pack(step.node->inputs, in), told);
    size_t slot = static_cast<size_t>(step.first_slot);
    for (const Tensor& t : nest::flatten(out)) slots[slot++] = t;
  }
  std::vector<Tensor> out;
  for (const Source& s : results_) out.push_back(value(s));
  return nest::pack(outputs_, out);
}

// The depth of a layer is the longest way from it to an output; deeper ones come first, and among equals those that a
// walk from the outputs meets first.
void FunctionalGraph::order_layers() {
  std::vector<const Layer*> met;
  const auto visit = [&](const auto& self, const FunctionalNode* node) -> void {
    if (std::find(met.begin(), met.end(), node->layer.get()) == met.end()) met.push_back(node->layer.get());
    for (const Tensor& t : nest::flatten(node->inputs)) {
      const DescribedTensor d = described(t);
      if (d.node && std::find(met.begin(), met.end(), d.node->layer.get()) == met.end()) self(self, d.node.get());
    }
  };
  for (const Tensor& t : nest::flatten(outputs_)) visit(visit, described(t).node.get());
  std::vector<int> node_depth(nodes_.size(), 0);
  std::vector<std::pair<Layer*, int>> layer_depth;
  const auto depth_of = [&](Layer* layer) -> int& {
    for (auto& [known, depth] : layer_depth) {
      if (known == layer) return depth;
    }
    return layer_depth.emplace_back(layer, 0).second;
  };
  for (size_t i = nodes_.size(); i-- > 0;) {
    const FunctionalNode& node = *nodes_[i];
    int& depth = depth_of(node.layer.get());
    depth = std::max(depth, node_depth[i]);
    const int below = depth + 1;
    for (const Tensor& t : nest::flatten(node.inputs)) {
      const DescribedTensor d = described(t);
      for (size_t j = 0; d.node && j < i; ++j) {
        if (nodes_[j] == d.node) node_depth[j] = std::max(node_depth[j], below);
      }
    }
  }
  for (const FunctionalNodePtr& node : nodes_) {
    if (std::find(layers_.begin(), layers_.end(), node->layer) == layers_.end()) layers_.push_back(node->layer);
  }
  const auto rank = [&](const LayerPtr& layer) {
    return std::pair(-depth_of(layer.get()), std::find(met.begin(), met.end(), layer.get()) - met.begin());
  };
  std::stable_sort(layers_.begin(), layers_.end(),
                   [&](const LayerPtr& a, const LayerPtr& b) { return rank(a) < rank(b); });
}

}  // namespace runnel::keras
