// ModelCheckpoint: which files it writes when, what it prints, what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "runnel/track/checkpoint_contents.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::keras {
namespace {

using test::expect_error;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Tells a ModelCheckpoint what fit would, with values of our own.
class SavingCallback : public testing::Test {
 protected:
  SavingCallback() { model_.compile({.optimizer = "sgd", .loss = "mse"}); }

  std::string file(const std::string& name) const { return dir_.file(name); }
  std::vector<std::string> files() const { return Env::posix().list(dir_.path()); }
  // What is printed while epochs end with these values.
  std::string after_epochs(ModelCheckpoint& callback, const std::vector<double>& values,
                           const std::string& name = "val_loss") {
    callback.set_model(&model_);
    testing::internal::CaptureStdout();
    callback.on_train_begin({});
    for (const double value : values) {
      Logs logs;
      logs.set(name, value);
      callback.on_epoch_begin(epoch_, {});
      callback.on_epoch_end(epoch_++, logs);
    }
    return testing::internal::GetCapturedStdout();
  }

  TempDir dir_;
  Sequential model_{Input({2}), Dense(1)};
  int64_t epoch_ = 0;
};

TEST_F(SavingCallback, NamesOfFiles) {
  ModelCheckpoint callback(
      {.filepath = file("sub/{epoch:02d}-{val_loss:.2f}-{{x}}.h5"), .verbose = 1, .save_weights_only = true});
  EXPECT_EQ(after_epochs(callback, {0.5, 12.345}),
            "\nEpoch 1: saving model to " + file("sub/01-0.50-{x}.h5") + "\n" +  //
                "\nEpoch 2: saving model to " + file("sub/02-12.35-{x}.h5") + "\n");
  EXPECT_THAT(Env::posix().list(dir_.file("sub")), ElementsAre("01-0.50-{x}.h5", "02-12.35-{x}.h5"));
  // Numbers without a format are Python's.
  ModelCheckpoint plain({.filepath = file("{epoch}-{val_loss}.h5"), .save_weights_only = true});
  after_epochs(plain, {1.0, 0.1});
  EXPECT_THAT(files(), ElementsAre("3-1.0.h5", "4-0.1.h5", "sub"));
}

TEST_F(SavingCallback, TheBestOnly) {
  ModelCheckpoint callback(
      {.filepath = file("{epoch}.weights.h5"), .verbose = 1, .save_best_only = true, .save_weights_only = true});
  const std::string printed = after_epochs(callback, {0.5, 0.625, 0.25});
  EXPECT_EQ(printed, "\nEpoch 1: val_loss improved from inf to 0.50000, saving model to " + file("1.weights.h5") +
                         "\n" + "\nEpoch 2: val_loss did not improve from 0.50000\n" +
                         "\nEpoch 3: val_loss improved from 0.50000 to 0.25000, saving model to " +
                         file("3.weights.h5") + "\n");
  EXPECT_THAT(files(), ElementsAre("1.weights.h5", "3.weights.h5"));
  EXPECT_EQ(callback.best(), 0.25);
}

TEST_F(SavingCallback, AccuraciesGrow) {
  for (const char* name : {"val_acc", "fmeasure", "accuracy_of_mine"}) {
    ModelCheckpoint callback({.filepath = file(std::string(name) + "{epoch}.h5"),
                              .monitor = name,
                              .save_best_only = true,
                              .save_weights_only = true});
    after_epochs(callback, {0.5, 0.25, 0.75}, name);
    EXPECT_EQ(callback.best(), 0.75) << name;
  }
  ModelCheckpoint falls({.filepath = file("falls.h5"),
                         .monitor = "val_acc",
                         .save_best_only = true,
                         .save_weights_only = true,
                         .mode = "min"});
  after_epochs(falls, {0.5, 0.25, 0.75}, "val_acc");
  EXPECT_EQ(falls.best(), 0.25);
}

TEST_F(SavingCallback, BetterThanAThreshold) {
  ModelCheckpoint callback({.filepath = file("{epoch}.h5"),
                            .save_best_only = true,
                            .save_weights_only = true,
                            .initial_value_threshold = 0.3});
  after_epochs(callback, {0.5, 0.3, 0.2});
  EXPECT_THAT(files(), ElementsAre("3.h5"));
}

TEST_F(SavingCallback, WhatIsNotMeasuredIsNotTheBest) {
  ModelCheckpoint callback({.filepath = file("{epoch}.h5"), .save_best_only = true, .save_weights_only = true});
  testing::internal::CaptureStderr();
  after_epochs(callback, {0.5}, "loss");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("Can save best model only with val_loss available, skipping."));
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(SavingCallback, EverySoManyBatches) {
  const Tensor x = ones({20, 2}), y = ones({20, 1});
  ModelCheckpoint callback({.filepath = file("{epoch}-{batch:02d}.h5"), .save_weights_only = true, .save_freq = 3});
  model_.fit(x, y, {.batch_size = 5, .epochs = 3, .verbose = 0, .callbacks = {callback}});
  EXPECT_THAT(files(), ElementsAre("1-03.h5", "2-02.h5", "3-01.h5", "3-04.h5"));  // batches 3, 6, 9 and 12
}

TEST_F(SavingCallback, WeightsOfTheEpoch) {
  const Tensor x = random::uniform({20, 2}), y = random::uniform({20, 1});
  ModelCheckpoint callback({.filepath = file("w-{epoch}"), .save_weights_only = true});
  model_.fit(x, y, {.epochs = 2, .verbose = 0, .callbacks = {callback}});
  Sequential other{Input({2}), Dense(1)};
  other.load_weights(file("w-2")).expect_partial();
  EXPECT_EQ(other.get_weights()[0].to_vector<float>(), model_.get_weights()[0].to_vector<float>());
  EXPECT_EQ(train::latest_checkpoint(dir_.path()), file("w-2"));
}

TEST_F(SavingCallback, Refusals) {
  expect_error([] { ModelCheckpoint c({.save_weights_only = true}); }, Code::invalid_argument, "filepath is empty");
  expect_error([&] { ModelCheckpoint c({.filepath = file("a")}); }, Code::unimplemented, "save_weights_only");
  expect_error([&] { ModelCheckpoint c({.filepath = file("a"), .save_weights_only = true, .save_freq = 0}); },
               Code::invalid_argument, "save_freq is 0");
  expect_error([&] { ModelCheckpoint c({.filepath = file("a"), .save_weights_only = true, .save_freq = "batch"}); },
               Code::invalid_argument, "Unrecognized save_freq: batch");
  ModelCheckpoint unknown({.filepath = file("{val_mae:.2f}"), .save_weights_only = true});
  expect_error([&] { after_epochs(unknown, {0.5}); }, Code::invalid_argument,
               "Reason: 'val_mae'. There are: epoch, val_loss");
  testing::internal::GetCapturedStdout();
  ModelCheckpoint format({.filepath = file("{val_loss:q}"), .save_weights_only = true});
  expect_error([&] { after_epochs(format, {0.5}); }, Code::invalid_argument, "'q' is no format for val_loss");
  testing::internal::GetCapturedStdout();
  ModelCheckpoint open({.filepath = file("{epoch"), .save_weights_only = true});
  expect_error([&] { after_epochs(open, {0.5}); }, Code::invalid_argument, "a brace has no partner");
  testing::internal::GetCapturedStdout();
  Env::posix().create_dirs(file("folder.h5"));
  ModelCheckpoint folder({.filepath = file("folder.h5"), .save_weights_only = true});
  expect_error([&] { after_epochs(folder, {0.5}); }, Code::invalid_argument, "existing directory");
  testing::internal::GetCapturedStdout();
  expect_error([] { BackupAndRestore b(BackupAndRestoreOptions{}); }, Code::invalid_argument, "backup_dir is empty");
  expect_error([] { BackupAndRestore b({.backup_dir = "x", .save_freq = false}); }, Code::invalid_argument,
               "must be set");
}

}  // namespace
}  // namespace runnel::keras
