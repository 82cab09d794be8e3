// Our side of the elementwise and reduction benchmarks: the public ops on a million floats.
#include "bench/common.h"
#include "runnel/runnel.h"

namespace {

using namespace runnel;
using Call = std::function<void()>;

constexpr int64_t kSide = 1 << 10;

Tensor values(unsigned seed, float scale = 1, float shift = 0) {
  Tensor t = Tensor::empty(float32, {kSide, kSide});
  float* p = t.mutable_data<float>();
  bench::fill(p, static_cast<size_t>(t.num_elements()), seed);
  for (int64_t i = 0; i < t.num_elements(); ++i) p[i] = p[i] * scale + shift;
  return t;
}

bench::Case binary(const char* name, Tensor (*op)(const Operand&, const Operand&)) {
  return {name, [op](int) { return std::vector<Call>{[op, a = values(1), b = values(2)] { op(a, b); }}; }};
}
bench::Case unary(const char* name, Tensor (*op)(const Operand&), float scale = 1, float shift = 0) {
  return {name, [=](int) { return std::vector<Call>{[op, x = values(1, scale, shift)] { op(x); }}; }};
}
bench::Case reduction(const char* name, Tensor (*op)(const Operand&, const Axes&, bool), const Axes& axes) {
  return {name, [=](int) { return std::vector<Call>{[op, axes, x = values(1)] { op(x, axes, false); }}; }};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      binary("elementwise_add", add),
      binary("elementwise_mul", multiply),
      unary("elementwise_relu", nn::relu),
      unary("exp", exp, 20),
      unary("log", log, 20, 10.5f),
      unary("tanh", tanh, 8),
      reduction("reduce_sum", reduce_sum, {}),
      reduction("reduce_sum_rows", reduce_sum, 1),
      reduction("reduce_sum_cols", reduce_sum, 0),
      reduction("reduce_max", reduce_max, {}),
  };
  return bench::main_of(argc, argv, cases, set_num_threads);
}
