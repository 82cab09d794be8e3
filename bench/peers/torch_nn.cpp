// libtorch's matrix products and convolutions.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include "bench/common.h"
#include "bench/shapes.h"

namespace {

using Call = std::function<void()>;

at::Tensor values(at::IntArrayRef shape, unsigned seed) {
  auto t = at::empty(shape, at::kFloat);
  bench::fill(t.data_ptr<float>(), static_cast<size_t>(t.numel()), seed);
  return t;
}

std::vector<Call> matmul(const bench::Matmul& c) {
  auto a = c.ta ? values({c.k, c.m}, 1).t() : values({c.m, c.k}, 1);
  auto b = c.tb ? values({c.n, c.k}, 2).t() : values({c.k, c.n}, 2);
  return {[=] { at::mm(a, b); }};
}

// what: 0 forward, 1 backward data, 2 backward weights; once per memory format.
std::vector<Call> conv(const bench::Conv& c, int what) {
  std::vector<Call> calls;
  for (auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    auto x = values({c.batch, c.in, c.size, c.size}, 1).contiguous(format);
    auto w = values({c.out, c.in, c.kernel, c.kernel}, 2).contiguous(format);
    auto dy = values({c.batch, c.out, c.out_size(), c.out_size()}, 3).contiguous(format);
    const int64_t pad = c.pad;
    if (what == 0) {
      calls.push_back([=] { at::conv2d(x, w, {}, 1, pad); });
    } else {
      calls.push_back([=] {
        at::convolution_backward(dy, x, w, c10::nullopt, {1, 1}, {pad, pad}, {1, 1}, false, {0, 0}, 1,
                                 {what == 1, what == 2, false});
      });
    }
  }
  return calls;
}

}  // namespace

int main(int argc, char** argv) {
  c10::InferenceMode no_gradients;
  std::vector<bench::Case> cases;
  for (const auto& c : bench::matmuls()) cases.push_back({c.name, [c](int) { return matmul(c); }});
  for (const auto& c : bench::convs()) {
    cases.push_back({c.name + "_fwd", [c](int) { return conv(c, 0); }});
    cases.push_back({c.name + "_bwd_data", [c](int) { return conv(c, 1); }});
    cases.push_back({c.name + "_bwd_weights", [c](int) { return conv(c, 2); }});
  }
  return bench::main_of(argc, argv, cases, [](int threads) { at::set_num_threads(threads); });
}
