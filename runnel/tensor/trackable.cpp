#include "runnel/tensor/trackable.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <unordered_set>
#include <utility>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/tensor/saved_graph.h"

namespace runnel {
namespace {

std::atomic<uint64_t> num_changes{0};

// The nodes of this object and of all that is in it, each once.
template <class Visit>
void visit_nodes(const Trackable& object, std::unordered_set<const Trackable*>& met, const Visit& visit) {
  if (!met.insert(&object.node()).second) return;
  visit(object.node());
  for (const Trackable::Edge& edge : object.children()) visit_nodes(*edge.object, met, visit);
}

}  // namespace

Trackable::~Trackable() {
  if (!self_) return;
  for (const auto& weak : self_->holders) {
    const std::shared_ptr<Whereabouts> holder = weak.lock();
    if (!holder) continue;
    std::erase_if(holder->object->edges_, [&](const Edge& e) { return e.object == this && !e.owner; });
    holder->object->changed_at_ = ++num_changes;
    holder->object->part_ended();
  }
}

Trackable::Trackable(Trackable&& other) noexcept
    : edges_(std::move(other.edges_)),
      waiting_(std::move(other.waiting_)),
      waiting_slots_(std::move(other.waiting_slots_)),
      restored_by_(other.restored_by_),
      self_(std::move(other.self_)) {
  other.changed_at_ = ++num_changes;
  if (!self_) return;
  self_->object = this;
  for (const auto& weak : self_->holders) {
    const std::shared_ptr<Whereabouts> holder = weak.lock();
    if (!holder) continue;
    for (Edge& edge : holder->object->edges_) {
      if (edge.object == &other) edge.object = this;
    }
    holder->object->changed_at_ = ++num_changes;
  }
}

// Both stay the members that they are.
// NOLINTNEXTLINE(performance-noexcept-move-constructor)
Trackable& Trackable::operator=(Trackable&& other) {
  if (this == &other) return *this;
  check_movable();
  other.check_movable();
  check_no_part_of(other);
  other.check_no_part_of(*this);
  changed();
  other.changed();
  edges_ = std::move(other.edges_);
  waiting_ = std::move(other.waiting_);
  waiting_slots_ = std::move(other.waiting_slots_);
  restored_by_ = other.restored_by_;
  std::vector<std::weak_ptr<Whereabouts>> mine, others;
  if (self_) mine = std::move(self_->holders);
  if (other.self_) others = std::move(other.self_->holders);
  self_ = std::move(other.self_);
  if (self_) self_->object = this;
  if (!mine.empty()) self()->holders = std::move(mine);
  if (!others.empty()) other.self()->holders = std::move(others);
  return *this;
}

void Trackable::check_movable() const {
  for (const Edge& edge : edges_) {
    if (edge.owner) continue;
    throw make_error(
        Code::failed_precondition,
        "[Trackable] the object cannot be moved: its part '{}' is a member that is registered by its "
        "address ({{this, \"{}\"}}). Make the object with std::make_shared or std::make_unique, and return "
        "the pointer",
        edge.name, edge.name);
  }
}

// Else the other object could go with the old parts of this one while it is being taken over.
void Trackable::check_no_part_of(const Trackable& other) const {
  if (&other.node() == &node()) return;
  std::unordered_set<const Trackable*> met;
  visit_nodes(other, met, [&](const Trackable& part) {
    if (&part != &node()) return;
    throw make_error(Code::failed_precondition,
                     "[Trackable] an object and a part of it cannot be assigned to each other. Move the one on the "
                     "right into a variable of its own first: auto part = std::move(inner); outer = std::move(part)");
  });
}

void Trackable::changed() { node().changed_at_ = ++num_changes; }

uint64_t Trackable::last_change() { return num_changes; }

uint64_t Trackable::last_change_within() const {
  uint64_t last = 0;
  std::unordered_set<const Trackable*> met;
  visit_nodes(*this, met, [&](const Trackable& part) { last = std::max(last, part.changed_at_); });
  return last;
}

const Trackable::Edge* Trackable::find_edge(std::string_view name) const {
  for (const Edge& edge : edges()) {
    if (edge.name == name) return &edge;
  }
  return nullptr;
}

void Trackable::add(Edge edge) {
  if (Trackable& shared = node(); &shared != this) return shared.add(std::move(edge));
  const auto known = std::find_if(edges_.begin(), edges_.end(), [&](const Edge& e) { return e.name == edge.name; });
  if (known != edges_.end()) {
    if (known->object != edge.object) {
      throw invalid_argument("[Trackable] the name '{}' leads to another part already: choose another name", edge.name);
    }
    if (!known->owner)
      known->owner = std::move(edge.owner);  // handed over by pointer this time: it is kept from now on
    return;
  }
  const std::string name = edge.name;
  Trackable& part = *edge.object;
  edges_.push_back(std::move(edge));
  try {
    settle(name, part);
  } catch (...) {  // the value does not fit: there is no such part, and the value goes on waiting
    untrack(name);
    throw;
  }
}

void Trackable::track(const std::string& name, Trackable& part, SourceSite where) {
  Trackable& member = part.node();
  at_caller(where, [&] { add({name, &member, nullptr, {}}); });
  member.self()->holders.push_back(node().self());
}

void Trackable::track(const std::string& name, std::shared_ptr<Trackable> part, SourceSite where) {
  at_caller(where, [&] {
    if (!part) throw invalid_argument("[Trackable] the part '{}' is null", name);
    Trackable* object = &part->node();
    add({name, object, std::move(part), {}});
  });
}

void Trackable::track_handle(const std::string& name, const Tensor& handle, const SourceSite& where) {
  std::shared_ptr<Trackable> part;
  if (handle.defined() && handle.dtype() == DType::resource && !handle.is_symbolic() && handle.num_elements() == 1) {
    part = std::dynamic_pointer_cast<Trackable>(handle.data<ResourceHandle>()->object);
  }
  at_caller(where, [&] {
    if (!part) {
      throw invalid_argument("[Trackable] the part '{}' was never made, or is nothing that can be saved", name);
    }
    Trackable* object = part.get();
    add({name, object, std::move(part), handle});
  });
}

void Trackable::track_empty(const std::string& name) {
  if (!find_edge(name)) track(name, std::make_shared<TrackableList>());
}

size_t Trackable::hide_edge(std::string_view name) {
  std::vector<Edge>& all = node().edges_;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Edge& edge) { return edge.name == name; });
  if (found != all.end()) found->name.clear();
  return static_cast<size_t>(found - all.begin());
}

void Trackable::show_edge(size_t place, const std::string& name) {
  if (place < edges().size()) rename_edge(place, name);
}

void Trackable::take_place(size_t place) {
  std::vector<Edge>& all = node().edges_;
  if (place + 1 == all.size()) return;  // there was none
  // The old part may end with its edge, and take other edges to it along: the list is in order by then.
  const Edge old = std::exchange(all[place], std::move(all.back()));
  all.pop_back();
  changed();
}

void Trackable::untrack(std::string_view name) {
  std::vector<Edge>& all = node().edges_;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Edge& edge) { return edge.name == name; });
  if (found == all.end()) return;
  const Edge old = std::move(*found);  // as above
  all.erase(found);
  changed();
}

void Trackable::move_last_edge(size_t place) {
  std::vector<Edge>& all = node().edges_;
  std::rotate(all.begin() + static_cast<std::ptrdiff_t>(place), all.end() - 1, all.end());
}

// --- values that wait ---

void Trackable::wait(const std::string& name, std::shared_ptr<SavedGraph> saved, size_t node) {
  std::erase_if(waiting_, [&](const Waiting& w) { return w.name == name; });
  waiting_.push_back({name, std::move(saved), node});
}

void Trackable::settle(const std::string& name, Trackable& part) {
  const auto waits_for = [&](const std::string& wanted) -> std::optional<Waiting> {
    for (const Waiting& w : waiting_) {
      if (w.name == wanted) return w;
    }
    return std::nullopt;
  };
  if (const auto it = waits_for(name)) {
    it->saved->give(part, it->node);
    std::erase_if(waiting_, [&](const Waiting& w) { return w.name == name && w.saved == it->saved; });
  }
  if (const auto any = waits_for(SavedGraph::kAnyName)) any->saved->give(part, any->node);
}

void Trackable::settle_children() {
  if (waiting_.empty()) return;
  for (const Edge& edge : children()) settle(edge.name, *edge.object);
}

void Trackable::slot_made(Trackable& variable, const std::string& name, Trackable& slot) {
  const std::vector<std::shared_ptr<SavedGraph>> waiting = waiting_slots_;
  for (const auto& saved : waiting) saved->give_slot(*this, variable, name, slot);
}

std::shared_ptr<Trackable::Whereabouts> Trackable::self() {
  if (!self_) self_ = std::make_shared<Whereabouts>(Whereabouts{this, {}});
  return self_;
}

// --- containers ---

void TrackableList::check_index(size_t index, size_t end, const SourceSite& where) const {
  if (index < end) return;
  throw at_line(make_error(Code::out_of_range, "[TrackableList] has {} elements, asked for number {}", size(), index),
                where);
}

void TrackableList::remove(size_t index, SourceSite where) {
  check_index(index, size(), where);
  untrack(std::string(edges()[index].name));
  renumber();
}

void TrackableList::renumber() {
  for (size_t i = 0; i < size(); ++i) rename_edge(i, std::to_string(i));
}

}  // namespace runnel
