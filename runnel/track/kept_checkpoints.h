#pragma once

// Internal: the checkpoints of a folder that a manager looks after, and its state file.
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/io/checkpoint_state.h"

namespace runnel::train {

struct KeepRules {
  std::optional<int> max_to_keep = {};  // none: all stay
  std::optional<double> keep_checkpoint_every_n_hours = {};
};

// Several processes may have one for the same folder: each takes over what the others wrote into the state file, so
// that it names all checkpoints and none that was removed. Several threads may ask; add() is called by one at a time.
class RUNNEL_API KeptCheckpoints {
 public:
  // Takes over what the folder's state file says. `clock`: seconds since 1970.
  KeptCheckpoints(std::string directory, const KeepRules& rules, std::function<double()> clock, Env& env);

  std::optional<std::string> latest() const;
  std::vector<std::string> all() const;  // from the oldest; without those that stay for ever

  // A new checkpoint is in its place: names it in the state file, removes what there is no room for, then names only
  // what is left. A crash at any moment leaves a state file whose latest checkpoint is whole. Call it while the folder
  // is locked.
  void add(const std::string& prefix);

 private:
  struct Kept {
    std::string prefix;
    double time;
  };
  struct Folder {
    std::vector<Kept> kept;  // from the oldest
    std::optional<std::string> latest;
    double last_preserved = 0;
  };
  Folder now() const;
  void set(Folder folder);
  void take_over(Folder& folder, const io::CheckpointState& state, double now) const;
  std::vector<std::string> take_over_others(Folder& folder, double now) const;
  std::vector<std::string> choose_removed(Folder& folder) const;
  void write_state(const Folder& folder);

  const std::string directory_;
  const KeepRules rules_;
  const std::function<double()> clock_;
  Env& env_;
  std::string written_;  // the state file as it was left here
  mutable std::mutex mutex_;
  Folder folder_;  // what the state file says; guarded by mutex_
};

}  // namespace runnel::train
