// Trains a multilayer perceptron (784-100-10) on the handwritten digits of MNIST, written with nothing but
// variables, ops and a gradient tape. usage: mnist_mlp [--epochs N] [--seed N]
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "runnel/io/datasets.h"
#include "runnel/io/idx.h"
#include "runnel/runnel.h"

using namespace runnel;

// A layer y = x w + b, its weights drawn from Glorot's uniform distribution.
struct Dense {
  Dense(int64_t in, int64_t out, const std::string& name) {
    const double limit = std::sqrt(6.0 / static_cast<double>(in + out));
    w = Variable(random::uniform({in, out}, -limit, limit), {.name = name + "/kernel"});
    b = Variable(zeros({out}), {.name = name + "/bias"});
  }
  Tensor operator()(const Tensor& x) const { return nn::bias_add(matmul(x, w), b); }
  Variable w, b;
};

struct Mlp {
  Dense hidden{784, 100, "hidden"};
  Dense output{100, 10, "output"};

  // Pixels 0..255, [batch, 784], to one logit per digit.
  Tensor operator()(const Tensor& pixels) const { return output(nn::relu(hidden(cast(pixels, float32) / 255))); }
  std::vector<Variable> variables() const { return {hidden.w, hidden.b, output.w, output.b}; }
};

// Kingma and Ba's Adam: one fused update per variable.
class Adam {
 public:
  Adam(std::vector<Variable> variables, double learning_rate) : variables_(std::move(variables)) {
    step_.lr = learning_rate;
    step_.beta1_power = step_.beta2_power = 1;
    for (const Variable& v : variables_) {
      m_.emplace_back(zeros_like(v));
      v_.emplace_back(zeros_like(v));
    }
  }
  void apply(const std::vector<Gradient>& gradients) {
    step_.beta1_power *= step_.beta1;
    step_.beta2_power *= step_.beta2;
    for (size_t i = 0; i < variables_.size(); ++i) {
      training::apply_adam(variables_[i], m_[i], v_[i], step_, gradients[i]);
    }
  }

 private:
  std::vector<Variable> variables_, m_, v_;
  training::AdamStep step_{.epsilon = 1e-7};
};

struct Digits {
  Tensor images;  // uint8 [n, 784]
  Tensor labels;  // int32 [n]

  Digits(const std::string& dir, const std::string& part)
      : images(reshape(load(dir + "/" + part + "-images-idx3-ubyte"), {-1, 784})),
        labels(cast(load(dir + "/" + part + "-labels-idx1-ubyte"), int32)) {}
  int64_t size() const { return labels.num_elements(); }

 private:
  static Tensor load(const std::string& path) {  // the tensor keeps the file's bytes alive
    auto file = std::make_shared<io::Idx>(io::read_idx(path));
    return Tensor::wrap(uint8, Shape(file->dims), file->data.data(), file);
  }
};

void train_model(const Mlp& model, const Digits& digits, int64_t epochs, int64_t batch) {
  const std::vector<Variable> variables = model.variables();
  Adam adam(variables, 0.001);
  const int64_t steps = digits.size() / batch;
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    const Tensor order = random::shuffle(range(static_cast<int32_t>(digits.size())));
    double sum = 0;
    for (int64_t step = 1; step <= steps; ++step) {
      const Tensor rows = order(slice((step - 1) * batch, step * batch));
      GradientTape tape;
      const Tensor logits = model(gather(digits.images, rows));
      const Tensor loss =
          reduce_mean(nn::sparse_softmax_cross_entropy_with_logits(gather(digits.labels, rows), logits));
      adam.apply(tape.gradient(loss, variables));
      sum += loss.item<float>();
      if (step % 100 == 0) {
        std::printf("epoch %d, step %4d of %d: loss %.4f\n", static_cast<int>(epoch), static_cast<int>(step),
                    static_cast<int>(steps), sum / 100);
        sum = 0;
      }
    }
  }
}

float accuracy(const Mlp& model, const Digits& digits) {
  const Tensor guesses = argmax(model(digits.images), -1, int32);
  return reduce_mean(cast(equal(guesses, digits.labels), float32)).item<float>();
}

int main(int argc, char** argv) {
  int64_t epochs = 1, seed = 42;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && std::strcmp(argv[i], "--epochs") == 0) {
      epochs = std::atoll(argv[i + 1]);
    } else if (i + 1 < argc && std::strcmp(argv[i], "--seed") == 0) {
      seed = std::atoll(argv[i + 1]);
    } else {
      std::fprintf(stderr, "usage: mnist_mlp [--epochs N] [--seed N]\n");
      return 2;
    }
  }
  try {
    random::set_seed(seed);
    const std::string dir = io::get_dataset("mnist");
    const Mlp model;
    train_model(model, Digits(dir, "train"), epochs, 50);
    std::printf("test accuracy: %.4f\n", static_cast<double>(accuracy(model, Digits(dir, "t10k"))));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mnist_mlp: %s\n", error.what());
    return 1;
  }
}
