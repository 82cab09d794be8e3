// What callbacks keep for a training that is interrupted and resumed.
#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/format.h"
#include "runnel/keras/callbacks.h"
#include "runnel/keras/model_checkpoint.h"

namespace runnel::keras {
namespace {

const Tensor& kept(const Callback::State& state, const std::string& name) {
  const auto found = state.find(name);
  if (found != state.end()) return found->second;
  throw make_error(Code::data_loss, "[callback] the saved state of the callback has no '{}'", name);
}
Tensor numbers(const std::vector<int64_t>& values) { return Tensor::of(values); }
Tensor number(double value) { return Tensor::of(std::vector<double>{value}); }
template <class T>
std::vector<T> kept_values(const Callback::State& state, const std::string& name, size_t count) {
  std::vector<T> values = kept(state, name).to_vector<T>();
  if (values.size() == count) return values;
  throw make_error(Code::data_loss, "[callback] '{}' of the saved state of the callback has {} values, not {}", name,
                   values.size(), count);
}
std::vector<int64_t> kept_numbers(const Callback::State& state, const std::string& name, size_t count) {
  return kept_values<int64_t>(state, name, count);
}
double kept_number(const Callback::State& state, const std::string& name) {
  return kept_values<double>(state, name, 1)[0];
}

std::string weight_key(size_t i) { return fmt::format("best_weights/{}", i); }

}  // namespace

Callback::State EarlyStopping::save_state() const {
  State state{{"counters", numbers({wait_, stopped_epoch_, best_epoch_})}, {"best", number(best_)}};
  for (size_t i = 0; i < best_weights_.size(); ++i) state[weight_key(i)] = best_weights_[i];
  return state;
}
void EarlyStopping::restore_state(const State& state) {
  const std::vector<int64_t> counters = kept_numbers(state, "counters", 3);
  wait_ = counters[0];
  stopped_epoch_ = counters[1];
  best_epoch_ = counters[2];
  best_ = kept_number(state, "best");
  best_weights_.clear();
  while (state.contains(weight_key(best_weights_.size()))) {
    best_weights_.push_back(kept(state, weight_key(best_weights_.size())));
  }
}

Callback::State ReduceLROnPlateau::save_state() const {
  return {{"counters", numbers({wait_, cooldown_left_})}, {"best", number(best_)}};
}
void ReduceLROnPlateau::restore_state(const State& state) {
  const std::vector<int64_t> counters = kept_numbers(state, "counters", 2);
  wait_ = counters[0];
  cooldown_left_ = counters[1];
  best_ = kept_number(state, "best");
}

Callback::State CSVLogger::save_state() const {
  if (!Env::posix().exists(options_.filename)) return {};
  const std::vector<std::byte> bytes = Env::posix().read_file(options_.filename);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  State state{{"text", Tensor::of(std::vector<std::string>{text})}};
  if (!keys_.empty()) state["keys"] = Tensor::of(keys_);
  return state;
}
// Lines of epochs that are trained again go.
void CSVLogger::restore_state(const State& state) {
  if (state.empty()) return;
  const std::string text = kept_values<std::string>(state, "text", 1)[0];
  Env::posix().write_file(options_.filename, as_bytes(text));
  keys_ = state.contains("keys") ? kept(state, "keys").to_vector<std::string>() : std::vector<std::string>();
}

Callback::State ModelCheckpoint::save_state() const {
  return {{"counters", numbers({epoch_, batches_since_save_, last_batch_})}, {"best", number(best_)}};
}
void ModelCheckpoint::restore_state(const State& state) {
  const std::vector<int64_t> counters = kept_numbers(state, "counters", 3);
  epoch_ = counters[0];
  batches_since_save_ = counters[1];
  last_batch_ = counters[2];
  best_ = kept_number(state, "best");
}

}  // namespace runnel::keras
