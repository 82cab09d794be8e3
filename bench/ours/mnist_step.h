#pragma once

// A training step of the two MNIST models, written with ops.
#include <functional>
#include <memory>
#include <vector>

#include "bench/common.h"
#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"

namespace bench {

using namespace runnel;

inline Tensor values(const Shape& shape, unsigned seed, float scale = 1) {
  Tensor t = Tensor::empty(float32, shape);
  bench::fill(t.mutable_data<float>(), static_cast<size_t>(t.num_elements()), seed);
  return scale == 1 ? t : t * scale;
}

struct Model {
  std::vector<Variable> variables, m, v;
  Variable beta1_power{Tensor(1.0f)}, beta2_power{Tensor(1.0f)};

  Variable weight(const Shape& shape) {
    variables.emplace_back(values(shape, static_cast<unsigned>(variables.size()) + 1, 0.1f));
    m.emplace_back(zeros(shape));
    v.emplace_back(zeros(shape));
    return variables.back();
  }
  void adam(const std::vector<Gradient>& gradients) {
    beta1_power.assign(beta1_power * 0.9f);
    beta2_power.assign(beta2_power * 0.999f);
    for (size_t i = 0; i < variables.size(); ++i) {
      call_op("ResourceApplyAdam",
              {variables[i].handle(), m[i].handle(), v[i].handle(), beta1_power.value(), beta2_power.value(),
               Tensor(0.001f), Tensor(0.9f), Tensor(0.999f), Tensor(1e-7f), gradients[i].value()});
    }
  }
};

struct Mlp : Model {
  Variable w1 = weight({784, 100}), b1 = weight({100}), w2 = weight({100, 10}), b2 = weight({10});
  static Shape input(int64_t batch) { return {batch, 784}; }
  Tensor logits(const Tensor& x) const { return matmul(nn::relu(matmul(x, w1) + b1), w2) + b2; }
};

struct Cnn : Model {
  Variable k1 = weight({5, 5, 1, 32}), c1 = weight({32}), k2 = weight({5, 5, 32, 64}), c2 = weight({64});
  Variable w1 = weight({3136, 1024}), b1 = weight({1024}), w2 = weight({1024, 10}), b2 = weight({10});
  static Shape input(int64_t batch) { return {batch, 28, 28, 1}; }
  Tensor logits(const Tensor& x) const {
    Tensor y = nn::max_pool2d(nn::relu(nn::bias_add(nn::conv2d(x, k1, {.padding = "SAME"}), c1)));
    y = nn::max_pool2d(nn::relu(nn::bias_add(nn::conv2d(y, k2, {.padding = "SAME"}), c2)));
    return matmul(nn::relu(matmul(reshape(y, {-1, 3136}), w1) + b1), w2) + b2;
  }
};

// The step of a model, traced or not.
template <class M>
std::function<void()> train_step(const std::shared_ptr<M>& model, bool traced) {
  auto body = [model](const Tensor& x, const Tensor& labels) {
    GradientTape tape;
    const Tensor loss = reduce_mean(nn::sparse_softmax_cross_entropy_with_logits(labels, model->logits(x)));
    model->adam(tape.gradient(loss, model->variables));
    return loss;
  };
  const Tensor x = values(M::input(50), 9), labels = range(50) % 10;
  if (!traced) return [=] { body(x, labels); };
  return [=, f = function(body)] { f(x, labels); };
}

}  // namespace bench
