// save_weights and load_weights: TensorFlow's files into the same models, and files as TensorFlow writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "runnel/base/sha256.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_reader.h"
#include "runnel/io/hdf5.h"
#include "runnel/io/npz.h"
#include "runnel/track/checkpoint.h"
#include "tests/keras/fixture_models.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"

namespace runnel::keras {
namespace {

using nlohmann::json;
using test::expect_error;
using test::fixture_model;
using test::TempDir;
using ::testing::HasSubstr;

constexpr int64_t kFixtureUnits = 3;  // of the fixtures

std::string fixture_file(const std::string& kind, const std::string& name) {
  return (test::fixtures() / "tf215" / "keras_files" / kind / name).string();
}

Tensor npy_tensor(const std::string& path) {
  io::NpyArray array = io::read_npy(path);
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(array.data));
  return Tensor::wrap(dtype_from_name(array.dtype), Shape(array.shape), owner->data(), owner);
}
Nest npy_tensors(const std::string& kind, const std::string& name) {
  if (kind != "functional_shared") return npy_tensor(fixture_file(kind, name + ".npy"));
  return Nest::list({npy_tensor(fixture_file(kind, name + "0.npy")), npy_tensor(fixture_file(kind, name + "1.npy"))});
}

double largest_difference(const Nest& a, const Nest& b) {
  const std::vector<Tensor> left = nest::flatten(a), right = nest::flatten(b);
  EXPECT_EQ(left.size(), right.size());
  double most = 0;
  for (size_t i = 0; i < left.size(); ++i)
    most = std::max(most, static_cast<double>(reduce_max(abs(left[i] - right[i])).item<float>()));
  return most;
}

Nest predictions(Model& model, const std::string& kind) {
  return model(npy_tensors(kind, "inputs"), {.training = false});
}
void expect_predicts(Model& model, const std::string& kind) {
  EXPECT_LT(largest_difference(predictions(model, kind), npy_tensors(kind, "outputs")), 1e-5) << kind;
}

json expected_of(const std::string& kind) { return json::parse(test::read_bytes(fixture_file(kind, "expected.json"))); }

std::string sha256_of(const io::NpyArray& array) { return sha256_hex(array.data); }

// The arrays of a file, and the lists of names, as expected.json has them.
std::map<std::string, std::string> tree_of(const std::string& path) {
  std::map<std::string, std::string> tree;
  const io::Hdf5Reader file(path);
  const auto note = [&](const std::string& object, const char* name) {
    if (!file.has_attribute(object, name)) return;
    tree["/" + object + "@" + name] = json(file.text_attribute(object, name)).dump();
  };
  for (const char* name : {"layer_names", "backend", "keras_version"}) note("", name);
  file.walk("", [&](const std::string& object, io::Hdf5Kind kind) {
    note(object, "weight_names");
    if (kind == io::Hdf5Kind::dataset) tree["/" + object] = sha256_of(file.read(object));
  });
  return tree;
}
std::map<std::string, std::string> expected_tree(const json& tree) {
  std::map<std::string, std::string> all;
  for (const auto& [name, value] : tree["attrs"].items()) {
    all[name] = (value.is_array() ? value : json::array({value})).dump();
  }
  for (const auto& [name, value] : tree["datasets"].items()) all[name] = value["sha256"];
  return all;
}

class WeightsFiles : public testing::Test {
 protected:
  void SetUp() override { RUNNEL_REQUIRE_FIXTURES(); }
  TempDir dir_;
};

TEST_F(WeightsFiles, TensorFlowsFilesPredictTheSame) {
  for (const std::string& kind : test::fixture_kinds()) {
    for (const char* name : {"legacy_weights.h5", "w.weights.h5", "tf_weights"}) {
      SCOPED_TRACE(kind + "/" + name);
      const ModelPtr model = fixture_model(kind, kFixtureUnits);
      EXPECT_GT(largest_difference(predictions(*model, kind), npy_tensors(kind, "outputs")), 1e-3);
      model->load_weights(fixture_file(kind, name)).expect_partial();
      expect_predicts(*model, kind);
    }
  }
}

// A file of a whole model has the weights in it.
TEST_F(WeightsFiles, FilesOfWholeModels) {
  for (const char* kind : {"sequential", "conv_bn", "recurrent", "nested"}) {
    const ModelPtr model = fixture_model(kind, kFixtureUnits);
    model->load_weights(fixture_file(kind, "model.h5"));
    expect_predicts(*model, kind);
    if (kind == std::string("recurrent")) continue;  // which has no SavedModel
    const ModelPtr other = fixture_model(kind, kFixtureUnits);
    other->load_weights(fixture_file(kind, "saved_model")).expect_partial();
    expect_predicts(*other, kind);
  }
}

// What is read is written back as Keras wrote it: the same arrays under the same names, the same attributes.
TEST_F(WeightsFiles, OlderFormatAsKerasWritesIt) {
  for (const std::string& kind : test::fixture_kinds()) {
    SCOPED_TRACE(kind);
    const ModelPtr model = fixture_model(kind, kFixtureUnits);
    model->load_weights(fixture_file(kind, "w.weights.h5"));
    model->save_weights(dir_.file("legacy.h5"));
    EXPECT_EQ(tree_of(dir_.file("legacy.h5")),
              expected_tree(expected_of(kind)["formats"]["legacy_weights.h5"]["tree"]));
  }
}

TEST_F(WeightsFiles, NewerFormatAsKerasWritesIt) {
  for (const std::string& kind : test::fixture_kinds()) {
    SCOPED_TRACE(kind);
    const ModelPtr model = fixture_model(kind, kFixtureUnits);
    model->load_weights(fixture_file(kind, "legacy_weights.h5"));
    std::map<std::string, std::string> wanted = expected_tree(expected_of(kind)["formats"]["w.weights.h5"]["tree"]);
    // The model here is not compiled.
    std::erase_if(wanted,
                  [](const auto& each) { return each.first.find("/layers") != 0 && each.first.find("/vars") != 0; });
    model->save_weights(dir_.file("new.weights.h5"));
    EXPECT_EQ(tree_of(dir_.file("new.weights.h5")), wanted);
  }
}

TEST_F(WeightsFiles, StateOfOptimizerAndMetrics) {
  const ModelPtr model = fixture_model("compiled_fit", kFixtureUnits);
  model->compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}});
  model->fit(random::uniform({8, 4}), random::uniform({8, 2}), {.batch_size = 4, .verbose = 0});
  model->load_weights(fixture_file("compiled_fit", "w.weights.h5"));
  EXPECT_EQ(model->optimizer().iterations().value().item<int64_t>(), 4);
  model->save_weights(dir_.file("again.weights.h5"));
  const json wanted = expected_of("compiled_fit")["formats"]["w.weights.h5"]["tree"];
  EXPECT_EQ(tree_of(dir_.file("again.weights.h5")), expected_tree(wanted));
}

TEST_F(WeightsFiles, CheckpointsAsKerasWritesThem) {
  for (const std::string& kind : test::fixture_kinds()) {
    if (kind == "compiled_fit") continue;  // below
    SCOPED_TRACE(kind);
    const ModelPtr model = fixture_model(kind, kFixtureUnits);
    model->load_weights(fixture_file(kind, "legacy_weights.h5"));
    model->save_weights(dir_.file("tf_weights"));
    const json wanted = expected_of(kind)["formats"]["tf_weights"];
    const io::CheckpointReader reader(dir_.file("tf_weights"));
    std::map<std::string, std::string> ours, theirs;
    for (const io::CheckpointEntry& entry : reader.entries()) {
      if (entry.key != "_CHECKPOINTABLE_OBJECT_GRAPH") ours[entry.key] = io::checkpoint_dtype_name(entry.dtype);
    }
    for (const auto& [key, entry] : wanted["checkpoint"]["entries"].items()) {
      const bool compiled = key.find("keras_api") != std::string::npos || key.starts_with("optimizer");
      if (key != "_CHECKPOINTABLE_OBJECT_GRAPH" && !compiled) theirs[key] = entry["dtype"];
    }
    EXPECT_EQ(ours, theirs);
    EXPECT_EQ(test::read_text(dir_.file("checkpoint")), test::read_bytes(fixture_file(kind, "checkpoint")));
  }
}

// --- without TensorFlow's files ---

ModelPtr small_model(int64_t units = 4) {
  return std::make_shared<Sequential>(
      std::initializer_list<LayerArg>{Input({3}), Dense({.units = units, .name = "first"}),
                                      BatchNormalization({.name = "norm"}), Dense({.units = 2, .name = "second"})});
}

std::vector<std::vector<float>> numbers_of(const Model& model) {
  std::vector<std::vector<float>> all;
  for (const Tensor& t : model.get_weights()) all.push_back(t.to_vector<float>());
  return all;
}

class WeightsRoundTrip : public testing::TestWithParam<const char*> {
 protected:
  std::string path() const { return dir_.file(GetParam()); }
  TempDir dir_;
};

TEST_P(WeightsRoundTrip, OtherModelsGetTheWeights) {
  const ModelPtr model = small_model(), other = small_model();
  model->save_weights(path());
  EXPECT_NE(numbers_of(*model), numbers_of(*other));
  other->load_weights(path());
  EXPECT_EQ(numbers_of(*model), numbers_of(*other));
}

TEST_P(WeightsRoundTrip, WhatDoesNotFitChangesNothing) {
  small_model(4)->save_weights(path());
  const ModelPtr other = small_model(5);
  const auto before = numbers_of(*other);
  EXPECT_THROW(other->load_weights(path()), Error);
  EXPECT_EQ(numbers_of(*other), before);
}

TEST_P(WeightsRoundTrip, ExistingFilesAreKept) {
  const ModelPtr model = small_model();
  model->save_weights(path());
  expect_error([&] { small_model()->save_weights(path(), {.overwrite = false}); }, Code::already_exists, GetParam());
  const ModelPtr other = small_model();
  other->load_weights(path());
  EXPECT_EQ(numbers_of(*model), numbers_of(*other));
}

INSTANTIATE_TEST_SUITE_P(Formats, WeightsRoundTrip, testing::Values("w.h5", "w.weights.h5", "w"));

TEST(Weights, OfTheLatestCheckpoint) {
  const TempDir dir;
  const ModelPtr model = small_model(), other = small_model();
  expect_error([&] { other->load_weights(train::latest_checkpoint(dir.path())); }, Code::invalid_argument,
               "no checkpoint was given (an empty path)");
  model->save_weights(dir.file("w"));
  other->load_weights(train::latest_checkpoint(dir.path())).assert_consumed();
  EXPECT_EQ(numbers_of(*model), numbers_of(*other));
}

TEST(WeightsByName, OnlyLayersOfTheSameName) {
  const TempDir dir;
  const ModelPtr model = small_model();
  model->save_weights(dir.file("w.h5"));
  Sequential other({Input({3}), Dense({.units = 4, .name = "first"}), Dense({.units = 7, .name = "second"})});
  const Tensor second = other.get_weights()[2];
  expect_error([&] { other.load_weights(dir.file("w.h5")); }, Code::invalid_argument,
               "Layer count mismatch when loading weights from file");
  expect_error([&] { other.load_weights(dir.file("w.h5"), {.by_name = true}); }, Code::invalid_argument,
               "Shape mismatch in layer #2 (named second) for weight second/kernel");
  expect_error([&] { other.load_weights(dir.file("w.h5"), {.skip_mismatch = true}); }, Code::invalid_argument,
               "by_name is true");
  other.load_weights(dir.file("w.h5"), {.by_name = true, .skip_mismatch = true});
  EXPECT_EQ(other.get_weights()[0].to_vector<float>(), model->get_weights()[0].to_vector<float>());
  EXPECT_EQ(other.get_weights()[2].to_vector<float>(), second.to_vector<float>());
}

TEST(WeightsByName, NewerFormatSkipsWhatDoesNotFit) {
  const TempDir dir;
  const ModelPtr model = small_model(4), other = small_model(5);
  model->save_weights(dir.file("w.weights.h5"));
  expect_error([&] { other->load_weights(dir.file("w.weights.h5")); }, Code::invalid_argument, "w.weights.h5");
  expect_error([&] { other->load_weights(dir.file("w.weights.h5"), {.by_name = true}); }, Code::unimplemented,
               "by_name");
  const auto before = numbers_of(*other);
  other->load_weights(dir.file("w.weights.h5"), {.skip_mismatch = true});
  const auto after = numbers_of(*other);
  EXPECT_EQ(after[0], before[0]);
  EXPECT_EQ(after.back(), numbers_of(*model).back());  // the bias of the second layer fits, with its kernel it does not
}

// Whoever has locked the folder finds a state file that names the newest checkpoint in it.
TEST(Weights, TheStateFileIsWrittenWhileTheFolderIsLocked) {
  Sequential model({Input({2}), Dense(1)});
  for (int i = 0; i < 20; ++i) {
    const TempDir dir;
    std::atomic<bool> done = false;
    bool unnamed = false;
    std::thread other([&] {
      while (!done) {
        {
          const auto lock = Env::posix().lock(dir.path());
          unnamed |= io::checkpoint_exists(dir.file("w")) && !Env::posix().exists(dir.file("checkpoint"));
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));  // or the other would hardly get the lock
      }
    });
    model.save_weights(dir.file("w"));
    done = true;
    other.join();
    EXPECT_FALSE(unnamed);
  }
}

TEST(Weights, OfModelsThatHaveNoneYet) {
  const TempDir dir;
  const ModelPtr model = small_model();
  for (const char* name : {"w.h5", "w.weights.h5", "w"}) model->save_weights(dir.file(name));
  Sequential unbuilt({Dense({.units = 4}), BatchNormalization(), Dense({.units = 2})});
  expect_error([&] { unbuilt.save_weights(dir.file("u.h5")); }, Code::failed_precondition, "not yet been created");
  for (const char* name : {"w.h5", "w.weights.h5"}) {
    expect_error([&] { unbuilt.load_weights(dir.file(name)); }, Code::failed_precondition, "not yet been created");
  }
  // Those of a checkpoint come when the weights are made.
  const train::RestoreStatus status = unbuilt.load_weights(dir.file("w"));
  unbuilt(zeros({1, 3}));
  status.assert_consumed();
  EXPECT_EQ(numbers_of(unbuilt), numbers_of(*model));
}

TEST(Weights, Refusals) {
  const TempDir dir;
  const ModelPtr model = small_model();
  expect_error([&] { model->load_weights(dir.file("none.h5")); }, Code::not_found, "none.h5");
  expect_error([&] { model->load_weights(dir.file("none")); }, Code::not_found, "none");
  expect_error([&] { model->save_weights(dir.file("w.h5"), {.save_format = "tf"}); }, Code::invalid_argument,
               "looks like an HDF5 file");
  expect_error([&] { model->save_weights(dir.file("w"), {.save_format = "onnx"}); }, Code::invalid_argument,
               "Unknown format");
  model->save_weights(dir.file("hdf5_without_ending"), {.save_format = "h5"});
  model->load_weights(dir.file("hdf5_without_ending"));
  io::Hdf5Writer other(dir.file("other.weights.h5"));
  other.create_group("data");
  other.finish();
  expect_error([&] { model->load_weights(dir.file("other.weights.h5")); }, Code::data_loss, "there is no `vars`");
  Env::posix().rename(dir.file("other.weights.h5"), dir.file("other.h5"));
  expect_error([&] { model->load_weights(dir.file("other.h5")); }, Code::data_loss, "layer_names is missing");
}

// Keras before 2.15 named the layers of models otherwise.
TEST(Weights, NewerFormatOfOlderKeras) {
  const TempDir dir;
  const ModelPtr model = small_model();
  model->save_weights(dir.file("new.weights.h5"));
  const io::Hdf5Reader file(dir.file("new.weights.h5"));
  for (const char* second : {"dense_1", "dense_2"}) {  // as 2.14 and as 2.12 count
    io::Hdf5Writer older(dir.file("old.weights.h5"));
    older.create_group("vars");
    file.walk("layers", [&](const std::string& object, io::Hdf5Kind kind) {
      if (kind != io::Hdf5Kind::dataset) return;
      std::string name = object;
      if (const size_t at = name.find("dense_1"); at != std::string::npos) name.replace(at, 7, second);
      name.replace(0, 6, "_layer_checkpoint_dependencies");
      const io::NpyArray array = file.read(object);
      older.write(name, {array.dtype, array.shape, array.data});
    });
    older.finish();
    const ModelPtr other = small_model();
    other->load_weights(dir.file("old.weights.h5"));
    EXPECT_EQ(numbers_of(*other), numbers_of(*model)) << second;
  }
}

// Lists of names that no attribute can hold are cut.
TEST(Weights, VeryManyLayers) {
  const TempDir dir;
  const auto make = [] {
    std::vector<LayerPtr> layers;
    for (int i = 0; i < 700; ++i) {
      const std::string name = "layer_with_a_rather_long_name_that_fills_the_attribute_quickly_and_more_of_it_still_" +
                               std::string(40, 'x') + std::to_string(i);
      layers.push_back(std::make_shared<Dense>(DenseOptions{.units = 1, .name = name}));
    }
    auto model = std::make_shared<Sequential>(layers);
    model->build_for_shape({1, 1});
    return model;
  };
  const auto model = make(), other = make();
  model->save_weights(dir.file("many.h5"));
  EXPECT_TRUE(io::Hdf5Reader(dir.file("many.h5")).has_attribute("", "layer_names1"));
  other->load_weights(dir.file("many.h5"));
  EXPECT_EQ(numbers_of(*other), numbers_of(*model));
}

TEST(Weights, AFolderThatIsNotThereIsNamed) {
  const TempDir dir;
  const Sequential model({Input({3}), Dense({.units = 2})});
  expect_error([&] { model.save_weights(dir.file("none/w.h5")); }, Code::not_found, "there is no folder '");
  model.save_weights(dir.file("none/w"));
}

// HDF5 files are loaded at once: nothing waits, and what was not matched is named.
TEST(Weights, TheStatusOfAnHdf5FileSaysWhatWasLoaded) {
  const TempDir dir;
  const auto make = [](const char* second, std::optional<int> third = {}) {
    const auto dense = [](int units, const std::string& name) -> LayerPtr {
      return std::make_shared<Dense>(DenseOptions{.units = units, .name = name});
    };
    std::vector<LayerPtr> layers{dense(4, "first"), dense(2, second)};
    if (third) layers.push_back(dense(*third, "third"));
    auto model = std::make_shared<Sequential>(layers);
    model->build_for_shape({1, 3});
    return model;
  };
  const auto saved = make("second");
  for (const char* name : {"w.h5", "w.weights.h5"}) {
    saved->save_weights(dir.file(name));
    const auto model = make("second");
    const train::RestoreStatus status = model->load_weights(dir.file(name));
    status.assert_consumed().assert_existing_objects_matched().assert_nontrivial_match();
    EXPECT_THAT(status.str(), HasSubstr(std::string(name) + ": 4 matched\n"));
    EXPECT_EQ(numbers_of(*model), numbers_of(*saved));
  }
  // Where Keras is silent.
  testing::internal::CaptureStderr();
  Sequential less({Input({3}), Dense({.units = 4, .name = "first"})});
  EXPECT_THAT(less.load_weights(dir.file("w.weights.h5")).str(), HasSubstr(": 2 matched, 2 unused\n"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("no place for 2 weights of the file: layers/dense_1/vars/0, layers/dense_1/vars/1."));
  testing::internal::CaptureStderr();
  less.load_weights(dir.file("w.weights.h5"), {.skip_mismatch = true});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  Sequential stranger({Input({3}), Dense({.units = 4, .name = "stranger"})});
  const train::RestoreStatus none = stranger.load_weights(dir.file("w.h5"), {.by_name = true});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("nothing was loaded"));
  expect_error([&] { none.assert_nontrivial_match(); }, Code::failed_precondition, "was for a weight of the program");

  const auto other = make("another", 5);
  const train::RestoreStatus status = other->load_weights(dir.file("w.h5"), {.by_name = true});
  EXPECT_THAT(status.str(), HasSubstr("w.h5: 2 matched, 4 missing, 2 unused\n"));
  status.assert_nontrivial_match();
  expect_error([&] { status.assert_existing_objects_matched(); }, Code::failed_precondition, "another/kernel");
}

// A list of layers in a list is not reached by Keras's walk: it is no silent loss.
TEST(Weights, WhatTheNewerFormatDoesNotReachIsAnError) {
  struct Deep : Layer {
    Deep() {
      const auto outer = std::make_shared<TrackableList>(), inner = std::make_shared<TrackableList>();
      inner->append(dense);
      outer->append(inner);
      track("parts", outer);
    }
    Tensor call(const Tensor& x, const CallArgs&) override { return (*dense)(x); }
    std::shared_ptr<Dense> dense = std::make_shared<Dense>(DenseOptions{.units = 2});
  };
  const TempDir dir;
  Sequential model({Input({3}), Deep()});
  expect_error([&] { model.save_weights(dir.file("w.weights.h5")); }, Code::unimplemented, "kernel");
  model.save_weights(dir.file("w"));
}

}  // namespace
}  // namespace runnel::keras
