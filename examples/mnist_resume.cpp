// A training that can be stopped at any time: started again, it goes on where it was. The best weights of all epochs
// are kept in a file that Keras reads. usage: mnist_resume [--num_epochs=N] [--batch_size=N]
#include <cstdio>
#include <exception>

#include "examples/mnist_loader.h"
#include "examples/options.h"

using namespace runnel;

int main(int argc, char** argv) try {
  const Options options(argc, argv, {{"num_epochs", "2"}, {"batch_size", "100"}});
  mnist::MNISTLoader data_loader;
  keras::Sequential model({keras::Flatten(), keras::Dense(100, {.activation = "relu"}), keras::Dropout(0.2),
                           keras::Dense(10, {.activation = "softmax"})});
  model.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  keras::ModelCheckpoint best({.filepath = "./save/best.weights.h5",
                               .monitor = "val_accuracy",
                               .verbose = 1,
                               .save_best_only = true,
                               .save_weights_only = true});
  model.fit(data_loader.train_data, data_loader.train_label,
            {.batch_size = options.number("batch_size"),
             .epochs = options.number("num_epochs"),
             .verbose = 2,
             .callbacks = {best},
             .validation_split = 0.1,
             .resume = "./save/resume"});
  model.load_weights("./save/best.weights.h5");
  const keras::Logs logs = model.evaluate(data_loader.test_data, data_loader.test_label, {.verbose = 0});
  std::printf("test accuracy: %f\n", logs["accuracy"]);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "mnist_resume: %s\n", e.what());
  return 1;
}
