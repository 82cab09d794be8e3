#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/tensor/tensor.h"

namespace runnel {

class SavedGraph;

// A value of an object, as a checkpoint keeps it: one tensor or, of tables, several.
struct SavableValue {
  std::string name;                          // "VARIABLE_VALUE": the end of its key
  std::string full_name;                     // as people know it: "dense/kernel"
  std::vector<std::string> suffixes = {""};  // what the key of each tensor has after that: {"-keys", "-values"}
  std::function<std::vector<Tensor>()> get;
  // An Error that says what does not fit: dtype, shape. `set` comes after it only.
  std::function<void(const std::vector<Tensor>&)> check;
  std::function<void(const std::vector<Tensor>&)> set;
};

// A node of the object graph: an object with named edges to its parts and, where it is a variable, a table or an
// iterator, values of its own. What is saved of a program is what can be reached from one such object; the names along
// the way are the key of a value ("model/dense1/kernel"). docs/object_graph.md has a picture.
class RUNNEL_API Trackable {
 public:
  struct Edge {
    std::string name;
    Trackable* object = nullptr;
    std::shared_ptr<Trackable> owner;  // keeps the part; null for a part that is a member of the object
    Tensor handle;                     // of a variable, table or iterator
  };
  // A variable that an optimizer keeps for another variable.
  struct Slot {
    Trackable* variable;
    std::string name;
    Trackable* slot;
  };

  Trackable() = default;
  virtual ~Trackable();
  Trackable(const Trackable&) = delete;
  Trackable& operator=(const Trackable&) = delete;

  // The node of the object graph that this object is: itself, or one that it has in common with its copies and whose
  // edges and values are meant by everything below.
  virtual Trackable& node() { return *this; }
  const Trackable& node() const { return const_cast<Trackable*>(this)->node(); }
  // In the order in which they were made. One part may be reached under two names.
  const std::vector<Edge>& edges() const { return node().edges_; }
  const Edge* find_edge(std::string_view name) const;
  // What the object graph sees: the edges, and before them those that a class makes up when asked (layer-0, ...).
  virtual std::vector<Edge> children() const { return edges(); }
  virtual std::vector<SavableValue> savable_values() { return {}; }
  // Of optimizers whose slots have no edges of their own.
  virtual std::vector<Slot> slot_variables() const { return {}; }
  // Do the variables in it count as weights of a layer that has it as a part?
  virtual bool holds_weights() const { return true; }

  // A part that is a member of this object. The edge follows the part when that is moved (a std::vector that grows) and
  // goes when it is gone: of a local variable, at the end of its scope. What is to stay is handed over by shared_ptr. A
  // name that is taken is an Error unless it leads to the same part. A value that waits under the name (see SavedGraph)
  // is the part's from then on; so below.
  void track(const std::string& name, Trackable& part, SourceSite where = SourceSite::current());
  void track(const std::string& name, std::shared_ptr<Trackable> part, SourceSite where = SourceSite::current());
  // Variables, tables and iterators: what their handle refers to.
  template <class Part>
    requires requires(const Part& part) {
      { part.handle() } -> std::convertible_to<const Tensor&>;
    }
  void track(const std::string& name, const Part& part, SourceSite where = SourceSite::current()) {
    track_handle(name, part.handle(), where);
  }
  // Random generators: values whose copies share one node.
  template <class Part>
    requires requires(const Part& part) {
      { part.node() } -> std::convertible_to<std::shared_ptr<Trackable>>;
    }
  void track(const std::string& name, const Part& part, SourceSite where = SourceSite::current()) {
    track(name, std::shared_ptr<Trackable>(part.node()), where);
  }
  // The edge keeps its place and leads to another part; a new one if there is none.
  template <class Part>
  void replace(const std::string& name, Part&& part, SourceSite where = SourceSite::current()) {
    const size_t place = hide_edge(name);
    try {
      track(name, std::forward<Part>(part), where);
    } catch (...) {  // the part that was there stays
      show_edge(place, name);
      throw;
    }
    take_place(place);
  }
  void untrack(std::string_view name);
  // The parts of an object change when it is moved or assigned, when members of it end, by `replace` and `untrack`.
  // Every change has a number. The last one in the process, and the last one in this object or the parts in it: what
  // was traced before that knows old parts.
  static uint64_t last_change();
  uint64_t last_change_within() const;

 protected:
  // Edges to and from the object are those of the new one.
  Trackable(Trackable&& other) noexcept;
  // The parts it had are let go. An Error where either object has members as parts, or is a part of the other.
  Trackable& operator=(Trackable&& other);  // NOLINT(performance-noexcept-move-constructor): it throws those Errors
  // An Error for an object with parts that are members of it: their edges lead into the old object.
  void check_movable() const;

  void track_handle(const std::string& name, const Tensor& handle, const SourceSite& where = {});
  // A node without values. Keras's graphs have one wherever an object has a list of settings as an attribute.
  void track_empty(const std::string& name);
  void rename_edge(size_t index, std::string name) { node().edges_[index].name = std::move(name); }
  void move_last_edge(size_t place);
  // Gives what waits at this object to children that it has made up since.
  void settle_children();
  // The object has made a slot: gives it the value that waits for it.
  void slot_made(Trackable& variable, const std::string& name, Trackable& slot);

 private:
  friend class SavedGraph;
  // Where the object is, and whose member.
  struct Whereabouts {
    Trackable* object;
    std::vector<std::weak_ptr<Whereabouts>> holders;
  };
  struct Waiting {
    std::string name;
    std::shared_ptr<SavedGraph> saved;
    size_t node;
  };
  void add(Edge edge);
  // A part that was registered by its address has ended, and its edge is gone.
  virtual void part_ended() {}
  void check_no_part_of(const Trackable& other) const;
  void changed();
  // How an edge is replaced: the old one stands without a name, and goes when the new one, the last, takes its place.
  // The number of edges stands for none.
  size_t hide_edge(std::string_view name);
  void show_edge(size_t place, const std::string& name);
  void take_place(size_t place);
  void settle(const std::string& name, Trackable& part);
  void wait(const std::string& name, std::shared_ptr<SavedGraph> saved, size_t node);
  std::shared_ptr<Whereabouts> self();

  std::vector<Edge> edges_;
  std::vector<Waiting> waiting_;                            // values for parts that are not there yet
  std::vector<std::shared_ptr<SavedGraph>> waiting_slots_;  // likewise for slots
  uint64_t changed_at_ = 0;                                 // the number of the last change of its parts
  uint64_t restored_by_ = 0;                                // the number of the last SavedGraph that reached it
  std::shared_ptr<Whereabouts> self_;                       // made when first asked for; tells when the object is gone
};

// Parts by number, as TensorFlow tracks a Python list: edges "0", "1", ...
class RUNNEL_API TrackableList : public Trackable {
 public:
  size_t size() const { return edges().size(); }
  template <class Part>
  void append(Part&& part, SourceSite where = SourceSite::current()) {
    track(std::to_string(size()), std::forward<Part>(part), where);
  }
  // The elements from there on get other numbers. An index past the end is an Error.
  template <class Part>
  void insert(size_t index, Part&& part, SourceSite where = SourceSite::current()) {
    check_index(index, size() + 1, where);
    append(std::forward<Part>(part), where);
    move_last_edge(index);
    renumber();
  }
  void remove(size_t index, SourceSite where = SourceSite::current());

 private:
  void check_index(size_t index, size_t end, const SourceSite& where) const;
  void renumber();
  void part_ended() override { renumber(); }
};

// Parts by key, as TensorFlow tracks a Python dict.
class RUNNEL_API TrackableDict : public Trackable {
 public:
  size_t size() const { return edges().size(); }
  bool contains(std::string_view key) const { return find_edge(key) != nullptr; }
  // A key that is there leads to the new part.
  template <class Part>
  void set(const std::string& key, Part&& part, SourceSite where = SourceSite::current()) {
    replace(key, std::forward<Part>(part), where);
  }
  void remove(std::string_view key) { untrack(key); }
};

}  // namespace runnel
