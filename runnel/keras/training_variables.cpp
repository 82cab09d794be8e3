// What a step of training changes.
#include <algorithm>
#include <set>
#include <utility>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/training.h"
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

// What was trainable when a step was first made after compile stays so, as in Keras: a step that is traced again, for
// batches of another size, trains the same as the others. Layers may have been built since then.
std::vector<Variable> Model::variables_to_train() {
  Training& t = training();
  if (!t.in_step) return trainable_variables();
  if (t.num_applied == t.trained.size()) t.trained.emplace_back();
  Training::Trainable& known = t.trained[t.num_applied++];
  if (const size_t count = weights().size(); known.variables.empty() || known.num_weights != count) {
    known = {trainable_variables(), count};
  }
  return known.variables;
}

void Model::warn_of_changed_trainable(const char* who) {
  Training& t = training();
  const uint64_t change = last_trainable_change();
  if (std::exchange(t.seen_trainable_change, change) == change) return;
  const auto& [before, num_weights] = t.after_step;
  if (t.warned_of_trainable || num_weights == 0 || num_weights != weights().size()) return;
  const std::vector<Variable> now = trainable_variables();
  const auto same = [](const Variable& a, const Variable& b) { return &a.slot() == &b.slot(); };
  if (std::ranges::equal(now, before, same)) return;
  t.warned_of_trainable = true;
  log_warning(
      "[{}] Discrepancy between trainable weights and collected trainable weights, did you set `model.trainable` "
      "without calling `model.compile` after? Model '{}' goes on training the {} weights that were trainable when its "
      "training began; now {} are: call compile again for that to count",
      who, name(), before.size(), now.size());
}

void Model::apply_gradients(const Tensor& loss, GradientTape& tape) {
  Optimizer& optimizer = *training().optimizer;
  const std::vector<Variable> variables = variables_to_train();
  if (variables.empty()) {
    const bool is_frozen = !weights().empty();
    throw make_error(Code::failed_precondition, "[fit] model '{}' has no trainable weights. {}", name(),
                     is_frozen ? "All its layers are frozen: set_trainable(true) of those that are to be trained"
                               : "Layers that are members must be registered: keras::Dense dense{this, \"dense\", "
                                 "{...}}; those held by shared_ptr are handed to track(\"name\", layer)");
  }
  warn_of_strays(tape);
  optimizer.minimize(loss, variables, tape, [this](const Variable& v) { return constraint_of(v); });
}

}  // namespace runnel::keras
