// Our side of the elementwise and reduction benchmarks. As nn.cpp: every call writes to memory that was used
// before, as a caching allocator hands out.
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/common.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/loops.h"
#include "runnel/kernels/cpu/reduce.h"
#include "runnel/kernels/cpu/vmath.h"

namespace {

using Call = std::function<void()>;
using namespace runnel::cpu;

constexpr int64_t kSize = 1 << 20;
constexpr int64_t kSide = 1 << 10;

struct Array {
  float* data = static_cast<float*>(std::aligned_alloc(64, kSize * sizeof(float)));
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { std::free(data); }
};
struct Values {
  Array a, b, y;
};

std::shared_ptr<Values> values(float scale, float shift) {
  auto v = std::make_shared<Values>();
  bench::fill(v->a.data, kSize, 1);
  bench::fill(v->b.data, kSize, 2);
  bench::fill(v->y.data, kSize, 3);
  for (long i = 0; i < kSize; ++i) v->a.data[i] = v->a.data[i] * scale + shift;
  return v;
}

constexpr auto add = [](auto a, auto b) { return a + b; };
constexpr auto mul = [](auto a, auto b) { return a * b; };
constexpr auto relu = [](auto x) { return x > 0 ? x : decltype(x)(0); };

template <class F>
bench::Case binary(const char* name, F) {
  return {name, [](int) {
            const auto v = values(1, 0);
            return std::vector<Call>{[v] { binary_loop<F>(v->a.data, v->b.data, v->y.data, kSize); }};
          }};
}

template <class F>
bench::Case unary(const char* name, F, float scale = 1, float shift = 0) {
  return {name, [=](int) {
            const auto v = values(scale, shift);
            return std::vector<Call>{[v] { unary_loop<F>(v->a.data, v->y.data, kSize); }};
          }};
}

bench::Case reduction(const char* name, Reduction op, std::vector<int64_t> axes) {
  return {name, [=](int) {
            const auto v = values(1, 0);
            return std::vector<Call>{[v, op, axes] {
              const int64_t shape[] = {kSide, kSide};
              reduce<float>(op, v->a.data, shape, axes, v->y.data);
            }};
          }};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      binary("elementwise_add", add),
      binary("elementwise_mul", mul),
      unary("elementwise_relu", relu),
      unary("exp", Exp{}, 20),
      unary("log", Log{}, 20, 10.5f),
      unary("tanh", Tanh{}, 8),
      reduction("reduce_sum", Reduction::sum, {0, 1}),
      reduction("reduce_sum_rows", Reduction::sum, {1}),
      reduction("reduce_sum_cols", Reduction::sum, {0}),
      reduction("reduce_max", Reduction::max, {0, 1}),
  };
  return bench::main_of(argc, argv, cases, [](int threads) { runnel::set_num_threads(threads); });
}
