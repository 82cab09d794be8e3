#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runnel/keras/config.h"
#include "runnel/keras/losses_utils.h"
#include "runnel/keras/serialization.h"

// Losses as functions, one value per sample (the last dimension, or `axis`, is reduced), and as objects that weight and
// reduce those values to one. Labels take the dtype of the predictions.
namespace runnel::keras::losses {

// The functions are objects with Keras's name, so that they can be given as they are: .loss = losses::huber. An error
// names the caller's line.
namespace functions {

// Labels are class numbers, one for each row of y_pred; y_pred are probabilities along `axis`, or logits. A label
// outside [0, classes) is an Error, which names it.
struct RUNNEL_API SparseCategoricalCrossentropy {
  static constexpr const char* kName = "sparse_categorical_crossentropy";
  Tensor operator()(const Tensor& y_true, const Operand& y_pred, bool from_logits = false, int64_t axis = -1) const;
};
// Labels are distributions over the classes; label_smoothing moves that share of them to all classes alike.
struct RUNNEL_API CategoricalCrossentropy {
  static constexpr const char* kName = "categorical_crossentropy";
  Tensor operator()(const Tensor& y_true, const Operand& y_pred, bool from_logits = false, double label_smoothing = 0,
                    int64_t axis = -1) const;
};
// Labels are independent probabilities; the mean over `axis`. label_smoothing moves them towards 0.5.
struct RUNNEL_API BinaryCrossentropy {
  static constexpr const char* kName = "binary_crossentropy";
  Tensor operator()(const Tensor& y_true, const Operand& y_pred, bool from_logits = false, double label_smoothing = 0,
                    int64_t axis = -1) const;
};
// mean(d ** 2 / 2) where |d| <= delta, beyond that linear.
struct RUNNEL_API Huber {
  static constexpr const char* kName = "huber";
  Tensor operator()(const Tensor& y_true, const Operand& y_pred, double delta = 1) const;
};
// Minus the cosine of the angle: -1 for the same direction.
struct RUNNEL_API CosineSimilarity {
  static constexpr const char* kName = "cosine_similarity";
  Tensor operator()(const Tensor& y_true, const Operand& y_pred, int64_t axis = -1) const;
};

RUNNEL_API Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor poisson(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor mean_absolute_percentage_error(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor mean_squared_logarithmic_error(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor hinge(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred);

}  // namespace functions

inline constexpr functions::SparseCategoricalCrossentropy sparse_categorical_crossentropy;
inline constexpr functions::CategoricalCrossentropy categorical_crossentropy;
inline constexpr functions::BinaryCrossentropy binary_crossentropy;
// sum(y_true * log(y_true / y_pred))
inline constexpr PairFunctionOf<"kl_divergence", functions::kl_divergence> kl_divergence;
// mean(y_pred - y_true * log(y_pred))
inline constexpr PairFunctionOf<"poisson", functions::poisson> poisson;

inline constexpr PairFunctionOf<"mean_squared_error", functions::mean_squared_error> mean_squared_error;
inline constexpr PairFunctionOf<"mean_absolute_error", functions::mean_absolute_error> mean_absolute_error;
// 100 mean(|d / y_true|)
inline constexpr PairFunctionOf<"mean_absolute_percentage_error", functions::mean_absolute_percentage_error>
    mean_absolute_percentage_error;
// Of log(y + 1).
inline constexpr PairFunctionOf<"mean_squared_logarithmic_error", functions::mean_squared_logarithmic_error>
    mean_squared_logarithmic_error;
inline constexpr functions::Huber huber;
inline constexpr PairFunctionOf<"log_cosh", functions::log_cosh> log_cosh;
inline constexpr functions::CosineSimilarity cosine_similarity;

// mean(max(1 - y_true * y_pred, 0)); labels are -1 and 1, those that are all 0 or 1 are converted.
inline constexpr PairFunctionOf<"hinge", functions::hinge> hinge;
inline constexpr PairFunctionOf<"squared_hinge", functions::squared_hinge> squared_hinge;
// max(largest wrong - right + 1, 0); labels are one-hot.
inline constexpr PairFunctionOf<"categorical_hinge", functions::categorical_hinge> categorical_hinge;

// Keras's short names.
inline constexpr auto mse = mean_squared_error, MSE = mse;
inline constexpr auto mae = mean_absolute_error, MAE = mae;
inline constexpr auto mape = mean_absolute_percentage_error, MAPE = mape;
inline constexpr auto msle = mean_squared_logarithmic_error, MSLE = msle;
inline constexpr auto kld = kl_divergence, KLD = kld, kullback_leibler_divergence = kld;
inline constexpr auto logcosh = log_cosh;

// A loss as models use it. To make one of your own, give the values per sample:
//   struct Quartic : keras::Loss {
//     Tensor call(const Tensor& y_true, const Tensor& y_pred) override { return reduce_mean(pow(y_pred - y_true, 4),
//     -1); }
//   };
class RUNNEL_API Loss {
 public:
  explicit Loss(std::string reduction = "auto", std::string name = "", SourceSite where = SourceSite::current());
  virtual ~Loss() = default;

  virtual Tensor call(const Tensor& y_true, const Tensor& y_pred) = 0;
  // call, weighted and reduced (see compute_weighted_loss). Weights: one per sample, or what broadcasts to call's
  // result.
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {},
                    const Tensor& mask = {}, SourceSite where = SourceSite::current());

  const std::string& name() const { return name_; }
  const std::string& reduction() const { return reduction_; }
  virtual std::string class_name() const;  // the name of the C++ class unless a loss says otherwise
  virtual Config get_config() const;       // reduction, name, then the settings of the loss
  using SerializedAs = Loss;               // see register_keras_serializable
  // A loss without a from_config of its own: by the constructor it has from Loss, else by that without arguments.
  template <class T>
  static std::shared_ptr<T> from_base_config(const Config& config) {
    if constexpr (std::constructible_from<T, std::string, std::string>) {
      const Config* reduction = config.find("reduction");
      const Config* name = config.find("name");
      return std::make_shared<T>(reduction ? reduction->as_text() : "auto", name ? name->as_text() : "");
    } else {
      static_assert(std::default_initializable<T>, "the loss needs a static from_config(const Config&)");
      return std::make_shared<T>();
    }
  }

 private:
  std::string reduction_;
  std::string name_;
};
using LossPtr = std::shared_ptr<Loss>;

// The entries that the configurations of all losses begin with.
template <class O>
constexpr auto loss_fields() {
  return field_list(field("reduction", &O::reduction,
                          "how the values of the samples become one: \"auto\", \"sum_over_batch_size\", \"sum\" or "
                          "\"none\""),
                    field("name", &O::name, "that of the function when empty"));
}

// A loss whose settings are a struct with `reduction`, `name` and a list of fields(); kClassName and kName are Keras's;
// values() is the function.
template <class Self, class OptionsType>
class LossOf : public Loss {
 public:
  using Options = OptionsType;
  explicit LossOf(Options options = {}, SourceSite where = SourceSite::current())
      : Loss(options.reduction, options.name.empty() ? Self::kName : options.name, where),
        options_(std::move(options)) {}

  const Options& options() const { return options_; }
  Tensor call(const Tensor& y_true, const Tensor& y_pred) override {
    const Matched matched = match_ranks(y_true, y_pred);
    return static_cast<const Self&>(*this).values(matched.y_true, matched.y_pred);
  }
  std::string class_name() const override { return Self::kClassName; }
  Config get_config() const override { return with_options(Loss::get_config(), options_); }
  static std::shared_ptr<Self> from_config(const Config& config) {
    Options options;
    read_fields(options, joined_fields(loss_fields<Options>(), Options::fields()), config);
    return std::make_shared<Self>(std::move(options));
  }

 protected:
  Options options_;
};

struct LossOptions {
  std::string reduction = "auto";
  std::string name = {};
  static constexpr auto fields() { return field_list(); }
};

// What losses and metrics are told of probabilities.
template <class O>
constexpr auto from_logits_fields() {
  return field_list(field("from_logits", &O::from_logits, "predictions are logits, not probabilities"));
}
template <class O>
constexpr auto crossentropy_fields() {
  return joined_fields(from_logits_fields<O>(), field_list(field("label_smoothing", &O::label_smoothing,
                                                                 "the share of a label that goes to all classes alike"),
                                                           field("axis", &O::axis, "that of the classes")));
}

struct SparseCategoricalCrossentropyOptions {
  bool from_logits = false;
  std::string reduction = "auto";
  std::string name = {};
  static constexpr auto fields() { return from_logits_fields<SparseCategoricalCrossentropyOptions>(); }
};
struct CrossentropyOptions {
  bool from_logits = false;
  double label_smoothing = 0;
  int64_t axis = -1;
  std::string reduction = "auto";
  std::string name = {};
  static constexpr auto fields() { return crossentropy_fields<CrossentropyOptions>(); }
};
struct CosineSimilarityOptions {
  int64_t axis = -1;
  std::string reduction = "auto";
  std::string name = {};
  static constexpr auto fields() {
    return field_list(field("axis", &CosineSimilarityOptions::axis, "that of the elements of a vector"));
  }
};
struct HuberOptions {
  double delta = 1;
  std::string reduction = "auto";
  std::string name = {};
  static constexpr auto fields() {
    return field_list(field("delta", &HuberOptions::delta, "where the loss becomes linear"));
  }
};

// A function of this file as a class; `settings` are the members of the options that the function takes after labels
// and predictions.
template <FixedText class_name, auto function, class OptionsType = LossOptions, auto... settings>
class FunctionLossOf : public LossOf<FunctionLossOf<class_name, function, OptionsType, settings...>, OptionsType> {
 public:
  static constexpr const char* kClassName = class_name.text;
  static constexpr const char* kName = decltype(function)::kName;
  using LossOf<FunctionLossOf, OptionsType>::LossOf;
  Tensor values(const Tensor& y_true, const Tensor& y_pred) const {
    return function(y_true, Operand(y_pred, SourceSite{}), this->options_.*settings...);
  }
};
using SparseCategoricalCrossentropy =
    FunctionLossOf<"SparseCategoricalCrossentropy", sparse_categorical_crossentropy,
                   SparseCategoricalCrossentropyOptions, &SparseCategoricalCrossentropyOptions::from_logits>;
using CategoricalCrossentropy = FunctionLossOf<"CategoricalCrossentropy", categorical_crossentropy, CrossentropyOptions,
                                               &CrossentropyOptions::from_logits, &CrossentropyOptions::label_smoothing,
                                               &CrossentropyOptions::axis>;
using BinaryCrossentropy =
    FunctionLossOf<"BinaryCrossentropy", binary_crossentropy, CrossentropyOptions, &CrossentropyOptions::from_logits,
                   &CrossentropyOptions::label_smoothing, &CrossentropyOptions::axis>;
using CosineSimilarity =
    FunctionLossOf<"CosineSimilarity", cosine_similarity, CosineSimilarityOptions, &CosineSimilarityOptions::axis>;
using MeanSquaredError = FunctionLossOf<"MeanSquaredError", mean_squared_error>;
using MeanAbsoluteError = FunctionLossOf<"MeanAbsoluteError", mean_absolute_error>;
using MeanAbsolutePercentageError = FunctionLossOf<"MeanAbsolutePercentageError", mean_absolute_percentage_error>;
using MeanSquaredLogarithmicError = FunctionLossOf<"MeanSquaredLogarithmicError", mean_squared_logarithmic_error>;
using KLDivergence = FunctionLossOf<"KLDivergence", kl_divergence>;
using Hinge = FunctionLossOf<"Hinge", hinge>;
using SquaredHinge = FunctionLossOf<"SquaredHinge", squared_hinge>;
using CategoricalHinge = FunctionLossOf<"CategoricalHinge", categorical_hinge>;
using Poisson = FunctionLossOf<"Poisson", poisson>;
using LogCosh = FunctionLossOf<"LogCosh", log_cosh>;

// Its name is not that of the function.
class RUNNEL_API Huber : public LossOf<Huber, HuberOptions> {
 public:
  static constexpr const char* kClassName = "Huber";
  static constexpr const char* kName = "huber_loss";
  using LossOf::LossOf;
  Tensor values(const Tensor& y_true, const Tensor& y_pred) const;
};

using LossFunction = std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;

// Any function that gives one value per sample, as a loss.
class RUNNEL_API LossFunctionWrapper : public Loss {
 public:
  explicit LossFunctionWrapper(LossFunction function, std::string reduction = "auto", std::string name = "loss");
  Tensor call(const Tensor& y_true, const Tensor& y_pred) override;
  std::string class_name() const override { return "LossFunctionWrapper"; }

  Config description;  // of a registered function: what `serialize` writes

 private:
  LossFunction function_;
};

// "mse", "sparse_categorical_crossentropy", "Huber", ..., or the registered name of a class or function of your own; an
// Error that lists the names there are.
RUNNEL_API LossPtr get(const std::string& name, SourceSite where = SourceSite::current());
// {"class_name": ..., "config": {...}}, or a name.
RUNNEL_API LossPtr deserialize(const Config& config, SourceSite where = SourceSite::current());
RUNNEL_API Config serialize(const Loss& loss);
// The names there are, with the short ones.
RUNNEL_API std::vector<std::string> names();
// For metrics: the function that a name or class name stands for; empty when there is none.
RUNNEL_API LossFunction find_function(const std::string& name);

}  // namespace runnel::keras::losses

namespace runnel::keras {

using losses::Loss;
using losses::LossPtr;

// A function of your own under its C++ name, for losses and metrics: .metrics = {keras::named<hits>}.
template <auto function>
inline constexpr losses::FunctionNamed<function> named{};

// A loss given by its name, as an object, or as a function (y_true, y_pred) -> Tensor: one of losses::, or your own.
class RUNNEL_API LossArg {
 public:
  LossArg() = default;                                                 // none
  LossArg(const char* name, SourceSite where = SourceSite::current())  // NOLINT: implicit, as all below
      : loss_(losses::get(name, where)) {}
  LossArg(const std::string& name, SourceSite where = SourceSite::current())  // NOLINT
      : loss_(losses::get(name, where)) {}
  template <std::derived_from<Loss> L>
  LossArg(std::shared_ptr<L> loss) : loss_(std::move(loss)) {}  // NOLINT
  template <std::derived_from<Loss> L>
  LossArg(L loss) : loss_(std::make_shared<L>(std::move(loss))) {}  // NOLINT
  template <class F>
    requires std::constructible_from<losses::LossFunction, F> && (!std::derived_from<F, Loss>)
  LossArg(F function) {  // NOLINT
    if constexpr (losses::HasName<F>) {
      auto wrapper =
          std::make_shared<losses::LossFunctionWrapper>(losses::without_line(function), "auto", std::string(F::kName));
      wrapper->description = Config(std::string(F::kName));
      loss_ = std::move(wrapper);
    } else {
      loss_ = std::make_shared<losses::LossFunctionWrapper>(std::move(function));
    }
  }

  explicit operator bool() const { return loss_ != nullptr; }
  const LossPtr& get() const { return loss_; }

 private:
  LossPtr loss_;
};

}  // namespace runnel::keras
