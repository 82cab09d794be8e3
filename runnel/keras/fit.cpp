#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>
#include <typeinfo>
#include <utility>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/data/next_pass.h"
#include "runnel/graph/control_flow.h"
#include "runnel/keras/batches.h"
#include "runnel/keras/fit_backup.h"
#include "runnel/keras/fit_told.h"
#include "runnel/keras/kept_values.h"
#include "runnel/keras/sequential.h"
#include "runnel/keras/tensorboard.h"
#include "runnel/keras/training.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/random_state.h"
#include "runnel/tensor/profile_step.h"

namespace runnel::keras {
namespace {

void refuse_validation_batch_size(const SampleData& validation, const FitOptions& options) {
  if (!validation.batches || options.validation_batch_size <= 0) return;
  refuse_batch_size("fit", "validation_batch_size", options.validation_batch_size);
}

// It is made of many steps of its own, and what it tells after them are numbers.
void refuse_in_trace(const char* who, const char* instead) {
  if (!is_tracing()) return;
  throw make_error(Code::failed_precondition,
                   "[{0}] {0} cannot run while a function is traced: call it outside of function(...). {1}", who,
                   instead);
}
void refuse_fit_in_trace() {
  refuse_in_trace("fit",
                  "A step of training in a function is made of a GradientTape and the optimizer's apply_gradients");
}
void refuse_evaluate_in_trace() {
  refuse_in_trace("evaluate", "In a function, call the model and the loss themselves");
}

}  // namespace

// One call of fit or evaluate: passes over the data with the steps of a model.
class Fitting {
 public:
  Fitting(Model& model, const FitOptions& options) : model_(model), options_(options) {}

  History fit(const SampleData& data, std::optional<SampleData> validation) {
    const PassScope pass(model_, "fit");
    if (options_.epochs < 0 || options_.initial_epoch < 0) {
      throw invalid_argument("[fit] epochs and initial_epoch must not be negative, got {} and {}", options_.epochs,
                             options_.initial_epoch);
    }
    if (options_.epochs <= options_.initial_epoch) return {};
    model_.training();  // must be compiled
    if (validation && options_.validation_freq < 1) {
      throw invalid_argument(
          "[fit] validation_freq is {}: it is the number of epochs between two validations, 1 or more",
          options_.validation_freq);
    }
    FitBackup backup(model_, options_, [](Model& model) { return model.reported_metrics(); });
    const auto random_state = random::program_state();
    KeptValues before;
    if (backup.found()) before.keep(*random_state);  // datasets draw from it when they are made
    const int64_t batch_size = options_.batch_size.value_or(kDefaultBatchSize);
    const data::AnyDataset batches = batches_of(data, {"fit", batch_size, options_.shuffle && !data.batches});
    int64_t steps =
        options_.steps_per_epoch > 0 ? options_.steps_per_epoch : std::max<int64_t>(batches.cardinality(), -1);
    if (options_.steps_per_epoch <= 0) refuse_endless("fit", batches, "steps_per_epoch");
    if (validation && validation->batches && options_.validation_steps <= 0) {
      refuse_endless("fit: validation_data", *validation->batches, "validation_steps");
    }
    if (batches.cardinality() == -2 && options_.steps_per_epoch <= 0) steps = -1;
    if (steps == 0) throw invalid_argument("[fit] the dataset is empty: there is nothing to train on");
    const ToldCallbacks callbacks(model_, options_.callbacks, {options_.epochs, steps, options_.verbose});
    const Tensor table = class_weight_table(options_.class_weight);
    FitProgress now;
    std::optional<data::AnyIterator> iterator;
    try {  // before callbacks hear of anything
      now = progress_at_begin(backup, steps);
      if (backup.found()) go_on(data, batches, table, backup, now, before, iterator);
    } catch (...) {
      iterator.reset();  // its threads may draw random numbers
      before.put_back();
      throw;
    }
    before = KeptValues();  // or every variable would be in memory twice
    if (steps < 0) steps = now.steps;
    model_.stop_training = false;
    callbacks.tell(&Callback::on_train_begin, Logs());
    std::optional<BoardScopes> boards;
    boards.emplace(callbacks, "train", train_function().batches, &model_);
    bool in_epoch = false;  // the epoch has begun already
    if (backup.found()) {
      in_epoch = now.step > 0;
      if (in_epoch) begin_epoch(now.epoch, callbacks);
      backup.restore_with_callbacks(now, *iterator);  // again: callbacks may have changed something
      model_.stop_training = now.stopped;
    }
    while (now.epoch < options_.epochs && !model_.stop_training) {
      if (!in_epoch) begin_epoch(now.epoch, callbacks);
      if (!iterator) {
        iterator.emplace(batches.make_iterator());
      } else if (options_.steps_per_epoch <= 0 && !in_epoch) {
        data::begin_next_pass(*iterator);
      }
      in_epoch = false;
      const bool validates = validation && (now.epoch + 1) % options_.validation_freq == 0;
      ProgressLine line(steps, options_.verbose);
      const bool first = now.history.epoch.empty();
      train_epoch(data, *iterator, steps, table, callbacks, *boards, line, first, backup, now);
      if (now.step == 0) break;  // the data had run out with the epoch before
      steps = steps < 0 ? now.step : steps;
      if (validates) {
        const EvaluateOptions how{
            .batch_size = options_.validation_batch_size > 0 ? options_.validation_batch_size : batch_size,
            .verbose = 0,
            .steps = options_.validation_steps};
        for (const auto& [name, value] : evaluate(*validation, how, &callbacks)) now.logs.set("val_" + name, value);
      }
      callbacks.tell(&Callback::on_epoch_end, now.epoch, now.logs);
      line.show(now.step, now.logs, true);
      now.history.add(now.epoch, now.logs);
      ++now.epoch;
      now.step = 0;
      now.steps = steps;
      now.stopped = model_.stop_training;
      if (backup.due_after_epoch()) backup.save(now, *iterator);
    }
    model_.optimizer().finalize_variable_values(model_.trainable_variables());
    boards.reset();
    callbacks.tell(&Callback::on_train_end, now.logs);
    backup.finish();
    return now.history;
  }

  // `of_fit`: the callbacks of the fit that this is a part of; their parameters stay those of fit.
  Logs evaluate(const SampleData& data, const EvaluateOptions& how, const ToldCallbacks* of_fit = nullptr) {
    std::optional<PassScope> pass;
    if (!of_fit) pass.emplace(model_, "evaluate");
    const data::AnyDataset batches = batches_of(data, {"evaluate", how.batch_size.value_or(kDefaultBatchSize), false});
    if (how.steps <= 0) refuse_endless("evaluate", batches, "steps");
    const int64_t cardinality = batches.cardinality();
    const int64_t steps = how.steps > 0 ? how.steps : std::max<int64_t>(cardinality, -1);
    const ToldCallbacks callbacks = of_fit ? *of_fit : ToldCallbacks(model_, how.callbacks, {1, steps, how.verbose});
    model_.reset_metrics();
    callbacks.tell(&Callback::on_test_begin, Logs());
    std::optional<BoardScopes> boards;
    boards.emplace(callbacks, "validation", 0, of_fit ? nullptr : &model_);
    ProgressLine line(steps, how.verbose);
    data::AnyIterator iterator = batches.make_iterator();
    StepLogs step;
    int64_t done = 0;
    while (how.steps <= 0 || done < how.steps) {
      profile::StepScope in_profiles("test", done);
      const std::optional<Nest> element = iterator.next();
      if (!element) {
        in_profiles.drop();
        break;
      }
      if (callbacks.watches) callbacks.tell(&Callback::on_test_batch_begin, done, Logs());
      const TrainingBatch batch = unpack_batch("evaluate", *element);
      step = with_advice(data, [&] {
        return model_.prepare_steps().test(batch.x, batch.y, batch.sample_weight, batch.weights_by_output);
      });
      boards->set_step(done + 1);
      if (callbacks.watches) callbacks.tell(&Callback::on_test_batch_end, done, Logs(step));
      ++done;
      if (line.due() && done != steps) line.show(done, Logs(step), false);
    }
    if (done == 0) throw invalid_argument("[evaluate] the data is empty: there is nothing to test on");
    if (how.steps > 0 && done < how.steps) warn_ran_out("evaluate", how.steps, done);
    const Logs logs(step);
    line.show(done, logs, true);
    boards.reset();
    callbacks.tell(&Callback::on_test_end, logs);
    return logs;
  }

 private:
  // While it lives, the writers of TensorBoard callbacks that look at batches are the default. A traced step keeps the
  // writer of its trace: where a pass begins and ends (`traces`), steps are traced anew.
  class BoardScopes {
   public:
    BoardScopes(const ToldCallbacks& callbacks, const char* run, int64_t step, Model* traces) {
      for (const CallbackPtr& c : callbacks.all) {
        auto* const board = dynamic_cast<TensorBoard*>(c.get());
        if (!board || !board->records_batches()) continue;
        steps_.push_back(board->step_of(run));
        scopes_.push_back(board->batch_summaries(run));
      }
      if (scopes_.empty()) return;
      set_step(step);
      traces_ = traces;
      if (traces_) traces_->forget_training_functions();
    }
    ~BoardScopes() {
      while (!scopes_.empty()) scopes_.pop_back();
      if (traces_) traces_->forget_training_functions();
    }
    BoardScopes(const BoardScopes&) = delete;
    BoardScopes& operator=(const BoardScopes&) = delete;
    void set_step(int64_t step) const {
      for (const Variable& each : steps_) each.assign(step);
    }

   private:
    std::vector<Variable> steps_;
    std::vector<std::unique_ptr<TensorBoard::BatchSummaries>> scopes_;
    Model* traces_ = nullptr;
  };

  TrainFunction& train_function() {
    TrainFunction* const step = TrainFunction::of(model_);
    return step ? *step : own_train_function_;
  }

  // One step; of an error on a dataset of the user's it says so where that looks unbatched.
  template <class Step>
  static StepLogs with_advice(const SampleData& data, const Step& step) {
    try {
      return step();
    } catch (const Error& e) {
      if (!data.batches) throw;
      throw with_batch_advice(e, *data.batches);
    }
  }

  // Where to begin: at the first epoch, or where a training was interrupted.
  FitProgress progress_at_begin(const FitBackup& backup, int64_t steps) const {
    if (!backup.found()) return {.epoch = options_.initial_epoch, .steps = steps};
    FitProgress saved = backup.progress();
    if (steps >= 0 && saved.steps >= 0 && steps != saved.steps) {
      throw make_error(
          Code::failed_precondition,
          "[fit] resume: an epoch had {} batches in the training that {} was saved by, and has {} now: the "
          "data, batch_size and steps_per_epoch must be the same. Give another folder, or remove this "
          "one, to begin anew",
          saved.steps, backup.path(), steps);
    }
    log_info("[fit] resumes in epoch {}, after {} batches of it, from {}", saved.epoch + 1, saved.step, backup.path());
    return saved;
  }

  void begin_epoch(int64_t epoch, const ToldCallbacks& callbacks) {
    model_.reset_metrics();
    if (options_.verbose != 0) std::cout << fmt::format("Epoch {}/{}\n", epoch + 1, options_.epochs) << std::flush;
    callbacks.tell(&Callback::on_epoch_begin, epoch, Logs());
  }

  // Everything becomes as it was when the training was saved. A step that counts for nothing is made before: it makes
  // all variables that there will be, for those that are made later would draw from the random numbers restored here.
  // The state may turn out to be that of another training: `before` gets the values to be put back then.
  void go_on(const SampleData& data, const data::AnyDataset& batches, const Tensor& class_table,
             const FitBackup& backup, const FitProgress& now, KeptValues& before,
             std::optional<data::AnyIterator>& iterator) {
    iterator.emplace(batches.make_iterator());
    const std::optional<Nest> element = iterator->next();
    if (element) make_variables(*element);
    before.keep(model_);
    for (Metric* metric : model_.reported_metrics()) before.keep(*metric);
    if (element) train_on(data, *element, class_table);
    backup.restore(now, *iterator);
  }

  // Weights and the optimizer's slots, with the values that they begin with. Only where the step is ours: one of the
  // user's own may make others, and does so when it is called.
  void make_variables(const Nest& element) {
    const std::type_info& type = typeid(model_);
    if (type != typeid(Model) && type != typeid(Sequential)) return;
    const TrainingBatch batch = unpack_batch("fit", element);
    if (!model_.built()) model_.predict_on_batch(batch.x, SourceSite());
    const std::vector<Variable> variables = model_.trainable_variables();
    if (!variables.empty()) model_.optimizer().build(variables);
  }

  StepLogs train_on(const SampleData& data, const Nest& element, const Tensor& class_table) {
    const TrainingBatch batch = unpack_batch("fit", element);
    // Asked for at every step: a callback may have compiled the model anew or added a layer.
    return with_advice(data, [&] {
      const Tensor weight = weights_by_class(class_table, batch.y, batch.sample_weight);
      return model_.prepare_steps().train(batch.x, batch.y, weight, batch.weights_by_output);
    });
  }

  // From batch now.step on; that and the logs are what they are at the end then.
  void train_epoch(const SampleData& data, data::AnyIterator& iterator, int64_t steps, const Tensor& class_table,
                   const ToldCallbacks& callbacks, const BoardScopes& boards, ProgressLine& line, bool first,
                   FitBackup& backup, FitProgress& now) {
    StepLogs step;
    TrainFunction& trained = train_function();
    while (steps < 0 || now.step < steps) {
      profile::StepScope in_profiles("train", batches_);
      const std::optional<Nest> element = iterator.next();
      if (!element) {
        in_profiles.drop();
        break;
      }
      ++batches_;
      if (callbacks.watches) callbacks.tell(&Callback::on_train_batch_begin, now.step, Logs());
      step = train_on(data, *element, class_table);
      boards.set_step(++trained.batches);
      if (callbacks.watches) callbacks.tell(&Callback::on_train_batch_end, now.step, Logs(step));
      ++now.step;
      if (line.due() && now.step != steps) line.show(now.step, Logs(step), false);
      if (model_.stop_training) break;
      if (backup.due_after_step()) save_within_epoch(backup, now, step, steps, iterator);
    }
    if (now.step == 0 && (first || options_.steps_per_epoch <= 0)) {
      throw invalid_argument("[fit] the data gave no batch in epoch {}: there is nothing to train on", now.epoch + 1);
    }
    if (options_.steps_per_epoch > 0 && now.step < steps && !model_.stop_training) {
      warn_ran_out("fit", options_.steps_per_epoch * options_.epochs, now.step);
      model_.stop_training = true;
    }
    if (!step.empty() || now.step == 0) now.logs = Logs(step);
    warn_of_loss(now, callbacks);
  }

  static void save_within_epoch(FitBackup& backup, FitProgress& now, const StepLogs& step, int64_t steps,
                                const data::AnyIterator& iterator) {
    now.logs = Logs(step);
    now.steps = steps;
    backup.save(now, iterator);
  }

  void warn_of_loss(const FitProgress& now, const ToldCallbacks& callbacks) {
    const double* loss = now.logs.find("loss");
    if (!loss || std::isfinite(*loss) || warned_) return;
    warned_ = true;
    const bool stops = std::ranges::any_of(
        callbacks.all, [](const CallbackPtr& c) { return dynamic_cast<const TerminateOnNaN*>(c.get()) != nullptr; });
    log_warning(
        "[fit] the loss of model '{}' is {} after epoch {}: a smaller learning rate, clipnorm, or a look for values "
        "that are not finite in the data may help{}",
        model_.name(), *loss, now.epoch + 1, stops ? "" : "; TerminateOnNaN stops then");
  }

  static void warn_ran_out(const char* who, int64_t wanted, int64_t done) {
    log_warning(
        "[{}] the data ran out after {} steps of this pass; {} were asked for in all: make the dataset give that many "
        "batches (repeat()), or ask for fewer",
        who, done, wanted);
  }

  Model& model_;
  const FitOptions& options_;
  int64_t batches_ = 0;               // of all epochs: the numbers of steps in profiles
  TrainFunction own_train_function_;  // of a model with a part of its own under that name
  bool warned_ = false;
};

History Model::fit(const NestArg& x, const NestArg& y, const FitOptions& options, SourceSite where) {
  const LayerPtr alive = weak_from_this().lock();  // a callback may let go of the model
  return called_from(where, [&] {
    refuse_fit_in_trace();
    return fit_samples(x, y, options);
  });
}

History Model::fit_samples(const Nest& x, const Nest& y, const FitOptions& options) {
  prepare_steps();
  track_train_function();
  SampleData train(x, y, options.sample_weight);
  std::optional<SampleData> validation = options.validation_data;
  if (!validation && options.validation_split > 0) {
    const int64_t count = sample_count("fit", x);
    check_same_counts({{"x", x}, {"y", y}});
    const auto kept = static_cast<int64_t>(static_cast<double>(count) * (1 - options.validation_split));
    if (options.validation_split >= 1 || kept == 0 || kept == count) {
      throw invalid_argument("[fit] validation_split of {} leaves {} of {} samples for training: both parts need some",
                             options.validation_split, kept, count);
    }
    const auto part = [&](int64_t from, int64_t to) {
      const Tensor& w = options.sample_weight;
      return SampleData(sample_range(x, from, to), sample_range(y, from, to),
                        w.defined() ? sample_range(w, from, to).leaf() : Tensor());
    };
    validation = part(kept, count);
    train = part(0, kept);
  }
  if (validation) refuse_validation_batch_size(*validation, options);
  History history;
  with_compiled_trainable("fit", [&] { history = Fitting(*this, options).fit(train, validation); });
  return history;
}

History Model::fit(const data::AnyDataset& batches, const FitOptions& options, SourceSite where) {
  const LayerPtr alive = weak_from_this().lock();
  return called_from(where, [&] {
    refuse_fit_in_trace();
    prepare_steps();
    track_train_function();
    if (options.validation_split > 0) {
      throw invalid_argument("[fit] validation_split is for tensors: split a dataset with take and skip, or split()");
    }
    refuse_batch_size("fit", "batch_size", options.batch_size);
    refuse_sample_weight("fit", options.sample_weight);
    if (options.validation_data) refuse_validation_batch_size(*options.validation_data, options);
    History history;
    with_compiled_trainable("fit", [&] { history = Fitting(*this, options).fit(batches, options.validation_data); });
    return history;
  });
}

Logs Model::evaluate(const NestArg& x, const NestArg& y, const EvaluateOptions& options, SourceSite where) {
  const LayerPtr alive = weak_from_this().lock();
  return called_from(where, [&] {
    refuse_evaluate_in_trace();
    prepare_steps();
    return Fitting(*this, {}).evaluate(SampleData(x, y, options.sample_weight), options);
  });
}

Logs Model::evaluate(const data::AnyDataset& batches, const EvaluateOptions& options, SourceSite where) {
  const LayerPtr alive = weak_from_this().lock();
  return called_from(where, [&] {
    refuse_evaluate_in_trace();
    prepare_steps();
    refuse_batch_size("evaluate", "batch_size", options.batch_size);
    refuse_sample_weight("evaluate", options.sample_weight);
    return Fitting(*this, {}).evaluate(batches, options);
  });
}

}  // namespace runnel::keras
