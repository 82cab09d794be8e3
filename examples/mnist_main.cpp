// The handbook's networks on MNIST, in every way to write a model and to train it.
// usage: mnist_main [--model=MLP|CNN] [--mode=sequential|functional|subclassing] [--training_loop=keras|custom|graph]
//                   [--epochs=N] [--seed=N]
#include <cstdio>
#include <exception>

#include "examples/mnist_models.h"
#include "examples/options.h"

using namespace runnel;

constexpr int64_t kBatchSize = 50;
constexpr double kLearningRate = 0.001;

// model.compile, model.fit, model.evaluate.
double train_with_keras(keras::Model& model, const mnist::Data& data, int epochs) {
  model.compile({.optimizer = keras::optimizers::Adam(kLearningRate),
                 .loss = keras::losses::sparse_categorical_crossentropy,
                 .metrics = {keras::metrics::sparse_categorical_accuracy}});
  model.fit(data.train_data, data.train_label, {.batch_size = kBatchSize, .epochs = epochs});
  const keras::Logs result = model.evaluate(data.test_data, data.test_label, {.batch_size = kBatchSize, .verbose = 0});
  return result["sparse_categorical_accuracy"];
}

// A loop of one's own over batches with a gradient tape; as a graph, each step is a traced function.
double train_by_hand(keras::Model& model, const mnist::Data& data, int epochs, bool graph) {
  keras::optimizers::Adam optimizer(kLearningRate);
  const auto train_one_step = [&](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const Tensor y_pred = model(x, {.training = true});
    const Tensor loss = reduce_mean(keras::losses::sparse_categorical_crossentropy(y, y_pred));
    optimizer.minimize(loss, model.trainable_variables(), tape);
    return loss;
  };
  const auto traced_step = function(train_one_step, {.name = "train_one_step"});
  const auto batches = data::from_tensor_slices(data.train_data, data.train_label)
                           .shuffle(data.train_data.shape()[0])
                           .batch(kBatchSize)
                           .prefetch(data::AUTOTUNE);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    int batch = 0;
    for (auto [x, y] : batches) {
      const Tensor loss = graph ? traced_step(x, y) : train_one_step(x, y);
      if (batch % 100 == 0) std::printf("epoch %d batch %d: loss %f\n", epoch + 1, batch, loss.item<float>());
      ++batch;
    }
  }
  keras::metrics::SparseCategoricalAccuracy accuracy;
  for (auto [x, y] : data::from_tensor_slices(data.test_data, data.test_label).batch(kBatchSize)) {
    accuracy.update_state(y, model.predict(x, {.batch_size = kBatchSize, .verbose = 0}));
  }
  return accuracy.result().item<float>();
}

int main(int argc, char** argv) try {
  const Options options(
      argc, argv,
      {{"model", "MLP"}, {"mode", "sequential"}, {"training_loop", "keras"}, {"epochs", "1"}, {"seed", "1"}});
  const std::string kind = options.choice("model", {"MLP", "CNN"});
  const std::string mode = options.choice("mode", {"sequential", "functional", "subclassing"});
  const std::string loop = options.choice("training_loop", {"keras", "custom", "graph"});
  keras::utils::set_random_seed(options.number("seed"));
  const mnist::Data data = mnist::load();
  const std::shared_ptr<keras::Model> model = mnist::make_model(kind, mode);
  const int epochs = options.number("epochs");
  const double accuracy =
      loop == "keras" ? train_with_keras(*model, data, epochs) : train_by_hand(*model, data, epochs, loop == "graph");
  std::printf("test accuracy: %.4f\n", accuracy);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "mnist_main: %s\n", e.what());
  return 1;
}
