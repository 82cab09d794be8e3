#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runnel/tensor/object_graph.h"

namespace runnel {

// An object graph with values that is being brought back: into the objects that are there, and into others when they
// appear. What has no object yet waits at the object whose edge would lead to it; when the edge is made, also much
// later (the weights of a layer, at its first call), the part gets its value before anybody sees another.
//   auto saved = SavedGraph::make(std::move(graph), read);
//   saved->restore(root);
class RUNNEL_API SavedGraph : public std::enable_shared_from_this<SavedGraph> {
 public:
  // The tensors of a value: one for each suffix of its key. Called when the object that has the value is there.
  using Read =
      std::function<std::vector<Tensor>(const std::string& checkpoint_key, const std::vector<std::string>& suffixes)>;
  static std::shared_ptr<SavedGraph> make(ObjectGraph graph, Read read);

  // Gives the object the state of the first node, and so on along the edges. An Error where a value does not fit; no
  // value has changed then. Of two graphs that reach an object the one restored later wins.
  void restore(Trackable& root);

  const ObjectGraph& graph() const { return graph_; }
  // The object that took the state of a node; null if none has, or it is gone.
  Trackable* holder(size_t node) const;

 private:
  friend class Trackable;
  struct Found {
    Trackable* object;
    size_t node;
  };
  struct Pending {
    SavableValue value;
    std::vector<Tensor> tensors;
  };

  SavedGraph(ObjectGraph graph, Read read);
  void give(Trackable& object, size_t node);
  std::vector<Found> reach(Trackable& object, size_t node) const;
  std::vector<Pending> read_values(const std::vector<Found>& found) const;
  void give_slot(Trackable& optimizer, Trackable& variable, const std::string& name, Trackable& slot);

  ObjectGraph graph_;
  Read read_;
  uint64_t number_ = 0;  // of the last restore; grows with every one of any graph
  std::vector<std::weak_ptr<Trackable::Whereabouts>> holders_;
  bool has_slots_ = false;
};

}  // namespace runnel
