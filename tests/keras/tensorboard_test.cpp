// The callback that writes event files, beside the files that Keras's own wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runnel/base/format.h"
#include "runnel/graph/graph.h"
#include "runnel/graph/graph_def.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "runnel/summary/summary.h"
#include "runnel/summary/trace.h"
#include "runnel/tensor/serialize.h"
#include "tests/summary/support.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

using test::expect_error;
using test::TempDir;

// "tag@step plugin" of every value, and the shape of its tensor.
std::vector<std::string> values_in(const std::string& folder) {
  std::vector<std::string> values;
  for (const std::string& record : test::records_of(test::only_event_file(folder))) {
    io::Event event;
    EXPECT_TRUE(io::parse_event(record, &event));
    if (event.kind != io::EventKind::summary) continue;
    io::visit_event_values(event.body, [&](const io::EventValue& value) {
      const Tensor tensor = parse_tensor_proto(value.body);
      values.push_back(std::string(value.tag) + "@" + std::to_string(event.step) + " " +
                       std::string(io::plugin_of(value)) + " " + tensor.shape().str());
    });
  }
  return values;
}

std::vector<std::string> values_of_keras(const std::string& run) {
  const auto expected =
      nlohmann::json::parse(test::read_bytes(test::fixtures() / "tf215/events/keras_callback/expected.json"));
  std::vector<std::string> values;
  for (const auto& event : expected["files"][run + "/events.out.tfevents.0000000001.host.v2"]) {
    if (event["kind"] != "summary") continue;
    Dims sizes;
    for (const int64_t n : event["tensor"]["shape"]) sizes.push_back(n);
    values.push_back(event["tag"].get<std::string>() + "@" + std::to_string(event["step"].get<int64_t>()) + " " +
                     event["plugin"].get<std::string>() + " " + Shape(sizes).str());
  }
  return values;
}

TEST(TensorBoard, WritesWhatKerasWrites) {
  RUNNEL_REQUIRE_FIXTURES();
  TempDir dir;
  backend::clear_session();
  Sequential model({layers::Conv2D({.filters = 2, .kernel_size = 3, .input_shape = PartialShape{6, 6, 1}}),
                    layers::Flatten(), layers::Dense(2)});
  model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae"}});
  const Tensor x = random::uniform({8, 6, 6, 1}), y = random::uniform({8, 2});
  model.fit(x, y,
            {.batch_size = 4,
             .epochs = 2,
             .verbose = 0,
             .callbacks = {TensorBoard({.log_dir = dir.path(), .histogram_freq = 1, .write_images = true})},
             .validation_data = {x(slice(0, 4)), y(slice(0, 4))},
             .shuffle = false});
  for (const char* run : {"train", "validation"}) {
    EXPECT_EQ(values_in(dir.path() + "/" + run), values_of_keras(run)) << run;
  }
}

TEST(TensorBoard, BatchesAndSpeed) {
  TempDir dir;
  Sequential model({layers::Dense({.units = 1, .input_shape = PartialShape{2}})});
  model.compile({.optimizer = optimizers::SGD(optimizers::schedules::ExponentialDecay({.initial_learning_rate = 0.1})),
                 .loss = "mse"});
  const Tensor x = ones({8, 2}), y = zeros({8, 1});
  model.fit(x, y,
            {.batch_size = 2,
             .epochs = 1,
             .verbose = 0,
             .callbacks = {TensorBoard(
                 {.log_dir = dir.path(), .write_graph = false, .write_steps_per_second = true, .update_freq = 2})}});
  EXPECT_THAT(
      test::tags_of(dir.path() + "/train"),
      testing::ElementsAre("batch_steps_per_second@2", "batch_loss@2", "batch_steps_per_second@4", "batch_loss@4",
                           "epoch_loss@0", "epoch_learning_rate@0", "epoch_steps_per_second@0"));
  expect_error([] { TensorBoard({.update_freq = "sometimes"}); }, Code::invalid_argument, "sometimes");
  expect_error([] { TensorBoard({.update_freq = 0}); }, Code::invalid_argument, "at least 1");
  expect_error([] { TensorBoard({.profile_batch = {5, 2}}); }, Code::invalid_argument, "profile_batch");
}

struct Noted : Layer {
  using Layer::Layer;
  Tensor call(const Tensor& x, const CallArgs&) override {
    summary::scalar("leaf", 1.f);
    return x + 1.f;
  }
};

// A step of its own that says something.
struct NotedModel : Sequential {
  using Sequential::Sequential;
  StepLogs train_step(const TrainingBatch& batch) override {
    StepLogs logs = Sequential::train_step(batch);
    summary::scalar("in_step", 1.f);
    summary::scalar("own_step", 2.f, 100);
    return logs;
  }
  StepLogs test_step(const TrainingBatch& batch) override {
    StepLogs logs = Sequential::test_step(batch);
    summary::scalar("in_test", 1.f);
    return logs;
  }
};

std::vector<std::string> all_of(const std::string& prefix, const std::vector<std::string>& tags) {
  std::vector<std::string> found;
  for (const std::string& tag : tags) {
    if (tag.starts_with(prefix)) found.push_back(tag);
  }
  return found;
}

// Keras writes the same tags, at step 0 all of them.
TEST(TensorBoard, SummariesOfLayersAndSteps) {
  NotedModel model({std::make_shared<Noted>(LayerOptions{.name = "noted", .batch_input_shape = PartialShape{-1, 2}}),
                    make<layers::Dense>(1)},
                   {.name = "model"});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = ones({8, 2}), y = zeros({8, 1});
  const auto fit = [&](const TensorBoardOptions& options) {
    model.fit(x, y,
              {.batch_size = 2,
               .epochs = 2,
               .verbose = 0,
               .callbacks = {TensorBoard(options)},
               .validation_data = {x(slice(0, 4)), y(slice(0, 4))}});
  };
  using testing::ElementsAre;
  for (int round = 0; round < 2; ++round) {  // a second fit has files of its own
    TempDir dir;
    fit({.log_dir = dir.path(), .update_freq = 2});
    const std::vector<std::string> train = test::tags_of(dir.path() + "/train");
    const std::string first = round == 0 ? "0" : "8", third = round == 0 ? "2" : "10";
    EXPECT_EQ(train.front(), "keras@0");
    EXPECT_EQ(train[1], "model/noted/leaf@" + first);
    EXPECT_THAT(all_of("model/noted/leaf", train), ElementsAre("model/noted/leaf@" + first, "model/noted/leaf@" + third,
                                                               "model/noted/leaf@" + std::to_string(4 + 8 * round),
                                                               "model/noted/leaf@" + std::to_string(6 + 8 * round)));
    EXPECT_EQ(all_of("in_step", train).size(), 4u);
    EXPECT_THAT(all_of("own_step", train), ElementsAre("own_step@100", "own_step@100", "own_step@100", "own_step@100"));
    EXPECT_EQ(all_of("batch_loss", train).front(), "batch_loss@" + std::to_string(2 + 8 * round));
    EXPECT_EQ(all_of("graph_def", train).size(), 1u);
    const std::vector<std::string> validation = test::tags_of(dir.path() + "/validation");
    EXPECT_THAT(all_of("in_test", validation), ElementsAre("in_test@0", "in_test@0"));
    EXPECT_THAT(all_of("model/noted/leaf", validation), ElementsAre("model/noted/leaf@0", "model/noted/leaf@0"));
    EXPECT_FALSE(summary::has_default_writer());
  }
  TempDir dir;
  fit({.log_dir = dir.path()});  // nothing but epochs
  EXPECT_THAT(test::tags_of(dir.path() + "/train"), ElementsAre("keras@0", "epoch_loss@0", "epoch_loss@1"));
  fit({.log_dir = dir.path() + "/other"});
  // Afterwards nothing is left of the writers.
  model.fit(x, y, {.epochs = 1, .verbose = 0});
  TempDir alone;
  model.evaluate(
      x, y, {.batch_size = 4, .verbose = 0, .callbacks = {TensorBoard({.log_dir = alone.path(), .update_freq = 1})}});
  EXPECT_THAT(all_of("in_test", test::tags_of(alone.path() + "/validation")), ElementsAre("in_test@0", "in_test@1"));
  model.evaluate(x, y, {.verbose = 0});
}

TEST(TensorBoard, AnErrorInFitLeavesNoWriter) {
  struct Fails : Callback {
    void on_train_batch_end(int64_t, const Logs&) override { throw invalid_argument("on purpose"); }
  };
  TempDir dir;
  Sequential model({layers::Dense({.units = 1, .input_shape = PartialShape{2}})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  TensorBoard board({.log_dir = dir.path(), .update_freq = 1});
  expect_error(
      [&] {
        model.fit(ones({4, 2}), zeros({4, 1}), {.verbose = 0, .callbacks = {board, Fails()}});
      },
      Code::invalid_argument, "on purpose");
  EXPECT_FALSE(summary::has_default_writer());
  model.fit(ones({4, 2}), zeros({4, 1}), {.epochs = 1, .verbose = 0});
}

// Nodes stand in the scopes of their layers, as in Keras.
TEST(TensorBoard, TheGraphOfTheTrainingStep) {
  TempDir dir;
  Sequential model({layers::Dense({.units = 1, .input_shape = PartialShape{2}, .name = "dense"})}, {.name = "model"});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  testing::internal::CaptureStdout();
  model.fit(ones({4, 2}), zeros({4, 1}),
            {.epochs = 2, .verbose = 1, .callbacks = {TensorBoard({.log_dir = dir.path()})}});
  testing::internal::GetCapturedStdout();
  EXPECT_THAT(test::tags_of(dir.path() + "/train"),
              testing::ElementsAre("keras@0", "graph_def", "epoch_loss@0", "epoch_loss@1"));
  for (const std::string& record : test::records_of(test::only_event_file(dir.path() + "/train"))) {
    io::Event event;
    ASSERT_TRUE(io::parse_event(record, &event));
    if (event.kind != io::EventKind::graph_def) continue;
    const std::shared_ptr<Graph> graph = from_graph_def(event.body);
    std::vector<std::string> names;
    for (const auto& node : graph->nodes()) names.push_back(node->name);
    for (const char* node : {"model/dense/MatMul", "model/dense/BiasAdd"}) {
      EXPECT_THAT(names, testing::Contains(node));
    }
    EXPECT_THAT(names, testing::Contains(testing::StartsWith("mean_squared_error/")));
    EXPECT_THAT(names, testing::Contains(testing::StartsWith("SGD/")));
  }
}

TEST(TensorBoard, FilesThatCannotBeWritten) {
  TempDir dir;
  std::ofstream(dir.path() + "/file") << "no folder";
  Sequential model({layers::Dense({.units = 1, .input_shape = PartialShape{2}})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const auto fit = [&](bool keep_going) {
    return model.fit(ones({4, 2}), zeros({4, 1}),
                     {.epochs = 2,
                      .verbose = 0,
                      .callbacks = {TensorBoard({.log_dir = dir.path() + "/file/logs", .keep_going = keep_going})}});
  };
  expect_error([&] { fit(false); }, Code::failed_precondition, "file");
  testing::internal::CaptureStderr();
  EXPECT_EQ(fit(true).epoch.size(), 2u);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("nothing is recorded"));
}

TEST(TensorBoard, AProfileThatCannotBeWrittenEndsTheTrace) {
  TempDir dir;
  std::ofstream(dir.path() + "/plugins") << "no folder";
  Sequential model({layers::Dense({.units = 1, .input_shape = PartialShape{2}})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  TensorBoard board({.log_dir = dir.path(), .profile_batch = {1, 1}, .keep_going = true});
  testing::internal::CaptureStderr();
  model.fit(ones({4, 2}), zeros({4, 1}), {.verbose = 0, .callbacks = {board}});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("profile_batch: "));
  expect_error([] { summary::trace_export("none"); }, Code::invalid_argument, "no trace is on");
}

TEST(TensorBoard, EmbeddingsForTheProjector) {
  TempDir dir;
  Sequential model({layers::Embedding({.input_dim = 5, .output_dim = 3, .input_length = 2, .name = "words"}),
                    layers::Flatten(), layers::Dense(1)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x{{0, 1}, {2, 3}}, y = zeros({2, 1});
  model.fit(x, y,
            {.epochs = 1,
             .verbose = 0,
             .callbacks = {TensorBoard(
                 {.log_dir = dir.path(), .embeddings_freq = 1, .embeddings_metadata = {{"words", "words.tsv"}}})}});
  EXPECT_EQ(test::read_bytes(dir.path() + "/projector_config.pbtxt"),
            "embeddings {\n"
            "  tensor_name: \"layer_with_weights-0/embeddings/.ATTRIBUTES/VARIABLE_VALUE\"\n"
            "  metadata_path: \"words.tsv\"\n"
            "}\n");
  EXPECT_TRUE(std::filesystem::exists(dir.path() + "/train/keras_embedding.ckpt-0.index"));
  expect_error(
      [&] {
        model.fit(x, y,
                  {.verbose = 0,
                   .callbacks = {TensorBoard(
                       {.log_dir = dir.path(), .embeddings_freq = 1, .embeddings_metadata = {{"other", "f"}}})}});
      },
      Code::invalid_argument, "'other', which is no Embedding layer");
}

}  // namespace
}  // namespace runnel::keras
