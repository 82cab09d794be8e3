// The contract between the core and a device that is not the host.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

#include "runnel/autodiff/tape.h"
#include "runnel/base/format.h"
#include "runnel/function/function.h"
#include "runnel/op/builder.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "tests/device/fake_device.h"
#include "tests/support/expect_error.h"

namespace runnel::test {
namespace {

using ::testing::ElementsAre;

Tensor on_fake(const Tensor& t) { return t.to(fake_device()); }
bool is_on_fake(const Tensor& t) { return &t.device() == &fake_device(); }

// Does the system refuse to read a byte at this address?
bool unreadable(const void* address) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const bool refused = write(ends[1], address, 1) < 0 && errno == EFAULT;
  close(ends[0]);
  close(ends[1]);
  return refused;
}

class DeviceTest : public ::testing::Test {
 protected:
  void TearDown() override {
    fake_device().hold(false);
    fake_device().synchronize();
  }
};

TEST_F(DeviceTest, MemoryIsOutOfTheHostsReachAndHostCopies) {
  const Tensor x = on_fake(Tensor{{1.f, 2.f}, {3.f, 4.f}});
  EXPECT_TRUE(unreadable(x.raw()));
  EXPECT_EQ(x.device_name(), "/device:FAKE:0");
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(x.rows(1, 2).to_vector<float>(), ElementsAre(3, 4));
  EXPECT_THAT(x.with_shape({4}).rows(1, 3).to_vector<float>(), ElementsAre(2, 3));
  EXPECT_EQ(on_fake(Tensor(7)).item<int32_t>(), 7);
  EXPECT_TRUE(static_cast<bool>(on_fake(Tensor(true))));
  EXPECT_EQ(x.to(fake_device()).impl().get(), x.impl().get());
  EXPECT_FALSE(unreadable(x.to_host().raw()));
  EXPECT_THAT(on_fake(Tensor::empty(float32, {0, 3})).to_host().shape(), (Shape{0, 3}));
  std::ostringstream text;
  text << on_fake(Tensor{1.f, 2.f});
  EXPECT_EQ(text.str(), "tf.Tensor([1. 2.], shape=(2,), dtype=float32)");
}

TEST_F(DeviceTest, MemoryIsGivenBack) {
  fake_device().synchronize();
  const size_t before = fake_device().blocks();
  {
    Tensor x = on_fake(Tensor{1.f, 2.f});
    for (int i = 0; i < 10; ++i) x = x + x;
    EXPECT_THAT(x.to_vector<float>(), ElementsAre(1024, 2048));
  }
  fake_device().synchronize();
  EXPECT_EQ(fake_device().blocks(), before);
}

TEST_F(DeviceTest, CallsReturnBeforeTheWorkIsDone) {
  const Tensor x = on_fake(Tensor{1.f, 2.f});
  const Tensor y = on_fake(Tensor{10.f, 20.f});
  fake_device().hold(true);
  Tensor z = x + y;
  z = z * z;
  z = reshape(z, {2, 1});
  EXPECT_EQ(fake_device().pending(), 2u);  // a reshape moves nothing
  EXPECT_TRUE(is_on_fake(z));
  fake_device().hold(false);
  EXPECT_THAT(z.to_vector<float>(), ElementsAre(121, 484));
  EXPECT_EQ(z.shape(), (Shape{2, 1}));
}

TEST_F(DeviceTest, OperandsLiveUntilTheWorkIsDone) {
  Tensor z;
  {
    const Tensor x = on_fake(Tensor{1.f, 2.f});
    const Tensor y = on_fake(Tensor{3.f, 4.f});
    fake_device().hold(true);
    z = x * y;
  }
  fake_device().hold(false);
  EXPECT_THAT(z.to_vector<float>(), ElementsAre(3, 8));
}

TEST_F(DeviceTest, MatMulInAChain) {
  const Tensor a = on_fake(Tensor{{1.f, 2.f}, {3.f, 4.f}});
  const Tensor b = on_fake(Tensor{{1.f}, {1.f}});
  const Tensor y = matmul(a, b) + 1.f;
  EXPECT_TRUE(is_on_fake(y));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(4, 8));
}

TEST_F(DeviceTest, HostInputsReachTheKernelOnTheHost) {
  const Tensor x = on_fake(Tensor{{1.f, 2.f}, {3.f, 4.f}});
  const Tensor y = reduce_sum(x, Tensor{1});
  EXPECT_TRUE(is_on_fake(y));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(3, 7));
  EXPECT_THAT(reduce_sum(x, on_fake(Tensor{0})).to_vector<float>(), ElementsAre(4, 6));
  EXPECT_TRUE(shape(x).device().is_host());  // what the host reads next is made there
}

TEST_F(DeviceTest, OperandsFromTheHostAreMoved) {
  const Tensor x = on_fake(Tensor{1.f, 2.f});
  const Tensor host{10.f, 20.f};
  for (const Tensor& y : {x + host, host + x}) {
    EXPECT_TRUE(is_on_fake(y));
    EXPECT_THAT(y.to_vector<float>(), ElementsAre(11, 22));
  }
  EXPECT_THAT((2 * x).to_vector<float>(), ElementsAre(2, 4));
}

TEST_F(DeviceTest, AnotherDeviceIsReachedThroughTheHost) {
  FakeDevice other("/device:FAKE:1");
  {
    const Tensor there = on_fake(Tensor{1.f, 2.f}).to(other);
    EXPECT_EQ(there.device_name(), "/device:FAKE:1");
    EXPECT_THAT(there.to_vector<float>(), ElementsAre(1, 2));
    EXPECT_THAT((on_fake(Tensor{1.f, 1.f}) + there).to_vector<float>(), ElementsAre(2, 3));
  }
  other.synchronize();
}

TEST_F(DeviceTest, StringsStayOnTheHost) {
  expect_error([] { on_fake(Tensor("a")); }, Code::invalid_argument, "cannot leave the host");
}

TEST_F(DeviceTest, BadShapesFailAtTheCall) {
  const Tensor x = on_fake(Tensor{1.f, 2.f});
  expect_error([&] { add(x, Tensor{1.f, 2.f, 3.f}); }, Code::invalid_argument, "[AddV2] ");
  expect_error([&] { add(x, Tensor()); }, Code::invalid_argument, "refers to nothing");
  expect_error([&] { add(x, Tensor("a")); }, Code::invalid_argument, "[AddV2] ");
}

TEST_F(DeviceTest, ErrorsOnTheQueueSurfaceAtTheNextWait) {
  mutable_registry().define("FailsOnDevice").in("x", floating).out("y").shape(like<0>).cpu([](KernelContext&) {
    throw invalid_argument("the work failed");
  });
  mutable_registry().set_kernel("FailsOnDevice", kFake, DType::invalid, &QueuedCall::kernel);
  const Tensor x = on_fake(Tensor{1.f, 2.f});
  fake_device().hold(true);
  const Tensor bad = call_op("FailsOnDevice", {x})[0];
  const Tensor after = x + x;
  fake_device().hold(false);
  expect_error([&] { bad.to_vector<float>(); }, Code::invalid_argument,
               "[FailsOnDevice] the work failed; inputs x: float32[2]");
  // Once told, the device goes on.
  EXPECT_THAT(after.to_vector<float>(), ElementsAre(2, 4));
  call_op("FailsOnDevice", {x});
  expect_error([] { fake_device().synchronize(); }, Code::invalid_argument, "the work failed");
  fake_device().synchronize();
}

TEST_F(DeviceTest, AnOpWithoutAKernelSaysSo) {
  mutable_registry().define("HostOnly").in("x", floating).out("y").shape(like<0>).cpu([](KernelContext&) {});
  const Tensor x = on_fake(Tensor{1.f, 2.f});
  expect_error([&] { call_op("HostOnly", {x}); }, Code::unimplemented,
               "[HostOnly] has no kernel for float32 on /device:FAKE:0");
}

TEST_F(DeviceTest, GradientTape) {
  const Tensor x = on_fake(Tensor{{1.f, 2.f}, {3.f, 4.f}});
  const Tensor bias = on_fake(Tensor{1.f, -1.f});
  GradientTape outer({.persistent = true});
  outer.watch(x);
  Tensor dx;
  Tensor db;
  {
    GradientTape tape;
    tape.watch(x);
    tape.watch(bias);
    const Tensor y = reduce_sum(x * x * x + bias);
    const auto grads = tape.gradient(y, {x, bias});
    dx = grads[0];
    db = grads[1];
  }
  EXPECT_TRUE(is_on_fake(dx));
  EXPECT_TRUE(is_on_fake(db));
  EXPECT_THAT(dx.to_vector<float>(), ElementsAre(3, 12, 27, 48));
  EXPECT_THAT(db.to_vector<float>(), ElementsAre(2, 2));
  EXPECT_THAT(outer.gradient(dx, x).value().to_vector<float>(), ElementsAre(6, 12, 18, 24));
}

TEST_F(DeviceTest, Jacobian) {
  const Tensor x = on_fake(Tensor{2.f, 3.f});
  GradientTape tape;
  tape.watch(x);
  const Tensor j = tape.jacobian(x * x, x);
  EXPECT_EQ(j.shape(), (Shape{2, 2}));
  EXPECT_THAT(j.to_vector<float>(), ElementsAre(4, 0, 0, 6));
}

TEST_F(DeviceTest, VariablesHoldValuesOfADevice) {
  const Variable v(on_fake(Tensor{1.f, 2.f}));
  GradientTape tape;
  const Tensor y = v * v;
  const Tensor g = tape.gradient(y, v);
  EXPECT_TRUE(is_on_fake(g));
  EXPECT_THAT(g.to_vector<float>(), ElementsAre(2, 4));
  expect_error([&] { v.assign_add(Tensor{1.f, 1.f}); }, Code::unimplemented, "lives on /device:FAKE:0");
  EXPECT_THAT(v.value().to_vector<float>(), ElementsAre(1, 2));
}

TEST_F(DeviceTest, AFunctionThatCapturesAVariableOfADevice) {
  const Variable v(on_fake(Tensor{1.f, 2.f}));
  auto f = function([&](const Tensor& x) { return x * v + v; });
  const Tensor y = f(Tensor{3.f, 4.f});
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(4, 10));
  EXPECT_TRUE(is_on_fake(y));
  EXPECT_THAT(f(on_fake(Tensor{3.f, 4.f})).to_vector<float>(), ElementsAre(4, 10));
}

TEST_F(DeviceTest, ItsGradientAndAFunctionInside) {
  const Variable v(on_fake(Tensor{1.f, 2.f}));
  auto inner = function([&](const Tensor& x) { return x * v; });
  auto f = function([&](const Tensor& x) { return inner(x) * v; });
  GradientTape tape;
  const Tensor y = f(Tensor{3.f, 4.f});
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(3, 16));
  EXPECT_THAT(Tensor(tape.gradient(y, v)).to_vector<float>(), ElementsAre(6, 16));
}

TEST_F(DeviceTest, AFunctionAssignsAVariableOfADevice) {
  const Variable v(on_fake(Tensor{1.f, 2.f}));
  auto add = function([&](const Tensor& x) {
    v.assign_add(x);
    return x;
  });
  expect_error([&] { add(Tensor{1.f, 1.f}); }, Code::unimplemented, "lives on /device:FAKE:0");
  auto set = function([&](const Tensor& x) {
    v.assign(x);
    return x;
  });
  set(Tensor{5.f, 6.f});
  EXPECT_THAT(v.value().to_vector<float>(), ElementsAre(5, 6));
}

}  // namespace
}  // namespace runnel::test
