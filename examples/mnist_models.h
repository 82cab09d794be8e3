#pragma once

// The handbook's two networks for MNIST.
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"

namespace mnist {

using namespace runnel;

struct MLP : keras::Model {
  keras::layers::Flatten flatten{this, "flatten"};  // all dimensions but the first (batch_size) become one
  keras::layers::Dense dense1{this, "dense1", {.units = 100, .activation = nn::relu}};
  keras::layers::Dense dense2{this, "dense2", {.units = 10}};

  Tensor call(const Tensor& inputs, const keras::CallArgs&) override {  // [batch_size, 28, 28, 1]
    Tensor x = flatten(inputs);                                         // [batch_size, 784]
    x = dense1(x);                                                      // [batch_size, 100]
    x = dense2(x);                                                      // [batch_size, 10]
    const Tensor output = nn::softmax(x);
    return output;
  }
};

struct CNN : keras::Model {
  keras::layers::Conv2D conv1{this,
                              "conv1",
                              {
                                  .filters = 32,           // how many kernels
                                  .kernel_size = {5, 5},   // what a neuron sees
                                  .padding = "same",       // or "valid"
                                  .activation = nn::relu,  // activation function
                              }};
  keras::layers::MaxPool2D pool1{this, "pool1", {.pool_size = {2, 2}, .strides = 2}};
  keras::layers::Conv2D conv2{
      this, "conv2", {.filters = 64, .kernel_size = {5, 5}, .padding = "same", .activation = nn::relu}};
  keras::layers::MaxPool2D pool2{this, "pool2", {.pool_size = {2, 2}, .strides = 2}};
  keras::layers::Reshape flatten{this, "flatten", {.target_shape = {7 * 7 * 64}}};
  keras::layers::Dense dense1{this, "dense1", {.units = 1024, .activation = nn::relu}};
  keras::layers::Dense dense2{this, "dense2", {.units = 10}};

  Tensor call(const Tensor& inputs, const keras::CallArgs&) override {
    Tensor x = conv1(inputs);  // [batch_size, 28, 28, 32]
    x = pool1(x);              // [batch_size, 14, 14, 32]
    x = conv2(x);              // [batch_size, 14, 14, 64]
    x = pool2(x);              // [batch_size, 7, 7, 64]
    x = flatten(x);            // [batch_size, 7 * 7 * 64]
    x = dense1(x);             // [batch_size, 1024]
    x = dense2(x);             // [batch_size, 10]
    const Tensor output = nn::softmax(x);
    return output;
  }
};

}  // namespace mnist
