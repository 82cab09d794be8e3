#include "runnel/keras/layers/cell_steps.h"

#include "runnel/function/control_flow.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel::keras {
namespace {

// Longer sequences become a loop in traced functions: more nodes would cost more to make than they save.
constexpr int64_t kMaxUnrolled = 64;

// The step's values where the mask ([batch]) holds, what was before elsewhere.
void keep_masked(const Tensor& mask, CellStep& next, const Tensor& output, const States& states) {
  const Tensor rows = expand_dims(mask, -1);
  next.output = where(rows, next.output, output);
  for (size_t i = 0; i < states.size(); ++i) next.states[i] = where(rows, next.states[i], states[i]);
}

TensorArray steps_of(const Tensor& x) { return TensorArray(x.dtype(), shape(x)[0]).unstack(x); }

// The elements stacked; the array itself does not know how many there are.
Tensor all_steps(const TensorArray& array, int64_t steps) {
  const Tensor stacked = array.stack();
  if (steps == kUnknownDim) return stacked;
  Dims dims = stacked.partial_shape().dims();
  dims[0] = steps;
  return ensure_shape(stacked, PartialShape(dims));
}

SequenceResult run_unrolled(const CellSequence& sequence, const Tensor& projected, const Tensor& mask,
                            const States& first, const Tensor& zero_output, bool want_sequence) {
  const std::vector<Tensor> inputs = unstack(projected, 0, projected.partial_shape()[0]);
  const std::vector<Tensor> masks =
      mask.defined() ? unstack(mask, 0, projected.partial_shape()[0]) : std::vector<Tensor>();
  States states = first;
  Tensor output = zero_output;
  std::vector<Tensor> outputs;
  for (size_t t = 0; t < inputs.size(); ++t) {
    CellStep next = sequence.step(inputs[t], states);
    if (mask.defined()) keep_masked(masks[t], next, output, states);
    output = next.output;
    states = std::move(next.states);
    if (want_sequence) outputs.push_back(output);
  }
  if (!want_sequence) return {output, {}, states};
  return {output, outputs.empty() ? expand_dims(zero_output, 0)(slice(0, 0)) : stack(outputs), states};
}

SequenceResult run_loop(const CellSequence& sequence, const Tensor& projected, const Tensor& mask, const States& states,
                        const Tensor& zero_output, bool want_sequence) {
  const Tensor steps = shape(projected)[0];
  const TensorArray inputs = steps_of(projected);
  const TensorArray masks = mask.defined() ? steps_of(mask) : TensorArray();
  const TensorArray no_outputs(zero_output.dtype(), steps, {.element_shape = zero_output.partial_shape()});
  const auto body = [&](const Tensor& t, const Tensor& output, const States& before, const TensorArray& outputs) {
    CellStep next = sequence.step(inputs.read(t), before);
    if (mask.defined()) keep_masked(masks.read(t), next, output, before);
    const TensorArray more = want_sequence ? outputs.write(t, next.output) : outputs;
    return std::tuple{t + 1, next.output, next.states, more};
  };
  const auto [count, output, last, outputs] =
      while_loop([&](const Tensor& t, const Tensor&, const States&, const TensorArray&) { return t < steps; }, body,
                 std::tuple{Tensor(0), zero_output, states, no_outputs});
  return {output, want_sequence ? all_steps(outputs, projected.partial_shape()[0]) : Tensor(), last};
}

}  // namespace

SequenceResult run_steps(const CellSequence& sequence, const Tensor& projected, const Tensor& mask,
                         const States& states, const Tensor& zero_output, bool want_sequence, bool unroll) {
  const int64_t steps = projected.partial_shape()[0];
  const bool unrolled = steps != kUnknownDim && (steps <= kMaxUnrolled || unroll || !is_tracing());
  return (unrolled ? run_unrolled : run_loop)(sequence, projected, mask, states, zero_output, want_sequence);
}

Tensor time_and_batch_swapped(const Tensor& x) {
  std::vector<int64_t> perm(static_cast<size_t>(x.partial_shape().rank()));
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  std::swap(perm.at(0), perm.at(1));
  return transpose(x, perm);
}

}  // namespace runnel::keras
