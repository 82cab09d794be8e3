// The handbook's tour of tf.data: a dataset of two columns, then MNIST: image by image, turned, in batches, shuffled.
// Where the handbook opens a window, a file figure_N.png is written. usage: dataset_tutorial
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <tuple>

#include "examples/plt.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"

using namespace runnel;

std::tuple<Tensor, Tensor> rot90(Tensor image, Tensor label) {
  image = image::rot90(image);
  return {image, label};
}

std::string text(const Tensor& label) { return std::to_string(label.item<uint8_t>()); }

int main() try {
  const Tensor X = constant({2013, 2014, 2015, 2016, 2017});
  const Tensor Y = constant({12000, 14000, 15000, 16500, 17500});

  auto dataset = data::from_tensor_slices(X, Y);

  for (auto [x, y] : dataset) {
    std::cout << x.item<int32_t>() << " " << y.item<int32_t>() << "\n";
  }

  auto [train_data, train_label] = keras::datasets::mnist::load_data().first;
  train_data = expand_dims(cast(train_data, float32) / 255.0, -1);  // [60000, 28, 28, 1]
  auto mnist_dataset = data::from_tensor_slices(train_data, train_label);

  for (auto [image, label] : mnist_dataset) {
    plt::title(text(label));
    plt::imshow(image(all, all, 0));
    plt::show();
    break;  // one picture tells enough: a window waits to be closed, a file does not
  }

  mnist_dataset = mnist_dataset.map(rot90);

  for (auto [image, label] : mnist_dataset) {
    plt::title(text(label));
    plt::imshow(image(all, all, 0));
    plt::show();
    break;
  }

  // Here and below the handbook starts again from the images as they are.
  mnist_dataset = data::from_tensor_slices(train_data, train_label);
  mnist_dataset = mnist_dataset.batch(4);

  for (auto [images, labels] : mnist_dataset) {  // images: [4, 28, 28, 1], labels: [4]
    auto [fig, axs] = plt::subplots(1, 4);
    for (int i = 0; i < 4; ++i) {
      axs[i].set_title(text(labels[i]));
      axs[i].imshow(images(i, all, all, 0));
    }
    plt::show();
    break;
  }

  mnist_dataset = data::from_tensor_slices(train_data, train_label);
  mnist_dataset = mnist_dataset.shuffle(10000).batch(4);

  for (auto [images, labels] : mnist_dataset) {
    auto [fig, axs] = plt::subplots(1, 4);
    for (int i = 0; i < 4; ++i) {
      axs[i].set_title(text(labels[i]));
      axs[i].imshow(images(i, all, all, 0));
    }
    plt::show();
    break;
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "dataset_tutorial: %s\n", e.what());
  return 1;
}
