// libtorch's small eager ops: 100 additions of 10 elements, recorded or not, and a chain of 100 ops there and back.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/common.h"

namespace {

at::Tensor values(unsigned seed) {
  auto t = at::empty({10});
  bench::fill(t.data_ptr<float>(), 10, seed);
  return t;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"eager_add10",
       [](int) -> std::vector<std::function<void()>> {
         auto x = values(1), y = values(2);
         return {[=] {
                   for (int i = 0; i < 100; ++i) at::add(x, y);
                 },
                 [=] {
                   c10::InferenceMode no_gradients;
                   for (int i = 0; i < 100; ++i) at::add(x, y);
                 }};
       }},
      {"eager_add10_recording",
       [](int) -> std::vector<std::function<void()>> {
         auto x = values(1).set_requires_grad(true), y = values(2);
         return {[=] {
           for (int i = 0; i < 100; ++i) at::add(x, y);
         }};
       }},
      {"eager_chain_backward",
       [](int) -> std::vector<std::function<void()>> {
         auto x = values(1).set_requires_grad(true), y = values(2), seed = at::ones({10});
         return {[=] {
           auto z = x;
           for (int i = 0; i < 50; ++i) z = at::mul(at::add(z, y), y);
           torch::autograd::grad({z}, {x}, {seed});
         }};
       }},
  };
  return bench::main_of(argc, argv, cases, [](int threads) { at::set_num_threads(threads); });
}
