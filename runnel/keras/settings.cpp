#include "runnel/keras/settings.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/keras/keras.h"

namespace runnel::keras {
namespace {

template <class T>
std::string setting_type() {
  if constexpr (is_optional<T>) {
    return "optional(" + setting_type<typename T::value_type>() + ")";
  } else if constexpr (std::is_same_v<T, bool>) {
    return "bool";
  } else if constexpr (std::is_integral_v<T>) {
    return "int";
  } else if constexpr (std::is_floating_point_v<T>) {
    return "float";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return "str";
  } else if constexpr (std::is_same_v<T, DType>) {
    return "dtype";
  } else if constexpr (std::is_same_v<T, PartialShape>) {
    return "shape";
  } else if constexpr (std::is_same_v<T, IntTuple>) {
    return "int or list(int)";
  } else if constexpr (requires { typename T::value_type; }) {
    return "list(" + setting_type<typename T::value_type>() + ")";
  } else if constexpr (std::is_same_v<T, Activation>) {
    return "Activation";
  } else if constexpr (std::is_same_v<T, Initializer>) {
    return "Initializer";
  } else if constexpr (std::is_same_v<T, Regularizer>) {
    return "Regularizer";
  } else if constexpr (std::is_same_v<T, Constraint>) {
    return "Constraint";
  } else if constexpr (std::is_base_of_v<LayerPtr, T>) {
    return "Layer";
  } else {
    return class_name_of(typeid(T));
  }
}

// Settings without a default that can be written down, such as a layer that must be given, have none.
template <class T>
Config default_of(const T& value) {
  try {
    return config_value(value);
  } catch (const Error&) {
    return {};
  }
}

template <class O, class Fields>
std::vector<Setting> settings_in(const Fields& fields) {
  std::vector<Setting> all;
  const O defaults{};
  fields([&](const auto& field) {
    const auto& value = defaults.*(field.member);
    const auto is_listed = [&](const Setting& s) { return s.name == field.name; };
    if (std::ranges::any_of(all, is_listed)) return;  // a class may have said it of its own before
    all.push_back({field.name, setting_type<std::decay_t<decltype(value)>>(), default_of(value), field.doc});
  });
  return all;
}

// The settings of the class itself first, then those that all of its kind have.
template <class O, class Own, class Common>
ClassSettings class_of(const char* kind, std::string name, const Own& own, const Common& common) {
  return {kind, std::move(name), settings_in<O>(joined_fields(own, common))};
}

using ClassList = std::vector<ClassSettings>;

template <class... L>
void add_layers(ClassList& all) {
  const auto add = [&]<class Layer>(Layer*) {
    using O = typename Layer::Options;
    const auto list = [&](const auto& own, const auto& common) {
      all.push_back(class_of<O>("layer", Layer::kClassName, own, common));
    };
    if constexpr (requires(O o) { o.input_shape; }) {
      const auto shape =
          field_list(field("input_shape", &O::input_shape, "of a sample, of the first layer of a model"));
      const auto common = joined_fields(shape, layer_fields<O>());
      if constexpr (requires(O o) { o.input_dim; }) {
        const auto size = field_list(field("input_dim", &O::input_dim, "as input_shape = {input_dim}; 0: not given"));
        list(joined_fields(O::fields(), size), common);
      } else {
        list(O::fields(), common);
      }
    } else {
      list(O::fields(), layer_fields<O>());
    }
  };
  (add(static_cast<L*>(nullptr)), ...);
}

template <class... L>
void add_losses(ClassList& all) {
  const auto add = [&]<class O>(const char* name, O*) {
    all.push_back(class_of<O>("loss", name, O::fields(), losses::loss_fields<O>()));
  };
  (add(L::kClassName, static_cast<typename L::Options*>(nullptr)), ...);
}

template <class M>
void add_metric(ClassList& all, std::string name) {
  using O = typename M::Options;
  all.push_back(class_of<O>("metric", std::move(name), O::fields(), metrics::metric_fields<O>()));
}
template <class... M>
void add_metrics(ClassList& all) {
  (add_metric<M>(all, M::kClassName), ...);
}

// `reached`: the name of the value that the other quantity must reach.
template <class M>
void add_curve_point(ClassList& all, const char* name, const char* reached) {
  using O = typename M::Options;
  const auto value = field_list(field(reached, &O::value, "what it must reach at a threshold that counts"));
  all.push_back(class_of<O>("metric", name, joined_fields(value, O::fields()), metrics::metric_fields<O>()));
}

template <class... C>
void add_with_own_fields(ClassList& all, const char* kind) {
  const auto add = [&]<class O>(const char* name, O*) {
    all.push_back(class_of<O>(kind, name, O::fields(), field_list()));
  };
  (add(C::kClassName, static_cast<typename C::Options*>(nullptr)), ...);
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
             TimeDistributed, MultiHeadAttention, Attention, AdditiveAttention>(all);

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
                      optimizers::Adadelta, optimizers::Adamax, optimizers::Nadam, optimizers::Ftrl>(all, "optimizer");
  using Scale = mixed_precision::LossScaleOptions;
  const auto scale = field_list(
      field("dynamic", &Scale::dynamic, "find the scale while training"),
      field("initial_scale", &Scale::initial_scale, "32768 when dynamic; else it must be given, and stays"),
      field("dynamic_growth_steps", &Scale::dynamic_growth_steps, "with finite gradients, before it doubles; 2000"));
  all.push_back(class_of<Scale>("optimizer", mixed_precision::LossScaleOptimizer::kClassName, scale, field_list()));
  std::vector<Setting>& of_scaling = all.back().settings;
  of_scaling.insert(of_scaling.begin(), {"inner_optimizer", "Optimizer", {}, "what applies the gradients"});
  namespace s = optimizers::schedules;
  add_with_own_fields<s::ExponentialDecay, s::PiecewiseConstantDecay, s::PolynomialDecay, s::InverseTimeDecay,
                      s::CosineDecay, s::CosineDecayRestarts>(all, "schedule");
  const auto add_options = [&]<class O>(const char* kind, const char* name, O*) {
    all.push_back(class_of<O>(kind, name, O::fields(), field_list()));
  };
  add_options("callback", "EarlyStopping", static_cast<EarlyStoppingOptions*>(nullptr));
  add_options("callback", "ReduceLROnPlateau", static_cast<ReduceLROnPlateauOptions*>(nullptr));
  add_options("initializer", "RandomUniform", static_cast<initializers::RandomUniformOptions*>(nullptr));
  add_options("initializer", "RandomNormal", static_cast<initializers::RandomNormalOptions*>(nullptr));
  add_options("initializer", "TruncatedNormal", static_cast<initializers::RandomNormalOptions*>(nullptr));
  add_options("initializer", "VarianceScaling", static_cast<initializers::VarianceScalingOptions*>(nullptr));
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
