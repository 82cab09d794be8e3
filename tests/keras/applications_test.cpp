#include "runnel/keras/applications/mobilenet_v2.h"
#include "runnel/keras/applications/resnet.h"
#include "runnel/keras/layers/dense.h"
#include "runnel/keras/layers/preprocessing.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using test::expect_error;
using test::random_tensor;

std::vector<std::string> layer_names_of(const Model& model) {
  std::vector<std::string> names;
  for (const Layer* layer : model.layers()) names.push_back(layer->name());
  return names;
}
int64_t elements_of(const std::vector<Variable>& weights) {
  int64_t n = 0;
  for (const Variable& w : weights) n += w.shape().num_elements();
  return n;
}

// The numbers of parameters are those that Keras's summary prints.
TEST(KerasApplications, MobileNetV2) {
  clear_session();
  const auto model = applications::mobilenet_v2();
  EXPECT_EQ(model->name(), "mobilenetv2_1.00_224");
  EXPECT_EQ(model->count_params(), 3538984);
  EXPECT_EQ(elements_of(model->trainable_weights()), 3504872);
  EXPECT_EQ(elements_of(model->non_trainable_weights()), 34112);
  const std::vector<std::string> names = layer_names_of(*model);
  EXPECT_EQ(names.size(), 156U);
  EXPECT_EQ(names[1], "Conv1");
  EXPECT_EQ(names[4], "expanded_conv_depthwise");
  EXPECT_EQ(names.back(), "predictions");
  EXPECT_EQ(names[names.size() - 2], "global_average_pooling2d");
  EXPECT_EQ(model->get_layer("block_16_project").weights()[0].shape(), (Shape{1, 1, 960, 320}));
  EXPECT_EQ(model->get_layer("block_15_add").class_name(), "Add");
}

TEST(KerasApplications, MobileNetV2Runs) {
  const auto model = applications::mobilenet_v2({.input_shape = {33, 64, 3}, .alpha = 0.35, .classes = 7});
  const Tensor y = model(random_tensor({2, 33, 64, 3}));
  ASSERT_EQ(y.shape(), (Shape{2, 7}));
  test::expect_close(reduce_sum(y, 1), {1, 1}, {2}, 1e-5);
  const std::shared_ptr<Model> again = model_from_json(model->to_json());
  again->set_weights(model->get_weights());
  const Tensor x = random_tensor({1, 33, 64, 3}, DType::float32, 4);
  test::expect_same_bits((*again)(x), model(x));
  const auto features = applications::mobilenet_v2({.alpha = 0.35, .include_top = false, .pooling = "avg"});
  EXPECT_EQ(features(random_tensor({1, 64, 32, 3})).shape(), (Shape{1, 1280}));
  EXPECT_EQ(features->count_params(), 410208);
  const auto wide = applications::mobilenet_v2({.alpha = 1.4, .include_top = false});
  EXPECT_EQ(wide->count_params(), 4363712);
}

TEST(KerasApplications, ResNet50) {
  clear_session();
  const auto model = applications::resnet50();
  EXPECT_EQ(model->name(), "resnet50");
  EXPECT_EQ(model->count_params(), 25636712);
  EXPECT_EQ(elements_of(model->trainable_weights()), 25583592);
  EXPECT_EQ(elements_of(model->non_trainable_weights()), 53120);
  const std::vector<std::string> names = layer_names_of(*model);
  EXPECT_EQ(names.size(), 177U);
  EXPECT_EQ(names[1], "conv1_pad");
  EXPECT_EQ(names.back(), "predictions");
  EXPECT_EQ(names[names.size() - 2], "avg_pool");
  EXPECT_EQ(model->get_layer("conv5_block3_3_conv").weights()[0].shape(), (Shape{1, 1, 512, 2048}));
}

TEST(KerasApplications, ResNet50Runs) {
  const auto model = applications::resnet50({.include_top = false, .input_shape = {32, 32, 3}});
  EXPECT_EQ((*model)(random_tensor({1, 32, 32, 3}), {.training = true}).shape(), (Shape{1, 1, 1, 2048}));
  EXPECT_EQ(model->count_params(), 23587712);
}

TEST(KerasApplications, AFrozenBaseInAnotherModel) {
  const auto base =
      applications::mobilenet_v2({.input_shape = {32, 32, 3}, .alpha = 0.35, .include_top = false, .pooling = "avg"});
  base->set_trainable(false);
  const Tensor input = Input({32, 32, 3});
  const Tensor x = base(Rescaling({.scale = 1 / 127.5, .offset = -1})(input));
  Model model(input, Dense({.units = 1})(x));
  EXPECT_EQ(elements_of(model.trainable_weights()), 1281);
  EXPECT_EQ(model.count_params(), 410208 + 1281);
  const std::vector<Tensor> before = base->get_weights();
  model(random_tensor({2, 32, 32, 3}), {.training = true});
  const std::vector<Tensor> after = base->get_weights();
  for (size_t i = 0; i < before.size(); ++i) test::expect_same_bits(after[i], before[i]);
}

TEST(KerasApplications, Errors) {
  expect_error(
      [] {
        applications::mobilenet_v2({.input_shape = {16, 224, 3}});
      },
      Code::invalid_argument, "at least 32 x 32, got [16,224,3]");
  expect_error(
      [] {
        applications::resnet50({.include_top = false, .input_shape = {32, 32, 3}, .pooling = "sum"});
      },
      Code::invalid_argument, "[resnet50] pooling must be");
}

}  // namespace
}  // namespace runnel::keras
