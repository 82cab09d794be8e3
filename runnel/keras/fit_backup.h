#pragma once

// Internal: the state of a fit in a folder, from which another run of the program goes on exactly.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runnel/data/iterator.h"
#include "runnel/keras/model.h"
#include "runnel/keras/training_options.h"

namespace runnel::keras {

// Where a training stands.
struct FitProgress {
  int64_t epoch = 0;     // the epoch that is trained
  int64_t step = 0;      // batches of it that are done
  int64_t steps = -1;    // of an epoch, where that is known
  bool stopped = false;  // by a callback
  Logs logs;             // after the last of these batches
  History history;       // of the epochs that are done
};

// Does nothing where neither FitOptions::resume nor the callback BackupAndRestore asks for it.
class FitBackup {
 public:
  FitBackup(Model& model, const FitOptions& options, std::vector<Metric*> (*metrics)(Model&));

  // Was a training interrupted here?
  bool found() const { return !latest_.empty(); }
  const std::string& path() const { return latest_; }
  // An Error for a state that is damaged anywhere: every value of it is read.
  FitProgress progress() const;
  // Gives model, metrics, random numbers and the iterator the saved state. They must have all their variables, for
  // those that are made later would draw random numbers. An Error where the state is that of another training; some
  // values may have changed then.
  void restore(const FitProgress& progress, const data::AnyIterator& iterator) const;
  // The same, and callbacks get what they have kept.
  void restore_with_callbacks(const FitProgress& progress, const data::AnyIterator& iterator) const;

  // Is it time to save? Counts batches.
  bool due_after_step();
  bool due_after_epoch() const { return wanted_; }
  void save(const FitProgress& progress, const data::AnyIterator& iterator);
  // Training has come to its end.
  void finish();

 private:
  struct Root;
  using NamedCallbacks = std::vector<std::pair<std::string, CallbackPtr>>;
  NamedCallbacks named_callbacks() const;
  void restore_root(Root& root) const;

  Model& model_;
  std::vector<Metric*> (*metrics_)(Model&);
  std::vector<CallbackPtr> callbacks_;
  bool wanted_ = false;
  bool removes_ = false;  // when training has ended
  int64_t every_ = 0;     // batches; 0: by time
  bool by_time_ = false;
  std::string dir_;
  std::string latest_;   // the prefix of the newest checkpoint
  int64_t number_ = 0;   // of that
  int64_t batches_ = 0;  // since it was saved
  std::chrono::steady_clock::time_point next_save_;
};

}  // namespace runnel::keras
