#include "runnel/op/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/base/error.h"
#include "runnel/ops/array.h"
#include "runnel/ops/random.h"

namespace runnel {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;
using Types = std::vector<DType>;

std::string error_of(const std::string& op, const std::vector<Tensor>& inputs, const Attrs& attrs) {
  try {
    call_op(op, inputs, attrs);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Dispatch, AttributesMustRepeatWhatTheListsOfInputsAre) {
  const Tensor f(1.f), i(2);
  EXPECT_THAT(error_of("IdentityN", {f}, {{"T", Types{DType::float32, DType::int32}}}),
              HasSubstr("[IdentityN] input has the dtypes [float32], attribute T says [float32, int32]"));
  EXPECT_THAT(error_of("IdentityN", {f, i}, {{"T", Types{DType::int32, DType::float32}}}),
              HasSubstr("attribute T says"));
  EXPECT_THAT(error_of("ShapeN", {f, f}, {{"N", int64_t{3}}}),
              HasSubstr("[ShapeN] input has 2 tensors, attribute N says 3"));
  EXPECT_THAT(error_of("Assert", {Tensor(true), f}, {{"T", Types{}}}),
              HasSubstr("Length for attr 'T' of 0 must be at least minimum 1"));
  EXPECT_EQ(error_of("ShapeN", {f, f}, {{"N", int64_t{2}}}), "no error");
}

TEST(Dispatch, NumbersOfOutputsThatCannotBeAreErrors) {
  const Tensor two{1.f, 2.f};
  for (const int64_t n : {int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_THAT(error_of("Unpack", {two}, {{"num", n}}), AnyOf(HasSubstr("attr 'num'"), HasSubstr("attribute num")))
        << n;
    EXPECT_THAT(error_of("Split", {Tensor(0), two}, {{"num_split", n}}), HasSubstr("num_split")) << n;
    EXPECT_THAT(error_of("SplitV", {two, Tensor{1, 1}, Tensor(0)}, {{"num_split", n}}), HasSubstr("num_split")) << n;
  }
  EXPECT_THROW(split(two, -1), Error);
  EXPECT_THROW(unstack(two, 0, int64_t{1} << 40), Error);
}

}  // namespace
}  // namespace runnel
