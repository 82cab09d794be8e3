#pragma once

// The handbook's two networks for MNIST, each written in the three ways Keras has.
#include <memory>
#include <string>
#include <utility>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"

namespace mnist {

using namespace runnel;

struct Data {
  Tensor train_data, train_label, test_data, test_label;
};

// Pixels in [0, 1] as [n,28,28,1], labels as int32.
inline Data load() {
  const auto [train, test] = keras::datasets::mnist::load_data();
  const auto pixels = [](const Tensor& images) { return expand_dims(cast(images, float32) / 255.0, -1); };
  return {pixels(train.first), cast(train.second, int32), pixels(test.first), cast(test.second, int32)};
}

struct MLP : keras::Model {
  keras::Flatten flatten{this, "flatten"};
  keras::Dense dense1{this, "dense1", {.units = 100, .activation = nn::relu}};
  keras::Dense dense2{this, "dense2", {.units = 10}};

  Tensor call(const Tensor& inputs, const keras::CallArgs&) override {  // [batch, 28, 28, 1]
    Tensor x = flatten(inputs);                                         // [batch, 784]
    x = dense1(x);                                                      // [batch, 100]
    x = dense2(x);                                                      // [batch, 10]
    return nn::softmax(x);
  }
};

struct CNN : keras::Model {
  keras::Conv2D conv1{this, "conv1", {.filters = 32, .kernel_size = {5, 5}, .padding = "same", .activation = nn::relu}};
  keras::MaxPool2D pool1{this, "pool1", {.pool_size = {2, 2}, .strides = {2, 2}}};
  keras::Conv2D conv2{this, "conv2", {.filters = 64, .kernel_size = {5, 5}, .padding = "same", .activation = nn::relu}};
  keras::MaxPool2D pool2{this, "pool2", {.pool_size = {2, 2}, .strides = {2, 2}}};
  keras::Reshape flatten{this, "flatten", {.target_shape = {7 * 7 * 64}}};
  keras::Dense dense1{this, "dense1", {.units = 1024, .activation = nn::relu}};
  keras::Dense dense2{this, "dense2", {.units = 10}};

  Tensor call(const Tensor& inputs, const keras::CallArgs&) override {
    Tensor x = conv1(inputs);  // [batch, 28, 28, 32]
    x = pool1(x);              // [batch, 14, 14, 32]
    x = conv2(x);              // [batch, 14, 14, 64]
    x = pool2(x);              // [batch, 7, 7, 64]
    x = flatten(x);            // [batch, 7 * 7 * 64]
    x = dense1(x);             // [batch, 1024]
    x = dense2(x);             // [batch, 10]
    return nn::softmax(x);
  }
};

inline std::shared_ptr<keras::Model> sequential(const std::string& model) {
  if (model == "MLP") {
    return std::make_shared<keras::Sequential>(
        std::initializer_list<keras::LayerArg>{keras::Flatten(), keras::Dense({.units = 100, .activation = "relu"}),
                                               keras::Dense({.units = 10}), keras::Softmax()});
  }
  return std::make_shared<keras::Sequential>(std::initializer_list<keras::LayerArg>{
      keras::Conv2D({.filters = 32, .kernel_size = {5, 5}, .padding = "same", .activation = "relu"}),
      keras::MaxPool2D({.pool_size = {2, 2}, .strides = {2, 2}}),
      keras::Conv2D({.filters = 64, .kernel_size = {5, 5}, .padding = "same", .activation = "relu"}),
      keras::MaxPool2D({.pool_size = {2, 2}, .strides = {2, 2}}), keras::Reshape({.target_shape = {7 * 7 * 64}}),
      keras::Dense({.units = 1024, .activation = "relu"}), keras::Dense({.units = 10}), keras::Softmax()});
}

inline std::shared_ptr<keras::Model> functional(const std::string& model) {
  const Tensor inputs = keras::Input({28, 28, 1});
  Tensor x = inputs;
  if (model == "MLP") {
    x = keras::Flatten()(x);
    x = keras::Dense({.units = 100, .activation = "relu"})(x);
  } else {
    x = keras::Conv2D({.filters = 32, .kernel_size = {5, 5}, .padding = "same", .activation = "relu"})(x);
    x = keras::MaxPool2D({.pool_size = {2, 2}, .strides = {2, 2}})(x);
    x = keras::Conv2D({.filters = 64, .kernel_size = {5, 5}, .padding = "same", .activation = "relu"})(x);
    x = keras::MaxPool2D({.pool_size = {2, 2}, .strides = {2, 2}})(x);
    x = keras::Reshape({.target_shape = {7 * 7 * 64}})(x);
    x = keras::Dense({.units = 1024, .activation = "relu"})(x);
  }
  x = keras::Dense({.units = 10})(x);
  const Tensor outputs = keras::Softmax()(x);
  return std::make_shared<keras::Model>(inputs, outputs);
}

inline std::shared_ptr<keras::Model> make_model(const std::string& model, const std::string& mode) {
  if (mode == "sequential") return sequential(model);
  if (mode == "functional") return functional(model);
  if (model == "MLP") return std::make_shared<MLP>();
  return std::make_shared<CNN>();
}

}  // namespace mnist
