#include "runnel/track/checkpoints_iterator.h"

#include <thread>
#include <utility>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/io/checkpoint_state.h"

namespace runnel::train {

CheckpointsIterator::CheckpointsIterator(std::string checkpoint_dir, CheckpointsIteratorOptions options)
    : directory_(std::move(checkpoint_dir)), options_(std::move(options)) {
  if (options_.timeout.value_or(0) < 0 || options_.min_interval_secs < 0 || options_.seconds_to_sleep < 0) {
    throw invalid_argument(
        "[checkpoints_iterator] {}: seconds are not negative, got timeout {}, min_interval_secs {}, "
        "seconds_to_sleep {}",
        directory_, options_.timeout.value_or(0), options_.min_interval_secs, options_.seconds_to_sleep);
  }
}

// As in TensorFlow, it does not sleep where the timeout would end before the sleep does.
std::optional<std::string> CheckpointsIterator::wait_for_new() const {
  const std::chrono::duration<double> pause(options_.seconds_to_sleep);
  const Clock::time_point begin = Clock::now();
  while (true) {
    std::optional<std::string> latest = io::latest_checkpoint(directory_, "checkpoint", *options_.env);
    if (latest && latest != last_) return latest;
    if (options_.timeout && Clock::now() + pause > begin + std::chrono::duration<double>(*options_.timeout)) {
      return std::nullopt;
    }
    std::this_thread::sleep_for(pause);
  }
}

std::optional<std::string> CheckpointsIterator::next() {
  if (last_) std::this_thread::sleep_until(given_ + std::chrono::duration<double>(options_.min_interval_secs));
  while (true) {
    if (std::optional<std::string> found = wait_for_new()) {
      last_ = found;
      given_ = Clock::now();
      return found;
    }
    if (!options_.timeout_fn) {
      log_info("[checkpoints_iterator] {}: no new checkpoint for {} seconds", directory_, *options_.timeout);
      return std::nullopt;
    }
    if (options_.timeout_fn()) return std::nullopt;
  }
}

CheckpointsIterator checkpoints_iterator(const std::string& checkpoint_dir, const CheckpointsIteratorOptions& options) {
  return CheckpointsIterator(checkpoint_dir, options);
}

}  // namespace runnel::train
