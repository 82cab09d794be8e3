// Training steps of Keras layers and models.
#include "bench/common.h"
#include "runnel/keras/layers/recurrent.h"
#include "runnel/keras/optimizers.h"
#include "runnel/runnel.h"

namespace {

using namespace runnel;
using Call = std::function<void()>;

Tensor values(const Shape& shape, unsigned seed) {
  Tensor t = Tensor::empty(float32, shape);
  bench::fill(t.mutable_data<float>(), static_cast<size_t>(t.num_elements()), seed);
  return t;
}

// LSTM(256) over 40 steps of 128 numbers, batch 50: the mean of squares of the last output's distance from a target.
Call lstm_step() {
  const auto lstm = keras::make<keras::LSTM>({.units = 256});
  const Tensor x = values({50, 40, 128}, 9), target = values({50, 256}, 10);
  lstm(x);
  const auto adam = std::make_shared<keras::optimizers::Adam>();
  auto step = function([=](const Tensor& in, const Tensor& wanted) {
    GradientTape tape;
    const Tensor loss = reduce_mean(squared_difference(lstm(in), wanted));
    adam->minimize(loss, lstm->trainable_variables(), tape);
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
