// The handbook's network with named scopes of variables: its third layer uses the variables of the second.
#include <iostream>
#include <random>
#include <vector>

#include "runnel/compat/v1.h"
#include "runnel/runnel.h"

using namespace runnel;

Tensor dense(const Tensor& inputs, int64_t num_units) {
  const Variable weight = compat::v1::get_variable("weight", {inputs.shape()[1], num_units});
  const Variable bias = compat::v1::get_variable("bias", {num_units});
  return nn::relu(matmul(inputs, weight) + bias);
}

Tensor model(const Tensor& inputs) {
  Tensor x;
  {
    const auto scope = compat::v1::variable_scope("dense1");
    x = dense(inputs, 10);  // dense1/weight and dense1/bias
  }
  {
    const auto scope = compat::v1::variable_scope("dense2");
    x = dense(x, 10);  // dense2/weight and dense2/bias
  }
  {
    const auto scope = compat::v1::variable_scope("dense2", {.reuse = true});  // those once more
    x = dense(x, 10);
  }
  return x;
}

int main() {
  compat::v1::disable_eager_execution();

  const Tensor inputs = compat::v1::placeholder(float32, {10, 32});
  const Tensor outputs = model(inputs);
  for (const Variable& variable : compat::v1::global_variables()) std::cout << variable << "\n";

  compat::v1::Session sess;
  sess.run(compat::v1::global_variables_initializer());
  std::vector<float> random_numbers(10 * 32);
  std::mt19937 engine;
  for (float& number : random_numbers) number = std::uniform_real_distribution<float>()(engine);
  const Tensor outputs_ = sess.run(outputs, {{inputs, Tensor::of(random_numbers, {10, 32})}});
  std::cout << outputs_ << "\n";
}
