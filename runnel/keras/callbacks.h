#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "runnel/keras/config.h"
#include "runnel/keras/logs.h"

namespace runnel::keras {

class Model;

// What a callback is told before anything else.
struct CallbackParams {
  int64_t epochs = 1;
  int64_t steps = -1;  // of an epoch; -1 while it is not known
  int verbose = 1;
};

// Is told of what fit, evaluate and predict do, and may change it: model()->stop_training, the learning rate, weights.
class RUNNEL_API Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_train_begin(const Logs&) {}
  virtual void on_train_end(const Logs&) {}
  virtual void on_epoch_begin(int64_t, const Logs&) {}
  virtual void on_epoch_end(int64_t, Logs&) {}
  virtual void on_train_batch_begin(int64_t, const Logs&) {}
  virtual void on_train_batch_end(int64_t, const Logs&) {}
  virtual void on_test_begin(const Logs&) {}
  virtual void on_test_end(const Logs&) {}
  virtual void on_test_batch_begin(int64_t, const Logs&) {}
  virtual void on_test_batch_end(int64_t, const Logs&) {}
  virtual void on_predict_begin(const Logs&) {}
  virtual void on_predict_end(const Logs&) {}
  virtual void on_predict_batch_begin(int64_t, const Logs&) {}
  virtual void on_predict_batch_end(int64_t, const Logs&) {}
  // Does it look at every batch? Those that do not leave fit free to read results less often.
  virtual bool watches_batches() const { return true; }

  void set_model(Model* model) { model_ = model; }
  void set_params(const CallbackParams& params) { params_ = params; }

 protected:
  Model* model() const { return model_; }
  const CallbackParams& params() const { return params_; }

 private:
  Model* model_ = nullptr;
  CallbackParams params_;
};
using CallbackPtr = std::shared_ptr<Callback>;

// The callbacks of a call: {EarlyStopping({.patience = 3}), csv_logger, pointer}. One written in place is moved in; a
// variable is used as it is, so that it can be asked afterwards, and must live as long as the call.
class RUNNEL_API CallbackList {
 public:
  class Item {
   public:
    template <std::derived_from<Callback> C>
    Item(C&& callback) : callback_(std::make_shared<C>(std::move(callback))) {}  // NOLINT: implicit, as all below
    template <std::derived_from<Callback> C>
    Item(C& callback) : callback_(CallbackPtr(), &callback) {}  // NOLINT
    template <std::derived_from<Callback> C>
    Item(std::shared_ptr<C> callback) : callback_(std::move(callback)) {}  // NOLINT
    const CallbackPtr& get() const { return callback_; }

   private:
    CallbackPtr callback_;
  };

  CallbackList() = default;
  CallbackList(std::initializer_list<Item> items) {  // NOLINT
    for (const Item& item : items) all_.push_back(item.get());
  }
  CallbackList(std::vector<CallbackPtr> all) : all_(std::move(all)) {}  // NOLINT

  bool empty() const { return all_.empty(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<CallbackPtr> all_;
};

// Which way is better: "min", "max", or "auto", which goes by the name (accuracies and AUC grow, losses fall).
class RUNNEL_API Monitor {
 public:
  Monitor(std::string name, const std::string& mode, double min_delta = 0);
  const std::string& name() const { return name_; }
  bool is_better(double value, double than) const;
  double worst() const { return grows_ ? -kInfinity : kInfinity; }
  // The value watched; warns once, with the names there are, when the logs do not have it.
  const double* find(const Logs& logs, const char* callback);

 private:
  static constexpr double kInfinity = __builtin_huge_val();
  std::string name_;
  bool grows_;
  double min_delta_;
  bool warned_ = false;
};

struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  double min_delta = 0;
  int64_t patience = 0;
  int verbose = 0;
  std::string mode = "auto";
  std::optional<double> baseline = {};
  bool restore_best_weights = false;
  int64_t start_from_epoch = 0;
  static constexpr auto fields() {
    using O = EarlyStoppingOptions;
    return field_list(
        field("monitor", &O::monitor, "the value of the logs that is watched"),
        field("min_delta", &O::min_delta, "a smaller change is none"),
        field("patience", &O::patience, "epochs without progress before something happens"),
        field("verbose", &O::verbose, "1: say so when it happens"),
        field("mode", &O::mode, "which way is better: \"min\", \"max\", or \"auto\", by the name"),
        field("baseline", &O::baseline, "epochs that are not better than this count as no progress"),
        field("restore_best_weights", &O::restore_best_weights, "the weights of the best epoch come back at the end"),
        field("start_from_epoch", &O::start_from_epoch, "epochs before this are not looked at"));
  }
};
// Stops training when the monitored value has not become better for more than `patience` epochs.
class RUNNEL_API EarlyStopping : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options = {});
  void on_train_begin(const Logs&) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_end(const Logs&) override;
  bool watches_batches() const override { return false; }
  int64_t stopped_epoch() const { return stopped_epoch_; }

 private:
  EarlyStoppingOptions options_;
  Monitor monitor_;
  int64_t wait_ = 0;
  int64_t stopped_epoch_ = 0;
  int64_t best_epoch_ = 0;
  double best_ = 0;
  std::vector<Tensor> best_weights_;
};

// The learning rate of every epoch from (epoch) or (epoch, current rate).
class RUNNEL_API LearningRateScheduler : public Callback {
 public:
  template <class Schedule>
    requires std::is_invocable_r_v<double, Schedule&, int64_t, double> ||
             std::is_invocable_r_v<double, Schedule&, int64_t>
  explicit LearningRateScheduler(Schedule schedule, int verbose = 0) : verbose_(verbose) {
    if constexpr (std::is_invocable_r_v<double, Schedule&, int64_t, double>) {
      schedule_ = std::move(schedule);
    } else {
      schedule_ = [schedule = std::move(schedule)](int64_t epoch, double) mutable { return schedule(epoch); };
    }
  }
  void on_epoch_begin(int64_t epoch, const Logs&) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  bool watches_batches() const override { return false; }

 private:
  std::function<double(int64_t, double)> schedule_;
  int verbose_;
};

struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;
  int64_t patience = 10;
  int verbose = 0;
  std::string mode = "auto";
  double min_delta = 1e-4;
  int64_t cooldown = 0;
  double min_lr = 0;
  static constexpr auto fields() {
    using O = ReduceLROnPlateauOptions;
    return field_list(field("monitor", &O::monitor, "the value of the logs that is watched"),
                      field("factor", &O::factor, "what the learning rate is multiplied by"),
                      field("patience", &O::patience, "epochs without progress before something happens"),
                      field("verbose", &O::verbose, "1: say so when it happens"),
                      field("mode", &O::mode, "which way is better: \"min\", \"max\", or \"auto\", by the name"),
                      field("min_delta", &O::min_delta, "a smaller change is none"),
                      field("cooldown", &O::cooldown, "epochs after a reduction that are not looked at"),
                      field("min_lr", &O::min_lr, "the learning rate does not fall below it"));
  }
};
class RUNNEL_API ReduceLROnPlateau : public Callback {
 public:
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {});
  void on_train_begin(const Logs&) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  bool watches_batches() const override { return false; }

 private:
  ReduceLROnPlateauOptions options_;
  Monitor monitor_;
  double best_ = 0;
  int64_t wait_ = 0;
  int64_t cooldown_left_ = 0;
};

// One line per epoch in a CSV file: epoch, then the logs by name.
class RUNNEL_API CSVLogger : public Callback {
 public:
  explicit CSVLogger(std::string filename, std::string separator = ",", bool append = false)
      : filename_(std::move(filename)), separator_(std::move(separator)), append_(append) {}
  void on_train_begin(const Logs&) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  bool watches_batches() const override { return false; }

 private:
  std::string filename_, separator_;
  bool append_;
  std::vector<std::string> keys_;
};

// Stops training when the loss is not a finite number.
class RUNNEL_API TerminateOnNaN : public Callback {
 public:
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
};

struct LambdaCallbackOptions {
  std::function<void(int64_t epoch, const Logs&)> on_epoch_begin = {};
  std::function<void(int64_t epoch, Logs&)> on_epoch_end = {};
  std::function<void(int64_t batch, const Logs&)> on_train_batch_begin = {};
  std::function<void(int64_t batch, const Logs&)> on_train_batch_end = {};
  std::function<void(const Logs&)> on_train_begin = {};
  std::function<void(const Logs&)> on_train_end = {};
};
class RUNNEL_API LambdaCallback : public Callback {
 public:
  explicit LambdaCallback(LambdaCallbackOptions options) : does_(std::move(options)) {}
  void on_epoch_begin(int64_t epoch, const Logs& logs) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_batch_begin(int64_t batch, const Logs& logs) override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_train_begin(const Logs& logs) override;
  void on_train_end(const Logs& logs) override;
  bool watches_batches() const override { return does_.on_train_batch_begin || does_.on_train_batch_end; }

 private:
  LambdaCallbackOptions does_;
};

}  // namespace runnel::keras
