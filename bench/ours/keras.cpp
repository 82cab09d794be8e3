// Training steps of Keras layers and models.
#include "bench/common.h"
#include "runnel/keras/layers/recurrent.h"
#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"

namespace {

using namespace runnel;
using Call = std::function<void()>;

Tensor values(const Shape& shape, unsigned seed) {
  Tensor t = Tensor::empty(float32, shape);
  bench::fill(t.mutable_data<float>(), static_cast<size_t>(t.num_elements()), seed);
  return t;
}

struct PlainAdam {
  std::vector<Variable> variables, m, v;
  Variable beta1_power{Tensor(1.0f)}, beta2_power{Tensor(1.0f)};

  explicit PlainAdam(const std::vector<Variable>& all) : variables(all) {
    for (const Variable& w : all) {
      m.emplace_back(zeros(w.shape()));
      v.emplace_back(zeros(w.shape()));
    }
  }
  void apply(const std::vector<Gradient>& gradients) {
    beta1_power.assign(beta1_power * 0.9f);
    beta2_power.assign(beta2_power * 0.999f);
    for (size_t i = 0; i < variables.size(); ++i) {
      call_op("ResourceApplyAdam",
              {variables[i].handle(), m[i].handle(), v[i].handle(), beta1_power.value(), beta2_power.value(),
               Tensor(0.001f), Tensor(0.9f), Tensor(0.999f), Tensor(1e-7f), gradients[i].value()});
    }
  }
};

// LSTM(256) over 40 steps of 128 numbers, batch 50: the mean of squares of the last output's distance from a target.
Call lstm_step() {
  const auto lstm = keras::make<keras::LSTM>({.units = 256});
  const Tensor x = values({50, 40, 128}, 9), target = values({50, 256}, 10);
  lstm(x);
  const auto adam = std::make_shared<PlainAdam>(lstm->trainable_variables());
  auto step = function([=](const Tensor& in, const Tensor& wanted) {
    GradientTape tape;
    const Tensor loss = reduce_mean(squared_difference(lstm(in), wanted));
    adam->apply(tape.gradient(loss, adam->variables));
    return loss;
  });
  return [=] { step(x, target); };
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"lstm_step", [](int) { return std::vector<Call>{lstm_step()}; }},
  };
  return bench::main_of(argc, argv, cases, set_num_threads);
}
