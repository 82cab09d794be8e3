#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <map>
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
// A function of your own that has the name of one below and other parameters would never be called: it does not
// compile.
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

  // What of it must outlive the program, by name, so that a training which is interrupted and resumed goes on as if
  // nothing had happened (FitOptions::resume). restore_state comes after on_train_begin, and, in the middle of an
  // epoch, after on_epoch_begin. A callback that keeps nothing begins anew.
  using State = std::map<std::string, Tensor>;
  virtual State save_state() const { return {}; }
  virtual void restore_state(const State&) {}

  void set_model(Model* model) { model_ = model; }
  void set_params(const CallbackParams& params) { params_ = params; }

 protected:
  Model* model(SourceSite where = SourceSite::current()) const;  // an Error before training
  const CallbackParams& params() const { return params_; }

 private:
  Model* model_ = nullptr;
  CallbackParams params_;
};
using CallbackPtr = std::shared_ptr<Callback>;

namespace callback_detail {
// Is what C has under the name of an event a function with the event's parameters?
#define RUNNEL_OVERRIDES(name, ...) requires { static_cast<void (C::*)(__VA_ARGS__)>(&C::name); }
template <class C>
inline constexpr bool hears_passes =
    RUNNEL_OVERRIDES(on_train_begin, const Logs&) && RUNNEL_OVERRIDES(on_train_end, const Logs&) &&
    RUNNEL_OVERRIDES(on_test_begin, const Logs&) && RUNNEL_OVERRIDES(on_test_end, const Logs&) &&
    RUNNEL_OVERRIDES(on_predict_begin, const Logs&) && RUNNEL_OVERRIDES(on_predict_end, const Logs&);
template <class C>
inline constexpr bool hears_batches = RUNNEL_OVERRIDES(on_train_batch_begin, int64_t, const Logs&) &&
                                      RUNNEL_OVERRIDES(on_train_batch_end, int64_t, const Logs&) &&
                                      RUNNEL_OVERRIDES(on_test_batch_begin, int64_t, const Logs&) &&
                                      RUNNEL_OVERRIDES(on_test_batch_end, int64_t, const Logs&) &&
                                      RUNNEL_OVERRIDES(on_predict_batch_begin, int64_t, const Logs&) &&
                                      RUNNEL_OVERRIDES(on_predict_batch_end, int64_t, const Logs&);
template <class C>
inline constexpr bool hears_epoch_begin = RUNNEL_OVERRIDES(on_epoch_begin, int64_t, const Logs&);
template <class C>
inline constexpr bool hears_epoch_end = RUNNEL_OVERRIDES(on_epoch_end, int64_t, Logs&);
#undef RUNNEL_OVERRIDES

template <class C>
constexpr void check_events() {
  static_assert(
      hears_epoch_end<C>,
      "on_epoch_end of the callback is not public or does not take (int64_t, Logs&), so fit would not call it");
  static_assert(hears_epoch_begin<C>,
                "on_epoch_begin of the callback is not public or does not take (int64_t, const Logs&)");
  static_assert(hears_batches<C>,
                "on_..._batch_... of the callback is not public or does not take (int64_t, const Logs&)");
  static_assert(hears_passes<C>,
                "on_..._begin or on_..._end of the callback is not public or does not take (const Logs&)");
}
}  // namespace callback_detail

// The callbacks of a call: {EarlyStopping({.patience = 3}), csv_logger, pointer}. One written in place is moved in; a
// variable is used as it is, so that it can be asked afterwards, and must live as long as the call.
class RUNNEL_API CallbackList {
 public:
  static constexpr const char* kTypeName = "list(Callback)";  // in listings of settings
  class Item {
   public:
    template <std::derived_from<Callback> C>
    Item(C&& callback) : callback_(std::make_shared<C>(std::move(callback))) {  // NOLINT: implicit, as all below
      callback_detail::check_events<C>();
    }
    template <std::derived_from<Callback> C>
    Item(C& callback) : callback_(CallbackPtr(), &callback) {  // NOLINT
      callback_detail::check_events<C>();
    }
    template <std::derived_from<Callback> C>
    Item(std::shared_ptr<C> callback) : callback_(std::move(callback)) {  // NOLINT
      callback_detail::check_events<C>();
    }
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
  Monitor(std::string name, const std::string& mode, double min_delta = 0, SourceSite where = SourceSite::current());
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
  static constexpr const char* kClassName = "EarlyStopping";
  using Options = EarlyStoppingOptions;
  explicit EarlyStopping(EarlyStoppingOptions options = {}, SourceSite where = SourceSite::current());
  void on_train_begin(const Logs&) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_end(const Logs&) override;
  bool watches_batches() const override { return false; }
  State save_state() const override;
  void restore_state(const State& state) override;
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

// A function (epoch) or (epoch, current rate) that gives the learning rate.
class RateFunction {
 public:
  static constexpr const char* kTypeName = "function";
  RateFunction() = default;
  template <class F>
    requires std::is_invocable_r_v<double, F&, int64_t, double> || std::is_invocable_r_v<double, F&, int64_t>
  RateFunction(F f) {  // NOLINT: implicit
    if constexpr (std::is_invocable_r_v<double, F&, int64_t, double>) {
      function_ = std::move(f);
    } else {
      function_ = [f = std::move(f)](int64_t epoch, double) mutable { return f(epoch); };
    }
  }
  double operator()(int64_t epoch, double rate) const { return function_(epoch, rate); }
  explicit operator bool() const { return function_ != nullptr; }

 private:
  std::function<double(int64_t, double)> function_;
};

struct LearningRateSchedulerOptions {
  RateFunction schedule = {};
  int verbose = 0;
  static constexpr auto fields() {
    using O = LearningRateSchedulerOptions;
    return field_list(
        field("schedule", &O::schedule, "(epoch) or (epoch, current rate): gives the learning rate of the epoch"),
        field("verbose", &O::verbose, "1: say so when it happens"));
  }
};
// Sets the learning rate at the beginning of every epoch.
class RUNNEL_API LearningRateScheduler : public Callback {
 public:
  static constexpr const char* kClassName = "LearningRateScheduler";
  using Options = LearningRateSchedulerOptions;
  explicit LearningRateScheduler(LearningRateSchedulerOptions options, SourceSite where = SourceSite::current());
  explicit LearningRateScheduler(RateFunction schedule, int verbose = 0, SourceSite where = SourceSite::current())
      : LearningRateScheduler(LearningRateSchedulerOptions{.schedule = std::move(schedule), .verbose = verbose},
                              where) {}
  void on_epoch_begin(int64_t epoch, const Logs&) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  bool watches_batches() const override { return false; }

 private:
  LearningRateSchedulerOptions options_;
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
  static constexpr const char* kClassName = "ReduceLROnPlateau";
  using Options = ReduceLROnPlateauOptions;
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {}, SourceSite where = SourceSite::current());
  void on_train_begin(const Logs&) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  bool watches_batches() const override { return false; }
  State save_state() const override;
  void restore_state(const State& state) override;

 private:
  ReduceLROnPlateauOptions options_;
  Monitor monitor_;
  double best_ = 0;
  int64_t wait_ = 0;
  int64_t cooldown_left_ = 0;
};

struct CSVLoggerOptions {
  std::string filename = {};
  std::string separator = ",";
  bool append = false;
  static constexpr auto fields() {
    using O = CSVLoggerOptions;
    return field_list(field("filename", &O::filename, "the path of the file"),
                      field("separator", &O::separator, "what stands between two values"),
                      field("append", &O::append, "after the lines that are there; false: the file starts anew"));
  }
};
// One line per epoch in a CSV file: epoch, then the logs by name.
class RUNNEL_API CSVLogger : public Callback {
 public:
  static constexpr const char* kClassName = "CSVLogger";
  using Options = CSVLoggerOptions;
  explicit CSVLogger(CSVLoggerOptions options) : options_(std::move(options)) {}
  // A template, so that settings in braces are not taken for a string.
  template <std::convertible_to<std::string> S>
  explicit CSVLogger(S filename, const std::string& separator = ",", bool append = false)
      : options_{.filename = std::move(filename), .separator = separator, .append = append} {}
  void on_train_begin(const Logs&) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  bool watches_batches() const override { return false; }
  State save_state() const override;
  void restore_state(const State& state) override;

 private:
  CSVLoggerOptions options_;
  std::vector<std::string> keys_;
};

// Stops training when the loss is not a finite number.
class RUNNEL_API TerminateOnNaN : public Callback {
 public:
  static constexpr const char* kClassName = "TerminateOnNaN";
  using Options = NoAttrs;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
};

struct LambdaCallbackOptions {
  std::function<void(int64_t epoch, const Logs&)> on_epoch_begin = {};
  std::function<void(int64_t epoch, Logs&)> on_epoch_end = {};
  std::function<void(int64_t batch, const Logs&)> on_train_batch_begin = {};
  std::function<void(int64_t batch, const Logs&)> on_train_batch_end = {};
  std::function<void(const Logs&)> on_train_begin = {};
  std::function<void(const Logs&)> on_train_end = {};
  static constexpr auto fields() {
    using O = LambdaCallbackOptions;
    return field_list(field("on_epoch_begin", &O::on_epoch_begin, "(epoch, logs): called before every epoch"),
                      field("on_epoch_end", &O::on_epoch_end, "(epoch, logs): after it; may add to the logs"),
                      field("on_train_batch_begin", &O::on_train_batch_begin, "(batch, logs): before every batch"),
                      field("on_train_batch_end", &O::on_train_batch_end, "(batch, logs): after it"),
                      field("on_train_begin", &O::on_train_begin, "(logs): before the first epoch"),
                      field("on_train_end", &O::on_train_end, "(logs): after the last one"));
  }
};
class RUNNEL_API LambdaCallback : public Callback {
 public:
  static constexpr const char* kClassName = "LambdaCallback";
  using Options = LambdaCallbackOptions;
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
