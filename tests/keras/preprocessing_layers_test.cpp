#include <cmath>

#include "runnel/keras/layers/preprocessing.h"

#include "runnel/keras/layers/random_image_layers.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using test::expect_close;
using test::expect_error;
using test::random_tensor;
using test::values_of;

const CallArgs kTraining{.training = true};

TEST(KerasPreprocessing, Rescaling) {
  const Tensor bytes = cast(Tensor{0, 51, 255}, DType::uint8);
  const Tensor y = Rescaling({.scale = 1 / 127.5, .offset = -1})(bytes);
  EXPECT_EQ(y.dtype(), DType::float32);
  expect_close(y, {-1, -0.6, 1}, {3}, 1e-6);
}

TEST(KerasPreprocessing, Resizing) {
  const Tensor x = reshape(cast(range(16), DType::float32), {1, 4, 4, 1});
  // Halves of the sides, without antialiasing: the middle of four pixels.
  expect_close(Resizing({.height = 2, .width = 2})(x), {2.5, 4.5, 10.5, 12.5}, {1, 2, 2, 1}, 1e-6);
  expect_close(Resizing({.height = 4, .width = 2, .interpolation = "nearest"})(x), {1, 3, 5, 7, 9, 11, 13, 15},
               {1, 4, 2, 1}, 0);
  EXPECT_EQ(Resizing({.height = 3, .width = 5}).compute_output_shape({-1, -1, -1, 3}), (PartialShape{-1, 3, 5, 3}));
  expect_error([&] { Resizing({.height = 3})(x); }, Code::invalid_argument, "[Resizing] height and width");
}

TEST(KerasPreprocessing, ResizingKeepsTheAspectRatio) {
  const Tensor wide = reshape(cast(range(16), DType::float32), {2, 8, 1});  // one image
  Resizing layer({.height = 2, .width = 2, .interpolation = "nearest", .crop_to_aspect_ratio = true});
  expect_close(layer(wide), {3, 4, 11, 12}, {2, 2, 1}, 0);
  expect_close(layer(reshape(wide, {1, 8, 2, 1})), {6, 7, 8, 9}, {1, 2, 2, 1}, 0);
  auto traced = function([&](Tensor t) { return layer(t); },
                         {.input_signature = {{{kUnknownDim, kUnknownDim, kUnknownDim, 1}, DType::float32}}});
  expect_close(traced(reshape(wide, {1, 2, 8, 1})), {3, 4, 11, 12}, {1, 2, 2, 1}, 0);
}

TEST(KerasPreprocessing, NormalizationWithGivenStatistics) {
  const Tensor x{{1.f, 10.f}, {3.f, 30.f}};
  Normalization layer({.mean = {2, 20}, .variance = {4, 100}});
  expect_close(layer(x), {-0.5, -1, 0.5, 1}, {2, 2}, 1e-6);
  EXPECT_TRUE(layer.weights().empty());
  Normalization back({.mean = {2, 20}, .variance = {4, 100}, .invert = true});
  expect_close(back(layer(x)), values_of(x), {2, 2}, 1e-6);
  expect_close(Normalization({.axis = {}, .mean = {1}, .variance = {4}})(x), {0, 4.5, 1, 14.5}, {2, 2}, 1e-6);
  const Config config = layer.get_config();
  EXPECT_EQ(Normalization::from_config(config)->get_config().to_json(), config.to_json());
  EXPECT_TRUE(Normalization().get_config()["mean"].is_null());
  EXPECT_TRUE(Normalization::from_config(Normalization().get_config())->options().mean.empty());
}

TEST(KerasPreprocessing, NormalizationAdapts) {
  const Tensor data = random_tensor({10, 3, 2}, DType::float32, 1, -3, 5);
  const std::vector<double> v = values_of(data);
  std::vector<double> mean(2, 0), variance(2, 0), expected;
  for (size_t i = 0; i < v.size(); ++i) mean[i % 2] += v[i] / 30;
  for (size_t i = 0; i < v.size(); ++i) variance[i % 2] += (v[i] - mean[i % 2]) * (v[i] - mean[i % 2]) / 30;
  for (size_t i = 0; i < v.size(); ++i) expected.push_back((v[i] - mean[i % 2]) / std::sqrt(variance[i % 2]));

  Normalization whole;
  whole.adapt(data);
  expect_close(whole.adapt_mean, mean, {2}, 1e-5);
  expect_close(whole(data), expected, data.shape(), 1e-5);
  EXPECT_EQ(whole.count.value().item<int64_t>(), 30);
  EXPECT_TRUE(whole.trainable_weights().empty());
  EXPECT_NE(whole.find_edge("adapt_mean"), nullptr);

  Normalization pieces;
  pieces.adapt(random_tensor({4, 3, 2}, DType::float32, 8));  // forgotten
  pieces.adapt(data::from_tensor_slices(data).batch(4));
  expect_close(pieces.adapt_variance, variance, {2}, 1e-5);
  expect_close(pieces(data), expected, data.shape(), 1e-5);

  Normalization one({.axis = {}});
  one.adapt(Tensor{{1.f, 2.f}, {3.f, 6.f}});
  expect_close(one.adapt_mean, {3}, {}, 1e-6);
  expect_close(one.adapt_variance, {3.5}, {}, 1e-6);
}

TEST(KerasPreprocessing, NormalizationErrors) {
  expect_error([] { Normalization({.mean = {1}})(zeros({2, 2})); }, Code::invalid_argument, "go together");
  expect_error(
      [] {
        Normalization({.mean = {1, 2, 3}, .variance = {1, 2, 3}})(zeros({2, 2}));
      },
      Code::invalid_argument, "3 values of mean and variance for the 2 positions of [2,2]");
  expect_error(
      [] {
        Normalization({.mean = {1}, .variance = {1}}).adapt(zeros({2, 2}));
      },
      Code::failed_precondition, "mean and variance are given");
  expect_error(
      [] {
        Normalization().adapt(data::from_tensor_slices(zeros({4, 2}), zeros({4})).batch(2));
      },
      Code::invalid_argument, "without labels");
  expect_error(
      [] {
        Normalization().adapt(data::from_tensor_slices(zeros({4, 2})).take(0));
      },
      Code::invalid_argument, "without elements");
  expect_error(
      [] {
        Normalization().adapt(data::from_tensor_slices(zeros({4, 2})).repeat().batch(2));
      },
      Code::invalid_argument, "[Normalization.adapt] the dataset never ends");
}

TEST(KerasRandomImages, NothingHappensWithoutTraining) {
  const Tensor x = random_tensor({2, 4, 4, 1});
  test::expect_same_bits(RandomFlip()(x), x);
  test::expect_same_bits(RandomRotation({.factor = 0.2})(x), x);
  test::expect_same_bits(RandomZoom({.height_factor = 0.2})(x), x);
}

TEST(KerasRandomImages, FlipsEveryImageByItself) {
  random::set_seed(3);
  const Tensor one = random_tensor({1, 3, 2, 1});
  const Tensor batch = tile(one, {64, 1, 1, 1});
  const auto v = values_of(one);
  const std::vector<double> left_right{v[1], v[0], v[3], v[2], v[5], v[4]};
  const std::vector<double> up_down{v[4], v[5], v[2], v[3], v[0], v[1]};
  const std::vector<double> both{v[5], v[4], v[3], v[2], v[1], v[0]};
  const auto count = [&](const Tensor& y) {  // how many images are unchanged, left_right, up_down, both
    std::vector<int> n(4, 0);
    for (int64_t i = 0; i < 64; ++i) {
      const std::vector<double> image = values_of(y[i]);
      const std::vector<double>* kinds[] = {&v, &left_right, &up_down, &both};
      for (size_t k = 0; k < 4; ++k) n[k] += image == *kinds[k];
    }
    return n;
  };
  const std::vector<int> any = count(RandomFlip()(batch, kTraining));
  EXPECT_EQ(any[0] + any[1] + any[2] + any[3], 64);
  for (const int n : any) EXPECT_GT(n, 4);
  const std::vector<int> sideways = count(RandomFlip({.mode = "horizontal"})(batch, kTraining));
  EXPECT_EQ(sideways[0] + sideways[1], 64);
  EXPECT_GT(sideways[1], 15);
  const std::vector<int> seeded = count(RandomFlip({.seed = 7})(batch, kTraining));
  for (const int n : seeded) EXPECT_GT(n, 4);  // one seed, two draws
  EXPECT_EQ(count(RandomFlip({.mode = "vertical"})(batch, kTraining))[1], 0);
  expect_error([&] { RandomFlip({.mode = "diagonal"})(batch); }, Code::invalid_argument, "mode must be");
}

// A coordinate outside [0, size - 1] as TensorFlow's kernel maps it, case by case.
double naive_mapped(double at, int64_t size, const std::string& mode) {
  const auto n = static_cast<double>(size);
  double c = at;
  if (mode == "constant") return c;
  if (mode == "reflect") {
    if (c < 0) {
      c += 2 * n * std::trunc(-c / (2 * n));
      c = c < -n ? c + 2 * n : -c - 1;
    } else if (c > n - 1) {
      c -= 2 * n * std::trunc(c / (2 * n));
      if (c >= n) c = 2 * n - c - 1;
    }
  } else if (mode == "wrap") {
    if (c < 0) {
      c += n * (std::trunc(-c / (n - 1)) + 1);
    } else if (c > n - 1) {
      c -= n * std::trunc(c / (n - 1));
    }
  }
  return std::clamp(c, 0.0, n - 1);
}

// source(x, y) gives the place in the image of an output pixel.
template <class Source>
std::vector<double> naive_transformed(const Tensor& image, const std::string& mode, bool nearest, double fill,
                                      Source source) {
  const Shape s = image.shape();
  const std::vector<double> v = values_of(image);
  std::vector<double> out;
  for (int64_t r = 0; r < s[0]; ++r) {
    for (int64_t c = 0; c < s[1]; ++c) {
      const auto [sx, sy] = source(static_cast<double>(c), static_cast<double>(r));
      const double x = naive_mapped(sx, s[1], mode), y = naive_mapped(sy, s[0], mode);
      for (int64_t k = 0; k < s[2]; ++k) {
        const auto read = [&](double row, double col) {
          const auto i = static_cast<int64_t>(row), j = static_cast<int64_t>(col);
          return i < 0 || j < 0 || i >= s[0] || j >= s[1] ? fill : v[static_cast<size_t>((i * s[1] + j) * s[2] + k)];
        };
        if (nearest) {
          out.push_back(read(std::round(y), std::round(x)));
          continue;
        }
        const double top = std::floor(y), left = std::floor(x);
        const double upper = read(top, left) * (left + 1 - x) + read(top, left + 1) * (x - left);
        const double lower = read(top + 1, left) * (left + 1 - x) + read(top + 1, left + 1) * (x - left);
        out.push_back(upper * (top + 1 - y) + lower * (y - top));
      }
    }
  }
  return out;
}

TEST(KerasRandomImages, RotationAgainstTheDefinition) {
  const Tensor image = random_tensor({5, 7, 2});
  const double angle = 0.09 * 2 * 3.14159265358979;
  const double c = std::cos(angle), s = std::sin(angle);
  const auto source = [&](double x, double y) {
    return std::pair(c * (x - 3) - s * (y - 2) + 3, s * (x - 3) + c * (y - 2) + 2);
  };
  for (const std::string mode : {"reflect", "wrap", "constant", "nearest"}) {
    for (const bool nearest : {false, true}) {
      SCOPED_TRACE(mode + (nearest ? " nearest" : " bilinear"));
      RandomRotation layer({.factor = {0.09, 0.09},
                            .fill_mode = mode,
                            .interpolation = nearest ? "nearest" : "bilinear",
                            .fill_value = 0.3});
      expect_close(layer(image, kTraining), naive_transformed(image, mode, nearest, 0.3, source), {5, 7, 2}, 1e-5);
    }
  }
  // A quarter turn goes counter-clockwise.
  const Tensor square = random_tensor({2, 4, 4, 1});
  expect_close(RandomRotation({.factor = {0.25, 0.25}})(square, kTraining), values_of(image::rot90(square)),
               square.shape(), 1e-5);
}

TEST(KerasRandomImages, ZoomAgainstTheDefinition) {
  const Tensor image = random_tensor({4, 5, 1});
  const auto source = [&](double x, double y) { return std::pair(0.7 * (x - 2) + 2, 5.3 * (y - 1.5) + 1.5); };
  for (const std::string mode : {"reflect", "wrap", "constant", "nearest"}) {
    SCOPED_TRACE(mode);
    RandomZoom layer({.height_factor = {4.3, 4.3}, .width_factor = FactorRange(-0.3, -0.3), .fill_mode = mode});
    expect_close(layer(image, kTraining), naive_transformed(image, mode, false, 0, source), {4, 5, 1}, 1e-5);
  }
  // Without a factor of the width the shape stays.
  const auto both = [&](double x, double y) { return std::pair(1.5 * (x - 2) + 2, 1.5 * (y - 1.5) + 1.5); };
  expect_close(RandomZoom({.height_factor = {0.5, 0.5}})(image, kTraining),
               naive_transformed(image, "reflect", false, 0, both), {4, 5, 1}, 1e-5);
}

TEST(KerasRandomImages, EveryImageIsDrawnByItselfAlsoInFunctions) {
  RandomRotation layer({.factor = 0.4});
  const Tensor batch = tile(random_tensor({1, 6, 6, 3}), {3, 1, 1, 1});
  auto traced = function([&](Tensor t) { return layer(t, kTraining); },
                         {.input_signature = {{{kUnknownDim, kUnknownDim, kUnknownDim, 3}, DType::float32}}});
  for (const Tensor& y : {layer(batch, kTraining), traced(batch)}) {
    EXPECT_EQ(y.shape(), batch.shape());
    EXPECT_NE(values_of(y[0]), values_of(y[1]));
    EXPECT_NE(values_of(y[1]), values_of(y[2]));
  }
  EXPECT_NE(values_of(traced(batch)), values_of(traced(batch)));
}

TEST(KerasRandomImages, CropTakesOnePlaceForABatch) {
  random::set_seed(5);
  const Tensor x = reshape(cast(range(2 * 5 * 6), DType::float32), {2, 5, 6, 1});
  RandomCrop layer({.height = 3, .width = 2});
  std::vector<double> places;
  for (int i = 0; i < 60; ++i) {
    const std::vector<double> y = values_of(layer(x, kTraining));
    ASSERT_EQ(y.size(), 12U);
    for (size_t k = 0; k < 12; ++k) {
      const size_t image = k / 6, row = k % 6 / 2, column = k % 2;
      ASSERT_EQ(y[k], y[0] + static_cast<double>(image * 30 + row * 6 + column));
    }
    places.push_back(y[0]);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  EXPECT_GT(places.size(), 10U);  // of 15
  EXPECT_GE(places.front(), 0);
  EXPECT_LE(places.back(), 16);

  // The middle when not training, and of smaller images.
  EXPECT_EQ(layer(x).shape(), (Shape{2, 3, 2, 1}));
  const Tensor low = reshape(x, {2, 2, 15, 1});
  expect_close(RandomCrop({.height = 4, .width = 3})(low, kTraining),
               values_of(Resizing({.height = 4, .width = 3, .crop_to_aspect_ratio = true})(low)), {2, 4, 3, 1}, 0);
  auto traced = function([&](Tensor t) { return layer(t, kTraining); },
                         {.input_signature = {{{kUnknownDim, kUnknownDim, kUnknownDim, 1}, DType::float32}}});
  EXPECT_EQ(traced(x).shape(), (Shape{2, 3, 2, 1}));
  EXPECT_EQ(traced(zeros({1, 2, 2, 1})).shape(), (Shape{1, 3, 2, 1}));
  expect_error([&] { RandomCrop({.height = 3})(x); }, Code::invalid_argument, "[RandomCrop] height and width");
}

TEST(KerasRandomImages, ConfigurationsAndErrors) {
  const auto check = [](const Layer& layer) {
    const LayerPtr again = layer_from_config(Config::from_json(layer_to_config(layer).to_json()));
    EXPECT_EQ(again->get_config().to_json(), layer.get_config().to_json());
  };
  check(RandomRotation({.factor = 0.2, .fill_mode = "wrap", .seed = 3}));
  check(RandomZoom({.height_factor = {-0.2, 0.1}}));
  check(RandomZoom({.height_factor = 0.2, .width_factor = 0.1}));
  check(RandomFlip({.mode = "vertical"}));
  check(RandomCrop({.height = 3, .width = 4}));
  check(Rescaling({.scale = 0.5}));
  check(Resizing({.height = 3, .width = 4}));
  check(Normalization({.axis = {1, 2}}));
  EXPECT_EQ(RandomRotation({.factor = 0.2}).get_config()["factor"].as_double(), 0.2);
  const Tensor x = zeros({1, 4, 4, 1});
  expect_error([&] { RandomRotation({.factor = -0.1})(x); }, Code::invalid_argument, "factor must be a number >= 0");
  expect_error([&] { RandomRotation({.factor = 0.1, .fill_mode = "mirror"})(x); }, Code::invalid_argument, "fill_mode");
  expect_error([&] { RandomZoom({.height_factor = {-1, 0}})(x); }, Code::invalid_argument, "above -1");
}

}  // namespace
}  // namespace runnel::keras
