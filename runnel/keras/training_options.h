#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runnel/autodiff/tape.h"
#include "runnel/data/dataset.h"
#include "runnel/keras/callbacks.h"
#include "runnel/keras/losses.h"
#include "runnel/keras/metrics.h"
#include "runnel/keras/nest_arg.h"
#include "runnel/keras/optimizers.h"
#include "runnel/tensor/nest.h"

namespace runnel::keras {

// What is wanted of the outputs of a model: one for all, one for each in order, or by the name of the output. Of losses
// and numbers, for which the .cpp has it.
template <class T>
class RUNNEL_API PerOutput {
 public:
  // In listings of settings.
  static constexpr const char* kTypeName =
      std::same_as<T, double> ? "float, list(float) or dict(str, float)" : "Loss, list(Loss) or dict(str, Loss)";
  PerOutput();
  template <class U>
    requires std::convertible_to<U, T> && (!std::same_as<std::decay_t<U>, PerOutput>)
  PerOutput(U&& one, SourceSite where = SourceSite::current()) {  // NOLINT: implicit
    if constexpr (std::constructible_from<T, U, SourceSite>) {
      set(T(std::forward<U>(one), where));
    } else {
      set(T(std::forward<U>(one)));
    }
  }
  PerOutput(std::initializer_list<T> each);
  // By name: {{"price", "mse"}, {"kind", "bce"}}.
  class Named {
   public:
    Named(std::string name, T value) : name(std::move(name)), value(std::move(value)) {}
    std::string name;
    T value;
  };
  PerOutput(std::initializer_list<Named> named);
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
  static constexpr const char* kTypeName = "list(Metric) or dict(str, list(Metric))";
  MetricList();
  template <class M>
    requires std::convertible_to<M, MetricArg>
  MetricList(M&& one) : MetricList({MetricArg(std::forward<M>(one))}) {}  // NOLINT: implicit, as below
  MetricList(std::initializer_list<MetricArg> all);
  struct Named;
  MetricList(std::initializer_list<Named> by_output);
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
// The metrics of one output: {"price", {"mae", "mse"}}.
struct RUNNEL_API MetricList::Named {
  Named(std::string name, MetricList metrics) : name(std::move(name)), metrics(std::move(metrics)) {}
  std::string name;
  MetricList metrics;
};

struct CompileOptions {
  OptimizerArg optimizer = "rmsprop";
  PerOutput<LossArg> loss = {};
  MetricList metrics = {};
  PerOutput<double> loss_weights = {};
  MetricList weighted_metrics = {};
  bool run_eagerly = false;
  static constexpr auto fields() {
    using O = CompileOptions;
    return field_list(field("optimizer", &O::optimizer, "one, or its name; \"rmsprop\" unless given"),
                      field("loss", &O::loss, "for all outputs, for each in order, or by the name of the output"),
                      field("metrics", &O::metrics, "of all outputs, or by the name of the output"),
                      field("loss_weights", &O::loss_weights, "what the losses of the outputs are multiplied by"),
                      field("weighted_metrics", &O::weighted_metrics, "metrics that take sample weights into account"),
                      field("run_eagerly", &O::run_eagerly, "steps run op by op: for debugging"));
  }
};

// What a step is given.
struct TrainingBatch {
  Nest x = {};
  Nest y = {};                  // the empty tuple when there are no labels
  Tensor sample_weight = {};    // for all outputs
  Nest weights_by_output = {};  // or of each: a map by the name of the output, or a list; else the empty tuple
};

// Samples, or a dataset of batches.
struct RUNNEL_API SampleData {
  SampleData(NestArg x, NestArg y, Tensor sample_weight = {});
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

// {x, y}, {x, y, sample_weight}, a dataset of batches, or nothing.
class RUNNEL_API ValidationData : public std::optional<SampleData> {
 public:
  static constexpr const char* kTypeName = "optional(SampleData)";  // in listings of settings
  ValidationData();
  ValidationData(std::nullopt_t) : ValidationData() {}              // NOLINT: implicit, as all below
  ValidationData(std::optional<SampleData> data);                   // NOLINT
  ValidationData(SampleData data);                                  // NOLINT
  ValidationData(NestArg x, NestArg y, Tensor sample_weight = {});  // NOLINT
  ValidationData(data::AnyDataset batches);                         // NOLINT
  template <class... T>
  ValidationData(const data::Dataset<T...>& batches) : ValidationData(data::AnyDataset(batches)) {}  // NOLINT
  ValidationData(const ValidationData& other);
  ValidationData(ValidationData&& other) noexcept;
  ValidationData& operator=(const ValidationData& other);
  ValidationData& operator=(ValidationData&& other) noexcept;
  ~ValidationData();
};

struct FitOptions {
  std::optional<int64_t> batch_size = {};
  int64_t epochs = 1;
  int verbose = 1;
  CallbackList callbacks = {};
  double validation_split = 0;
  ValidationData validation_data = {};
  bool shuffle = true;
  std::map<int64_t, double> class_weight = {};
  Tensor sample_weight = {};
  int64_t initial_epoch = 0;
  int64_t steps_per_epoch = 0;
  int64_t validation_steps = 0;
  int64_t validation_batch_size = 0;
  int64_t validation_freq = 1;
  std::string resume = {};
  int64_t resume_freq = 0;
  static constexpr auto fields() {
    using O = FitOptions;
    return field_list(
        field("batch_size", &O::batch_size, "of samples, 32 unless given; datasets come in batches"),
        field("epochs", &O::epochs, "the number of the last epoch: how often all data are seen, if none came before"),
        field("verbose", &O::verbose, "0: nothing, 1: a progress bar, 2: a line per epoch"),
        field("callbacks", &O::callbacks, "what is told of every step, and may change it"),
        field("validation_split", &O::validation_split, "this share of the samples, the last, is kept for validation"),
        field("validation_data", &O::validation_data, "what losses and metrics are taken of after every epoch"),
        field("shuffle", &O::shuffle, "samples come in another order in every epoch"),
        field("class_weight", &O::class_weight, "by class number: how much a sample of the class counts"),
        field("sample_weight", &O::sample_weight, "how much every sample counts"),
        field("initial_epoch", &O::initial_epoch, "the epoch to begin with, to go on with training"),
        field("steps_per_epoch", &O::steps_per_epoch, "batches of an epoch; 0: until the data end"),
        field("validation_steps", &O::validation_steps, "batches of a validation; 0: until the data end"),
        field("validation_batch_size", &O::validation_batch_size, "0: as batch_size"),
        field("validation_freq", &O::validation_freq, "a validation after every so many epochs"),
        field("resume", &O::resume, "a folder: training is saved there, and goes on where it stands there"),
        field("resume_freq", &O::resume_freq,
              "batches from one save for resume to the next; 0: after every epoch, and about every minute"));
  }
};

struct EvaluateOptions {
  std::optional<int64_t> batch_size = {};
  int verbose = 1;
  Tensor sample_weight = {};
  int64_t steps = 0;
  CallbackList callbacks = {};
  static constexpr auto fields() {
    using O = EvaluateOptions;
    return field_list(field("batch_size", &O::batch_size, "of samples, 32 unless given; datasets come in batches"),
                      field("verbose", &O::verbose, "0: nothing, 1: a progress bar, 2: a line at the end"),
                      field("sample_weight", &O::sample_weight, "how much every sample counts"),
                      field("steps", &O::steps, "batches; 0: until the data end"),
                      field("callbacks", &O::callbacks, "what is told of every step"));
  }
};

struct SaveWeightsOptions {
  bool overwrite = true;
  std::string save_format = {};
  static constexpr auto fields() {
    using O = SaveWeightsOptions;
    return field_list(field("overwrite", &O::overwrite, "false: a file that is there already is an error"),
                      field("save_format", &O::save_format, "\"tf\" or \"h5\"; by the end of the path unless given"));
  }
};

struct LoadWeightsOptions {
  bool by_name = false;
  bool skip_mismatch = false;
  static constexpr auto fields() {
    using O = LoadWeightsOptions;
    return field_list(
        field("by_name", &O::by_name, "into layers of the same names; else layer by layer, in order"),
        field("skip_mismatch", &O::skip_mismatch, "layers that do not fit are left as they are, with a warning"));
  }
};

struct PredictOptions {
  std::optional<int64_t> batch_size = {};
  int verbose = 1;
  int64_t steps = 0;
  CallbackList callbacks = {};
  static constexpr auto fields() {
    using O = PredictOptions;
    return field_list(field("batch_size", &O::batch_size, "of samples, 32 unless given; datasets come in batches"),
                      field("verbose", &O::verbose, "0: nothing, 1: a progress bar, 2: a line at the end"),
                      field("steps", &O::steps, "batches; 0: until the data end"),
                      field("callbacks", &O::callbacks, "what is told of every step"));
  }
};

}  // namespace runnel::keras
