#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runnel/data/dataset.h"
#include "runnel/keras/callbacks.h"
#include "runnel/keras/functional.h"
#include "runnel/keras/layer.h"
#include "runnel/keras/logs.h"
#include "runnel/keras/nest_arg.h"
#include "runnel/keras/training_options.h"

namespace runnel::train {
class RestoreStatus;  // track/restore_status.h
}

namespace runnel::keras {

// Layers with the training that goes with them. Three ways to make one:
//   a class of your own with the layers as members and a `call` (see Layer);
//   Model(inputs, outputs), where outputs come from keras::Input through layers;
//   Sequential({Flatten(), Dense({.units = 10})}).
// Then compile and fit, or your own loop over GradientTape and trainable_variables().
// Functional and sequential models can be moved, assigned and returned from functions. A class of your own whose
// members are registered by {this, "name"} cannot (an Error): make it with std::make_shared and pass the pointer on.
class RUNNEL_API Model : public Layer {
 public:
  explicit Model(LayerOptions options = {});
  Model(Layer* parent, const std::string& attribute, LayerOptions options = {});
  Model(const NestArg& inputs, const NestArg& outputs, LayerOptions options = {},
        SourceSite where = SourceSite::current());
  Model(Model&& other) noexcept(false);
  Model& operator=(Model&& other) noexcept(false);  // model = make_model()
  ~Model() override;

  using Layer::call;
  Nest call(const Nest& inputs, const CallArgs& args) override;
  std::string class_name() const override;

  // --- structure ---

  std::vector<Layer*> layers() const { return sublayers(); }
  // Layers of functional and sequential models are layer-0, layer-1, ...; those with weights also
  // layer_with_weights-0, ...
  std::vector<Edge> children() const override;
  // An Error that lists the names there are.
  Layer& get_layer(const std::string& name, SourceSite where = SourceSite::current()) const;
  Layer& get_layer(size_t index, SourceSite where = SourceSite::current()) const;
  // The tensors that describe a functional model; an Error for others.
  const Nest& inputs(SourceSite where = SourceSite::current()) const { return graph(where).inputs(); }
  const Nest& outputs(SourceSite where = SourceSite::current()) const { return graph(where).outputs(); }
  bool is_functional() const { return graph_ != nullptr; }
  const FunctionalGraph& graph(SourceSite where = SourceSite::current()) const;
  // The weights of a model of your own for inputs of this shape, without calling it: by describing a call.
  void build_for_shape(const PartialShape& input, SourceSite where = SourceSite::current());

  // Keras's table of layers, output shapes and parameters.
  void summary(std::ostream& out, SourceSite where = SourceSite::current()) const;
  void summary(SourceSite where = SourceSite::current()) const;  // on standard output

  // Layers and how they are connected, without weights. Functional and sequential models only.
  Config get_config() const override;
  static std::shared_ptr<Model> from_config(const Config& config, SourceSite where = SourceSite::current());
  std::string to_json(int indent = -1, SourceSite where = SourceSite::current()) const;

  // --- files ---

  // The weights, in the format that the end of the path says: ".weights.h5" (with the state of the optimizer and of
  // metrics), ".h5" and ".keras" (Keras's older one) are files of HDF5; any other path is the prefix of a checkpoint of
  // TensorFlow's, beside which the state file makes it the latest one.
  void save_weights(const std::string& filepath, const SaveWeightsOptions& options = {},
                    SourceSite where = SourceSite::current()) const;
  // Of a checkpoint, weights that are not made yet get their values when they are; the status tells which they were. A
  // checkpoint that has nothing for this model is an Error. Files of HDF5 need a model that has its weights. Where
  // something does not fit, no weight has changed.
  train::RestoreStatus load_weights(const std::string& filepath, const LoadWeightsOptions& options = {},
                                    SourceSite where = SourceSite::current());
  // Of what latest_checkpoint gives. Nothing, as there is no checkpoint yet, is an Error.
  template <std::same_as<std::optional<std::string>> Latest>
  train::RestoreStatus load_weights(const Latest& latest, const LoadWeightsOptions& options = {},
                                    SourceSite where = SourceSite::current());

  // --- training ---

  // How the model is to be trained. May be called again; weights stay, the optimizer is the new one. A model whose
  // policy is mixed_float16 scales its loss: the optimizer becomes a mixed_precision::LossScaleOptimizer around it.
  // What is trainable now is trained, also where set_trainable says otherwise later; call compile again for that.
  void compile(CompileOptions options, SourceSite where = SourceSite::current());
  bool compiled() const { return training_ != nullptr; }
  Optimizer& optimizer(SourceSite where = SourceSite::current()) const;
  std::vector<std::string> metrics_names();
  // Those of compile, then those that the model and its layers have as members; a member stands for what compile made
  // under its name. They start anew with every epoch and every evaluation, and compute_metrics reports them. A model
  // with a train_step of its own may say which they are (train_step and test_step as they are here report those of
  // compile beside them):
  //   keras::metrics::Mean loss_tracker{this, "loss_tracker", {.name = "loss"}};
  //   std::vector<keras::Metric*> metrics() override { return {&loss_tracker}; }
  virtual std::vector<Metric*> metrics();
  void reset_metrics();

  // Trains on samples (first dimension: the samples; {a, b} where the model has two inputs) or on a dataset of batches:
  // x, (x, y) or (x, y, sample_weight). Maps go by the names of inputs and outputs.
  History fit(const NestArg& x, const NestArg& y, const FitOptions& options = {},
              SourceSite where = SourceSite::current());
  History fit(const data::AnyDataset& batches, const FitOptions& options = {},
              SourceSite where = SourceSite::current());
  template <class... T>
  History fit(const data::Dataset<T...>& batches, const FitOptions& options = {},
              SourceSite where = SourceSite::current()) {
    return fit(data::AnyDataset(batches), options, where);
  }
  Logs evaluate(const NestArg& x, const NestArg& y, const EvaluateOptions& options = {},
                SourceSite where = SourceSite::current());
  Logs evaluate(const data::AnyDataset& batches, const EvaluateOptions& options = {},
                SourceSite where = SourceSite::current());
  template <class... T>
  Logs evaluate(const data::Dataset<T...>& batches, const EvaluateOptions& options = {},
                SourceSite where = SourceSite::current()) {
    return evaluate(data::AnyDataset(batches), options, where);
  }
  // The outputs for all samples, joined.
  Tensor predict(const Tensor& x, const PredictOptions& options = {}, SourceSite where = SourceSite::current());
  Predictions predict(const NestArg& x, const PredictOptions& options = {}, SourceSite where = SourceSite::current());
  Predictions predict(const data::AnyDataset& batches, const PredictOptions& options = {},
                      SourceSite where = SourceSite::current());
  template <class... T>
  Predictions predict(const data::Dataset<T...>& batches, const PredictOptions& options = {},
                      SourceSite where = SourceSite::current()) {
    return predict(data::AnyDataset(batches), options, where);
  }

  Logs train_on_batch(const NestArg& x, const NestArg& y, const Tensor& sample_weight = {}, bool reset_metrics = true,
                      SourceSite where = SourceSite::current());
  Logs test_on_batch(const NestArg& x, const NestArg& y, const Tensor& sample_weight = {}, bool reset_metrics = true,
                     SourceSite where = SourceSite::current());
  Nest predict_on_batch(const NestArg& x, SourceSite where = SourceSite::current());

  bool stop_training = false;  // set by callbacks

  // One step, to be replaced for training of your own; it is traced once per shape of the batch unless run_eagerly.
  // What it returns is shown; it may be nothing.
  virtual StepLogs train_step(const TrainingBatch& batch);
  virtual StepLogs test_step(const TrainingBatch& batch);
  virtual Nest predict_step(const Nest& x);
  // The parts of a step. The loss includes what layers add (regularizers, add_loss).
  Tensor compute_loss(const TrainingBatch& batch, const Nest& y_pred, SourceSite where = SourceSite::current());
  StepLogs compute_metrics(const TrainingBatch& batch, const Nest& y_pred, SourceSite where = SourceSite::current());
  void apply_gradients(const Tensor& loss, GradientTape& tape, SourceSite where = SourceSite::current());

 protected:
  std::vector<Layer*> numbered_layers() const override;
  bool counts_by_layer() const override { return true; }
  void set_graph(std::unique_ptr<FunctionalGraph> graph);
  void forget_graph();               // the model is built anew at its next call
  void forget_training_functions();  // the model changed: steps are traced anew

 private:
  friend class Fitting;
  struct Training;
  Training& training() const;
  History fit_samples(const Nest& x, const Nest& y, const FitOptions& options);
  Predictions predict_batches(const data::AnyDataset& batches, const PredictOptions& options);
  Predictions predict_samples(const Nest& x, const PredictOptions& options);
  Training& prepare_steps();
  Tensor total_loss(const TrainingBatch& batch, const Nest& y_pred);
  void update_metrics(const TrainingBatch& batch, const Nest& y_pred);
  std::vector<Metric*> reported_metrics();
  static StepLogs results_of(const std::vector<Metric*>& all);
  void with_compiled_trainable(const char* who, const std::function<void()>& train);
  TrainableFlags restore_compiled_trainable(const char* who);
  void warn_of_changed_trainable(const char* who, const TrainableFlags& changed);
  void set_training(CompileOptions options);
  void warn_of_strays(const GradientTape& tape) const;
  void track_train_function();
  void forget_if_changed();
  std::vector<std::string> output_names(size_t count) const;

  std::unique_ptr<FunctionalGraph> graph_;
  std::unique_ptr<Training> training_;
  std::function<Nest(const Nest&)> prediction_;
  std::atomic<uint64_t> seen_change_{0};  // the last_change() when steps and predictions were found to be up to date
};

template <>
RUNNEL_API train::RestoreStatus Model::load_weights(const std::optional<std::string>& latest,
                                                    const LoadWeightsOptions& options, SourceSite where);

using ModelPtr = std::shared_ptr<Model>;

// A model of the same layers with weights of its own, freshly initialised. Functional and sequential models only.
RUNNEL_API ModelPtr clone_model(const Model& model, SourceSite where = SourceSite::current());
RUNNEL_API ModelPtr model_from_json(const std::string& json, SourceSite where = SourceSite::current());

}  // namespace runnel::keras
