// Checkpoints of a folder, as TensorFlow's manager keeps them.
#include "runnel/track/checkpoint_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "runnel/base/log.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"

namespace runnel::train {
namespace {

using test::expect_error;
using test::read_text;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One variable and its checkpoint.
struct Saved {
  Variable v{0.f};
  Checkpoint checkpoint{{{"v", v}}};
};

std::vector<std::string> base_names_of(const std::vector<std::string>& prefixes) {
  std::vector<std::string> names;
  for (const std::string& prefix : prefixes) names.push_back(prefix.substr(prefix.rfind('/') + 1));
  return names;
}

std::vector<double> times_in(const std::string& state_file) {
  return io::parse_checkpoint_state(state_file).all_model_checkpoint_timestamps;
}

// Saves as TensorFlow did at these times, and compares the folder after every save.
void replay(const std::string& fixture, CheckpointManagerOptions options, double begin, float first_value,
            const std::function<CheckpointNumber(int)>& number) {
  const std::string folder = test::fixtures() / "tf215/checkpoints" / fixture;
  const auto expected = nlohmann::json::parse(test::read_bytes(folder + "/expected.json"));
  const TempDir dir;
  double now = begin;
  Saved saved;
  options.directory = dir.path();
  options.clock = [&now] { return now; };
  CheckpointManager manager(saved.checkpoint, options);
  int i = 0;
  for (const auto& step : expected["steps"]) {
    const std::string state = step["state_file"];
    now = times_in(state).back();
    saved.v.assign(first_value + static_cast<float>(i));
    const auto path = manager.save(number(i++));
    EXPECT_EQ(path, manager.latest_checkpoint());
    EXPECT_EQ(read_text(dir.file("checkpoint")), state);
    EXPECT_EQ(base_names_of(manager.checkpoints()), step["kept"].get<std::vector<std::string>>());
    EXPECT_EQ(Env::posix().list(dir.path()), step["files"].get<std::vector<std::string>>());
  }
  for (const std::string& name : Env::posix().list(dir.path())) {
    EXPECT_EQ(read_text(dir.file(name)), test::read_bytes(folder + "/" + name)) << name;
  }
}

TEST(CheckpointManager, WritesTheBytesOfTensorFlowsManager) {
  RUNNEL_REQUIRE_FIXTURES();
  // When it was made stands in the state file, a second too early.
  replay("manager_keep3", {.max_to_keep = 3}, 1795000476.8023956 + 1, 1, [](int) { return CheckpointNumber(); });
}

TEST(CheckpointManager, KeepsOneForEveryFewHours) {
  RUNNEL_REQUIRE_FIXTURES();
  replay("manager_hours", {.checkpoint_name = "model", .max_to_keep = 2, .keep_checkpoint_every_n_hours = 1},
         1600000000, 0, [](int i) { return CheckpointNumber((i + 1) * 10); });
}

// What TensorFlow 2.15 does with the same clock.
TEST(CheckpointManager, HoursGoOnWithANewOne) {
  const TempDir dir;
  Saved saved;
  double now = 1000000;
  const CheckpointManagerOptions options = {
      .directory = dir.path(), .max_to_keep = 1, .keep_checkpoint_every_n_hours = 1, .clock = [&now] { return now; }};
  std::vector<std::string> indexes;
  for (int i = 0; i < 3; ++i) {
    CheckpointManager manager(saved.checkpoint, options);
    for (int k = 0; k < 3; ++k) {
      now += 1500;
      manager.save();
    }
    EXPECT_EQ(manager.checkpoints().size(), 1u);
  }
  for (const std::string& name : Env::posix().list(dir.path())) {
    if (name.ends_with(".index")) indexes.push_back(name);
  }
  EXPECT_THAT(indexes, ElementsAre("ckpt-3.index", "ckpt-6.index", "ckpt-9.index"));
  EXPECT_EQ(read_text(dir.file("checkpoint")),
            "model_checkpoint_path: \"ckpt-9\"\nall_model_checkpoint_paths: \"ckpt-9\"\n"
            "all_model_checkpoint_timestamps: 1013500.0\nlast_preserved_timestamp: 1009000.0\n");
  now -= 20000;  // the clock was put back
  set_log_level(LogLevel::error);
  CheckpointManager manager(saved.checkpoint, options);
  set_log_level(LogLevel::warning);
  EXPECT_THAT(manager.checkpoints(), IsEmpty());
  for (int k = 0; k < 3; ++k) manager.save();
  EXPECT_THAT(base_names_of(manager.checkpoints()), ElementsAre("ckpt-12"));
  EXPECT_THAT(read_text(dir.file("checkpoint")), ::testing::HasSubstr("last_preserved_timestamp: 993500.0\n"));
}

TEST(CheckpointManager, ANewOneGoesOn) {
  const TempDir dir;
  {
    Saved saved;
    CheckpointManager manager(saved.checkpoint, dir.path(), 3);
    EXPECT_EQ(manager.latest_checkpoint(), std::nullopt);
    for (int i = 1; i <= 4; ++i) {
      saved.v.assign(i);
      manager.save();
    }
  }
  Saved saved;
  CheckpointManager manager(saved.checkpoint, dir.path(), 2);
  EXPECT_THAT(base_names_of(manager.checkpoints()), ElementsAre("ckpt-2", "ckpt-3", "ckpt-4"));  // until the next save
  EXPECT_EQ(manager.restore_or_initialize(), dir.file("ckpt-4"));
  EXPECT_EQ(saved.v.value().item<float>(), 4);
  EXPECT_EQ(manager.save(), dir.file("ckpt-5"));
  EXPECT_THAT(base_names_of(manager.checkpoints()), ElementsAre("ckpt-4", "ckpt-5"));
  EXPECT_FALSE(io::checkpoint_exists(dir.file("ckpt-2")));
  EXPECT_FALSE(io::checkpoint_exists(dir.file("ckpt-3")));
  CheckpointManager all(saved.checkpoint, dir.path(), std::nullopt);
  for (int i = 0; i < 4; ++i) all.save();
  EXPECT_EQ(all.checkpoints().size(), 6u);
}

TEST(CheckpointManager, ANumberThatComesAgainIsTheNewest) {
  const TempDir dir;
  Saved saved;
  CheckpointManager manager(saved.checkpoint, {.directory = dir.path(), .max_to_keep = 3});
  for (const int number : {1, 2, 3, 1}) {
    saved.v.assign(number * 10 + saved.checkpoint.save_counter().value().item<int64_t>());
    manager.save(number);
  }
  EXPECT_THAT(base_names_of(manager.checkpoints()), ElementsAre("ckpt-2", "ckpt-3", "ckpt-1"));
  EXPECT_EQ(saved.checkpoint.save_counter().value().item<int64_t>(), 4);
  saved.v.assign(0);
  saved.checkpoint.restore(manager.latest_checkpoint()).assert_consumed();
  EXPECT_EQ(saved.v.value().item<float>(), 13);
  const Variable number(int32_t{77});
  EXPECT_EQ(manager.save(number), dir.file("ckpt-77"));
  EXPECT_EQ(manager.save(Tensor(int64_t{78})), dir.file("ckpt-78"));
}

TEST(CheckpointManager, SavesEveryFewSteps) {
  const TempDir dir;
  Saved saved;
  const Variable step(int64_t{0});
  CheckpointManager manager(
      saved.checkpoint, {.directory = dir.path(), .max_to_keep = 5, .step_counter = step, .checkpoint_interval = 3});
  EXPECT_EQ(manager.checkpoint_interval(), 3);
  std::vector<bool> done;
  for (int i = 0; i < 8; ++i) {
    done.push_back(manager.save().has_value());
    step.assign_add(int64_t{1});
  }
  EXPECT_THAT(done, ElementsAre(true, false, false, true, false, false, true, false));
  EXPECT_TRUE(manager.save({}, {.check_interval = false}).has_value());
  EXPECT_FALSE(manager.save({}, {.check_interval = false}).has_value());  // this step has its checkpoint
  EXPECT_EQ(saved.checkpoint.save_counter().value().item<int64_t>(), 4);
  CheckpointManager other(saved.checkpoint,
                          {.directory = dir.path(), .max_to_keep = 5, .step_counter = step, .checkpoint_interval = 3});
  other.restore_or_initialize();
  EXPECT_FALSE(other.save().has_value());  // it stands where the checkpoint was made
}

TEST(CheckpointManager, InitializesWhereThereIsNothing) {
  const TempDir dir;
  Saved saved;
  int calls = 0;
  CheckpointManager manager(saved.checkpoint, {.directory = dir.file("new"), .init_fn = [&] { ++calls; }});
  EXPECT_EQ(manager.restore_or_initialize(), std::nullopt);
  EXPECT_EQ(calls, 1);
  manager.save();
  EXPECT_EQ(manager.restore_or_initialize(), dir.file("new/ckpt-1"));
  EXPECT_EQ(calls, 1);
}

TEST(CheckpointManager, ADamagedLatestNamesTheOthers) {
  const TempDir dir;
  Saved saved;
  CheckpointManager manager(saved.checkpoint, dir.path(), 3);
  for (int i = 1; i <= 3; ++i) {
    saved.v.assign(i);
    manager.save();
  }
  const std::string shard = io::checkpoint_shard_path(dir.file("ckpt-3"), 0, 1);
  Env::posix().remove(shard);
  expect_error([&] { manager.restore_or_initialize(); }, Code::not_found, shard);
  expect_error([&] { manager.restore_or_initialize(); }, Code::not_found,
               dir.file("ckpt-1") + " " + dir.file("ckpt-2"));
  EXPECT_EQ(saved.v.value().item<float>(), 3);
  saved.checkpoint.restore(dir.file("ckpt-2"));
  EXPECT_EQ(saved.v.value().item<float>(), 2);
  const std::string other_shard = io::checkpoint_shard_path(dir.file("ckpt-2"), 0, 1);
  std::vector<std::byte> bytes = Env::posix().read_file(other_shard);
  for (std::byte& each : bytes) each ^= std::byte{1};
  Env::posix().write_file(shard, bytes);
  expect_error([&] { manager.restore_or_initialize(); }, Code::data_loss, "checksum is wrong");
  bytes = Env::posix().read_file(io::checkpoint_index_path(dir.file("ckpt-3")));
  bytes.resize(bytes.size() - 20);
  Env::posix().write_file(io::checkpoint_index_path(dir.file("ckpt-3")), bytes);
  expect_error([&] { manager.restore_or_initialize(); }, Code::data_loss, dir.file("ckpt-3.index"));
  EXPECT_EQ(saved.v.value().item<float>(), 2);
  EXPECT_EQ(manager.save(9), dir.file("ckpt-9"));  // and the folder goes on
  EXPECT_EQ(manager.restore_or_initialize(), dir.file("ckpt-9"));
}

TEST(CheckpointManager, AFolderMovesWithItsStateFile) {
  const TempDir dir;
  Saved saved;
  CheckpointManager(saved.checkpoint, dir.file("old"), 2).save();
  Env::posix().rename(dir.file("old"), dir.file("new"));
  CheckpointManager manager(saved.checkpoint, dir.file("new"), 1);
  EXPECT_EQ(manager.latest_checkpoint(), dir.file("new/ckpt-1"));
  manager.save();
  EXPECT_FALSE(io::checkpoint_exists(dir.file("new/ckpt-1")));
}

TEST(CheckpointManager, AnotherNameOfTheNewCheckpointIsNotAnOldOne) {
  const TempDir dir;
  const std::string folder = dir.file("run"), saved_one = folder + "/ckpt-1";
  Saved saved;
  saved.checkpoint.write(saved_one);
  std::filesystem::create_directory_symlink(folder, dir.file("link"));
  for (const std::string& name :
       {std::filesystem::relative(folder).string(), dir.file("link"), dir.file("link/../run")}) {
    SCOPED_TRACE(name);
    io::write_checkpoint_state(folder,
                               {.model_checkpoint_path = saved_one,
                                .all_model_checkpoint_paths = {saved_one},
                                .all_model_checkpoint_timestamps = {1.0}},
                               {.relative_paths = false});
    saved.v.assign_add(1.f);
    CheckpointManager manager(saved.checkpoint, {.directory = name, .max_to_keep = 1});
    EXPECT_EQ(manager.save(1), name + "/ckpt-1");
    EXPECT_EQ(manager.checkpoints().size(), 1u);
    const float value = saved.v.value().item<float>();
    saved.v.assign(-1.f);
    EXPECT_EQ(manager.restore_or_initialize(), name + "/ckpt-1");
    EXPECT_EQ(saved.v.value().item<float>(), value);
  }
}

TEST(CheckpointManager, TwoInOneFolderKnowOfEachOther) {
  const TempDir dir;
  Saved a, b;
  CheckpointManager first(a.checkpoint, {.directory = dir.path(), .checkpoint_name = "a", .max_to_keep = 3});
  CheckpointManager second(b.checkpoint, {.directory = dir.path(), .checkpoint_name = "b", .max_to_keep = 3});
  first.save();
  second.save();
  first.save();
  second.save();
  EXPECT_THAT(base_names_of(second.checkpoints()), ElementsAre("b-1", "a-2", "b-2"));
  EXPECT_EQ(*latest_checkpoint(dir.path()), dir.file("b-2"));
  EXPECT_EQ(Env::posix().list(dir.path()).size(), 7u);
  first.save();
  EXPECT_THAT(base_names_of(first.checkpoints()), ElementsAre("a-2", "b-2", "a-3"));
}

TEST(CheckpointManager, WrongSettingsAreRefused) {
  const TempDir dir;
  Saved saved;
  const auto make = [&](const CheckpointManagerOptions& options) {
    return [&saved, options] { CheckpointManager(saved.checkpoint, options); };
  };
  expect_error(make({.directory = dir.path(), .max_to_keep = 0}), Code::invalid_argument, "max_to_keep is 0");
  expect_error(make({.directory = dir.path(), .checkpoint_interval = 2}), Code::invalid_argument, "step_counter");
  expect_error(make({}), Code::invalid_argument, "directory");
  expect_error(make({.directory = dir.path(), .checkpoint_name = "a/b"}), Code::invalid_argument, "a/b");
  expect_error(make({.directory = dir.path(), .max_overhead = 3.5}), Code::invalid_argument, "3.5");
  Env::posix().write_file(dir.file("checkpoint"), {});
  expect_error(make({.directory = dir.path()}), Code::data_loss, dir.file("checkpoint"));
}

TEST(CheckpointManager, AStateFileThatCannotBeReadIsNoNewFolder) {
  class Unreadable : public EnvWrapper {
   public:
    Unreadable() : EnvWrapper(Env::posix()) {}
    std::unique_ptr<SequentialFile> open_sequential(const std::string& path) override {
      if (path.ends_with("/checkpoint")) throw Error(Code::permission_denied, "[open] " + path + ": not for you");
      return EnvWrapper::open_sequential(path);
    }
  } unreadable;
  const TempDir dir;
  Saved saved;
  CheckpointManager manager(saved.checkpoint, dir.path(), 2);
  manager.save();
  const auto another = [&](Env& env) {
    return [&] { CheckpointManager(saved.checkpoint, {.directory = dir.path(), .max_to_keep = 2, .env = &env}); };
  };
  expect_error(another(unreadable), Code::permission_denied, "not for you");
  expect_error([&] { (void)latest_checkpoint(dir.path(), "checkpoint", unreadable); }, Code::permission_denied, "not");
  const std::string whole = read_text(dir.file("checkpoint"));
  Env::posix().write_file(dir.file("checkpoint"), as_bytes(whole.substr(0, 30)));  // cut off within the name
  expect_error(another(Env::posix()), Code::data_loss, dir.file("checkpoint") + ": it is damaged");
  expect_error([&] { manager.save({}, {.options = {}}); }, Code::data_loss, "it is damaged");  // damaged meanwhile
  EXPECT_TRUE(io::checkpoint_exists(dir.file("ckpt-1")));
  Env::posix().remove(dir.file("checkpoint"));
  std::filesystem::create_symlink("checkpoint", dir.file("checkpoint"));  // to itself
  expect_error(another(Env::posix()), Code::unknown, dir.file("checkpoint"));
  EXPECT_TRUE(io::checkpoint_exists(dir.file("ckpt-1")));
  std::filesystem::remove(dir.file("checkpoint"));
}

}  // namespace
}  // namespace runnel::train
