// What must not be lost: older checkpoints and the number when a save fails, and word of values that nobody used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_writer.h"
#include "runnel/runnel.h"
#include "runnel/track/checkpoint.h"
#include "runnel/track/checkpoint_contents.h"
#include "runnel/track/checkpoint_manager.h"
#include "tests/support/expect_error.h"
#include "tests/support/failing_env.h"
#include "tests/support/temp_dir.h"

namespace runnel::train {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::FailingEnv;
using test::TempDir;
using testing::HasSubstr;

TEST(Safety, AFailedSaveLeavesTheOlderCheckpointAndTheNumber) {
  int failures = 0;
  for (int steps = 0;; ++steps) {
    SCOPED_TRACE(steps);
    const TempDir dir;
    const Variable v(1.f);
    Checkpoint checkpoint({{"v", v}});
    checkpoint.save(dir.file("ckpt"));
    v.assign(2.f);
    FailingEnv disk;
    disk.fail_at = steps;
    try {
      checkpoint.save(dir.file("ckpt"), {.env = &disk});
    } catch (const Error& error) {
      ++failures;
      EXPECT_EQ(error.code(), Code::resource_exhausted);
      EXPECT_THAT(error.what(), HasSubstr("safety_test.cpp"));
      EXPECT_EQ(checkpoint.save_counter().value().item<int64_t>(), 1);
    }
    // Whatever the folder holds, the latest is whole.
    const std::optional<std::string> latest = latest_checkpoint(dir.path());
    ASSERT_TRUE(latest);
    const Variable other(0.f);
    Checkpoint({{"v", other}}).restore(latest).assert_consumed();
    EXPECT_EQ(other.value().item<float>(), *latest == dir.file("ckpt-1") ? 1.f : 2.f);
    if (disk.steps <= steps) break;  // none failed
    EXPECT_EQ(checkpoint.save(dir.file("ckpt")), dir.file("ckpt-2"));
    EXPECT_EQ(latest_checkpoint(dir.path()), dir.file("ckpt-2"));
  }
  EXPECT_GT(failures, 5);
}

TEST(Safety, AFailedCallbackDoesNotTakeTheNumberBack) {
  const TempDir dir;
  Checkpoint checkpoint({{"v", Variable(1.f)}});
  const CheckpointOptions failing{
      .experimental_write_callbacks = {[](const std::string&) { throw Error(Code::unavailable, "nobody listens"); }}};
  expect_error([&] { checkpoint.save(dir.file("ckpt"), failing); }, Code::unavailable, "nobody listens");
  EXPECT_EQ(latest_checkpoint(dir.path()), dir.file("ckpt-1"));
  EXPECT_EQ(checkpoint.save(dir.file("ckpt")), dir.file("ckpt-2"));
}

TEST(Safety, TheLatestIsFoundOrMissedAsTensorFlowDoes) {
  const TempDir dir;
  const auto state_file = [&](const std::string& text) { std::ofstream(dir.file("checkpoint")) << text; };
  EXPECT_EQ(latest_checkpoint(dir.file("none")), std::nullopt);
  EXPECT_EQ(latest_checkpoint(dir.path()), std::nullopt);
  testing::internal::CaptureStderr();
  state_file("model_checkpoint_path: \"gone-1\"\n");
  EXPECT_EQ(latest_checkpoint(dir.path()), std::nullopt);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("gone-1, whose files are missing"));
  testing::internal::CaptureStderr();
  state_file("not a proto\n");
  EXPECT_EQ(latest_checkpoint(dir.path()), std::nullopt);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("is ignored"));
  state_file("");
  expect_error([&] { (void)latest_checkpoint(dir.path()); }, Code::data_loss, "names no checkpoint");
  // Written on another machine, whose folders are not here.
  Checkpoint({{"v", Variable(1.f)}}).save(dir.file("ckpt"));
  state_file("model_checkpoint_path: \"/home/somebody/run/ckpt-1\"\nall_model_checkpoint_paths: \"ckpt-1\"\n");
  EXPECT_EQ(latest_checkpoint(dir.path()), dir.file("ckpt-1"));
}

TEST(Safety, MistakesAreToldApart) {
  const TempDir dir;
  const Variable v(1.f);
  Checkpoint checkpoint({{"v", v}});
  expect_error([&] { checkpoint.restore(dir.file("none")); }, Code::not_found, "there is no such checkpoint");
  expect_error([&] { checkpoint.restore(dir.path()); }, Code::not_found, "there is no such checkpoint");
  expect_error([&] { checkpoint.restore(""); }, Code::not_found, "there is no such checkpoint");
  expect_error([&] { checkpoint.save(""); }, Code::invalid_argument, "has no name");
  expect_error([&] { checkpoint.save(dir.path() + "/"); }, Code::invalid_argument, "has no name");
  expect_error([] { Checkpoint({{"v", std::shared_ptr<Trackable>()}}); }, Code::invalid_argument, "null pointer");
  expect_error([] { Checkpoint({{"v", static_cast<Trackable*>(nullptr)}}); }, Code::invalid_argument, "null pointer");
  expect_error([] { Checkpoint({{"v", Variable()}}); }, Code::invalid_argument, "was never made");
  expect_error([&] { Checkpoint({{"v", v}, {"v", Variable(2.f)}}); }, Code::invalid_argument, "another part");
  const auto traced = function([&] {
    checkpoint.save(dir.file("x"));
    return Tensor(1.f);
  });
  expect_error([&] { traced(); }, Code::failed_precondition, "call it outside");
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

struct OneWeight : Trackable {
  explicit OneWeight(float value) { track("w", Variable(value)); }
};

TEST(Safety, APartThatIsGoneIsNotLeftOut) {
  const TempDir dir;
  Checkpoint checkpoint;
  auto net = std::make_unique<OneWeight>(1.f);
  checkpoint.track("net", *net);
  EXPECT_EQ(checkpoint.capture().values.size(), 2U);
  CheckpointManager manager(checkpoint, dir.path(), 2);
  manager.save();
  net.reset();
  for (int i = 0; i < 3; ++i) {  // the good checkpoint is not pushed out by empty ones
    expect_error([&] { manager.save(); }, Code::failed_precondition, "'net' is gone");
  }
  expect_error([&] { checkpoint.capture(); }, Code::failed_precondition, "safety_test.cpp");
  expect_error([&] { checkpoint.write(dir.file("x")); }, Code::failed_precondition, "'net' is gone");
  EXPECT_EQ(checkpoint.save_counter().value().item<int64_t>(), 1);
  EXPECT_EQ(load_variable(manager.checkpoints().at(0), "net/w/.ATTRIBUTES/VARIABLE_VALUE").item<float>(), 1.f);
  OneWeight other(2.f);
  checkpoint.set("net", other);
  EXPECT_EQ(manager.save(), dir.file("ckpt-2"));
  std::optional<Checkpoint> rooted;
  {
    OneWeight root(3.f);
    rooted.emplace(root);
  }
  expect_error([&] { rooted->write(dir.file("x")); }, Code::failed_precondition, "is gone");
}

TEST(Safety, APartOfAListThatIsGoneIsNotLeftOut) {
  OneWeight stays(1.f);
  std::optional<OneWeight> in_list(2.f), in_dict(3.f), attached(4.f);
  const Checkpoint list({{"nets", std::vector<CheckpointPart>{*in_list, stays}}});
  const Checkpoint dict({{"nets", std::map<std::string, CheckpointPart>{{"a", stays}, {"b", *in_dict}}}});
  const Checkpoint rooted(stays, {{"more", *attached}});
  const Checkpoint outer({{"inner", rooted}});
  for (const Checkpoint& each : {list, dict, rooted, outer}) EXPECT_GE(each.capture().values.size(), 2U);
  in_list.reset();
  in_dict.reset();
  attached.reset();
  expect_error([&] { list.capture(); }, Code::failed_precondition, "'nets/0' is gone");
  expect_error([&] { dict.capture(); }, Code::failed_precondition, "'nets/b' is gone");
  expect_error([&] { rooted.capture(); }, Code::failed_precondition, "'more' is gone");
  expect_error([&] { outer.capture(); }, Code::failed_precondition, "'inner/more' is gone");
}

TEST(Safety, APartThatDoesNotFitIsNoPart) {
  const TempDir dir;
  OneWeight root(1.f);
  Checkpoint(root, {{"extra", Variable(5.f)}}).write(dir.file("x"));
  OneWeight fresh(0.f);
  Checkpoint checkpoint{CheckpointPart(fresh)};
  checkpoint.read(dir.file("x")).expect_partial();
  const Variable misfit(zeros({3})), fits(0.f);
  const auto refused = [](const auto& call) { expect_error(call, Code::invalid_argument, "does not fit the program"); };
  refused([&] { checkpoint.track("extra", misfit); });
  EXPECT_EQ(checkpoint.node()->find_edge("extra"), nullptr);
  refused([&] { checkpoint.set("extra", misfit); });
  EXPECT_EQ(checkpoint.node()->find_edge("extra"), nullptr);
  checkpoint.track("extra", fits);  // the value has waited
  EXPECT_EQ(fits.value().item<float>(), 5.f);
  checkpoint.capture();
}

// By name, too: a part that fits does not make the one before forgotten.
TEST(Safety, AMisfitByNameStaysInTheTable) {
  const TempDir dir;
  io::CheckpointWriter file(dir.file("old"));
  const std::vector<float> numbers{1, 2};
  const std::vector<int64_t> shape{2};
  for (const char* key : {"a", "b"}) file.add(key, 1, shape, std::as_bytes(std::span(numbers)));
  file.finish();
  Checkpoint checkpoint;
  const RestoreStatus status = checkpoint.read(dir.file("old"));
  expect_error([&] { checkpoint.track("x", Variable(zeros({3}), {.name = "a"})); }, Code::invalid_argument, "a: ");
  checkpoint.track("y", Variable(zeros({2}), {.name = "b"}));
  EXPECT_THAT(status.str(), HasSubstr("mismatched  a "));
  expect_error([&] { status.assert_existing_objects_matched(); }, Code::failed_precondition, "do not fit the program");
  checkpoint.track("x", Variable(zeros({2}), {.name = "a"}));
  status.assert_existing_objects_matched();
}

// A manager may remove the checkpoint, and a program may save another under its name.
TEST(Safety, ValuesThatWaitAreThoseOfTheFileThatWasRestored) {
  for (const bool replaced : {false, true}) {
    const TempDir dir;
    const Variable v(Tensor{1.f, 2.f}), other(Tensor{5.f, 6.f});
    const std::string prefix = Checkpoint({{"v", v}}).write(dir.file("ckpt"));
    Checkpoint later;
    later.read(prefix);
    if (replaced) {
      for (int i = 0; i < 2; ++i) Checkpoint({{"v", other}}).write(prefix);
    } else {
      io::remove_checkpoint(prefix);
    }
    const Variable made(zeros({2}));
    later.track("v", made);
    EXPECT_EQ(made.value().to_vector<float>(), (std::vector<float>{1, 2}));
  }
}

TEST(Safety, AValueThatCannotBeSetLeavesTheOthers) {
  const TempDir dir;
  const std::string lines = dir.file("lines.txt");
  std::ofstream(lines) << "one\ntwo\nthree\n";
  const Variable a(1.f), z(2.f);
  auto iterator = data::TextLineDataset(lines).make_iterator();
  auto numbers = data::range(10).make_iterator();
  iterator.next();
  numbers.next();
  Checkpoint checkpoint({{"a", a}, {"b", numbers}, {"iterator", iterator}, {"z", z}});
  checkpoint.write(dir.file("x"));
  a.assign(10.f);
  z.assign(20.f);
  numbers.next();
  fs::remove(lines);
  EXPECT_THROW(checkpoint.read(dir.file("x")), Error);
  EXPECT_EQ(a.value().item<float>(), 10.f);
  EXPECT_EQ(z.value().item<float>(), 20.f);
  EXPECT_EQ(numbers.next()->item<int64_t>(), 2);
  std::ofstream(lines) << "one\ntwo\nthree\n";
  checkpoint.read(dir.file("x")).assert_consumed();
  EXPECT_EQ(a.value().item<float>(), 1.f);
  EXPECT_EQ(iterator.next()->item<std::string>(), "two");
  EXPECT_EQ(numbers.next()->item<int64_t>(), 1);
}

TEST(Safety, UnusedValuesAreNamedAtTheEndOfTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the library has threads by now
  const TempDir dir;
  Checkpoint({{"a", Variable(1.f)}, {"b", Variable(2.f)}}).write(dir.file("x"));
  EXPECT_EXIT(
      {
        auto* const checkpoint = new Checkpoint({{"a", Variable(0.f)}});
        checkpoint->read(dir.file("x"));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "1 of its values were never used: b\\.");
}

}  // namespace
}  // namespace runnel::train
