// What an op writes down of itself for compiled chains gives the bits of its kernel, for every kind of float.
#include <cmath>
#include <limits>

#include "runnel/base/cpu.h"
#include "runnel/base/flush_denormals.h"
#include "runnel/kernels/cpu/lane_loop.h"
#include "tests/suite/suite.h"

namespace runnel::test {
namespace {

// Every pair and, nearly, every triple of these meets, and ordinary numbers among them.
constexpr float kSpecial[] = {0.f,
                              -0.f,
                              1.f,
                              -1.f,
                              0.5f,
                              -2.5f,
                              6.f,
                              7.f,
                              1e-40f,
                              -1e-40f,
                              3e38f,
                              -3e38f,
                              std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN(),
                              0.3333f};
constexpr int64_t kCount = std::size(kSpecial);

Tensor special_values(int input) {
  Tensor t = Tensor::empty(DType::float32, Shape{kCount * kCount * kCount + 3});
  int64_t period = 1;
  for (int i = 0; i < input; ++i) period *= kCount;
  for (int64_t i = 0; i < t.num_elements(); ++i) t.mutable_data<float>()[i] = kSpecial[i / period % kCount];
  return t;
}

}  // namespace

void check_lanes(const Case& c) {
  if (!c.op->lane || !c.sample().error.empty()) return;
  const size_t count = c.inputs().size();
  std::vector<Tensor> inputs;
  LaneCode code;
  std::vector<Lane> lanes;
  std::vector<const float*> from;
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(special_values(static_cast<int>(i)));
    lanes.push_back(code.input(static_cast<int>(i)));
  }
  for (const Tensor& t : inputs) from.push_back(t.data<float>());
  const Tensor expected = run(*c.op, inputs, c.attrs())[0];
  const int result = c.op->lane(lanes.data(), c.attrs()).step_in(code);
  const auto loop = cpu::LaneLoop::compile(code, std::vector(count, cpu::LaneLoop::Input::array), {result});
  ASSERT_EQ(loop != nullptr, has_avx2()) << c.name();
  if (!loop) return;
  const int64_t n = expected.num_elements();
  std::vector<float> y(static_cast<size_t>(n));
  float* to = y.data();
  {
    const FlushDenormals flush;  // as around every kernel
    loop->run(from.data(), &to, n);
  }
  for (int64_t i = 0; i < n; ++i) {
    // A denormal that an op only hands on may come out as it is, or as the zero that it counts as.
    const auto counted = [](float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.f, v) : v; };
    const float want = counted(expected.data<float>()[i]), got = counted(y[static_cast<size_t>(i)]);
    const bool same = std::isnan(want) ? std::isnan(got) : want == got && std::signbit(want) == std::signbit(got);
    ASSERT_TRUE(same) << c.name() << ", element " << i << ": compiled " << got << ", kernel " << want;
  }
}

TEST(Lanes, ArithmeticHasThem) {
  for (const char* name : {"AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "Neg", "Abs", "Square", "Relu",
                           "ReluGrad", "LeakyRelu", "ClipByValue", "SigmoidGrad"}) {
    EXPECT_TRUE(registry().get(name).lane) << name;
  }
}

}  // namespace runnel::test
