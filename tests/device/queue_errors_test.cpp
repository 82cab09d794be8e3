// Functions whose work fails, or is not done yet, on the queue of a device.
#include "runnel/autodiff/tape.h"
#include "runnel/base/format.h"
#include "runnel/function/function.h"
#include "runnel/function/traced_blocks.h"
#include "runnel/op/builder.h"
#include "runnel/ops/array.h"
#include "runnel/ops/control.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"
#include "tests/device/places.h"
#include "tests/support/expect_error.h"

namespace runnel::test {
namespace {

// What fails on the queue of a device.
class QueueErrors : public PlacesTest {
 protected:
  void SetUp() override {
    fake_device();
    static const bool once = [] {
      mutable_registry()
          .define("RefusesNegative")
          .in("x", Types<float>{})
          .out("y")
          .shape(like<0>)
          .cpu([](KernelContext& c) {
            for (int64_t i = 0; i < c.in(0).num_elements(); ++i) {
              if (c.in<float>(0)[i] < 0) throw invalid_argument("{} is negative", c.in<float>(0)[i]);
              c.out<float>()[i] = c.in<float>(0)[i];
            }
          });
      mutable_registry().set_kernel("RefusesNegative", kFake, DType::invalid, &QueuedCall::kernel);
      return true;
    }();
    (void)once;
    PlacesTest::SetUp();
  }
  static Tensor refuse(const Tensor& x) { return call_op("RefusesNegative", {x})[0]; }
};

TEST_F(QueueErrors, SurfaceAtTheNextWaitAndLeaveTheFunctionUsable) {
  const Variable v(put(Tensor{1.f, 2.f}, Place::first));
  const auto f = function([&](const Tensor& x) { return refuse(x * v) + v; });
  for (int round = 0; round < 2; ++round) {
    const Tensor bad = f(Tensor{3.f, -4.f});  // returns: the work is on the queue
    expect_error([&] { bad.to_vector<float>(); }, Code::invalid_argument, "[RefusesNegative] -8 is negative");
    expect_at(f(Tensor{3.f, 4.f}), Place::first, {4, 10});
  }
}

TEST_F(QueueErrors, SurfaceInsideTheFunctionThatWaits) {
  const Variable v(put(Tensor{1.f, 2.f}, Place::first));
  const auto branch = function([&](const Tensor& x) {
    Tensor y = refuse(x * v);
    IF(reduce_sum(y) > 100) y = y + v;
    return y;
  });
  const auto loop = function([&](Tensor x) {
    WHILE(reduce_sum(x) < 100) x = refuse(x * v) + x;
    return x;
  });
  const auto assigns = function([&](const Tensor& x) {
    v.assign(refuse(x * v));
    return v * v;
  });
  const auto by_callback = function([&](const Tensor& x) {
    return host_call([](const std::vector<Tensor>& in) { return in; }, {refuse(x * v)}, {float32})[0];
  });
  const std::string message = "[RefusesNegative] -8 is negative";
  for (int round = 0; round < 2; ++round) {
    expect_error([&] { branch(Tensor{3.f, -4.f}); }, Code::invalid_argument, message);
    expect_at(branch(Tensor{3.f, 4.f}), Place::first, {3, 8});
    expect_error([&] { loop(Tensor{3.f, -4.f}); }, Code::invalid_argument, message);
    expect_at(loop(Tensor{3.f, 40.f}), Place::first, {6, 120});
    expect_error([&] { by_callback(Tensor{3.f, -4.f}); }, Code::invalid_argument, message);
    expect_at(by_callback(Tensor{3.f, 4.f}), Place::host, {3, 8});
  }
  const Tensor bad = assigns(Tensor{3.f, -4.f});
  expect_error([&] { bad.to_vector<float>(); }, Code::invalid_argument, message);
  v.assign(Tensor{1.f, 2.f});
  expect_at(assigns(Tensor{3.f, 4.f}), Place::first, {9, 64});
}

TEST_F(QueueErrors, SurfaceInGradients) {
  const Variable v(put(Tensor{1.f, 2.f}, Place::first));
  const auto f = function([&](const Tensor& x) {
    const Tensor checked = refuse(x);
    return reduce_sum(stop_gradient(checked) * v * v);
  });
  for (int round = 0; round < 2; ++round) {
    GradientTape tape;
    const Tensor y = f(put(Tensor{-3.f, 4.f}, Place::first));
    expect_error([&] { Tensor(tape.gradient(y, v)).to_vector<float>(); }, Code::invalid_argument, "-3 is negative");
    GradientTape again;
    const Tensor z = f(put(Tensor{3.f, 4.f}, Place::first));
    EXPECT_EQ(Tensor(again.gradient(z, v)).to_vector<float>(), (std::vector<float>{6, 16}));
  }
}

TEST_F(QueueErrors, CallsReturnBeforeTheWorkIsDone) {
  const Variable v(put(Tensor{1.f, 2.f}, Place::first));
  const Tensor x = put(Tensor{3.f, 4.f}, Place::first);
  const auto f = function([&](const Tensor& t) {
    v.assign(t * v);
    return v + t;
  });
  fake_device().hold(true);
  const Tensor y = f(x);
  const Tensor z = f(x);
  EXPECT_EQ(fake_device().pending(), 4u);
  fake_device().hold(false);
  expect_at(y, Place::first, {6, 12});
  expect_at(z, Place::first, {12, 36});
  expect_at(v.value(), Place::first, {9, 32});
}

}  // namespace
}  // namespace runnel::test
