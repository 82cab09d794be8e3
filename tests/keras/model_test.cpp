// Models in their three forms: the same outputs, gradients and descriptions; names, tables, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

using test::expect_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct TinyMlp : Model {
  Flatten flatten{this, "flatten"};
  Dense dense1{this, "dense1", {.units = 5, .activation = nn::relu}};
  Dense dense2{this, "dense2", {.units = 3}};
  Tensor call(const Tensor& x, const CallArgs&) override { return nn::softmax(dense2(dense1(flatten(x)))); }
};

std::vector<float> to_floats(const Tensor& t) { return t.to_vector<float>(); }

std::shared_ptr<Model> tiny_sequential() {
  return std::make_shared<Sequential>(std::initializer_list<LayerArg>{
      Flatten(), Dense({.units = 5, .activation = "relu"}), Dense({.units = 3}), Softmax()});
}

std::shared_ptr<Model> tiny_functional() {
  const Tensor x = Input({2, 4});
  Tensor y = Dense({.units = 5, .activation = "relu"})(Flatten()(x));
  y = nn::softmax(Dense({.units = 3})(y));  // an op between layers
  return std::make_shared<Model>(x, y);
}

TEST(KerasModel, ThreeFormsGiveTheSameOutputsLossesAndGradients) {
  const Tensor x = random::stateless_normal({6, 2, 4}, {1, 2});
  const Tensor labels{0, 1, 2, 2, 1, 0};
  const std::vector<std::shared_ptr<Model>> models{std::make_shared<TinyMlp>(), tiny_sequential(), tiny_functional()};
  std::vector<std::vector<float>> outputs;
  std::vector<float> losses;
  std::vector<std::vector<std::vector<float>>> gradients;
  for (const auto& model : models) {
    (*model)(x);
    model->set_weights({random::stateless_normal({8, 5}, {3, 4}), random::stateless_normal({5}, {5, 6}),
                        random::stateless_normal({5, 3}, {7, 8}), random::stateless_normal({3}, {9, 10})});
    GradientTape tape;
    const Tensor y = (*model)(x);
    const Tensor loss = reduce_mean(losses::sparse_categorical_crossentropy(labels, y));
    outputs.push_back(to_floats(y));
    losses.push_back(loss.item<float>());
    gradients.emplace_back();
    for (const Gradient& g : tape.gradient(loss, model->trainable_variables()))
      gradients.back().push_back(to_floats(g));
  }
  for (size_t i = 1; i < models.size(); ++i) {
    EXPECT_EQ(outputs[i], outputs[0]);
    EXPECT_EQ(losses[i], losses[0]);
    EXPECT_EQ(gradients[i], gradients[0]);
  }
  EXPECT_EQ(gradients[0].size(), 4u);
}

TEST(KerasModel, WeightsAndLayersAreNamedAsKerasNamesThem) {
  clear_session();
  TinyMlp subclassed;
  subclassed(zeros({1, 2, 4}));
  std::vector<std::string> names;
  for (const Variable& v : subclassed.weights()) names.push_back(v.name());
  EXPECT_THAT(names, ElementsAre("tiny_mlp/dense/kernel", "tiny_mlp/dense/bias", "tiny_mlp/dense_1/kernel",
                                 "tiny_mlp/dense_1/bias"));
  EXPECT_EQ(subclassed.edges()[1].name, "dense1");
  EXPECT_NE(subclassed.dense1.find_edge("kernel"), nullptr);

  const auto functional = tiny_functional();
  names.clear();
  for (const Trackable::Edge& edge : functional->children()) names.push_back(edge.name);
  EXPECT_THAT(names, ElementsAre("layer-0", "layer-1", "layer_with_weights-0", "layer-2", "layer_with_weights-1",
                                 "layer-3", "layer-4"));
  EXPECT_EQ(functional->weights()[0].name(), "dense_2/kernel");
}

TEST(KerasModel, SummaryIsKerasTable) {
  clear_session();
  Sequential model({Input({28, 28}), Flatten(), Dense({.units = 100, .activation = "relu"}), Dense({.units = 10})});
  std::ostringstream out;
  model.summary(out);
  EXPECT_EQ(out.str(),
            "Model: \"sequential\"\n"
            "_________________________________________________________________\n"
            " Layer (type)                Output Shape              Param #   \n"
            "=================================================================\n"
            " flatten (Flatten)           (None, 784)               0         \n"
            "                                                                 \n"
            " dense (Dense)               (None, 100)               78500     \n"
            "                                                                 \n"
            " dense_1 (Dense)             (None, 10)                1010      \n"
            "                                                                 \n"
            "=================================================================\n"
            "Total params: 79510 (310.59 KB)\n"
            "Trainable params: 79510 (310.59 KB)\n"
            "Non-trainable params: 0 (0.00 Byte)\n"
            "_________________________________________________________________\n");
}

TEST(KerasModel, SummaryTellsWhatIsConnectedWhereLayersBranch) {
  clear_session();
  const Tensor a = Input({4}, {.name = "a"});
  const Tensor b = Input({4}, {.name = "b"});
  const auto shared = make<Dense>({.units = 3, .name = "shared"});
  const Tensor sum = Add()(std::vector<Tensor>{shared(a), shared(b)});
  const Model model(std::vector<Tensor>{a, b}, sum);
  std::ostringstream out;
  model.summary(out);
  EXPECT_THAT(out.str(), HasSubstr(" Connected to"));
  EXPECT_THAT(out.str(), HasSubstr("['a[0][0]',"));
  EXPECT_THAT(out.str(), HasSubstr("'shared[1][0]']"));
  EXPECT_EQ(model.weights().size(), 2u);  // shared
}

TEST(KerasModel, SeveralInputsAndOutputs) {
  const Tensor a = Input({2});
  const Tensor b = Input({2});
  const Tensor product = Multiply()(std::vector<Tensor>{a, b});
  Model model(std::vector<Tensor>{a, b}, std::map<std::string, Tensor>{{"product", product}, {"twice", a * 2.0}});
  const Nest out = model(Nest(std::vector<Tensor>{Tensor{{1.f, 2.f}}, Tensor{{3.f, 4.f}}}));
  EXPECT_THAT(to_floats(out["product"].leaf()), ElementsAre(3, 8));
  EXPECT_THAT(to_floats(out["twice"].leaf()), ElementsAre(2, 4));
}

TEST(KerasModel, AnOutputThatNeedsAnotherInputIsDisconnected) {
  const Tensor a = Input({2});
  const Tensor b = Input({2}, {.name = "forgotten"});
  const Tensor sum = Add()(std::vector<Tensor>{a, b});
  test::expect_error([&] { Model(a, sum); }, Code::invalid_argument, "graph disconnected");
  test::expect_error([&] { Model(a, sum); }, Code::invalid_argument, "'forgotten'");
}

TEST(KerasModel, ConfigurationAndBack) {
  const auto model = tiny_sequential();
  (*model)(zeros({1, 2, 4}));
  const ModelPtr copy = model_from_json(model->to_json());
  EXPECT_EQ(copy->to_json(), model->to_json());
  copy->set_weights(model->get_weights());
  const Tensor x = random::stateless_normal({3, 2, 4}, {1, 2});
  EXPECT_EQ(to_floats((*copy)(x)), to_floats((*model)(x)));

  const Tensor in = Input({4});
  const auto shared = make<Dense>({.units = 4});
  const Tensor out = Add()(std::vector<Tensor>{shared(shared(in)), in});
  const Model branching(in, out);
  const ModelPtr cloned = clone_model(branching);
  EXPECT_EQ(cloned->weights().size(), 2u);
  cloned->set_weights(branching.get_weights());
  const Tensor x4 = random::stateless_normal({3, 4}, {1, 2});
  EXPECT_EQ(to_floats((*cloned)(x4)), to_floats(const_cast<Model&>(branching)(x4)));
}

TEST(KerasModel, FrozenLayersHaveNoTrainableWeights) {
  const auto model = tiny_sequential();
  (*model)(zeros({1, 2, 4}));
  EXPECT_EQ(model->trainable_weights().size(), 4u);
  model->get_layer(1).set_trainable(false);
  EXPECT_EQ(model->trainable_weights().size(), 2u);
  EXPECT_EQ(model->non_trainable_weights().size(), 2u);
  EXPECT_EQ(model->weights().size(), 4u);
  model->set_trainable(false);
  EXPECT_TRUE(model->trainable_weights().empty());
}

TEST(KerasModel, TrainingIsKnownToLayersInside) {
  struct Told : Layer {
    using Layer::Layer;
    Tensor call(const Tensor& x, const CallArgs& args) override {
      told.push_back(*args.training);
      return x;
    }
    std::vector<bool> told;
  };
  struct Outer : Model {
    Told inner{this, "inner"};
    Tensor call(const Tensor& x, const CallArgs&) override { return inner(x); }
  };
  Outer model;
  model(zeros({1}));
  model(zeros({1}), {.training = true});
  model(zeros({1}), {.training = false});
  EXPECT_THAT(model.inner.told, ElementsAre(false, true, false));
}

TEST(KerasModel, ErrorsNameLayersAndShapes) {
  const auto model = tiny_functional();
  test::expect_error([&] { (*model)(zeros({3, 5})); }, Code::invalid_argument, "got [3,5]");
  Dense dense({.units = 3, .name = "fc"});
  dense(zeros({2, 4}));
  test::expect_error(
      [&] {
        dense(zeros({2, 5}));
      },
      Code::invalid_argument,
      "layer 'fc' (Dense) is incompatible with it: expected size 4 at axis -1, found shape [2,5]");
  test::expect_error([&] { model->get_layer("nothing"); }, Code::not_found, "has no layer 'nothing'");
  test::expect_error([&] { model->set_weights({zeros({1})}); }, Code::invalid_argument, "has 4 weights");
  Dense stack_made({.units = 3});
  test::expect_error([&] { stack_made(Input({3})); }, Code::failed_precondition, "keras::make<Dense>");
  struct Nothing : Layer {};
  Nothing nothing;
  test::expect_error([&] { nothing(zeros({1})); }, Code::unimplemented, "has no `call`");
}

TEST(KerasModel, RegularizersAddToTheLosses) {
  Dense dense(
      {.units = 1, .use_bias = false, .kernel_initializer = "ones", .kernel_regularizer = regularizers::l2(0.5)});
  dense(zeros({1, 3}));
  ASSERT_EQ(dense.losses().size(), 1u);
  EXPECT_FLOAT_EQ(dense.losses()[0].item<float>(), 1.5f);
}

TEST(KerasModel, WhatGoesWithACallIsWrittenDown) {
  const Tensor in = Input({4, 6});
  const auto attention = make<MultiHeadAttention>({.num_heads = 2, .key_dim = 3});
  CallArgs causal;
  causal.use_causal_mask = true;
  const Model model(in, (*attention)(Nest::list({in, in}), causal));
  const ModelPtr copy = model_from_json(model.to_json());
  EXPECT_EQ(copy->to_json(), model.to_json());
  copy->set_weights(model.get_weights());
  const Tensor x = random::stateless_normal({2, 4, 6}, {1, 2});
  const Tensor changed = concat({x(all, slice(0, 3)), ones({2, 1, 6})}, 1);
  const auto start_of = [](const Tensor& y) { return y(all, slice(0, 3)).to_vector<float>(); };
  EXPECT_EQ(start_of((*copy)(x)), start_of((*copy)(changed))) << "no position sees those after it";
  const Model fixed(in, keras::LSTM({.units = 2})(in, {.mask = Tensor{{true, false, true, true}}}));
  expect_error([&] { fixed.to_json(); }, Code::unimplemented, "constant mask");
}

TEST(KerasModel, DescribedStatesAreInputs) {
  const Tensor in = Input({5, 3}, {.name = "in"}), h = Input({2}, {.name = "h"}), c = Input({2}, {.name = "c"});
  const auto lstm = make<keras::LSTM>({.units = 2});
  Model model(std::vector<Tensor>{in, h, c}, lstm(in, CallArgs{.initial_state = {h, c}}));
  const Tensor x = random::stateless_normal({4, 5, 3}, {1, 2});
  const Tensor start = ones({4, 2}), other = zeros({4, 2});
  const Tensor expected = (*lstm)(x, {.initial_state = {start, other}});
  EXPECT_EQ(model(Nest(std::vector<Tensor>{x, start, other})).leaf().to_vector<float>(), expected.to_vector<float>());
  EXPECT_EQ(model_from_json(model.to_json())->to_json(), model.to_json());
  expect_error([&] { lstm(in, CallArgs{.mask = Input({5}, {.dtype = bool_})}); }, Code::unimplemented, "mask");
}

}  // namespace
}  // namespace runnel::keras
