// Errors name the line of the program that made the mistake, not one of the library.
#include "tests/support/caller_lines.h"

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::message_of;

TEST(CallerLines, Indices) {
  const Tensor x{1.f, 2.f};
  EXPECT_NAMES_THIS_LINE(x[2]);
  EXPECT_NAMES_THIS_LINE(x(2));
  EXPECT_NAMES_THIS_LINE(x(0, 1));
  EXPECT_NAMES_THIS_LINE(x[constant(3)]);
  EXPECT_NAMES_THIS_LINE(x(slice(0, 1, 0)));
  EXPECT_NAMES_THIS_LINE(function([](Tensor y) { return y[5]; })(x));
}

TEST(CallerLines, Elements) {
  const Tensor x{1.f, 2.f};
  EXPECT_NAMES_THIS_LINE(x.item<float>());
  EXPECT_NAMES_THIS_LINE(x[0].item<int32_t>());
  EXPECT_NAMES_THIS_LINE(x[0].item<std::string>());
  EXPECT_NAMES_THIS_LINE(x.to_vector<double>());
  EXPECT_NAMES_THIS_LINE(x.host<int64_t>());
  EXPECT_NAMES_THIS_LINE(Tensor().item<float>());
  EXPECT_NAMES_THIS_LINE(function([](Tensor y) { return constant(y.item<float>()); })(Tensor(1.f)));
}

TEST(CallerLines, Shapes) {
  const Tensor x{1.f, 2.f};
  EXPECT_NAMES_THIS_LINE(zeros({-1}));
  EXPECT_NAMES_THIS_LINE(zeros({2, -1}, DType::string));
  EXPECT_NAMES_THIS_LINE(zeros(Tensor{-1}));
  EXPECT_NAMES_THIS_LINE(ones({-1}));
  EXPECT_NAMES_THIS_LINE(ones({2}, DType::string));
  EXPECT_NAMES_THIS_LINE(fill({-1}, 2.f));
  EXPECT_NAMES_THIS_LINE(eye(-1));
  EXPECT_NAMES_THIS_LINE(constant(2.5, DType::int32));
  EXPECT_NAMES_THIS_LINE(constant(x, DType::int32));
  EXPECT_NAMES_THIS_LINE(constant({1, 2, 3}, DType::int32, {2, 2}));
  EXPECT_NAMES_THIS_LINE(reshape(x, {3}));
  EXPECT_NAMES_THIS_LINE(broadcast_to(x, {3}));
  EXPECT_NAMES_THIS_LINE(zeros_like(Tensor()));
  EXPECT_NAMES_THIS_LINE(range(0, 5, 0));
  EXPECT_NAMES_THIS_LINE(linspace(0.f, 1.f, 0));
  EXPECT_NAMES_THIS_LINE(one_hot(Tensor{1}, -1));
  EXPECT_NAMES_THIS_LINE(slice(x, {1}, {2}));
  EXPECT_NAMES_THIS_LINE(strided_slice(x, {0}, {2}, {0}));
  EXPECT_NAMES_THIS_LINE(expand_dims(x, 5));
  EXPECT_NAMES_THIS_LINE(squeeze(x, {0}));
  EXPECT_NAMES_THIS_LINE(transpose(x, {1, 0}));
  EXPECT_NAMES_THIS_LINE(tile(x, {1, 2}));
  EXPECT_NAMES_THIS_LINE(stack({x, Tensor{1.f}}));
  EXPECT_NAMES_THIS_LINE(concat({x, Tensor{{1.f}}}, 0));
  EXPECT_NAMES_THIS_LINE(split(x, 3));
  EXPECT_NAMES_THIS_LINE(split(x, Tensor{{1, 1}}));
  EXPECT_NAMES_THIS_LINE(stack({}));
}

TEST(CallerLines, Random) {
  EXPECT_NAMES_THIS_LINE(random::normal({-1}));
  EXPECT_NAMES_THIS_LINE(random::uniform({-2}));
  EXPECT_NAMES_THIS_LINE(random::truncated_normal({-2}));
  EXPECT_NAMES_THIS_LINE(random::stateless_uniform({-2}, {1, 2}));
  EXPECT_NAMES_THIS_LINE(random::stateless_normal({2}, {1}));
}

TEST(CallerLines, MemoryThatIsNotThere) {
  test::expect_error(
      [] {
        zeros({int64_t{1} << 45, 100});
      },
      Code::resource_exhausted, "no memory for a float32 tensor of shape [35184372088832,100]");
  EXPECT_NAMES_THIS_LINE(zeros({int64_t{1} << 45, 100}));
  EXPECT_THAT(message_of([] { zeros({int64_t{1} << 45, 100}); }), testing::HasSubstr("[Fill]"));
  EXPECT_THAT(message_of([] { zeros({int64_t{1} << 43}); }), testing::HasSubstr("(35184372088832 bytes)"));
  EXPECT_THAT(message_of([] { zeros({int64_t{1} << 62, 100}); }), testing::HasSubstr("too many elements"));
}

}  // namespace
}  // namespace runnel
