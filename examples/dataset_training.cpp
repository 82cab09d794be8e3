// What the handbook says of tf.data beside its tour (dataset_tutorial): fetching elements, a dataset by name, working
// ahead and in parallel, and training from a dataset. usage: dataset_training [--num_epochs=N]
#include <cstdio>
#include <exception>
#include <iostream>
#include <tuple>

#include "examples/mnist_loader.h"
#include "examples/mnist_models.h"
#include "examples/options.h"

using namespace runnel;

std::tuple<Tensor, Tensor> rot90(Tensor image, Tensor label) {
  image = image::rot90(image);
  return {image, label};
}

void fetch_elements() {
  const Tensor A = constant({1, 2, 3});
  const Tensor B = constant({10, 20, 30});
  const Tensor C = constant({100, 200, 300});

  auto dataset = data::from_tensor_slices(A, B, C);
  for (auto [a, b, c] : dataset) {
    print(a, b, c);
  }

  auto it = dataset.make_iterator();
  const auto [a_0, b_0, c_0] = it.get_next();
  const auto [a_1, b_1, c_1] = it.get_next();
  print(a_0, b_0, c_0);
  print(a_1, b_1, c_1);
}

void load_by_name() {
  auto dataset = keras::datasets::load("mnist", "train", {.as_supervised = true}).as<Tensor, Tensor>();
  for (auto [image, label] : dataset.take(1)) {
    print(shape(image), label);
  }
}

void train_model(int num_epochs) {
  const int batch_size = 50;
  const mnist::MNISTLoader data_loader;
  const Tensor train_data = data_loader.train_data, train_label = data_loader.train_label;
  mnist::MLP model;
  model.compile({.optimizer = keras::optimizers::Adam({.learning_rate = 0.001}),
                 .loss = keras::losses::sparse_categorical_crossentropy,
                 .metrics = {keras::metrics::sparse_categorical_accuracy}});

  model.fit(train_data, train_label, {.batch_size = batch_size, .epochs = num_epochs});

  auto mnist_dataset = data::from_tensor_slices(train_data, train_label);
  mnist_dataset = mnist_dataset.map(rot90, 2);
  mnist_dataset = mnist_dataset.shuffle(10000).batch(batch_size);
  mnist_dataset = mnist_dataset.prefetch(data::experimental::AUTOTUNE);
  model.fit(mnist_dataset, {.epochs = num_epochs});
}

int main(int argc, char** argv) try {
  const Options options(argc, argv, {{"num_epochs", "1"}});
  fetch_elements();
  load_by_name();
  train_model(options.number("num_epochs"));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "dataset_training: %s\n", e.what());
  return 1;
}
