#include "runnel/tensor/saved_graph.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "runnel/base/format.h"
#include "runnel/base/log.h"

namespace runnel {
namespace {

const Trackable::Edge* edge_named(const std::vector<Trackable::Edge>& edges, const std::string& name) {
  const auto found = std::find_if(edges.begin(), edges.end(), [&](const auto& edge) { return edge.name == name; });
  return found == edges.end() ? nullptr : &*found;
}

// The graphs that are alive. Objects that never end (std::exit, leaks) hold theirs until the program does: what they
// have not used by then is named too.
class LiveGraphs {
 public:
  static LiveGraphs& get() {
    static auto* const live = new LiveGraphs;  // stays: graphs of static objects end after everything else
    return *live;
  }
  void add(SavedGraph* graph) {
    const std::lock_guard lock(mutex_);
    graphs_.insert(graph);
  }
  void remove(SavedGraph* graph) {
    const std::lock_guard lock(mutex_);
    graphs_.erase(graph);
  }

 private:
  LiveGraphs() {
    std::atexit([] { get().finish(); });
  }
  void finish() {
    const std::lock_guard lock(mutex_);
    for (SavedGraph* graph : graphs_) graph->finish();
  }
  std::mutex mutex_;
  std::set<SavedGraph*> graphs_;
};

}  // namespace

const std::string SavedGraph::kAnyName("\0any", 4);

// What is read before anything changes.
struct SavedGraph::Reading {
  std::vector<Pending> pending;
  std::vector<Note> misfits, unused;
  std::vector<NamedValue> named;

  // A value that an object has, and its tensors. One that the object says it cannot use (another library's iterator) is
  // left; one that does not fit is an Error later on.
  void take(size_t node, const std::string& key, SavableValue value, std::vector<Tensor> tensors) {
    try {
      value.check(tensors);
    } catch (const Error& error) {
      (error.code() == Code::unimplemented ? unused : misfits).push_back({node, value.name, key, error.what()});
      return;
    }
    pending.push_back({node, std::move(value), std::move(tensors)});
  }

  // All or none: where one cannot be set (a file that an iterator reads is gone), those before it get back what they
  // had. Variables come first: callables of an iterator may read them, and what they had costs no copy.
  void set_all() {
    std::stable_partition(pending.begin(), pending.end(),
                          [](const Pending& p) { return p.value.name == "VARIABLE_VALUE"; });
    std::vector<std::optional<std::vector<Tensor>>> before;
    size_t done = 0;
    try {
      for (const Pending& p : pending) {
        // What the last one had is not asked for: the state of an iterator may be large.
        before.push_back(&p == &pending.back() ? std::nullopt : value_of(p.value));
        p.value.set(p.tensors);
        ++done;
      }
    } catch (...) {
      while (done-- > 0) {
        if (before[done]) put_back(pending[done].value, *before[done]);
      }
      throw;
    }
  }

 private:
  // None where a variable has no value yet, or an iterator cannot be saved.
  static std::optional<std::vector<Tensor>> value_of(const SavableValue& value) {
    try {
      return value.get();
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  static void put_back(const SavableValue& value, const std::vector<Tensor>& tensors) {
    try {
      value.set(tensors);
    } catch (const Error& error) {  // the Error that came first is the one to throw
      log_error("[restore] '{}' cannot get back what it had: {}", value.full_name, error.what());
    }
  }
};

SavedGraph::SavedGraph(ObjectGraph graph, Read read, std::string source)
    : graph_(std::move(graph)),
      read_(std::move(read)),
      source_(std::move(source)),
      holders_(graph_.nodes.size()),
      taken_(graph_.nodes.size()) {
  for (const ObjectGraph::Node& node : graph_.nodes) has_slots_ = has_slots_ || !node.slot_variables.empty();
  LiveGraphs::get().add(this);
}

std::shared_ptr<SavedGraph> SavedGraph::make(ObjectGraph graph, Read read, std::string source) {
  return std::shared_ptr<SavedGraph>(new SavedGraph(std::move(graph), std::move(read), std::move(source)));
}

std::shared_ptr<SavedGraph> SavedGraph::make_by_name(std::vector<std::string> names, Read read, std::string source) {
  ObjectGraph root_only;
  root_only.nodes.emplace_back();
  const auto made = make(std::move(root_only), std::move(read), std::move(source));
  made->by_name_ = true;
  made->names_ = std::move(names);
  return made;
}

SavedGraph::~SavedGraph() {
  LiveGraphs::get().remove(this);
  finish();
}

void SavedGraph::finish() noexcept {
  if (!restored_ || std::exchange(expect_partial_, true)) return;
  try {
    warn_of_unused();
  } catch (...) {  // no memory for a warning
  }
}

void SavedGraph::restore(Trackable& root, const std::vector<Trackable::Edge>& attached) {
  static std::atomic<uint64_t> count = 0;
  number_ = ++count;
  holders_.assign(graph_.nodes.size(), {});
  taken_.assign(graph_.nodes.size(), false);
  named_values_.clear();
  unused_.clear();
  misfits_.clear();
  second_states_.clear();
  struct Attached {
    SavedGraph& graph;
    ~Attached() {
      graph.attached_to_ = nullptr;
      graph.attached_.clear();
    }
  } const scope{*this};
  attached_to_ = &root.node();
  attached_ = attached;
  give(root.node(), 0);
  restored_ = true;
}

Trackable* SavedGraph::holder(size_t node) const {
  const std::shared_ptr<Trackable::Whereabouts> alive = holders_[node].lock();
  return alive ? alive->object : nullptr;
}

std::vector<Trackable::Edge> SavedGraph::edges_of(const Trackable& object) const {
  std::vector<Trackable::Edge> edges = object.children();
  if (&object == attached_to_) edges.insert(edges.end(), attached_.begin(), attached_.end());
  return edges;
}

void SavedGraph::give(Trackable& object, size_t node) { by_name_ ? give_names(object) : give_nodes(object, node); }

// All of what does not fit, in one Error.
void SavedGraph::refuse_misfits(const Reading& reading) {
  if (reading.misfits.empty()) return;
  std::string list;
  for (const Note& misfit : reading.misfits) list += fmt::format("\n  {}: {}", short_key(misfit.key), misfit.what);
  if (attached_to_) {  // restore itself, not a part that came later
    throw invalid_argument("[restore] {} does not fit the program, and nothing has changed:{}", source_, list);
  }
  throw invalid_argument(
      "[restore] {} does not fit the program, to which a part was added after restore. The part takes nothing from "
      "it; what had its values already keeps them. Make the part as it was when it was saved, or the program anew "
      "without this restore:{}",
      source_, list);
}

// --- along the edges ---

// As messages call a node: by its value, or by the first edge that leads to it.
std::string SavedGraph::node_name(size_t node) const {
  const ObjectGraph::Node& named = graph_.nodes[node];
  if (!named.attributes.empty()) return short_key(named.attributes[0].checkpoint_key);
  for (const ObjectGraph::Node& parent : graph_.nodes) {
    for (const ObjectGraph::Child& child : parent.children) {
      if (child.node == node) return child.name;
    }
  }
  return "the root";
}

// The objects that stand for nodes from here on and have not taken their state yet.
std::vector<SavedGraph::Found> SavedGraph::reach(Trackable& object, size_t node) const {
  std::vector<Found> found;
  std::unordered_map<size_t, Trackable*> object_of;
  const auto stands_for = [&](size_t id) {
    const auto known = object_of.find(id);
    return known == object_of.end() ? holder(id) : known->second;
  };
  const auto meet = [&](Trackable& part, size_t id, const std::string& name) {
    Trackable* other = stands_for(id);
    if (other && other != &part) {
      log_warning(
          "[restore] {}: two objects of the program stand for one object of the checkpoint, '{}': the first has got "
          "its state, the other, '{}', is left as it is",
          source_, node_name(id), name);
    }
    if (other || part.restored_by_ > number_) return;
    found.push_back({&part, id});
    object_of[id] = &part;
  };
  meet(object, node, node_name(node));
  for (size_t i = 0; i < found.size(); ++i) {  // NOLINT(modernize-loop-convert): meet() makes the list longer
    const Found at = found[i];
    const std::vector<Trackable::Edge> edges = edges_of(*at.object);
    for (const ObjectGraph::Child& child : graph_.nodes[at.node].children) {
      if (const auto* edge = edge_named(edges, child.name)) meet(*edge->object, child.node, child.name);
    }
  }
  // The slots that optimizers have already, of variables that have been found.
  for (size_t at = 0; has_slots_ && at < graph_.nodes.size(); ++at) {
    Trackable* optimizer = graph_.nodes[at].slot_variables.empty() ? nullptr : stands_for(at);
    if (!optimizer) continue;
    for (const Trackable::Slot& slot : optimizer->slot_variables()) {
      for (const ObjectGraph::Slot& saved : graph_.nodes[at].slot_variables) {
        if (saved.name != slot.name || stands_for(saved.variable) != slot.variable || stands_for(saved.slot)) continue;
        meet(*slot.slot, saved.slot, slot.name);
      }
    }
  }
  return found;
}

// Keras's optimizers have had their slots as parts since 2.11, and cannot take those of the ones before.
void SavedGraph::refuse_old_slots(const Found& found, Reading& reading) const {
  const ObjectGraph::Node& node = graph_.nodes[found.node];
  if (node.slot_variables.empty() || !found.object->find_edge("_variables")) return;
  const std::vector<ObjectGraph::Attribute>& slot = graph_.nodes[node.slot_variables[0].slot].attributes;
  reading.misfits.push_back({found.node, node.slot_variables[0].name, slot.empty() ? "" : slot[0].checkpoint_key,
                             "the state is that of an optimizer of Keras before 2.11; restore it into one of "
                             "keras::optimizers::legacy, or the model without the optimizer"});
}

void SavedGraph::read_values(const Found& found, Reading& reading) const {
  const std::vector<ObjectGraph::Attribute>& saved = graph_.nodes[found.node].attributes;
  if (saved.empty()) return;
  std::vector<SavableValue> values = found.object->savable_values();
  for (const ObjectGraph::Attribute& attribute : saved) {
    const std::string& name = attribute.value.name;
    const auto value = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.name == name; });
    if (value == values.end()) {
      reading.unused.push_back({found.node, name, attribute.checkpoint_key, "the object has no such value"});
      continue;
    }
    reading.take(found.node, attribute.checkpoint_key, *value, read_(attribute.checkpoint_key, value->suffixes));
  }
}

void SavedGraph::give_nodes(Trackable& object, size_t node) {
  const std::vector<Found> found = reach(object, node);
  Reading reading;
  std::unordered_set<const Trackable*> given;
  for (const Found& f : found) {
    // An object has one state: that of the node which reached it first.
    if (f.object->restored_by_ == number_ || !given.insert(f.object).second) {
      warn_of_second_state(f);
      second_states_.insert(f.node);
    } else {
      refuse_old_slots(f, reading);
      read_values(f, reading);
    }
  }
  const auto forget = [this](size_t id) { std::erase_if(misfits_, [&](const Note& n) { return n.node == id; }); };
  for (const Note& misfit : reading.misfits) {
    forget(misfit.node);
    misfits_.push_back(misfit);
  }
  refuse_misfits(reading);
  reading.set_all();
  unused_.insert(unused_.end(), reading.unused.begin(), reading.unused.end());
  for (const Found& f : found) {
    forget(f.node);
    f.object->restored_by_ = number_;
    holders_[f.node] = f.object->self();
    taken_[f.node] = true;
    const std::vector<Trackable::Edge> edges = edges_of(*f.object);
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

// --- by name ---

void SavedGraph::read_names(const Found& found, Reading& reading) const {
  for (SavableValue& value : found.object->savable_values()) {
    const std::string name = value.full_name;
    std::vector<Tensor> tensors;
    if (!name.empty()) tensors = read_(name, value.suffixes);
    reading.named.push_back({name.empty() ? value.name : name, found.object->self(), !tensors.empty()});
    if (!tensors.empty()) reading.take(0, name, std::move(value), std::move(tensors));
  }
}

void SavedGraph::give_names(Trackable& object) {
  std::vector<Found> found{{&object, 0}};
  std::unordered_set<const Trackable*> met{&object};
  for (size_t i = 0; i < found.size(); ++i) {
    for (const Trackable::Edge& edge : edges_of(*found[i].object)) {
      if (met.insert(edge.object).second) found.push_back({edge.object, 0});
    }
    for (const Trackable::Slot& slot : found[i].object->slot_variables()) {
      if (met.insert(slot.slot).second) found.push_back({slot.slot, 0});
    }
  }
  std::erase_if(found, [&](const Found& f) { return f.object->restored_by_ >= number_; });
  Reading reading;
  for (const Found& f : found) read_names(f, reading);
  for (const NamedValue& value : reading.named) {
    if (value.found) std::erase_if(misfits_, [&](const Note& note) { return note.key == value.full_name; });
  }
  misfits_.insert(misfits_.end(), reading.misfits.begin(), reading.misfits.end());
  refuse_misfits(reading);
  reading.set_all();
  unused_.insert(unused_.end(), reading.unused.begin(), reading.unused.end());
  named_values_.insert(named_values_.end(), reading.named.begin(), reading.named.end());
  for (const Found& f : found) {
    f.object->restored_by_ = number_;
    f.object->wait(kAnyName, shared_from_this(), 0);
  }
  if (!found.empty() && found[0].object == &object) {
    holders_[0] = object.self();
    taken_[0] = true;
  }
}

std::vector<SavedGraph::Missing> SavedGraph::missing_names() const {
  std::vector<Missing> missing;
  for (const NamedValue& value : named_values_) {
    if (value.found) continue;
    const auto alive = value.object.lock();
    missing.push_back({alive ? alive->object : nullptr, value.full_name});
  }
  return missing;
}

std::vector<std::string> SavedGraph::unused_names() const {
  std::set<std::string> used;
  for (const NamedValue& value : named_values_) {
    if (value.found) used.insert(value.full_name);
  }
  std::vector<std::string> unused;
  for (const std::string& name : names_) {
    if (!used.contains(name)) unused.push_back(name);
  }
  return unused;
}

// ---

void SavedGraph::warn_of_second_state(const Found& found) const {
  const std::vector<ObjectGraph::Attribute>& values = graph_.nodes[found.node].attributes;
  if (values.empty() || found.object->savable_values().empty()) return;
  log_warning("[restore] {}: one object of the program stands for several of the checkpoint; the value {} is not used",
              source_, short_key(values[0].checkpoint_key));
}

void SavedGraph::warn_of_unused() const {
  std::vector<std::string> names = by_name_ ? unused_names() : std::vector<std::string>();
  for (size_t at = 0; at < graph_.nodes.size(); ++at) {
    if (taken_[at]) continue;
    for (const ObjectGraph::Attribute& value : graph_.nodes[at].attributes) {
      names.push_back(short_key(value.checkpoint_key));
    }
  }
  for (const Note& note : unused_) names.push_back(short_key(note.key));
  if (names.empty()) return;
  log_warning(
      "[restore] {}: {} of its values were never used: {}. Call expect_partial() on what restore returns if that is "
      "meant",
      source_, names.size(), fmt::join(names, ", "));
}

}  // namespace runnel
