// libtorch's elementwise functions and reductions.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include "bench/common.h"

namespace {

using Call = std::function<void()>;

at::Tensor values(unsigned seed, float scale = 1, float shift = 0) {
  auto t = at::empty({1024, 1024}, at::kFloat);
  bench::fill(t.data_ptr<float>(), static_cast<size_t>(t.numel()), seed);
  return t * scale + shift;
}

// Both ways one may call it: with a fresh output, and into one that exists.
bench::Case unary(const char* name, at::Tensor (*f)(const at::Tensor&),
                  at::Tensor& (*into)(at::Tensor&, const at::Tensor&), float scale = 1, float shift = 0) {
  return {name, [=](int) {
            const auto x = values(1, scale, shift);
            auto y = at::empty_like(x);
            return std::vector<Call>{[=] { f(x); }, [=]() mutable { into(y, x); }};
          }};
}

bench::Case reduction(const char* name, at::Tensor (*f)(const at::Tensor&)) {
  return {name, [=](int) {
            const auto x = values(1);
            return std::vector<Call>{[=] { f(x); }};
          }};
}

}  // namespace

int main(int argc, char** argv) {
  c10::InferenceMode no_gradients;
  const std::vector<bench::Case> cases = {
      {"elementwise_add",
       [](int) {
         const auto x = values(1), y = values(2);
         auto out = at::empty_like(x);
         return std::vector<Call>{[=] { at::add(x, y); }, [=]() mutable { at::add_out(out, x, y); }};
       }},
      {"elementwise_mul",
       [](int) {
         const auto x = values(1), y = values(2);
         auto out = at::empty_like(x);
         return std::vector<Call>{[=] { at::mul(x, y); }, [=]() mutable { at::mul_out(out, x, y); }};
       }},
      {"elementwise_relu",
       [](int) {
         const auto x = values(1);
         auto out = at::empty_like(x);
         return std::vector<Call>{[=] { at::relu(x); }, [=]() mutable { at::clamp_min_out(out, x, 0); }};
       }},
      unary("exp", at::exp, at::exp_out, 20),
      unary("log", at::log, at::log_out, 20, 10.5f),
      unary("tanh", at::tanh, at::tanh_out, 8),
      reduction("reduce_sum", [](const at::Tensor& x) { return at::sum(x); }),
      reduction("reduce_sum_rows", [](const at::Tensor& x) { return at::sum(x, {1}); }),
      reduction("reduce_sum_cols", [](const at::Tensor& x) { return at::sum(x, {0}); }),
      reduction("reduce_max", [](const at::Tensor& x) { return at::max(x); }),
  };
  return bench::main_of(argc, argv, cases, [](int threads) { at::set_num_threads(threads); });
}
