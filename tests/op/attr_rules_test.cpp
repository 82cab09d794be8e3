// What a declaration says of attributes holds for every call: eager, traced, by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runnel/graph/tracer.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

struct LimitedAttrs {
  std::string mode = "SAME";
  std::vector<std::string> words;
  int64_t count = 1;
  std::vector<int64_t> sizes = {1, 2};
  DType kind = DType::int32;
  std::vector<DType> kinds;
  double free = 0;
  static constexpr auto fields() {
    using A = LimitedAttrs;
    return field_list(field("mode", &A::mode, {.required = true, .texts = "SAME|VALID|"}),
                      field("words", &A::words, {.texts = "one|two"}), field("count", &A::count, {.minimum = -1}),
                      field("sizes", &A::sizes, {.required = true, .minimum = 2}),
                      field("kind", &A::kind, {.types = index_types.mask}),
                      field("kinds", &A::kinds, {.types = floating.mask}), field("free", &A::free));
  }
};

class AttrRules : public ::testing::Test {
 protected:
  AttrRules() {
    const auto copy = []<class T>(KernelContext& c) { std::copy_n(c.in<T>(0), c.out().num_elements(), c.out<T>()); };
    registry_.define<LimitedAttrs>("Limited").in("x", floating).out("y").shape(like<0>).cpu(copy);
    registry_.define("Free").in("x", floating).out("y").shape(like<0>).cpu(copy);
    registry_.define("Lists").type("T", floating).in_list("few", "N").at_least(2).out("y").shape(like<0>).cpu(copy);
    registry_.define("Mixed").in_any_list("any", "T").at_least(1).shape([](InferContext&) {}).cpu([](KernelContext&) {
    });
  }
  Tensor limited(const LimitedAttrs& attrs) const {
    const Tensor x{1.f, 2.f};
    const Tensor* in[] = {&x};
    Tensor out;
    dispatch(registry_.get("Limited"), in, &attrs, &out, 1, SourceSite::current());
    return out;
  }
  Registry registry_;
};

TEST_F(AttrRules, AreCheckedInEagerCalls) {
  EXPECT_THAT(limited({}).to_vector<float>(), ElementsAre(1, 2));
  EXPECT_TRUE(limited({.mode = "", .words = {"two", "one"}, .count = -1, .sizes = {0, 0, 0}}).defined());
  EXPECT_TRUE(limited({.kind = DType::int64, .kinds = {DType::float16, DType::float64}, .free = -1e30}).defined());
  expect_error([&] { limited({.mode = "same"}); }, Code::invalid_argument,
               "[Limited] Value for attr 'mode' of \"same\" is not in the list of allowed values: \"SAME\", \"VALID\", "
               "\"\"; inputs x: float32[2]");
  expect_error(
      [&] {
        limited({.words = {"one", "three"}});
      },
      Code::invalid_argument,
      "Value for attr 'words' of \"three\" is not in the list of allowed values: \"one\", \"two\"");
  expect_error([&] { limited({.count = -2}); }, Code::invalid_argument,
               "Value for attr 'count' of -2 must be at least minimum -1");
  expect_error([&] { limited({.sizes = {7}}); }, Code::invalid_argument,
               "Length for attr 'sizes' of 1 must be at least minimum 2");
  expect_error([&] { limited({.kind = DType::uint8}); }, Code::invalid_argument,
               "Value for attr 'kind' of uint8 is not in the list of allowed values: int32, int64");
  expect_error([&] { limited({.kind = DType::invalid}); }, Code::invalid_argument, "Value for attr 'kind' of");
  expect_error(
      [&] {
        limited({.kinds = {DType::float32, DType::string}});
      },
      Code::invalid_argument,
      "Value for attr 'kinds' of string is not in the list of allowed values: float32, float64, bfloat16, "
      "float16");
}

TEST_F(AttrRules, AreCheckedWhileTracing) {
  Tracer tracer("traced");
  const Tensor x = tracer.add_parameter(DType::float32, PartialShape::unknown(), "x");
  const Tensor* in[] = {&x};
  Tensor out;
  const LimitedAttrs good, bad{.count = -7};
  tracer.open();
  dispatch(registry_.get("Limited"), in, &good, &out, 1, SourceSite::current());
  expect_error([&] { dispatch(registry_.get("Limited"), in, &bad, &out, 1, SourceSite::current()); },
               Code::invalid_argument, "[Limited] Value for attr 'count' of -7");
  tracer.close();
  EXPECT_EQ(tracer.graph()->num_nodes(), 2);  // the parameter and the good call
}

TEST_F(AttrRules, HoldForTheLengthsOfLists) {
  const auto call = [&](const char* op, const std::vector<Tensor>& inputs, int outputs) {
    std::vector<const Tensor*> in;
    for (const Tensor& t : inputs) in.push_back(&t);
    Tensor out;
    dispatch(registry_.get(op), in, nullptr, &out, outputs, SourceSite::current());
  };
  const Tensor x(1.f);
  call("Lists", {x, x}, 1);
  call("Mixed", {x}, 0);
  expect_error([&] { call("Lists", {x}, 1); }, Code::invalid_argument,
               "[Lists] Value for attr 'N' of 1 must be at least minimum 2");
  expect_error([&] { call("Lists", {}, 1); }, Code::invalid_argument, "Value for attr 'N' of 0");
  expect_error([&] { call("Mixed", {}, 0); }, Code::invalid_argument,
               "[Mixed] Length for attr 'T' of 0 must be at least minimum 1");
}

TEST_F(AttrRules, OpsWithoutRulesHaveNothingToCheck) {
  EXPECT_TRUE(registry_.get("Limited").attrs.limited);
  EXPECT_FALSE(registry_.get("Free").attrs.limited);
  const AttrTable& attrs = registry_.get("Limited").attrs;
  EXPECT_TRUE(attrs.find("mode")->required && attrs.find("mode")->limited());
  EXPECT_FALSE(attrs.find("mode")->has_default());
  EXPECT_THAT(attrs.find("mode")->texts, ElementsAre("SAME", "VALID", ""));
  EXPECT_TRUE(attrs.find("count")->has_default());
  EXPECT_FALSE(attrs.find("free")->limited());
}

// A call by name says everything that has no default.
TEST(AttributesByName, RequiredOnesMustBeGiven) {
  const Tensor x{1.f, 2.f}, paddings{{0, 1}};
  expect_error(
      [&] {
        call_op("MirrorPad", {x, paddings});
      },
      Code::invalid_argument, "[MirrorPad] attribute 'mode' has no default: give it");
  expect_error([&] { call_op("Cast", {x}); }, Code::invalid_argument, "attribute 'DstT' has no default");
  expect_error(
      [&] {
        call_op("MirrorPad", {x, paddings}, {{"mode", std::string("WRAP")}});
      },
      Code::invalid_argument,
      "[MirrorPad] Value for attr 'mode' of \"WRAP\" is not in the list of allowed values: \"REFLECT\", "
      "\"SYMMETRIC\"");
  EXPECT_THAT(call_op("MirrorPad", {x, paddings}, {{"mode", std::string("SYMMETRIC")}})[0].to_vector<float>(),
              ElementsAre(1, 2, 2));
}

// Joining one tensor is no op of TensorFlow's, and no error either.
TEST(AttributesByName, OneTensorIsJoinedWithoutTheOp) {
  EXPECT_THAT(concat(std::vector<Tensor>{Tensor{1.f, 2.f}}, 0).to_vector<float>(), ElementsAre(1, 2));
  expect_error(
      [] {
        call_op("ConcatV2", {Tensor{1.f}, Tensor(0)});
      },
      Code::invalid_argument, "[ConcatV2] Value for attr 'N' of 1 must be at least minimum 2");
}

}  // namespace
}  // namespace runnel
