// The handbook's network for photographs of cats and dogs, fit from JPEG files.
// usage: cats_vs_dogs --data_dir=DIR [--epochs=N] [--batch_size=N] [--image_size=N]
// DIR holds train/cats, train/dogs, valid/cats and valid/dogs.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "examples/options.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"

using namespace runnel;

namespace {

// The images of both kinds below a folder, in batches: decoded and resized by several threads at a time.
data::Dataset<Tensor, Tensor> photographs(const std::string& dir, int64_t size, int64_t batch_size, bool shuffle) {
  std::vector<Bytes> files;
  std::vector<int32_t> labels;
  for (const std::string kind : {"cats", "dogs"}) {
    for (const std::string& file : io::matching_files(dir + "/" + kind + "/*.jpg").to_vector<std::string>()) {
      files.emplace_back(file);
      labels.push_back(kind == "cats" ? 0 : 1);
    }
  }
  if (files.empty()) throw std::runtime_error("no photographs in " + dir + "/cats and " + dir + "/dogs");
  auto names = data::from_tensor_slices(Tensor::of(files), Tensor::of(labels));
  if (shuffle) names = names.shuffle(static_cast<int64_t>(files.size()));
  return names
      .map(
          [size](const Tensor& file, const Tensor& label) {
            const Tensor image = image::decode_jpeg(io::read_file(file), {.channels = 3});
            return std::tuple{image::resize(image, {size, size}) / 255.0, label};
          },
          data::AUTOTUNE)
      .batch(batch_size)
      .prefetch(data::AUTOTUNE);
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options(argc, argv, {{"data_dir", ""}, {"epochs", "3"}, {"batch_size", "32"}, {"image_size", "256"}});
  const std::string dir = options.text("data_dir");
  if (dir.empty()) throw std::runtime_error("--data_dir=DIR names the folder with train/ and valid/");
  const int64_t size = options.number("image_size");
  keras::utils::set_random_seed(1);

  keras::Sequential model(
      {keras::layers::Conv2D({.filters = 32, .kernel_size = 3, .activation = "relu", .input_shape = {size, size, 3}}),
       keras::layers::MaxPooling2D(), keras::layers::Conv2D({.filters = 32, .kernel_size = 5, .activation = "relu"}),
       keras::layers::MaxPooling2D(), keras::layers::Flatten(),
       keras::layers::Dense({.units = 64, .activation = "relu"}),
       keras::layers::Dense({.units = 2, .activation = "softmax"})});
  model.summary();
  model.compile({.optimizer = keras::optimizers::Adam(0.001),
                 .loss = keras::losses::sparse_categorical_crossentropy,
                 .metrics = {keras::metrics::sparse_categorical_accuracy}});
  const int64_t batch_size = options.number("batch_size");
  model.fit(photographs(dir + "/train", size, batch_size, true), {.epochs = options.number("epochs")});
  const keras::Logs result = model.evaluate(photographs(dir + "/valid", size, batch_size, false), {.verbose = 0});
  std::printf("test accuracy: %.4f\n", result["sparse_categorical_accuracy"]);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "cats_vs_dogs: %s\n", e.what());
  return 1;
}
