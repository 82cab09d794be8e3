#include "runnel/track/restore_status.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <unordered_set>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/compat/v1.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/track/checkpoint_tensor.h"
#include "runnel/track/object_graph_bytes.h"
#include "runnel/track/restoration.h"

namespace runnel::train {
namespace {

using State = RestoreStatus::State;
using Row = RestoreStatus::Row;

constexpr size_t kNamesShown = 10;
constexpr const char* kStateNames[] = {"matched", "pending", "missing", "unused", "mismatched"};

std::string shape_text(const io::CheckpointEntry& entry) { return Shape(entry.shape).str(); }

// "a, b and 3 more"
std::string some_of(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamesShown);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

std::string described(const ObjectGraph::Attribute& attribute) {
  const std::string& name = attribute.value.full_name;
  const std::string key = short_key(attribute.checkpoint_key);
  return name.empty() || name == key ? key : fmt::format("{} ('{}')", key, name);
}

std::vector<std::string> described(const std::vector<const ObjectGraph::Node*>& nodes) {
  std::vector<std::string> names;
  for (const ObjectGraph::Node* node : nodes) names.push_back(described(node->attributes[0]));
  return names;
}

template <class... Args>
Error unmet(fmt::format_string<Args...> text, Args&&... args) {
  return make_error(Code::failed_precondition, text, std::forward<Args>(args)...);
}

// Looks at a restoration; made anew for every question.
class Review {
 public:
  explicit Review(const Restoration& restoration)
      : r_(restoration),
        program_(restoration.checkpoint->graph()),
        path_(restoration.reader ? restoration.reader->prefix() : "") {
    find_matched();
  }

  void assert_something_given() const {
    if (!r_.reader && !was_loaded()) {
      throw unmet(
          "[restore] no checkpoint was given (an empty path), so nothing is restored; latest_checkpoint gives "
          "nothing where there is none yet");
    }
  }

  void assert_for_sessions() const {
    assert_something_given();
    if (!was_loaded()) return;
    throw unmet(
        "[restore] the weights of {} are in the program's variables; a session takes those of checkpoints, which "
        "save_weights writes to a path without an ending",
        r_.loaded_file);
  }

  void assert_existing() const {
    if (was_loaded()) return refuse_loaded({State::missing});
    if (r_.saved->by_name()) {
      assert_all_fit();
      return assert_names();
    }
    const auto unmatched = unmatched_nodes();
    if (unmatched.empty()) return;
    throw unmet("[restore] {} has no value for {} of the program's objects: {}. They keep the values that they had",
                path_, unmatched.size(), some_of(described(unmatched)));
  }

  void assert_consumed() const {
    if (was_loaded()) return refuse_loaded({State::missing, State::unused});
    assert_existing();
    if (r_.saved->by_name()) return;
    const ObjectGraph& file = r_.saved->graph();
    std::vector<std::string> unresolved;
    for (size_t at = 0; at < file.nodes.size(); ++at) {
      if (file.nodes[at].attributes.empty() || r_.saved->holder(at)) continue;
      unresolved.push_back(described(file.nodes[at].attributes[0]));
    }
    if (!unresolved.empty()) {
      throw unmet("[restore] {} of the objects in {} have no object in the program (yet): {}", unresolved.size(), path_,
                  some_of(unresolved));
    }
    std::vector<std::string> unused;
    for (const SavedGraph::Note& note : r_.saved->unused()) {
      unused.push_back(fmt::format("{}: {}", short_key(note.key), note.what));
    }
    if (!unused.empty()) throw unmet("[restore] values in {} were not used: {}", path_, some_of(unused));
  }

  void assert_nontrivial() const {
    if (was_loaded()) {
      const auto is_matched = [](const Row& row) { return row.state == State::matched; };
      if (std::any_of(r_.loaded.begin(), r_.loaded.end(), is_matched)) return;
      throw unmet("[restore] nothing in {} was for a weight of the program", r_.loaded_file);
    }
    if (r_.saved->by_name()) return assert_names();
    size_t taken = 0;
    for (size_t at = 0; at < r_.saved->graph().nodes.size(); ++at) taken += r_.saved->holder(at) ? 1 : 0;
    if (taken > 1) return;
    const auto unmatched = unmatched_nodes();
    if (unmatched.empty()) {
      throw unmet("[restore] nothing in the program to load {} into: its objects have no parts yet", path_);
    }
    throw unmet(
        "[restore] nothing but the root has a counterpart in {}; is it the checkpoint of another program, or were "
        "the parts given other names? Without a value: {}",
        path_, some_of(described(unmatched)));
  }

  // What variables got from the file stands in their slots.
  void restore_in(compat::v1::Session& session) const {
    for (const ObjectGraph::Node& node : program_.nodes) {
      const auto* variable = dynamic_cast<const VariableSlot*>(node.object);
      if (variable && matched(*node.object)) session.load(*variable, node.attributes.at(0).value.get().at(0));
    }
  }
  void initialize_in(compat::v1::Session& session) const {
    std::vector<const VariableSlot*> others;
    for (const ObjectGraph::Node& node : program_.nodes) {
      const auto* variable = dynamic_cast<const VariableSlot*>(node.object);
      if (variable && !matched(*node.object)) others.push_back(variable);
    }
    session.initialize(others);
  }

  std::vector<Row> rows() {
    if (!r_.reader) return r_.loaded;
    r_.saved->by_name() ? add_names() : add_nodes();
    for (const io::CheckpointEntry& entry : r_.reader->entries()) {
      if (entry.key == kObjectGraphKey || seen_.contains(entry.key)) continue;
      add(State::unused, entry.key, entry,
          r_.saved->by_name() ? "no variable has this name" : "no saved object has it");
    }
    std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.state > b.state; });
    return std::move(rows_);
  }

 private:
  bool was_loaded() const { return !r_.loaded_file.empty(); }
  void refuse_loaded(const std::set<State>& states) const {
    std::vector<std::string> names;
    for (const Row& row : r_.loaded) {
      if (!states.contains(row.state)) continue;
      names.push_back(fmt::format("{} ({})", row.name, kStateNames[static_cast<size_t>(row.state)]));
    }
    if (names.empty()) return;
    throw unmet("[restore] not all weights of the program and of {} were matched: {}", r_.loaded_file, some_of(names));
  }

  // What did not fit a part that was made later. With an object graph such a part was refused, and is not there.
  void assert_all_fit() const {
    std::vector<std::string> names;
    for (const SavedGraph::Note& note : r_.saved->misfits()) {
      names.push_back(fmt::format("{}: {}", short_key(note.key), note.what));
    }
    if (!names.empty()) throw unmet("[restore] values in {} do not fit the program: {}", path_, some_of(names));
  }

  void find_matched() {
    if (!r_.saved) return;
    if (!r_.saved->by_name()) {
      for (size_t at = 0; at < r_.saved->graph().nodes.size(); ++at) matched_.insert(r_.saved->holder(at));
      return;
    }
    for (const ObjectGraph::Node& node : program_.nodes) matched_.insert(node.object);
    for (const SavedGraph::Missing& value : r_.saved->missing_names()) matched_.erase(value.object);
  }
  bool matched(const Trackable& object) const { return matched_.contains(&object); }
  // The nodes of the program that have values of their own but took none from the file.
  std::vector<const ObjectGraph::Node*> unmatched_nodes() const {
    std::vector<const ObjectGraph::Node*> found;
    for (const ObjectGraph::Node& node : program_.nodes) {
      if (!node.attributes.empty() && !matched(*node.object)) found.push_back(&node);
    }
    return found;
  }
  // Of the save counter alone it is no fault: programs of TensorFlow 1 had none.
  void assert_names() const {
    std::vector<std::string> missing;
    const Variable& counter = r_.checkpoint->save_counter;
    for (const SavedGraph::Missing& value : r_.saved->missing_names()) {
      if (!value.object || (counter.defined() && value.object == &counter.slot())) continue;
      missing.push_back(value.full_name);
    }
    if (missing.empty()) return;
    throw unmet("[restore] {} was saved by name, and has no value for {} of the program's objects: {}", path_,
                missing.size(), some_of(missing));
  }

  void add(State state, const std::string& name, const io::CheckpointEntry& entry, const std::string& detail) {
    rows_.push_back({state, short_key(name), io::checkpoint_dtype_name(entry.dtype), shape_text(entry), detail});
  }
  // One row for each tensor of a value.
  void add_value(State state, const std::string& key, const std::string& detail) {
    bool any = false;
    for (const char* suffix : {"", "-keys", "-values", "_STATE"}) {
      const io::CheckpointEntry* entry = r_.reader->find(key + suffix);
      if (!entry) continue;
      any = true;
      seen_.insert(entry->key);
      add(state, entry->key, *entry, detail);
    }
    if (!any) rows_.push_back({state, short_key(key), "", "", detail});
  }

  void add_nodes() {
    const ObjectGraph& file = r_.saved->graph();
    std::map<std::string, std::string> faults, leftovers;
    for (const SavedGraph::Note& note : r_.saved->misfits()) faults[note.key] = note.what;
    for (const SavedGraph::Note& note : r_.saved->unused()) leftovers[note.key] = note.what;
    for (size_t at = 0; at < file.nodes.size(); ++at) {
      for (const ObjectGraph::Attribute& attribute : file.nodes[at].attributes) {
        const std::string& key = attribute.checkpoint_key;
        if (faults.contains(key)) {
          add_value(State::mismatched, key, faults[key]);
        } else if (leftovers.contains(key)) {
          add_value(State::unused, key, leftovers[key]);
        } else if (r_.saved->holder(at) && r_.saved->is_second_state(at)) {
          add_value(State::unused, key, "its object has another value of the file");
        } else if (r_.saved->holder(at)) {
          add_value(State::matched, key, "");
        } else {
          add_value(State::pending, key, r_.saved->was_taken(at) ? "the object that took it is gone" : "");
        }
      }
    }
    for (const ObjectGraph::Node* node : unmatched_nodes()) add_missing(*node);
  }

  void add_names() {
    for (const SavedGraph::Note& note : r_.saved->misfits()) add_value(State::mismatched, note.key, note.what);
    for (const ObjectGraph::Node& node : program_.nodes) {
      if (node.attributes.empty()) continue;
      if (matched(*node.object)) {
        add_value(State::matched, node.attributes[0].value.full_name, short_key(node.attributes[0].checkpoint_key));
      } else {
        add_missing(node);
      }
    }
  }

  void add_missing(const ObjectGraph::Node& node) {
    const auto* variable = dynamic_cast<const VariableSlot*>(node.object);
    for (const ObjectGraph::Attribute& attribute : node.attributes) {
      Row& row = rows_.emplace_back();
      row.state = State::missing;
      row.name = short_key(attribute.checkpoint_key);
      if (variable) row.dtype = dtype_name(variable->dtype);
      if (variable) row.shape = variable->shape.str();
      if (!attribute.value.full_name.empty()) row.detail = fmt::format("named '{}'", attribute.value.full_name);
    }
  }

  const Restoration& r_;
  const ObjectGraph program_;
  const std::string path_;
  std::unordered_set<const Trackable*> matched_;
  std::vector<Row> rows_;
  std::set<std::string> seen_;  // keys of the file that have a row
};

}  // namespace

const RestoreStatus& RestoreStatus::assert_consumed(SourceSite where) const {
  at_caller(where, [&] {
    const Review review(*restoration_);
    review.assert_something_given();
    review.assert_consumed();
  });
  return *this;
}

const RestoreStatus& RestoreStatus::assert_existing_objects_matched(SourceSite where) const {
  at_caller(where, [&] {
    const Review review(*restoration_);
    review.assert_something_given();
    review.assert_existing();
  });
  return *this;
}

const RestoreStatus& RestoreStatus::assert_nontrivial_match(SourceSite where) const {
  at_caller(where, [&] {
    const Review review(*restoration_);
    review.assert_something_given();
    review.assert_nontrivial();
  });
  return *this;
}

const RestoreStatus& RestoreStatus::expect_partial() const {
  if (restoration_->saved) restoration_->saved->expect_partial();
  return *this;
}

void RestoreStatus::initialize_or_restore(compat::v1::Session& session, SourceSite where) const {
  at_caller(where, [&] {
    const Review review(*restoration_);
    review.restore_in(session);
    review.initialize_in(session);
  });
}

void RestoreStatus::run_restore_ops(compat::v1::Session& session, SourceSite where) const {
  at_caller(where, [&] {
    const Review review(*restoration_);
    review.assert_for_sessions();
    review.restore_in(session);
  });
}

std::vector<Row> RestoreStatus::rows() const { return Review(*restoration_).rows(); }

std::string RestoreStatus::str() const {
  const bool was_loaded = !restoration_->loaded_file.empty();
  if (!restoration_->reader && !was_loaded) return "nothing restored: no checkpoint was given\n";
  const std::vector<Row> all = rows();
  size_t counts[5] = {};
  size_t name_width = 4, dtype_width = 5, shape_width = 5;
  for (const Row& row : all) {
    ++counts[static_cast<size_t>(row.state)];
    name_width = std::max(name_width, row.name.size());
    dtype_width = std::max(dtype_width, row.dtype.size());
    shape_width = std::max(shape_width, row.shape.size());
  }
  std::string text = (was_loaded ? restoration_->loaded_file : restoration_->reader->prefix()) + ":";
  for (size_t state = 0; state < 5; ++state) {
    if (counts[state] > 0 || state == 0) text += fmt::format(" {} {},", counts[state], kStateNames[state]);
  }
  text.back() = '\n';
  const auto line = [&](const std::string& state, const Row& row) {
    std::string made = fmt::format("{:<10}  {:<{}}  {:<{}}  {:<{}}  {}", state, row.name, name_width, row.dtype,
                                   dtype_width, row.shape, shape_width, row.detail);
    made.erase(made.find_last_not_of(' ') + 1);
    return made + "\n";
  };
  text += line("", {State::matched, "name", "dtype", "shape", ""});
  for (const Row& row : all) text += line(kStateNames[static_cast<size_t>(row.state)], row);
  return text;
}

std::ostream& operator<<(std::ostream& out, const RestoreStatus& status) { return out << status.str(); }

}  // namespace runnel::train
