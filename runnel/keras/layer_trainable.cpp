// Which layers are trainable, now and when a model was compiled.
#include <algorithm>
#include <atomic>

#include "runnel/keras/layer.h"
#include "runnel/keras/walk_path.h"

namespace runnel::keras {
namespace {

std::atomic<uint64_t> num_trainable_changes{0};

}  // namespace

uint64_t Layer::last_trainable_change() { return num_trainable_changes; }

void Layer::set_trainable(bool trainable) {
  refuse_moved_from();
  const WalkPath<struct WalkOfTrainable> path(this);
  if (path.is_circle()) return;
  trainable_is_new_ = trainable_is_new_ || trainable != trainable_;
  trainable_ = trainable;
  ++num_trainable_changes;
  for (Layer* layer : sublayers()) {
    if (!layer->moved_from_) layer->set_trainable(trainable);
  }
}

Layer::TrainableFlags Layer::trainable_flags() const {
  TrainableFlags flags;
  for (const Layer* layer : all_layers()) flags.emplace(layer->id_, layer->trainable_);
  return flags;
}

void Layer::accept_trainable() {
  for (const Layer* layer : all_layers()) const_cast<Layer*>(layer)->trainable_is_new_ = false;
}

Layer::TrainableFlags Layer::exchange_trainable(const TrainableFlags& flags) {
  TrainableFlags before;
  if (flags.empty()) return before;
  for (const Layer* layer : all_layers()) {
    const auto wanted = flags.find(layer->id_);
    if (wanted == flags.end() || wanted->second == layer->trainable_) continue;
    before.emplace(layer->id_, layer->trainable_);
    const_cast<Layer*>(layer)->trainable_ = wanted->second;
  }
  if (!before.empty()) ++num_trainable_changes;
  return before;
}

bool Layer::has_new_trainable(const TrainableFlags& flags) const {
  const std::vector<const Layer*> all = all_layers();
  return std::ranges::any_of(
      all, [&](const Layer* layer) { return layer->trainable_is_new_ && flags.contains(layer->id_); });
}

}  // namespace runnel::keras
