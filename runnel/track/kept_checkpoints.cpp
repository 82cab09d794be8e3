#include "runnel/track/kept_checkpoints.h"

#include <algorithm>
#include <utility>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/io/checkpoint_names.h"

namespace runnel::train {
namespace {

constexpr const char* kStateFile = "checkpoint";

}  // namespace

KeptCheckpoints::KeptCheckpoints(std::string directory, const KeepRules& rules, std::function<double()> clock, Env& env)
    : directory_(std::move(directory)), rules_(rules), clock_(std::move(clock)), env_(env) {
  const double now = clock_();
  const std::optional<io::CheckpointState> state = io::read_checkpoint_state(directory_, kStateFile, env_);
  if (!state) {
    folder_.last_preserved = now - 1;  // a checkpoint that is saved at once is newer, and so looked after
    return;
  }
  const double ahead = state->last_preserved_timestamp - now;
  if (ahead > 0) {
    log_warning(
        "[CheckpointManager] {}: the clock stands {:.0f} seconds before the time of its last preserved "
        "checkpoint",
        directory_, ahead);
  }
  folder_.last_preserved = std::min(state->last_preserved_timestamp, now);
  folder_.latest = state->model_checkpoint_path;
  take_over(folder_, *state, now);
}

KeptCheckpoints::Folder KeptCheckpoints::now() const {
  const std::lock_guard lock(mutex_);
  return folder_;
}
void KeptCheckpoints::set(Folder folder) {
  const std::lock_guard lock(mutex_);
  folder_ = std::move(folder);
}

std::optional<std::string> KeptCheckpoints::latest() const { return now().latest; }

std::vector<std::string> KeptCheckpoints::all() const {
  std::vector<std::string> prefixes;
  for (const Kept& each : now().kept) prefixes.push_back(each.prefix);
  return prefixes;
}

// Checkpoints that are not newer than the last preserved one stay for ever: nobody looks after them.
void KeptCheckpoints::take_over(Folder& folder, const io::CheckpointState& state, double now) const {
  const std::vector<double>& times = state.all_model_checkpoint_timestamps;
  for (size_t i = 0; i < state.all_model_checkpoint_paths.size(); ++i) {
    const std::string& prefix = state.all_model_checkpoint_paths[i];
    const double time = std::min(i < times.size() ? times[i] : folder.last_preserved, now);
    const auto known = std::ranges::find_if(
        folder.kept, [&](const Kept& each) { return io::is_same_checkpoint(each.prefix, prefix); });
    if (known != folder.kept.end()) {
      known->time = std::max(known->time, time);
    } else if (time > folder.last_preserved) {
      folder.kept.push_back({prefix, time});
    }
  }
}

// What other processes have saved here since. Returns those that are no checkpoints any more: others removed them, or
// died while they did and left a part.
std::vector<std::string> KeptCheckpoints::take_over_others(Folder& folder, double now) const {
  std::vector<std::string> gone;
  const std::string path = join_path(directory_, kStateFile);
  if (!env_.exists(path)) return gone;
  const std::vector<std::byte> bytes = env_.read_file(path);
  if (std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == written_) return gone;
  const std::optional<io::CheckpointState> state = io::read_checkpoint_state(directory_, kStateFile, env_);
  if (!state) return gone;
  folder.last_preserved = std::max(folder.last_preserved, std::min(state->last_preserved_timestamp, now));
  take_over(folder, *state, now);
  std::erase_if(folder.kept, [&](const Kept& each) {
    if (io::checkpoint_exists(each.prefix, env_)) return false;
    gone.push_back(each.prefix);
    return true;
  });
  std::ranges::stable_sort(folder.kept, {}, &Kept::time);
  return gone;
}

void KeptCheckpoints::add(const std::string& prefix) {
  const double time = clock_();
  Folder folder = now();
  std::vector<std::string> removed = take_over_others(folder, time);
  std::erase_if(removed, [&](const std::string& gone) { return io::is_same_checkpoint(gone, prefix); });
  std::erase_if(folder.kept, [&](const Kept& each) { return io::is_same_checkpoint(each.prefix, prefix); });
  folder.kept.push_back({prefix, time});
  folder.latest = prefix;
  write_state(folder);
  set(folder);
  for (std::string& old : choose_removed(folder)) removed.push_back(std::move(old));
  // The new checkpoint is safe: what fails from here on leaves more in the folder than there should be.
  try {
    for (const std::string& old : removed) io::remove_checkpoint(old, env_);
    write_state(folder);
  } catch (const Error& error) {
    log_warning("[CheckpointManager] {} is saved, but the folder is not as it should be: {}", prefix, error.what());
  }
  set(std::move(folder));
}

std::vector<std::string> KeptCheckpoints::choose_removed(Folder& folder) const {
  std::vector<std::string> removed;
  if (!rules_.max_to_keep) return removed;
  while (folder.kept.size() > static_cast<size_t>(*rules_.max_to_keep)) {
    const Kept oldest = folder.kept.front();
    folder.kept.erase(folder.kept.begin());
    const std::optional<double>& hours = rules_.keep_checkpoint_every_n_hours;
    if (hours && *hours != 0 && oldest.time - *hours * 3600 >= folder.last_preserved) {
      folder.last_preserved = oldest.time;  // it stays
    } else {
      removed.push_back(oldest.prefix);
    }
  }
  return removed;
}

void KeptCheckpoints::write_state(const Folder& folder) {
  io::CheckpointState state{.model_checkpoint_path = *folder.latest, .last_preserved_timestamp = folder.last_preserved};
  for (const Kept& each : folder.kept) {
    state.all_model_checkpoint_paths.push_back(each.prefix);
    state.all_model_checkpoint_timestamps.push_back(each.time);
  }
  written_ = io::write_checkpoint_state(directory_, state, {}, env_);
}

}  // namespace runnel::train
