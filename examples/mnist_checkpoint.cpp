// The handbook's network saves itself every 100 batches and comes back in another run.
// usage: mnist_checkpoint [--mode=train|test] [--num_epochs=N] [--batch_size=N] [--learning_rate=X]
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "examples/mnist_loader.h"
#include "examples/mnist_models.h"
#include "examples/options.h"
#include "runnel/track/checkpoint.h"

using namespace runnel;

namespace {

void train_model(mnist::MNISTLoader& data_loader, const Options& options) {
  mnist::MLP model;
  keras::optimizers::Adam optimizer({.learning_rate = options.real("learning_rate")});
  const int batch_size = options.number("batch_size");
  const int num_batches = data_loader.num_train_data / batch_size * options.number("num_epochs");
  train::Checkpoint checkpoint({{"myAwesomeModel", &model}});  // what is saved, and its name
  for (int batch_index = 1; batch_index <= num_batches; ++batch_index) {
    const auto [X, y] = data_loader.get_batch(batch_size);
    GradientTape tape;
    const Tensor y_pred = model(X);
    Tensor loss = keras::losses::sparse_categorical_crossentropy(y, y_pred);
    loss = reduce_mean(loss);
    std::printf("batch %d: loss %f\n", batch_index, loss.item<float>());
    const auto grads = tape.gradient(loss, model.variables());
    optimizer.apply_gradients(zip(grads, model.variables()));
    if (batch_index % 100 == 0) {
      const std::string path = checkpoint.save("./save/model.ckpt");
      std::printf("model saved to %s\n", path.c_str());
    }
  }
}

void test_model(mnist::MNISTLoader& data_loader) {
  mnist::MLP model_to_be_restored;
  train::Checkpoint checkpoint({{"myAwesomeModel", &model_to_be_restored}});  // the name is the one it was saved under
  const auto path = train::latest_checkpoint("./save");
  if (!path) throw std::runtime_error("there is no checkpoint in ./save: train first, with --mode=train");
  const train::RestoreStatus status = checkpoint.restore(path);
  const Tensor y_pred = argmax(model_to_be_restored.predict(data_loader.test_data, {.verbose = 0}), -1);
  status.assert_existing_objects_matched();  // now the model has its variables
  const Tensor hits = equal(cast(y_pred, int32), data_loader.test_label);
  std::printf("test accuracy: %f\n", reduce_mean(cast(hits, float32)).item<float>());
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options(argc, argv,
                        {{"mode", "train"}, {"num_epochs", "1"}, {"batch_size", "50"}, {"learning_rate", "0.001"}});
  const std::string mode = options.choice("mode", {"train", "test"});
  mnist::MNISTLoader data_loader;
  if (mode == "train") train_model(data_loader, options);
  if (mode == "test") test_model(data_loader);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "mnist_checkpoint: %s\n", e.what());
  return 1;
}
