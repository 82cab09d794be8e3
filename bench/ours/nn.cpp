// Our side of the matrix products and convolutions: the public ops.
#include "bench/common.h"
#include "bench/shapes.h"
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

Call product(const bench::Matmul& c) {
  const Tensor a = values(c.ta ? Shape{c.k, c.m} : Shape{c.m, c.k}, 1);
  const Tensor b = values(c.tb ? Shape{c.n, c.k} : Shape{c.k, c.n}, 2);
  return [=] { matmul(a, b, {.transpose_a = c.ta, .transpose_b = c.tb}); };
}

// what: 0 forward, 1 backward data, 2 backward weights
Call conv(const bench::Conv& c, int what) {
  const Tensor x = values({c.batch, c.size, c.size, c.in}, 1);
  const Tensor w = values({c.kernel, c.kernel, c.in, c.out}, 2);
  const Tensor dy = values({c.batch, c.out_size(), c.out_size(), c.out}, 3);
  const std::string padding = c.pad > 0 ? "SAME" : "VALID";
  if (what == 0) return [=] { nn::conv2d(x, w, {.padding = padding}); };
  const std::vector<std::pair<std::string, AttrValue>> attrs = {{"strides", std::vector<int64_t>{1, 1, 1, 1}},
                                                                {"padding", padding}};
  if (what == 1) return [=, sizes = shape(x)] { call_op("Conv2DBackpropInput", {sizes, w, dy}, attrs); };
  return [=, sizes = shape(w)] { call_op("Conv2DBackpropFilter", {x, sizes, dy}, attrs); };
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<bench::Case> cases;
  for (const auto& c : bench::matmuls()) cases.push_back({c.name, [c](int) { return std::vector<Call>{product(c)}; }});
  for (const auto& c : bench::convs()) {
    const char* names[] = {"_fwd", "_bwd_data", "_bwd_weights"};
    for (int what = 0; what < 3; ++what) {
      cases.push_back({c.name + names[what], [c, what](int) { return std::vector<Call>{conv(c, what)}; }});
    }
  }
  return bench::main_of(argc, argv, cases, set_num_threads);
}
