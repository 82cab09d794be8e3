#pragma once

// Keras's optimizers: keras::optimizers::Adam({.learning_rate = 0.001}) or Adam(0.001). `w` is a variable, `g` its
// gradient, `lr` the learning rate, `t` the number of the step (1, 2, ...). A step changes all variables of one dtype
// by one pass over memory. IndexedSlices count as gradients that are 0 elsewhere.
#include "runnel/keras/optimizer.h"

namespace runnel::keras::optimizers {

// What is left for the base class of an optimizer with options of its own.
template <class O>
OptimizerOptions base_optimizer_options(const O& o) {
  OptimizerOptions base;
  copy_shared_fields(o, base);
  return base;
}
// All entries of a configuration: common ones, the learning rate, then those of the optimizer.
template <class O, class Own>
constexpr auto optimizer_fields_and(const Own& own) {
  return joined_fields(optimizer_fields<O>(),
                       field_list(field("learning_rate", &O::learning_rate, "a number, a schedule, or a variable")),
                       own);
}

// An optimizer whose settings are a struct with RUNNEL_OPTIMIZER_OPTIONS, `weight_decay`, `learning_rate` and a list of
// fields().
template <class Self, class OptionsType>
class OptimizerOf : public Optimizer {
 public:
  using Options = OptionsType;
  explicit OptimizerOf(Options options = {}, SourceSite where = SourceSite::current())
      : Optimizer(options.learning_rate, base_optimizer_options(options), where), options_(std::move(options)) {}
  explicit OptimizerOf(const LearningRate& learning_rate, SourceSite where = SourceSite::current())
      : OptimizerOf(with_rate(learning_rate), where) {}
  OptimizerOf(const OptimizerOf&) = default;  // moving copies, too: both are handles to the same state

  std::string class_name() const override { return Self::kClassName; }
  Config get_config() const override {
    Config config = with_options(Optimizer::get_config(), options_);
    config.set("learning_rate", learning_rate_config());  // as it is now
    return config;
  }
  static std::shared_ptr<Self> from_config(const Config& config) {
    return std::make_shared<Self>(options_from_config<Options>(config));
  }

 protected:
  const Options& options() const { return options_; }

 private:
  static Options with_rate(const LearningRate& learning_rate) {
    Options options;
    options.learning_rate = learning_rate;
    return options;
  }
  Options options_;
};

struct SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0;
  bool nesterov = false;
  std::optional<double> weight_decay = {};
  RUNNEL_OPTIMIZER_OPTIONS({});
  std::string name = "SGD";
  static constexpr auto fields() {
    using O = SGDOptions;
    return optimizer_fields_and<O>(field_list(field("momentum", &O::momentum, "how much of the last step a step keeps"),
                                              field("nesterov", &O::nesterov, "look ahead along the momentum")));
  }
};
// m = momentum * m - lr * g; w += m, or with nesterov w += momentum * m - lr * g. Without momentum m stays 0.
class RUNNEL_API SGD : public OptimizerOf<SGD, SGDOptions> {
 public:
  static constexpr const char* kClassName = "SGD";
  using OptimizerOf::OptimizerOf;
  explicit SGD(Options options = {}, SourceSite where = SourceSite::current());

 protected:
  void create_slots() override;
  void update(const Step& step) override;
};

// What Adam and its relatives are told first.
template <class O>
constexpr auto adam_fields() {
  return optimizer_fields_and<O>(
      field_list(field("beta_1", &O::beta_1, "how much of the mean of gradients a step keeps"),
                 field("beta_2", &O::beta_2, "how much of the mean of their squares a step keeps"),
                 field("epsilon", &O::epsilon, "keeps divisors from 0")));
}

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
  std::optional<double> weight_decay = {};
  RUNNEL_OPTIMIZER_OPTIONS({});
  std::string name = "Adam";
  static constexpr auto fields() {
    using O = AdamOptions;
    return joined_fields(adam_fields<O>(),
                         field_list(field("amsgrad", &O::amsgrad, "divide by the largest mean of squares so far")));
  }
};
// m += (g - m) * (1 - beta_1); v += (g^2 - v) * (1 - beta_2);
// w -= lr * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon). With amsgrad the largest v so far divides.
class RUNNEL_API Adam : public OptimizerOf<Adam, AdamOptions> {
 public:
  static constexpr const char* kClassName = "Adam";
  using OptimizerOf::OptimizerOf;

 protected:
  void create_slots() override;
  void update(const Step& step) override;
};

struct AdamWOptions {
  LearningRate learning_rate = 0.001;
  std::optional<double> weight_decay = 0.004;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
  RUNNEL_OPTIMIZER_OPTIONS({});
  std::string name = "AdamW";
  static constexpr auto fields() {
    using O = AdamWOptions;
    return joined_fields(adam_fields<O>(),
                         field_list(field("amsgrad", &O::amsgrad, "divide by the largest mean of squares so far")));
  }
};
// Adam with weights that decay unless told otherwise.
class RUNNEL_API AdamW : public Adam {
 public:
  static constexpr const char* kClassName = "AdamW";
  using Options = AdamWOptions;
  explicit AdamW(const Options& options = {});
  explicit AdamW(const LearningRate& learning_rate) : AdamW(Options{.learning_rate = learning_rate}) {}
  std::string class_name() const override { return kClassName; }
  static std::shared_ptr<AdamW> from_config(const Config& config) {
    return std::make_shared<AdamW>(options_from_config<Options>(config));
  }
};

struct RMSpropOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.9;
  double momentum = 0;
  double epsilon = 1e-7;
  bool centered = false;
  std::optional<double> weight_decay = {};
  RUNNEL_OPTIMIZER_OPTIONS(100);
  std::string name = "RMSprop";
  static constexpr auto fields() {
    using O = RMSpropOptions;
    return optimizer_fields_and<O>(
        field_list(field("rho", &O::rho, "how much of the mean of squares a step keeps"),
                   field("momentum", &O::momentum, "how much of the last step a step keeps"),
                   field("epsilon", &O::epsilon, "keeps divisors from 0"),
                   field("centered", &O::centered, "take the square of the mean gradient off")));
  }
};
// velocity = rho * velocity + (1 - rho) * g^2; step = lr * g / sqrt(velocity + epsilon); w -= step. Centered: the
// square of average_gradient = rho * average_gradient + (1 - rho) * g is taken off velocity. With momentum: momentum =
// settings.momentum * momentum + step; w -= momentum.
class RUNNEL_API RMSprop : public OptimizerOf<RMSprop, RMSpropOptions> {
 public:
  static constexpr const char* kClassName = "RMSprop";
  using OptimizerOf::OptimizerOf;

 protected:
  void create_slots() override;
  void update(const Step& step) override;
};

struct AdagradOptions {
  LearningRate learning_rate = 0.001;
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = {};
  RUNNEL_OPTIMIZER_OPTIONS({});
  std::string name = "Adagrad";
  static constexpr auto fields() {
    using O = AdagradOptions;
    return optimizer_fields_and<O>(field_list(
        field("initial_accumulator_value", &O::initial_accumulator_value, "of the accumulators; not negative"),
        field("epsilon", &O::epsilon, "keeps divisors from 0")));
  }
};
// accumulator += g^2; w -= lr * g / sqrt(accumulator + epsilon).
class RUNNEL_API Adagrad : public OptimizerOf<Adagrad, AdagradOptions> {
 public:
  static constexpr const char* kClassName = "Adagrad";
  using OptimizerOf::OptimizerOf;
  explicit Adagrad(Options options = {}, SourceSite where = SourceSite::current());

 protected:
  void create_slots() override;
  void update(const Step& step) override;
};

struct AdadeltaOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.95;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = {};
  RUNNEL_OPTIMIZER_OPTIONS({});
  std::string name = "Adadelta";
  static constexpr auto fields() {
    using O = AdadeltaOptions;
    return optimizer_fields_and<O>(field_list(field("rho", &O::rho, "how much of the mean of squares a step keeps"),
                                              field("epsilon", &O::epsilon, "keeps divisors from 0")));
  }
};
// accumulated_grad = rho * accumulated_grad + (1 - rho) * g^2;
// delta = g * sqrt(accumulated_delta_var + epsilon) / sqrt(accumulated_grad + epsilon);
// accumulated_delta_var = rho * accumulated_delta_var + (1 - rho) * delta^2; w -= lr * delta.
class RUNNEL_API Adadelta : public OptimizerOf<Adadelta, AdadeltaOptions> {
 public:
  static constexpr const char* kClassName = "Adadelta";
  using OptimizerOf::OptimizerOf;

 protected:
  void create_slots() override;
  void update(const Step& step) override;
};

struct AdamaxOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = {};
  RUNNEL_OPTIMIZER_OPTIONS({});
  std::string name = "Adamax";
  static constexpr auto fields() { return adam_fields<AdamaxOptions>(); }
};
// m += (g - m) * (1 - beta_1); u = max(beta_2 * u, |g|); w -= lr / (1 - beta_1^t) * m / (u + epsilon).
class RUNNEL_API Adamax : public OptimizerOf<Adamax, AdamaxOptions> {
 public:
  static constexpr const char* kClassName = "Adamax";
  using OptimizerOf::OptimizerOf;

 protected:
  void create_slots() override;
  void update(const Step& step) override;
};

struct NadamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = {};
  RUNNEL_OPTIMIZER_OPTIONS({});
  std::string name = "Nadam";
  static constexpr auto fields() { return adam_fields<NadamOptions>(); }
};
// u_t = beta_1 * (1 - 0.96^t / 2), U_t their product up to t; m and v as Adam's;
// w -= lr * (u_{t+1} * m / (1 - U_{t+1}) + (1 - u_t) * g / (1 - U_t)) / (sqrt(v / (1 - beta_2^t)) + epsilon).
class RUNNEL_API Nadam : public OptimizerOf<Nadam, NadamOptions> {
 public:
  static constexpr const char* kClassName = "Nadam";
  using OptimizerOf::OptimizerOf;

 protected:
  void create_slots() override;
  void begin_step() override;
  void update(const Step& step) override;

 private:
  Tensor u_at(const Tensor& t) const;
  Variable u_product() const;  // U of the last step
};

struct FtrlOptions {
  LearningRate learning_rate = 0.001;
  double learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0;
  double beta = 0;
  std::optional<double> weight_decay = {};
  RUNNEL_OPTIMIZER_OPTIONS({});
  std::string name = "Ftrl";
  static constexpr auto fields() {
    using O = FtrlOptions;
    return optimizer_fields_and<O>(field_list(
        field("learning_rate_power", &O::learning_rate_power, "how the rate falls with the accumulator; at most 0"),
        field("initial_accumulator_value", &O::initial_accumulator_value, "of the accumulators; not negative"),
        field("l1_regularization_strength", &O::l1_regularization_strength, "not negative"),
        field("l2_regularization_strength", &O::l2_regularization_strength, "not negative"),
        field("l2_shrinkage_regularization_strength", &O::l2_shrinkage_regularization_strength,
              "a decay of the weights that the accumulator does not see"),
        field("beta", &O::beta, "added to the root of the accumulator")));
  }
};
// Follows the regularized leader, with n the accumulator, p = -learning_rate_power, G = g + 2 * l2_shrinkage * w:
// linear += G - ((n + g^2)^p - n^p) / lr * w; n += g^2;
// w = (clip(linear, -l1, l1) - linear) / (n^p / lr + 2 * l2 + beta / lr).
class RUNNEL_API Ftrl : public OptimizerOf<Ftrl, FtrlOptions> {
 public:
  static constexpr const char* kClassName = "Ftrl";
  using OptimizerOf::OptimizerOf;
  explicit Ftrl(Options options = {}, SourceSite where = SourceSite::current());

 protected:
  void create_slots() override;
  void update(const Step& step) override;
};

}  // namespace runnel::keras::optimizers
