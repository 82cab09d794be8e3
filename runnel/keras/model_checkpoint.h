#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "runnel/keras/callbacks.h"

namespace runnel::keras {

// When a callback saves: "epoch", after every epoch; a number, after so many batches; false, never by itself.
class RUNNEL_API SaveFrequency {
 public:
  static constexpr const char* kTypeName = "\"epoch\" or int";  // in listings of settings
  SaveFrequency() = default;
  SaveFrequency(const char* word) : SaveFrequency(std::string(word)) {}  // NOLINT: implicit, as all below
  SaveFrequency(const std::string& word);                                // NOLINT: an Error but for "epoch"
  template <std::integral I>
  SaveFrequency(I batches) : SaveFrequency(static_cast<int64_t>(batches), 0) {}  // NOLINT

  bool every_epoch() const { return batches_ < 0; }
  int64_t batches() const { return batches_ < 0 ? 0 : batches_; }  // 0: not by batches
  Config config() const;

 private:
  SaveFrequency(int64_t batches, int);
  int64_t batches_ = -1;
};

struct ModelCheckpointOptions {
  std::string filepath = {};
  std::string monitor = "val_loss";
  int verbose = 0;
  bool save_best_only = false;
  bool save_weights_only = false;
  std::string mode = "auto";
  SaveFrequency save_freq = "epoch";
  std::optional<double> initial_value_threshold = {};
  static constexpr auto fields() {
    using O = ModelCheckpointOptions;
    return field_list(
        field("filepath", &O::filepath, "the path; {epoch:02d}, {batch} and {val_loss:.2f} stand for what they name"),
        field("monitor", &O::monitor, "the value of the logs that is watched"),
        field("verbose", &O::verbose, "1: say so when it happens"),
        field("save_best_only", &O::save_best_only, "only when the watched value is better than ever before"),
        field("save_weights_only", &O::save_weights_only,
              "by save_weights; must be true, for whole models have no files"),
        field("mode", &O::mode, "which way is better: \"min\", \"max\", or \"auto\", by the name"),
        field("save_freq", &O::save_freq, "\"epoch\", or the number of batches between two saves"),
        field("initial_value_threshold", &O::initial_value_threshold, "what the first value must be better than"));
  }
};
// Saves the weights after every epoch, or every so many batches:
//   keras::ModelCheckpoint({.filepath = "save/{epoch:02d}-{val_loss:.2f}.weights.h5", .save_weights_only = true})
class RUNNEL_API ModelCheckpoint : public Callback {
 public:
  static constexpr const char* kClassName = "ModelCheckpoint";
  using Options = ModelCheckpointOptions;
  explicit ModelCheckpoint(ModelCheckpointOptions options);
  void on_epoch_begin(int64_t epoch, const Logs&) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  bool watches_batches() const override { return !options_.save_freq.every_epoch(); }
  State save_state() const override;
  void restore_state(const State& state) override;
  double best() const { return best_; }  // of the watched values so far

 private:
  void save(int64_t epoch, std::optional<int64_t> batch, const Logs& logs);
  std::string path_for(int64_t epoch, std::optional<int64_t> batch, const Logs& logs) const;
  bool is_due(int64_t batch);
  bool improved(int64_t epoch, const Logs& logs, const std::string& path);

  ModelCheckpointOptions options_;
  Monitor monitor_;
  double best_;
  int64_t epoch_ = 0;
  int64_t batches_since_save_ = 0;
  int64_t last_batch_ = -1;
};

struct BackupAndRestoreOptions {
  std::string backup_dir = {};
  SaveFrequency save_freq = "epoch";
  bool delete_checkpoint = true;
  bool save_before_preemption = false;
  static constexpr auto fields() {
    using O = BackupAndRestoreOptions;
    return field_list(field("backup_dir", &O::backup_dir, "a folder that nothing else uses"),
                      field("save_freq", &O::save_freq, "\"epoch\", or the number of batches between two saves"),
                      field("delete_checkpoint", &O::delete_checkpoint, "when training has come to its end"),
                      field("save_before_preemption", &O::save_before_preemption,
                            "for machines of Google's cloud; without effect, as in Keras without a strategy"));
  }
};
// Keeps the state of training in a folder while fit runs, so that the same program, started again after it was
// interrupted, goes on where it was: what FitOptions::resume does, with Keras's settings.
class RUNNEL_API BackupAndRestore : public Callback {
 public:
  static constexpr const char* kClassName = "BackupAndRestore";
  using Options = BackupAndRestoreOptions;
  explicit BackupAndRestore(BackupAndRestoreOptions options);
  template <std::convertible_to<std::string> S>
  explicit BackupAndRestore(S backup_dir) : BackupAndRestore(Options{.backup_dir = std::move(backup_dir)}) {}
  bool watches_batches() const override { return false; }
  const BackupAndRestoreOptions& options() const { return options_; }

 private:
  BackupAndRestoreOptions options_;
};

}  // namespace runnel::keras
