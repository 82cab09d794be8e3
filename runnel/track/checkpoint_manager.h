#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/source_site.h"
#include "runnel/ops/state.h"
#include "runnel/track/checkpoint.h"

namespace runnel::train {

struct CheckpointManagerOptions {
  std::string directory;
  std::string checkpoint_name = "ckpt";  // files are DIRECTORY/ckpt-N.index, ...
  std::optional<int> max_to_keep = {};   // the oldest go when there are more; none: all stay
  // A checkpoint that would go stays for ever if it is so much newer than the last one that stayed.
  std::optional<double> keep_checkpoint_every_n_hours = {};
  Variable step_counter = {};
  // save() does nothing until step_counter has grown by so much since the last checkpoint.
  std::optional<int64_t> checkpoint_interval = {};
  std::function<void()> init_fn = {};  // restore_or_initialize calls it where there is no checkpoint
  // The part of the program's time that saving may cost (0.035), as measured at the last save: save() does nothing
  // until then. 0: no limit.
  double max_overhead = 0;
  Env* env = &Env::posix();
  // Seconds since 1970; the system's when it is not given. The thread of an asynchronous save calls it too, at the same
  // time as others: it must be safe to call from several threads.
  std::function<double()> clock = {};
};

// The number in the names of a checkpoint's files: the checkpoint's save_counter when it is not given.
class RUNNEL_API CheckpointNumber {
 public:
  CheckpointNumber() = default;
  template <std::integral T>
  CheckpointNumber(T number) : number_(static_cast<int64_t>(number)) {}  // NOLINT: implicit, as below
  CheckpointNumber(const Tensor& number);                                // NOLINT
  CheckpointNumber(const Variable& number);                              // NOLINT

  const std::optional<int64_t>& value() const { return number_; }

 private:
  std::optional<int64_t> number_;
};

struct ManagerSave {
  bool check_interval = true;      // false: also before the interval and the pace allow it
  CheckpointOptions options = {};  // its env is the manager's
};

// Saves a checkpoint again and again into one folder, and keeps the newest ones.
//   train::CheckpointManager manager(checkpoint, {.directory = "./save", .max_to_keep = 3});
//   checkpoint.restore(manager.latest_checkpoint());
//   ... manager.save();
// What there is stands in the folder's state file: a new manager goes on with it. At any moment, whatever fails, the
// state file names a checkpoint that is whole. A state file that is damaged or cannot be read is an Error. Several
// processes may save into one folder, each under names or numbers of its own: of one name the newest stays. Copies are
// the same manager.
class RUNNEL_API CheckpointManager {
 public:
  CheckpointManager(const Checkpoint& checkpoint, const CheckpointManagerOptions& options,
                    SourceSite where = SourceSite::current());
  // As TensorFlow orders them.
  CheckpointManager(const Checkpoint& checkpoint, const std::string& directory, std::optional<int> max_to_keep,
                    SourceSite where = SourceSite::current())
      : CheckpointManager(checkpoint, {.directory = directory, .max_to_keep = max_to_keep}, where) {}

  // Saves as DIRECTORY/NAME-number and removes what there is no room for. Returns the path; nothing if it is too early
  // for another one. When it fails, the state file, the checkpoints that it names and save_counter are as before; of an
  // asynchronous save, the number is used up. What failed in the background is thrown by the next call, due or not.
  std::optional<std::string> save(const CheckpointNumber& checkpoint_number = {}, const ManagerSave& options = {},
                                  SourceSite where = SourceSite::current());
  // Restores the latest checkpoint of the folder and returns its path. Where there is none, calls init_fn.
  std::optional<std::string> restore_or_initialize(SourceSite where = SourceSite::current());
  // Waits for what is being written, and throws what went wrong.
  void sync(SourceSite where = SourceSite::current());

  // The newest, for restore(); of an asynchronous save once it is written.
  std::optional<std::string> latest_checkpoint() const;
  // Those it looks after, from the oldest; without those that stay for ever.
  std::vector<std::string> checkpoints() const;
  const std::string& directory() const;
  std::optional<int64_t> checkpoint_interval() const;
  const Checkpoint& checkpoint() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace runnel::train
