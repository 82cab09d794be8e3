#include "runnel/keras/settings.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/data/options.h"
#include "runnel/keras/keras.h"
#include "runnel/keras/optimizers_recent.h"
#include "runnel/keras/settings_of.h"

namespace runnel::keras {
namespace {

using ClassList = std::vector<ClassSettings>;

// The settings of the class itself first, then those that all of its kind have.
template <class O>
constexpr auto all_layer_fields() {
  constexpr auto own = [] {
    if constexpr (requires { O::unwritten_fields(); }) {
      return joined_fields(O::fields(), O::unwritten_fields());
    } else {
      return O::fields();
    }
  };
  if constexpr (requires { &O::input_shape; }) {
    const auto shape = field_list(field("input_shape", &O::input_shape, "of a sample, of the first layer of a model"));
    return joined_fields(own(), shape, layer_fields<O>());
  } else {
    return joined_fields(own(), layer_fields<O>());
  }
}
template <class... L>
void add_layers(ClassList& all) {
  (all.push_back({"layer", L::kClassName,
                  settings_in<typename L::Options>([] { return all_layer_fields<typename L::Options>(); })}),
   ...);
}

template <class... L>
void add_losses(ClassList& all) {
  const auto add = [&]<class O>(const char* name, O*) {
    all.push_back({"loss", name, settings_in<O>([] { return joined_fields(O::fields(), losses::loss_fields<O>()); })});
  };
  (add(L::kClassName, static_cast<typename L::Options*>(nullptr)), ...);
}

template <class M>
void add_metric(ClassList& all, std::string name) {
  using O = typename M::Options;
  all.push_back({"metric", std::move(name),
                 settings_in<O>([] { return joined_fields(O::fields(), metrics::metric_fields<O>()); })});
}
template <class... M>
void add_metrics(ClassList& all) {
  (add_metric<M>(all, M::kClassName), ...);
}

// `reached`: the name of the value that the other quantity must reach.
template <class M>
void add_curve_point(ClassList& all, const char* name, const char* reached) {
  using O = typename M::Options;
  ClassSettings point{"metric", name, settings_in<O>([] {
                        const auto value =
                            field_list(field("value", &O::value, "what it must reach at a threshold that counts"));
                        return joined_fields(value, O::fields(), metrics::metric_fields<O>());
                      })};
  point.settings[0].name = reached;
  all.push_back(std::move(point));
}

template <class Options>
void add_options(ClassList& all, const char* kind, const char* name) {
  all.push_back({kind, name, settings_of<Options>()});
}
template <class... C>
void add_with_own_fields(ClassList& all, const char* kind) {
  (add_options<typename C::Options>(all, kind, C::kClassName), ...);
}

ClassList make_all() {
  ClassList all;
  add_layers<InputLayer, Dense, EinsumDense, Embedding, Flatten, Reshape, Permute, RepeatVector>(all);
  add_layers<ActivationLayer, Softmax, ReLU, LeakyReLU, PReLU, ELU, Dropout, SpatialDropout2D, GaussianNoise>(all);
  add_layers<Add, Subtract, Multiply, Average, Maximum, Minimum, Concatenate, Dot>(all);
  add_layers<Conv1D, Conv2D, Conv3D, Conv2DTranspose, DepthwiseConv2D, SeparableConv2D>(all);
  add_layers<MaxPooling1D, MaxPooling2D, AveragePooling1D, AveragePooling2D, GlobalMaxPooling1D, GlobalMaxPooling2D,
             GlobalAveragePooling1D, GlobalAveragePooling2D>(all);
  add_layers<ZeroPadding2D, Cropping2D, UpSampling2D, BatchNormalization, LayerNormalization, Rescaling, Resizing,
             Normalization, RandomFlip, RandomRotation, RandomZoom, RandomCrop>(all);
  add_layers<SimpleRNN, LSTM, GRU, RNN, SimpleRNNCell, LSTMCell, GRUCell, StackedRNNCells, Bidirectional,
             TimeDistributed, MultiHeadAttention, Attention, AdditiveAttention, Lambda>(all);

  add_losses<losses::SparseCategoricalCrossentropy, losses::CategoricalCrossentropy, losses::BinaryCrossentropy,
             losses::MeanSquaredError, losses::MeanAbsoluteError, losses::MeanAbsolutePercentageError,
             losses::MeanSquaredLogarithmicError, losses::Huber, losses::KLDivergence, losses::Hinge,
             losses::SquaredHinge, losses::CategoricalHinge, losses::CosineSimilarity, losses::Poisson,
             losses::LogCosh>(all);

  using namespace metrics;  // NOLINT: the names of this list
  add_metrics<Mean, Sum, metrics::Accuracy, BinaryAccuracy, CategoricalAccuracy, SparseCategoricalAccuracy,
              TopKCategoricalAccuracy, SparseTopKCategoricalAccuracy, metrics::MeanSquaredError, RootMeanSquaredError,
              metrics::MeanAbsoluteError, metrics::MeanAbsolutePercentageError, metrics::MeanSquaredLogarithmicError,
              metrics::CosineSimilarity, metrics::KLDivergence, metrics::Poisson, LogCoshError, metrics::Hinge,
              metrics::SquaredHinge, metrics::CategoricalHinge, metrics::BinaryCrossentropy,
              metrics::CategoricalCrossentropy, metrics::SparseCategoricalCrossentropy, Precision, Recall>(all);
  add_metric<TruePositives>(all, "TruePositives");
  add_metric<FalsePositives>(all, "FalsePositives");
  add_metric<TrueNegatives>(all, "TrueNegatives");
  add_metric<FalseNegatives>(all, "FalseNegatives");
  add_metric<AUC>(all, "AUC");
  add_curve_point<SensitivityAtSpecificity>(all, "SensitivityAtSpecificity", "specificity");
  add_curve_point<SpecificityAtSensitivity>(all, "SpecificityAtSensitivity", "sensitivity");
  add_curve_point<PrecisionAtRecall>(all, "PrecisionAtRecall", "recall");
  add_curve_point<RecallAtPrecision>(all, "RecallAtPrecision", "precision");
  add_metric<FBetaScore>(all, "FBetaScore");
  add_metric<F1Score>(all, "F1Score");
  add_metric<IoU>(all, "IoU");
  add_metric<MeanIoU>(all, "MeanIoU");
  add_metric<OneHotIoU>(all, "OneHotIoU");
  add_metric<OneHotMeanIoU>(all, "OneHotMeanIoU");
  add_metric<BinaryIoU>(all, "BinaryIoU");

  add_with_own_fields<optimizers::SGD, optimizers::Adam, optimizers::AdamW, optimizers::RMSprop, optimizers::Adagrad,
                      optimizers::Adadelta, optimizers::Adamax, optimizers::Nadam, optimizers::Ftrl, optimizers::Lion,
                      optimizers::Adafactor>(all, "optimizer");
  add_options<mixed_precision::LossScaleOptions>(all, "optimizer", mixed_precision::LossScaleOptimizer::kClassName);
  std::vector<Setting>& of_scaling = all.back().settings;
  of_scaling.insert(of_scaling.begin(), {"inner_optimizer", "Optimizer", {}, "what applies the gradients"});
  namespace s = optimizers::schedules;
  add_with_own_fields<s::ExponentialDecay, s::PiecewiseConstantDecay, s::PolynomialDecay, s::InverseTimeDecay,
                      s::CosineDecay, s::CosineDecayRestarts>(all, "schedule");
  Initializers::list(all);
  Regularizers::list(all);
  Constraints::list(all);
  add_with_own_fields<EarlyStopping, LearningRateScheduler, ReduceLROnPlateau, CSVLogger, TerminateOnNaN,
                      LambdaCallback, ModelCheckpoint, BackupAndRestore, TensorBoard>(all, "callback");

  add_options<CompileOptions>(all, "method", "Model.compile");
  add_options<FitOptions>(all, "method", "Model.fit");
  add_options<EvaluateOptions>(all, "method", "Model.evaluate");
  add_options<PredictOptions>(all, "method", "Model.predict");
  add_options<SaveWeightsOptions>(all, "method", "Model.save_weights");
  add_options<LoadWeightsOptions>(all, "method", "Model.load_weights");
  add_options<data::MapOptions>(all, "method", "Dataset.map");
  add_options<data::BatchOptions>(all, "method", "Dataset.batch");
  add_options<data::PaddedBatchOptions>(all, "method", "Dataset.padded_batch");
  add_options<data::ShuffleOptions>(all, "method", "Dataset.shuffle");
  add_options<data::InterleaveOptions>(all, "method", "Dataset.interleave");
  add_options<data::WindowOptions>(all, "method", "Dataset.window");
  add_options<data::DatasetOptions>(all, "method", "Dataset.with_options");
  add_options<data::TextLineOptions>(all, "dataset", "TextLineDataset");
  add_options<data::FixedLengthOptions>(all, "dataset", "FixedLengthRecordDataset");
  add_options<data::CsvOptions>(all, "dataset", "csv");
  add_options<data::MakeCsvOptions>(all, "dataset", "make_csv_dataset");
  add_options<data::RecordOptions>(all, "dataset", "TFRecordDataset");
  std::ranges::stable_sort(all, {}, [](const ClassSettings& c) { return std::pair(c.kind, c.name); });
  return all;
}

}  // namespace

const std::vector<ClassSettings>& all_class_settings() {
  static const ClassList all = make_all();
  return all;
}

std::vector<ClassSettings> class_settings(const std::string& name) {
  ClassList found;
  for (const ClassSettings& c : all_class_settings()) {
    if (c.name == name) found.push_back(c);
  }
  if (found.empty()) throw make_error(Code::not_found, "[keras] there is no class '{}' with settings", name);
  return found;
}

}  // namespace runnel::keras
