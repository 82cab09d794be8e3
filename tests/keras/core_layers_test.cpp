// Reshaping, activation and regularization layers, Lambda.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "runnel/keras/functional.h"
#include "runnel/keras/layers/activation_layers.h"
#include "runnel/keras/layers/dense.h"
#include "runnel/keras/layers/lambda.h"
#include "runnel/keras/layers/regularization.h"
#include "runnel/keras/layers/reshaping.h"
#include "tests/keras/layer_checks.h"

namespace runnel::keras {
namespace {

using runnel::test::expect_close;
using runnel::test::expect_config;
using runnel::test::expect_error;
using runnel::test::expect_gradients;
using runnel::test::expect_output;
using runnel::test::expect_same_bits;
using runnel::test::random_tensor;
using runnel::test::traced_call;
using runnel::test::values_of;

// 0, 1, 2, ... in this shape.
Tensor counting(const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(shape.num_elements()));
  std::iota(values.begin(), values.end(), 0);
  return runnel::test::tensor_of(values, shape, float32);
}

const CallArgs kWhileTraining{.training = true};

TEST(ReshapingLayers, Flatten) {
  Flatten flatten;
  expect_output(flatten, counting({2, 3, 2}), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {2, 6});
  expect_output(flatten, counting({3}), {0, 1, 2}, {3, 1});
  Flatten first({.data_format = "channels_first"});
  expect_output(first, counting({1, 2, 3}), {0, 3, 1, 4, 2, 5}, {1, 6});
  EXPECT_EQ(flatten.compute_output_shape({kUnknownDim, 4, 5}), (PartialShape{kUnknownDim, 20}));
  EXPECT_EQ(flatten.compute_output_shape({kUnknownDim, kUnknownDim, 5}), (PartialShape{kUnknownDim, kUnknownDim}));
  EXPECT_EQ(flatten.compute_output_shape({7, kUnknownDim, 5}), (PartialShape{7, kUnknownDim}));
  EXPECT_EQ(flatten(Tensor::empty(float32, {0, 3, 2})).shape(), (Shape{0, 6}));
  EXPECT_EQ(flatten(Tensor::empty(float32, {3, 0, 2})).shape(), (Shape{3, 0}));
  expect_config(flatten, R"({"data_format":"channels_last"})");
  expect_error([] { Flatten({.data_format = "NHWC"})(counting({1, 1})); }, Code::invalid_argument, "NHWC");
  expect_error([] { Flatten()(Tensor(1.f)); }, Code::invalid_argument, "at least 1 dimensions");
}

TEST(ReshapingLayers, Reshape) {
  Reshape fixed({.target_shape = {3, 2}});
  expect_output(fixed, counting({2, 6}), values_of(counting({12})), {2, 3, 2});
  Reshape open({.target_shape = {-1, 2}});
  expect_output(open, counting({2, 3, 4}), values_of(counting({24})), {2, 6, 2});
  EXPECT_EQ(open.compute_output_shape({kUnknownDim, 3, 4}), (PartialShape{kUnknownDim, 6, 2}));
  EXPECT_EQ(open.compute_output_shape({kUnknownDim, kUnknownDim, 4}), (PartialShape{kUnknownDim, kUnknownDim, 2}));
  EXPECT_EQ(fixed.compute_output_shape({kUnknownDim, kUnknownDim}), (PartialShape{kUnknownDim, 3, 2}));
  Reshape flat({.target_shape = {}});
  expect_output(flat, counting({3, 1}), {0, 1, 2}, {3});
  expect_config(fixed, R"({"target_shape":[3,2]})");
  expect_error([&] { fixed(counting({2, 5})); }, Code::invalid_argument, "cannot hold");
  expect_error([&] { open(counting({2, 5})); }, Code::invalid_argument, "[2,5] have 5 elements");
  expect_error([] { Reshape({.target_shape = {-1, -1}})(counting({2, 4})); }, Code::invalid_argument, "only one");
}

// With a batch and another size unknown, what is worked out is known when the function runs.
TEST(ReshapingLayers, ReshapeOfUnknownSizes) {
  Reshape open({.target_shape = {-1, 2}});
  Flatten flatten;
  const auto f = function(
      [&](const Tensor& t) {
        return std::pair{open(t), flatten(t)};
      },
      {.input_signature = {TensorSpec{{kUnknownDim, kUnknownDim, 4}, float32, ""}}});
  const auto [reshaped, flat] = f(counting({2, 3, 4}));
  expect_close(reshaped, values_of(counting({24})), {2, 6, 2}, 0);
  expect_close(flat, values_of(counting({24})), {2, 12}, 0);
}

TEST(ReshapingLayers, FlattenOfUnknownRank) {
  Flatten flatten;
  const auto f = function([&](const Tensor& t) -> Tensor { return flatten(t); },
                          {.input_signature = {TensorSpec{PartialShape::unknown(), float32, ""}}});
  expect_close(f(counting({2, 3, 4})), values_of(counting({24})), {2, 12}, 0);
}

TEST(ReshapingLayers, Permute) {
  Permute permute({.dims = {2, 1}});
  expect_output(permute, counting({2, 2, 3}), {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}, {2, 3, 2});
  EXPECT_EQ(permute.compute_output_shape({kUnknownDim, 4, 5}), (PartialShape{kUnknownDim, 5, 4}));
  expect_config(permute, R"({"dims":[2,1]})");
  expect_error([] { Permute({.dims = {0, 1}})(counting({1, 2, 3})); }, Code::invalid_argument, "[0,1]");
  expect_error([&] { permute(counting({1, 2})); }, Code::invalid_argument, "3 dimensions");
}

TEST(ReshapingLayers, RepeatVector) {
  RepeatVector repeat({.n = 3});
  expect_output(repeat, counting({2, 2}), {0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3}, {2, 3, 2});
  EXPECT_EQ(repeat.compute_output_shape({kUnknownDim, 5}), (PartialShape{kUnknownDim, 3, 5}));
  expect_config(repeat, R"({"n":3})");
  expect_error([] { RepeatVector()(counting({2, 2})); }, Code::invalid_argument, "positive");
  expect_error([&] { repeat(counting({2, 2, 2})); }, Code::invalid_argument, "2 dimensions");
}

const Tensor kSigned{{-3.f, -1.f, 0.f, 0.5f}, {1.f, 2.f, 4.f, 8.f}};

TEST(ActivationLayers, Activation) {
  layers::Activation relu({.activation = "relu"});
  expect_output(relu, kSigned, {0, 0, 0, 0.5, 1, 2, 4, 8}, {2, 4});
  expect_config(relu, R"({"activation":"relu"})");
  EXPECT_EQ(relu.class_name(), "Activation");
  ActivationLayer none;
  expect_output(none, kSigned, values_of(kSigned), {2, 4});
  expect_config(none, R"({"activation":"linear"})");
}

TEST(ActivationLayers, ReLU) {
  ReLU plain;
  expect_output(plain, kSigned, {0, 0, 0, 0.5, 1, 2, 4, 8}, {2, 4});
  expect_config(plain, R"({"max_value":null,"negative_slope":0.0,"threshold":0.0})");

  for (const double slope : {0., 0.1}) {
    for (const double threshold : {0., 1.5}) {
      for (const double max_value : {0., 3., 6.}) {  // 0: none
        ReLUOptions options{.negative_slope = slope, .threshold = threshold};
        if (max_value > 0) options.max_value = max_value;
        ReLU relu(options);
        std::vector<double> expected;
        for (const double x : values_of(kSigned)) {
          const double kept = max_value > 0 && x >= max_value ? max_value : x;
          expected.push_back(x >= threshold ? kept : slope * (x - threshold));
        }
        SCOPED_TRACE(relu.get_config().to_json());
        expect_output(relu, kSigned, expected, {2, 4});
      }
    }
  }
  ReLU all({.max_value = 6, .negative_slope = 0.1, .threshold = 1});
  expect_config(all, R"({"max_value":6.0,"negative_slope":0.1,"threshold":1.0})");
  expect_error([] { ReLU({.max_value = -1})(kSigned); }, Code::invalid_argument, "max_value");
  expect_error([] { ReLU({.negative_slope = -1})(kSigned); }, Code::invalid_argument, "negative_slope");
  expect_error([] { ReLU({.threshold = -1})(kSigned); }, Code::invalid_argument, "threshold");
}

TEST(ActivationLayers, LeakyReLUAndELU) {
  LeakyReLU leaky;
  expect_output(leaky, kSigned, {-0.9, -0.3, 0, 0.5, 1, 2, 4, 8}, {2, 4});
  expect_config(leaky, R"({"alpha":0.3})");
  ELU elu({.alpha = 0.5});
  expect_output(elu, kSigned, {0.5 * std::expm1(-3), 0.5 * std::expm1(-1), 0, 0.5, 1, 2, 4, 8}, {2, 4});
  expect_config(elu, R"({"alpha":0.5})");
}

TEST(ActivationLayers, PReLU) {
  PReLU prelu({.alpha_initializer = initializers::constant(0.25), .name = "prelu"});
  expect_output(prelu, kSigned, {-0.75, -0.25, 0, 0.5, 1, 2, 4, 8}, {2, 4});
  EXPECT_EQ(prelu.alpha.shape(), (Shape{4}));
  EXPECT_EQ(prelu.alpha.name(), "prelu/alpha");
  EXPECT_EQ(prelu.count_params(), 4);
  expect_config(prelu,
                R"({"alpha_initializer":{"class_name":"Constant","config":{"value":0.25}},"alpha_regularizer":null,)"
                R"("alpha_constraint":null,"shared_axes":null})");
  expect_error([&] { prelu(counting({2, 5})); }, Code::invalid_argument, "size 4");

  PReLU shared({.shared_axes = {1, 2}});
  shared(counting({1, 5, 6, 3}));
  EXPECT_EQ(shared.alpha.shape(), (Shape{1, 1, 3}));
  shared(counting({1, 2, 2, 3}));  // other sizes along shared axes do no harm
  EXPECT_EQ(shared.get_config()["shared_axes"].to_json(), "[1,2]");
  EXPECT_EQ(PReLU::from_config(shared.get_config())->options().shared_axes, (std::vector<int64_t>{1, 2}));
}

TEST(ActivationLayers, GradientsOfPReLU) {
  PReLU prelu({.alpha_initializer = "random_uniform", .shared_axes = {1}, .dtype = "float64"});
  const Tensor x = random_tensor({2, 3, 2}, float64, 4);
  prelu(x);
  expect_gradients([&](const std::vector<Tensor>& in) { return prelu(in[0]); }, {x}, 12, 1e-6, false);
  // By alpha: the sum of the negative inputs that share it.
  GradientTape tape;
  const Tensor sum = reduce_sum(prelu(x));
  std::vector<double> expected(2, 0);
  const std::vector<double> values = values_of(x);
  for (size_t i = 0; i < values.size(); ++i) expected[i % 2] += std::min(values[i], 0.);
  expect_close(tape.gradient(sum, prelu.alpha).value(), expected, {1, 2}, 1e-9);
}

TEST(ActivationLayers, Softmax) {
  const Tensor x = random_tensor({2, 3, 4}, float32, 3);
  const std::vector<double> v = values_of(x);
  const auto expected = [&](const std::function<size_t(size_t)>& group, const std::function<bool(size_t)>& counts) {
    std::vector<double> sums(v.size()), out(v.size());
    for (size_t i = 0; i < v.size(); ++i) sums[group(i)] += counts(i) ? std::exp(v[i]) : 0;
    for (size_t i = 0; i < v.size(); ++i) out[i] = counts(i) ? std::exp(v[i]) / sums[group(i)] : 0;
    return out;
  };
  const auto all = [](size_t) { return true; };
  Softmax last;
  expect_output(last, x, expected([](size_t i) { return i / 4; }, all), {2, 3, 4});
  Softmax middle({.axis = {1}});
  expect_output(middle, x, expected([](size_t i) { return i / 12 * 4 + i % 4; }, all), {2, 3, 4});
  Softmax both({.axis = {1, 2}});
  expect_output(both, x, expected([](size_t i) { return i / 12; }, all), {2, 3, 4});

  std::vector<bool> mask(24);
  for (size_t i = 0; i < 24; ++i) mask[i] = i % 4 != 1 && i != 6;
  const CallArgs masked{.mask = Tensor::of<bool>(mask, {2, 3, 4})};
  const auto counts = [&](size_t i) { return bool{mask[i]}; };
  expect_close(last(x, masked), expected([](size_t i) { return i / 4; }, counts), {2, 3, 4}, 1e-6);
  expect_close(both(x, masked), expected([](size_t i) { return i / 12; }, counts), {2, 3, 4}, 1e-6);
  Softmax half({.dtype = "float16"});
  expect_close(half(x, masked), expected([](size_t i) { return i / 4; }, counts), {2, 3, 4}, 2e-3);

  expect_config(last, R"({"axis":-1})");
  expect_config(both, R"({"axis":[1,2]})");
}

// How many elements are zero, and that the others are scaled.
double share_of_zeros(const Tensor& dropped, double rate) {
  const std::vector<double> values = values_of(dropped);
  double zero = 0;
  for (const double v : values) {
    if (v == 0) {
      zero += 1;
    } else {
      EXPECT_NEAR(v, 1 / (1 - rate), 1e-5);
    }
  }
  return zero / static_cast<double>(values.size());
}

TEST(RegularizationLayers, Dropout) {
  random::set_seed(2);
  Dropout dropout({.rate = 0.4});
  const Tensor x = ones({100, 80});
  expect_same_bits(dropout(x), x);
  expect_same_bits(dropout(x, {.training = false}), x);
  EXPECT_NEAR(share_of_zeros(dropout(x, kWhileTraining), 0.4), 0.4, 0.02);
  EXPECT_NEAR(share_of_zeros(traced_call(dropout, x, kWhileTraining), 0.4), 0.4, 0.02);
  EXPECT_NE(values_of(dropout(x, kWhileTraining)), values_of(dropout(x, kWhileTraining)));
  Dropout none;
  expect_same_bits(none(x, kWhileTraining), x);
  expect_config(dropout, R"({"rate":0.4,"noise_shape":null,"seed":null})");
  expect_error([&] { Dropout({.rate = 1.5})(x); }, Code::invalid_argument, "rate must be in [0, 1]");
}

TEST(RegularizationLayers, DropoutGradientIsItsScale) {
  Dropout dropout({.rate = 0.5, .seed = 3});
  const Tensor x = random_tensor({4, 5}, float32, 6, 0.5, 1.5);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = dropout(x, kWhileTraining);
  expect_close(tape.gradient(y, x).value(), values_of(y / x), {4, 5}, 1e-5);
}

TEST(RegularizationLayers, DropoutSeedsAndNoiseShape) {
  const Tensor x = ones({6, 4, 3});
  random::set_seed(9);
  const Tensor first = Dropout({.rate = 0.5, .seed = 5})(x, kWhileTraining);
  random::uniform({3});
  random::set_seed(9);
  expect_same_bits(Dropout({.rate = 0.5, .seed = 5})(x, kWhileTraining), first);

  Dropout rows({.rate = 0.5, .noise_shape = {kUnknownDim, 1, 3}, .seed = 5});
  for (const bool traced : {false, true}) {
    const Tensor y = traced ? traced_call(rows, x, kWhileTraining) : rows(x, kWhileTraining);
    expect_close(y, values_of(broadcast_to(y(all, slice(0, 1)), {6, 4, 3})), {6, 4, 3}, 0);
    EXPECT_GT(share_of_zeros(y, 0.5), 0);
    EXPECT_LT(share_of_zeros(y, 0.5), 1);
  }
  expect_config(rows, R"({"rate":0.5,"noise_shape":[null,1,3],"seed":5})");
  expect_error([&] { rows(ones({6, 4}), kWhileTraining); }, Code::invalid_argument, "noise_shape [?,1,3]");
}

TEST(RegularizationLayers, SpatialDropout2D) {
  random::set_seed(3);
  const Tensor x = ones({8, 3, 4, 10});
  SpatialDropout2D last({.rate = 0.5});
  SpatialDropout2D first({.rate = 0.5, .data_format = "channels_first"});
  for (const bool traced : {false, true}) {
    const Tensor y = traced ? traced_call(last, x, kWhileTraining) : last(x, kWhileTraining);
    expect_close(y, values_of(broadcast_to(y(all, slice(0, 1), slice(0, 1)), {8, 3, 4, 10})), {8, 3, 4, 10}, 0);
    EXPECT_NEAR(share_of_zeros(y, 0.5), 0.5, 0.2);
    const Tensor z = traced ? traced_call(first, x, kWhileTraining) : first(x, kWhileTraining);
    expect_close(z, values_of(broadcast_to(z(all, all, slice(0, 1), slice(0, 1)), {8, 3, 4, 10})), {8, 3, 4, 10}, 0);
    EXPECT_NEAR(share_of_zeros(z, 0.5), 0.5, 0.35);
  }
  expect_same_bits(last(x), x);
  expect_config(first, R"({"rate":0.5,"data_format":"channels_first","seed":null})");
  expect_error([&] { last(ones({2, 3})); }, Code::invalid_argument, "4 dimensions");
}

TEST(RegularizationLayers, GaussianNoise) {
  random::set_seed(4);
  GaussianNoise noise({.stddev = 0.5});
  const Tensor x = ones({100, 100});
  expect_same_bits(noise(x), x);
  for (const Tensor& y : {noise(x, kWhileTraining), traced_call(noise, x, kWhileTraining)}) {
    EXPECT_NEAR(reduce_mean(y).item<float>(), 1, 0.02);
    EXPECT_NEAR(math::reduce_std(y).item<float>(), 0.5, 0.02);
  }
  expect_config(noise, R"({"stddev":0.5,"seed":null})");
  expect_error([&] { GaussianNoise({.stddev = -1})(x); }, Code::invalid_argument, "stddev");
}

TEST(LambdaLayer, AppliesFunctions) {
  Lambda doubled([](const Tensor& x) { return x * 2; });
  expect_output(doubled, Tensor{{1.f, 2.f}}, {2, 4}, {1, 2});
  Lambda op(nn::relu, "cut");
  expect_output(op, Tensor{{-1.f, 2.f}}, {0, 2}, {1, 2});
  EXPECT_EQ(op.name(), "cut");
  Lambda joined([](const Nest& in) { return in[0].leaf() + in[1].leaf(); });
  expect_close(joined(Nest(std::pair{Tensor{1.f}, Tensor{2.f}})).leaf(), {3}, {1}, 0);
  Lambda split(LambdaOptions{.function = [](const Tensor& x) { return std::vector<Tensor>{x, -x}; }});
  const Nest parts = split(Nest(Tensor{1.f}));
  expect_close(parts[1].leaf(), {-1}, {1}, 0);
  const Tensor y = Lambda([](const Tensor& x) { return x + 1; })(Tensor{1.f});
  expect_close(y, {2}, {1}, 0);
  expect_error([&] { doubled(Nest(std::pair{Tensor{1.f}, Tensor{2.f}})); }, Code::invalid_argument, "Lambda");
  expect_error([&] { doubled.get_config(); }, Code::failed_precondition, "cannot be written down");
  expect_error([] { Lambda()(Tensor{1.f}); }, Code::invalid_argument, "no function");
}

// The layers describe a functional model, which then computes what they compute.
TEST(CoreLayers, InFunctionalModels) {
  const Tensor input = Input({2, 3});
  Tensor t = Flatten()(input);
  t = Lambda([](const Tensor& x) { return x - 1; })(t);
  t = ReLU({.max_value = 3})(t);
  t = Dropout({.rate = 0.5})(t);
  const Tensor output = Reshape({.target_shape = {3, -1}})(t);
  EXPECT_EQ(output.partial_shape(), (PartialShape{kUnknownDim, 3, 2}));
  const FunctionalGraph graph(input, output);
  expect_close(graph.run(counting({1, 2, 3}), {}).leaf(), {0, 0, 1, 2, 3, 3}, {1, 3, 2}, 0);
}

TEST(CoreLayers, MixedPrecisionKeepsWeightsInFloat32) {
  PReLU prelu({.dtype = "mixed_bfloat16"});
  EXPECT_EQ(prelu(kSigned).dtype(), bfloat16);
  EXPECT_EQ(prelu.alpha.dtype(), float32);
  EXPECT_EQ(ELU({.alpha = 0.5, .dtype = "mixed_float16"})(kSigned).dtype(), float16);
  EXPECT_EQ(GaussianNoise({.stddev = 1, .dtype = "float16"})(kSigned, kWhileTraining).dtype(), float16);
}

// The layers of docs/keras_layers.md.
struct Linear : Layer {
  Variable w, b;
  using Layer::Layer;
  void build(const PartialShape& input) override {
    w = add_weight({.name = "w", .shape = {known_dim(input, -1), 1}, .initializer = "zeros"});
    b = add_weight({.name = "b", .shape = {1}, .initializer = "zeros"});
  }
  Tensor call(const Tensor& x, const CallArgs&) override { return matmul(x, w) + b; }
};

struct ScaleOptions {
  double factor = 1;
  std::string name;
  Policy dtype;
  bool trainable = true;
  static constexpr auto fields() { return field_list(field("factor", &ScaleOptions::factor)); }
};
struct Scale : LayerOf<Scale, ScaleOptions> {
  static constexpr const char* kClassName = "Scale";
  using LayerOf::LayerOf;
  Tensor call(const Tensor& x, const CallArgs&) override { return x * options_.factor; }
};

TEST(CoreLayers, OnesOfYourOwn) {
  Linear linear;
  linear(counting({2, 3}));
  linear.set_weights({Tensor{{1.f}, {2.f}, {3.f}}, Tensor{10.f}});
  expect_output(linear, counting({2, 3}), {18, 36}, {2, 1});
  expect_close(Scale({.factor = 2})(counting({1, 3})), {0, 2, 4}, {1, 3}, 0);
  register_layer<Scale>();
  const LayerPtr again = layer_from_config(layer_to_config(Scale({.factor = 3})));
  expect_close((*again)(counting({1, 3})), {0, 3, 6}, {1, 3}, 0);
  Dense dense({.units = 2,
               .activation = activations::leaky_relu(0.1),
               .kernel_initializer = initializers::constant(-3),
               .kernel_regularizer = regularizers::l2(1e-4),
               .kernel_constraint = [](const Tensor& w) { return clip_by_value(w, -1, 1); }});
  expect_output(dense, counting({1, 3}), {-0.9, -0.9}, {1, 2});
  expect_close((*dense.constraint_of(dense.kernel))(dense.kernel), std::vector<double>(6, -1), {3, 2}, 0);
}

TEST(CoreLayers, AreKnownByTheirClassNames) {
  for (const char* name :
       {"Dense", "Flatten",   "Reshape",  "Permute", "RepeatVector", "Activation",       "Softmax",
        "ReLU",  "LeakyReLU", "PReLU",    "ELU",     "Dropout",      "SpatialDropout2D", "GaussianNoise",
        "Add",   "Subtract",  "Multiply", "Average", "Maximum",      "Minimum",          "Concatenate",
        "Dot"}) {
    const Config config = Config::Map{{"class_name", name}, {"config", Config::Map{{"name", "x"}}}};
    const LayerPtr layer = layer_from_config(config);
    EXPECT_EQ(layer->class_name(), name);
    EXPECT_EQ(layer->name(), "x");
  }
}

TEST(CoreLayers, NamesAsKerasMakesThem) {
  clear_session();
  EXPECT_EQ(Flatten().name(), "flatten");
  EXPECT_EQ(Flatten().name(), "flatten_1");
  EXPECT_EQ(ActivationLayer().name(), "activation");
  EXPECT_EQ(ReLU().name(), "re_lu");
  EXPECT_EQ(LeakyReLU().name(), "leaky_re_lu");
  EXPECT_EQ(PReLU().name(), "p_re_lu");
  EXPECT_EQ(ELU().name(), "elu");
  EXPECT_EQ(RepeatVector().name(), "repeat_vector");
  EXPECT_EQ(SpatialDropout2D().name(), "spatial_dropout2d");
}

}  // namespace
}  // namespace runnel::keras
