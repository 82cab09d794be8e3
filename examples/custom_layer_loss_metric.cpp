// A layer, a loss and a metric of one's own, used together by compile and fit.
#include <cstdio>
#include <exception>

#include "examples/mnist_loader.h"

using namespace runnel;

// y = x w + b, written out.
struct LinearLayer : keras::Layer {
  LinearLayer(Layer* parent, const std::string& attribute, int64_t units) : Layer(parent, attribute), units(units) {}

  void build(const PartialShape& input) override {
    w = add_weight({.name = "w", .shape = {known_dim(input, -1), units}});
    b = add_weight({.name = "b", .shape = {units}, .initializer = "zeros"});
  }
  Tensor call(const Tensor& x, const keras::CallArgs&) override { return matmul(x, w) + b; }

  int64_t units;
  Variable w, b;
};

// As in Keras, labels come from fit as a column beside the rows of the predictions.
Tensor label_vector(const Tensor& y_true) { return reshape(y_true, {-1}); }

// The mean of the squared differences to the labels as one-hot vectors.
struct OneHotSquaredError : keras::Loss {
  Tensor call(const Tensor& y_true, const Tensor& y_pred) override {
    return reduce_mean(square(y_pred - one_hot(label_vector(y_true), 10)), -1);
  }
};

// The share of samples whose largest output is that of the label.
struct Correct : keras::Metric {
  using Metric::Metric;
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor&) override {
    const Tensor right = cast(equal(cast(label_vector(y_true), int64), argmax(y_pred, -1)), float32);
    count.assign_add(reduce_sum(right));
    total.assign_add(cast(size(right), float32));
  }
  Tensor result() const override { return count / total; }

  Variable count = add_weight("count");
  Variable total = add_weight("total");
};

struct Network : keras::Model {
  keras::Flatten flatten{this, "flatten"};
  LinearLayer hidden{this, "hidden", 64};
  LinearLayer output{this, "output", 10};

  Tensor call(const Tensor& images, const keras::CallArgs&) override {
    return nn::softmax(output(nn::relu(hidden(flatten(images)))));
  }
};

int main() try {
  keras::utils::set_random_seed(1);
  const mnist::MNISTLoader data;
  Network model;
  model.compile({.optimizer = "adam", .loss = OneHotSquaredError(), .metrics = {Correct()}});
  model.fit(data.train_data, data.train_label, {.batch_size = 50, .epochs = 1, .verbose = 2});
  const keras::Logs result = model.evaluate(data.test_data, data.test_label, {.batch_size = 50, .verbose = 0});
  std::printf("test accuracy: %.4f\n", result["correct"]);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "custom_layer_loss_metric: %s\n", e.what());
  return 1;
}
