// train::Checkpoint: names, numbers, files, parts that come later, what restore says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "runnel/track/checkpoint.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::train {
namespace {

using test::expect_error;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;

Variable number_variable(float value) { return Variable(Tensor(value)); }
float number_of(const Variable& v) { return v.value().item<float>(); }

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  for (const CheckpointVariable& v : list_variables(path)) names.push_back(v.name);
  return names;
}

TEST(Checkpoints, AreNumberedAndNamedByTheStateFile) {
  const TempDir dir;
  const Variable step(int64_t{7});
  Checkpoint checkpoint({{"step", step}});
  EXPECT_EQ(latest_checkpoint(dir.path()), std::nullopt);
  EXPECT_EQ(checkpoint.save(dir.file("model.ckpt")), dir.file("model.ckpt-1"));
  step.assign(int64_t{8});
  EXPECT_EQ(checkpoint.save(dir.file("model.ckpt")), dir.file("model.ckpt-2"));
  EXPECT_EQ(test::read_text(dir.file("checkpoint")),
            "model_checkpoint_path: \"model.ckpt-2\"\nall_model_checkpoint_paths: \"model.ckpt-2\"\n");
  EXPECT_EQ(latest_checkpoint(dir.path()), dir.file("model.ckpt-2"));
  EXPECT_THAT(names_in(dir.path()),
              ElementsAre("_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter/.ATTRIBUTES/VARIABLE_VALUE",
                          "step/.ATTRIBUTES/VARIABLE_VALUE"));

  const Variable other(int64_t{0});
  Checkpoint again({{"step", other}});
  again.restore(latest_checkpoint(dir.path())).assert_consumed();
  EXPECT_EQ(other.value().item<int64_t>(), 8);
  EXPECT_EQ(again.save(dir.file("model.ckpt")), dir.file("model.ckpt-3"));
}

TEST(Checkpoints, AreWrittenWithoutANumber) {
  const TempDir dir;
  const Variable v = number_variable(2);
  Checkpoint checkpoint({{"v", v}});
  EXPECT_EQ(checkpoint.write(dir.file("plain")), dir.file("plain"));
  EXPECT_FALSE(std::filesystem::exists(dir.file("checkpoint")));
  EXPECT_THAT(names_in(dir.file("plain")), ElementsAre("_CHECKPOINTABLE_OBJECT_GRAPH", "v/.ATTRIBUTES/VARIABLE_VALUE"));
  v.assign(3.f);
  checkpoint.read(dir.file("plain")).assert_consumed();
  EXPECT_EQ(number_of(v), 2);
  EXPECT_EQ(load_variable(dir.file("plain"), "v/.ATTRIBUTES/VARIABLE_VALUE").item<float>(), 2);
}

TEST(Checkpoints, DoNothingWithoutAPath) {
  const Variable v = number_variable(2);
  Checkpoint checkpoint({{"v", v}});
  const RestoreStatus status = checkpoint.restore(std::nullopt);
  status.expect_partial();
  EXPECT_EQ(number_of(v), 2);
  EXPECT_EQ(checkpoint.save_counter().value().item<int64_t>(), 0);
  expect_error([&] { status.assert_consumed(); }, Code::failed_precondition, "no checkpoint was given");
  expect_error([&] { status.assert_nontrivial_match(); }, Code::failed_precondition, "no checkpoint was given");
  EXPECT_THAT(status.str(), HasSubstr("nothing restored"));
}

TEST(Checkpoints, TakePartsOfEveryKind) {
  const TempDir dir;
  struct Net : Trackable {
    Variable w = number_variable(1);
    Net() { track("w", w); }
  };
  const auto make = [](float value) {
    struct Parts {
      std::shared_ptr<Net> net = std::make_shared<Net>();
      Net member;
      Variable v = number_variable(0);
      data::Iterator<Tensor> iterator = data::range(10).make_iterator();
      random::Generator generator = random::Generator::from_seed(3);
      lookup::MutableHashTable table{DType::string, DType::float32, 0.f};
      Checkpoint inner{{{"deep", v}}};
      Checkpoint all;
    };
    auto parts = std::make_shared<Parts>();
    parts->net->w.assign(value);
    parts->member.w.assign(value + 1);
    parts->v.assign(value + 2);
    parts->all = Checkpoint({{"shared", parts->net},
                             {"pointer", &parts->member},
                             {"variable", parts->v},
                             {"iterator", parts->iterator},
                             {"pointer_to_iterator", &parts->iterator},
                             {"generator", parts->generator},
                             {"table", parts->table},
                             {"checkpoint", parts->inner},
                             {"list", std::vector<CheckpointPart>{parts->v, parts->net}},
                             {"dict", std::map<std::string, CheckpointPart>{{"a", parts->v}}}});
    return parts;
  };
  const auto saved = make(10), fresh = make(0);
  saved->iterator.next();
  saved->table.insert(Tensor::of<Bytes>({Bytes("x")}), Tensor{5.f});
  const std::string path = saved->all.save(dir.file("ckpt"));
  fresh->all.restore(path).assert_consumed();
  EXPECT_EQ(number_of(fresh->net->w), 10);
  EXPECT_EQ(number_of(fresh->member.w), 11);
  EXPECT_EQ(number_of(fresh->v), 12);
  EXPECT_EQ(fresh->iterator.next()->item<int64_t>(), 1);
  EXPECT_EQ(fresh->table.size(), 1);
  EXPECT_EQ(fresh->generator.uniform({2}).to_vector<float>(), saved->generator.uniform({2}).to_vector<float>());
}

TEST(Checkpoints, OfARootHaveNoNameBeforeItsParts) {
  const TempDir dir;
  struct Net : Trackable {
    Variable w = number_variable(1);
    Net() { track("w", w); }
  };
  Net net;
  const Variable step = number_variable(5);
  Checkpoint checkpoint(net, {{"step", step}});
  const std::string path = checkpoint.save(dir.file("ckpt"));
  EXPECT_THAT(names_in(path), ElementsAre("_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter/.ATTRIBUTES/VARIABLE_VALUE",
                                          "step/.ATTRIBUTES/VARIABLE_VALUE", "w/.ATTRIBUTES/VARIABLE_VALUE"));
  EXPECT_EQ(net.edges().size(), 1U);
  net.w.assign(0.f);
  step.assign(0.f);
  Checkpoint again(&net, {{"step", step}});
  again.restore(path).assert_consumed();
  EXPECT_EQ(number_of(net.w), 1);
  EXPECT_EQ(number_of(step), 5);
  EXPECT_EQ(again.save_counter().value().item<int64_t>(), 1);

  Checkpoint late(net);  // the step is attached after restore
  late.restore(path);
  const Variable other = number_variable(0);
  late.track("step", other);
  EXPECT_EQ(number_of(other), 5);
  expect_error([&] { Checkpoint(net, {{"w", other}}); }, Code::invalid_argument, "another part 'w'");
}

TEST(Checkpoints, GivePartsThatComeLaterTheirValues) {
  const TempDir dir;
  {
    keras::Sequential model({keras::Input({3}), keras::Dense({.units = 2})});
    model.set_weights({ones({3, 2}), Tensor{4.f, 5.f}});
    Checkpoint({{"model", model}}).save(dir.file("ckpt"));
  }
  Checkpoint checkpoint;
  const RestoreStatus status = checkpoint.restore(latest_checkpoint(dir.path()));
  expect_error([&] { status.assert_consumed(); }, Code::failed_precondition, "model/layer_with_weights-0/kernel");
  EXPECT_THAT(status.str(), HasSubstr("pending     model/layer_with_weights-0/bias    float32  [2]"));
  keras::Sequential model({keras::Dense({.units = 2})});
  checkpoint.track("model", model);
  EXPECT_EQ(model(ones({1, 3})).to_vector<float>(), (std::vector<float>{7, 8}));
  status.assert_consumed();
}

TEST(Checkpoints, ThatDoNotFitChangeNothingAndNameAll) {
  const TempDir dir;
  Checkpoint({{"a", number_variable(1)}, {"b", number_variable(2)}, {"c", number_variable(3)}}).write(dir.file("x"));
  const Variable a = number_variable(9), b(Tensor{1.f, 2.f}), c(int32_t{3});
  Checkpoint checkpoint({{"a", a}, {"b", b}, {"c", c}});
  try {
    checkpoint.restore(dir.file("x"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("\n  b: Variable 'Variable' has shape [2], assigned []"));
    EXPECT_THAT(error.what(), HasSubstr("\n  c: "));
    EXPECT_THAT(error.what(), HasSubstr("checkpoint_test.cpp"));
  }
  EXPECT_EQ(number_of(a), 9);
}

TEST(Checkpoints, RefusePartsWithoutANameAndTakeGrowingLists) {
  const TempDir dir;
  const Variable v = number_variable(4);
  expect_error([&] { Checkpoint({{"", v}}); }, Code::invalid_argument, "a part has an empty name");
  TrackableList list;
  Checkpoint checkpoint({{"list", &list}});
  list.append(v);
  list.append(number_variable(5));
  checkpoint.write(dir.file("x"));
  EXPECT_THAT(names_in(dir.file("x")), ElementsAre("_CHECKPOINTABLE_OBJECT_GRAPH", "list/0/.ATTRIBUTES/VARIABLE_VALUE",
                                                   "list/1/.ATTRIBUTES/VARIABLE_VALUE"));
}

TEST(Checkpoints, ThatDoNotFitLaterPartsSaySo) {
  const TempDir dir;
  Checkpoint({{"a", number_variable(1)}, {"b", number_variable(2)}}).write(dir.file("x"));
  const Variable a = number_variable(9), b(Tensor{1.f, 2.f});
  Checkpoint checkpoint({{"a", a}});
  const RestoreStatus status = checkpoint.read(dir.file("x"));
  status.expect_partial().assert_existing_objects_matched();
  expect_error([&] { checkpoint.track("b", b); }, Code::invalid_argument, "a part was added after restore");
  EXPECT_EQ(number_of(a), 1);
  EXPECT_EQ(b.value().to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_THAT(status.str(), HasSubstr("mismatched  b"));
  expect_error([&] { status.assert_consumed(); }, Code::failed_precondition, "b");
}

TEST(Checkpoints, NameWhatStandsForOneObjectOrForSeveral) {
  const TempDir dir;
  const Variable one = number_variable(1), x = number_variable(5), y = number_variable(6);
  Checkpoint({{"a", one}, {"b", one}}).write(dir.file("one"));
  Checkpoint({{"a", number_variable(2)}, {"b", number_variable(3)}}).write(dir.file("two"));
  testing::internal::CaptureStderr();
  {
    Checkpoint into_two({{"a", x}, {"b", y}});
    into_two.read(dir.file("one")).expect_partial();
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("'a': the first has got its state, the other, 'b',"));
  EXPECT_EQ(number_of(x), 1);
  EXPECT_EQ(number_of(y), 6);
  testing::internal::CaptureStderr();
  {
    Checkpoint into_one({{"a", one}, {"b", one}});
    EXPECT_THAT(into_one.read(dir.file("two")).str(), HasSubstr("unused      b"));
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the value b is not used"));
  EXPECT_EQ(number_of(one), 2);
}

TEST(Checkpoints, CheckTheCounterWithEverythingElse) {
  const TempDir dir;
  Checkpoint({{"a", number_variable(1)}, {"save_counter", number_variable(2)}}).write(dir.file("x"));
  const Variable a = number_variable(0);
  Checkpoint checkpoint({{"a", a}});
  expect_error([&] { checkpoint.restore(dir.file("x")); }, Code::invalid_argument, "save_counter");
  EXPECT_EQ(number_of(a), 0);
  EXPECT_EQ(checkpoint.save(dir.file("ckpt")), dir.file("ckpt-1"));
}

TEST(Checkpoints, SayWhatIsMissingAndWhatIsLeft) {
  const TempDir dir;
  Checkpoint({{"a", number_variable(1)}, {"b", number_variable(2)}}).write(dir.file("x"));
  const Variable a = number_variable(0), c = number_variable(9);
  Checkpoint checkpoint({{"a", a}, {"c", c}});
  testing::internal::CaptureStderr();
  {
    const RestoreStatus status = checkpoint.read(dir.file("x"));
    std::vector<RestoreStatus::State> states;
    for (const RestoreStatus::Row& row : status.rows()) states.push_back(row.state);
    EXPECT_THAT(states, ElementsAre(RestoreStatus::State::missing, RestoreStatus::State::pending,
                                    RestoreStatus::State::matched));
    std::ostringstream text;
    text << status;
    EXPECT_EQ(text.str(), dir.file("x") +
                              ": 1 matched, 1 pending, 1 missing\n"
                              "            name  dtype    shape\n"
                              "missing     c     float32  []     named 'Variable'\n"
                              "pending     b     float32  []\n"
                              "matched     a     float32  []\n");
    expect_error([&] { status.assert_existing_objects_matched(); }, Code::failed_precondition,
                 "1 of the program's objects: c");
    status.assert_nontrivial_match();
    checkpoint = Checkpoint();
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("were never used: b."));
  testing::internal::CaptureStderr();
  { Checkpoint({{"a", a}}).read(dir.file("x")).expect_partial(); }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Checkpoints, AreTakenAndWrittenInTwoSteps) {
  const TempDir dir;
  const Variable v(Tensor{1.f, 2.f});
  Checkpoint checkpoint({{"v", v}});
  const Snapshot snapshot = checkpoint.capture();
  v.assign_add(Tensor{1.f, 1.f});
  write_snapshot(dir.file("x"), snapshot);
  EXPECT_EQ(load_variable(dir.file("x"), "v/.ATTRIBUTES/VARIABLE_VALUE").to_vector<float>(),
            (std::vector<float>{1, 2}));
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{2, 3}));
}

}  // namespace
}  // namespace runnel::train
