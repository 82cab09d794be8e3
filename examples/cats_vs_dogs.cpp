// The handbook's network for photographs of cats and dogs, fit from JPEG files.
// usage: cats_vs_dogs --data_dir=DIR [--num_epochs=N]
// DIR holds train/cats, train/dogs, valid/cats and valid/dogs.
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <tuple>

#include "examples/options.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"

using namespace runnel;

std::tuple<Tensor, Tensor> decode_and_resize(const Tensor& filename, const Tensor& label) {
  const Tensor image_string = io::read_file(filename);            // the bytes of the file
  const Tensor image_decoded = image::decode_jpeg(image_string);  // the picture
  const Tensor image_resized = image::resize(image_decoded, {256, 256}) / 255.0;
  return {image_resized, label};
}

int main(int argc, char** argv) try {
  const Options options(argc, argv, {{"data_dir", "cats_vs_dogs"}, {"num_epochs", "10"}});
  const int num_epochs = options.number("num_epochs");
  const int batch_size = 32;
  const double learning_rate = 0.001;
  const std::string data_dir = options.folder("data_dir");
  const std::string train_cats_dir = data_dir + "/train/cats/";
  const std::string train_dogs_dir = data_dir + "/train/dogs/";
  const std::string test_cats_dir = data_dir + "/valid/cats/";
  const std::string test_dogs_dir = data_dir + "/valid/dogs/";

  // The data to train with.
  const Tensor train_cat_filenames = io::matching_files(train_cats_dir + "*");
  const Tensor train_dog_filenames = io::matching_files(train_dogs_dir + "*");
  const Tensor train_filenames = concat({train_cat_filenames, train_dog_filenames}, -1);
  const Tensor train_labels =
      concat({zeros(train_cat_filenames.shape(), int32), ones(train_dog_filenames.shape(), int32)}, -1);

  auto train_dataset = data::from_tensor_slices(train_filenames, train_labels);
  train_dataset = train_dataset.map(decode_and_resize, data::experimental::AUTOTUNE);
  // As if from a buffer of buffer_size elements: one at random is taken out, the next takes its place.
  train_dataset = train_dataset.shuffle(23000);
  train_dataset = train_dataset.batch(batch_size);
  train_dataset = train_dataset.prefetch(data::experimental::AUTOTUNE);

  keras::Sequential model({
      keras::layers::Conv2D({.filters = 32, .kernel_size = 3, .activation = "relu", .input_shape = {256, 256, 3}}),
      keras::layers::MaxPooling2D(),
      keras::layers::Conv2D({.filters = 32, .kernel_size = 5, .activation = "relu"}),
      keras::layers::MaxPooling2D(),
      keras::layers::Flatten(),
      keras::layers::Dense({.units = 64, .activation = "relu"}),
      keras::layers::Dense({.units = 2, .activation = "softmax"}),
  });

  model.compile({.optimizer = keras::optimizers::Adam({.learning_rate = learning_rate}),
                 .loss = keras::losses::sparse_categorical_crossentropy,
                 .metrics = {keras::metrics::sparse_categorical_accuracy}});

  model.fit(train_dataset, {.epochs = num_epochs});

  // The data to test with.
  const Tensor test_cat_filenames = io::matching_files(test_cats_dir + "*");
  const Tensor test_dog_filenames = io::matching_files(test_dogs_dir + "*");
  const Tensor test_filenames = concat({test_cat_filenames, test_dog_filenames}, -1);
  const Tensor test_labels =
      concat({zeros(test_cat_filenames.shape(), int32), ones(test_dog_filenames.shape(), int32)}, -1);

  auto test_dataset = data::from_tensor_slices(test_filenames, test_labels);
  test_dataset = test_dataset.map(decode_and_resize);
  test_dataset = test_dataset.batch(batch_size);

  for (const std::string& name : model.metrics_names()) std::cout << name << " ";
  std::cout << "\n" << model.evaluate(test_dataset) << "\n";
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "cats_vs_dogs: %s\n", e.what());
  return 1;
}
