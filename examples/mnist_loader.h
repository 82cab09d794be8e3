#pragma once

// The handbook's loader of MNIST. What NumPy does there is plain C++ here: it is done at once, also in programs where
// ops become nodes of a graph.
#include <algorithm>
#include <random>
#include <utility>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"

namespace mnist {

using namespace runnel;

class MNISTLoader {
 public:
  MNISTLoader() {
    const auto [train, test] = keras::datasets::mnist::load_data();
    // Pixels are uint8, 0 to 255: they become floats from 0 to 1, with a dimension for the one channel.
    train_data = pixels(train.first);    // [60000, 28, 28, 1]
    test_data = pixels(test.first);      // [10000, 28, 28, 1]
    train_label = labels(train.second);  // [60000]
    test_label = labels(test.second);    // [10000]
    num_train_data = static_cast<int>(train_data.dim(0));
    num_test_data = static_cast<int>(test_data.dim(0));
  }

  // batch_size elements of the training set, at random.
  std::pair<Tensor, Tensor> get_batch(int batch_size) {
    Tensor X = Tensor::empty(float32, {batch_size, 28, 28, 1});
    Tensor y = Tensor::empty(int32, {batch_size});
    std::uniform_int_distribution<int> random_index(0, num_train_data - 1);
    for (int i = 0; i < batch_size; ++i) {
      const int index = random_index(engine_);
      std::copy_n(train_data.data<float>() + index * kPixels, kPixels, X.mutable_data<float>() + i * kPixels);
      y.mutable_data<int32_t>()[i] = train_label.data<int32_t>()[index];
    }
    return {X, y};
  }

  Tensor train_data, train_label, test_data, test_label;
  int num_train_data = 0, num_test_data = 0;

 private:
  static constexpr int kPixels = 28 * 28;

  static Tensor pixels(const Tensor& images) {
    Tensor scaled = Tensor::empty(float32, {images.dim(0), 28, 28, 1});
    const auto bytes = images.host<uint8_t>();
    std::transform(bytes.begin(), bytes.end(), scaled.mutable_data<float>(),
                   [](uint8_t pixel) { return static_cast<float>(pixel) / 255.0f; });
    return scaled;
  }
  static Tensor labels(const Tensor& bytes) {
    const auto numbers = bytes.host<uint8_t>();
    return Tensor::of(std::vector<int32_t>(numbers.begin(), numbers.end()));
  }

  std::mt19937 engine_{std::random_device()()};
};

}  // namespace mnist
