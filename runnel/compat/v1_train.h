#pragma once

#include <string>
#include <vector>

#include "runnel/compat/v1.h"
#include "runnel/op/attr_value.h"

namespace runnel::compat::v1::train {

struct Minimize {
  std::vector<Variable> var_list = {};  // the trainable variables when empty
  Variable global_step = {};            // counted up by every step, when given
};

struct GradAndVar {
  Gradient gradient;
  Variable variable;
};

// Adds the nodes of one step of gradient descent to a graph. The slots of the variables are variables of the graph too,
// so make it before global_variables_initializer().
class RUNNEL_API Optimizer {
 public:
  virtual ~Optimizer() = default;
  // One step: running it lowers the loss.
  Operation minimize(const Tensor& loss, const Minimize& options = {}, SourceSite where = SourceSite::current());
  std::vector<GradAndVar> compute_gradients(const Tensor& loss, const std::vector<Variable>& var_list = {},
                                            SourceSite where = SourceSite::current());
  Operation apply_gradients(const std::vector<GradAndVar>& grads_and_vars, const Variable& global_step = {},
                            SourceSite where = SourceSite::current());

 protected:
  Optimizer(const Tensor& learning_rate, std::string name) : learning_rate_(learning_rate), name_(std::move(name)) {}
  // A variable of the shape of `variable`, filled with a value.
  Variable slot(const Variable& variable, const std::string& suffix, double value) const;
  Tensor scalar(const Tensor& value, const Variable& variable) const;
  Tensor scalar(double value, const Variable& variable) const;
  // Calls the dense op, or the one for rows when the gradient is IndexedSlices.
  void update(const std::string& dense, const std::string& rows, const std::vector<Variable>& variables,
              const std::vector<Tensor>& before, const Gradient& gradient, const std::vector<Tensor>& after = {},
              const std::vector<std::pair<std::string, AttrValue>>& attrs = {}) const;

  virtual void prepare(const std::vector<GradAndVar>&) {}
  virtual void apply(const GradAndVar& each) = 0;     // its last node is the update
  virtual std::vector<Fetch> finish() { return {}; }  // what else a step does, after all updates

  Tensor learning_rate_;  // a number, or a tensor of the graph
  std::string name_;
};

class RUNNEL_API GradientDescentOptimizer : public Optimizer {
 public:
  explicit GradientDescentOptimizer(const Tensor& learning_rate) : Optimizer(learning_rate, "GradientDescent") {}

 private:
  void apply(const GradAndVar& each) override;
};

class RUNNEL_API MomentumOptimizer : public Optimizer {
 public:
  MomentumOptimizer(const Tensor& learning_rate, double momentum, bool use_nesterov = false)
      : Optimizer(learning_rate, "Momentum"), momentum_(momentum), use_nesterov_(use_nesterov) {}

 private:
  void apply(const GradAndVar& each) override;
  double momentum_;
  bool use_nesterov_;
};

class RUNNEL_API AdamOptimizer : public Optimizer {
 public:
  explicit AdamOptimizer(const Tensor& learning_rate = 0.001, double beta1 = 0.9, double beta2 = 0.999,
                         double epsilon = 1e-8)
      : Optimizer(learning_rate, "Adam"), beta1_(beta1), beta2_(beta2), epsilon_(epsilon) {}

 private:
  void prepare(const std::vector<GradAndVar>& all) override;
  void apply(const GradAndVar& each) override;
  std::vector<Fetch> finish() override;
  double beta1_, beta2_, epsilon_;
  Variable beta1_power_, beta2_power_;
};

class RUNNEL_API RMSPropOptimizer : public Optimizer {
 public:
  explicit RMSPropOptimizer(const Tensor& learning_rate, double decay = 0.9, double momentum = 0.0,
                            double epsilon = 1e-10)
      : Optimizer(learning_rate, "RMSProp"), decay_(decay), momentum_(momentum), epsilon_(epsilon) {}

 private:
  void apply(const GradAndVar& each) override;
  double decay_, momentum_, epsilon_;
};

class RUNNEL_API AdagradOptimizer : public Optimizer {
 public:
  explicit AdagradOptimizer(const Tensor& learning_rate, double initial_accumulator_value = 0.1)
      : Optimizer(learning_rate, "Adagrad"), initial_(initial_accumulator_value) {}

 private:
  void apply(const GradAndVar& each) override;
  double initial_;
};

}  // namespace runnel::compat::v1::train
