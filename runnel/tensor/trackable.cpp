#include "runnel/tensor/trackable.h"

#include <algorithm>

#include "runnel/base/format.h"

namespace runnel {

const Trackable::Edge* Trackable::find_edge(std::string_view name) const {
  for (const Edge& edge : edges_) {
    if (edge.name == name) return &edge;
  }
  return nullptr;
}

void Trackable::add(Edge edge) {
  if (const Edge* known = find_edge(edge.name)) {
    if (known->object == edge.object && known->variable.impl() == edge.variable.impl()) return;
    throw invalid_argument("[Trackable] the name '{}' leads to another part already: choose another name", edge.name);
  }
  edges_.push_back(std::move(edge));
}

void Trackable::track(const std::string& name, Trackable& part) { add({name, &part, {}}); }

void Trackable::track(const std::string& name, std::shared_ptr<Trackable> keep) {
  add({name, keep.get(), {}});
  kept_.push_back(std::move(keep));
}

void Trackable::track_variable(const std::string& name, const Tensor& handle) { add({name, nullptr, handle}); }

void Trackable::untrack(std::string_view name) {
  const Edge* edge = find_edge(name);
  if (!edge) return;
  const Trackable* part = edge->object;
  edges_.erase(edges_.begin() + (edge - edges_.data()));
  const auto is_part = [part](const Edge& e) { return e.object == part; };
  if (part && std::none_of(edges_.begin(), edges_.end(), is_part)) {
    std::erase_if(kept_, [part](const std::shared_ptr<Trackable>& kept) { return kept.get() == part; });
  }
}

}  // namespace runnel
