#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runnel/tensor/object_graph.h"

namespace runnel {

// An object graph with values that is being brought back: into the objects that are there, and into others when they
// appear. What has no object yet waits at the object whose edge would lead to it; when the edge is made, also much
// later (the weights of a layer, at its first call), the part gets its value before anybody sees another.
//   auto saved = SavedGraph::make(std::move(graph), read, "save/ckpt-1");
//   saved->restore(root);
// It lives as long as somebody holds it or anything waits for it. Values that nobody has taken by then are named in a
// warning, unless they were not expected to be.
class RUNNEL_API SavedGraph : public std::enable_shared_from_this<SavedGraph> {
 public:
  // The tensors of a value: one for each suffix of its key. Called when the object that has the value is there.
  using Read =
      std::function<std::vector<Tensor>(const std::string& checkpoint_key, const std::vector<std::string>& suffixes)>;
  // `source` names it in messages.
  static std::shared_ptr<SavedGraph> make(ObjectGraph graph, Read read, std::string source = "the saved state");
  // Values without a graph, as programs of TensorFlow 1 saved them: every object takes those that have its values' full
  // names. Read is given such a name and gives nothing where there is no value of that name. `names` are all there are.
  static std::shared_ptr<SavedGraph> make_by_name(std::vector<std::string> names, Read read, std::string source);
  ~SavedGraph();

  // Gives the object the state of the first node, and so on along the edges; `attached` edges count as the object's. An
  // Error where values do not fit, which names all of them; no value has changed then. Of two graphs that reach an
  // object the one restored later wins.
  void restore(Trackable& root, const std::vector<Trackable::Edge>& attached = {});
  // An attached edge that was made after restore: its part gets what waits for it.
  static void settle_attached(Trackable& root, const std::string& name, Trackable& part) { root.settle(name, part); }

  const std::string& source() const { return source_; }
  const ObjectGraph& graph() const { return graph_; }
  bool by_name() const { return by_name_; }
  // The object that took the state of a node; null if none has, or it is gone.
  Trackable* holder(size_t node) const;
  bool was_taken(size_t node) const { return taken_[node]; }  // whatever became of the object

  // What became of a value that an object did not take.
  struct Note {
    size_t node;            // 0 of those known by name
    std::string value;      // its name: "VARIABLE_VALUE"
    std::string key;        // or full name
    std::string what = {};  // what is wrong with it
  };
  // Values of nodes whose object is there, but has no such value or cannot use it.
  const std::vector<Note>& unused() const { return unused_; }
  // Values that did not fit parts that were made after restore.
  const std::vector<Note>& misfits() const { return misfits_; }
  // The object of the node has the state of another node, which reached it first.
  bool is_second_state(size_t node) const { return second_states_.contains(node); }
  // Full names of values of the objects that are not there (by name only), with the objects that wanted them.
  struct Missing {
    Trackable* object;  // null where it is gone
    std::string full_name;
  };
  std::vector<Missing> missing_names() const;
  std::vector<std::string> unused_names() const;  // by name only

  void expect_partial() { expect_partial_ = true; }
  // Nothing will be taken from now on: warns, once. The end of the graph and of the program do it.
  void finish() noexcept;

 private:
  friend class Trackable;
  // What a part of any name waits for; no edge has a name like it.
  static const std::string kAnyName;
  struct Found {
    Trackable* object;
    size_t node;
  };
  struct Pending {
    size_t node;
    SavableValue value;
    std::vector<Tensor> tensors;
  };
  struct NamedValue {
    std::string full_name;
    std::weak_ptr<Trackable::Whereabouts> object;
    bool found;
  };
  struct Reading;

  SavedGraph(ObjectGraph graph, Read read, std::string source);
  void give(Trackable& object, size_t node);
  void give_nodes(Trackable& object, size_t node);
  void give_names(Trackable& object);
  std::vector<Trackable::Edge> edges_of(const Trackable& object) const;
  std::string node_name(size_t node) const;
  std::vector<Found> reach(Trackable& object, size_t node) const;
  void refuse_old_slots(const Found& found, Reading& reading) const;
  void read_values(const Found& found, Reading& reading) const;
  void read_names(const Found& found, Reading& reading) const;
  void refuse_misfits(const Reading& reading);
  void give_slot(Trackable& optimizer, Trackable& variable, const std::string& name, Trackable& slot);
  void warn_of_second_state(const Found& found) const;
  void warn_of_unused() const;

  ObjectGraph graph_;
  Read read_;
  std::string source_;
  bool by_name_ = false;
  std::vector<std::string> names_;  // all that there are, by name
  uint64_t number_ = 0;             // of the last restore; grows with every one of any graph
  std::vector<std::weak_ptr<Trackable::Whereabouts>> holders_;
  std::vector<bool> taken_;
  std::vector<NamedValue> named_values_;  // of the objects that were met, by name
  std::vector<Note> unused_, misfits_;
  std::set<size_t> second_states_;          // nodes
  const Trackable* attached_to_ = nullptr;  // during restore
  std::vector<Trackable::Edge> attached_;
  bool has_slots_ = false;
  bool restored_ = false;
  bool expect_partial_ = false;
};

}  // namespace runnel
