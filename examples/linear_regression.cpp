// The handbook's straight line through two points: a model with one Dense layer of one unit and no activation, trained
// by gradient descent.
#include <iostream>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"

using namespace runnel;

struct Linear : keras::Model {
  keras::layers::Dense dense{this,
                             "dense",
                             {.units = 1,
                              .kernel_initializer = keras::initializers::zeros(),
                              .bias_initializer = keras::initializers::zeros()}};

  Tensor call(const Tensor& input, const keras::CallArgs&) override {
    const Tensor output = dense(input);
    return output;
  }
};

int main() try {
  const Tensor X = constant({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  const Tensor y = constant({{10.0}, {20.0}});

  Linear model;
  keras::optimizers::SGD optimizer({.learning_rate = 0.01});
  for (int i = 0; i < 100; ++i) {
    GradientTape tape;
    const Tensor y_pred = model(X);
    const Tensor loss = reduce_mean(square(y_pred - y));
    const auto grads = tape.gradient(loss, model.variables());
    optimizer.apply_gradients(zip(grads, model.variables()));
  }
  for (const Variable& variable : model.variables()) std::cout << variable << "\n";
  return 0;
} catch (const std::exception& e) {
  std::cerr << "linear_regression: " << e.what() << "\n";
  return 1;
}
