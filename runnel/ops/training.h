#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runnel/op/attr_value.h"
#include "runnel/op/gradient.h"
#include "runnel/ops/state.h"

// TensorFlow's fused optimizer updates. Each changes `var` and its slots (variables of the same shape) for one
// gradient, dense or IndexedSlices; rows that IndexedSlices name twice are added up first.
namespace runnel::training {

RUNNEL_API void apply_gradient_descent(const Variable& var, double alpha, const Gradient& grad,
                                       SourceSite where = SourceSite::current());

struct MomentumStep {
  double lr = 0.01;
  double momentum = 0.9;
  bool use_nesterov = false;
};
RUNNEL_API void apply_momentum(const Variable& var, const Variable& accum, const MomentumStep& step,
                               const Gradient& grad, SourceSite where = SourceSite::current());
// Keras's form: the learning rate is inside the accumulator.
RUNNEL_API void apply_keras_momentum(const Variable& var, const Variable& accum, const MomentumStep& step,
                                     const Gradient& grad, SourceSite where = SourceSite::current());

struct AdamStep {
  double beta1_power = 0.9;    // beta1 to the number of this step (1, 2, ...)
  double beta2_power = 0.999;  // likewise
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
  bool use_nesterov = false;
};
RUNNEL_API void apply_adam(const Variable& var, const Variable& m, const Variable& v, const AdamStep& step,
                           const Gradient& grad, SourceSite where = SourceSite::current());
RUNNEL_API void apply_adam_with_amsgrad(const Variable& var, const Variable& m, const Variable& v, const Variable& vhat,
                                        const AdamStep& step, const Gradient& grad,
                                        SourceSite where = SourceSite::current());
RUNNEL_API void apply_adamax(const Variable& var, const Variable& m, const Variable& v, const AdamStep& step,
                             const Gradient& grad, SourceSite where = SourceSite::current());

struct RMSPropStep {
  double lr = 0.001;
  double rho = 0.9;
  double momentum = 0.0;
  double epsilon = 1e-7;
};
RUNNEL_API void apply_rms_prop(const Variable& var, const Variable& ms, const Variable& mom, const RMSPropStep& step,
                               const Gradient& grad, SourceSite where = SourceSite::current());
RUNNEL_API void apply_centered_rms_prop(const Variable& var, const Variable& mg, const Variable& ms,
                                        const Variable& mom, const RMSPropStep& step, const Gradient& grad,
                                        SourceSite where = SourceSite::current());

RUNNEL_API void apply_adagrad(const Variable& var, const Variable& accum, double lr, double epsilon,
                              const Gradient& grad, SourceSite where = SourceSite::current());
RUNNEL_API void apply_adadelta(const Variable& var, const Variable& accum, const Variable& accum_update, double lr,
                               double rho, double epsilon, const Gradient& grad,
                               SourceSite where = SourceSite::current());

struct FtrlStep {
  double lr = 0.001;
  double l1 = 0.0;
  double l2 = 0.0;
  double l2_shrinkage = 0.0;
  double lr_power = -0.5;
};
RUNNEL_API void apply_ftrl(const Variable& var, const Variable& accum, const Variable& linear, const FtrlStep& step,
                           const Gradient& grad, SourceSite where = SourceSite::current());

// An update op ("ResourceApplyAdam", ...) on any number of variables of one dtype. `variables` has lists in the order
// of the op's inputs: the variables, their first slots, ...; the scalars, in the op's order too, serve all of them.
// Called eagerly it is one op over all variables; in a function it is one for each, which a pass joins where that pays.
RUNNEL_API void apply_to_all(const std::string& op, const std::vector<std::vector<Variable>>& variables,
                             const std::vector<Tensor>& scalars, const std::vector<Tensor>& gradients,
                             const std::vector<std::pair<std::string, AttrValue>>& attrs);
// Without attributes: a default argument would make every user of this header compile the lists of them.
RUNNEL_API void apply_to_all(const std::string& op, const std::vector<std::vector<Variable>>& variables,
                             const std::vector<Tensor>& scalars, const std::vector<Tensor>& gradients);

}  // namespace runnel::training
