#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runnel/keras/config.h"
#include "runnel/keras/losses_utils.h"
#include "runnel/keras/serialization.h"

// Losses as functions, one value per sample (the last dimension, or `axis`, is reduced), and as objects that weight and
// reduce those values to one. Labels take the dtype of the predictions.
namespace runnel::keras::losses {

// Labels are class numbers, one for each row of y_pred; y_pred are probabilities along `axis`, or logits. A label
// outside [0, classes) is an Error, which names it.
RUNNEL_API Tensor sparse_categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred, bool from_logits = false,
                                                  int axis = -1);
// Labels are distributions over the classes; label_smoothing moves that share of them to all classes alike.
RUNNEL_API Tensor categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred, bool from_logits = false,
                                           double label_smoothing = 0, int axis = -1);
// Labels are independent probabilities; the mean over `axis`. label_smoothing moves them towards 0.5.
RUNNEL_API Tensor binary_crossentropy(const Tensor& y_true, const Tensor& y_pred, bool from_logits = false,
                                      double label_smoothing = 0, int axis = -1);
RUNNEL_API Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred);  // sum(y_true * log(y_true / y_pred))
RUNNEL_API Tensor poisson(const Tensor& y_true, const Tensor& y_pred);        // mean(y_pred - y_true * log(y_pred))

RUNNEL_API Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor mean_absolute_percentage_error(const Tensor& y_true, const Tensor& y_pred);  // 100 mean(|d / y_true|)
RUNNEL_API Tensor mean_squared_logarithmic_error(const Tensor& y_true, const Tensor& y_pred);  // of log(y + 1)
// mean(d ** 2 / 2) where |d| <= delta, beyond that linear.
RUNNEL_API Tensor huber(const Tensor& y_true, const Tensor& y_pred, double delta = 1);
RUNNEL_API Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred);
// Minus the cosine of the angle: -1 for the same direction.
RUNNEL_API Tensor cosine_similarity(const Tensor& y_true, const Tensor& y_pred, int axis = -1);

// mean(max(1 - y_true * y_pred, 0)); labels are -1 and 1, those that are all 0 or 1 are converted.
RUNNEL_API Tensor hinge(const Tensor& y_true, const Tensor& y_pred);
RUNNEL_API Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred);
// max(largest wrong - right + 1, 0); labels are one-hot.
RUNNEL_API Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred);

// A loss as models use it. To make one of your own, give the values per sample:
//   struct Quartic : keras::Loss {
//     Tensor call(const Tensor& y_true, const Tensor& y_pred) override { return reduce_mean(pow(y_pred - y_true, 4),
//     -1); }
//   };
class RUNNEL_API Loss {
 public:
  explicit Loss(std::string reduction = "auto", std::string name = "");
  virtual ~Loss() = default;

  virtual Tensor call(const Tensor& y_true, const Tensor& y_pred) = 0;
  // call, weighted and reduced (see compute_weighted_loss). Weights: one per sample, or what broadcasts to call's
  // result.
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {},
                    const Tensor& mask = {});

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

// Losses of this file: settings in a struct; kClassName and kName are Keras's; values() is the function.
template <class Self, class OptionsType>
class LossOf : public Loss {
 public:
  using Options = OptionsType;
  explicit LossOf(Options options = {})
      : Loss(options.reduction, options.name.empty() ? Self::kName : options.name), options_(std::move(options)) {}

  const Options& options() const { return options_; }
  Tensor call(const Tensor& y_true, const Tensor& y_pred) override {
    const Matched matched = match_ranks(y_true, y_pred);
    return static_cast<const Self&>(*this).values(matched.y_true, matched.y_pred);
  }
  std::string class_name() const override { return Self::kClassName; }
  Config get_config() const override {
    Config config = Loss::get_config();
    for (auto& [key, value] : options_to_config(options_)) config.set(key, std::move(value));
    return config;
  }
  static std::shared_ptr<Self> from_config(const Config& config) {
    Options options = options_from_config<Options>(config);
    if (const Config* reduction = config.find("reduction")) options.reduction = reduction->as_text();
    if (const Config* name = config.find("name")) options.name = name->as_text();
    return std::make_shared<Self>(std::move(options));
  }

 protected:
  Options options_;
};

struct LossOptions {
  std::string reduction = "auto";  // "sum_over_batch_size", "sum", "none"
  std::string name;                // that of the function when empty
  static constexpr auto fields() { return field_list(); }
};
struct SparseCategoricalCrossentropyOptions {
  bool from_logits = false;
  std::string reduction = "auto";
  std::string name;
  static constexpr auto fields() {
    return field_list(field("from_logits", &SparseCategoricalCrossentropyOptions::from_logits));
  }
};
struct CrossentropyOptions {
  bool from_logits = false;
  double label_smoothing = 0;
  int64_t axis = -1;
  std::string reduction = "auto";
  std::string name;
  static constexpr auto fields() {
    return field_list(field("from_logits", &CrossentropyOptions::from_logits),
                      field("label_smoothing", &CrossentropyOptions::label_smoothing),
                      field("axis", &CrossentropyOptions::axis));
  }
};
struct HuberOptions {
  double delta = 1;
  std::string reduction = "auto";
  std::string name;
  static constexpr auto fields() { return field_list(field("delta", &HuberOptions::delta)); }
};
struct CosineSimilarityOptions {
  int64_t axis = -1;
  std::string reduction = "auto";
  std::string name;
  static constexpr auto fields() { return field_list(field("axis", &CosineSimilarityOptions::axis)); }
};

class RUNNEL_API SparseCategoricalCrossentropy
    : public LossOf<SparseCategoricalCrossentropy, SparseCategoricalCrossentropyOptions> {
 public:
  static constexpr const char* kClassName = "SparseCategoricalCrossentropy";
  static constexpr const char* kName = "sparse_categorical_crossentropy";
  using LossOf::LossOf;
  Tensor values(const Tensor& y_true, const Tensor& y_pred) const;
};
class RUNNEL_API CategoricalCrossentropy : public LossOf<CategoricalCrossentropy, CrossentropyOptions> {
 public:
  static constexpr const char* kClassName = "CategoricalCrossentropy";
  static constexpr const char* kName = "categorical_crossentropy";
  using LossOf::LossOf;
  Tensor values(const Tensor& y_true, const Tensor& y_pred) const;
};
class RUNNEL_API BinaryCrossentropy : public LossOf<BinaryCrossentropy, CrossentropyOptions> {
 public:
  static constexpr const char* kClassName = "BinaryCrossentropy";
  static constexpr const char* kName = "binary_crossentropy";
  using LossOf::LossOf;
  Tensor values(const Tensor& y_true, const Tensor& y_pred) const;
};
class RUNNEL_API Huber : public LossOf<Huber, HuberOptions> {
 public:
  static constexpr const char* kClassName = "Huber";
  static constexpr const char* kName = "huber_loss";
  using LossOf::LossOf;
  Tensor values(const Tensor& y_true, const Tensor& y_pred) const;
};
class RUNNEL_API CosineSimilarity : public LossOf<CosineSimilarity, CosineSimilarityOptions> {
 public:
  static constexpr const char* kClassName = "CosineSimilarity";
  static constexpr const char* kName = "cosine_similarity";
  using LossOf::LossOf;
  Tensor values(const Tensor& y_true, const Tensor& y_pred) const;
};

// Those without settings of their own.
template <FixedText class_name, FixedText name, Tensor (*function)(const Tensor&, const Tensor&)>
class FunctionLossOf : public LossOf<FunctionLossOf<class_name, name, function>, LossOptions> {
 public:
  static constexpr const char* kClassName = class_name.text;
  static constexpr const char* kName = name.text;
  using LossOf<FunctionLossOf, LossOptions>::LossOf;
  Tensor values(const Tensor& y_true, const Tensor& y_pred) const { return function(y_true, y_pred); }
};
using MeanSquaredError = FunctionLossOf<"MeanSquaredError", "mean_squared_error", mean_squared_error>;
using MeanAbsoluteError = FunctionLossOf<"MeanAbsoluteError", "mean_absolute_error", mean_absolute_error>;
using MeanAbsolutePercentageError =
    FunctionLossOf<"MeanAbsolutePercentageError", "mean_absolute_percentage_error", mean_absolute_percentage_error>;
using MeanSquaredLogarithmicError =
    FunctionLossOf<"MeanSquaredLogarithmicError", "mean_squared_logarithmic_error", mean_squared_logarithmic_error>;
using KLDivergence = FunctionLossOf<"KLDivergence", "kl_divergence", kl_divergence>;
using Hinge = FunctionLossOf<"Hinge", "hinge", hinge>;
using SquaredHinge = FunctionLossOf<"SquaredHinge", "squared_hinge", squared_hinge>;
using CategoricalHinge = FunctionLossOf<"CategoricalHinge", "categorical_hinge", categorical_hinge>;
using Poisson = FunctionLossOf<"Poisson", "poisson", poisson>;
using LogCosh = FunctionLossOf<"LogCosh", "log_cosh", log_cosh>;

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
RUNNEL_API LossPtr get(const std::string& name);
// {"class_name": ..., "config": {...}}, or a name.
RUNNEL_API LossPtr deserialize(const Config& config);
RUNNEL_API Config serialize(const Loss& loss);
// For metrics: the function that a name or class name stands for; empty when there is none.
RUNNEL_API LossFunction find_function(const std::string& name);

}  // namespace runnel::keras::losses

namespace runnel::keras {

using losses::Loss;
using losses::LossPtr;

// A loss given by its name, as an object, or as a plain function (y_true, y_pred) -> Tensor.
class RUNNEL_API LossArg {
 public:
  LossArg() = default;                                            // none
  LossArg(const char* name) : loss_(losses::get(name)) {}         // NOLINT: implicit, as all below
  LossArg(const std::string& name) : loss_(losses::get(name)) {}  // NOLINT
  template <std::derived_from<Loss> L>
  LossArg(std::shared_ptr<L> loss) : loss_(std::move(loss)) {}  // NOLINT
  template <std::derived_from<Loss> L>
  LossArg(L loss) : loss_(std::make_shared<L>(std::move(loss))) {}  // NOLINT
  template <class F>
    requires std::constructible_from<losses::LossFunction, F> && (!std::derived_from<F, Loss>)
  LossArg(F function)  // NOLINT
      : loss_(std::make_shared<losses::LossFunctionWrapper>(std::move(function))) {}

  explicit operator bool() const { return loss_ != nullptr; }
  const LossPtr& get() const { return loss_; }

 private:
  LossPtr loss_;
};

}  // namespace runnel::keras
