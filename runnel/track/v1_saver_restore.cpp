// What a Saver reads: by its own names, and from checkpoints of objects by the names that their variables had.
#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/base/profile_scope.h"
#include "runnel/compat/v1_graph.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/profile_step.h"
#include "runnel/track/checkpoint_tensor.h"
#include "runnel/track/object_graph_bytes.h"
#include "runnel/track/v1_saver.h"

namespace runnel::compat::v1::train {
namespace {

using runnel::train::kObjectGraphKey;
using runnel::train::read_tensor;
using runnel::train::read_tensor_slice;

std::string joined(const std::vector<std::string>& names) {
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i == 0 ? "'" : ", '") + names[i] + "'";
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace

void Saver::restore(Session& session, const std::optional<std::string>& save_path, SourceSite where) {
  at_caller(where, [&] {
    if (!save_path) {
      throw invalid_argument(
          "[Saver.restore] no checkpoint was given (an empty path), as latest_checkpoint gives where there is none "
          "yet; "
          "run global_variables_initializer() then");
    }
    profile::Span span(profile::Kind::checkpoint, "restore checkpoint", profile::current_step());
    if (span) span.set_detail(*save_path);
    restore_values(session, *save_path);
  });
}

void Saver::restore_values(Session& session, const std::string& save_path) const {
  const io::CheckpointReader reader(save_path, *options_.env);
  const std::map<std::string, std::string> keys = keys_in(reader);
  std::vector<std::pair<Variable, Tensor>> all;
  for (const auto& [name, value] : values_) {
    const io::CheckpointEntry& entry = reader.entry(keys.at(name));
    for (const Part& part : value.parts) {
      VariableSlot& slot = part.variable.slot();
      Tensor found;
      const Shape saved(entry.shape);
      if (part.slice.empty()) {
        found = read_tensor(reader, entry);
        const bool fits = slot.shape.compatible_with(saved);
        if (!fits && options_.reshape && slot.shape.is_static() &&
            Shape(slot.shape).num_elements() == saved.num_elements()) {
          found = found.with_shape(Shape(slot.shape));
        }
      } else {
        if (!value.shape.compatible_with(saved)) {
          throw invalid_argument("[Saver.restore] {}: '{}' has shape {} there, and {} is in parts of a variable of {}",
                                 save_path, entry.key, saved.str(), name, value.shape.str());
        }
        found = read_tensor_slice(reader, entry, part.slice);
      }
      try {
        slot.savable_values().at(0).check({found});
      } catch (const Error& error) {
        throw error.reworded(
            fmt::format("[Saver.restore] {}: '{}': {}; no variable was changed", save_path, entry.key, error.what()));
      }
      all.emplace_back(part.variable, found);
    }
  }
  for (const auto& [variable, value] : all) session.load(variable, value);
}

std::map<std::string, std::string> Saver::keys_in(const io::CheckpointReader& reader) const {
  std::map<std::string, std::string> keys;
  std::vector<std::string> missing;
  for (const auto& [name, value] : values_) {
    if (reader.find(name)) {
      keys[name] = name;
    } else {
      missing.push_back(name);
    }
  }
  if (missing.empty()) return keys;
  if (reader.find(kObjectGraphKey)) return keys_by_full_name(reader);
  throw make_error(
      Code::not_found,
      "[Saver.restore] {} has no {}; no variable was changed. `runnel ckpt ls {}` lists what it has; "
      "Saver({{{{\"name there\", variable}}, ...}}) reads variables by other names, and leaves out what is "
      "not to be restored",
      reader.prefix(), joined(missing), reader.prefix());
}

// Of a checkpoint of objects.
std::map<std::string, std::string> Saver::keys_by_full_name(const io::CheckpointReader& reader) const {
  static Once warned;
  if (warned.first()) {
    log_warning(
        "[Saver.restore] {} is a checkpoint of objects; its values are found by the names that the variables "
        "had. train::Checkpoint reads it by its objects",
        reader.prefix());
  }
  std::map<std::string, std::string> by_name;
  const std::string bytes = reader.read_strings(reader.entry(kObjectGraphKey)).at(0);
  for (const ObjectGraph::Node& node : runnel::train::object_graph_from_bytes(bytes).nodes) {
    for (const ObjectGraph::Attribute& attribute : node.attributes) {
      by_name[attribute.value.full_name] = attribute.checkpoint_key;
    }
  }
  std::map<std::string, std::string> keys;
  std::vector<std::string> missing;
  for (const auto& [name, value] : values_) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      missing.push_back(name);
    } else {
      keys[name] = found->second;
      by_name.erase(found);
    }
  }
  if (missing.empty()) return keys;
  std::vector<std::string> others;
  for (const auto& [name, key] : by_name) others.push_back(name);
  throw make_error(Code::not_found,
                   "[Saver.restore] {} is a checkpoint of objects without variables named {}; no variable was changed. "
                   "It has {}. Saver({{{{\"name there\", variable}}, ...}}) reads variables by other names",
                   reader.prefix(), joined(missing), others.empty() ? "no others" : joined(others));
}

}  // namespace runnel::compat::v1::train
