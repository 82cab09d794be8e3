// What makes a function trace again, and what it says about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runnel/runnel.h"

namespace runnel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Retracing, SaysWhichArgumentWasWhatAndIsWhatNow) {
  auto f = function(
      [](const Tensor& x, double rate, const std::string& mode) { return mode == "twice" ? x * rate * 2 : x * rate; });
  f(Tensor(1.f), 0.1, "once");
  EXPECT_THAT(f.why_retraced(), IsEmpty());
  f(Tensor(1.f), 0.2, "once");
  f(Tensor(1.f), 0.2, "twice");
  f(Tensor{1.f, 2.f}, 0.2, "twice");
  f(cast(Tensor(1.f), float64), 0.2, "twice");
  const std::vector<std::string> why = f.why_retraced();
  ASSERT_EQ(why.size(), 4U);
  EXPECT_THAT(why[0], AllOf(HasSubstr("argument 1"), HasSubstr("was 0.1"), HasSubstr("now 0.2")));
  EXPECT_THAT(why[1], AllOf(HasSubstr("argument 2"), HasSubstr("was \"once\""), HasSubstr("now \"twice\"")));
  EXPECT_THAT(why[2], AllOf(HasSubstr("argument 0"), HasSubstr("was float32[]"), HasSubstr("now float32[2]")));
  EXPECT_THAT(why[3], AllOf(HasSubstr("argument 0"), HasSubstr("was float32[2]"), HasSubstr("now float64[]")));
}

TEST(Retracing, NamesThePartOfAStructure) {
  auto f = function([](const std::map<std::string, std::vector<Tensor>>& all) { return all.at("b")[1] + 1; });
  f(std::map<std::string, std::vector<Tensor>>{{"a", {Tensor(1)}}, {"b", {Tensor(1), Tensor(2)}}});
  f(std::map<std::string, std::vector<Tensor>>{{"a", {Tensor(1)}}, {"b", {Tensor(1), Tensor{2, 3}}}});
  ASSERT_EQ(f.why_retraced().size(), 1U);
  EXPECT_THAT(f.why_retraced()[0],
              AllOf(HasSubstr("argument 0[\"b\"][1]"), HasSubstr("was int32[]"), HasSubstr("now int32[2]")));
}

TEST(Retracing, WarnsOnceAfterFive) {
  auto f = function([](const Tensor& x, int n) { return x + n; }, {.name = "step"});
  const auto printed = [&](int from, int to) {
    testing::internal::CaptureStderr();
    for (int n = from; n < to; ++n) f(Tensor(1), n);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(printed(0, 5), IsEmpty());  // one trace and four more
  EXPECT_THAT(printed(5, 6),
              AllOf(HasSubstr("'step'"), HasSubstr("argument 1: was 4, now 5"), HasSubstr("input_signature")));
  EXPECT_THAT(printed(6, 20), IsEmpty());
}

TEST(Retracing, GeneralisesAfterTwoMissesOnADimension) {
  auto f = function([](const Tensor& x) { return reduce_sum(x, 0); }, {.reduce_retracing = true});
  f(ones({2, 3}));
  EXPECT_EQ(f.num_traces(), 1);
  f(ones({4, 3}));  // the first miss: a trace for this shape
  EXPECT_EQ(f.num_traces(), 2);
  f(ones({2, 3}));
  EXPECT_EQ(f.num_traces(), 2);
  f(ones({5, 3}));  // the second: for any
  EXPECT_EQ(f.num_traces(), 3);
  for (int n = 6; n < 12; ++n)
    EXPECT_EQ(f(ones({n, 3})).to_vector<float>(), std::vector<float>(3, static_cast<float>(n)));
  EXPECT_EQ(f.num_traces(), 3);
  const ConcreteFunction c = f.get_concrete_function(ones({7, 3}));
  EXPECT_EQ(c.inputs().at(0).shape, (PartialShape{kUnknownDim, 3}));
}

TEST(Retracing, TheLeastRecentlyUsedTraceGoes) {
  auto f = function([](const Tensor& x, int n) { return x + n; }, {.max_traces = 2});
  f(Tensor(1), 0);
  f(Tensor(1), 1);
  f(Tensor(1), 0);  // 1 is older now
  f(Tensor(1), 2);
  EXPECT_EQ(f.num_traces(), 3);
  f(Tensor(1), 0);
  EXPECT_EQ(f.num_traces(), 3);
  f(Tensor(1), 1);
  EXPECT_EQ(f.num_traces(), 4);
}

TEST(Retracing, AnInputSignatureNamesWhatDoesNotFit) {
  auto f = function([](const Tensor& x, const Tensor& y) { return x + y; },
                    {.name = "sum", .input_signature = {{{kUnknownDim}, DType::float32}, {{}, DType::float32}}});
  EXPECT_EQ(f(Tensor{1.f, 2.f}, Tensor(1.f)).to_vector<float>(), (std::vector<float>{2, 3}));
  try {
    f(Tensor{1.f}, Tensor{1.f});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("[sum] tensor 1"), HasSubstr("got float32[1]")));
  }
  EXPECT_EQ(f.num_traces(), 1);
}

}  // namespace
}  // namespace runnel
