// What image:: composes of ops: values worked out by hand or by plain loops, eagerly and in functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using namespace runnel::test;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

Tensor counted(const Shape& shape) { return reshape(cast(range(shape.num_elements()), float32), shape); }
Tensor noise(const Shape& shape, int seed = 1) { return random::stateless_uniform(shape, {seed, 2}); }

void expect_images_close(const Tensor& a, const Tensor& b, float tolerance = 1e-5f) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.dtype(), b.dtype());
  EXPECT_THAT(cast(a, float32).to_vector<float>(),
              Pointwise(FloatNear(tolerance), cast(b, float32).to_vector<float>()));
}

// f on x, eagerly; and the same in a function that knows the rank of x alone.
Tensor both(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const Tensor eager = f(x);
  auto traced = function([&](const Tensor& t) { return f(t); },
                         {.input_signature = {TensorSpec{PartialShape::unknown_dims(x.rank()), x.dtype()}}});
  expect_images_close(traced(x), eager, 0);
  return eager;
}

TEST(ImageColor, AConstantDeltaOfHueIsCheckedInFunctionsToo) {
  const Tensor x = noise({2, 3, 3});
  const Tensor delta(0.25f);
  expect_images_close(both([&](const Tensor& t) { return image::adjust_hue(t, delta); }, x),
                      image::adjust_hue(x, 0.25));
  auto wrong = function([](const Tensor& t) { return image::adjust_hue(t, Tensor(1.5f)); });
  expect_error([&] { wrong(x); }, Code::invalid_argument, "delta must be in [-1, 1]");
}

TEST(ImageSize, Resize) {
  const Tensor x = counted({4, 6, 3});
  EXPECT_EQ(both([](const Tensor& t) { return image::resize(t, {2, 3}); }, x).shape(), (Shape{2, 3, 3}));
  // Halving with half-pixel centres is the mean of four.
  const Tensor half = image::resize(x, {2, 3});
  EXPECT_FLOAT_EQ(half(0, 0, 0).item<float>(), (0 + 3 + 18 + 21) / 4.f);
  expect_images_close(image::resize(x, {2, 3}, {.method = "area"}), half);
  EXPECT_THAT(image::resize(cast(x, uint8), {2, 2}, {.method = "nearest"})(0, slice(0, 2), 0).to_vector<uint8_t>(),
              ElementsAre(18 + 3, 18 + 12));
  EXPECT_EQ(image::resize(cast(x, uint8), {2, 2}, {.method = "nearest"}).dtype(), uint8);
  EXPECT_EQ(image::resize(cast(x, uint8), {4, 6}).dtype(), float32);
  EXPECT_EQ(image::resize(expand_dims(x, 0), {8, 9}).shape(), (Shape{1, 8, 9, 3}));
  for (const char* method : {"bilinear", "bicubic", "lanczos3", "lanczos5", "gaussian", "mitchellcubic", "area"}) {
    const Tensor flat = ones({7, 5, 2}) * 9;
    for (bool antialias : {false, true}) {
      expect_images_close(both(
                              [&](const Tensor& t) {
                                return image::resize(t, {3, 11}, {.method = method, .antialias = antialias});
                              },
                              flat),
                          ones({3, 11, 2}) * 9, 1e-4f);
    }
  }
  for (const char* method : {"bilinear", "bicubic", "area"}) {
    expect_images_close(image::resize(x, {3, 5}, {.method = method, .scale = 0.5}),
                        image::resize(x, {3, 5}, {.method = method}) * 0.5);
  }
  expect_images_close(image::resize(x, {4, 6}, {.scale = 0.5}), x * 0.5);
  expect_error(
      [&] {
        image::resize(cast(x, uint8), {2, 3}, {.method = "nearest", .scale = 2});
      },
      Code::invalid_argument, "keeps the dtype");
  expect_error([&] { image::resize(x, {2, 3}, {.method = "linear"}); }, Code::invalid_argument, "method must be");
  expect_error([&] { image::resize(x, {2}); }, Code::invalid_argument, "size must be {height, width}");
  expect_error([&] { image::resize(Tensor{1.f}, {2, 2}); }, Code::invalid_argument, "[image::resize] images are");
}

TEST(ImageSize, ResizeKeepsTheShapeWhenAsked) {
  const auto fit = [](const Tensor& t) { return image::resize(t, {50, 50}, {.preserve_aspect_ratio = true}); };
  EXPECT_EQ(both(fit, counted({100, 200, 1})).shape(), (Shape{25, 50, 1}));
  EXPECT_EQ(both(fit, counted({30, 10, 1})).shape(), (Shape{50, 17, 1}));
  const auto pad = [](const Tensor& t) { return image::resize_with_pad(t, 6, 6); };
  const Tensor padded = both(pad, ones({2, 4, 1}));
  EXPECT_EQ(padded.shape(), (Shape{6, 6, 1}));
  EXPECT_THAT(padded(all, 0, 0).to_vector<float>(), ElementsAre(0, 1, 1, 1, 0, 0));
}

TEST(ImageSize, CropsAndPads) {
  const Tensor x = counted({4, 5, 1});
  const Tensor crop = both([](const Tensor& t) { return image::crop_to_bounding_box(t, 1, 2, 2, 2); }, x);
  EXPECT_THAT(crop.to_vector<float>(), ElementsAre(7, 8, 12, 13));
  const Tensor pad =
      both([](const Tensor& t) { return image::pad_to_bounding_box(t, 1, 0, 3, 3); }, counted({1, 2, 1}) + 1);
  EXPECT_THAT(pad.to_vector<float>(), ElementsAre(0, 0, 0, 1, 2, 0, 0, 0, 0));
  const Tensor center = both([](const Tensor& t) { return image::central_crop(t, 0.5); }, x);
  EXPECT_EQ(center.shape(), (Shape{2, 3, 1}));
  EXPECT_THAT(center.to_vector<float>(), ElementsAre(6, 7, 8, 11, 12, 13));
  const Tensor fit = both([](const Tensor& t) { return image::resize_with_crop_or_pad(t, 2, 7); }, x);
  EXPECT_EQ(fit.shape(), (Shape{2, 7, 1}));
  EXPECT_THAT(fit(0, all, 0).to_vector<float>(), ElementsAre(0, 5, 6, 7, 8, 9, 0));
  EXPECT_EQ(image::resize_with_crop_or_pad(expand_dims(x, 0), 9, 2).shape(), (Shape{1, 9, 2, 1}));
  expect_error([&] { image::crop_to_bounding_box(x, 3, 0, 2, 2); }, Code::invalid_argument,
               "2 from 3 does not fit into a height of 4");
  expect_error([&] { image::pad_to_bounding_box(x, 0, -1, 9, 9); }, Code::invalid_argument, "offset_width is negative");
  expect_error([&] { image::central_crop(x, 0); }, Code::invalid_argument, "central_fraction");
  expect_error([&] { image::resize_with_crop_or_pad(x, 0, 4); }, Code::invalid_argument, "positive");
}

TEST(ImageSize, FlipsAndTurns) {
  const Tensor x = counted({2, 3, 1});
  EXPECT_THAT(both([](const Tensor& t) { return image::flip_left_right(t); }, x).to_vector<float>(),
              ElementsAre(2, 1, 0, 5, 4, 3));
  EXPECT_THAT(image::flip_up_down(x).to_vector<float>(), ElementsAre(3, 4, 5, 0, 1, 2));
  EXPECT_THAT(image::transpose(x).to_vector<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(both([](const Tensor& t) { return image::rot90(t); }, x).to_vector<float>(),
              ElementsAre(2, 5, 1, 4, 0, 3));
  EXPECT_EQ(image::rot90(x).shape(), (Shape{3, 2, 1}));
  expect_images_close(image::rot90(x, 2), image::rot90(image::rot90(x)));
  expect_images_close(image::rot90(x, 3), image::rot90(image::rot90(x, 2)));
  expect_images_close(image::rot90(x, -1), image::rot90(x, 3));
  expect_images_close(image::rot90(x, 4), x);
  expect_images_close(image::rot90(expand_dims(x, 0))[0], image::rot90(x));
}

TEST(ImageValues, ConvertDtype) {
  EXPECT_THAT(image::convert_image_dtype(Tensor{uint8_t{0}, uint8_t{51}, uint8_t{255}}, float32).to_vector<float>(),
              ElementsAre(0, FloatNear(.2f, 1e-6f), 1));
  EXPECT_THAT(image::convert_image_dtype(Tensor{0.f, .5f, 1.f}, uint8).to_vector<uint8_t>(), ElementsAre(0, 127, 255));
  EXPECT_THAT(image::convert_image_dtype(Tensor{-1.f, 2.f}, uint8, true).to_vector<uint8_t>(), ElementsAre(0, 255));
  EXPECT_THAT(image::convert_image_dtype(Tensor{uint8_t{1}, uint8_t{255}}, uint16).to_vector<uint16_t>(),
              ElementsAre(256, 65280));
  EXPECT_THAT(image::convert_image_dtype(Tensor{uint16_t{256}, uint16_t{65535}}, uint8).to_vector<uint8_t>(),
              ElementsAre(1, 255));
  EXPECT_EQ(image::convert_image_dtype(Tensor{1.f}, float64).dtype(), float64);
  expect_error([] { image::convert_image_dtype(Tensor{true}, float32); }, Code::invalid_argument, "from bool");
  // Every byte comes back.
  const Tensor all_bytes = cast(range(256), uint8);
  EXPECT_EQ(image::convert_image_dtype(image::convert_image_dtype(all_bytes, float32), uint8).to_vector<uint8_t>(),
            all_bytes.to_vector<uint8_t>());
}

TEST(ImageValues, Adjustments) {
  EXPECT_THAT(image::adjust_brightness(Tensor{{{uint8_t{0}, uint8_t{100}, uint8_t{250}}}}, 0.1).to_vector<uint8_t>(),
              ElementsAre(25, 125, 255));
  EXPECT_THAT(image::adjust_brightness(Tensor{{{0.5f}}}, 0.25).to_vector<float>(), ElementsAre(0.75f));
  EXPECT_THAT(image::adjust_gamma(Tensor{{{0.5f}}}, 2, 3).to_vector<float>(), ElementsAre(FloatNear(0.75f, 1e-6f)));
  EXPECT_THAT(image::adjust_contrast(Tensor{{{1.f}, {3.f}}}, 2).to_vector<float>(), ElementsAre(0, 4));
  EXPECT_THAT(image::adjust_contrast(Tensor{{{uint8_t{100}}, {uint8_t{200}}}}, 3).to_vector<uint8_t>(),
              ElementsAre(0, 255));
  const Tensor x = noise({5, 4, 3});
  expect_images_close(image::hsv_to_rgb(image::rgb_to_hsv(x)), x);
  expect_images_close(image::adjust_hue(image::adjust_hue(x, 0.3), -0.3), x);
  expect_images_close(image::adjust_hue(x, 1), x);
  expect_images_close(image::adjust_saturation(x, 0), broadcast_to(reduce_max(x, -1, true), x.shape()));
  expect_images_close(image::adjust_saturation(x, 1), x);
  EXPECT_EQ(image::adjust_hue(image::convert_image_dtype(x, uint8), .1).dtype(), uint8);
  expect_error([&] { image::adjust_hue(x, 1.5); }, Code::invalid_argument, "delta must be in [-1, 1]");
  expect_error([&] { image::adjust_gamma(x, -1); }, Code::invalid_argument, "gamma");
}

TEST(ImageValues, Grey) {
  const Tensor x = Tensor{{{1.f, 0.f, 0.f}, {0.f, 1.f, 0.f}, {0.f, 0.f, 1.f}}};
  expect_images_close(image::rgb_to_grayscale(x), Tensor{{{.2989f}, {.5870f}, {.1140f}}});
  EXPECT_THAT(image::rgb_to_grayscale(Tensor{{{uint8_t{200}, uint8_t{100}, uint8_t{50}}}}).to_vector<uint8_t>(),
              ElementsAre(124));
  EXPECT_EQ(image::grayscale_to_rgb(ones({2, 2, 1})).shape(), (Shape{2, 2, 3}));
  expect_error([] { image::grayscale_to_rgb(ones({2, 2, 3})); }, Code::invalid_argument, "must be 1");
  expect_error([] { image::rgb_to_grayscale(ones({2, 2, 1})); }, Code::invalid_argument, "3 colours");
}

TEST(ImageValues, Standardization) {
  const Tensor x = noise({2, 6, 5, 3});
  const Tensor y = both([](const Tensor& t) { return image::per_image_standardization(t); }, x);
  expect_images_close(reduce_mean(y, {1, 2, 3}), zeros({2}), 1e-5f);
  expect_images_close(math::reduce_variance(y, {1, 2, 3}), ones({2}), 1e-4f);
  expect_images_close(image::per_image_standardization(ones({4, 4, 1})), zeros({4, 4, 1}));
  EXPECT_EQ(image::per_image_standardization(cast(x * 255, uint8)).dtype(), float32);
}

TEST(ImageRandom, StatelessAreFixedBySeed) {
  const Tensor x = noise({6, 5, 3});
  const auto check = [&](const char* name, auto f) {
    SCOPED_TRACE(name);
    bool differs = false;
    const Tensor first = f(x, Tensor{1, 2});
    expect_images_close(f(x, Tensor{1, 2}), first, 0);
    for (int s = 3; s < 20; ++s)
      differs = differs || f(x, Tensor{s, 2}).template to_vector<float>() != first.to_vector<float>();
    EXPECT_TRUE(differs);
  };
  check("crop", [](const Tensor& t, const Tensor& s) { return image::stateless_random_crop(t, {3, 3, 3}, s); });
  check("flip lr", [](const Tensor& t, const Tensor& s) { return image::stateless_random_flip_left_right(t, s); });
  check("flip ud", [](const Tensor& t, const Tensor& s) { return image::stateless_random_flip_up_down(t, s); });
  check("brightness", [](const Tensor& t, const Tensor& s) { return image::stateless_random_brightness(t, .2, s); });
  check("contrast", [](const Tensor& t, const Tensor& s) { return image::stateless_random_contrast(t, .2, .9, s); });
  check("hue", [](const Tensor& t, const Tensor& s) { return image::stateless_random_hue(t, .3, s); });
  check("saturation", [](const Tensor& t, const Tensor& s) { return image::stateless_random_saturation(t, .2, 2, s); });
  check("quality", [](const Tensor& t, const Tensor& s) { return image::stateless_random_jpeg_quality(t, 5, 95, s); });
}

TEST(ImageRandom, DrawsWithinBounds) {
  random::set_seed(5);
  const Tensor x = counted({8, 9, 1});
  int flips = 0;
  for (int i = 0; i < 200; ++i) {
    const Tensor c = image::random_crop(x, {3, 4, 1});
    ASSERT_EQ(c.shape(), (Shape{3, 4, 1}));
    const auto first = static_cast<int64_t>(c(0, 0, 0).item<float>());
    ASSERT_LE(first / 9, 5);
    ASSERT_LE(first % 9, 5);
    ASSERT_EQ(c(2, 3, 0).item<float>(), static_cast<float>(first + 2 * 9 + 3));
    const Tensor f = image::random_flip_left_right(x);
    const bool flipped = f(0, 0, 0).item<float>() == 8;
    expect_images_close(f, flipped ? image::flip_left_right(x) : x, 0);
    flips += flipped ? 1 : 0;
    const float delta = image::random_brightness(zeros({1, 1, 1}), 0.3).to_vector<float>()[0];
    ASSERT_LE(std::abs(delta), 0.3f);
  }
  EXPECT_GT(flips, 60);
  EXPECT_LT(flips, 140);
  const Tensor batch = image::random_flip_up_down(tile(expand_dims(x, 0), {64, 1, 1, 1}));
  const auto tops = batch(all, 0, 0, 0).to_vector<float>();
  EXPECT_GT(std::count(tops.begin(), tops.end(), 0.f), 10);
  EXPECT_GT(std::count(tops.begin(), tops.end(), 63.f), 10);
  for (const Tensor& y :
       {image::random_contrast(x, .5, 2), image::random_hue(noise({2, 2, 3}), .1),
        image::random_saturation(noise({2, 2, 3}), 0, 1), image::random_jpeg_quality(noise({9, 9, 3}), 1, 100)}) {
    EXPECT_TRUE(static_cast<bool>(reduce_all(is_finite(y))));
  }
  expect_error([&] { image::random_crop(x, {9, 9, 1}); }, Code::invalid_argument, "does not fit into [8,9,1]");
  expect_error([&] { image::random_brightness(x, -1); }, Code::invalid_argument, "negative");
  expect_error([&] { image::random_contrast(x, 2, 1); }, Code::invalid_argument, "lower < upper");
  expect_error([&] { image::random_hue(noise({2, 2, 3}), .6); }, Code::invalid_argument, "[0, 0.5]");
  expect_error([&] { image::random_jpeg_quality(x, 50, 50); }, Code::invalid_argument, "min_quality < max_quality");
}

TEST(ImageRandom, InAFunction) {
  auto f = function(
      [](const Tensor& t) {
        return image::random_crop(image::random_flip_left_right(image::random_contrast(t, .5, 1.5)), {4, 4, 3});
      },
      {.input_signature = {TensorSpec{PartialShape{kUnknownDim, kUnknownDim, 3}, float32}}});
  const Tensor x = noise({9, 7, 3});
  const Tensor a = f(x), b = f(x);
  EXPECT_EQ(a.shape(), (Shape{4, 4, 3}));
  EXPECT_NE(a.to_vector<float>(), b.to_vector<float>());
}

TEST(ImageMeasures, TotalVariation) {
  const Tensor x = Tensor{{{1.f}, {3.f}}, {{2.f}, {7.f}}};
  EXPECT_FLOAT_EQ(image::total_variation(x).item<float>(), 1 + 4 + 2 + 5);
  EXPECT_THAT(both([](const Tensor& t) { return image::total_variation(t); }, stack({x, x * 2})).to_vector<float>(),
              ElementsAre(12, 24));
}

TEST(ImageMeasures, Psnr) {
  const Tensor a = zeros({2, 2, 3}), b = ones({2, 2, 3}) * 0.1;
  EXPECT_NEAR(image::psnr(a, b, 1).item<float>(), 20, 1e-4);
  const Tensor c = cast(ones({2, 2, 3}) * 25, uint8);
  EXPECT_NEAR(image::psnr(cast(a, uint8), c, 255).item<float>(), 20 * std::log10(255 / 25.0), 1e-4);
  EXPECT_NEAR(image::psnr(cast(a, uint8), c, 255.0).item<float>(), 20 * std::log10(255 / 25.0), 1e-4);
  expect_error([&] { image::psnr(a, c, 1); }, Code::invalid_argument, "float32 and uint8");
}

TEST(ImageMeasures, SsimOfAPlainLoop) {
  const Tensor a = noise({16, 14, 1}, 1), b = clip_by_value(a + noise({16, 14, 1}, 2) * .2, 0, 1);
  EXPECT_NEAR(image::ssim(a, a, 1).item<float>(), 1, 1e-6);
  const auto x = a.to_vector<float>(), y = b.to_vector<float>();
  double total = 0;
  int windows = 0;
  for (int r = 0; r + 11 <= 16; ++r) {
    for (int s = 0; s + 11 <= 14; ++s, ++windows) {
      double w = 0, mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
      for (int i = 0; i < 11; ++i) {
        for (int j = 0; j < 11; ++j) {
          const double g = std::exp(-((i - 5) * (i - 5) + (j - 5) * (j - 5)) / (2 * 1.5 * 1.5));
          const double p = static_cast<double>(x[static_cast<size_t>((r + i) * 14 + s + j)]),
                       q = static_cast<double>(y[static_cast<size_t>((r + i) * 14 + s + j)]);
          w += g, mx += g * p, my += g * q, xx += g * p * p, yy += g * q * q, xy += g * p * q;
        }
      }
      mx /= w, my /= w, xx /= w, yy /= w, xy /= w;
      const double c1 = 1e-4, c2 = 9e-4;
      total += (2 * mx * my + c1) / (mx * mx + my * my + c1) * (2 * (xy - mx * my) + c2) /
               (xx - mx * mx + yy - my * my + c2);
    }
  }
  EXPECT_NEAR(static_cast<double>(image::ssim(a, b, 1).item<float>()), total / windows, 1e-4);
  const Tensor batch = image::ssim(stack({a, a}), stack({a, b}), 1);
  EXPECT_EQ(batch.shape(), Shape{2});
  EXPECT_NEAR(batch[0].item<float>(), 1, 1e-6);
  expect_error([] { image::ssim(zeros({8, 20, 1}), zeros({8, 20, 1}), 1); }, Code::invalid_argument, "filter of 11");
}

TEST(ImageMeasures, SsimOverScales) {
  const Tensor a = noise({180, 190, 3}, 1), b = a + noise({180, 190, 3}, 2) * .3;
  EXPECT_NEAR(image::ssim_multiscale(a, a, 1).item<float>(), 1, 1e-5);
  const float near = image::ssim_multiscale(a, a + noise({180, 190, 3}, 2) * .1, 1).item<float>();
  const float far = image::ssim_multiscale(a, b, 1).item<float>();
  EXPECT_LT(far, near);
  EXPECT_LT(near, 1);
  // One scale is plain similarity.
  EXPECT_NEAR(image::ssim_multiscale(a, b, 1, {1.0}).item<float>(), image::ssim(a, b, 1).item<float>(), 1e-5);
}

TEST(CropAndResize, GradientByBoxes) {
  const Tensor x = noise({2, 7, 6, 2});
  const Tensor index = Tensor{1, 0}, weights = noise({2, 3, 4, 2}, 9);
  const Tensor at = Tensor{{.12f, .22f, .83f, .91f}, {.07f, .13f, .71f, .64f}};
  const auto loss = [&](const Tensor& boxes) {
    return reduce_sum(image::crop_and_resize(x, boxes, index, {3, 4}) * weights);
  };
  GradientTape tape;
  tape.watch(at);
  const Tensor analytic = tape.gradient(loss(at), at).value();
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      auto values = at.to_vector<float>();
      const float h = 1e-3f;
      values[static_cast<size_t>(4 * i + j)] += h;
      const float up = loss(Tensor::of<float>(values, Shape{2, 4})).item<float>();
      values[static_cast<size_t>(4 * i + j)] -= 2 * h;
      const float down = loss(Tensor::of<float>(values, Shape{2, 4})).item<float>();
      EXPECT_NEAR(analytic(i, j).item<float>(), (up - down) / (2 * h), 0.05) << i << "," << j;
    }
  }
}

// Positions are float32: in exact numbers the middle one of 41 pixels is the second of two, not the first.
TEST(ImageResize, NearestByPositionsInFloat32) {
  const Tensor two = Tensor::of<float>({1, 2}, Shape{1, 1, 2, 1});
  const Tensor y = image::resize(two, {1, 41}, {.method = "nearest"});
  EXPECT_EQ(y(0, 0, 20, 0).item<float>(), 1);
  EXPECT_EQ(y(0, 0, 21, 0).item<float>(), 2);
}

TEST(ImageResize, GradientReachesTheImage) {
  const Tensor x = noise({5, 4, 3});
  for (const char* method : {"bilinear", "bicubic", "nearest", "lanczos3"}) {
    GradientTape tape;
    tape.watch(x);
    const Tensor dx = tape.gradient(reduce_sum(image::resize(x, {10, 8}, {.method = method})), x).value();
    EXPECT_EQ(dx.shape(), x.shape());
    EXPECT_NEAR(reduce_sum(dx).item<float>(), 10 * 8 * 3, 1e-3) << method;  // the weights of each pixel sum to one
  }
}

}  // namespace
}  // namespace runnel
