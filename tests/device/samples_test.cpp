// Every sample of every op on the fake device: shape functions, dispatch and gradients must not touch the memory
// of a device or count on work being done.
#include "runnel/autodiff/tape.h"
#include "tests/device/fake_device.h"
#include "tests/suite/suite.h"
#include "tests/suite/values.h"

namespace runnel::test {
namespace {

std::vector<Case> device_cases() {
  std::vector<Case> cases;
  for (const OpDef* op : registry().all()) {
    for (size_t i = 0; i < op->samples.size(); ++i) {
      const Sample& s = op->samples[i];
      if (!op->stateful && s.error.empty() && !s.make) cases.push_back({op, static_cast<int>(i)});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Ops, Suite, ::testing::ValuesIn(device_cases()),
                         [](const auto& info) { return info.param.op->name + "_" + std::to_string(info.param.index); });

std::vector<Tensor> moved(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> there;
  for (const Tensor& t : inputs) there.push_back(is_plain(t.dtype()) ? t.to(fake_device()) : t);
  return there;
}

std::vector<Gradient> gradients(const Case& c, std::vector<Tensor> inputs) {
  for (Tensor& t : inputs) t = t.with_shape(t.shape());  // a sample may name one tensor twice: tell the inputs apart
  GradientTape tape;
  std::vector<GradSource> sources;
  for (const Tensor& t : inputs) {
    if (!is_float(t.dtype()) && !is_complex(t.dtype())) continue;
    tape.watch(t);
    sources.emplace_back(t);
  }
  std::vector<Tensor> y = run(*c.op, inputs, c.attrs());
  std::erase_if(y, [](const Tensor& t) { return !is_float(t.dtype()) && !is_complex(t.dtype()); });
  return tape.gradient(y, sources);
}

}  // namespace

TEST_P(Suite, OnADevice) {
  const Case& c = GetParam();
  const std::vector<Tensor> here = run(*c.op, c.inputs(), c.attrs());
  const std::vector<Tensor> there = run(*c.op, moved(c.inputs()), c.attrs());
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_TRUE(same_bits(there[i].to_host(), here[i]))
        << c.name() << ", output " << i << ": " << difference(there[i].to_host(), here[i], 0, 0);
  }
}

TEST_P(Suite, GradientOnADevice) {
  const Case& c = GetParam();
  if (!c.op->grad || !c.sample().differentiable) return;
  const std::vector<Gradient> here = gradients(c, c.inputs());
  const std::vector<Gradient> there = gradients(c, moved(c.inputs()));
  ASSERT_EQ(here.size(), there.size());
  for (size_t i = 0; i < here.size(); ++i) {
    ASSERT_EQ(here[i].defined(), there[i].defined()) << c.name() << ", gradient " << i;
    if (!here[i].defined()) continue;
    EXPECT_TRUE(same_bits(there[i].value().to_host(), here[i].value())) << c.name() << ", gradient " << i;
  }
}

}  // namespace runnel::test
