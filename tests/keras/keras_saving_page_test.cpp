// The code of docs/keras_saving.md, so that what is copied from there compiles and runs.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "runnel/keras/keras.h"
#include "runnel/ops/random_state.h"
#include "runnel/runnel.h"
#include "runnel/track/checkpoint.h"
#include "tests/support/temp_dir.h"

namespace runnel::keras_saving_page {

// clang-format off

void weights(keras::Model& model, const std::string& folder) {
  model.save_weights(folder + "/cnn.weights.h5");       // Keras's newer format of HDF5, with the optimizer's state
  model.save_weights(folder + "/cnn.h5");               // Keras's older format of HDF5
  model.save_weights(folder + "/cnn");                  // a checkpoint of TensorFlow, the latest of its folder
  model.load_weights(folder + "/cnn.weights.h5");
  model.load_weights(folder + "/cnn.h5", {.by_name = true, .skip_mismatch = true});
  std::cout << model.load_weights(folder + "/cnn");     // what became of every value, as a table
}

void best(keras::Model& model, const Tensor& x, const Tensor& y, const std::string& folder) {
  keras::ModelCheckpoint saver({.filepath = folder + "/{epoch:02d}-{val_loss:.2f}.weights.h5",
                                .monitor = "val_loss",
                                .save_best_only = true,
                                .save_weights_only = true});
  model.fit(x, y, {.epochs = 5, .callbacks = {saver}, .validation_split = 0.1});
}

void survives(keras::Model& model, const Tensor& x, const Tensor& y, const std::string& folder) {
  model.fit(x, y, {.epochs = 5, .resume = folder});
}

void backup(keras::Model& model, const Tensor& x, const Tensor& y, const std::string& folder) {
  keras::BackupAndRestore backup({.backup_dir = folder, .save_freq = 100});
  model.fit(x, y, {.epochs = 5, .callbacks = {backup}});
}

struct CountSteps : keras::Callback {
  void on_train_batch_end(int64_t, const keras::Logs&) override { ++steps; }
  State save_state() const override { return {{"steps", Tensor(steps)}}; }
  void restore_state(const State& state) override { steps = state.at("steps").item<int64_t>(); }
  int64_t steps = 0;
};

struct Training {
  keras::Sequential model{keras::Input({4}), keras::Dense(8), keras::Dropout(0.5), keras::Dense(3)};
  keras::optimizers::Adam optimizer{{.learning_rate = 0.01}};
  data::Iterator<Tensor, Tensor> batches;
  train::Checkpoint checkpoint{{{"model", model},
                                {"optimizer", optimizer},
                                {"batches", batches},
                                {"random", random::program_state()}}};
  explicit Training(const data::Dataset<Tensor, Tensor>& dataset) : batches(dataset.make_iterator()) {
    optimizer.build(model.trainable_variables());    // before restore: what is made later would draw random numbers
  }
};

// clang-format on

std::shared_ptr<keras::Sequential> small_net() {
  auto model =
      std::make_shared<keras::Sequential>(keras::Input({4}), keras::Dense(8), keras::Dropout(0.5), keras::Dense(3));
  model->compile({.optimizer = "adam", .loss = "mse"});
  return model;
}

TEST(KerasSavingPage, CodeRuns) {
  const test::TempDir dir;
  const Tensor x = random::uniform({40, 4}), y = random::uniform({40, 3});
  const auto model = small_net();
  best(*model, x, y, dir.file("best"));
  weights(*model, dir.path());
  survives(*model, x, y, dir.file("resume"));
  backup(*model, x, y, dir.file("backup"));
  EXPECT_FALSE(Env::posix().list(dir.file("best")).empty());
  EXPECT_TRUE(Env::posix().exists(dir.file("resume/checkpoint")));
  CountSteps counter, again;
  model->fit(x, y, {.batch_size = 10, .verbose = 0, .callbacks = {counter}, .resume = dir.file("counted")});
  EXPECT_EQ(counter.steps, 4);
  model->fit(x, y, {.batch_size = 10, .verbose = 0, .callbacks = {again}, .resume = dir.file("counted")});
  EXPECT_EQ(again.steps, 4);
  Training training(data::from_tensor_slices(x, y).shuffle(8).batch(4));
  training.checkpoint.restore(training.checkpoint.save(dir.file("own"))).assert_consumed();
}

}  // namespace runnel::keras_saving_page
