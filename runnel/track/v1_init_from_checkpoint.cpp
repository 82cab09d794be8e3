// Values of a checkpoint as initial values of the variables of a graph.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/compat/v1_graph.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/ops/control.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/track/checkpoint_contents.h"
#include "runnel/track/checkpoint_tensor.h"
#include "runnel/track/v1_saver.h"

namespace runnel::compat::v1::train {
namespace {

using Reader = std::shared_ptr<const io::CheckpointReader>;

// One variable, whole or a part of a value.
struct InitOne {
  Variable variable;
  io::CheckpointSlice slice;  // empty: the whole
  PartialShape whole;
};

Tensor read_for(const io::CheckpointReader& reader, const std::string& key, const io::CheckpointSlice& slice) {
  const io::CheckpointEntry& entry = reader.entry(key);
  return slice.empty() ? runnel::train::read_tensor(reader, entry)
                       : runnel::train::read_tensor_slice(reader, entry, slice);
}

class InitFromCheckpoint {
 public:
  explicit InitFromCheckpoint(const std::string& path)
      : contents_(path, Env::posix(), SourceSite()), graph_(executing_eagerly() ? nullptr : &current_state(kCaller)) {}

  void add(const std::string& key, const InitTarget& target) {
    if (!target.variables().empty()) return add_variables(key, parts_of(target.variables()));
    const std::string& name = target.name();
    if (!graph_) {
      throw make_error(Code::failed_precondition,
                       "[init_from_checkpoint] '{}': variables are known by their names in a graph only, and ops run "
                       "eagerly here: give the variable itself",
                       name);
    }
    if (const std::vector<InitOne> named = variables_named(name); !named.empty()) return add_variables(key, named);
    if (!name.ends_with('/') || !key.ends_with('/')) {
      throw make_error(Code::not_found,
                       "[init_from_checkpoint] '{}' for '{}': the graph has no variable of that name. get_variable "
                       "makes those; scopes are written with a slash at the end: 'scope/' for 'other_scope/'",
                       key, name);
    }
    add_scope(key, name);
  }

  // After all were checked.
  void finish() const {
    for (const auto& [key, one] : all_) graph_ ? set_initializer(key, one) : assign(key, one);
  }

 private:
  static constexpr const char* kCaller = "init_from_checkpoint";

  std::vector<InitOne> parts_of(const std::vector<Variable>& variables) const {
    std::vector<InitOne> all;
    std::string name;
    for (const Variable& variable : variables) {
      const auto part = graph_ ? graph_->parts.find(&variable.slot()) : decltype(graph_->parts.end()){};
      if (graph_ && part != graph_->parts.end()) {
        if (!name.empty() && name != part->second.name) {
          throw invalid_argument("[init_from_checkpoint] Slices must all be from the same tensor: {} != {}", name,
                                 part->second.name);
        }
        name = part->second.name;
        all.push_back({variable, part->second.slice, part->second.shape});
      } else if (variables.size() == 1) {
        all.push_back({variable, {}, variable.slot().shape});
      } else {
        throw invalid_argument("[init_from_checkpoint] '{}' is no part of a variable in parts: give it alone",
                               variable.name());
      }
    }
    return all;
  }

  std::vector<InitOne> variables_named(const std::string& name) const {
    std::vector<Variable> found, parts;
    for (const GraphState::Declared& each : graph_->variables) {
      if (each.variable.name() == name) found.push_back(each.variable);
      const auto part = graph_->parts.find(&each.variable.slot());
      if (part != graph_->parts.end() && part->second.name == name) parts.push_back(each.variable);
    }
    return parts_of(found.empty() ? parts : found);
  }

  // All variables of a scope, each from the value of its name in the other scope.
  void add_scope(const std::string& key, const std::string& name) {
    const std::string scope = name == "/" ? "" : name, there = key == "/" ? "" : key;
    std::set<std::string> names;
    for (const GraphState::Declared& each : graph_->variables) {
      const auto part = graph_->parts.find(&each.variable.slot());
      const std::string& own = part == graph_->parts.end() ? each.variable.name() : part->second.name;
      if (own.starts_with(scope)) names.insert(own);
    }
    if (names.empty()) {
      log_warning("[init_from_checkpoint] the graph has no variables in '{}' yet: nothing gets a value of '{}'", name,
                  key);
    }
    for (const std::string& own : names) add_variables(there + own.substr(scope.size()), variables_named(own));
  }

  void add_variables(const std::string& key, const std::vector<InitOne>& variables) {
    const io::CheckpointReader& reader = contents_.reader();
    const io::CheckpointEntry* entry = reader.find(key);
    if (!entry) {
      throw make_error(Code::not_found,
                       "[init_from_checkpoint] Tensor {}, which is for variable '{}', is not found in checkpoint {}; "
                       "`runnel ckpt ls {}` lists what it has",
                       key, variables[0].variable.name(), reader.prefix(), reader.prefix());
    }
    const Shape saved(entry->shape);
    for (const InitOne& one : variables) {
      const VariableSlot& slot = one.variable.slot();
      if (!one.whole.compatible_with(saved) || runnel::train::dtype_of_entry(*entry) != slot.dtype) {
        throw invalid_argument("[init_from_checkpoint] variable {} ({}{}) doesn't match with tensor {} ({}{}) of {}",
                               slot.name, dtype_name(slot.dtype), one.whole.str(), key,
                               io::checkpoint_dtype_name(entry->dtype), saved.str(), reader.prefix());
      }
      all_.emplace_back(key, one);
    }
  }

  // Read whenever the initializer runs.
  void set_initializer(const std::string& key, const InitOne& one) const {
    const auto read = [contents = contents_, key, slice = one.slice](const std::vector<Tensor>&) {
      return std::vector<Tensor>{read_for(contents.reader(), key, slice)};
    };
    const Graph::Scope root(graph_->shared_from_this());
    const VariableSlot& slot = one.variable.slot();
    graph_->set_initial_value(one.variable, host_call(read, {}, {slot.dtype}, {slot.shape})[0]);
  }
  void assign(const std::string& key, const InitOne& one) const {
    one.variable.assign(read_for(contents_.reader(), key, one.slice));
  }

  const runnel::train::CheckpointContents contents_;
  GraphState* const graph_;  // null: ops run eagerly
  std::vector<std::pair<std::string, InitOne>> all_;
};

}  // namespace

void init_from_checkpoint(const std::string& ckpt_dir_or_file, const AssignmentMap& assignment_map, SourceSite where) {
  runnel::at_caller(where, [&] {
    InitFromCheckpoint all(ckpt_dir_or_file);
    AssignmentMap sorted = assignment_map;
    std::ranges::stable_sort(sorted, {}, [](const auto& pair) { return pair.first; });
    for (const auto& [key, target] : sorted) all.add(key, target);
    all.finish();
  });
}

}  // namespace runnel::compat::v1::train
