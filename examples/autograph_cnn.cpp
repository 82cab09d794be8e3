// The handbook's claim that a function beats eager execution: 1000 batches of its CNN, op by op and as a graph.
// usage: autograph_cnn [--batches=N] [--batch_size=N]
#include <chrono>
#include <cstdio>
#include <exception>

#include "examples/mnist_models.h"
#include "examples/options.h"

using namespace runnel;

int main(int argc, char** argv) try {
  const Options options(argc, argv, {{"batches", "1000"}, {"batch_size", "50"}});
  const int num_batches = options.number("batches");
  const int64_t batch_size = options.number("batch_size");
  keras::utils::set_random_seed(1);
  const mnist::Data data = mnist::load();

  // Seconds for all batches, with a model and an optimizer of their own.
  const auto time_of = [&](bool as_function) {
    mnist::CNN model;
    keras::optimizers::Adam optimizer(0.001);
    const auto train_one_step = [&](const Tensor& x, const Tensor& y) {
      GradientTape tape;
      const Tensor y_pred = model(x, {.training = true});
      const Tensor loss = reduce_mean(keras::losses::sparse_categorical_crossentropy(y, y_pred));
      optimizer.minimize(loss, model.trainable_variables(), tape);
      return loss;
    };
    const auto step = function(train_one_step, {.name = "train_one_step"});
    const auto batches = data::from_tensor_slices(data.train_data, data.train_label)
                             .shuffle(data.train_data.shape()[0])
                             .repeat()
                             .batch(batch_size)
                             .take(num_batches)
                             .prefetch(data::AUTOTUNE);
    Tensor loss;
    const auto start = std::chrono::steady_clock::now();
    for (auto [x, y] : batches) loss = as_function ? step(x, y) : train_one_step(x, y);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%s: %d batches in %.2f s, last loss %f\n", as_function ? "function" : "eager", num_batches, seconds,
                loss.item<float>());
    return seconds;
  };
  const double eager = time_of(false);
  const double graph = time_of(true);
  std::printf("eager / function: %.2f\n", eager / graph);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "autograph_cnn: %s\n", e.what());
  return 1;
}
