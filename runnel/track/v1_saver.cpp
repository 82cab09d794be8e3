#include "runnel/track/v1_saver.h"

#include <chrono>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/base/profile_scope.h"
#include "runnel/compat/v1_graph.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/profile_step.h"
#include "runnel/track/checkpoint_tensor.h"

namespace runnel::compat::v1::train {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

SaverVariables::SaverVariables(std::initializer_list<Variable> variables)
    : SaverVariables(std::vector<Variable>(variables)) {}
SaverVariables::SaverVariables(const std::vector<Variable>& variables) : variables_(std::in_place) {
  for (const Variable& v : variables) variables_->emplace_back("", v);
}
SaverVariables::SaverVariables(const PartitionedVariable& variable) : SaverVariables(variable.parts()) {}
SaverVariables::SaverVariables(std::initializer_list<Named> variables) : variables_(variables) {}
SaverVariables::SaverVariables(const std::map<std::string, Variable>& variables)
    : variables_(std::in_place, variables.begin(), variables.end()) {}

Saver::Saver(const SaverVariables& var_list, const SaverOptions& options)
    : options_(options), next_to_preserve_(seconds_since_1970() + options.keep_checkpoint_every_n_hours * 3600) {
  if (options.max_to_keep < 0) {
    throw invalid_argument("[Saver] max_to_keep is {}; it is at least 0, which keeps all", options.max_to_keep);
  }
  current_state("Saver");
  if (var_list.variables_) {
    for (const auto& [name, variable] : *var_list.variables_) add(name, variable);
  } else {
    for (const Variable& variable : global_variables()) add("", variable);
  }
  if (values_.empty()) {
    throw invalid_argument("[Saver] there are no variables to save: make the Saver after the graph's variables");
  }
}

void Saver::add(const std::string& name, const Variable& variable) {
  if (!variable.defined()) throw invalid_argument("[Saver] the variable '{}' was never made", name);
  GraphState& state = current_state("Saver");
  const VariableSlot& slot = state.declared(variable).variable.slot();
  const auto part = state.parts.find(&slot);
  const bool sliced = part != state.parts.end();
  const std::string key = !name.empty() ? name : sliced ? part->second.name : slot.name;
  Value& value = values_[key];
  if (!value.parts.empty() && !(sliced && value.sliced)) {
    throw invalid_argument(
        "[Saver] two variables have the name '{}': give them others, as in Saver({{{{\"name\", "
        "variable}}, ...}})",
        key);
  }
  value.sliced = sliced;
  value.shape = sliced ? part->second.shape : slot.shape;
  value.parts.push_back({variable, sliced ? part->second.slice : io::CheckpointSlice()});
}

std::vector<std::string> Saver::last_checkpoints() const {
  std::vector<std::string> prefixes;
  for (const Kept& each : kept_) prefixes.push_back(each.prefix);
  return prefixes;
}

std::string Saver::save(Session& session, const std::string& save_path, const GlobalStep& global_step,
                        const SaverSave& options, SourceSite where) {
  return at_caller(where, [&] {
    const std::string& state_name = options.latest_filename;
    if (state_name.empty() || state_name.find('/') != std::string::npos) {
      throw invalid_argument("[Saver.save] latest_filename is a name without a folder, not '{}'", state_name);
    }
    std::string prefix = save_path;
    if (global_step.number_ || global_step.fetch_) {
      const int64_t step =
          global_step.number_ ? *global_step.number_ : static_cast<int64_t>(session.run(*global_step.fetch_));
      prefix += options_.pad_step_number ? fmt::format("-{:08}", step) : fmt::format("-{}", step);
    } else if (save_path.substr(save_path.rfind('/') + 1) == state_name) {
      throw invalid_argument("[Saver.save] '{}' is the name of the state file; save under another one", save_path);
    }
    write(session, prefix, [&] {
      if (!options.write_state) return;
      record(prefix, options);
      remove_old();
    });
    return prefix;
  });
}

void Saver::write(Session& session, const std::string& prefix, FunctionRef<void()> and_then) const {
  profile::Span span(profile::Kind::checkpoint, "write checkpoint", profile::current_step());
  if (span) span.set_detail(prefix);
  // All values are of one moment, before the first is written.
  std::map<std::string, std::vector<Tensor>> now;
  for (const auto& [key, value] : values_) {
    for (const Part& part : value.parts) now[key].push_back(session.value_of(part.variable));
  }
  io::CheckpointWriter writer(prefix, *options_.env);
  for (const auto& [key, value] : values_) {
    for (size_t i = 0; i < value.parts.size(); ++i) {
      const Tensor tensor = now[key][i].to_host();
      if (value.sliced) {
        const std::vector<int64_t> whole(value.shape.begin(), value.shape.end());
        writer.add_part(key, static_cast<int>(tensor.dtype()), whole, value.parts[i].slice,
                        {static_cast<const std::byte*>(tensor.raw()), tensor.num_bytes()});
      } else {
        runnel::train::write_tensor(writer, key, tensor);
      }
    }
  }
  writer.finish(and_then);
}

void Saver::record(const std::string& prefix, const SaverSave& options) {
  if (options_.max_to_keep > 0) {
    // Also where the state file could not be written before: what is saved now is not removed.
    for (std::vector<Kept>* each : {&kept_, &to_remove_}) {
      std::erase_if(*each, [&](const Kept& old) { return io::is_same_checkpoint(old.prefix, prefix); });
    }
    kept_.push_back({prefix, seconds_since_1970()});
    if (kept_.size() > static_cast<size_t>(options_.max_to_keep)) {
      to_remove_.push_back(kept_.front());
      kept_.erase(kept_.begin());
    }
  }
  io::CheckpointState state{.model_checkpoint_path = prefix, .all_model_checkpoint_paths = last_checkpoints()};
  io::write_checkpoint_state(
      parent_dir(prefix), state,
      {.latest_filename = options.latest_filename, .relative_paths = options_.save_relative_paths}, *options_.env);
}

void Saver::remove_old() {
  if (to_remove_.empty()) return;
  const Kept oldest = to_remove_.front();
  to_remove_.erase(to_remove_.begin());
  if (oldest.time > next_to_preserve_) {
    next_to_preserve_ += options_.keep_checkpoint_every_n_hours * 3600;
    return;
  }
  try {
    io::remove_checkpoint(oldest.prefix, *options_.env);
  } catch (const Error& error) {
    log_warning("[Saver] the old checkpoint {} stays: {}", oldest.prefix, error.what());
  }
}

}  // namespace runnel::compat::v1::train
