#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/layer.h"
#include "runnel/ops/math.h"

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

Variable Layer::add_weight(const WeightOptions& options) {
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
  weights_.push_back({weight, options.regularizer, options.constraint, options.trainable});
  track_variable(name, weight.handle());
  return weight;
}

Tensor Layer::compute_value(const Variable& weight) const {
  const Tensor value = weight.value();
  return value.dtype() == compute_dtype() || !is_float(value.dtype()) ? value : cast(value, compute_dtype());
}

void Layer::collect_weights(bool trainable, bool parents_trainable, std::vector<Variable>& out) const {
  const bool here = parents_trainable && trainable_;
  const auto add = [&](const Variable& v) {
    const auto is_same = [&](const Variable& known) { return &known.slot() == &v.slot(); };
    if (std::none_of(out.begin(), out.end(), is_same)) out.push_back(v);
  };
  for (const Weight& w : weights_) {
    if ((w.trainable && here) == trainable) add(w.variable);
  }
  for (const Layer* child : sublayers()) child->collect_weights(trainable, here, out);
}

std::vector<Variable> Layer::trainable_weights() const {
  std::vector<Variable> out;
  collect_weights(true, true, out);
  return out;
}

std::vector<Variable> Layer::non_trainable_weights() const {
  std::vector<Variable> out;
  collect_weights(false, true, out);
  return out;
}

std::vector<Variable> Layer::weights() const {
  std::vector<Variable> out;
  collect_weights(true, true, out);
  collect_weights(false, true, out);
  return out;
}

std::vector<Tensor> Layer::get_weights() const {
  std::vector<Tensor> values;
  for (const Variable& v : weights()) values.push_back(v.value());
  return values;
}

void Layer::set_weights(const std::vector<Tensor>& values) {
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
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].assign(values[i].dtype() == all[i].dtype() ? values[i] : cast(values[i], all[i].dtype()));
  }
}

int64_t Layer::count_params() const {
  if (!built_ && weights().empty() && sublayers().empty()) {
    throw make_error(Code::failed_precondition,
                     "[{}] layer '{}' has no weights yet: they are made at its first call, or by build", class_name(),
                     name());
  }
  int64_t total = 0;
  for (const Variable& v : weights()) total += v.shape().num_elements();
  return total;
}

const Layer::Weight* Layer::find_weight(const Variable& weight) const {
  for (const Weight& w : weights_) {
    if (&w.variable.slot() == &weight.slot()) return &w;
  }
  for (const Layer* child : sublayers()) {
    if (const Weight* found = child->find_weight(weight)) return found;
  }
  return nullptr;
}

const Constraint* Layer::constraint_of(const Variable& weight) const {
  const Weight* found = find_weight(weight);
  return found && found->constraint ? &found->constraint : nullptr;
}

}  // namespace runnel::keras
