// Our side of the matrix products and convolutions.
#include <cstdlib>
#include <memory>

#include "bench/common.h"
#include "bench/shapes.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/conv.h"
#include "runnel/kernels/cpu/gemm.h"

namespace {

using Call = std::function<void()>;

struct Buffer {
  explicit Buffer(size_t n) : data(static_cast<float*>(std::aligned_alloc(64, (n * 4 + 63) / 64 * 64)), std::free) {}
  std::unique_ptr<float, void (*)(void*)> data;
};

// The one place that says where inputs and outputs live: every call writes to a fresh output, which, as from a caching
// allocator, is memory that was used before.
struct Values {
  std::shared_ptr<Buffer> a, b, out;
  Values(size_t na, size_t nb, size_t nout)
      : a(std::make_shared<Buffer>(na)), b(std::make_shared<Buffer>(nb)), out(std::make_shared<Buffer>(nout)) {
    bench::fill(a->data.get(), na, 1);
    bench::fill(b->data.get(), nb, 2);
    bench::fill(out->data.get(), nout, 3);
  }
  const float* x() const { return a->data.get(); }
  const float* y() const { return b->data.get(); }
  float* result() const { return out->data.get(); }
};

Call matmul(const bench::Matmul& c) {
  const auto m = static_cast<size_t>(c.m), n = static_cast<size_t>(c.n), k = static_cast<size_t>(c.k);
  const Values v(m * k, k * n, m * n);
  return [c, v] {
    runnel::cpu::gemm_f32(c.ta, c.tb, c.m, c.n, c.k, 1.0f, v.x(), c.ta ? c.m : c.k, v.y(), c.tb ? c.k : c.n, 0.0f,
                          v.result(), c.n);
  };
}

// what: 0 forward, 1 backward data, 2 backward weights
Call conv(const bench::Conv& c, int what) {
  runnel::cpu::ConvShape s;
  s.batch = c.batch, s.in_channels = c.in, s.out_channels = c.out;
  s.in = {c.size, c.size, 0}, s.kernel = {c.kernel, c.kernel, 1};
  s.pad_before = s.pad_after = {c.pad, c.pad, 0};
  const auto x = static_cast<size_t>(s.in_size()), w = static_cast<size_t>(s.weight_size()),
             y = static_cast<size_t>(s.out_size());
  if (what == 0) {
    return [s, v = Values(x, w, y)] { runnel::cpu::conv_forward(s, v.x(), v.y(), v.result()); };
  }
  if (what == 1) {
    return [s, v = Values(y, w, x)] { runnel::cpu::conv_backward_data(s, v.x(), v.y(), v.result()); };
  }
  return [s, v = Values(x, y, w)] { runnel::cpu::conv_backward_weights(s, v.x(), v.y(), v.result()); };
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<bench::Case> cases;
  for (const auto& c : bench::matmuls()) cases.push_back({c.name, [c](int) { return std::vector<Call>{matmul(c)}; }});
  for (const auto& c : bench::convs()) {
    const char* names[] = {"_fwd", "_bwd_data", "_bwd_weights"};
    for (int what = 0; what < 3; ++what) {
      cases.push_back({c.name + names[what], [c, what](int) { return std::vector<Call>{conv(c, what)}; }});
    }
  }
  return bench::main_of(argc, argv, cases, [](int threads) { runnel::set_num_threads(threads); });
}
