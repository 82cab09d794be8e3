#include "runnel/tensor/saved_graph.h"

#include <algorithm>
#include <atomic>

#include "runnel/base/log.h"

namespace runnel {
namespace {

const Trackable::Edge* edge_named(const std::vector<Trackable::Edge>& edges, const std::string& name) {
  const auto found = std::find_if(edges.begin(), edges.end(), [&](const auto& edge) { return edge.name == name; });
  return found == edges.end() ? nullptr : &*found;
}

}  // namespace

SavedGraph::SavedGraph(ObjectGraph graph, Read read)
    : graph_(std::move(graph)), read_(std::move(read)), holders_(graph_.nodes.size()) {
  for (const ObjectGraph::Node& node : graph_.nodes) has_slots_ = has_slots_ || !node.slot_variables.empty();
}

std::shared_ptr<SavedGraph> SavedGraph::make(ObjectGraph graph, Read read) {
  return std::shared_ptr<SavedGraph>(new SavedGraph(std::move(graph), std::move(read)));
}

void SavedGraph::restore(Trackable& root) {
  static std::atomic<uint64_t> count = 0;
  number_ = ++count;
  holders_.assign(graph_.nodes.size(), {});
  give(root.node(), 0);
}

Trackable* SavedGraph::holder(size_t node) const {
  const std::shared_ptr<Trackable::Whereabouts> alive = holders_[node].lock();
  return alive ? alive->object : nullptr;
}

// The objects that stand for nodes from here on and have not taken their state yet.
std::vector<SavedGraph::Found> SavedGraph::reach(Trackable& object, size_t node) const {
  std::vector<Found> found;
  const auto stands_for = [&](size_t id) {
    for (const Found& f : found) {
      if (f.node == id) return f.object;
    }
    return holder(id);
  };
  const auto meet = [&](Trackable& part, size_t id) {
    Trackable* other = stands_for(id);
    if (other && other != &part) {
      write_log(LogLevel::warning,
                "[restore] two objects of the program stand for one object of the checkpoint: the first has got its "
                "state, the other is left as it is");
    }
    if (!other && part.restored_by_ <= number_) found.push_back({&part, id});
  };
  meet(object, node);
  for (size_t i = 0; i < found.size(); ++i) {
    const Found at = found[i];
    const std::vector<Trackable::Edge> edges = at.object->children();
    for (const ObjectGraph::Child& child : graph_.nodes[at.node].children) {
      if (const auto* edge = edge_named(edges, child.name)) meet(*edge->object, child.node);
    }
  }
  // The slots that optimizers have already, of variables that have been found.
  for (size_t at = 0; has_slots_ && at < graph_.nodes.size(); ++at) {
    Trackable* optimizer = graph_.nodes[at].slot_variables.empty() ? nullptr : stands_for(at);
    if (!optimizer) continue;
    for (const Trackable::Slot& slot : optimizer->slot_variables()) {
      for (const ObjectGraph::Slot& saved : graph_.nodes[at].slot_variables) {
        if (saved.name != slot.name || stands_for(saved.variable) != slot.variable || stands_for(saved.slot)) continue;
        meet(*slot.slot, saved.slot);
      }
    }
  }
  return found;
}

std::vector<SavedGraph::Pending> SavedGraph::read_values(const std::vector<Found>& found) const {
  std::vector<Pending> pending;
  for (const Found& f : found) {
    const std::vector<ObjectGraph::Attribute>& saved = graph_.nodes[f.node].attributes;
    if (saved.empty()) continue;
    for (SavableValue& value : f.object->savable_values()) {
      for (const ObjectGraph::Attribute& attribute : saved) {
        if (attribute.value.name != value.name) continue;
        std::vector<Tensor> tensors = read_(attribute.checkpoint_key, value.suffixes);
        value.check(tensors);
        pending.push_back({std::move(value), std::move(tensors)});
        break;
      }
    }
  }
  return pending;
}

void SavedGraph::give(Trackable& object, size_t node) {
  const std::vector<Found> found = reach(object, node);
  for (const Pending& p : read_values(found)) p.value.set(p.tensors);
  for (const Found& f : found) {
    f.object->restored_by_ = number_;
    holders_[f.node] = f.object->self();
    const std::vector<Trackable::Edge> edges = f.object->children();
    for (const ObjectGraph::Child& child : graph_.nodes[f.node].children) {
      if (!edge_named(edges, child.name)) f.object->wait(child.name, shared_from_this(), child.node);
    }
    if (!graph_.nodes[f.node].slot_variables.empty()) f.object->waiting_slots_ = {shared_from_this()};
  }
}

void SavedGraph::give_slot(Trackable& optimizer, Trackable& variable, const std::string& name, Trackable& slot) {
  for (size_t at = 0; at < graph_.nodes.size(); ++at) {
    if (holder(at) != &optimizer) continue;
    for (const ObjectGraph::Slot& saved : graph_.nodes[at].slot_variables) {
      if (saved.name == name && holder(saved.variable) == &variable && !holder(saved.slot)) give(slot, saved.slot);
    }
  }
}

}  // namespace runnel
