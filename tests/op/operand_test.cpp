// C++ numbers as operands, and what errors say about the call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <complex>

#include "runnel/op/dispatch.h"
#include "runnel/op/registry.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Tensor of_dtype(DType dtype) {
  Tensor result;
  numbers.for_each([&]<class T>() {
    if (dtype_of<T> == dtype) result = Tensor::of<T>(std::vector<T>{T(3)});
  });
  return result;
}

TEST(OperandTest, AnIntegerTakesTheTensorsDtype) {
  numbers.for_each([]<class T>() {
    const Tensor x = of_dtype(dtype_of<T>);
    for (const Tensor& y : {2 + x, x + 2}) {
      EXPECT_EQ(y.dtype(), dtype_of<T>);
      EXPECT_EQ(y.template item<T>(), T(5)) << dtype_name(dtype_of<T>);
    }
  });
}

TEST(OperandTest, ARealNumberNeedsAFloatingTensor) {
  for (DType t : {float16, bfloat16, float32, float64, complex64, complex128}) {
    EXPECT_EQ((of_dtype(t) * 2.5).dtype(), t);
    EXPECT_EQ((2.5f * of_dtype(t)).dtype(), t);
  }
  EXPECT_EQ((Tensor::of<double>(std::vector<double>{1}) * 0.1).item<double>(), 0.1);
  for (DType t : {int8, int16, int32, int64, uint8, uint16, uint32, uint64}) {
    expect_error([&] { of_dtype(t) + 2.5; }, Code::invalid_argument,
                 std::string("the literal 2.5 cannot be a value of dtype ") + dtype_name(t));
  }
}

TEST(OperandTest, ValuesThatDoNotFit) {
  expect_error([] { of_dtype(uint8) + 256; }, Code::invalid_argument, "256 cannot be a value of dtype uint8");
  expect_error([] { of_dtype(int8) - 129; }, Code::invalid_argument, "129");
  expect_error([] { of_dtype(uint16) + -1; }, Code::invalid_argument, "-1 cannot be a value of dtype uint16");
  expect_error([] { of_dtype(int32) + (int64_t{1} << 40); }, Code::invalid_argument, "dtype int32");
  EXPECT_EQ((of_dtype(int64) + (int64_t{1} << 40)).item<int64_t>(), (int64_t{1} << 40) + 3);
  expect_error([] { of_dtype(float32) + true; }, Code::invalid_argument, "true cannot be a value of dtype float32");
  expect_error([] { of_dtype(float32) * std::complex<float>(0, 1); }, Code::invalid_argument, "dtype float32");
  EXPECT_EQ((of_dtype(complex64) * std::complex<double>(0, 1)).item<std::complex<float>>(), std::complex<float>(0, 3));
}

TEST(OperandTest, LiteralsAloneHaveTheirOwnDtype) {
  EXPECT_EQ(add(1, 2).dtype(), int32);
  EXPECT_EQ(add(1.0, 2).dtype(), float32);
  EXPECT_EQ(identity(int64_t{1}).dtype(), int64);
  EXPECT_EQ(identity(2.5).dtype(), float32);
  EXPECT_EQ(identity(true).dtype(), bool_);
  EXPECT_EQ(identity("a").dtype(), DType::string);
}

TEST(OperandTest, ListsOfLiteralsAreTypedLikeOne) {
  EXPECT_THAT(add(of_dtype(float64), {1, 2}).to_vector<double>(), ElementsAre(4, 5));
  EXPECT_THAT(add(of_dtype(int64), {1, 2}).to_vector<int64_t>(), ElementsAre(4, 5));
  EXPECT_EQ(add(of_dtype(float32), {{1, 2}, {3, 4}}).shape(), (Shape{2, 2}));
  expect_error([] { add(of_dtype(int32), {1.5, 2.0}); }, Code::invalid_argument, "1.5");
}

TEST(OperandTest, TensorsAreNotPromoted) {
  expect_error([] { of_dtype(float32) + of_dtype(float64); }, Code::invalid_argument,
               "y must have dtype float32 like the other inputs, got float64: cast one of them");
  expect_error([] { of_dtype(int32) * of_dtype(int64); }, Code::invalid_argument, "[Mul] ");
  expect_error([] { add(Tensor("a"), Tensor("b")); }, Code::invalid_argument, "x cannot be string; allowed: ");
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
std::string at(int line) { return "(at " + std::string(__FILE__) + ":" + std::to_string(line) + ")"; }

TEST(CallSiteTest, ErrorsNameTheUsersLine) {
  const Tensor x{1.f, 2.f};
  const Tensor y{1.f, 2.f, 3.f};
  EXPECT_THAT(message_of([&] { x + y; }), EndsWith(at(__LINE__)));
  EXPECT_THAT(message_of([&] { add(x, y); }), EndsWith(at(__LINE__)));
  EXPECT_THAT(message_of([&] { x* Tensor("a"); }), EndsWith(at(__LINE__)));
  EXPECT_THAT(message_of([&] { reshape(x, {5}); }), EndsWith(at(__LINE__)));
  EXPECT_THAT(message_of([&] { reduce_sum(x, 3); }), EndsWith(at(__LINE__)));
  EXPECT_THAT(message_of([&] { concat({x, Tensor{{1.f}}}, 0); }), EndsWith(at(__LINE__)));
  EXPECT_THAT(message_of([&] { stack({x, y}); }), EndsWith(at(__LINE__)));
  EXPECT_THAT(message_of([&] { Tensor(1) + 2.5; }), EndsWith(at(__LINE__)));
  EXPECT_THAT(message_of([&] { call_op("AddV2", {x, y}); }), EndsWith(at(__LINE__)));
}

TEST(CallSiteTest, MessagesNameOpAndShapes) {
  const std::string text = message_of([] { matmul(Tensor{{1.f, 2.f}}, Tensor{{1.f, 2.f}}); });
  EXPECT_THAT(text, StartsWith("[MatMul] "));
  EXPECT_THAT(text, HasSubstr("inputs a: float32[1,2], b: float32[1,2]"));
}

TEST(CallOpTest, ByName) {
  EXPECT_THAT(call_op("Add", {Tensor{1, 2}, Tensor{10, 20}})[0].to_vector<int32_t>(), ElementsAre(11, 22));
  EXPECT_EQ(call_op("Sum", {Tensor{{1.f, 2.f}}, Tensor{1}}, {{"keep_dims", true}})[0].shape(), (Shape{1, 1}));
  EXPECT_EQ(call_op("Sum", {Tensor{{1.f, 2.f}}, Tensor{1}})[0].shape(), (Shape{1}));
}

TEST(CallOpTest, Errors) {
  const Tensor x{1.f};
  expect_error([] { call_op("NoSuchOp", {}); }, Code::not_found, "no op is called 'NoSuchOp'");
  expect_error(
      [&] {
        call_op("Sum", {x, Tensor{0}}, {{"keepdims", true}});
      },
      Code::invalid_argument, "[Sum] has no attribute 'keepdims'");
  expect_error(
      [&] {
        call_op("Sum", {x, Tensor{0}}, {{"keep_dims", int64_t{1}}});
      },
      Code::invalid_argument, "[Sum] attribute 'keep_dims' is of type bool, got int");
  expect_error([&] { call_op("AddV2", {x}); }, Code::invalid_argument, "[AddV2] takes 2 inputs, got 1");
  expect_error(
      [&] {
        call_op("AddV2", {x, Tensor()});
      },
      Code::invalid_argument,
      "[AddV2] y refers to nothing: the Tensor was never given a value; inputs x: float32[1], y: nothing");
  expect_error([&] { call_op("ConcatV2", {}); }, Code::invalid_argument, "[ConcatV2] ");
  expect_error([&] { call_op("Pack", {}); }, Code::invalid_argument, "[Pack] ");
}

class Placeholder : public Symbol {
 public:
  const PartialShape& shape() const override { return shape_; }

 private:
  PartialShape shape_ = PartialShape::unknown();
};

TEST(CallOpTest, SymbolsOutsideOfTracing) {
  const Tensor symbol(make_ref<TensorImpl>(float32, std::make_shared<Placeholder>()));
  expect_error([&] { symbol + Tensor(1.f); }, Code::failed_precondition, "[AddV2] x stands for a value of a graph");
  expect_error([&] { symbol.to_vector<float>(); }, Code::failed_precondition, "known only when the graph runs");
  expect_error([&] { symbol.shape(); }, Code::failed_precondition, "shape");
}

TEST(RegistryTest, AnOpIsDeclaredOnce) {
  EXPECT_EQ(registry().find("NoSuchOp"), nullptr);
  EXPECT_EQ(&registry().get("Add"), &registry().get("AddV2"));
}

}  // namespace
}  // namespace runnel
