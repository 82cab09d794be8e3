#pragma once

// Keras's newest optimizers.
#include "runnel/keras/optimizers.h"

namespace runnel::keras::optimizers {

struct LionOptions {
  LearningRate learning_rate = 0.0001;
  double beta_1 = 0.9;
  double beta_2 = 0.99;
  std::optional<double> weight_decay = {};
  RUNNEL_OPTIMIZER_OPTIONS({});
  std::string name = "Lion";
  static constexpr auto fields() {
    using O = LionOptions;
    return optimizer_fields_and<O>(
        field_list(field("beta_1", &O::beta_1, "how much of the mean of gradients the step goes by"),
                   field("beta_2", &O::beta_2, "how much of the mean of gradients a step keeps")));
  }
};
// w -= lr * sign(beta_1 * m + (1 - beta_1) * g); m = beta_2 * m + (1 - beta_2) * g.
class RUNNEL_API Lion : public OptimizerOf<Lion, LionOptions> {
 public:
  static constexpr const char* kClassName = "Lion";
  using OptimizerOf::OptimizerOf;
  explicit Lion(Options options = {});

 protected:
  void create_slots() override;
  void update_step(const Gradient& gradient, const Variable& variable) override;
};

struct AdafactorOptions {
  LearningRate learning_rate = 0.001;
  double beta_2_decay = -0.8;
  double epsilon_1 = 1e-30;
  double epsilon_2 = 1e-3;
  double clip_threshold = 1;
  bool relative_step = true;
  std::optional<double> weight_decay = {};
  RUNNEL_OPTIMIZER_OPTIONS({});
  std::string name = "Adafactor";
  static constexpr auto fields() {
    using O = AdafactorOptions;
    return optimizer_fields_and<O>(
        field_list(field("beta_2_decay", &O::beta_2_decay, "the mean of squares keeps 1 - t^beta_2_decay"),
                   field("epsilon_1", &O::epsilon_1, "is added to squares of gradients"),
                   field("epsilon_2", &O::epsilon_2, "the least size of a variable that a step goes by"),
                   field("clip_threshold", &O::clip_threshold, "the largest root of the mean square of an update"),
                   field("relative_step", &O::relative_step,
                         "the learning rate is at most 1 / sqrt(t), unless it is a schedule")));
  }
};
// Of matrices only the means of the squares of the gradients by row (r) and by column (c) are carried on; v is made of
// them. w -= rate * u, where u = g / sqrt(v) is scaled down to clip_threshold, and rate goes by the size of w. The
// slots are parts of the lists _r, _c and _v; slot() does not know them.
class RUNNEL_API Adafactor : public OptimizerOf<Adafactor, AdafactorOptions> {
 public:
  static constexpr const char* kClassName = "Adafactor";
  using OptimizerOf::OptimizerOf;
  void build(const std::vector<Variable>& variables) override;

 protected:
  void create_slots() override;
  void update(const Step& step) override;

 private:
  void add_slot(const std::string& kind, const Variable& variable, const Shape& shape);
  Variable slot_at(const std::string& edge, size_t place);
  void update_one(const Tensor& gradient, const Variable& variable, size_t place, const Step& step);

  const std::vector<Variable>* building_ = nullptr;  // while build() runs
};

}  // namespace runnel::keras::optimizers
