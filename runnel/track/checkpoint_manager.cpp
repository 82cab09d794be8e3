#include "runnel/track/checkpoint_manager.h"

#include <chrono>
#include <utility>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/track/checkpoint_node.h"
#include "runnel/track/kept_checkpoints.h"
#include "runnel/track/save_pace.h"

namespace runnel::train {
namespace {

template <class Clock>
double seconds_of() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

const CheckpointManagerOptions& checked(const CheckpointManagerOptions& options) {
  if (options.directory.empty()) throw invalid_argument("[CheckpointManager] directory is empty; \".\" is this one");
  if (options.checkpoint_name.empty() || options.checkpoint_name.find('/') != std::string::npos) {
    throw invalid_argument("[CheckpointManager] checkpoint_name is a name without a folder, not '{}'",
                           options.checkpoint_name);
  }
  if (options.max_to_keep && *options.max_to_keep <= 0) {
    throw invalid_argument("[CheckpointManager] max_to_keep is {}; it is positive, or left out to keep all",
                           *options.max_to_keep);
  }
  if (options.checkpoint_interval && !options.step_counter.defined()) {
    throw invalid_argument("[CheckpointManager] checkpoint_interval counts the steps of step_counter: give it too");
  }
  if (options.max_overhead < 0 || options.max_overhead > 1) {
    throw invalid_argument("[CheckpointManager] max_overhead is {}; it is a part of the time, as 0.035",
                           options.max_overhead);
  }
  return options;
}

}  // namespace

CheckpointNumber::CheckpointNumber(const Tensor& number) : number_(static_cast<int64_t>(number)) {}
CheckpointNumber::CheckpointNumber(const Variable& number) : number_(current_number(number)) {}

struct CheckpointManager::State {
  State(const Checkpoint& c, const CheckpointManagerOptions& o)
      : checkpoint(c),
        options(checked(o)),
        kept(std::make_shared<KeptCheckpoints>(o.directory, KeepRules{o.max_to_keep, o.keep_checkpoint_every_n_hours},
                                               o.clock ? o.clock : seconds_of<std::chrono::system_clock>, *o.env)) {
    if (o.max_overhead > 0) {
      pace = std::make_shared<SavePace>(o.max_overhead, o.clock ? o.clock : seconds_of<std::chrono::steady_clock>);
    }
  }

  // Of an asynchronous save that has failed by now: also where no checkpoint is due, for the next may be far away.
  void throw_what_went_wrong() const {
    BackgroundWriter& writer = checkpoint.node_->writer;
    if (!writer.busy()) writer.sync();
  }

  bool too_early(std::optional<int64_t> step, bool check_interval) const {
    const bool busy = checkpoint.node_->writer.busy();
    if (const std::optional<int64_t> last = busy ? begun_step : *saved_step; step && last) {
      if (*step == *last) return true;
      if (check_interval && *step < *last + *options.checkpoint_interval) return true;
    }
    return check_interval && pace && (busy || !pace->due());
  }

  Checkpoint checkpoint;
  CheckpointManagerOptions options;
  // The thread that writes has them too, and may outlive the manager.
  std::shared_ptr<KeptCheckpoints> kept;
  std::shared_ptr<SavePace> pace;
  // Of step_counter: at the last save that was begun, and at the last whose checkpoint is there. The thread that writes
  // sets the second, which is not looked at while it is busy.
  std::optional<int64_t> begun_step;
  std::shared_ptr<std::optional<int64_t>> saved_step = std::make_shared<std::optional<int64_t>>();
};

CheckpointManager::CheckpointManager(const Checkpoint& checkpoint, const CheckpointManagerOptions& options,
                                     SourceSite where)
    : state_(at_caller(where, [&] { return std::make_shared<State>(checkpoint, options); })) {}

std::optional<std::string> CheckpointManager::save(const CheckpointNumber& checkpoint_number,
                                                   const ManagerSave& options, SourceSite where) {
  return at_caller(where, [&]() -> std::optional<std::string> {
    State& s = *state_;
    s.throw_what_went_wrong();
    std::optional<int64_t> step;
    if (s.options.checkpoint_interval) step = current_number(s.options.step_counter);
    if (s.too_early(step, options.check_interval)) return std::nullopt;
    CheckpointOptions writing = options.options;
    writing.env = s.options.env;
    WriteHooks hooks{.in_place = [kept = s.kept, saved_step = s.saved_step, step](const std::string& saved) {
      kept->add(saved);
      *saved_step = step;
    }};
    if (s.pace) {
      s.pace->begin();
      hooks.written = [pace = s.pace](double processor_seconds) { pace->written(processor_seconds); };
    }
    const std::string prefix = join_path(s.options.directory, s.options.checkpoint_name);
    const std::string path = s.checkpoint.save_numbered(
        prefix, checkpoint_number.value(), writing, [&] { return s.checkpoint.capture(SourceSite()); },
        std::move(hooks));
    s.begun_step = step;
    if (s.pace) s.pace->waited();
    return path;
  });
}

std::optional<std::string> CheckpointManager::restore_or_initialize(SourceSite where) {
  return at_caller(where, [&]() -> std::optional<std::string> {
    State& s = *state_;
    s.checkpoint.sync();
    const std::optional<std::string> latest = s.kept->latest();
    if (!latest) {
      if (s.options.init_fn) s.options.init_fn();
      return std::nullopt;
    }
    try {
      s.checkpoint.restore(latest, {.env = s.options.env}, SourceSite());
    } catch (const Error& error) {
      std::string others;
      for (const std::string& each : s.kept->all()) others += each == *latest ? "" : " " + each;
      if (others.empty()) throw;
      throw error.reworded(
          fmt::format("{}; older checkpoints of the folder, which may be restored instead:{}", error.what(), others));
    }
    if (s.options.checkpoint_interval) s.begun_step = *s.saved_step = current_number(s.options.step_counter);
    return latest;
  });
}

void CheckpointManager::sync(SourceSite where) { state_->checkpoint.sync(where); }

std::optional<std::string> CheckpointManager::latest_checkpoint() const { return state_->kept->latest(); }
std::vector<std::string> CheckpointManager::checkpoints() const { return state_->kept->all(); }
const std::string& CheckpointManager::directory() const { return state_->options.directory; }
std::optional<int64_t> CheckpointManager::checkpoint_interval() const { return state_->options.checkpoint_interval; }
const Checkpoint& CheckpointManager::checkpoint() const { return state_->checkpoint; }

}  // namespace runnel::train
