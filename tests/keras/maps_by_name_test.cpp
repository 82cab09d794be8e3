// Maps of inputs and labels go by name, whatever the order of their keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using test::expect_error;
using test::values_of;
using ::testing::Each;
using ::testing::ElementsAre;

using TensorMap = std::map<std::string, Tensor>;

// z - a: the inputs are not in the order of their names.
Model difference_of_z_and_a() {
  const Tensor z = Input({1}, {.name = "z"}), a = Input({1}, {.name = "a"});
  return Model({z, a}, Subtract()(std::vector<Tensor>{z, a}));
}
TensorMap three_and_one() { return {{"z", fill({4, 1}, 3.f)}, {"a", fill({4, 1}, 1.f)}}; }

// Outputs z and a, which are 0.
Model zeros_named_z_and_a() {
  const Tensor in = Input({2});
  return Model(in, {Dense(1, {.kernel_initializer = "zeros", .name = "z"})(in),
                    Dense(1, {.kernel_initializer = "zeros", .name = "a"})(in)});
}

TEST(MapsByName, OfInputs) {
  Model model = difference_of_z_and_a();
  TensorMap x = three_and_one();
  EXPECT_THAT(values_of(model(Nest(x)).leaf()), Each(2));
  EXPECT_THAT(values_of(model.predict(Nest(x), {.verbose = 0}).leaf()), Each(2));
  EXPECT_THAT(values_of(model.predict(Nest(x), {.batch_size = 3, .verbose = 0}).leaf()), Each(2));
  x["more"] = ones({4, 7});
  EXPECT_THAT(values_of(model.predict(Nest(x), {.verbose = 0}).leaf()), Each(2));
}

TEST(MapsByName, OfInputsWithoutOneOfThem) {
  Model model = difference_of_z_and_a();
  const TensorMap wrong{{"q", fill({1, 1}, 3.f)}, {"a", fill({1, 1}, 1.f)}};
  const std::string text = "no entry 'z': the inputs of the model are 'z', 'a', the map has 'a', 'q'";
  expect_error([&] { model(Nest(wrong)); }, Code::invalid_argument, text);
  expect_error([&] { model.predict(Nest(wrong), {.verbose = 0}); }, Code::invalid_argument, text);
}

TEST(MapsByName, OfDatasets) {
  Model model = difference_of_z_and_a();
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const auto batches = data::from_tensor_slices(three_and_one(), fill({4, 1}, 0.5f)).batch(2);
  EXPECT_NEAR(model.evaluate(batches, {.verbose = 0})["loss"], 2.25, 1e-6);
  EXPECT_NEAR(model.evaluate(Nest(three_and_one()), fill({4, 1}, 0.5f), {.verbose = 0})["loss"], 2.25, 1e-6);
  const test::TempDir dir;
  {
    std::ofstream file(dir.file("two.csv"));
    file << "z,a,y\n";
    for (int i = 0; i < 8; ++i) file << "3.5,1.5,0.5\n";
  }
  const auto table =
      data::experimental::make_csv_dataset(dir.file("two.csv"), 4, "y", {.num_epochs = 1, .shuffle = false});
  EXPECT_NEAR(model.evaluate(table, {.verbose = 0})["loss"], 2.25, 1e-6);
}

TEST(MapsByName, OfInputsThatAreAMapGoByItsKeys) {
  const Tensor left = Input({1}, {.name = "z"}), right = Input({1}, {.name = "a"});
  Model model(TensorMap{{"left", left}, {"right", right}}, Subtract()(std::vector<Tensor>{left, right}));
  const TensorMap x{{"left", fill({1, 1}, 3.f)}, {"right", fill({1, 1}, 1.f)}};
  EXPECT_THAT(values_of(model(Nest(x)).leaf()), ElementsAre(2));
  const ModelPtr copy = clone_model(model);
  EXPECT_THAT(values_of((*copy)(Nest(x)).leaf()), ElementsAre(2));
}

TEST(MapsByName, OfInputsInsideOfAnotherModel) {
  const auto inner = std::make_shared<Model>(difference_of_z_and_a());
  const Tensor a = Input({1}, {.name = "first"}), b = Input({1}, {.name = "second"});
  Model outer({a, b}, (*inner)(Nest(TensorMap{{"z", a}, {"a", b}})).leaf());
  const std::vector<Tensor> x{fill({1, 1}, 3.f), fill({1, 1}, 1.f)};
  EXPECT_THAT(values_of(outer(Nest(x)).leaf()), ElementsAre(2));
  EXPECT_THAT(values_of((*clone_model(outer))(Nest(x)).leaf()), ElementsAre(2));
}

TEST(MapsByName, OfLabels) {
  Model model = zeros_named_z_and_a();
  model.compile({.optimizer = "sgd", .loss = {{"z", "mse"}, {"a", "mse"}}, .metrics = {{"z", "mae"}}});
  const Tensor x = ones({8, 2});
  const TensorMap y{{"z", fill({8, 1}, 3.f)}, {"a", fill({8, 1}, 0.f)}};
  const Logs logs = model.evaluate(x, Nest(y), {.verbose = 0});
  EXPECT_NEAR(logs["z_loss"], 9, 1e-6);
  EXPECT_NEAR(logs["a_loss"], 0, 1e-6);
  EXPECT_NEAR(logs["z_mae"], 3, 1e-6);
  const auto batches = data::from_tensor_slices(x, y).batch(4);
  EXPECT_NEAR(model.evaluate(batches, {.verbose = 0})["z_loss"], 9, 1e-6);
  const History history = model.fit(x, Nest(y), {.verbose = 0});
  EXPECT_EQ(model.get_layer("a").get_weights()[1].item<float>(), 0.f);  // the bias goes where its labels are
  EXPECT_GT(model.get_layer("z").get_weights()[1].item<float>(), 0.f);
}

TEST(MapsByName, OfLabelsThatNoOutputHas) {
  Model model = zeros_named_z_and_a();
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = ones({8, 2});
  const TensorMap wrong{{"zz", zeros({8, 1})}, {"a", zeros({8, 1})}};
  expect_error([&] { model.evaluate(x, Nest(wrong), {.verbose = 0}); }, Code::invalid_argument,
               "labels are given for output 'zz'");
  expect_error([&] { model.fit(x, Nest(wrong), {.verbose = 0}); }, Code::invalid_argument, "there are: z, a");
  const TensorMap one{{"a", zeros({8, 1})}};
  expect_error([&] { model.fit(x, Nest(one), {.verbose = 0}); }, Code::invalid_argument,
               "the map of labels has no entry 'z'; it has: a");
}

TEST(MapsByName, OfLabelsForTheOutputsWithALoss) {
  Model model = zeros_named_z_and_a();
  model.compile({.optimizer = "sgd", .loss = {{"a", "mse"}}, .metrics = {{"a", "mae"}}});
  const TensorMap y{{"a", fill({8, 1}, 2.f)}};
  const Logs logs = model.evaluate(ones({8, 2}), Nest(y), {.verbose = 0});
  EXPECT_NEAR(logs["loss"], 4, 1e-6);
  EXPECT_NEAR(logs["a_mae"], 2, 1e-6);
}

TEST(MapsByName, OfSampleWeights) {
  Model model = zeros_named_z_and_a();
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Nest each = TensorMap{{"z", ones({8, 1})}, {"a", ones({8, 1})}};
  const auto batches_with = [&](const Nest& weights) {
    return data::AnyDataset::from_tensor_slices(Nest::tuple({Nest(ones({8, 2})), each, weights})).batch(4);
  };
  const Nest by_name = TensorMap{{"z", fill({8}, 2.f)}, {"a", fill({8}, 3.f)}};
  Logs logs = model.evaluate(batches_with(by_name), {.verbose = 0});
  EXPECT_NEAR(logs["z_loss"], 2, 1e-6);
  EXPECT_NEAR(logs["a_loss"], 3, 1e-6);
  logs = model.evaluate(batches_with(TensorMap{{"a", fill({8}, 3.f)}}), {.verbose = 0});
  EXPECT_NEAR(logs["z_loss"], 1, 1e-6);
  EXPECT_NEAR(logs["a_loss"], 3, 1e-6);
  model.fit(batches_with(by_name), {.verbose = 0});
  expect_error(
      [&] {
        model.evaluate(batches_with(TensorMap{{"b", ones({8})}}), {.verbose = 0});
      },
      Code::invalid_argument, "sample weights are given for output 'b'");
}

}  // namespace
}  // namespace runnel::keras
