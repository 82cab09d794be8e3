// The handbook's claim that a function beats eager execution: 1000 batches of its CNN, op by op and as a graph.
// usage: autograph_cnn [--batches=N] [--batch_size=N]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

#include "examples/mnist_loader.h"
#include "examples/mnist_models.h"
#include "examples/options.h"

using namespace runnel;

int main(int argc, char** argv) try {
  const Options options(argc, argv, {{"batches", "1000"}, {"batch_size", "50"}});
  const int num_batches = options.number("batches");
  const int64_t batch_size = options.number("batch_size");
  keras::utils::set_random_seed(1);
  const mnist::MNISTLoader data;

  const auto batches = data::from_tensor_slices(data.train_data, data.train_label)
                           .shuffle(data.train_data.shape()[0])
                           .repeat()
                           .batch(batch_size)
                           .prefetch(data::AUTOTUNE);

  // One way to train: a model, an optimizer and batches of its own.
  struct Way {
    explicit Way(const char* way_name, const decltype(batches)& its_batches)
        : name(way_name), next(its_batches.make_iterator()) {}
    const char* name;
    mnist::CNN model;
    keras::optimizers::Adam optimizer{0.001};
    data::Iterator<Tensor, Tensor> next;
    double seconds = 0;
    Tensor loss;
  };
  Way eager("eager", batches);
  Way graph("function", batches);
  const auto train_one_step = [](Way& way, const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const Tensor y_pred = way.model(x, {.training = true});
    const Tensor loss = reduce_mean(keras::losses::sparse_categorical_crossentropy(y, y_pred));
    way.optimizer.minimize(loss, way.model.trainable_variables(), tape);
    return loss;
  };
  const auto step = function([&](const Tensor& x, const Tensor& y) { return train_one_step(graph, x, y); },
                             {.name = "train_one_step"});

  // The two take turns: what else happens on the machine meets both.
  const int turns = std::min(num_batches, 10);
  for (int turn = 0; turn < turns; ++turn) {
    for (Way* way : {&eager, &graph}) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = num_batches * turn / turns; i < num_batches * (turn + 1) / turns; ++i) {
        const auto [x, y] = way->next.get_next();
        way->loss = way == &graph ? step(x, y) : train_one_step(*way, x, y);
      }
      way->seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
  }
  for (const Way* way : {&eager, &graph}) {
    std::printf("%s: %d batches in %.2f s, last loss %f\n", way->name, num_batches, way->seconds,
                way->loss.item<float>());
  }
  std::printf("eager / function: %.2f\n", eager.seconds / graph.seconds);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "autograph_cnn: %s\n", e.what());
  return 1;
}
