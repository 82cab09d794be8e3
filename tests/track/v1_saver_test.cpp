// Checkpoints of TensorFlow 1's Saver.
#include "runnel/track/v1_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runnel/compat/v1_train.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_reader.h"
#include "runnel/keras/keras.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"

namespace runnel::compat::v1 {
namespace {

using test::expect_error;
using test::read_text;
using test::TempDir;
using ::testing::Each;
using ::testing::ElementsAre;

std::vector<std::string> keys_of(const std::string& prefix) {
  std::vector<std::string> keys;
  const io::CheckpointReader reader(prefix);
  for (const io::CheckpointEntry& entry : reader.entries()) keys.push_back(entry.key);
  return keys;
}

std::vector<float> floats_in(Session& session, const Tensor& tensor) { return session.run(tensor).to_vector<float>(); }

// The variables of the fixture v1_saver, with values that it does not have.
struct FixtureGraph {
  Graph graph;
  Graph::Scope scope = graph.as_default();
  Variable w = get_variable("layer/w", {4, 2}, {.initializer = zeros_initializer()});
  Variable b = get_variable("layer/b", {4}, {.initializer = zeros_initializer()});
  Variable step = get_variable("step", {}, {.dtype = DType::int64});
  PartitionedVariable parts =
      get_variable("parts", {6, 2}, {.initializer = zeros_initializer()}, fixed_size_partitioner(3));
  Tensor all_parts = parts.as_tensor();
  train::Saver saver{train::SaverOptions{.max_to_keep = 2, .save_relative_paths = true}};
};

class FailingEnvOfStateFiles : public EnvWrapper {
 public:
  FailingEnvOfStateFiles() : EnvWrapper(Env::posix()) {}
  void rename(const std::string& from, const std::string& to) override {
    if (fails && to.ends_with("/checkpoint")) throw Error(Code::resource_exhausted, "no space left on device");
    EnvWrapper::rename(from, to);
  }
  bool fails = false;
};

TEST(Saver, ReadsWhatTensorFlowWroteAndWritesTheSameBytes) {
  RUNNEL_REQUIRE_FIXTURES();
  const std::string folder = test::fixtures() / "tf215/checkpoints/v1_saver";
  const TempDir dir;
  FixtureGraph g;
  Session session(g.graph);
  for (const char* kind : {"plain", "sharded"}) {
    g.saver.restore(session, folder + "/" + kind + "-30");
    EXPECT_THAT(session.run(g.b).to_vector<float>(), Each(0.5f));
    EXPECT_EQ(session.run(g.step).item<int64_t>(), 1);
    EXPECT_THAT(floats_in(session, g.all_parts), Each(0.25f));
  }
  g.saver.restore(session, folder + "/plain-20");
  EXPECT_FLOAT_EQ(session.run(g.w).to_vector<float>()[1], 0.7203245162963867f);
  for (const int step : {10, 20, 30}) g.saver.save(session, dir.file("plain"), step);
  for (const char* name : {"plain-20.index", "plain-30.index", "plain-20.data-00000-of-00001", "checkpoint"}) {
    EXPECT_EQ(read_text(dir.file(name)), test::read_bytes(folder + "/" + name)) << name;
  }
  EXPECT_THAT(g.saver.last_checkpoints(), ElementsAre(dir.file("plain-20"), dir.file("plain-30")));
  EXPECT_FALSE(io::checkpoint_exists(dir.file("plain-10")));
  EXPECT_TRUE(io::checkpoint_shards_on_disk(dir.file("plain-10")).empty());
  EXPECT_EQ(train::latest_checkpoint(dir.path()), dir.file("plain-30"));
}

TEST(Saver, PartsAreRestoredIntoOtherParts) {
  const TempDir dir;
  {
    Graph graph;
    const auto scope = graph.as_default();
    const PartitionedVariable cut = get_variable("table", {5, 3},
                                                 {.initializer =
                                                      [](const Shape&, DType) {
                                                        return reshape(range(15.f), {5, 3});
                                                      }},
                                                 fixed_size_partitioner(3));
    EXPECT_EQ(cut.parts().size(), 3u);
    EXPECT_EQ(cut.parts()[0].name(), "table/part_0");
    EXPECT_EQ(cut.parts()[0].slot().shape, (PartialShape{2, 3}));
    EXPECT_EQ(cut.parts()[2].slot().shape, (PartialShape{1, 3}));
    const Operation init = global_variables_initializer();
    Session session(graph);
    session.run(init);
    train::Saver().save(session, dir.file("cut"));
  }
  EXPECT_THAT(keys_of(dir.file("cut")), ElementsAre("table"));
  std::vector<float> expected(15);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<float>(i);
  Graph graph;
  const auto scope = graph.as_default();
  const PartitionedVariable columns = get_variable("table", {5, 3}, {}, fixed_size_partitioner(2, 1));
  const Tensor joined = columns.as_tensor();
  const Variable whole = get_variable("whole", {5, 3});
  Session session(graph);
  train::Saver(columns).restore(session, dir.file("cut"));
  EXPECT_EQ(floats_in(session, joined), expected);
  train::Saver({{"table", whole}}).restore(session, dir.file("cut"));
  EXPECT_EQ(session.run(whole).to_vector<float>(), expected);
  train::Saver({{"table", whole}}).save(session, dir.file("whole"));
  train::Saver(columns).restore(session, dir.file("whole"));
  EXPECT_EQ(floats_in(session, joined), expected);
}

TEST(Saver, OtherNamesOtherShapesAndTheStepOfAVariable) {
  const TempDir dir;
  Graph graph;
  const auto scope = graph.as_default();
  const Variable a = get_variable("a", {2, 3}, {.initializer = ones_initializer()});
  const Variable flat = get_variable("flat", {6}, {.initializer = zeros_initializer()});
  const Variable step = get_variable("global_step", {}, {.dtype = DType::int64});
  const Tensor forward = assign_add(step, int64_t{7});
  const Operation init = global_variables_initializer();
  Session session(graph);
  session.run(init);
  session.run(forward);
  train::Saver saver({{"renamed", a}}, {.pad_step_number = true});
  EXPECT_EQ(saver.save(session, dir.file("m"), step), dir.file("m-00000007"));
  EXPECT_EQ(saver.save(session, dir.file("m"), forward), dir.file("m-00000014"));
  EXPECT_THAT(keys_of(dir.file("m-00000007")), ElementsAre("renamed"));
  expect_error(
      [&] {
        train::Saver({{"renamed", flat}}).restore(session, dir.file("m-00000007"));
      },
      Code::invalid_argument, "'renamed'");
  train::Saver({{"renamed", flat}}, {.reshape = true}).restore(session, dir.file("m-00000007"));
  EXPECT_THAT(session.run(flat).to_vector<float>(), Each(1.f));
  expect_error([&] { train::Saver({{"x", a}, {"x", flat}}); }, Code::invalid_argument, "two variables");
  expect_error([&] { train::Saver({a, a}); }, Code::invalid_argument, "'a'");
}

TEST(Saver, AMismatchChangesNothing) {
  const TempDir dir;
  Graph graph;
  const auto scope = graph.as_default();
  const Variable a = get_variable("a", {2}, {.initializer = ones_initializer()});
  const Variable b = get_variable("b", {2}, {.initializer = ones_initializer()});
  const Variable wide = get_variable("wide", {3}, {.initializer = zeros_initializer()});
  const Variable whole_number = get_variable("n", {2}, {.dtype = DType::int32});
  const Tensor change = assign_add(a, Tensor{1.f, 1.f});
  const Operation init = global_variables_initializer();
  Session session(graph);
  expect_error([&] { train::Saver().save(session, dir.file("m")); }, Code::failed_precondition,
               "run global_variables_initializer() in this session first");
  session.run(init);
  train::Saver({a, b}).save(session, dir.file("m"));
  session.run(change);
  const auto expect_unchanged = [&] { EXPECT_THAT(session.run(a).to_vector<float>(), ElementsAre(2, 2)); };
  expect_error(
      [&] {
        train::Saver({{"a", a}, {"b", wide}}).restore(session, dir.file("m"));
      },
      Code::invalid_argument, "'b'");
  expect_unchanged();
  expect_error(
      [&] {
        train::Saver({{"a", a}, {"b", whole_number}}).restore(session, dir.file("m"));
      },
      Code::invalid_argument, "int32");
  expect_unchanged();
  expect_error([&] { train::Saver().restore(session, dir.file("m")); }, Code::not_found, "has no 'n', 'wide'");
  expect_error([&] { train::Saver().restore(session, dir.file("m")); }, Code::not_found, "v1_saver_test.cpp");
  expect_unchanged();
  expect_error([&] { train::Saver().restore(session, dir.file("none")); }, Code::not_found, "none");
  expect_error([&] { train::Saver().restore(session, train::latest_checkpoint(dir.file("no folder"))); },
               Code::invalid_argument, "run global_variables_initializer() then");
  Session fresh(graph);  // restoring is a way to initialise
  train::Saver({a, b}).restore(fresh, dir.file("m"));
  EXPECT_THAT(fresh.run(a).to_vector<float>(), ElementsAre(1, 1));
  expect_unchanged();
}

TEST(Saver, ReadsCheckpointsOfObjectsByTheNamesOfTheirVariables) {
  RUNNEL_REQUIRE_FIXTURES();
  const std::string prefix = test::fixtures() / "tf215/checkpoints/manager_keep3/ckpt-5";
  Graph graph;
  const auto scope = graph.as_default();
  const Variable value = get_variable("Variable", {});
  const Variable counter = get_variable("save_counter", {}, {.dtype = DType::int64});
  const Variable other = get_variable("scope/other", {});
  Session session(graph);
  ::testing::internal::CaptureStderr();
  train::Saver({value, counter}).restore(session, prefix);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("a checkpoint of objects"));
  EXPECT_EQ(session.run(value).item<float>(), 5);
  EXPECT_EQ(session.run(counter).item<int64_t>(), 5);
  expect_error(
      [&] {
        train::Saver({value, other}).restore(session, prefix);
      },
      Code::not_found, "without variables named 'scope/other'; no variable was changed. It has 'save_counter'");
  train::Saver({{"Variable", other}}).restore(session, prefix);
  EXPECT_EQ(session.run(other).item<float>(), 5);
}

TEST(Saver, KeepsAsManyAsAskedFor) {
  const TempDir dir;
  Graph graph;
  const auto scope = graph.as_default();
  const Variable a = get_variable("a", {}, {.initializer = ones_initializer()});
  const Operation init = global_variables_initializer();
  Session session(graph);
  session.run(init);
  train::Saver all({a}, {.max_to_keep = 0});
  for (int i = 0; i < 7; ++i) all.save(session, dir.file("all/m"), i);
  EXPECT_TRUE(all.last_checkpoints().empty());
  EXPECT_TRUE(io::checkpoint_exists(dir.file("all/m-0")));
  const auto state = io::read_checkpoint_state(dir.file("all"));
  EXPECT_THAT(state->all_model_checkpoint_paths, ElementsAre(dir.file("all/m-6")));
  train::Saver five({a});
  for (int i = 0; i < 7; ++i) five.save(session, dir.file("five/m"), i);
  five.save(session, dir.file("five/m"), 4);  // again: the newest then
  EXPECT_EQ(five.last_checkpoints().size(), 5u);
  EXPECT_EQ(five.last_checkpoints().front(), dir.file("five/m-2"));
  EXPECT_EQ(five.last_checkpoints().back(), dir.file("five/m-4"));
  train::Saver hourly({a}, {.max_to_keep = 1, .keep_checkpoint_every_n_hours = 0});
  for (int i = 0; i < 3; ++i) hourly.save(session, dir.file("hourly/m"), i);
  EXPECT_TRUE(io::checkpoint_exists(dir.file("hourly/m-0")));
  EXPECT_TRUE(io::checkpoint_exists(dir.file("hourly/m-2")));
  hourly.save(session, dir.file("hourly/m"), 9, {.latest_filename = "mine", .write_state = true});
  EXPECT_EQ(*train::latest_checkpoint(dir.file("hourly"), "mine"), dir.file("hourly/m-9"));
  train::Saver one({a}, {.max_to_keep = 1});
  one.save(session, dir.file("one/m"));
  one.save(session, dir.path() + "/./one/m");  // the same by another path
  EXPECT_TRUE(train::latest_checkpoint(dir.file("one")));
  expect_error([&] { hourly.save(session, dir.file("checkpoint")); }, Code::invalid_argument, "state file");
  expect_error([&] { hourly.save(session, "some/checkpoint"); }, Code::invalid_argument, "state file");
  expect_error([&] { hourly.save(session, dir.file("m"), {}, {.latest_filename = "a/b"}); }, Code::invalid_argument,
               "a/b");
}

TEST(Saver, WhatIsSavedAgainAfterAFailureStays) {
  const TempDir dir;
  Graph graph;
  const Graph::Scope scope = graph.as_default();
  const Variable a = get_variable("a", {2});
  Session session(graph);
  session.run(global_variables_initializer());
  FailingEnvOfStateFiles env;
  train::Saver saver({a}, {.max_to_keep = 1, .env = &env});
  saver.save(session, dir.file("x"));
  env.fails = true;
  EXPECT_THROW(saver.save(session, dir.file("y")), Error);  // x is to be removed now
  env.fails = false;
  saver.save(session, dir.file("x"));
  EXPECT_EQ(train::latest_checkpoint(dir.path()), dir.file("x"));
  EXPECT_FALSE(io::checkpoint_exists(dir.file("y")));
}

}  // namespace
}  // namespace runnel::compat::v1
