#include "runnel/ops/training_keras_rules.h"

#include "runnel/op/dispatch.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"

namespace runnel::rules {
namespace {

// Of handles that have no value: a graph is being written, and its variables are elsewhere.
Tensor read_handle(const Tensor& handle, DType dtype) {
  return call_op("ReadVariableOp", {handle}, {{"dtype", dtype}})[0];
}
void add_to_handle(const Tensor& handle, const Tensor& delta) { call_op("AssignAddVariableOp", {handle, delta}); }
void subtract_from_handle(const Tensor& handle, const Tensor& delta) {
  call_op("AssignSubVariableOp", {handle, delta});
}
// The new value of an average that moves by `rate` towards `target`.
Tensor moved_average(const Tensor& handle, const Tensor& target, const Tensor& rate) {
  add_to_handle(handle, (target - read_handle(handle, target.dtype())) * rate);
  return read_handle(handle, target.dtype());
}

}  // namespace

void KerasRMSprop::decompose(const std::vector<Tensor>& in) {
  const Tensor &var = in[0], &velocity = in[1], &lr = in[2], &rho = in[3], &epsilon = in[4], &g = in[5];
  const Tensor v = moved_average(velocity, square(g), 1 - rho);
  subtract_from_handle(var, g * lr / sqrt(v + epsilon));
}

void KerasCenteredRMSprop::decompose(const std::vector<Tensor>& in) {
  const Tensor &var = in[0], &velocity = in[1], &average = in[2];
  const Tensor &lr = in[3], &rho = in[4], &epsilon = in[5], &g = in[6];
  const Tensor v = moved_average(velocity, square(g), 1 - rho);
  const Tensor a = moved_average(average, g, 1 - rho);
  subtract_from_handle(var, g * lr / sqrt(v - square(a) + epsilon));
}

void KerasAdagrad::decompose(const std::vector<Tensor>& in) {
  const Tensor &var = in[0], &accumulator = in[1], &lr = in[2], &epsilon = in[3], &g = in[4];
  add_to_handle(accumulator, square(g));
  subtract_from_handle(var, g * lr / sqrt(read_handle(accumulator, g.dtype()) + epsilon));
}

void KerasNadam::decompose(const std::vector<Tensor>& in) {
  const Tensor &var = in[0], &m = in[1], &v = in[2], &m_rate = in[3], &grad_rate = in[4], &beta2_power = in[5];
  const Tensor &beta1 = in[6], &beta2 = in[7], &epsilon = in[8], &g = in[9];
  const Tensor m_now = moved_average(m, g, 1 - beta1);
  const Tensor v_now = moved_average(v, square(g), 1 - beta2);
  subtract_from_handle(var, (m_now * m_rate + g * grad_rate) / (sqrt(v_now / (1 - beta2_power)) + epsilon));
}

}  // namespace runnel::rules
