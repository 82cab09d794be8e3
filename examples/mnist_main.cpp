// The handbook's networks on MNIST, in every way to write a model and to train it.
// usage: mnist_main [--model=MLP|CNN] [--mode=sequential|functional|subclassing] [--training_loop=keras|custom|graph]
//                   [--num_epochs=N]
// The last three checkpoints of the training stay in ./save.
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>

#include "examples/mnist_loader.h"
#include "examples/mnist_models.h"
#include "examples/options.h"
#include "runnel/compat/v1_train.h"
#include "runnel/track/checkpoint_manager.h"
#include "runnel/track/v1_saver.h"

using namespace runnel;

int main(int argc, char** argv) try {
  const Options options(argc, argv,
                        {{"model", "MLP"}, {"mode", "sequential"}, {"training_loop", "custom"}, {"num_epochs", "1"}});
  const std::string kind = options.choice("model", {"MLP", "CNN"});
  const std::string mode = options.choice("mode", {"sequential", "functional", "subclassing"});
  const std::string training_loop = options.choice("training_loop", {"keras", "custom", "graph"});
  const int num_epochs = options.number("num_epochs");
  const int batch_size = 50;
  const double learning_rate = 0.001;

  if (training_loop == "graph") {
    compat::v1::disable_eager_execution();
  }

  std::shared_ptr<keras::Model> made;
  if (kind == "MLP") {
    if (mode == "sequential") {
      made = std::make_shared<keras::models::Sequential>(keras::models::Sequential({
          keras::layers::Flatten(),
          keras::layers::Dense({.units = 100, .activation = nn::relu}),
          keras::layers::Dense({.units = 10}),
          keras::layers::Softmax(),
      }));
    }
    if (mode == "functional") {
      const Tensor inputs = keras::Input({28, 28, 1});
      Tensor x = keras::layers::Flatten()(inputs);
      x = keras::layers::Dense({.units = 100, .activation = nn::relu})(x);
      x = keras::layers::Dense({.units = 10})(x);
      const Tensor outputs = keras::layers::Softmax()(x);
      made = std::make_shared<keras::Model>(inputs, outputs);
    }
    if (mode == "subclassing") {
      made = std::make_shared<mnist::MLP>();
    }
  }
  if (kind == "CNN") {
    if (mode == "sequential") {
      made = std::make_shared<keras::models::Sequential>(keras::models::Sequential({
          keras::layers::Conv2D({.filters = 32, .kernel_size = {5, 5}, .padding = "same", .activation = nn::relu}),
          keras::layers::MaxPool2D({.pool_size = {2, 2}, .strides = 2}),
          keras::layers::Conv2D({.filters = 64, .kernel_size = {5, 5}, .padding = "same", .activation = nn::relu}),
          keras::layers::MaxPool2D({.pool_size = {2, 2}, .strides = 2}),
          keras::layers::Reshape({.target_shape = {7 * 7 * 64}}),
          keras::layers::Dense({.units = 1024, .activation = nn::relu}),
          keras::layers::Dense({.units = 10}),
          keras::layers::Softmax(),
      }));
    }
    if (mode == "functional") {
      const Tensor inputs = keras::Input({28, 28, 1});
      Tensor x = keras::layers::Conv2D(
          {.filters = 32, .kernel_size = {5, 5}, .padding = "same", .activation = nn::relu})(inputs);
      x = keras::layers::MaxPool2D({.pool_size = {2, 2}, .strides = 2})(x);
      x = keras::layers::Conv2D({.filters = 64, .kernel_size = {5, 5}, .padding = "same", .activation = nn::relu})(x);
      x = keras::layers::MaxPool2D({.pool_size = {2, 2}, .strides = 2})(x);
      x = keras::layers::Reshape({.target_shape = {7 * 7 * 64}})(x);
      x = keras::layers::Dense({.units = 1024, .activation = nn::relu})(x);
      x = keras::layers::Dense({.units = 10})(x);
      const Tensor outputs = keras::layers::Softmax()(x);
      made = std::make_shared<keras::Model>(inputs, outputs);
    }
    if (mode == "subclassing") {
      made = std::make_shared<mnist::CNN>();
    }
  }
  keras::Model& model = *made;

  mnist::MNISTLoader data_loader;
  train::Checkpoint checkpoint({{"myAwesomeModel", &model}});
  train::CheckpointManager manager(checkpoint,
                                   {.directory = "./save", .checkpoint_name = "model.ckpt", .max_to_keep = 3});
  if (training_loop == "keras") {
    model.compile({.optimizer = keras::optimizers::Adam({.learning_rate = 0.001}),
                   .loss = keras::losses::sparse_categorical_crossentropy,
                   .metrics = {keras::metrics::sparse_categorical_accuracy}});
    model.fit(data_loader.train_data, data_loader.train_label, {.batch_size = batch_size, .epochs = num_epochs});
    manager.save(data_loader.num_train_data / batch_size * num_epochs);
    std::cout << model.evaluate(data_loader.test_data, data_loader.test_label) << "\n";
  }
  if (training_loop == "custom") {
    keras::optimizers::Adam optimizer({.learning_rate = learning_rate});
    int num_batches = data_loader.num_train_data / batch_size * num_epochs;
    for (int batch_index = 0; batch_index < num_batches; ++batch_index) {
      const auto [X, y] = data_loader.get_batch(batch_size);
      GradientTape tape;
      const Tensor y_pred = model(X);
      Tensor loss = keras::losses::sparse_categorical_crossentropy(y, y_pred);
      loss = reduce_mean(loss);
      std::printf("batch %d: loss %f\n", batch_index, loss.item<float>());
      const auto grads = tape.gradient(loss, model.variables());
      optimizer.apply_gradients(zip(grads, model.variables()));
      if ((batch_index + 1) % 100 == 0) manager.save(batch_index + 1);
    }

    keras::metrics::SparseCategoricalAccuracy sparse_categorical_accuracy;
    num_batches = data_loader.num_test_data / batch_size;
    for (int batch_index = 0; batch_index < num_batches; ++batch_index) {
      const int start_index = batch_index * batch_size, end_index = (batch_index + 1) * batch_size;
      const Tensor y_pred = model.predict(data_loader.test_data.rows(start_index, end_index), {.verbose = 0});
      sparse_categorical_accuracy.update_state(data_loader.test_label.rows(start_index, end_index), y_pred);
    }
    std::printf("test accuracy: %f\n", sparse_categorical_accuracy.result().item<float>());
  }
  if (training_loop == "graph") {
    compat::v1::train::AdamOptimizer optimizer(learning_rate);
    int num_batches = data_loader.num_train_data / batch_size * num_epochs;
    // The graph.
    const Tensor X_placeholder = compat::v1::placeholder(float32, {-1, 28, 28, 1}, "X");
    const Tensor y_placeholder = compat::v1::placeholder(int32, {-1}, "y");
    Tensor y_pred = model(X_placeholder);
    Tensor loss = keras::losses::sparse_categorical_crossentropy(y_placeholder, y_pred);
    loss = reduce_mean(loss);
    const compat::v1::Operation train_op = optimizer.minimize(loss);
    keras::metrics::SparseCategoricalAccuracy sparse_categorical_accuracy;
    compat::v1::train::Saver saver({.max_to_keep = 3});
    // The session.
    compat::v1::Session sess;
    sess.run(compat::v1::global_variables_initializer());
    for (int batch_index = 0; batch_index < num_batches; ++batch_index) {
      const auto [X, y] = data_loader.get_batch(batch_size);
      // run() feeds the data into nodes of the graph, trains, and gives the loss.
      const auto [_, loss_value] = sess.run({train_op, loss}, {{X_placeholder, X}, {y_placeholder, y}});
      std::printf("batch %d: loss %f\n", batch_index, loss_value.item<float>());
      if ((batch_index + 1) % 100 == 0) saver.save(sess, "./save/model.ckpt", batch_index + 1);
    }

    num_batches = data_loader.num_test_data / batch_size;
    for (int batch_index = 0; batch_index < num_batches; ++batch_index) {
      const int start_index = batch_index * batch_size, end_index = (batch_index + 1) * batch_size;
      y_pred = model.predict(data_loader.test_data.rows(start_index, end_index), {.verbose = 0});
      sess.run(compat::v1::updates([&] {
        sparse_categorical_accuracy.update_state(data_loader.test_label.rows(start_index, end_index), y_pred);
      }));
    }
    std::printf("test accuracy: %f\n", sess.run(sparse_categorical_accuracy.result()).item<float>());
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "mnist_main: %s\n", e.what());
  return 1;
}
