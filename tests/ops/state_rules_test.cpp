// What ops on variables and tables ask of their inputs, and updates of complex variables.
#include <gtest/gtest.h>

#include <complex>

#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using Complex = std::complex<double>;

TEST(StateRules, AnAssignmentThatValidatesKeepsTheShape) {
  const Variable v(Tensor{1.f, 2.f}, {.shape = PartialShape::unknown()});
  expect_error(
      [&] {
        call_op("AssignVariableOp", {v.handle(), Tensor{1.f}}, {{"validate_shape", true}});
      },
      Code::invalid_argument, "has a value of shape [2], assigned [1]");
  call_op("AssignVariableOp", {v.handle(), Tensor{5.f}}, {});
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{5.f}));
}

TEST(StateRules, RowsAreNotDividedByZero) {
  const Variable v(Tensor{1.f, 2.f});
  expect_error(
      [&] {
        call_op("ResourceScatterDiv", {v.handle(), Tensor{1}, Tensor{0.f}});
      },
      Code::invalid_argument, "division by zero");
}

TEST(StateRules, RowsAreReadInTheDtypeOfTheVariable) {
  const Variable v(Tensor{1.f, 2.f});
  expect_error(
      [&] {
        call_op("ResourceGather", {v.handle(), Tensor{1}}, {{"dtype", DType::int32}});
      },
      Code::invalid_argument, "holds float32, asked for int32");
  expect_error(
      [&] {
        call_op("ResourceGather", {v.handle(), Tensor{1}}, {{"dtype", DType::float32}, {"batch_dims", -1}});
      },
      Code::invalid_argument, "batch_dims must not be negative");
}

TEST(StateRules, IndicesOfRowsAreAVector) {
  const Variable v(Tensor{{1.f}, {2.f}}), slot(Tensor{{0.f}, {0.f}});
  const Tensor rate(0.5f);
  expect_error(
      [&] {
        call_op("ResourceSparseApplyMomentum", {v.handle(), slot.handle(), rate, Tensor{{1.f}}, Tensor{{1}}, rate});
      },
      Code::invalid_argument, "must have rank 1");
}

TEST(StateRules, TheDefaultOfALookupIsAScalarOrOfTheShapeOfTheKeys) {
  lookup::MutableHashTable table(DType::int64, DType::float32, Tensor(-1.f));
  table.insert(Tensor::of<int64_t>({1, 2}), Tensor{1.f, 2.f});
  const Tensor keys = Tensor::of<int64_t>({2, 5});
  expect_error(
      [&] {
        call_op("LookupTableFindV2", {table.handle(), keys, Tensor{-1.f}});
      },
      Code::invalid_argument, "default_value must be a scalar");
  EXPECT_EQ(call_op("LookupTableFindV2", {table.handle(), keys, Tensor{7.f, 8.f}})[0].to_vector<float>(),
            (std::vector<float>{2.f, 8.f}));
}

TEST(StateRules, ComplexVariablesAreUpdated) {
  const Complex x(1, -2), g(0.5, 1), rate(0.1, 0), rho(0.9, 0), slot(0.5, 0.25), epsilon(0.01, 0);
  const auto one = [](Complex c) { return Tensor::of<Complex>({c}); };
  const auto scalar = [](Complex c) { return Tensor::of<Complex>({c}, Shape{}); };
  const auto expect_near = [](const Variable& v, Complex expected) {
    const Complex got = v.value().to_vector<Complex>()[0];
    EXPECT_NEAR(std::abs(got - expected), 0, 1e-12) << got;
  };
  const Variable momentum(one(x)), accum(one(slot));
  call_op("ResourceApplyMomentum", {momentum.handle(), accum.handle(), scalar(rate), one(g), scalar(rho)});
  expect_near(accum, slot * rho + g);
  expect_near(momentum, x - rate * (slot * rho + g));

  const Variable rms(one(x)), mean_square(one(slot)), move(one(slot));
  call_op("ResourceApplyRMSProp", {rms.handle(), mean_square.handle(), move.handle(), scalar(rate), scalar(rho),
                                   scalar(rho), scalar(epsilon), one(g)});
  const Complex ms = slot + (g * g - slot) * (1.0 - rho), mom = slot * rho + g * rate / std::sqrt(ms + epsilon);
  expect_near(mean_square, ms);
  expect_near(rms, x - mom);
}

}  // namespace
}  // namespace runnel
