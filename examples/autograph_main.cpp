// The handbook's first function: a step of training, traced once and then run as a graph. `autograph_cnn` times the
// same step with and without it. usage: autograph_main [--num_batches=N]
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>

#include "examples/mnist_loader.h"
#include "examples/mnist_models.h"
#include "examples/options.h"

using namespace runnel;

int main(int argc, char** argv) try {
  const Options options(argc, argv, {{"num_batches", "1000"}});
  const int num_batches = options.number("num_batches");
  const int batch_size = 50;
  const double learning_rate = 0.001;
  mnist::MNISTLoader data_loader;
  mnist::CNN model;
  keras::optimizers::Adam optimizer({.learning_rate = learning_rate});

  auto train_one_step = function([&](const Tensor& X, const Tensor& y) {
    GradientTape tape;
    const Tensor y_pred = model(X);
    Tensor loss = keras::losses::sparse_categorical_crossentropy(y, y_pred);
    loss = reduce_mean(loss);
    // An op of the graph: std::cout would print while the function is traced, and never again.
    print("loss", loss);
    const auto grads = tape.gradient(loss, model.variables());
    optimizer.apply_gradients(zip(grads, model.variables()));
  });

  const auto start_time = std::chrono::steady_clock::now();
  for (int batch_index = 0; batch_index < num_batches; ++batch_index) {
    const auto [X, y] = data_loader.get_batch(batch_size);
    train_one_step(X, y);
  }
  const auto end_time = std::chrono::steady_clock::now();
  std::cout << std::chrono::duration<double>(end_time - start_time).count() << "\n";
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "autograph_main: %s\n", e.what());
  return 1;
}
