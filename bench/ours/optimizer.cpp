// A step of Keras's Adam on gradients that are there: the parameters of the MNIST convolutional network, and many small
// tensors.
#include "bench/common.h"
#include "bench/shapes.h"
#include "runnel/keras/optimizers.h"
#include "runnel/runnel.h"

namespace {

using namespace runnel;
using Call = std::function<void()>;

std::vector<Call> step(const std::vector<std::vector<int64_t>>& shapes, bool traced) {
  auto adam = std::make_shared<keras::optimizers::Adam>(1e-3);
  auto pairs = std::make_shared<std::vector<keras::GradientAndVariable>>();
  for (const auto& dims : shapes) {
    const Shape shape(Dims(dims.begin(), dims.end()));
    const auto values = [&](unsigned seed) {
      Tensor t = Tensor::empty(float32, shape);
      bench::fill(t.mutable_data<float>(), static_cast<size_t>(t.num_elements()), seed);
      return t;
    };
    pairs->emplace_back(values(2), Variable(values(1)));
  }
  if (!traced) return {[=] { adam->apply_gradients(*pairs); }};
  auto f = function([=](const std::vector<Tensor>& gradients) {
    auto given = *pairs;
    for (size_t i = 0; i < given.size(); ++i) given[i].first = gradients[i];
    adam->apply_gradients(given);
  });
  std::vector<Tensor> gradients;
  for (const auto& pair : *pairs) gradients.push_back(pair.first.dense());
  return {[=] { f(gradients); }};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"adam_fused", [](int) { return step(bench::cnn_parameters(), false); }},
      {"adam_fused_traced", [](int) { return step(bench::cnn_parameters(), true); }},
      {"adam_fused_small", [](int) { return step(bench::many_small_parameters(), false); }},
      {"adam_fused_small_traced", [](int) { return step(bench::many_small_parameters(), true); }},
  };
  return bench::main_of(argc, argv, cases, set_num_threads);
}
