// Variables of the host and of devices in functions: every place of the variable with every place of the argument.
#include "runnel/autodiff/tape.h"
#include "runnel/function/control_flow.h"
#include "runnel/function/function.h"
#include "runnel/function/traced_blocks.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"
#include "runnel/ops/tensor_array.h"
#include "tests/device/places.h"
#include "tests/support/expect_error.h"

namespace runnel::test {
namespace {

class VariablesInFunctions : public AllPlacesTest {};
INSTANTIATE_TEST_SUITE_P(Places, VariablesInFunctions, ::testing::ValuesIn(all_places()),
                         [](const auto& info) { return places_name(info.param); });

TEST_P(VariablesInFunctions, EagerReadsAndAssignments) {
  const Variable v = var(Tensor{1.f, 2.f});
  const Tensor x = arg(Tensor{3.f, 4.f});
  expect_at(v.value(), variable(), {1, 2});
  expect_at(x * v, both(), {3, 8});
  const Tensor before = v;
  v.assign(x);
  expect_at(v.value(), variable(), {3, 4});  // an assignment does not move the variable
  expect_at(before, variable(), {1, 2});
  v.assign(v + x);
  expect_at(v.value(), variable(), {6, 8});
}

TEST_P(VariablesInFunctions, UpdatesInPlace) {
  const Variable v = var(Tensor{1.f, 2.f});
  const Tensor x = arg(Tensor{3.f, 4.f});
  const auto add = function([&](const Tensor& t) { v.assign_add(t * 2); });
  const auto put_row = function([&](const Tensor& t) { v.scatter_update({t[1], Tensor(0), Tensor{2}}); });
  if (variable() == Place::host) {
    v.assign_add(x);
    add(x);
    v.assign_sub(x);
    expect_at(v.value(), Place::host, {7, 10});
    put_row(x);
    return expect_at(v.value(), Place::host, {4, 10});
  }
  // The devices have no kernels for updates in place: an Error that names op and device, and nothing is changed.
  const std::string device = device_at(variable()).name();
  const std::string message = "[AssignAddVariableOp] Variable 'Variable' lives on " + device;
  expect_error([&] { v.assign_add(x); }, Code::unimplemented, message);
  expect_error([&] { add(x); }, Code::unimplemented, message);
  expect_error([&] { v.assign_sub(x); }, Code::unimplemented, "lives on " + device);
  expect_error([&] { put_row(x); }, Code::unimplemented, "lives on " + device);
  expect_at(v.value(), variable(), {1, 2});
}

TEST_P(VariablesInFunctions, ReadsOfRows) {
  const Variable v = var(Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  const Tensor rows = arg(Tensor{2, 0});
  const auto f = function([&](const Tensor& i) { return v.sparse_read(i) * 2; });
  const Place expected = meeting(variable(), argument());  // the rows are those of the variable
  expect_at(v.sparse_read(rows), expected, {5, 6, 1, 2});
  GradientTape tape;
  const Tensor y = f(rows);
  expect_at(y, expected, {10, 12, 2, 4});
  EXPECT_EQ(Tensor(tape.gradient(y, v)).to_vector<float>(), (std::vector<float>{2, 2, 0, 0, 2, 2}));
}

TEST_P(VariablesInFunctions, CapturedByAFunction) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto f = function([&](const Tensor& x) { return x * v + v; });
  expect_at(f(arg(Tensor{3.f, 4.f})), both(), {4, 10});
  // The trace serves arguments of every other place, and the first one again.
  for (const Place place : {Place::second, Place::host, Place::first, argument()}) {
    expect_at(f(put(Tensor{5.f, 6.f}, place)), meeting(place, variable()), {6, 14});
  }
  v.assign(Tensor{2.f, 3.f});
  expect_at(f(arg(Tensor{3.f, 4.f})), both(), {8, 15});
  EXPECT_EQ(f.num_traces(), 1);
}

TEST_P(VariablesInFunctions, CapturedByAnInnerFunction) {
  const Variable v = var(Tensor{1.f, 2.f});
  const Variable w(put(Tensor{10.f, 20.f}, argument()));
  const auto inner = function([&](const Tensor& x) { return x * v; });
  const auto f = function([&](const Tensor& x) { return inner(x) + inner(w) + v; });
  expect_at(f(arg(Tensor{3.f, 4.f})), both(), {14, 50});
  expect_at(inner(arg(Tensor{3.f, 4.f})), both(), {3, 8});
  expect_at(f(Tensor{0.f, 1.f}), meeting(variable(), argument()), {11, 44});
}

TEST_P(VariablesInFunctions, AssignedInAFunction) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto f = function([&](const Tensor& x) {
    const Tensor before = v;
    v.assign(x + 1);
    const Tensor between = v;
    v.assign(v + before);
    return std::pair(between, v.value());
  });
  for (const Place place : {argument(), Place::host, argument(), Place::first}) {
    v.assign(Tensor{1.f, 2.f});
    const auto [between, after] = f(put(Tensor{3.f, 4.f}, place));
    expect_at(between, variable(), {4, 5});
    expect_at(after, variable(), {5, 7});
  }
  EXPECT_EQ(f.num_traces(), 1);
}

TEST_P(VariablesInFunctions, ReadAndAssignedInABranch) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto f = function([&](const Tensor& x) {
    Tensor y = x;
    IF(reduce_sum(x) > 5) { y = x * v; }
    else {
      v.assign(x);
    }
    return y;
  });
  expect_at(f(arg(Tensor{3.f, 4.f})), both(), {3, 8});
  expect_at(f(arg(Tensor{1.f, 3.f})), argument(), {1, 3});
  expect_at(v.value(), variable(), {1, 3});
  const auto by_variable = function([&](const Tensor& x) {
    return cond(
        reduce_sum(v) > 3, [&] { return x + 1; }, [&] { return x - 1; });
  });
  expect_at(by_variable(arg(Tensor{3.f, 4.f})), argument(), {4, 5});
  const auto by_case = function([&](const Tensor& x, const Tensor& i) {
    using Branch = std::function<Tensor()>;
    return switch_case(i, std::vector<Branch>{[&] { return x; }, [&] { return x * v; }});
  });
  expect_at(by_case(arg(Tensor{3.f, 4.f}), Tensor(1)), both(), {3, 12});
  expect_at(by_case(Tensor{3.f, 4.f}, arg(Tensor(0))), Place::host, {3, 4});
}

TEST_P(VariablesInFunctions, InALoop) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto f = function([&](Tensor x, Tensor n) {
    Tensor i = 0;
    WHILE(i < n) {
      x = x * v;
      i = i + 1;
    }
    return x;
  });
  expect_at(f(arg(Tensor{3.f, 4.f}), Tensor(3)), both(), {3, 32});
  expect_at(f(arg(Tensor{3.f, 4.f}), Tensor(0)), argument(), {3, 4});
  expect_at(f(Tensor{3.f, 4.f}, arg(Tensor(2))), variable(), {3, 16});  // only the count is elsewhere
  const auto add = function([&](const Tensor& x) {
    WHILE(reduce_sum(v) < 20) { v.assign(v + x); }
    return v.value();
  });
  expect_at(add(arg(Tensor{3.f, 4.f})), variable(), {10, 14});
}

TEST_P(VariablesInFunctions, InAFunctionThatCallsItself) {
  const Variable v = var(Tensor{1.f, 2.f});
  std::function<Tensor(const Tensor&, const Tensor&)> again;
  const auto f = function([&](const Tensor& x, const Tensor& n) {
    return cond(
        n > 0, [&] { return again(x * v, n - 1); }, [&] { return x + 0.f; });
  });
  again = [&](const Tensor& x, const Tensor& n) { return f(x, n); };
  expect_at(f(arg(Tensor{3.f, 4.f}), Tensor(3)), both(), {3, 32});
  expect_at(f(Tensor{3.f, 4.f}, Tensor(1)), variable(), {3, 8});
}

TEST_P(VariablesInFunctions, MadeWhileTracing) {
  Variable made;
  const auto f = function([&](const Tensor& x) {
    if (!made.defined()) made = var(Tensor{1.f, 2.f});
    return x * made + put(Tensor{10.f, 20.f}, variable());
  });
  expect_at(f(arg(Tensor{3.f, 4.f})), both(), {13, 28});
  expect_at(f(Tensor{3.f, 4.f}), variable(), {13, 28});
}

TEST_P(VariablesInFunctions, InAnArrayOfALoop) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto f = function([&](const Tensor& x) {
    TensorArray all(DType::float32, 3);
    for (auto i : range(3)) all = all.write(i, x * v + cast(i, float32));
    return std::tuple(all.stack(), all.concat(), all.read(1), all.gather(Tensor{2, 0}));
  });
  for (int run = 0; run < 2; ++run) {
    const auto [stacked, joined, second, picked] = f(arg(Tensor{3.f, 4.f}));
    expect_at(stacked, both(), {3, 8, 4, 9, 5, 10});
    expect_at(joined, both(), {3, 8, 4, 9, 5, 10});
    expect_at(second, both(), {4, 9});
    expect_at(picked, both(), {5, 10, 3, 8});
  }
}

}  // namespace
}  // namespace runnel::test
