#pragma once

#include <concepts>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runnel/base/function_ref.h"
#include "runnel/base/source_site.h"
#include "runnel/ops/state.h"
#include "runnel/tensor/trackable.h"
#include "runnel/track/checkpoint_contents.h"
#include "runnel/track/checkpoint_options.h"
#include "runnel/track/restore_status.h"
#include "runnel/track/snapshot.h"

namespace runnel::compat::v1 {
class Session;
}

namespace runnel::train {

class CheckpointNode;  // track/checkpoint_node.h
struct WriteHooks;

// What stands for an object in a checkpoint: the object itself or a pointer to it (it must then live as long as the
// checkpoint saves: once it has ended, saving is an Error), a shared_ptr, or a value whose copies are one thing:
// variables, iterators, tables, random generators, other checkpoints. A vector of parts is a list, a map is a dict.
class RUNNEL_API CheckpointPart {
 public:
  CheckpointPart(Trackable& part) : object_(&part) {}  // NOLINT: implicit, as all below
  CheckpointPart(Trackable* part);                     // NOLINT
  template <std::derived_from<Trackable> T>
  CheckpointPart(const std::shared_ptr<T>& part) : CheckpointPart(std::shared_ptr<Trackable>(part), 0) {}  // NOLINT
  template <class T>
    requires(!std::derived_from<T, Trackable>) && requires(const T& part) {
      { part.handle() } -> std::convertible_to<const Tensor&>;
    }
  CheckpointPart(const T& part) : handle_(part.handle()) {}  // NOLINT
  template <class T>
    requires(!std::derived_from<T, Trackable>) && requires(const T& part) {
      { part.node() } -> std::convertible_to<std::shared_ptr<Trackable>>;
    }
  CheckpointPart(const T& part) : CheckpointPart(std::shared_ptr<Trackable>(part.node()), 0) {}  // NOLINT
  template <class T>
    requires(!std::derived_from<T, Trackable>) && std::constructible_from<CheckpointPart, const T&>
  CheckpointPart(T* part) : CheckpointPart(*part) {}                  // NOLINT
  CheckpointPart(const std::vector<CheckpointPart>& list);            // NOLINT
  CheckpointPart(const std::map<std::string, CheckpointPart>& dict);  // NOLINT

  void track(Trackable& in, const std::string& name) const;
  void replace(Trackable& in, const std::string& name) const;

 private:
  CheckpointPart(std::shared_ptr<Trackable> part, int);
  Trackable* object_ = nullptr;
  std::shared_ptr<Trackable> owner_;
  Tensor handle_;
};

using CheckpointParts = std::vector<std::pair<std::string, CheckpointPart>>;

// Saves and restores objects of the program, in TensorFlow's files: TensorFlow reads them, and its own are read.
//   train::Checkpoint checkpoint({{"myAwesomeModel", &model}, {"myAwesomeOptimizer", &optimizer}});
//   checkpoint.save("./save/model.ckpt");                                  // model.ckpt-1, then -2, ...
//   checkpoint.restore(train::latest_checkpoint("./save"));
// Values go by the names of the parts and of what is in them: a program that restores gives the parts the names they
// were saved under. Parts that do not have their variables yet get the values when they make them. docs/checkpoints.md
// tells more. Copies are the same checkpoint. Used by one thread at a time.
class RUNNEL_API Checkpoint {
 public:
  Checkpoint();
  // In the order of their names, as TensorFlow has them.
  explicit Checkpoint(CheckpointParts parts);
  // Of everything in `root`, without a name before it; `parts` are saved as if they were parts of the root.
  explicit Checkpoint(const CheckpointPart& root, CheckpointParts parts = {});

  // One more part. A name that is taken is an Error, unless it is the same part.
  void track(const std::string& name, const CheckpointPart& part);
  // The same, in place of the part that had the name.
  void set(const std::string& name, const CheckpointPart& part);

  // How many times save() was called: the number of the newest checkpoint. It is saved and restored too.
  const Variable& save_counter() const;

  // Writes prefix-N.index and prefix-N.data-00000-of-00001, where N is one more than before, and makes it the latest of
  // its folder (the state file `checkpoint`). Returns prefix-N. When it fails, the number and what was there before
  // stay (of an asynchronous save, the number is used up). Where only the state file cannot be written, prefix-N is
  // there all the same; where a callback fails, it is saved.
  std::string save(const std::string& prefix, const CheckpointOptions& options = {},
                   SourceSite where = SourceSite::current());
  // Writes the files of `prefix` and nothing else. Returns prefix.
  std::string write(const std::string& prefix, const CheckpointOptions& options = {},
                    SourceSite where = SourceSite::current()) const;
  // Waits for an asynchronous save or write, and throws what went wrong in it.
  void sync(SourceSite where = SourceSite::current()) const;
  // What would be written now, for write_snapshot.
  Snapshot capture(SourceSite where = SourceSite::current()) const;

  // Gives the parts the values of a checkpoint that save() wrote (read: that write() wrote), by its prefix, that
  // latest_checkpoint returns, or by the folder of a SavedModel. Nothing happens without a path. What does not fit, is
  // damaged or not there is an Error, and then nothing has changed.
  RestoreStatus restore(const std::optional<std::string>& path, const CheckpointOptions& options = {},
                        SourceSite where = SourceSite::current());
  RestoreStatus read(const std::optional<std::string>& path, const CheckpointOptions& options = {},
                     SourceSite where = SourceSite::current());

  // The same in graphs of TensorFlow 1, whose variables have their values in a session; what restore returns puts them
  // there (initialize_or_restore).
  std::string save(const std::string& prefix, const compat::v1::Session& session, const CheckpointOptions& options = {},
                   SourceSite where = SourceSite::current());
  std::string write(const std::string& prefix, const compat::v1::Session& session,
                    const CheckpointOptions& options = {}, SourceSite where = SourceSite::current()) const;
  Snapshot capture(const compat::v1::Session& session, SourceSite where = SourceSite::current()) const;

  std::shared_ptr<Trackable> node() const;  // of the object graph

 private:
  friend class CheckpointManager;
  using CaptureNow = FunctionRef<Snapshot()>;
  // Counts, then saves as prefix-number; the number is the counter's where none is given.
  std::string save_numbered(const std::string& prefix, std::optional<int64_t> number, const CheckpointOptions& options,
                            CaptureNow capture_now, WriteHooks hooks);
  std::string save_as_latest(const std::string& prefix, const CheckpointOptions& options, CaptureNow capture_now);
  void write_files(const std::string& path, const CheckpointOptions& options, CaptureNow capture_now,
                   WriteHooks hooks) const;

  std::shared_ptr<CheckpointNode> node_;
};

}  // namespace runnel::train
