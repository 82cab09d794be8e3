#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runnel/keras/model.h"
#include "runnel/ops/state.h"

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
  // Does nothing once they are made.
  void make_outputs(const Model& model, const std::vector<Tensor>& y_true, const std::vector<Tensor>& y_pred);
  static void name_metrics_apart(const std::vector<Output>& outputs);
  std::vector<MetricPtr> all_metrics() const;

  using Step = std::function<StepLogs(const Nest& x, const Nest& y, const Tensor& sample_weight)>;

  CompileOptions options;
  std::shared_ptr<Optimizer> optimizer;
  MetricPtr loss_metric;
  std::vector<Output> outputs;
  Step train, test;

  // What was trainable in a model with so many weights. See Model::variables_to_train.
  struct Trainable {
    std::vector<Variable> variables;
    size_t num_weights = 0;
  };
  std::vector<Trainable> trained;      // by every apply_gradients of the step
  Trainable after_step;                // when the first step was over
  uint64_t seen_trainable_change = 0;  // the last_trainable_change() when that was compared with the model
  bool warned_of_trainable = false;
  bool in_step = false;
  size_t num_applied = 0;  // in the step that is being made
  // While it lives, a step is being made.
  class StepScope {
   public:
    explicit StepScope(Training& training) : training_(training) {
      training_.in_step = true;
      training_.num_applied = 0;
    }
    ~StepScope() { training_.in_step = false; }
    StepScope(const StepScope&) = delete;
    StepScope& operator=(const StepScope&) = delete;

   private:
    Training& training_;
  };
};

}  // namespace runnel::keras
