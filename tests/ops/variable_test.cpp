#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/ops/variable_slot.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Variable, HoldsAndChangesItsValue) {
  Variable v(Tensor{1.f, 2.f}, {.name = "v"});
  EXPECT_EQ(v.name(), "v");
  EXPECT_EQ(v.dtype(), float32);
  EXPECT_EQ(v.shape(), (Shape{2}));
  v.assign({5.f, 6.f}).assign_add({1.f, 1.f}).assign_sub({0.5f, 0.5f});
  EXPECT_EQ(v.value().to_vector<float>(), (Floats{5.5f, 6.5f}));
  Variable counter(0);
  counter.assign_add(1);
  EXPECT_EQ(counter.value().item<int32_t>(), 1);
}

TEST(Variable, UpdatesHaveItsDtype) {
  const Variable v(1);
  EXPECT_THROW(v.assign_add(Tensor(1.f)), Error);
  EXPECT_THROW(v.assign_sub(cast(Tensor(1.f), DType::float64)), Error);
  EXPECT_EQ(v.value().item<int32_t>(), 1);
}

TEST(Variable, AReadNeverChanges) {
  Variable v(Tensor{1.f, 2.f});
  const Tensor before = v;
  v.assign_add({1.f, 1.f});
  EXPECT_EQ(before.to_vector<float>(), (Floats{1.f, 2.f}));
  EXPECT_EQ(v.value().to_vector<float>(), (Floats{2.f, 3.f}));
  const Tensor given{7.f, 8.f};
  v.assign(given);
  v.assign_sub({1.f, 1.f});
  EXPECT_EQ(given.to_vector<float>(), (Floats{7.f, 8.f}));
}

TEST(Variable, WritesInPlaceWhenNobodyElseHoldsTheBuffer) {
  Variable v(zeros({1000}));
  v.assign_add(ones({1000}));  // the constructor's tensor may still have been shared
  const void* address = v.value().raw();
  v.assign_add(ones({1000}));
  EXPECT_EQ(v.value().raw(), address);
}

TEST(Variable, VersionCountsWrites) {
  Variable v(Tensor(1.f));
  const uint64_t version = v.slot().version;
  v.assign(2.f);
  v.assign_add(2.f);
  EXPECT_EQ(v.slot().version, version + 2);
}

TEST(Variable, StandsWhereATensorDoes) {
  Variable v(Tensor{1.f, 2.f});
  EXPECT_EQ((v + v).to_vector<float>(), (Floats{2.f, 4.f}));
  EXPECT_EQ((2 * v - 1).to_vector<float>(), (Floats{1.f, 3.f}));
  EXPECT_EQ(reduce_sum(v).item<float>(), 3.f);
}

TEST(Variable, CopiesAreTheSameVariable) {
  Variable v(Tensor(1.f));
  Variable same = v;
  same.assign(5.f);
  EXPECT_EQ(v.value().item<float>(), 5.f);
}

TEST(Variable, ScatterUpdates) {
  auto fresh = [] { return Variable(Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}); };
  const IndexedSlices s{Tensor{{10.f, 1.f}, {1.f, 2.f}, {2.f, 2.f}}, Tensor{2, 0, 2}, Tensor{3, 2}};
  EXPECT_EQ(fresh().scatter_add(s).value().to_vector<float>(), (Floats{2, 4, 3, 4, 17, 9}));
  EXPECT_EQ(fresh().scatter_sub(s).value().to_vector<float>(), (Floats{0, 0, 3, 4, -7, 3}));
  EXPECT_EQ(fresh().scatter_mul(s).value().to_vector<float>(), (Floats{1, 4, 3, 4, 100, 12}));
  EXPECT_EQ(fresh().scatter_div(s).value().to_vector<float>(), (Floats{1, 1, 3, 4, 0.25f, 3}));
  EXPECT_EQ(fresh().scatter_min(s).value().to_vector<float>(), (Floats{1, 2, 3, 4, 2, 1}));
  EXPECT_EQ(fresh().scatter_max(s).value().to_vector<float>(), (Floats{1, 2, 3, 4, 10, 6}));
  EXPECT_EQ(fresh().scatter_update(s).value().to_vector<float>(), (Floats{1, 2, 3, 4, 2, 2}));
  Variable names(Tensor{"a", "b"});
  names.scatter_update({Tensor{"z"}, Tensor{1}, Tensor{2}});
  EXPECT_EQ(names.value().to_vector<std::string>(), (std::vector<std::string>{"a", "z"}));
}

TEST(Variable, SparseReadHasAGradientOfRows) {
  Variable table(Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  GradientTape tape;
  const Tensor rows = table.sparse_read({2, 0, 2});
  EXPECT_EQ(rows.to_vector<float>(), (Floats{5, 6, 1, 2, 5, 6}));
  const Gradient g = tape.gradient(reduce_sum(rows * rows), table);
  ASSERT_TRUE(g.is_slices());
  EXPECT_EQ(g.slices().indices.to_vector<int32_t>(), (std::vector<int32_t>{2, 0, 2}));
  EXPECT_EQ(Tensor(g).to_vector<float>(), (Floats{2, 4, 0, 0, 20, 24}));
}

TEST(Variable, Errors) {
  Variable v(Tensor{1.f, 2.f}, {.name = "w"});
  EXPECT_THAT(message_of([&] { v.assign(Tensor{1, 2}); }), HasSubstr("Variable 'w' holds float32, assigned int32"));
  EXPECT_THAT(message_of([&] { v.assign({1.f, 2.f, 3.f}); }), HasSubstr("Variable 'w' has shape [2], assigned [3]"));
  EXPECT_THAT(message_of([&] { v.assign_add(Tensor(1.f)); }), HasSubstr("[AssignAddVariableOp]"));
  EXPECT_THAT(message_of([&] { v.assign({1.f, 2.f, 3.f}); }), HasSubstr("variable_test.cpp"));
  EXPECT_THAT(message_of([&] { v.scatter_add({Tensor{1.f}, Tensor{5}, Tensor{2}}); }), HasSubstr("index 5 is outside"));
  EXPECT_THAT(message_of([&] { Variable(1, {.dtype = float64}); }), testing::StrEq("no error"));
  EXPECT_THAT(message_of([&] { Variable(Tensor(1), {.dtype = float64}); }), HasSubstr("asks for float64"));
  EXPECT_THAT(message_of([&] { Variable().value(); }), HasSubstr("the Variable was never made"));
  Variable integers(Tensor{1, 2});
  EXPECT_THAT(message_of([&] {
                integers.scatter_div({Tensor{0}, Tensor{0}, Tensor{2}});
              }),
              HasSubstr("division by zero"));
}

TEST(Variable, ShapeMayBeLeftOpen) {
  Variable v(Tensor{1.f, 2.f}, {.shape = PartialShape{kUnknownDim}});
  v.assign({1.f, 2.f, 3.f});
  EXPECT_EQ(v.shape(), (Shape{3}));
  EXPECT_THROW(v.assign(Tensor(1.f)), Error);
}

}  // namespace
}  // namespace runnel
