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

// What is wanted of the outputs of a model: one for all, one for each in order, or by the name of the output. Of losses
// and numbers, for which the .cpp has it.
template <class T>
class RUNNEL_API PerOutput {
 public:
  PerOutput();
  template <class U>
    requires std::convertible_to<U, T> && (!std::same_as<std::decay_t<U>, PerOutput>)
  PerOutput(U&& one) {  // NOLINT: implicit
    set(T(std::forward<U>(one)));
  }
  PerOutput(std::initializer_list<T> each);
  PerOutput(std::map<std::string, T> named);  // NOLINT
  PerOutput(const PerOutput& other);
  PerOutput(PerOutput&& other) noexcept;
  PerOutput& operator=(const PerOutput& other);
  PerOutput& operator=(PerOutput&& other) noexcept;
  ~PerOutput();

  bool empty() const;
  // For output number i of n, called `name`; null when nothing was said of it.
  const T* find(size_t i, size_t n, const std::string& name) const;
  const std::vector<T>& listed() const { return all_; }
  const std::map<std::string, T>& named() const { return named_; }

 private:
  void set(T one);

  std::vector<T> all_;
  std::map<std::string, T> named_;
  bool listed_ = false;
};

// Metrics of every output: a list for all outputs, or lists by the name of the output.
struct RUNNEL_API MetricList {
  MetricList();
  MetricList(std::initializer_list<MetricArg> all);
  MetricList(std::vector<MetricArg> all);                               // NOLINT
  MetricList(std::map<std::string, std::vector<MetricArg>> by_output);  // NOLINT
  MetricList(const MetricList& other);
  MetricList(MetricList&& other) noexcept;
  MetricList& operator=(const MetricList& other);
  MetricList& operator=(MetricList&& other) noexcept;
  ~MetricList();
  std::vector<MetricArg> all;
  std::map<std::string, std::vector<MetricArg>> by_output;
};

struct CompileOptions {
  OptimizerArg optimizer = "rmsprop";
  PerOutput<LossArg> loss = {};
  MetricList metrics = {};
  PerOutput<double> loss_weights = {};
  MetricList weighted_metrics = {};  // these take sample weights into account
  bool run_eagerly = false;          // steps run op by op: for debugging
};

// What a step is given.
struct TrainingBatch {
  Nest x = {};
  Nest y = {};  // the empty tuple when there are no labels
  Tensor sample_weight = {};
};

// Samples, or a dataset of batches.
struct RUNNEL_API SampleData {
  SampleData(Nest x, Nest y, Tensor sample_weight = {});
  SampleData(data::AnyDataset batches);  // NOLINT: implicit
  template <class... T>
  SampleData(const data::Dataset<T...>& batches) : SampleData(data::AnyDataset(batches)) {}  // NOLINT
  SampleData(const SampleData& other);
  SampleData(SampleData&& other) noexcept;
  SampleData& operator=(const SampleData& other);
  SampleData& operator=(SampleData&& other) noexcept;
  ~SampleData();
  Nest x, y;
  Tensor sample_weight;
  std::optional<data::AnyDataset> batches;
};

struct FitOptions {
  int64_t batch_size = 32;  // of samples; datasets come in batches
  int64_t epochs = 1;
  int verbose = 1;  // 0: nothing, 1: a progress bar, 2: a line per epoch
  CallbackList callbacks = {};
  double validation_split = 0;  // the last part of the samples is kept for validation
  std::optional<SampleData> validation_data = {};
  bool shuffle = true;
  std::map<int64_t, double> class_weight = {};
  Tensor sample_weight = {};
  int64_t initial_epoch = 0;
  int64_t steps_per_epoch = 0;   // 0: until the data ends
  int64_t validation_steps = 0;  // likewise
  int64_t validation_batch_size = 0;
  int64_t validation_freq = 1;
};

struct EvaluateOptions {
  int64_t batch_size = 32;
  int verbose = 1;
  Tensor sample_weight = {};
  int64_t steps = 0;
  CallbackList callbacks = {};
};

// What predict gives: the structure of the outputs; of a model with one output, the tensor.
class Predictions : public Nest {
 public:
  Predictions(Nest outputs) : Nest(std::move(outputs)) {}             // NOLINT: implicit
  operator Tensor() const { return leaf(); }                          // NOLINT
  operator Operand() const { return Operand(leaf(), SourceSite{}); }  // NOLINT
};

struct PredictOptions {
  int64_t batch_size = 32;
  int verbose = 1;
  int64_t steps = 0;
  CallbackList callbacks = {};
};

}  // namespace runnel::keras
