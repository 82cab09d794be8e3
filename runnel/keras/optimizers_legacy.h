#pragma once

// Keras's optimizers of before 2.11, as tf.keras.optimizers.legacy has them: for checkpoints of that time. Their slots
// stand in checkpoints beside the variables they are for, and their settings are variables too, which are restored.
#include <map>
#include <optional>
#include <string>

#include "runnel/keras/optimizer.h"

namespace runnel::keras::optimizers::legacy {

// What they have in common: settings that are variables. The learning rate of a step is
// learning_rate / (1 + decay * iterations).
class RUNNEL_API LegacyOptimizer : public Optimizer {
 public:
  void build(const std::vector<Variable>& variables) override;
  // "decay", "beta_1", ...
  const Variable& hyper(const std::string& name) const;
  Config get_config() const override;

 protected:
  struct Common {
    LearningRate learning_rate;
    double decay;
    std::optional<double> clipnorm, clipvalue, global_clipnorm;
    std::string name;
  };
  LegacyOptimizer(const Common& common, const std::map<std::string, double>& hypers);

  Tensor hyper_of(const std::string& name, const Step& step) const;  // of its dtype
  Tensor learning_rate_of(const Step& step) const;

 private:
  bool has_schedule_;
  std::map<std::string, Variable> hypers_;
};

struct SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0;
  bool nesterov = false;
  double decay = 0;
  std::optional<double> clipnorm = {}, clipvalue = {}, global_clipnorm = {};
  std::string name = "SGD";
};
// As optimizers::SGD.
class RUNNEL_API SGD : public LegacyOptimizer {
 public:
  explicit SGD(const SGDOptions& options = {});
  explicit SGD(const LearningRate& learning_rate) : SGD(SGDOptions{.learning_rate = learning_rate}) {}
  std::string class_name() const override { return "SGD"; }
  Config get_config() const override;

 protected:
  void create_slots() override;
  void update(const Step& step) override;

 private:
  bool momentum_, nesterov_;
};

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
  double decay = 0;
  std::optional<double> clipnorm = {}, clipvalue = {}, global_clipnorm = {};
  std::string name = "Adam";
};
// As optimizers::Adam.
class RUNNEL_API Adam : public LegacyOptimizer {
 public:
  explicit Adam(const AdamOptions& options = {});
  explicit Adam(const LearningRate& learning_rate) : Adam(AdamOptions{.learning_rate = learning_rate}) {}
  std::string class_name() const override { return "Adam"; }
  Config get_config() const override;

 protected:
  void create_slots() override;
  void update(const Step& step) override;

 private:
  double epsilon_;
  bool amsgrad_;
};

struct RMSpropOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.9;
  double momentum = 0;
  double epsilon = 1e-7;
  bool centered = false;
  double decay = 0;
  std::optional<double> clipnorm = {}, clipvalue = {}, global_clipnorm = {};
  std::string name = "RMSprop";
};
// rms = rho * rms + (1 - rho) * g^2; w -= lr * g / (sqrt(rms) + epsilon). Centered: the square of mg = rho * mg +
// (1 - rho) * g is taken off rms. With momentum the step is lr * g / sqrt(rms + epsilon) and is kept in momentum.
class RUNNEL_API RMSprop : public LegacyOptimizer {
 public:
  explicit RMSprop(const RMSpropOptions& options = {});
  explicit RMSprop(const LearningRate& learning_rate) : RMSprop(RMSpropOptions{.learning_rate = learning_rate}) {}
  std::string class_name() const override { return "RMSprop"; }
  Config get_config() const override;

 protected:
  void create_slots() override;
  void update(const Step& step) override;

 private:
  double epsilon_;
  bool momentum_, centered_;
};

}  // namespace runnel::keras::optimizers::legacy
