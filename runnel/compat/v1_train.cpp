#include "runnel/compat/v1_train.h"

#include "runnel/base/format.h"
#include "runnel/compat/v1_graph.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/segment.h"
#include "runnel/ops/sort.h"
#include "runnel/ops/variable_slot.h"

namespace runnel::compat::v1::train {

std::vector<GradAndVar> Optimizer::compute_gradients(const Tensor& loss, const std::vector<Variable>& var_list,
                                                     SourceSite where) {
  return composed(where, [&] {
    const std::vector<Variable> variables = var_list.empty() ? v1::trainable_variables() : var_list;
    const std::vector<Gradient> all = v1::gradients(loss, variables);
    std::vector<GradAndVar> result;
    for (size_t i = 0; i < variables.size(); ++i) result.push_back({all[i], variables[i]});
    return result;
  });
}

Operation Optimizer::apply_gradients(const std::vector<GradAndVar>& grads_and_vars, const Variable& global_step,
                                     SourceSite where) {
  return composed(where, [&] {
    GraphState& state = building_state("Optimizer.apply_gradients");
    std::vector<GradAndVar> given;
    for (const GradAndVar& each : grads_and_vars) {
      if (each.gradient.defined()) given.push_back(each);
    }
    if (given.empty()) throw invalid_argument("[{}] the loss depends on none of the variables", name_);
    prepare(given);
    std::vector<Fetch> updates;
    for (const GradAndVar& each : given) {
      apply(each);
      updates.emplace_back(state.last());
    }
    const ControlDependencies after(updates);
    for (const Fetch& more : finish()) updates.push_back(more);
    if (global_step.defined()) updates.emplace_back(v1::assign_add(global_step, 1));
    return v1::group(updates, name_);
  });
}

Operation Optimizer::minimize(const Tensor& loss, const Minimize& options, SourceSite where) {
  return composed(where,
                  [&] { return apply_gradients(compute_gradients(loss, options.var_list), options.global_step); });
}

Variable Optimizer::slot(const Variable& variable, const std::string& suffix, double value) const {
  return v1::get_variable(variable.name() + "/" + suffix, Shape(variable.slot().shape),
                          {.dtype = variable.dtype(), .initializer = constant_initializer(value), .trainable = false});
}

Tensor Optimizer::scalar(const Tensor& value, const Variable& variable) const {
  return value.dtype() == variable.dtype() ? value : cast(value, variable.dtype());
}
Tensor Optimizer::scalar(double value, const Variable& variable) const { return Operand(value).as(variable.dtype()); }

void Optimizer::update(const std::string& dense, const std::string& rows, const std::vector<Variable>& variables,
                       const std::vector<Tensor>& before, const Gradient& gradient, const std::vector<Tensor>& after,
                       const std::vector<std::pair<std::string, AttrValue>>& attrs) const {
  std::vector<Tensor> inputs;
  for (const Variable& v : variables) inputs.push_back(v.handle());
  inputs.insert(inputs.end(), before.begin(), before.end());
  const bool sparse = gradient.is_slices() && !rows.empty();
  if (sparse) {  // every row once
    const Unique distinct = unique(gradient.slices().indices);
    inputs.push_back(math::unsorted_segment_sum(gradient.slices().values, distinct.idx, size(distinct.y)));
    inputs.push_back(distinct.y);
  } else {
    inputs.push_back(gradient.value());
  }
  inputs.insert(inputs.end(), after.begin(), after.end());
  call_op(sparse ? rows : dense, inputs, attrs);
}

void GradientDescentOptimizer::apply(const GradAndVar& each) {
  const Tensor rate = scalar(learning_rate_, each.variable);
  if (each.gradient.is_slices()) {
    const IndexedSlices& s = each.gradient.slices();
    each.variable.scatter_sub({s.values * rate, s.indices, s.dense_shape});
  } else {
    update("ResourceApplyGradientDescent", "", {each.variable}, {rate}, each.gradient);
  }
}

void MomentumOptimizer::apply(const GradAndVar& each) {
  const Variable& v = each.variable;
  const Variable accumulator = slot(v, "Momentum", 0);
  update("ResourceApplyMomentum", "ResourceSparseApplyMomentum", {v, accumulator}, {scalar(learning_rate_, v)},
         each.gradient, {scalar(momentum_, v)}, {{"use_nesterov", use_nesterov_}});
}

void AdamOptimizer::prepare(const std::vector<GradAndVar>& all) {
  const DType dtype = all[0].variable.dtype();
  auto power = [&](const char* name, double beta) {
    return v1::get_variable(name, {}, {.dtype = dtype, .initializer = constant_initializer(beta), .trainable = false});
  };
  beta1_power_ = power("beta1_power", beta1_);
  beta2_power_ = power("beta2_power", beta2_);
}

void AdamOptimizer::apply(const GradAndVar& each) {
  const Variable& v = each.variable;
  const Variable m = slot(v, "Adam", 0);
  const Variable squares = slot(v, "Adam_1", 0);
  // The moments of all rows decay and every row moves, also for a gradient of some rows.
  update("ResourceApplyAdam", "", {v, m, squares},
         {scalar(beta1_power_.value(), v), scalar(beta2_power_.value(), v), scalar(learning_rate_, v),
          scalar(beta1_, v), scalar(beta2_, v), scalar(epsilon_, v)},
         each.gradient);
}

std::vector<Fetch> AdamOptimizer::finish() {
  return {v1::assign(beta1_power_, beta1_power_ * beta1_), v1::assign(beta2_power_, beta2_power_ * beta2_)};
}

void RMSPropOptimizer::apply(const GradAndVar& each) {
  const Variable& v = each.variable;
  const Variable squares = slot(v, "RMSProp", 1);
  const Variable momentum = slot(v, "RMSProp_1", 0);
  update("ResourceApplyRMSProp", "ResourceSparseApplyRMSProp", {v, squares, momentum},
         {scalar(learning_rate_, v), scalar(decay_, v), scalar(momentum_, v), scalar(epsilon_, v)}, each.gradient);
}

void AdagradOptimizer::apply(const GradAndVar& each) {
  const Variable& v = each.variable;
  const Variable accumulator = slot(v, "Adagrad", initial_);
  update("ResourceApplyAdagradV2", "ResourceSparseApplyAdagradV2", {v, accumulator},
         {scalar(learning_rate_, v), scalar(0.0, v)}, each.gradient);
}

}  // namespace runnel::compat::v1::train
