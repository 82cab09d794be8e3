#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runnel/autodiff/tape.h"
#include "runnel/data/dataset.h"
#include "runnel/keras/callbacks.h"
#include "runnel/keras/losses.h"
#include "runnel/keras/metrics.h"
#include "runnel/keras/optimizers.h"
#include "runnel/tensor/nest.h"

namespace runnel::keras {

// What is wanted of the outputs of a model: one for all, one for each in order, or by the name of the output.
template <class T>
class PerOutput {
 public:
  PerOutput() = default;
  template <class U>
    requires std::convertible_to<U, T> && (!std::same_as<std::decay_t<U>, PerOutput>)
  PerOutput(U&& one) : all_{T(std::forward<U>(one))} {}  // NOLINT: implicit
  PerOutput(std::initializer_list<T> each) : all_(each), listed_(true) {}
  PerOutput(std::map<std::string, T> named) : named_(std::move(named)) {}  // NOLINT

  bool empty() const { return all_.empty() && named_.empty(); }
  // For output number i of n, called `name`; null when nothing was said of it.
  const T* find(size_t i, size_t n, const std::string& name) const {
    if (!named_.empty()) {
      const auto found = named_.find(name);
      return found == named_.end() ? nullptr : &found->second;
    }
    if (all_.empty()) return nullptr;
    if (!listed_ || (n == 1 && all_.size() == 1)) return &all_[0];
    return i < all_.size() ? &all_[i] : nullptr;
  }
  const std::vector<T>& listed() const { return all_; }
  const std::map<std::string, T>& named() const { return named_; }

 private:
  std::vector<T> all_;
  std::map<std::string, T> named_;
  bool listed_ = false;
};

// Metrics of every output: a list for all outputs, or lists by the name of the output.
struct MetricList {
  MetricList() = default;
  MetricList(std::initializer_list<MetricArg> all) : all(all) {}
  MetricList(std::vector<MetricArg> all) : all(std::move(all)) {}                                           // NOLINT
  MetricList(std::map<std::string, std::vector<MetricArg>> by_output) : by_output(std::move(by_output)) {}  // NOLINT
  std::vector<MetricArg> all;
  std::map<std::string, std::vector<MetricArg>> by_output;
};

struct CompileOptions {
  OptimizerArg optimizer = "rmsprop";
  PerOutput<LossArg> loss;
  MetricList metrics;
  PerOutput<double> loss_weights;
  MetricList weighted_metrics;  // these take sample weights into account
  bool run_eagerly = false;     // steps run op by op: for debugging
};

// What a step is given.
struct TrainingBatch {
  Nest x;
  Nest y;  // the empty tuple when there are no labels
  Tensor sample_weight;
};

// Samples, or a dataset of batches.
struct SampleData {
  SampleData(Nest x, Nest y, Tensor sample_weight = {})
      : x(std::move(x)), y(std::move(y)), sample_weight(std::move(sample_weight)) {}
  SampleData(data::AnyDataset batches) : batches(std::move(batches)) {}  // NOLINT: implicit
  template <class... T>
  SampleData(const data::Dataset<T...>& batches) : batches(batches) {}  // NOLINT
  Nest x, y;
  Tensor sample_weight;
  std::optional<data::AnyDataset> batches;
};

struct FitOptions {
  int64_t batch_size = 32;  // of samples; datasets come in batches
  int64_t epochs = 1;
  int verbose = 1;  // 0: nothing, 1: a progress bar, 2: a line per epoch
  std::vector<CallbackPtr> callbacks;
  double validation_split = 0;  // the last part of the samples is kept for validation
  std::optional<SampleData> validation_data;
  bool shuffle = true;
  std::map<int64_t, double> class_weight;
  Tensor sample_weight;
  int64_t initial_epoch = 0;
  int64_t steps_per_epoch = 0;   // 0: until the data ends
  int64_t validation_steps = 0;  // likewise
  int64_t validation_batch_size = 0;
  int64_t validation_freq = 1;
};

struct EvaluateOptions {
  int64_t batch_size = 32;
  int verbose = 1;
  Tensor sample_weight;
  int64_t steps = 0;
  std::vector<CallbackPtr> callbacks;
};

struct PredictOptions {
  int64_t batch_size = 32;
  int verbose = 1;
  int64_t steps = 0;
  std::vector<CallbackPtr> callbacks;
};

}  // namespace runnel::keras
