// What layers add to the loss.
#include <unordered_set>

#include "runnel/graph/name_scope.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/layer.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"

namespace runnel::keras {

void Layer::add_loss(const Tensor& loss) { CallLosses::add(id_, loss); }

void Layer::regularize_activity(const Nest& outputs) {
  const NameScope scope("ActivityRegularizer");
  for (const Tensor& t : nest::flatten(outputs)) {
    const Tensor batch = cast(shape(t)[0], t.dtype());
    add_loss(activity_regularizer_(t) / batch);
  }
}

// An outermost call begins. What the layers in it added goes too, for the call need not reach all of them.
void Layer::forget_losses() const {
  if (CallLosses::drop_ended()) return;
  for (const Layer* layer : all_layers()) CallLosses::forget(layer->id_);
}

// This one and those in it at any depth, each once, however many ways lead to it.
std::vector<const Layer*> Layer::all_layers() const {
  std::vector<const Layer*> all;
  std::unordered_set<const Layer*> met;
  const auto visit = [&](const auto& self, const Layer* layer) -> void {
    if (!met.insert(layer).second) return;
    all.push_back(layer);
    for (const Layer* inner : layer->sublayers()) self(self, inner);
  };
  visit(visit, this);
  return all;
}

std::vector<Tensor> Layer::losses() const {
  refuse_moved_from();
  std::vector<Tensor> all;
  for (const Layer* layer : all_layers()) {
    const std::vector<Tensor> added = CallLosses::of(layer->id_);
    all.insert(all.end(), added.begin(), added.end());
    for (const WeightRules& w : layer->rules_) {
      if (!w.regularizer || !layer->trainable_) continue;
      const NameScope scope(w.variable.name() + "/Regularizer");
      all.push_back(w.regularizer(w.variable.value()));
    }
  }
  return all;
}

}  // namespace runnel::keras
