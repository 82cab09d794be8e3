// What a step of training changes.
#include <algorithm>
#include <set>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/training.h"
#include "runnel/op/composed.h"
#include "runnel/ops/variable_slot.h"

namespace runnel::keras {

// Trainable variables that the step read and that are no part of the model.
void Model::warn_of_strays(const GradientTape& tape) const {
  std::set<uint64_t> known;
  for (const Variable& v : weights()) known.insert(v.slot().id);
  std::vector<Variable> others = tape.watched_variables();
  std::erase_if(others, [&](const Variable& v) { return known.contains(v.slot().id); });
  std::string names;
  for (const Variable& v : StrayVariables::add(others)) names += (names.empty() ? "" : ", ") + v.name();
  if (names.empty()) return;
  log_warning(
      "[fit] model '{}' uses trainable variables that are no part of it, and does not train or save them: {}. Register "
      "the layers that are members with {{this, \"name\"}}, those held by shared_ptr and variables with "
      "track(\"name\", part)",
      name(), names);
}

// As in Keras, training has every layer as it was when the model was compiled, and leaves it as it was before. A
// discriminator that was frozen after its own compile, for that of the model around it, trains when it is trained
// alone. Layers that were not there then, and what is set while training runs, count as they are.
void Model::with_compiled_trainable(const char* who, const std::function<void()>& train) {
  const TrainableFlags before = restore_compiled_trainable(who);
  const uint64_t change = last_trainable_change();
  try {
    train();
    if (last_trainable_change() != change) accept_trainable();  // a step or callback meant it so: nothing to warn of
  } catch (...) {
    exchange_trainable(before);
    throw;
  }
  exchange_trainable(before);
}

// Returns what the layers had; nothing where they are as they were at compile.
Layer::TrainableFlags Model::restore_compiled_trainable(const char* who) {
  Training& t = training();
  const uint64_t change = last_trainable_change();
  if (t.seen_trainable_change == change) return {};
  TrainableFlags before = trainable_flags();
  const TrainableFlags changed = exchange_trainable(t.compiled_trainable);
  if (changed.empty()) {
    t.seen_trainable_change = change;
    return {};
  }
  if (!t.warned_of_trainable && has_new_trainable(changed)) warn_of_changed_trainable(who, changed);
  return before;
}

// The layers are as they were at compile; `changed` is what had become of them. What another model was compiled with
// since then was meant for that one.
void Model::warn_of_changed_trainable(const char* who, const TrainableFlags& changed) {
  const std::vector<Variable> compiled = trainable_variables();
  const TrainableFlags flags = exchange_trainable(changed);
  const std::vector<Variable> now = trainable_variables();
  exchange_trainable(flags);
  const auto same = [](const Variable& a, const Variable& b) { return &a.slot() == &b.slot(); };
  const bool has_weights = !weights().empty();  // else they are made by the first step
  if (has_weights && std::ranges::equal(now, compiled, same)) return;
  training().warned_of_trainable = true;
  log_warning(
      "[{}] Discrepancy between trainable weights and collected trainable weights, did you set `model.trainable` "
      "without calling `model.compile` after? Model '{}' goes on training {} trainable when it was compiled{}: call "
      "compile again for the change to count",
      who, name(), has_weights ? fmt::format("the {} weights that were", compiled.size()) : "what was",
      has_weights ? fmt::format("; now {} are", now.size()) : "");
}

void Model::apply_gradients(const Tensor& loss, GradientTape& tape, SourceSite where) {
  composed(where, [&] {
    Optimizer& optimizer = *training().optimizer;
    const std::vector<Variable> variables = trainable_variables();
    if (variables.empty()) {
      const bool is_frozen = !weights().empty();
      throw make_error(Code::failed_precondition, "[fit] model '{}' has no trainable weights. {}", name(),
                       is_frozen
                           ? "All its layers are frozen: set_trainable(true) of those that are to be trained, then "
                             "compile"
                           : "Layers that are members must be registered: keras::Dense dense{this, \"dense\", "
                             "{...}}; those held by shared_ptr are handed to track(\"name\", layer)");
    }
    warn_of_strays(tape);
    optimizer.minimize(loss, variables, tape, [this](const Variable& v) { return constraint_of(v); });
  });
}

}  // namespace runnel::keras
