#include "runnel/keras/model_checkpoint.h"

#include <cmath>
#include <iostream>
#include <map>
#include <utility>

#include "runnel/base/env.h"
#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/io/checkpoint_commit.h"
#include "runnel/keras/model.h"

namespace runnel::keras {
namespace {

// As in Keras, another rule than that of EarlyStopping.
std::string checkpoint_mode(const ModelCheckpointOptions& options) {
  if (options.mode != "auto") return options.mode;
  const std::string& m = options.monitor;
  return m.find("acc") != std::string::npos || m.starts_with("fmeasure") ? "max" : "min";
}

struct Placeholder {
  std::string name;
  std::string spec;  // ":02d", ".2f" after the colon
};

// `text` with {name} and {name:spec} replaced, {{ and }} for braces: Python's str.format as far as paths have it.
template <class Value>
std::string fill_in(const std::string& text, const Value& value_of) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '{' && c != '}') {
      out += c;
    } else if (i + 1 < text.size() && text[i + 1] == c) {
      out += c;
      ++i;
    } else {
      const size_t end = text.find('}', i);
      if (c == '}' || end == std::string::npos) throw invalid_argument("a brace has no partner");
      const std::string inside = text.substr(i + 1, end - i - 1);
      const size_t colon = std::min(inside.find(':'), inside.size());
      out += value_of(Placeholder{inside.substr(0, colon), inside.substr(std::min(colon + 1, inside.size()))});
      i = end;
    }
  }
  return out;
}

template <class T>
std::string formatted(const Placeholder& at, const T& value) {
  try {
    return fmt::format(fmt::runtime("{:" + at.spec + "}"), value);
  } catch (const fmt::format_error& e) {
    throw invalid_argument("'{}' is no format for {} ({})", at.spec, at.name, e.what());
  }
}
// Python shows that it is no integer: 1.0.
std::string formatted_float(const Placeholder& at, double value) {
  std::string text = formatted(at, value);
  const bool is_plain = at.spec.empty() && std::isfinite(value);
  return is_plain && text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

}  // namespace

SaveFrequency::SaveFrequency(const std::string& word) {
  if (word == "epoch") return;
  throw invalid_argument("Unrecognized save_freq: {}. Expected save_freq are \"epoch\" or integer", word);
}
SaveFrequency::SaveFrequency(int64_t batches, int) : batches_(batches) {
  if (batches < 0)
    throw invalid_argument("[callback] save_freq is {}: it is a number of batches, or \"epoch\"", batches);
}
Config SaveFrequency::config() const { return every_epoch() ? Config("epoch") : Config(batches_); }

ModelCheckpoint::ModelCheckpoint(ModelCheckpointOptions options)
    : options_(std::move(options)), monitor_(options_.monitor, checkpoint_mode(options_)) {
  if (options_.filepath.empty()) throw invalid_argument("[ModelCheckpoint] filepath is empty");
  if (!options_.save_weights_only) {
    throw make_error(Code::unimplemented,
                     "[ModelCheckpoint] whole models cannot be saved yet: give .save_weights_only = true");
  }
  if (!options_.save_freq.every_epoch() && options_.save_freq.batches() == 0) {
    throw invalid_argument("[ModelCheckpoint] save_freq is 0: it is a number of batches, or \"epoch\"");
  }
  best_ = options_.initial_value_threshold.value_or(monitor_.worst());
}

void ModelCheckpoint::on_epoch_begin(int64_t epoch, const Logs&) { epoch_ = epoch; }
void ModelCheckpoint::on_epoch_end(int64_t epoch, Logs& logs) {
  if (options_.save_freq.every_epoch()) save(epoch, std::nullopt, logs);
}
void ModelCheckpoint::on_train_batch_end(int64_t batch, const Logs& logs) {
  if (is_due(batch)) save(epoch_, batch, logs);
}

bool ModelCheckpoint::is_due(int64_t batch) {
  if (options_.save_freq.every_epoch()) return false;
  batches_since_save_ += batch <= last_batch_ ? batch + 1 : batch - last_batch_;  // the first: a new epoch
  last_batch_ = batch;
  if (batches_since_save_ < options_.save_freq.batches()) return false;
  batches_since_save_ = 0;
  return true;
}

std::string ModelCheckpoint::path_for(int64_t epoch, std::optional<int64_t> batch, const Logs& logs) const {
  try {
    return fill_in(options_.filepath, [&](const Placeholder& at) {
      if (at.name == "epoch") return formatted(at, epoch + 1);
      if (const double* value = logs.find(at.name)) return formatted_float(at, *value);
      if (at.name == "batch" && batch) return formatted(at, *batch + 1);
      throw invalid_argument("'{}'", at.name);
    });
  } catch (const Error& e) {
    std::string names = batch ? "epoch, batch" : "epoch";
    for (const auto& [name, value] : logs) names += ", " + name;
    throw invalid_argument("Failed to format this callback filepath: \"{}\". Reason: {}. There are: {}",
                           options_.filepath, e.what(), names);
  }
}

// Is this the best so far? Then it is what the next must be better than.
bool ModelCheckpoint::improved(int64_t epoch, const Logs& logs, const std::string& path) {
  const double* value = logs.find(monitor_.name());
  if (!value) {
    log_warning("Can save best model only with {} available, skipping.", monitor_.name());
    return false;
  }
  const bool better = monitor_.is_better(*value, best_);
  if (options_.verbose > 0 && better) {
    std::cout << fmt::format("\nEpoch {}: {} improved from {:.5f} to {:.5f}, saving model to {}\n", epoch + 1,
                             monitor_.name(), best_, *value, path);
  } else if (options_.verbose > 0) {
    std::cout << fmt::format("\nEpoch {}: {} did not improve from {:.5f}\n", epoch + 1, monitor_.name(), best_);
  }
  if (better) best_ = *value;
  return better;
}

void ModelCheckpoint::save(int64_t epoch, std::optional<int64_t> batch, const Logs& logs) {
  const std::string path = path_for(epoch, batch, logs);
  Env& env = Env::posix();
  if (env.exists(path) && env.stat(path).is_dir) {
    throw invalid_argument(
        "Please specify a non-directory filepath for ModelCheckpoint. Filepath used is an existing directory: {}",
        path);
  }
  if (options_.save_best_only) {
    if (!improved(epoch, logs, path)) return;
  } else if (options_.verbose > 0) {
    std::cout << fmt::format("\nEpoch {}: saving model to {}\n", epoch + 1, path);
  }
  io::create_synced_dirs(parent_dir(path), env);
  model()->save_weights(path);
}

BackupAndRestore::BackupAndRestore(BackupAndRestoreOptions options) : options_(std::move(options)) {
  if (options_.backup_dir.empty()) throw invalid_argument("[BackupAndRestore] backup_dir is empty");
  const bool saves = options_.save_freq.every_epoch() || options_.save_freq.batches() > 0;
  if (!saves && !options_.save_before_preemption) {
    throw invalid_argument("Either `save_freq` or `save_before_preemption` must be set.");
  }
  if (options_.save_before_preemption) {
    log_warning("[BackupAndRestore] save_before_preemption has no effect: there is nobody who announces a preemption{}",
                saves ? "" : "; with save_freq = false nothing is saved");
  }
}

}  // namespace runnel::keras
