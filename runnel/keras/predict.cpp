#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>

#include "runnel/base/format.h"
#include "runnel/data/node.h"
#include "runnel/function/function.h"
#include "runnel/keras/batches.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/progbar.h"
#include "runnel/keras/training.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/tensor/profile_step.h"

namespace runnel::keras {
namespace {

// The outputs of several batches, joined along the first dimension.
class JoinedOutputs {
 public:
  void add(const Nest& out) {
    if (parts_.empty()) like_ = out;
    parts_.push_back(nest::flatten(out));
  }
  Nest join() const {
    if (parts_.size() == 1) return like_;
    std::vector<Tensor> joined;
    for (size_t i = 0; i < parts_[0].size(); ++i) {
      std::vector<Tensor> column;
      for (const std::vector<Tensor>& part : parts_) column.push_back(part[i]);
      joined.push_back(concat(column, 0));
    }
    return nest::pack(like_, joined);
  }
  bool empty() const { return parts_.empty(); }

 private:
  Nest like_;
  std::vector<std::vector<Tensor>> parts_;
};

// The callbacks and the progress bar of one call of predict.
class PredictWatch {
 public:
  PredictWatch(Model& model, const PredictOptions& options, int64_t steps)
      : pass_(model, "predict"),
        callbacks_(options.callbacks),
        bar_(steps >= 0 ? std::optional<int64_t>(steps) : std::nullopt, {.verbose = options.verbose}) {
    for (const CallbackPtr& c : callbacks_) {
      if (!c) throw invalid_argument("[callback] one of .callbacks is an empty pointer");
      c->set_model(&model);
      c->set_params({1, steps, options.verbose});
      c->on_predict_begin({});
    }
  }
  void begin(int64_t step) {
    for (const CallbackPtr& c : callbacks_) c->on_predict_batch_begin(step, {});
  }
  void end(int64_t step) {
    for (const CallbackPtr& c : callbacks_) c->on_predict_batch_end(step, {});
    bar_.update(step + 1, {}, false);
    done_ = step + 1;
  }
  void finish() {
    bar_.update(done_, {}, true);
    for (const CallbackPtr& c : callbacks_) c->on_predict_end({});
  }

 private:
  PassScope pass_;
  CallbackList callbacks_;
  int64_t done_ = 0;
  utils::Progbar bar_;
};

}  // namespace

Nest Model::predict_on_batch(const NestArg& x, SourceSite where) {
  // Any number of threads may predict with a model that is built; one of them makes the function.
  static std::mutex making;
  std::unique_lock lock(making);
  forget_if_changed();
  if (!prediction_) {
    prediction_ = [this](const Nest& in) {
      const TracedLosses nothing_stays;
      return predict_step(in);
    };
    if (!training_ || !training_->options.run_eagerly) {
      prediction_ = function(prediction_, {.name = "predict_function", .reduce_retracing = true});
    }
  }
  const std::function<Nest(const Nest&)> predict = prediction_;
  lock.unlock();
  return called_from(where, [&] { return predict(x); });
}

Tensor Model::predict(const Tensor& x, const PredictOptions& options, SourceSite where) {
  const Predictions all = predict(Nest(x), options, where);
  if (all.is_leaf()) return all.leaf();
  throw invalid_argument(
      "[predict] model '{}' gives {}, not one tensor. Hand the input over as a Nest, and predict returns all of them: "
      "const Nest out = model.predict(Nest(x)){}",
      name(), nest::detail::describe(all.kind(), all.size(), all.keys()), user_line(where).at());
}

Predictions Model::predict(const NestArg& x, const PredictOptions& options, SourceSite where) {
  const LayerPtr alive = weak_from_this().lock();  // a callback may let go of the model
  return called_from(where, [&] { return predict_samples(x, options); });
}

Predictions Model::predict_samples(const Nest& x, const PredictOptions& options) {
  const int64_t batch_size = options.batch_size.value_or(kDefaultBatchSize);
  if (batch_size <= 0) throw invalid_argument("[predict] batch_size must be positive, got {}", batch_size);
  const int64_t samples = sample_count("predict", x);
  int64_t count = samples;
  check_same_counts({{"x", x}});
  if (count == 0) throw invalid_argument("[predict] the data has no samples");
  if (options.steps > 0 && options.steps <= (count - 1) / batch_size) count = options.steps * batch_size;
  const bool silent = options.verbose == 0 && options.callbacks.empty();
  if (silent && count <= batch_size) {  // a sample at a time: nothing to set up
    return predict_on_batch(count == samples ? x : sample_range(x, 0, count));
  }
  const int64_t steps = data::groups_of(count, batch_size);
  PredictWatch watch(*this, options, steps);
  JoinedOutputs outputs;
  for (int64_t step = 0; step < steps; ++step) {
    const profile::StepScope in_profiles("predict", step);
    const int64_t begin = step * batch_size;
    watch.begin(step);
    outputs.add(predict_on_batch(sample_range(x, begin, begin + std::min(count - begin, batch_size))));
    watch.end(step);
  }
  watch.finish();
  return outputs.join();
}

Predictions Model::predict(const data::AnyDataset& batches, const PredictOptions& options, SourceSite where) {
  const LayerPtr alive = weak_from_this().lock();  // a callback may let go of the model
  return called_from(where, [&] { return predict_batches(batches, options); });
}

Predictions Model::predict_batches(const data::AnyDataset& batches, const PredictOptions& options) {
  refuse_batch_size("predict", "batch_size", options.batch_size);
  if (options.steps <= 0) refuse_endless("predict", batches, "steps");
  const int64_t steps = options.steps > 0 ? options.steps : std::max<int64_t>(batches.cardinality(), -1);
  PredictWatch watch(*this, options, steps);
  JoinedOutputs outputs;
  data::AnyIterator iterator = batches.prefetch(2, SourceSite()).make_iterator(SourceSite());
  for (int64_t step = 0; options.steps <= 0 || step < options.steps; ++step) {
    profile::StepScope in_profiles("predict", step);
    const std::optional<Nest> element = iterator.next();
    if (!element) {
      in_profiles.drop();
      break;
    }
    watch.begin(step);
    const TrainingBatch batch = unpack_batch("predict", *element);
    try {
      outputs.add(predict_on_batch(batch.x));
    } catch (const Error& e) {
      throw with_batch_advice(e, batches);
    }
    watch.end(step);
  }
  if (outputs.empty()) throw invalid_argument("[predict] the dataset is empty: there is nothing to predict");
  watch.finish();
  return outputs.join();
}

}  // namespace runnel::keras
