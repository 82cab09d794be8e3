// Decoding and encoding as users call it, eagerly and in functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/image_files.h"

namespace runnel {
namespace {

using namespace runnel::test;

Tensor picture(int64_t h, int64_t w, int64_t c) {
  std::vector<uint8_t> v;
  for (int64_t i = 0; i < h * w * c; ++i)
    v.push_back(static_cast<uint8_t>(i / c % w * 5 + i / (c * w) * 3 + i % c * 20));
  return Tensor::of<uint8_t>(v, Shape{h, w, c});
}

TEST(ImageDecode, PngRoundTrip) {
  for (int64_t c : {1, 2, 3, 4}) {
    const Tensor x = picture(12, 17, c);
    EXPECT_EQ(image::decode_png(image::encode_png(x)).to_vector<uint8_t>(), x.to_vector<uint8_t>());
  }
  const Tensor batch = stack({picture(3, 4, 3), picture(3, 4, 3)});
  const Tensor files = image::encode_png(batch);
  EXPECT_EQ(files.shape(), Shape{2});
  EXPECT_EQ(image::decode_png(files[1]).to_vector<uint8_t>(), picture(3, 4, 3).to_vector<uint8_t>());
  const Tensor deep = cast(picture(5, 6, 1), uint16) * 200;
  EXPECT_EQ(image::decode_png(image::encode_png(deep), 0, uint16).to_vector<uint16_t>(), deep.to_vector<uint16_t>());
}

TEST(ImageDecode, JpegInAFunction) {
  auto f = function([](const Tensor& contents) {
    const Tensor x = image::decode_jpeg(contents, {.channels = 3});
    EXPECT_EQ(x.partial_shape().str(), "[?,?,3]");
    return image::resize(x, {8, 6});
  });
  const Tensor file = image::encode_jpeg(picture(32, 40, 3));
  const Tensor traced = f(file);
  EXPECT_EQ(traced.shape(), (Shape{8, 6, 3}));
  EXPECT_EQ(traced.to_vector<float>(), image::resize(image::decode_jpeg(file), {8, 6}).to_vector<float>());
  EXPECT_EQ(f(image::encode_jpeg(picture(16, 20, 3))).shape(), (Shape{8, 6, 3}));
}

TEST(ImageDecode, AtLeast) {
  const Tensor file = image::encode_jpeg(picture(100, 120, 3));
  EXPECT_EQ(image::decode_jpeg(file, {.at_least = {25, 30}}).shape(), (Shape{25, 30, 3}));
  EXPECT_EQ(image::decode_jpeg(file, {.at_least = {26, 30}}).shape(), (Shape{50, 60, 3}));
  EXPECT_EQ(image::decode_jpeg(file, {.ratio = 8}).shape(), (Shape{13, 15, 3}));
}

TEST(ImageDecode, AnyFormatByContent) {
  const Tensor x = picture(6, 8, 3);
  EXPECT_EQ(image::decode_image(image::encode_png(x)).to_vector<uint8_t>(), x.to_vector<uint8_t>());
  EXPECT_EQ(image::decode_image(image::encode_jpeg(x)).shape(), (Shape{6, 8, 3}));
  const std::string gif =
      gif_file(2, 1, std::string("\0\0\0\xff\0\0\0\xff\0\0\0\xff", 12), {{0, 0, 2, 1, {1, 2}}, {0, 0, 2, 1, {3, 3}}});
  const Tensor frames = image::decode_image(Tensor(Bytes(gif)));
  EXPECT_EQ(frames.shape(), (Shape{2, 1, 2, 3}));
  EXPECT_THAT(image::decode_image(Tensor(Bytes(gif)), {.expand_animations = false}).to_vector<uint8_t>(),
              ::testing::ElementsAre(255, 0, 0, 0, 255, 0));
  EXPECT_THAT(
      image::decode_image(Tensor(Bytes(gif)), {.dtype = float32, .expand_animations = false}).to_vector<float>(),
      ::testing::ElementsAre(1, 0, 0, 0, 1, 0));
  expect_error([&] { image::decode_png(Tensor(Bytes(gif))); }, Code::invalid_argument, "an animation of 2 frames");
  expect_error([&] { image::decode_bmp(image::encode_png(x)); }, Code::invalid_argument, "the contents are PNG");
  expect_error([&] { image::decode_jpeg(Tensor("hello")); }, Code::invalid_argument, "68 65 6c 6c 6f");
  EXPECT_TRUE(image::is_jpeg(image::encode_jpeg(x)));
  EXPECT_FALSE(image::is_jpeg(image::encode_png(x)));
}

TEST(ImageDecode, Photographs) {
  RUNNEL_REQUIRE_FIXTURES();
  int count = 0;
  for (const auto& e : std::filesystem::directory_iterator(fixtures() / "cats_vs_dogs" / "valid" / "dogs")) {
    const Tensor file = Tensor(Bytes(read_bytes(e.path())));
    const Tensor x = image::decode_jpeg(file);
    EXPECT_EQ(image::extract_jpeg_shape(file).to_vector<int>(),
              (std::vector{static_cast<int>(x.dim(0)), static_cast<int>(x.dim(1)), static_cast<int>(x.dim(2))}))
        << e.path();
    const Tensor part = image::decode_and_crop_jpeg(file, {10, 20, 30, 40});
    EXPECT_EQ(part.to_vector<uint8_t>(), image::crop_to_bounding_box(x, 10, 20, 30, 40).to_vector<uint8_t>())
        << e.path();
    ++count;
  }
  EXPECT_GT(count, 50);
}

TEST(ImageDecode, JpegQuality) {
  const Tensor x = picture(40, 40, 3);
  const Tensor low = image::adjust_jpeg_quality(x, 5), high = image::adjust_jpeg_quality(x, 98);
  EXPECT_EQ(low.dtype(), uint8);
  const auto off = [&](const Tensor& y) { return reduce_mean(abs(cast(x, float32) - cast(y, float32))).item<float>(); };
  EXPECT_LT(off(high), off(low));
  EXPECT_EQ(image::adjust_jpeg_quality(image::convert_image_dtype(x, float32), 50).dtype(), float32);
}

}  // namespace
}  // namespace runnel
