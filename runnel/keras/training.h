#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runnel/keras/model.h"
#include "runnel/ops/state.h"
#include "runnel/tensor/trackable.h"

namespace runnel::keras {

// What compile made: how the model is trained, and the steps once they are traced.
struct Model::Training {
  explicit Training(CompileOptions given) : options(std::move(given)), optimizer(options.optimizer.get()) {}

  // One output with its loss and metrics; made with the first batch, when the outputs are known.
  struct Output {
    std::string name;
    LossPtr loss;  // null: nothing is said of this output
    double weight = 1;
    MetricPtr loss_metric;  // of models with several outputs
    std::vector<MetricPtr> metrics;
    std::vector<MetricPtr> weighted_metrics;
  };
  // Labels or weights (`what`, for errors) in the order of the outputs. Those of a map go by the name of the output, or
  // by the key where the outputs are a map; undefined where there are none. An Error for a name that no output has.
  static std::vector<Tensor> by_output(const Model& model, const char* what, const Nest& values, const Nest& y_pred);
  static std::vector<Tensor> weights_by_output(const Model& model, const TrainingBatch& batch, const Nest& y_pred);
  // Does nothing once they are made.
  void make_outputs(const Model& model, const std::vector<Tensor>& y_true, const std::vector<Tensor>& y_pred);
  static void name_metrics_apart(const std::vector<Output>& outputs);
  std::vector<MetricPtr> all_metrics() const;

  using Step = std::function<StepLogs(const Nest& x, const Nest& y, const Tensor& weight, const Nest& weights)>;

  CompileOptions options;
  std::shared_ptr<Optimizer> optimizer;
  MetricPtr loss_metric;
  std::vector<Output> outputs;
  Step train, test;

  // What was trainable when the model was compiled. See Model::with_compiled_trainable.
  TrainableFlags compiled_trainable;
  uint64_t seen_trainable_change = 0;  // the last_trainable_change() when the layers were found to agree with that
  bool warned_of_trainable = false;
};

// What Keras's object graphs have under train_function: the traced step of training, without values. Made by the first
// fit.
class TrainFunction : public TrackableList {
 public:
  static TrainFunction* of(const Model& model);  // null before the first fit

  std::weak_ptr<const Graph> graph;  // of the last trace
  int64_t batches = 0;               // that fit trained the model on
};

// A pass of `who` (fit, evaluate, predict) over data with this model, on this thread. One inside itself, which a
// callback begins, is an Error.
class PassScope {
 public:
  PassScope(const Model& model, const char* who);
  ~PassScope();
  PassScope(const PassScope&) = delete;
  PassScope& operator=(const PassScope&) = delete;
};

}  // namespace runnel::keras
