// Numbers at the ends of their ranges, and texts without a byte: results are TensorFlow's, and nothing is undefined.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

constexpr int32_t kSmallest = std::numeric_limits<int32_t>::min(), kLargest = std::numeric_limits<int32_t>::max();

int32_t scattered(const char* op, int32_t value, int32_t update) {
  const Variable v(Tensor{value});
  call_op(op, {v.handle(), Tensor{0}, Tensor{update}}, {});
  return v.value().to_vector<int32_t>()[0];
}

TEST(ExtremeValues, ScatteredIntegersWrapAround) {
  EXPECT_EQ(scattered("ResourceScatterAdd", kLargest, 1), kSmallest);
  EXPECT_EQ(scattered("ResourceScatterSub", 3, kSmallest), kSmallest + 3);
  EXPECT_EQ(scattered("ResourceScatterMul", kLargest, 2), -2);
  EXPECT_EQ(scattered("ResourceScatterDiv", kSmallest, -1), kSmallest);
  EXPECT_EQ(scattered("ResourceScatterDiv", 7, -1), -7);
}

TEST(ExtremeValues, AsMuchOfATensorAsThereIs) {
  const Tensor shown{1, 2, 3};
  const int64_t all = std::numeric_limits<int64_t>::max();
  test::expect_error([&] { assert_(Tensor(false), {shown}, all); }, Code::invalid_argument, "[1 2 3]");
  test::expect_error([&] { assert_(Tensor(false), {shown}, 1); }, Code::invalid_argument, "[1 ... 3]");
  test::expect_error([&] { assert_(Tensor(false), {Tensor{1, 2}}, 1); }, Code::invalid_argument, "[1 2]");
}

TEST(ExtremeValues, NoBytesDecodeToNoNumbers) {
  EXPECT_EQ(io::decode_raw(Tensor(std::string()), DType::int16, false).shape(), Shape{0});
  EXPECT_EQ(io::decode_raw(Tensor(std::string("\x01\x02")), DType::int16, false).to_vector<int16_t>()[0], 0x102);
}

TEST(ExtremeValues, PixelsFromFarAwayComeFromInside) {
  const Tensor image = reshape(range(4.f), {1, 2, 2, 1});
  for (const char* mode : {"REFLECT", "WRAP", "NEAREST"}) {
    const Tensor far{{1.f, 0.f, 1e38f, 0.f, 1.f, -1e38f, 0.f, 0.f}};
    const Tensor got = call_op("ImageProjectiveTransformV3", {image, far, Tensor{2, 2}, Tensor(0.f)},
                               {{"interpolation", std::string("NEAREST")}, {"fill_mode", std::string(mode)}})[0];
    for (const float pixel : got.to_vector<float>()) EXPECT_TRUE(pixel >= 0 && pixel <= 3) << mode << ' ' << pixel;
  }
}

}  // namespace
}  // namespace runnel
