// A straight line through two points, as the handbook writes it: a model with one Dense layer of one unit and no
// activation, trained by gradient descent.
#include <iostream>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"

using namespace runnel;

struct Linear : keras::Model {
  keras::Dense dense{this, "dense", {.units = 1, .kernel_initializer = "zeros", .bias_initializer = "zeros"}};

  Tensor call(const Tensor& input, const keras::CallArgs&) override { return dense(input); }
};

int main() try {
  const Tensor x{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}};
  const Tensor y{{10.f}, {20.f}};

  Linear model;
  keras::optimizers::SGD optimizer(0.01);
  for (int i = 0; i < 100; ++i) {
    GradientTape tape;
    const Tensor y_pred = model(x);
    const Tensor loss = reduce_mean(square(y_pred - y));
    optimizer.minimize(loss, model.trainable_variables(), tape);
  }
  for (const Variable& v : model.variables()) std::cout << v << "\n";
  std::cout << model(x) << "\n";
  return 0;
} catch (const std::exception& e) {
  std::cerr << "linear_regression: " << e.what() << "\n";
  return 1;
}
