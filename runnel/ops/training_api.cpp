// The public functions over the update ops of training.cpp.
#include <vector>

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/registry.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"
#include "runnel/ops/segment.h"
#include "runnel/ops/sort.h"
#include "runnel/ops/training.h"
#include "runnel/ops/training_rules.h"

namespace runnel::training {
namespace {

// IndexedSlices with every row named once.
IndexedSlices without_repeats(const IndexedSlices& s) {
  const auto rows = unique(s.indices);
  return {math::unsorted_segment_sum(s.values, rows.idx, size(rows.y)), rows.y, s.dense_shape};
}

// Calls `dense` or `rows` (which may be null for ops that have no such form) with inputs in the order of the rule.
template <class Rule>
void apply(const char* dense, const char* rows, const std::vector<const Variable*>& variables,
           const std::vector<double>& scalars, const Gradient& grad, const typename Rule::Attrs& attrs = {}) {
  if (!grad.defined()) {
    throw invalid_argument("[{}] there is no gradient to apply to Variable '{}'", dense, variables[0]->name());
  }
  const DType dtype = variables[0]->dtype();
  std::vector<Tensor> inputs;
  for (const Variable* v : variables) inputs.push_back(v->handle());
  for (size_t i = 0; i <= scalars.size(); ++i) {
    if (static_cast<int>(i) == Rule::grad_after) {
      if (grad.is_slices()) {
        const IndexedSlices s = without_repeats(grad.slices());
        inputs.push_back(s.values);
        inputs.push_back(s.indices);
      } else {
        inputs.push_back(grad.dense());
      }
    }
    if (i < scalars.size()) inputs.push_back(Operand(scalars[i]).as(dtype));
  }
  const Op<typename Rule::Attrs> op(grad.is_slices() ? rows : dense);
  const std::vector<Arg> args(inputs.begin(), inputs.end());
  op.many(args, attrs);
}

// value += (target - value) * rate where only the given rows have a target; the others' target is 0.
void decay_towards(const Variable& value, double rate, const IndexedSlices& target) {
  value.assign(value * (1 - rate));
  value.scatter_add({target.values * rate, target.indices, target.dense_shape});
}

}  // namespace

void apply_gradient_descent(const Variable& var, double alpha, const Gradient& grad, SourceSite where) {
  composed(where, [&] {
    if (grad.is_slices()) {
      var.scatter_sub({grad.slices().values * alpha, grad.slices().indices, grad.slices().dense_shape});
    } else {
      apply<rules::GradientDescent>("ResourceApplyGradientDescent", nullptr, {&var}, {alpha}, grad);
    }
  });
}

void apply_momentum(const Variable& var, const Variable& accum, const MomentumStep& s, const Gradient& grad,
                    SourceSite where) {
  composed(where, [&] {
    apply<rules::Momentum>("ResourceApplyMomentum", "ResourceSparseApplyMomentum", {&var, &accum}, {s.lr, s.momentum},
                           grad, {.use_nesterov = s.use_nesterov});
  });
}
void apply_keras_momentum(const Variable& var, const Variable& accum, const MomentumStep& s, const Gradient& grad,
                          SourceSite where) {
  composed(where, [&] {
    apply<rules::KerasMomentum>("ResourceApplyKerasMomentum", "ResourceSparseApplyKerasMomentum", {&var, &accum},
                                {s.lr, s.momentum}, grad, {.use_nesterov = s.use_nesterov});
  });
}

void apply_adam(const Variable& var, const Variable& m, const Variable& v, const AdamStep& s, const Gradient& grad,
                SourceSite where) {
  composed(where, [&] {
    if (!grad.is_slices()) {
      return apply<rules::Adam>("ResourceApplyAdam", nullptr, {&var, &m, &v},
                                {s.beta1_power, s.beta2_power, s.lr, s.beta1, s.beta2, s.epsilon}, grad,
                                {.use_nesterov = s.use_nesterov});
    }
    // As TensorFlow does it: the moments of all rows decay and every row moves, only the gradient is sparse.
    const IndexedSlices g = without_repeats(grad.slices());
    decay_towards(m, 1 - s.beta1, g);
    decay_towards(v, 1 - s.beta2, {square(g.values), g.indices, g.dense_shape});
    const double alpha = s.lr * std::sqrt(1 - s.beta2_power) / (1 - s.beta1_power);
    var.assign_sub(m * alpha / (sqrt(v) + s.epsilon));
  });
}

void apply_adam_with_amsgrad(const Variable& var, const Variable& m, const Variable& v, const Variable& vhat,
                             const AdamStep& s, const Gradient& grad, SourceSite where) {
  composed(where, [&] {
    if (!grad.is_slices()) {
      return apply<rules::AdamWithAmsgrad>("ResourceApplyAdamWithAmsgrad", nullptr, {&var, &m, &v, &vhat},
                                           {s.beta1_power, s.beta2_power, s.lr, s.beta1, s.beta2, s.epsilon}, grad);
    }
    const IndexedSlices g = without_repeats(grad.slices());
    decay_towards(m, 1 - s.beta1, g);
    decay_towards(v, 1 - s.beta2, {square(g.values), g.indices, g.dense_shape});
    vhat.assign(maximum(vhat, v));
    const double alpha = s.lr * std::sqrt(1 - s.beta2_power) / (1 - s.beta1_power);
    var.assign_sub(m * alpha / (sqrt(vhat) + s.epsilon));
  });
}

void apply_adamax(const Variable& var, const Variable& m, const Variable& v, const AdamStep& s, const Gradient& grad,
                  SourceSite where) {
  composed(where, [&] {
    if (!grad.is_slices()) {
      return apply<rules::AdaMax>("ResourceApplyAdaMax", nullptr, {&var, &m, &v},
                                  {s.beta1_power, s.lr, s.beta1, s.beta2, s.epsilon}, grad);
    }
    // Keras's sparse form: only the named rows change.
    const IndexedSlices g = without_repeats(grad.slices());
    const Tensor m_rows = gather(m, g.indices) * s.beta1 + g.values * (1 - s.beta1);
    const Tensor v_rows = maximum(gather(v, g.indices) * s.beta2, abs(g.values));
    m.scatter_update({m_rows, g.indices, g.dense_shape});
    v.scatter_update({v_rows, g.indices, g.dense_shape});
    var.scatter_sub({m_rows * (s.lr / (1 - s.beta1_power)) / (v_rows + s.epsilon), g.indices, g.dense_shape});
  });
}

void apply_rms_prop(const Variable& var, const Variable& ms, const Variable& mom, const RMSPropStep& s,
                    const Gradient& grad, SourceSite where) {
  composed(where, [&] {
    apply<rules::RMSProp>("ResourceApplyRMSProp", "ResourceSparseApplyRMSProp", {&var, &ms, &mom},
                          {s.lr, s.rho, s.momentum, s.epsilon}, grad);
  });
}
void apply_centered_rms_prop(const Variable& var, const Variable& mg, const Variable& ms, const Variable& mom,
                             const RMSPropStep& s, const Gradient& grad, SourceSite where) {
  composed(where, [&] {
    apply<rules::CenteredRMSProp>("ResourceApplyCenteredRMSProp", "ResourceSparseApplyCenteredRMSProp",
                                  {&var, &mg, &ms, &mom}, {s.lr, s.rho, s.momentum, s.epsilon}, grad);
  });
}

void apply_adagrad(const Variable& var, const Variable& accum, double lr, double epsilon, const Gradient& grad,
                   SourceSite where) {
  composed(where, [&] {
    apply<rules::AdagradV2>("ResourceApplyAdagradV2", "ResourceSparseApplyAdagradV2", {&var, &accum}, {lr, epsilon},
                            grad);
  });
}
void apply_adadelta(const Variable& var, const Variable& accum, const Variable& accum_update, double lr, double rho,
                    double epsilon, const Gradient& grad, SourceSite where) {
  composed(where, [&] {
    apply<rules::Adadelta>("ResourceApplyAdadelta", "ResourceSparseApplyAdadelta", {&var, &accum, &accum_update},
                           {lr, rho, epsilon}, grad);
  });
}
void apply_ftrl(const Variable& var, const Variable& accum, const Variable& linear, const FtrlStep& s,
                const Gradient& grad, SourceSite where) {
  composed(where, [&] {
    apply<rules::FtrlV2>("ResourceApplyFtrlV2", "ResourceSparseApplyFtrlV2", {&var, &accum, &linear},
                         {s.lr, s.l1, s.l2, s.l2_shrinkage, s.lr_power}, grad);
  });
}

void apply_to_all(const std::string& op, const std::vector<std::vector<Variable>>& variables,
                  const std::vector<Tensor>& scalars, const std::vector<Tensor>& gradients) {
  apply_to_all(op, variables, scalars, gradients, {});
}

void apply_to_all(const std::string& op, const std::vector<std::vector<Variable>>& variables,
                  const std::vector<Tensor>& scalars, const std::vector<Tensor>& gradients,
                  const std::vector<std::pair<std::string, AttrValue>>& attrs) {
  const OpDef& one = registry().get(op);
  if (!one.many) throw invalid_argument("[apply_to_all] {} does not update variables", op);
  const OpDef& many = registry().get(one.many);
  if (variables.size() + scalars.size() + 1 != one.inputs.size()) {
    throw invalid_argument("[apply_to_all] {} has {} inputs, got {} lists of variables, {} scalars and gradients", op,
                           one.inputs.size(), variables.size(), scalars.size());
  }
  for (const auto& list : variables) {
    if (list.size() == gradients.size()) continue;
    throw invalid_argument("[apply_to_all] {} got {} variables and {} gradients", op, list.size(), gradients.size());
  }
  // The inputs for the variables from `first` on, `count` of them.
  const auto inputs = [&](size_t first, size_t count) {
    std::vector<Tensor> in;
    in.reserve(variables.size() * count + scalars.size() + count);
    for (const auto& list : variables) {
      for (size_t i = first; i < first + count; ++i) in.push_back(list[i].handle());
    }
    size_t scalar = 0;
    for (size_t k = variables.size(); k < one.inputs.size(); ++k) {
      if (many.inputs[k].is_list()) {
        in.insert(in.end(), gradients.begin() + static_cast<std::ptrdiff_t>(first),
                  gradients.begin() + static_cast<std::ptrdiff_t>(first + count));
      } else {
        in.push_back(scalars[scalar++]);
      }
    }
    return in;
  };
  if (gradients.empty()) return;
  if (!current_interceptor()) {
    call_op(many.name, inputs(0, gradients.size()), attrs);
    return;
  }
  for (size_t i = 0; i < gradients.size(); ++i) call_op(op, inputs(i, 1), attrs);
}

}  // namespace runnel::training
