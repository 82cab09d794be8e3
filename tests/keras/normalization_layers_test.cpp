#include <cmath>

#include "runnel/keras/layers/normalization.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using test::expect_close;
using test::expect_error;
using test::random_tensor;
using test::values_of;

struct Statistics {
  std::vector<double> mean, variance;
  double samples = 0;  // of each channel
};

// Over all but the channels, which are dimension `axis` of a shape; `counts` may leave out elements.
size_t channel_of(size_t i, const Shape& shape, int axis) {
  for (int d = shape.rank() - 1; d > axis; --d) i /= static_cast<size_t>(shape[d]);
  return i % static_cast<size_t>(shape[axis]);
}
Statistics naive_statistics(const Tensor& x, int axis, const std::vector<bool>& counts = {}) {
  const auto channels = static_cast<size_t>(x.shape()[axis]);
  const std::vector<double> v = values_of(x);
  Statistics s{std::vector<double>(channels, 0), std::vector<double>(channels, 0)};
  const auto each = [&](auto f) {
    for (size_t i = 0; i < v.size(); ++i) {
      if (counts.empty() || counts[i]) f(v[i], channel_of(i, x.shape(), axis));
    }
  };
  each([&](double, size_t) { s.samples += 1.0 / static_cast<double>(channels); });
  each([&](double value, size_t c) { s.mean[c] += value / s.samples; });
  each([&](double value, size_t c) { s.variance[c] += (value - s.mean[c]) * (value - s.mean[c]) / s.samples; });
  return s;
}
std::vector<double> naive_batch_norm(const Tensor& x, int axis, const Statistics& s, const std::vector<double>& gamma,
                                     const std::vector<double>& beta, double epsilon) {
  std::vector<double> y = values_of(x);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t c = channel_of(i, x.shape(), axis);
    y[i] = (y[i] - s.mean[c]) / std::sqrt(s.variance[c] + epsilon) * gamma[c] + beta[c];
  }
  return y;
}
// momentum * from + (1 - momentum) * to
std::vector<double> moved_towards(const std::vector<double>& from, const std::vector<double>& to, double momentum) {
  std::vector<double> out;
  for (size_t i = 0; i < from.size(); ++i) out.push_back(momentum * from[i] + (1 - momentum) * to[i]);
  return out;
}

void check_batch_norm(const Shape& shape, int axis, bool unbiased) {
  SCOPED_TRACE(shape.str() + " axis " + std::to_string(axis));
  const int64_t channels = shape[axis];
  BatchNormalization layer({.axis = {axis}, .momentum = 0.8, .epsilon = 0.01});
  const Tensor x = random_tensor(shape, DType::float32, 1, -2, 3);
  layer(x);
  const std::vector<Variable> weights = layer.weights();
  const char* names[] = {"gamma", "beta", "moving_mean", "moving_variance"};
  ASSERT_EQ(weights.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(weights[i].name(), layer.name() + "/" + names[i]);
    EXPECT_EQ(weights[i].shape(), Shape{channels});
  }
  EXPECT_EQ(layer.trainable_weights().size(), 2U);
  layer.gamma.assign(random_tensor({channels}, DType::float32, 2, 0.5, 2));
  layer.beta.assign(random_tensor({channels}, DType::float32, 3));
  const std::vector<double> gamma = values_of(layer.gamma), beta = values_of(layer.beta);

  // At first the moving statistics are 0 and 1.
  const Statistics fresh{std::vector<double>(gamma.size(), 0), std::vector<double>(gamma.size(), 1)};
  expect_close(layer(x), naive_batch_norm(x, axis, fresh, gamma, beta, 0.01), shape, 1e-5);

  Statistics moving = fresh;
  for (uint32_t step = 0; step < 2; ++step) {
    const Tensor batch = random_tensor(shape, DType::float32, 10 + step, -1, 4);
    Statistics now = naive_statistics(batch, axis);
    expect_close(layer(batch, {.training = true}), naive_batch_norm(batch, axis, now, gamma, beta, 0.01), shape, 2e-5);
    if (unbiased) {
      for (double& v : now.variance) v *= now.samples / (now.samples - 1);
    }
    moving.mean = moved_towards(moving.mean, now.mean, 0.8);
    moving.variance = moved_towards(moving.variance, now.variance, 0.8);
    expect_close(layer.moving_mean, moving.mean, {channels}, 1e-5);
    expect_close(layer.moving_variance, moving.variance, {channels}, 1e-5);
  }
  expect_close(layer(x, {.training = false}), naive_batch_norm(x, axis, moving, gamma, beta, 0.01), shape, 2e-5);
}

TEST(KerasBatchNormalization, AgainstTheDefinition) {
  check_batch_norm({6, 5}, 1, false);
  check_batch_norm({4, 3, 5}, 2, false);
  check_batch_norm({4, 3, 5}, 1, false);
  check_batch_norm({3, 4, 2, 5}, 3, true);
  check_batch_norm({3, 4, 2, 5}, 1, false);
  check_batch_norm({2, 3, 2, 2, 4}, 4, true);
}

TEST(KerasBatchNormalization, SeveralAxes) {
  BatchNormalization layer({.axis = {1, -1}, .momentum = 0.5});
  const Tensor x = random_tensor({7, 2, 4, 3});
  const Tensor y = layer(x, {.training = true});
  EXPECT_EQ(layer.gamma.shape(), (Shape{1, 2, 1, 3}));
  // Pairs of both axes as the channels of another layer.
  BatchNormalization joined({.axis = {-1}, .momentum = 0.5});
  const Tensor flat = reshape(transpose(x, {0, 2, 1, 3}), {28, 6});
  const Tensor expected = transpose(reshape(joined(flat, {.training = true}), {7, 4, 2, 3}), {0, 2, 1, 3});
  expect_close(y, values_of(expected), y.shape(), 1e-5);
  expect_close(reshape(layer.moving_variance, {6}), values_of(joined.moving_variance), {6}, 1e-6);
}

TEST(KerasBatchNormalization, AFrozenLayerUsesWhatItHas) {
  BatchNormalization layer;
  const Tensor x = random_tensor({3, 2, 2, 4}, DType::float32, 1, 5, 9);
  layer.set_trainable(false);
  const Tensor y = layer(x, {.training = true});
  expect_close(layer.moving_mean, {0, 0, 0, 0}, {4}, 0);
  test::expect_same_bits(y, layer(x));
  EXPECT_TRUE(layer.trainable_weights().empty());
  EXPECT_EQ(layer.non_trainable_weights().size(), 4U);
  layer.set_trainable(true);
  layer(x, {.training = true});
  EXPECT_GT(values_of(layer.moving_mean)[0], 0.01);
}

TEST(KerasBatchNormalization, WithoutCenterOrScale) {
  for (const Shape& shape : {Shape{8, 3}, Shape{2, 2, 2, 3}}) {
    const Tensor x = random_tensor(shape);
    const Statistics s = naive_statistics(x, shape.rank() - 1);
    BatchNormalization plain({.center = false, .scale = false});
    expect_close(plain(x, {.training = true}), naive_batch_norm(x, shape.rank() - 1, s, {1, 1, 1}, {0, 0, 0}, 1e-3),
                 shape, 1e-5);
    EXPECT_EQ(plain.weights().size(), 2U);
    EXPECT_FALSE(plain.gamma.defined());
  }
}

TEST(KerasBatchNormalization, StepsThatAreMaskedDoNotCount) {
  const Tensor x = random_tensor({2, 3, 4});
  const Tensor mask{{true, true, false}, {true, false, false}};
  std::vector<bool> counts;
  for (const bool m : {true, true, false, true, false, false}) counts.insert(counts.end(), 4, m);
  const Statistics s = naive_statistics(x, 2, counts);
  BatchNormalization layer({.momentum = 0});
  expect_close(layer(x, {.training = true, .mask = mask}), naive_batch_norm(x, 2, s, {1, 1, 1, 1}, {0, 0, 0, 0}, 1e-3),
               x.shape(), 1e-5);
  expect_close(layer.moving_variance, s.variance, {4}, 1e-6);
}

TEST(KerasBatchNormalization, InAFunction) {
  BatchNormalization eager({.momentum = 0.5}), traced({.momentum = 0.5});
  auto step = function([&](Tensor t) { return traced(t, {.training = true}); },
                       {.input_signature = {{{kUnknownDim, 3, 3, 2}, DType::float32}}});
  for (uint32_t seed = 0; seed < 3; ++seed) {
    const Tensor x = random_tensor({2 + seed, 3, 3, 2}, DType::float32, seed);
    test::expect_same_bits(step(x), eager(x, {.training = true}));
  }
  test::expect_same_bits(traced.moving_variance, eager.moving_variance);
  EXPECT_EQ(step.num_traces(), 1);
}

// The derivative by the input and by the weights, which are variables, against differences.
void check_norm_gradients(Layer& layer, const Tensor& x) {
  layer(x);
  const std::vector<Variable> weights = layer.trainable_weights();
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i].assign(random_tensor(weights[i].shape(), DType::float64, static_cast<uint32_t>(i + 3), 0.5, 1.5));
  }
  const CallArgs training{.training = true};
  test::expect_gradients([&](const std::vector<Tensor>& t) { return layer(t[0], training); }, {x}, 8, 1e-5);
  const Tensor share = random_tensor(x.shape(), DType::float64, 9);
  const auto loss = [&] { return reduce_sum(square(layer(x, training)) * share); };
  GradientTape tape;
  const Gradients gradients = tape.gradient(loss(), weights);
  for (size_t k = 0; k < weights.size(); ++k) {
    const Tensor base = weights[k];
    const std::vector<double> got = values_of(gradients[k].value());
    for (size_t i = 0; i < got.size(); ++i) {
      const auto moved = [&](double by) {
        std::vector<double> v = values_of(base);
        v[i] += by;
        weights[k].assign(test::tensor_of(v, base.shape(), DType::float64));
        return loss().item<double>();
      };
      EXPECT_NEAR(got[i], (moved(1e-5) - moved(-1e-5)) / 2e-5, 1e-6) << weights[k].name() << " " << i;
    }
    weights[k].assign(base);
  }
}

TEST(KerasBatchNormalization, Gradients) {
  BatchNormalization images({.dtype = "float64"}), rows({.dtype = "float64"}), first({.axis = {1}, .dtype = "float64"});
  check_norm_gradients(images, random_tensor({3, 2, 2, 2}, DType::float64));
  check_norm_gradients(rows, random_tensor({5, 3}, DType::float64));
  check_norm_gradients(first, random_tensor({3, 2, 3}, DType::float64));
}

TEST(KerasBatchNormalization, ShortFloats) {
  for (const Shape& shape : {Shape{8, 3}, Shape{2, 2, 2, 3}}) {
    BatchNormalization layer({.dtype = "mixed_bfloat16"});
    const Tensor y = layer(random_tensor(shape), {.training = true});
    EXPECT_EQ(y.dtype(), DType::bfloat16);
    EXPECT_EQ(layer.gamma.dtype(), DType::float32);
    BatchNormalization half({.dtype = "float16"});
    EXPECT_EQ(half(random_tensor(shape), {.training = true}).dtype(), DType::float16);
    EXPECT_EQ(half.moving_mean.dtype(), DType::float32);
  }
}

TEST(KerasBatchNormalization, ConfigurationsAndErrors) {
  const Config config = BatchNormalization({.momentum = 0.9, .gamma_regularizer = "l2", .name = "bn"}).get_config();
  EXPECT_EQ(BatchNormalization::from_config(config)->get_config().to_json(), config.to_json());
  EXPECT_EQ(BatchNormalization::from_config(Config::from_json(R"({"axis": 3})"))->options().axis[0], 3);
  expect_error([] { BatchNormalization({.axis = {4}})(zeros({2, 3})); }, Code::invalid_argument, "BatchNormalization");
  expect_error([] { BatchNormalization({.axis = {1, -1}})(zeros({2, 3})); }, Code::invalid_argument, "each once");
  expect_error([] { BatchNormalization({.epsilon = 0})(zeros({2, 3})); }, Code::invalid_argument, "epsilon > 0");
  BatchNormalization layer;
  layer(zeros({2, 3}));
  expect_error([&] { layer(zeros({2, 4})); }, Code::invalid_argument, "size 3 at axis 1");
}

// Over the axes that `together` names, with weights that vary along them.
void check_layer_norm(const Shape& shape, const std::vector<int64_t>& axis, const std::vector<bool>& together) {
  LayerNormalization layer({.axis = axis, .epsilon = 0.01});
  const Tensor x = random_tensor(shape, DType::float32, 1, -2, 3);
  layer(x);
  layer.gamma.assign(random_tensor(layer.gamma.shape(), DType::float32, 2, 0.5, 2));
  layer.beta.assign(random_tensor(layer.beta.shape(), DType::float32, 3));
  const std::vector<double> v = values_of(x), gamma = values_of(layer.gamma), beta = values_of(layer.beta);
  // The number of an element's sample, and of its place within the sample.
  const auto places = [&](size_t i) {
    size_t sample = 0, place = 0, rest = i;
    size_t sample_step = 1, place_step = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      const auto n = static_cast<size_t>(shape[d]);
      size_t& to = together[static_cast<size_t>(d)] ? place : sample;
      size_t& step = together[static_cast<size_t>(d)] ? place_step : sample_step;
      to += rest % n * step;
      step *= n;
      rest /= n;
    }
    return std::pair(sample, place);
  };
  std::vector<double> mean(v.size(), 0), variance(v.size(), 0);
  const auto count = static_cast<double>(gamma.size());
  for (size_t i = 0; i < v.size(); ++i) mean[places(i).first] += v[i] / count;
  for (size_t i = 0; i < v.size(); ++i) {
    const double d = v[i] - mean[places(i).first];
    variance[places(i).first] += d * d / count;
  }
  std::vector<double> expected;
  for (size_t i = 0; i < v.size(); ++i) {
    const auto [sample, place] = places(i);
    expected.push_back((v[i] - mean[sample]) / std::sqrt(variance[sample] + 0.01) * gamma[place] + beta[place]);
  }
  expect_close(layer(x), expected, shape, 2e-5);
}

TEST(KerasLayerNormalization, AgainstTheDefinition) {
  check_layer_norm({3, 5}, {-1}, {false, true});
  check_layer_norm({2, 3, 5}, {2}, {false, false, true});
  check_layer_norm({2, 3, 5}, {-2, -1}, {false, true, true});
  check_layer_norm({2, 3, 5}, {1}, {false, true, false});
  check_layer_norm({2, 3, 2, 4}, {1, 3}, {false, true, false, true});
}

TEST(KerasLayerNormalization, WeightsGradientsErrors) {
  LayerNormalization layer({.axis = {1, 2}, .dtype = "float64"});
  layer(zeros({2, 3, 4}, DType::float64));
  EXPECT_EQ(layer.gamma.shape(), (Shape{3, 4}));
  EXPECT_EQ(layer.gamma.name(), layer.name() + "/gamma");
  LayerNormalization last({.dtype = "float64"}), inner({.axis = {1}, .dtype = "float64"});
  check_norm_gradients(last, random_tensor({3, 4}, DType::float64));
  check_norm_gradients(inner, random_tensor({2, 3, 2}, DType::float64));
  LayerNormalization half({.center = false, .dtype = "mixed_float16"});
  EXPECT_EQ(half(random_tensor({2, 3})).dtype(), DType::float16);
  EXPECT_EQ(half.weights().size(), 1U);
  const Config config = LayerNormalization({.axis = {1, 2}, .scale = false, .name = "ln"}).get_config();
  EXPECT_EQ(LayerNormalization::from_config(config)->get_config().to_json(), config.to_json());
  expect_error([] { LayerNormalization({.axis = {}})(zeros({2, 3})); }, Code::invalid_argument, "axis must name");
}

}  // namespace
}  // namespace runnel::keras
