// How functions with variables of devices run: derivatives, sizes that are not known, chains, values that move, memory.
#include <thread>

#include "runnel/autodiff/tape.h"
#include "runnel/function/control_flow.h"
#include "runnel/function/function.h"
#include "runnel/function/traced_blocks.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"
#include "tests/device/places.h"
#include "tests/support/expect_error.h"

namespace runnel::test {
namespace {

class RunsOnDevices : public AllPlacesTest {};
INSTANTIATE_TEST_SUITE_P(Places, RunsOnDevices, ::testing::ValuesIn(all_places()),
                         [](const auto& info) { return places_name(info.param); });

TEST_P(RunsOnDevices, TapesOutside) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto f = function([&](const Tensor& x) { return x * v * v * v; });
  const Tensor x = arg(Tensor{3.f, 4.f});
  for (int run = 0; run < 2; ++run) {
    GradientTape outer({.persistent = true});
    outer.watch(x);
    Tensor dv, dx;
    {
      GradientTape tape;
      tape.watch(x);
      const Tensor y = f(x);
      expect_at(y, both(), {3, 32});
      const auto grads = tape.gradient(y, {v, x});
      dv = grads[0];
      dx = grads[1];
    }
    EXPECT_EQ(dv.device_name(), device_at(both()).name());
    EXPECT_EQ(dv.to_vector<float>(), (std::vector<float>{9, 48}));  // 3 x v^2
    EXPECT_EQ(dx.to_vector<float>(), (std::vector<float>{1, 8}));
    EXPECT_EQ(Tensor(outer.gradient(dv, v)).to_vector<float>(), (std::vector<float>{18, 48}));  // 6 x v
    EXPECT_EQ(Tensor(outer.gradient(dv, x)).to_vector<float>(), (std::vector<float>{3, 12}));
  }
}

TEST_P(RunsOnDevices, TapesInside) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto f = function([&](const Tensor& x) {
    GradientTape outer;
    Tensor first;
    {
      GradientTape tape;
      first = tape.gradient(reduce_sum(x * v * v * v), v);
    }
    return std::pair(first, Tensor(outer.gradient(first, v)));
  });
  for (const Place place : {argument(), Place::host, argument()}) {
    const auto [first, second] = f(put(Tensor{3.f, 4.f}, place));
    expect_at(first, meeting(place, variable()), {9, 48});
    expect_at(second, meeting(place, variable()), {18, 48});
  }
}

TEST_P(RunsOnDevices, GradientsOfBranchesAndLoops) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto f = function([&](Tensor x) {
    Tensor i = 0;
    WHILE(i < 2) {
      IF(reduce_sum(x) > 0) { x = x * v; }
      else {
        x = x + 1;
      }
      i = i + 1;
    }
    return reduce_sum(x * v);
  });
  const auto inside = function([&](const Tensor& x) {
    GradientTape tape;
    return Tensor(tape.gradient(f(x), v));
  });
  const Tensor x = arg(Tensor{3.f, 4.f});
  for (int run = 0; run < 2; ++run) {
    GradientTape tape;
    const Tensor y = f(x);
    expect_at(y, both(), {35});  // the sum of x v^3
    EXPECT_EQ(Tensor(tape.gradient(y, v)).to_vector<float>(), (std::vector<float>{9, 48}));
    GradientTape outer;
    const Tensor first = inside(x);
    EXPECT_EQ(first.to_vector<float>(), (std::vector<float>{9, 48}));
    EXPECT_EQ(Tensor(outer.gradient(first, v)).to_vector<float>(), (std::vector<float>{18, 48}));
  }
}

TEST_P(RunsOnDevices, SignaturesAndSizesThatAreNotKnown) {
  const Variable v = var(Tensor(2.f));
  const auto body = [&](const Tensor& x) { return reshape(x * v, {-1, 1}) + cast(size(x), float32); };
  const auto by_signature = function(body, {.input_signature = {{PartialShape{kUnknownDim}, float32, "x"}}});
  const auto relaxed_itself = function(body, {.reduce_retracing = true});
  for (const Place place : {argument(), Place::host, argument(), Place::second}) {
    for (const auto& f : {by_signature, relaxed_itself}) {
      expect_at(f(put(Tensor{3.f, 4.f}, place)), meeting(place, variable()), {8, 10});
      expect_at(f(put(Tensor{3.f, 4.f, 5.f}, place)), meeting(place, variable()), {9, 11, 13});
      expect_at(f(put(Tensor{3.f}, place)), meeting(place, variable()), {7});
      expect_at(f(put(Tensor{1.f, 1.f, 1.f, 1.f}, place)), meeting(place, variable()), {6, 6, 6, 6});
    }
  }
  EXPECT_EQ(by_signature.num_traces(), 1);
  expect_error([&] { by_signature(arg(Tensor{1, 2})); }, Code::invalid_argument, "by the input signature");
}

TEST_P(RunsOnDevices, AChainOfElementwiseOps) {
  const Tensor many = cast(range(40000), float32) / 10000.f;
  const auto chain = [](const Tensor& x, const Tensor& v) { return tanh(x * v + 1.f) * exp(-x) - v; };
  const Tensor expected = chain(many, Tensor(1.5f));
  const Variable v = var(Tensor(1.5f));
  const auto f = function([&](const Tensor& x) { return chain(x, v); });
  for (const Place place : {argument(), Place::host, argument()}) {
    const Tensor y = f(put(many, place));
    EXPECT_EQ(y.device_name(), device_at(meeting(place, variable())).name());
    EXPECT_EQ(y.to_vector<float>(), expected.to_vector<float>());
  }
}

TEST_P(RunsOnDevices, TheVariableMovesBetweenCalls) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto f = function([&](const Tensor& x) {
    const Tensor y = matmul(reshape(x, {1, 2}), reshape(v, {2, 1}));
    v.assign(v + 1);
    return y;
  });
  float expected[] = {11, 18, 25, 32};
  const Place route[] = {variable(), argument(), Place::host, Place::second};
  for (int i = 0; i < 4; ++i) {
    move_variable(v, route[i]);
    expect_at(f(arg(Tensor{3.f, 4.f})), meeting(argument(), route[i]), {expected[i]});
    EXPECT_EQ(v.value().device_name(), device_at(route[i]).name());
  }
}

TEST_P(RunsOnDevices, FunctionsKeepNoMemoryOfADevice) {
  const Variable v = var(Tensor{1.f, 2.f});
  // With and without planned memory: the values on the way stay in the frame of a run on the host.
  for (const bool planned : {true, false}) {
    const auto f = function([&](const Tensor& x) { return (x + v) * (x - v) * 2; }, {.plan = {.memory_plan = planned}});
    const Tensor x = arg(Tensor{3.f, 4.f});
    f(x);
    fake_device().synchronize();
    second_fake_device().synchronize();
    const size_t first = fake_device().blocks(), second = second_fake_device().blocks();
    for (int i = 0; i < 3; ++i) expect_at(f(x), both(), {16, 24});
    expect_at(f(Tensor{3.f, 4.f}), variable(), {16, 24});
    expect_at(f(x), both(), {16, 24});
    fake_device().synchronize();
    second_fake_device().synchronize();
    EXPECT_EQ(fake_device().blocks(), first);
    EXPECT_EQ(second_fake_device().blocks(), second);
  }
}

TEST_F(PlacesTest, ThreadsShareAFunction) {
  const Variable v(put(Tensor{1.f, 2.f}, Place::first)), h(Tensor{1.f, 2.f});
  const auto f = function([&](const Tensor& x, const Variable& w) { return (x * w + 1) * (x - 1); });
  std::vector<std::thread> threads;
  for (const Place place : kPlaces) {
    threads.emplace_back([&, place] {
      for (int i = 0; i < 50; ++i) {
        expect_at(f(put(Tensor{3.f, 4.f}, place), v), meeting(place, Place::first), {8, 27});
        expect_at(f(put(Tensor{3.f, 4.f}, place), h), place, {8, 27});
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace runnel::test
