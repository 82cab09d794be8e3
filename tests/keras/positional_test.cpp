// The main arguments of layers without their names, as Python takes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

using test::expect_error;
using testing::ElementsAre;

// Given by position and by name, layers are the same.
template <class L>
void expect_same(const L& by_position, const L& by_name) {
  Config a = by_position.get_config(), b = by_name.get_config();
  a.set("name", "same");
  b.set("name", "same");
  EXPECT_EQ(a.to_json(), b.to_json());
}

TEST(KerasPositional, MainArgumentsStandFirst) {
  expect_same(Dense(10), Dense({.units = 10}));
  expect_same(Dense(10, "relu"), Dense({.units = 10, .activation = "relu"}));
  expect_same(Dense(10, {.activation = "relu"}), Dense({.units = 10, .activation = "relu"}));
  expect_same(Dense(10, "relu", {.use_bias = false}), Dense({.units = 10, .activation = "relu", .use_bias = false}));
  EXPECT_EQ(Dense(1, nn::relu).options().activation(Tensor(-1.f)).item<float>(), 0);
  expect_same(Dropout(0.5), Dropout({.rate = 0.5}));
  expect_same(Dropout(0.5, {.seed = 3}), Dropout({.rate = 0.5, .seed = 3}));
  expect_same(Embedding(1000, 16, {.mask_zero = true}),
              Embedding({.input_dim = 1000, .output_dim = 16, .mask_zero = true}));
  expect_same(LSTM(32), LSTM({.units = 32}));
  expect_same(GRU(32, {.return_sequences = true}), GRU({.units = 32, .return_sequences = true}));
  expect_same(LSTMCell(4), LSTMCell({.units = 4}));
  expect_same(layers::Activation("relu"), layers::Activation({.activation = "relu"}));
  expect_same(LeakyReLU(0.2), LeakyReLU({.alpha = 0.2}));
  expect_same(ReLU(6), ReLU({.max_value = 6}));
  expect_same(Rescaling(1. / 127.5, -1), Rescaling({.scale = 1. / 127.5, .offset = -1}));
  expect_same(Resizing(8, 9), Resizing({.height = 8, .width = 9}));
  expect_same(RandomFlip("horizontal"), RandomFlip({.mode = "horizontal"}));
  expect_same(RandomZoom({-0.1, 0.2}), RandomZoom({.height_factor = {-0.1, 0.2}}));
  expect_same(MultiHeadAttention(2, 8), MultiHeadAttention({.num_heads = 2, .key_dim = 8}));
  expect_same(EinsumDense("abc,cd->abd", {3, 4}), EinsumDense({.equation = "abc,cd->abd", .output_shape = {3, 4}}));
  expect_same(Concatenate(1), Concatenate({.axis = 1}));
  expect_same(RepeatVector(3), RepeatVector({.n = 3}));
}

TEST(KerasPositional, NumbersInBracesAreOneArgument) {
  expect_same(Conv2D(32, 3), Conv2D({.filters = 32, .kernel_size = 3}));
  expect_same(Conv2D(32, {3, 5}), Conv2D({.filters = 32, .kernel_size = {3, 5}}));
  expect_same(Conv2D(32, {3, 5}, {.strides = 2}), Conv2D({.filters = 32, .kernel_size = {3, 5}, .strides = 2}));
  expect_same(Conv2D(32, {.kernel_size = 3}), Conv2D({.filters = 32, .kernel_size = 3}));
  const int size = 3;
  expect_same(Conv2DTranspose(8, {size, size}), Conv2DTranspose({.filters = 8, .kernel_size = {3, 3}}));
  expect_same(SeparableConv2D(8, {3, 1}), SeparableConv2D({.filters = 8, .kernel_size = {3, 1}}));
  expect_same(DepthwiseConv2D({3, 1}), DepthwiseConv2D({.kernel_size = {3, 1}}));
  expect_same(MaxPooling2D(3), MaxPooling2D({.pool_size = 3}));
  expect_same(MaxPooling2D({3, 2}), MaxPooling2D({.pool_size = {3, 2}}));
  expect_same(MaxPooling2D({3, 2}, {.strides = 1}), MaxPooling2D({.pool_size = {3, 2}, .strides = 1}));
  expect_same(MaxPooling2D({.strides = 3}), MaxPooling2D({.pool_size = 2, .strides = 3}));
  expect_same(UpSampling2D({2, 3}), UpSampling2D({.size = {2, 3}}));
  expect_same(Reshape({4, -1}), Reshape({.target_shape = {4, -1}}));
  expect_same(Reshape(-1), Reshape({.target_shape = {-1}}));
  expect_same(Permute({2, 1}), Permute({.dims = {2, 1}}));
  expect_same(ZeroPadding2D({1, 2}), ZeroPadding2D({.padding = {1, 2}}));
  expect_same(ZeroPadding2D({{1, 2}, {3, 4}}), ZeroPadding2D({.padding = {{1, 2}, {3, 4}}}));
  expect_same(LayerNormalization({1, 2}), LayerNormalization({.axis = {1, 2}}));
  expect_same(Dot({1, 2}), Dot({.axes = {1, 2}}));
}

struct WithMembers : Model {
  Dense dense{this, "dense", 10};
  Dense named{this, "named", {.units = 3}};
  Conv2D conv{this, "conv", 4, {3, 5}, {.strides = 2}};
  MaxPooling2D pool{this, "pool", {3, 2}};
  MaxPooling2D plain{this, "plain", {}};
  Bidirectional both{this, "both", LSTM(3)};
};

TEST(KerasPositional, MembersPointersAndDerivedLayers) {
  const WithMembers model;
  EXPECT_EQ(model.sublayers().size(), 6u);
  expect_same(model.dense, Dense(10));
  expect_same(model.conv, Conv2D(4, {3, 5}, {.strides = 2}));
  EXPECT_THAT(model.pool.options().pool_size, ElementsAre(3, 2));
  EXPECT_THAT(model.plain.options().pool_size, ElementsAre(2));
  expect_same(*make<Conv2D>(32, {3, 5}), Conv2D(32, {3, 5}));
  expect_same(*make<Dense>(3, {.activation = "relu"}), Dense(3, "relu"));
  expect_same(*std::make_shared<Dense>(3, "relu"), Dense(3, "relu"));
  struct Mine : Dense {
    using Dense::Dense;
  };
  expect_same(Mine(4), Mine({.units = 4}));
}

TEST(KerasPositional, WrappedLayers) {
  const Tensor x = ones({2, 4, 3});
  EXPECT_EQ(Bidirectional(LSTM(5))(x).shape(), (Shape{2, 10}));
  EXPECT_EQ(Bidirectional(LSTM(5), "sum")(x).shape(), (Shape{2, 5}));
  EXPECT_EQ(TimeDistributed(Dense(7))(x).shape(), (Shape{2, 4, 7}));
  EXPECT_EQ(RNN(make<GRUCell>(6))(x).shape(), (Shape{2, 6}));
  EXPECT_EQ(RNN({make<LSTMCell>(3), make<GRUCell>(4)})(x).shape(), (Shape{2, 4}));
  Sequential model({Dense(4), Activation("relu"), layers::Activation("tanh"), Dropout(0.1), Dense(1)});
  EXPECT_EQ(model(x).shape(), (Shape{2, 4, 1}));
  EXPECT_EQ(model.layers()[1]->class_name(), "Activation");
}

TEST(KerasPositional, WhatFitsNoMainArgumentIsRefused) {
  static_assert(!std::constructible_from<Dense, double>, "units are whole");
  static_assert(!std::constructible_from<Dense, bool>);
  static_assert(!std::constructible_from<Dropout, bool>);
  static_assert(!std::constructible_from<Flatten, int>, "it has no main argument");
  static_assert(std::constructible_from<Dropout, int> && std::constructible_from<Dense, size_t>);
  expect_error([] { Dense(10, {.units = 5}); }, Code::invalid_argument,
               "[Dense] a setting is given twice: as the main argument and by its name");
}

struct WithBraces : Model {
  Dense dense{this, "dense", {10}};
  Reshape reshape{this, "reshape", {5, 2}};
  Embedding embedding{this, "embedding", {1000, 64}};
};

TEST(KerasPositional, MainArgumentsInBraces) {
  expect_same(Dense({10}), Dense({.units = 10}));
  expect_same(Dense({10, "relu"}), Dense({.units = 10, .activation = "relu"}));
  expect_same(Reshape({6}), Reshape({.target_shape = {6}}));
  expect_same(Permute({1}), Permute({.dims = {1}}));
  expect_same(Softmax({-1}), Softmax({.axis = {-1}}));
  expect_same(Dropout({0.5}), Dropout({.rate = 0.5}));
  expect_same(MaxPooling2D({2}), MaxPooling2D({.pool_size = 2}));
  expect_same(UpSampling2D({3}), UpSampling2D({.size = 3}));
  expect_same(LSTM({64}), LSTM({.units = 64}));
  expect_same(ReLU({6.}), ReLU({.max_value = 6}));
  expect_same(LeakyReLU({0.2}), LeakyReLU({.alpha = 0.2}));
  expect_same(RepeatVector({3}), RepeatVector({.n = 3}));
  expect_same(Rescaling({1. / 255}), Rescaling({.scale = 1. / 255}));
  expect_same(ZeroPadding2D({2}), ZeroPadding2D({.padding = 2}));
  expect_same(RandomFlip({"vertical"}), RandomFlip({.mode = "vertical"}));
  expect_same(Embedding({1000, 64}), Embedding({.input_dim = 1000, .output_dim = 64}));
  expect_same(Conv2D({32, 3}), Conv2D({.filters = 32, .kernel_size = 3}));
  expect_same(Conv2D(32, {3}), Conv2D({.filters = 32, .kernel_size = 3}));
  expect_same(Bidirectional({LSTM(3, {.name = "l"})}), Bidirectional(LSTM(3, {.name = "l"})));
  expect_same(*make<Dense>({3}), Dense({.units = 3}));
  expect_same(*make<Dense>({.units = 3}), Dense({.units = 3}));
  expect_same(*make<Dense>({}), Dense());
  expect_same(*make<Embedding>({1000, 64}), Embedding(1000, 64));
  const WithBraces model;
  EXPECT_EQ(model.dense.options().units, 10);
  EXPECT_THAT(model.reshape.options().target_shape, ElementsAre(5, 2));
  EXPECT_EQ(model.embedding.options().output_dim, 64);
}

// A layer in a layer of the same kind is not a copy of it.
TEST(KerasPositional, CopiesAreNoMainArguments) {
  const TimeDistributed outer({.layer = TimeDistributed(Dense(2))});
  const LayerPtr inner = outer.options().layer;
  EXPECT_EQ(dynamic_cast<TimeDistributed&>(*inner).options().layer->class_name(), "Dense");
  TimeDistributed from(Dense(2));
  const TimeDistributed to = std::move(from);
  EXPECT_EQ(to.options().layer->class_name(), "Dense");
}

TEST(KerasPositional, WhatIsGivenTwiceIsRefusedWhateverItsType) {
  const std::string twice = "a setting is given twice";
  expect_error([] { Dense(10, "relu", {.activation = "tanh"}); }, Code::invalid_argument, twice);
  expect_error([] { Dense(10, nn::relu, {.activation = "tanh"}); }, Code::invalid_argument, twice);
  expect_error([] { Dense(10, "relu", {.activation = nn::tanh}); }, Code::invalid_argument, twice);
  expect_error([] { ZeroPadding2D(1, {.padding = 2}); }, Code::invalid_argument, twice);
  expect_error([] { RandomRotation(0.1, {.factor = 0.3}); }, Code::invalid_argument, twice);
  expect_error([] { Softmax(1, {.axis = {2}}); }, Code::invalid_argument, twice);
  expect_error([] { Bidirectional(LSTM(3), {.layer = LSTM(4)}); }, Code::invalid_argument, twice);
}

}  // namespace
}  // namespace runnel::keras
