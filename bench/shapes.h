#pragma once

// The matrix products and convolutions both sides measure: the MNIST convolutional network's at batch 50, a small image
// model's at batch 32, single rows and a cube.
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// Row-major C[m,n] = op(A) op(B); a transposed operand is stored the other way round.
struct Matmul {
  std::string name;
  bool ta, tb;
  int m, n, k;
};

inline std::vector<Matmul> matmuls() {
  return {
      {"matmul_dense1_fwd", false, false, 50, 1024, 3136}, {"matmul_dense1_dx", false, true, 50, 3136, 1024},
      {"matmul_dense1_dw", true, false, 3136, 1024, 50},   {"matmul_dense2_fwd", false, false, 50, 10, 1024},
      {"matmul_dense2_dx", false, true, 50, 1024, 10},     {"matmul_dense2_dw", true, false, 1024, 10, 50},
      {"matmul_m1_784x100", false, false, 1, 100, 784},    {"matmul_m1_3136x1024", false, false, 1, 1024, 3136},
      {"matmul_1024", false, false, 1024, 1024, 1024},
  };
}

// Square images and kernels, stride 1, NHWC and HWIO.
struct Conv {
  std::string name;
  int batch, size, in, out, kernel, pad;
  int out_size() const { return size + 2 * pad - kernel + 1; }
};

inline std::vector<Conv> convs() {
  return {
      {"conv2d_mnist1", 50, 28, 1, 32, 5, 2},
      {"conv2d_mnist2", 50, 14, 32, 64, 5, 2},
      {"conv2d_image1", 32, 256, 3, 32, 3, 0},
      {"conv2d_image2", 32, 127, 32, 32, 5, 0},
  };
}

// The pipeline over the images of MNIST.
inline constexpr long kMnistImages = 60000, kMnistBatch = 50;

// What an optimizer updates: the weights of that network, and of a deep one with little in each.
inline std::vector<std::vector<int64_t>> cnn_parameters() {
  return {{5, 5, 1, 32}, {32}, {5, 5, 32, 64}, {64}, {3136, 1024}, {1024}, {1024, 10}, {10}};
}
inline std::vector<std::vector<int64_t>> many_small_parameters() {
  std::vector<std::vector<int64_t>> shapes;
  for (int i = 0; i < 100; ++i) {
    shapes.push_back({16, 16});
    shapes.push_back({16});
  }
  return shapes;
}

}  // namespace bench
