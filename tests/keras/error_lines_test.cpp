// Errors of calls that are no ops name the line of the user too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/compat/v1.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/temp_dir.h"

namespace runnel::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The error of f names this file and the line `line`, once.
template <class F>
void expect_line(const F& f, uint32_t line, const std::string& text) {
  const std::string place = "error_lines_test.cpp:" + std::to_string(line) + ")";
  try {
    f();
    ADD_FAILURE() << "no error, wanted: " << text;
  } catch (const Error& e) {
    const std::string said = e.what();
    EXPECT_THAT(said, HasSubstr(text));
    EXPECT_THAT(said, HasSubstr(place));
    EXPECT_EQ(said.find(" (at "), said.rfind(" (at ")) << said;
  }
}
#define EXPECT_LINE(statement, text) expect_line([&] { statement; }, __LINE__, text)

TEST(ErrorLines, OfModels) {
  Sequential model({Input({2}), Dense(1)});
  EXPECT_LINE(model.set_weights({ones({1})}), "has 2 weights, got 1 values");
  EXPECT_LINE(model.set_weights({ones({1}), ones({1})}), "has shape [2,1], the value given has [1]");
  EXPECT_LINE(model.get_layer("nope"), "has no layer 'nope'");
  EXPECT_LINE(model.get_layer(7), "has 1 layers, asked for number 7");
  EXPECT_LINE(model.add(Input({3})), "stands at the beginning only");
  EXPECT_LINE(model.add(LayerPtr()), "is an empty pointer");
  EXPECT_LINE(model_from_json("{"), "not a configuration in JSON");
  EXPECT_LINE(model_from_json("{\"class_name\":\"Nope\"}"), "a model of class 'Nope' cannot be made");
  EXPECT_LINE(Input({-5}), "the size of a dimension is -5");
  EXPECT_LINE(Model(ones({1}), ones({1})), "must be made by keras::Input");
  Sequential unbuilt({Dense(1)});
  EXPECT_LINE(unbuilt.count_params(), "the layer isn't built");
  EXPECT_LINE(unbuilt.summary(), "is not built");
  unbuilt.pop();
  EXPECT_LINE(unbuilt.pop(), "has no layers");
  optimizers::Adam adam;
  EXPECT_LINE(adam.set_weights({ones({1})}), "variable 'iteration' has shape []");
}

TEST(ErrorLines, OfWhatTrainingGives) {
  History history;
  Logs logs;
  logs.set("loss", 1);
  history.add(0, logs);
  EXPECT_LINE(history["nope"], "nothing was recorded as 'nope'; there are: loss");
  EXPECT_LINE(history["loss"][1], "epoch 1 asked of 1");
  EXPECT_LINE(history.history["loss"][-2], "epoch -2 asked of 1");
  EXPECT_LINE(logs["nope"], "the logs have no 'nope'; there are: loss");
  EXPECT_LINE(logs[std::string("nope")], "the logs have no 'nope'");
  EXPECT_LINE(logs[3], "asked for number 3");
  EXPECT_EQ(logs["loss"] + logs[0] + logs[-1] + history["loss"][-1] + history[std::string("loss")][0], 5);
}

TEST(ErrorLines, OfUtils) {
  const test::TempDir dir;
  EXPECT_LINE(utils::to_categorical(Tensor{1, 5}, 3), "element 1 is class 5, but there are only 3");
  EXPECT_LINE(utils::pad_sequences({Tensor(1)}), "sequence 0 is a scalar");
  EXPECT_LINE(utils::load_npz(dir.path() + "/nope.npz"), "nope.npz");
  EXPECT_LINE(utils::save_npz(dir.path() + "/a.npz", {{"a", Tensor("text")}}), "'a' is string");
  EXPECT_LINE(utils::get_file("", "https://nowhere.invalid/a"), "names no file");
}

TEST(ErrorLines, OfSessions) {
  namespace v1 = compat::v1;
  const v1::Graph graph;
  const auto scope = graph.as_default();
  const Tensor p = v1::placeholder(DType::float32, {2}), q = p + 1;
  v1::get_variable("v", {2});
  EXPECT_LINE(v1::get_variable("v", {2}), "has a variable 'v' already");
  v1::Session session;
  EXPECT_LINE(session.run(q), "the placeholder 'Placeholder' (float32[2]) must be fed");
  EXPECT_LINE(session.run(q, {{p, Tensor{1.f}}}), "a value of shape [1] cannot be fed");
  EXPECT_LINE(session.run({q, p}), "must be fed");
  EXPECT_LINE(session.run(Tensor(1.f)), "a tensor of the graph is needed");
  EXPECT_THAT(session.run(q, {{p, Tensor{1.f, 2.f}}}).to_vector<float>(), ElementsAre(2, 3));
  session.close();
  EXPECT_LINE(session.run(q), "the session is closed");
}

TEST(SetWeights, ChangesNothingWhereOneValueCannotBeCast) {
  Sequential model({Input({1}), Dense({.units = 1, .kernel_initializer = "ones"})});
  EXPECT_ANY_THROW(model.set_weights({zeros({1, 1}), Tensor::of(std::vector<std::string>{"text"})}));
  EXPECT_EQ(model.get_weights()[0].item<float>(), 1);
}

// Keras numbers the outputs of a layer that has several, and those of several calls of one.
TEST(OutputNames, OfOneLayerAreNumbered) {
  const auto shared = make<Dense>({.units = 1, .name = "d"});
  const Tensor a = Input({2}), b = Input({2});
  Model model({a, b}, {shared(a), shared(b)});
  model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae"}});
  const Tensor x = ones({4, 2}), y = ones({4, 1});
  const History history = model.fit({x, x * 2}, {y, y * 0}, {.verbose = 0});
  std::vector<std::string> names;
  for (const auto& [name, values] : history.history) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("d_1_loss", "d_1_mae", "d_loss", "d_mae", "loss"));  // a map: sorted
  EXPECT_NE(history["d_loss"][0], history["d_1_loss"][0]);
  const std::map<std::string, Tensor> named{{"d", y}, {"d_1", y * 0}};
  model.fit({x, x}, named, {.verbose = 0});
}

}  // namespace
}  // namespace runnel::keras
