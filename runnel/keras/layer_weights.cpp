#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/layer.h"
#include "runnel/keras/walk_path.h"
#include "runnel/op/composed.h"
#include "runnel/ops/math.h"
#include "runnel/ops/variable_slot.h"

namespace runnel::keras {

// "mlp/dense/kernel": the layers whose calls led here, from the outermost.
std::string Layer::weight_name(const std::string& name) const {
  std::string path = name;
  const Layer* last = nullptr;
  for (const CallScope* scope = CallScope::current(); scope; scope = scope->outer()) {
    if (&scope->layer() != last && scope->layer().names_weights_) path = scope->layer().name() + "/" + path;
    last = &scope->layer();
  }
  return path;
}

Variable Layer::add_weight(const WeightOptions& options, SourceSite where) {
  return composed(where, [&]() -> Variable {
    const std::string name = options.name.empty() ? "weight" : options.name;
    const DType dtype = options.dtype == DType::invalid ? variable_dtype() : options.dtype;
    Initializer initializer = options.initializer;
    if (!initializer) initializer = is_float(dtype) ? Initializer("glorot_uniform") : Initializer("zeros");
    const Tensor value = initializer(options.shape, dtype);
    if (value.shape() != options.shape) {
      throw invalid_argument("[{}] the initializer of weight '{}' of layer '{}' gave {}, not {}", class_name(), name,
                             this->name(), value.shape().str(), options.shape.str());
    }
    Variable weight(value, {.name = weight_name(name), .trainable = options.trainable, .dtype = dtype});
    if (options.regularizer || options.constraint) rules_.push_back({weight, options.regularizer, options.constraint});
    track(name, weight);
    return weight;
  });
}

Tensor Layer::compute_value(const Variable& weight) const {
  const Tensor value = weight.value();
  return value.dtype() == compute_dtype() || !is_float(value.dtype()) ? value : cast(value, compute_dtype());
}

// --- what is in a layer ---

// Through everything that is no layer, in the order of the edges.
void Layer::add_parts(const Trackable& at, bool with_variables, std::vector<const Trackable*>& met,
                      std::vector<Part>& out) {
  for (const Edge& edge : at.edges()) {
    if (std::find(met.begin(), met.end(), edge.object) != met.end()) continue;
    if (dynamic_cast<VariableSlot*>(edge.object)) {
      if (with_variables) out.push_back({nullptr, Variable::from_handle(edge.handle)});
    } else {
      met.push_back(edge.object);
      if (auto* layer = dynamic_cast<Layer*>(edge.object)) {
        out.push_back({layer, {}});
      } else if (edge.object->holds_weights()) {
        add_parts(*edge.object, true, met, out);
      }
    }
  }
}

std::vector<Layer::Part> Layer::parts() const {
  std::vector<Part> all;
  std::vector<const Trackable*> met{this};
  for (Layer* layer : numbered_layers()) {
    met.push_back(layer);
    all.push_back({layer, {}});
  }
  add_parts(*this, false, met, all);
  return all;
}

std::vector<Layer*> Layer::sublayers() const {
  std::vector<Layer*> layers;
  for (const Part& part : parts()) {
    if (part.layer) layers.push_back(part.layer);
  }
  return layers;
}

namespace {

void add_once(const Variable& v, std::vector<Variable>& out) {
  const auto is_same = [&](const Variable& known) { return &known.slot() == &v.slot(); };
  if (std::none_of(out.begin(), out.end(), is_same)) out.push_back(v);
}

}  // namespace

// `here`: is the layer trainable? Where it is not, its trainable variables come first among the others.
void Layer::collect_own(bool trainable, bool here, std::vector<Variable>& out) const {
  const auto add = [&](bool of_kind) {
    for (const Edge& edge : edges()) {
      const auto* slot = dynamic_cast<const VariableSlot*>(edge.object);
      if (slot && slot->trainable == of_kind) add_once(Variable::from_handle(edge.handle), out);
    }
  };
  if (trainable == here) add(true);
  if (!trainable) add(false);
}

void Layer::collect_weights(bool trainable, bool parents_trainable, std::vector<Variable>& out) const {
  const WalkPath<struct WalkOfKind> path(this);
  if (path.is_circle()) return;
  const bool here = parents_trainable && trainable_;
  if (!counts_by_layer()) collect_own(trainable, here, out);
  for (const Part& part : parts()) {
    if (part.layer) {
      part.layer->collect_weights(trainable, here, out);
    } else if ((part.variable.trainable() && here) == trainable) {
      add_once(part.variable, out);
    }
  }
  if (counts_by_layer()) collect_own(trainable, here, out);
}

void Layer::collect_all_weights(std::vector<Variable>& out) const {
  if (!counts_by_layer()) {
    collect_weights(true, true, out);
    collect_weights(false, true, out);
    return;
  }
  const WalkPath<struct WalkOfAll> path(this);
  if (path.is_circle()) return;
  for (const Part& part : parts()) {
    if (part.layer) {
      part.layer->collect_all_weights(out);
    } else {
      add_once(part.variable, out);
    }
  }
  collect_own(false, false, out);
}

std::vector<Variable> Layer::trainable_weights() const {
  refuse_moved_from();
  std::vector<Variable> out;
  collect_weights(true, true, out);
  return out;
}

std::vector<Variable> Layer::non_trainable_weights() const {
  refuse_moved_from();
  std::vector<Variable> out;
  collect_weights(false, true, out);
  return out;
}

bool Layer::any_weights_in(const Layer& layer) {
  std::vector<Variable> all;
  layer.collect_all_weights(all);
  return !all.empty();
}

std::vector<Variable> Layer::weights() const {
  refuse_moved_from();
  std::vector<Variable> out;
  collect_all_weights(out);
  return out;
}

std::vector<Tensor> Layer::get_weights() const {
  std::vector<Tensor> values;
  for (const Variable& v : weights()) values.push_back(v.value());
  return values;
}

void Layer::set_weights(const std::vector<Tensor>& values, SourceSite where) {
  composed(where, [&] { give_weights(values); });
}

void Layer::give_weights(const std::vector<Tensor>& values) {
  refuse_moved_from();
  const std::vector<Variable> all = weights();
  if (all.size() != values.size()) {
    throw invalid_argument("[{}] layer '{}' has {} weights{}, got {} values", class_name(), name(), all.size(),
                           built_ ? "" : " (it is not built: call it once before)", values.size());
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].shape() != values[i].shape()) {
      throw invalid_argument("[{}] weight '{}' of layer '{}' has shape {}, the value given has {}", class_name(),
                             all[i].name(), name(), all[i].shape().str(), values[i].shape().str());
    }
  }
  std::vector<Tensor> fitting;  // before the first weight changes
  for (size_t i = 0; i < all.size(); ++i) {
    fitting.push_back(values[i].dtype() == all[i].dtype() ? values[i] : cast(values[i], all[i].dtype()));
  }
  for (size_t i = 0; i < all.size(); ++i) all[i].assign(fitting[i]);
}

int64_t Layer::count_params(SourceSite where) const {
  composed(where, [&] { refuse_moved_from(); });
  if (!built_) {
    throw make_error(Code::failed_precondition,
                     "[{0}] You tried to call `count_params` on layer {1}, but the layer isn't built: its weights are "
                     "made at its first call. Call it with a sample, or build it by the shape of its input: "
                     "build_from_shapes({{batch, ...}}), build_for_shape({{batch, ...}}) of a model{2}",
                     class_name(), name(), user_line(where).at());
  }
  int64_t total = 0;
  for (const Variable& v : weights()) total += v.shape().num_elements();
  return total;
}

const Layer::WeightRules* Layer::find_rules(const Variable& weight) const {
  for (const Layer* layer : all_layers()) {
    for (const WeightRules& w : layer->rules_) {
      if (&w.variable.slot() == &weight.slot()) return &w;
    }
  }
  return nullptr;
}

const Constraint* Layer::constraint_of(const Variable& weight) const {
  const WeightRules* found = find_rules(weight);
  return found && found->constraint ? &found->constraint : nullptr;
}

}  // namespace runnel::keras
