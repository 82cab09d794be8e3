// Models that compute in float16 and keep float32 weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using mixed_precision::LossScaleOptimizer;

class GlobalPolicyFor {
 public:
  explicit GlobalPolicyFor(const char* name) { mixed_precision::set_global_policy(name); }
  ~GlobalPolicyFor() { mixed_precision::set_global_policy("float32"); }
};

struct Line {
  Tensor x, y;
};
// y = 2 x0 - x1 + 0.5
Line points_of_a_line(int64_t n) {
  const Tensor x = random::stateless_normal({n, 2}, Tensor{int64_t{3}, int64_t{4}});
  return {x, matmul(x, Tensor{{2.f}, {-1.f}}) + 0.5};
}

TEST(MixedPrecision, CompileWrapsTheOptimizer) {
  const GlobalPolicyFor policy("mixed_float16");
  Sequential by_name({Dense({.units = 1})});
  by_name.compile({.optimizer = "adam", .loss = "mse"});
  const auto* wrapped = dynamic_cast<LossScaleOptimizer*>(&by_name.optimizer());
  ASSERT_NE(wrapped, nullptr);
  EXPECT_EQ(wrapped->inner_optimizer()->class_name(), "Adam");
  EXPECT_EQ(wrapped->loss_scale().item<float>(), 32768.f);
  // One that scales already stays as it is.
  const auto own = std::make_shared<LossScaleOptimizer>("sgd", mixed_precision::LossScaleOptions{.initial_scale = 8});
  Sequential given({Dense({.units = 1})});
  given.compile({.optimizer = own, .loss = "mse"});
  EXPECT_EQ(&given.optimizer(), own.get());
}

TEST(MixedPrecision, OnlyFloat16Scales) {
  for (const char* name : {"float32", "mixed_bfloat16", "float16"}) {
    const GlobalPolicyFor policy(name);
    Sequential model({Dense({.units = 1})});
    model.compile({.optimizer = "adam", .loss = "mse"});
    EXPECT_EQ(dynamic_cast<LossScaleOptimizer*>(&model.optimizer()), nullptr) << name;
  }
}

TEST(MixedPrecision, AModelLearns) {
  const GlobalPolicyFor policy("mixed_float16");
  const Line data = points_of_a_line(256);
  for (const bool eagerly : {false, true}) {
    utils::set_random_seed(1);
    Sequential model({Dense({.units = 8, .activation = "relu"}), Dense({.units = 8, .activation = "relu"}),
                      Dense({.units = 1, .dtype = "float32"})});
    model.compile({.optimizer = optimizers::Adam(0.02), .loss = "mse", .metrics = {"mae"}, .run_eagerly = eagerly});
    const History history = model.fit(data.x, data.y, {.batch_size = 32, .epochs = eagerly ? 4 : 20, .verbose = 0});
    EXPECT_LT(history["loss"].back(), history["loss"].front() / (eagerly ? 4 : 40));
    for (const Variable& w : model.weights()) EXPECT_EQ(w.dtype(), float32) << w.name();
    EXPECT_EQ(model.get_layer(0)(data.x).dtype(), float16);
    EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), eagerly ? 32 : 160);
  }
}

// Gradients this small are zero in float16 unless the loss is scaled.
TEST(MixedPrecision, SmallGradientsAreKept) {
  const auto weight_after_a_step = [](bool scaled) {
    const GlobalPolicyFor policy(scaled ? "mixed_float16" : "float32");
    Dense dense({.units = 1, .use_bias = false, .kernel_initializer = "zeros", .dtype = "mixed_float16"});
    Sequential model({std::move(dense)});
    const auto small = [](const Tensor& t, const Tensor& p) { return reduce_mean((p - t) * 1e-5, -1); };
    model.compile({.optimizer = optimizers::SGD(1e8), .loss = small});
    model.train_on_batch(fill({1024, 1}, Tensor(1e-4f)), zeros({1024, 1}));
    return model.get_weights()[0].item<float>();
  };
  // d loss / d w = mean(1e-5 * 1e-4) = 1e-9, below the smallest number of float16.
  EXPECT_NEAR(weight_after_a_step(true), -0.1, 2e-3);
  EXPECT_EQ(weight_after_a_step(false), 0.f) << "without a scale they vanish, so the test can fail";
}

TEST(MixedPrecision, StepsThatOverflowAreLeftOut) {
  const GlobalPolicyFor policy("mixed_float16");
  Sequential model({Dense({.units = 1, .use_bias = false, .kernel_initializer = "ones"})});
  model.compile({.optimizer = optimizers::SGD(0.01), .loss = "mse"});
  const auto& optimizer = dynamic_cast<LossScaleOptimizer&>(model.optimizer());
  // A loss of 100 times 32768 is beyond float16, until the scale has been halved often enough.
  std::vector<float> weights;
  for (int i = 0; i < 12; ++i) {
    model.train_on_batch(Tensor{{10.f}}, Tensor{{0.f}});
    weights.push_back(model.get_weights()[0].item<float>());
  }
  EXPECT_EQ(weights[0], 1.f);
  EXPECT_LT(weights.back(), 1.f);
  EXPECT_TRUE(std::isfinite(weights.back()));
  EXPECT_LT(optimizer.loss_scale().item<float>(), 32768.f);
}

TEST(MixedPrecision, RegularizersAddInFloat32) {
  const GlobalPolicyFor policy("mixed_float16");
  Sequential model({Dense({.units = 1, .kernel_initializer = "ones", .kernel_regularizer = regularizers::l2(1e-5)})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  // 1e-5 beside 1 is lost in float16.
  EXPECT_NEAR(model.test_on_batch(Tensor{{1.f}}, Tensor{{0.f}})["loss"], 1 + 1e-5, 2e-6);
}

}  // namespace
}  // namespace runnel::keras
