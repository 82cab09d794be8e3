#include "runnel/keras/callbacks.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <span>

#include "runnel/base/caller_line.h"
#include "runnel/base/env.h"
#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/keras/model.h"
#include "runnel/ops/math.h"

namespace runnel::keras {
namespace {

double current_rate(const Model& model) {
  return cast(model.optimizer().learning_rate(), DType::float64).item<double>();
}

}  // namespace

Model* Callback::model(SourceSite where) const {
  return at_caller(where, [&]() -> Model* {
    if (model_) return model_;
    throw make_error(Code::failed_precondition,
                     "[callback] model() before training: fit, evaluate or predict say which model it is");
  });
}

Monitor::Monitor(std::string name, const std::string& mode, double min_delta, SourceSite where)
    : name_(std::move(name)), min_delta_(std::abs(min_delta)) {
  if (mode != "auto" && mode != "min" && mode != "max") {
    throw at_line(invalid_argument("[callback] mode must be auto, min or max, got '{}'", mode), where);
  }
  const auto ends_with = [&](std::string_view end) { return name_.ends_with(end); };
  grows_ = mode == "max" || (mode == "auto" && (ends_with("acc") || ends_with("accuracy") || ends_with("auc")));
}

bool Monitor::is_better(double value, double than) const {
  return grows_ ? value - min_delta_ > than : value + min_delta_ < than;
}

const double* Monitor::find(const Logs& logs, const char* callback) {
  const double* value = logs.find(name_);
  if (!value && !warned_) {
    warned_ = true;
    std::string names;
    for (const auto& [known, number] : logs) names += (names.empty() ? "" : ", ") + known;
    log_warning("[{}] there is no '{}' to look at; there are: {}", callback, name_, names);
  }
  return value;
}

EarlyStopping::EarlyStopping(EarlyStoppingOptions options, SourceSite where)
    : options_(std::move(options)), monitor_(options_.monitor, options_.mode, options_.min_delta, where) {}

void EarlyStopping::on_train_begin(const Logs&) {
  wait_ = stopped_epoch_ = best_epoch_ = 0;
  best_ = monitor_.worst();
  best_weights_.clear();
}

void EarlyStopping::on_epoch_end(int64_t epoch, Logs& logs) {
  const double* value = monitor_.find(logs, "EarlyStopping");
  if (!value || epoch < options_.start_from_epoch) return;
  if (options_.restore_best_weights && best_weights_.empty()) {  // in case no epoch becomes better
    best_weights_ = model()->get_weights();
    best_epoch_ = epoch;
  }
  ++wait_;
  if (monitor_.is_better(*value, best_)) {
    best_ = *value;
    best_epoch_ = epoch;
    if (options_.restore_best_weights) best_weights_ = model()->get_weights();
    if (!options_.baseline || monitor_.is_better(*value, *options_.baseline)) wait_ = 0;
    return;
  }
  if (wait_ >= options_.patience && epoch > 0) {
    stopped_epoch_ = epoch;
    model()->stop_training = true;
  }
}

void EarlyStopping::on_train_end(const Logs&) {
  if (stopped_epoch_ > 0 && options_.verbose > 0) {
    std::cout << fmt::format("Epoch {}: early stopping\n", stopped_epoch_ + 1);
  }
  if (!options_.restore_best_weights || best_weights_.empty()) return;
  if (options_.verbose > 0) {
    std::cout << fmt::format("Restoring model weights from the end of the best epoch: {}.\n", best_epoch_ + 1);
  }
  model()->set_weights(best_weights_);
}

LearningRateScheduler::LearningRateScheduler(LearningRateSchedulerOptions options, SourceSite where)
    : options_(std::move(options)) {
  if (!options_.schedule) throw at_line(invalid_argument("[LearningRateScheduler] there is no schedule"), where);
}

void LearningRateScheduler::on_epoch_begin(int64_t epoch, const Logs&) {
  const double rate = options_.schedule(epoch, current_rate(*model()));
  model()->optimizer().set_learning_rate(rate);
  if (options_.verbose > 0) {
    std::cout << fmt::format("\nEpoch {}: LearningRateScheduler setting learning rate to {}.\n", epoch + 1, rate);
  }
}

void LearningRateScheduler::on_epoch_end(int64_t, Logs& logs) { logs.set("lr", current_rate(*model())); }

ReduceLROnPlateau::ReduceLROnPlateau(ReduceLROnPlateauOptions options, SourceSite where)
    : options_(std::move(options)), monitor_(options_.monitor, options_.mode, options_.min_delta, where) {
  if (options_.factor >= 1) {
    throw at_line(invalid_argument("[ReduceLROnPlateau] factor must be below 1, got {}", options_.factor), where);
  }
}

void ReduceLROnPlateau::on_train_begin(const Logs&) {
  best_ = monitor_.worst();
  wait_ = cooldown_left_ = 0;
}

void ReduceLROnPlateau::on_epoch_end(int64_t epoch, Logs& logs) {
  const double old = current_rate(*model());
  logs.set("lr", old);
  const double* value = monitor_.find(logs, "ReduceLROnPlateau");
  if (!value) return;
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    wait_ = 0;
  }
  if (monitor_.is_better(*value, best_)) {
    best_ = *value;
    wait_ = 0;
    return;
  }
  if (cooldown_left_ > 0 || ++wait_ < options_.patience || old <= options_.min_lr) return;
  const double rate = std::max(old * options_.factor, options_.min_lr);
  model()->optimizer().set_learning_rate(rate);
  if (options_.verbose > 0) {
    std::cout << fmt::format("\nEpoch {}: ReduceLROnPlateau reducing learning rate to {}.\n", epoch + 1, rate);
  }
  cooldown_left_ = options_.cooldown;
  wait_ = 0;
}

void CSVLogger::on_train_begin(const Logs&) {
  keys_.clear();
  if (!options_.append) Env::posix().create(options_.filename)->close();
}

void CSVLogger::on_epoch_end(int64_t epoch, Logs& logs) {
  std::string line;
  if (keys_.empty()) {
    for (const auto& [name, value] : logs) keys_.push_back(name);
    std::sort(keys_.begin(), keys_.end());
    const std::string& path = options_.filename;
    const bool has_lines = options_.append && Env::posix().exists(path) && Env::posix().stat(path).size > 0;
    if (!has_lines) line = fmt::format("epoch{}{}\n", options_.separator, fmt::join(keys_, options_.separator));
  }
  line += std::to_string(epoch);
  for (const std::string& key : keys_) {
    const double* value = logs.find(key);
    line += options_.separator + (value ? fmt::format("{}", *value) : "NA");
  }
  line += "\n";
  const auto file = Env::posix().open_to_append(options_.filename);
  file->append(std::as_bytes(std::span(line)));
  file->close();
}

void TerminateOnNaN::on_train_batch_end(int64_t batch, const Logs& logs) {
  const double* loss = logs.find("loss");
  if (!loss || std::isfinite(*loss)) return;
  std::cout << fmt::format("Batch {}: Invalid loss, terminating training\n", batch);
  model()->stop_training = true;
}

void LambdaCallback::on_epoch_begin(int64_t epoch, const Logs& logs) {
  if (does_.on_epoch_begin) does_.on_epoch_begin(epoch, logs);
}
void LambdaCallback::on_epoch_end(int64_t epoch, Logs& logs) {
  if (does_.on_epoch_end) does_.on_epoch_end(epoch, logs);
}
void LambdaCallback::on_train_batch_begin(int64_t batch, const Logs& logs) {
  if (does_.on_train_batch_begin) does_.on_train_batch_begin(batch, logs);
}
void LambdaCallback::on_train_batch_end(int64_t batch, const Logs& logs) {
  if (does_.on_train_batch_end) does_.on_train_batch_end(batch, logs);
}
void LambdaCallback::on_train_begin(const Logs& logs) {
  if (does_.on_train_begin) does_.on_train_begin(logs);
}
void LambdaCallback::on_train_end(const Logs& logs) {
  if (does_.on_train_end) does_.on_train_end(logs);
}

}  // namespace runnel::keras
