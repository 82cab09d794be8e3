// Trains a small convolutional network on MNIST the way TensorFlow 1 did: a graph with placeholders, run step by step
// in a session. usage: graph_mnist_cnn [STEPS]
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include "runnel/compat/v1.h"
#include "runnel/compat/v1_train.h"
#include "runnel/io/datasets.h"
#include "runnel/io/idx.h"
#include "runnel/runnel.h"

using namespace runnel;
namespace v1 = runnel::compat::v1;

struct Digits {
  Tensor images;  // uint8 [n, 28, 28, 1]
  Tensor labels;  // int32 [n]

  Digits(const std::string& dir, const std::string& part)
      : images(reshape(load(dir + "/" + part + "-images-idx3-ubyte"), {-1, 28, 28, 1})),
        labels(cast(load(dir + "/" + part + "-labels-idx1-ubyte"), int32)) {}

 private:
  static Tensor load(const std::string& path) {  // the tensor keeps the file's bytes alive
    auto file = std::make_shared<io::Idx>(io::read_idx(path));
    return Tensor::wrap(uint8, Shape(file->dims), file->data.data(), file);
  }
};

Tensor convolution(const Tensor& x, const std::string& name, int64_t channels, int64_t filters) {
  const Variable kernel = v1::get_variable(name + "/kernel", {5, 5, channels, filters});
  const Variable bias = v1::get_variable(name + "/bias", {filters}, {.initializer = v1::zeros_initializer()});
  const Tensor y = nn::relu(nn::bias_add(nn::conv2d(x, kernel, {.padding = "SAME"}), bias));
  return nn::max_pool2d(y, {.padding = "SAME"});
}

Tensor dense(const Tensor& x, const std::string& name, int64_t inputs, int64_t outputs) {
  const Variable kernel = v1::get_variable(name + "/kernel", {inputs, outputs});
  const Variable bias = v1::get_variable(name + "/bias", {outputs}, {.initializer = v1::zeros_initializer()});
  return nn::bias_add(matmul(x, kernel), bias);
}

void run(int steps) {
  const std::string dir = io::get_dataset("mnist");
  const Digits train(dir, "train");
  const Digits test(dir, "t10k");
  constexpr int kBatch = 50;

  v1::Graph graph;
  Tensor images;
  Tensor labels;
  Tensor loss;
  Tensor accuracy;
  v1::Operation step;
  v1::Operation init;
  {
    const auto scope = graph.as_default();
    images = v1::placeholder(uint8, {-1, 28, 28, 1}, "images");
    labels = v1::placeholder(int32, {-1}, "labels");
    Tensor x = cast(images, float32) / 255;
    x = convolution(x, "conv1", 1, 32);
    x = convolution(x, "conv2", 32, 64);
    x = nn::relu(dense(reshape(x, {-1, 7 * 7 * 64}), "dense1", 7 * 7 * 64, 1024));
    const Tensor logits = dense(x, "dense2", 1024, 10);
    loss = reduce_mean(nn::sparse_softmax_cross_entropy_with_logits(labels, logits));
    accuracy = reduce_mean(cast(equal(argmax(logits, -1, int32), labels), float32));
    step = v1::train::AdamOptimizer(0.001).minimize(loss);
    init = v1::global_variables_initializer();
  }

  v1::Session session(graph);
  session.run(init);
  Tensor order;
  const int64_t batches = train.labels.num_elements() / kBatch;
  double sum = 0;
  for (int i = 0; i < steps; ++i) {
    const int64_t at = i % batches;
    if (at == 0) order = random::shuffle(range(static_cast<int32_t>(train.labels.num_elements())));
    const Tensor rows = order(slice(at * kBatch, (at + 1) * kBatch));
    const auto results =
        session.run({step, loss}, {{images, gather(train.images, rows)}, {labels, gather(train.labels, rows)}});
    sum += results[1].item<float>();
    if ((i + 1) % 100 == 0) {
      std::printf("step %4d: loss %.4f\n", i + 1, sum / 100);
      sum = 0;
    }
  }
  double right = 0;
  for (int64_t i = 0; i < 10000; i += 1000) {
    right += session.run(accuracy, {{images, test.images.rows(i, i + 1000)}, {labels, test.labels.rows(i, i + 1000)}})
                 .item<float>();
  }
  std::printf("test accuracy: %.4f\n", right / 10);
}

int main(int argc, char** argv) {
  try {
    random::set_seed(42);
    run(argc > 1 ? std::atoi(argv[1]) : 1200);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "graph_mnist_cnn: %s\n", error.what());
    return 1;
  }
}
