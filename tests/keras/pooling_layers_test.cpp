#include "runnel/keras/layers/pooling.h"
#include "runnel/keras/layers/resizing_layers.h"
#include "tests/ops/nn_reference.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using test::expect_close;
using test::expect_error;
using test::random_tensor;
using test::values_of;

template <class L>
void check_pool(const std::vector<int64_t>& in, const std::vector<int64_t>& size, const std::vector<int64_t>& strides,
                const std::string& padding, bool average) {
  std::vector<int64_t> shape{2};
  shape.insert(shape.end(), in.begin(), in.end());
  shape.push_back(3);
  const Tensor x = random_tensor(Shape(shape));
  L layer({.pool_size = size, .strides = strides, .padding = padding});
  const test::Slide s = test::make_slide(in, size, strides.empty() ? size : strides, std::vector<int64_t>(in.size(), 1),
                                         padding == "same" ? "SAME" : "VALID", {});
  expect_close(layer(x), test::naive_pool(s, 2, 3, values_of(x), average), test::slide_output(s, in.size(), 2, 3),
               1e-6);
  EXPECT_TRUE(layer.weights().empty());
}

TEST(KerasPooling, AgainstTheDefinition) {
  check_pool<MaxPooling1D>({7}, {2}, {}, "valid", false);
  check_pool<MaxPooling1D>({7}, {3}, {2}, "same", false);
  check_pool<AveragePooling1D>({7}, {3}, {2}, "same", true);
  check_pool<MaxPooling2D>({7, 6}, {2, 2}, {}, "valid", false);
  check_pool<MaxPooling2D>({7, 6}, {3, 2}, {2, 1}, "same", false);
  check_pool<AveragePooling2D>({7, 6}, {3, 2}, {}, "valid", true);
  check_pool<AveragePooling2D>({7, 6}, {3, 3}, {1, 2}, "same", true);
}

TEST(KerasPooling, DefaultsAndConfigurations) {
  static_assert(std::is_same_v<MaxPool2D, MaxPooling2D> && std::is_same_v<AvgPool1D, AveragePooling1D>);
  MaxPool2D layer({.name = "pool"});
  EXPECT_EQ(layer(zeros({1, 4, 6, 2})).shape(), (Shape{1, 2, 3, 2}));
  const Config config = AveragePooling2D({.pool_size = {3}, .name = "avg"}).get_config();
  EXPECT_EQ(config["pool_size"].to_json(), "[3,3]");
  EXPECT_EQ(config["strides"].to_json(), "[3,3]");
  EXPECT_EQ(AveragePooling2D::from_config(config)->get_config().to_json(), config.to_json());
  const Config global = GlobalMaxPooling2D({.keepdims = true}).get_config();
  EXPECT_TRUE(GlobalMaxPooling2D::from_config(global)->options().keepdims);
  EXPECT_EQ(layer.compute_output_shape({-1, 9, -1, 2}), (PartialShape{-1, 4, -1, 2}));
}

TEST(KerasPooling, Global) {
  const Tensor x = random_tensor({2, 3, 4, 5});
  const std::vector<double> v = values_of(x);
  std::vector<double> largest(10, -9), mean(10, 0);
  for (size_t i = 0; i < v.size(); ++i) {
    const size_t at = i / 60 * 5 + i % 5;
    largest[at] = std::max(largest[at], v[i]);
    mean[at] += v[i] / 12;
  }
  expect_close(GlobalMaxPooling2D()(x), largest, {2, 5}, 1e-6);
  expect_close(GlobalAveragePooling2D()(x), mean, {2, 5}, 1e-6);
  expect_close(GlobalAveragePooling2D({.keepdims = true})(x), mean, {2, 1, 1, 5}, 1e-6);
  const Tensor steps = reshape(x, {2, 12, 5});
  expect_close(GlobalMaxPooling1D()(steps), largest, {2, 5}, 1e-6);
  expect_close(GlobalMaxPooling1D({.keepdims = true})(steps), largest, {2, 1, 5}, 1e-6);
  expect_close(GlobalAveragePooling1D()(steps), mean, {2, 5}, 1e-6);
}

TEST(KerasPooling, AnAverageOverTimeRespectsTheMask) {
  const Tensor x{{{1.f, 10.f}, {3.f, 30.f}, {99.f, 99.f}}, {{5.f, 50.f}, {99.f, 99.f}, {99.f, 99.f}}};
  const Tensor mask{{true, true, false}, {true, false, false}};
  expect_close(GlobalAveragePooling1D()(x, {.mask = mask}), {2, 20, 5, 50}, {2, 2}, 1e-6);
  expect_close(GlobalAveragePooling1D({.keepdims = true})(x, {.mask = mask}), {2, 20, 5, 50}, {2, 1, 2}, 1e-6);
}

TEST(KerasPooling, Errors) {
  expect_error(
      [] {
        MaxPooling2D layer({.pool_size = {2, 2, 2}});
        layer(zeros({1, 4, 4, 1}));
      },
      Code::invalid_argument, "[MaxPooling2D] pool_size must be 1 or 2 positive numbers, got [2,2,2]");
  expect_error(
      [] {
        AveragePooling1D layer({.padding = "full"});
        layer(zeros({1, 4, 1}));
      },
      Code::invalid_argument, "[AveragePooling1D] padding must be");
  expect_error([] { GlobalAveragePooling2D()(zeros({1, 4, 4})); }, Code::invalid_argument, "expected 4 dimensions");
}

TEST(KerasResizing, ZeroPaddingPutsZerosWhereItSays) {
  const Tensor x{{{{1.f}, {2.f}}, {{3.f}, {4.f}}}};
  expect_close(ZeroPadding2D({.padding = {{0, 1}, {2, 0}}})(x), {0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0}, {1, 3, 4, 1}, 0);
  EXPECT_EQ(ZeroPadding2D()(x).shape(), (Shape{1, 4, 4, 1}));
  EXPECT_EQ(ZeroPadding2D({.padding = {3, 1}})(x).shape(), (Shape{1, 8, 4, 1}));
  EXPECT_EQ(ZeroPadding2D({.padding = 2}).compute_output_shape({-1, 3, -1, 1}), (PartialShape{-1, 7, -1, 1}));
}

TEST(KerasResizing, CroppingTakesTheSidesAway) {
  const Tensor x = reshape(range(24), {1, 4, 6, 1});
  const Tensor y = Cropping2D({.cropping = {{1, 0}, {2, 3}}})(cast(x, DType::float32));
  expect_close(y, {8, 14, 20}, {1, 3, 1, 1}, 0);
  expect_error(
      [&] {
        Cropping2D({.cropping = 2})(zeros({1, 4, 6, 1}));
      },
      Code::invalid_argument, "cropping [[2,2],[2,2]] leaves nothing of images [1,4,6,1]");
  expect_error(
      [&] {
        Cropping2D({.cropping = -1})(zeros({1, 4, 6, 1}));
      },
      Code::invalid_argument, "must not be negative");
}

TEST(KerasResizing, UpSampling) {
  const Tensor x{{{{1.f}, {2.f}}, {{3.f}, {5.f}}}};
  expect_close(UpSampling2D({.size = {1, 2}})(x), {1, 1, 2, 2, 3, 3, 5, 5}, {1, 2, 4, 1}, 0);
  // Between pixel middles: a quarter and three quarters of the way, the border repeated.
  const double s[4] = {0, 0.25, 0.75, 1};
  std::vector<double> expected;
  for (const double r : s) {
    for (const double c : s) expected.push_back((1 - r) * (1 + c) + r * (3 + 2 * c));
  }
  UpSampling2D bilinear({.interpolation = "bilinear"});
  expect_close(bilinear(x), expected, {1, 4, 4, 1}, 1e-6);
  EXPECT_EQ(bilinear.compute_output_shape({-1, 3, -1, 1}), (PartialShape{-1, 6, -1, 1}));
  auto traced = function([&](Tensor t) { return bilinear(t); },
                         {.input_signature = {{{kUnknownDim, kUnknownDim, kUnknownDim, 1}, DType::float32}}});
  expect_close(traced(x), expected, {1, 4, 4, 1}, 1e-6);
  test::expect_gradients(
      [](const std::vector<Tensor>& t) {
        return UpSampling2D({.size = {2, 3}, .dtype = "float64"})(t[0]);
      },
      {random_tensor({1, 2, 2, 2}, DType::float64)});
  expect_error([&] { UpSampling2D({.size = {0}})(x); }, Code::invalid_argument, "size must be 1 or 2 positive numbers");
}

TEST(KerasResizing, MarginsInConfigurations) {
  const Config config = ZeroPadding2D({.padding = {{0, 1}, {2, 3}}, .name = "pad"}).get_config();
  EXPECT_EQ(config["padding"].to_json(), "[[0,1],[2,3]]");
  EXPECT_EQ(ZeroPadding2D::from_config(config)->get_config().to_json(), config.to_json());
  EXPECT_EQ(Margins::from_config(Config::from_json("[1, 2]")).config().to_json(), "[[1,1],[2,2]]");
  EXPECT_EQ(Margins::from_config(3).config().to_json(), "[[3,3],[3,3]]");
  const LayerPtr up = layer_from_config(layer_to_config(UpSampling2D({.interpolation = "bilinear", .name = "up"})));
  EXPECT_EQ(up->get_config()["size"].to_json(), "[2,2]");
}

}  // namespace
}  // namespace runnel::keras
