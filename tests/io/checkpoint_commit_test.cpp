// A checkpoint that is being written never harms the one that is there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <thread>

#include "runnel/base/format.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_reader.h"
#include "runnel/io/checkpoint_state.h"
#include "runnel/io/checkpoint_writer.h"
#include "tests/support/expect_error.h"
#include "tests/support/failing_env.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

using test::expect_error;
using test::FailingEnv;
using test::PowerlessEnv;
using test::TempDir;

constexpr size_t kElements = 1000;

ByteSpan bytes_of(const std::vector<int32_t>& values) { return std::as_bytes(std::span(values)); }

// Two values, all of whose elements are `step`.
void write_step(const std::string& prefix, int32_t step, Env& env = Env::posix()) {
  const std::vector<int64_t> shape = {kElements};
  CheckpointWriter writer(prefix, env);
  writer.add("a", 3, shape, bytes_of(std::vector<int32_t>(kElements, step)));
  writer.add("b", 3, shape, bytes_of(std::vector<int32_t>(kElements, step)));
  writer.finish();
}

// The step of a checkpoint whose values are all there and of one step; an Error otherwise.
int32_t read_step(const std::string& prefix) {
  const CheckpointReader reader(prefix);
  std::vector<int32_t> values(2 * kElements);
  const std::span<std::byte> room = std::as_writable_bytes(std::span(values));
  reader.read(reader.entry("a"), room.first(room.size() / 2));
  reader.read(reader.entry("b"), room.last(room.size() / 2));
  EXPECT_THAT(values, ::testing::Each(values[0]));
  return values[0];
}

// Saves `step` as the folder's latest.
void save_step(const std::string& dir, int32_t step, Env& env) {
  const std::string prefix = join_path(dir, fmt::format("ckpt-{}", step));
  write_step(prefix, step, env);
  write_checkpoint_state(dir, {.model_checkpoint_path = prefix}, {}, env);
}

std::vector<std::string> temporary_files(const std::string& dir) {
  std::vector<std::string> found;
  for (const std::string& name : Env::posix().list(dir)) {
    if (name.find(".tmp") != std::string::npos) found.push_back(name);
  }
  return found;
}

int steps_of(const std::function<void(Env&)>& body) {
  FailingEnv env;
  body(env);
  return env.steps;
}

TEST(CheckpointCommit, AnErrorOfTheLastSyncSaysThatTheNewOneIsThere) {
  const TempDir dir;
  const std::string prefix = dir.file("x");
  FailingEnv counting;
  write_step(prefix, 1, counting);
  ASSERT_EQ(counting.log.back(), "sync folder " + dir.path());
  remove_checkpoint(prefix);
  FailingEnv env;
  env.fail_at = counting.steps - 1;
  expect_error([&] { write_step(prefix, 2, env); }, Code::resource_exhausted, "the new checkpoint is in its place");
  EXPECT_EQ(read_step(prefix), 2);
}

TEST(CheckpointCommit, AFailedStepLeavesTheLatestCheckpoint) {
  FailingEnv quick;
  const TempDir measured;
  const int steps = steps_of([&](Env& env) { save_step(measured.path(), 2, env); });
  EXPECT_GE(steps, 15);
  for (const bool dies : {false, true}) {
    for (int at = 0; at < steps; ++at) {
      const TempDir dir;
      save_step(dir.path(), 1, quick);
      FailingEnv env;
      env.fail_at = at;
      env.dies = dies;
      EXPECT_THROW(save_step(dir.path(), 2, env), Error) << at;
      const auto latest = latest_checkpoint(dir.path());
      ASSERT_TRUE(latest.has_value()) << env.log.back();
      const bool done = *latest == dir.file("ckpt-2");  // only the last sync of the folder failed
      EXPECT_EQ(read_step(*latest), done ? 2 : 1) << env.log.back();
      if (!dies) {
        EXPECT_THAT(temporary_files(dir.path()), ::testing::IsEmpty()) << env.log.back();
      }
      save_step(dir.path(), 2, quick);  // and the next one works
      EXPECT_EQ(read_step(*latest_checkpoint(dir.path())), 2);
    }
  }
}

TEST(CheckpointCommit, AFailedStepLeavesTheCheckpointThatIsReplaced) {
  FailingEnv quick;
  const TempDir measured;
  write_step(measured.file("m"), 1);
  const int steps = steps_of([&](Env& env) { write_step(measured.file("m"), 2, env); });
  for (const bool dies : {false, true}) {
    for (int at = 0; at < steps; ++at) {
      const TempDir dir;
      write_step(dir.file("m"), 1, quick);
      FailingEnv env;
      env.fail_at = at;
      env.dies = dies;
      bool failed = false;
      try {
        write_step(dir.file("m"), 2, env);
      } catch (const Error&) {
        failed = true;
      }
      const int32_t step = read_step(dir.file("m"));
      EXPECT_TRUE(step == 2 || (failed && step == 1)) << env.log.back();
      write_step(dir.file("m"), 3, quick);
      EXPECT_EQ(read_step(dir.file("m")), 3);
      EXPECT_EQ(checkpoint_shards_on_disk(dir.file("m")).size(), 1u) << env.log.back();
    }
  }
}

TEST(CheckpointCommit, WithoutPowerTheLatestCheckpointIsTheOldOrTheNewOne) {
  FailingEnv quick;
  const TempDir measured;
  const int steps = steps_of([&](Env& env) { save_step(measured.path(), 2, env); });
  using Loss = PowerlessEnv::Loss;
  for (const Loss loss : {Loss::bytes, Loss::all_names, Loss::oldest_name}) {
    for (int at = 0; at <= steps; ++at) {
      const TempDir dir;
      save_step(dir.path(), 1, quick);
      PowerlessEnv env;
      env.fail_at = at;
      env.dies = true;
      try {
        save_step(dir.path(), 2, env);
      } catch (const Error&) {
      }
      env.lose(loss);
      const auto latest = latest_checkpoint(dir.path());
      ASSERT_TRUE(latest.has_value()) << "step " << at;
      EXPECT_EQ(read_step(*latest), *latest == dir.file("ckpt-2") ? 2 : 1) << "step " << at;
      if (at == steps) {
        EXPECT_EQ(*latest, dir.file("ckpt-2")) << "what was reported as saved is gone";
      }
    }
  }
}

TEST(CheckpointCommit, AFolderThatWasMadeIsOnTheDiskToo) {
  const TempDir dir;
  FailingEnv env;
  write_step(dir.file("new/folder/m"), 1, env);
  EXPECT_THAT(env.log, ::testing::Contains("sync folder " + dir.path()));
  EXPECT_THAT(env.log, ::testing::Contains("sync folder " + dir.file("new")));
}

TEST(CheckpointCommit, WhatFollowsRunsBeforeOthersMayCommit) {
  const TempDir dir;
  const std::vector<int32_t> values(kElements, 1);
  const std::vector<int64_t> shape = {kElements};
  CheckpointWriter writer(dir.file("m"));
  writer.add("a", 3, shape, bytes_of(values));
  bool seen = false;
  writer.finish([&] {
    seen = checkpoint_exists(dir.file("m"));
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(1);  // waits for the lock until then
      Env::posix().lock(dir.path());
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
  });
  EXPECT_TRUE(seen);
  EXPECT_NE(Env::posix().lock(dir.path()), nullptr);
}

TEST(CheckpointCommit, WhatAKilledWriterLeftIsRemoved) {
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    CheckpointWriter writer(dir.file("m"));
    const std::vector<int32_t> values(kElements, 1);
    const std::vector<int64_t> shape = {kElements};
    writer.add("a", 3, shape, bytes_of(values));
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(temporary_files(dir.path()).size(), 1u);
  CheckpointWriter own(dir.file("own"));  // of a process that lives: stays
  write_step(dir.file("other"), 1);
  EXPECT_EQ(temporary_files(dir.path()).size(), 1u);
}

// Whatever number its writer has: that of another container may be anything, and numbers are used again.
TEST(CheckpointCommit, ATemporaryFileStaysAsLongAsItIsLocked) {
  const TempDir dir;
  CheckpointWriter own(dir.file("own"));
  ASSERT_EQ(temporary_files(dir.path()).size(), 1u);
  const std::string live = temporary_files(dir.path())[0];
  const size_t number = live.rfind('-', live.rfind('-') - 1) + 1;
  const std::string foreign = "foreign" + live.substr(live.find(".data"), number - live.find(".data")) + "999999999-0";
  const std::string dead = "dead" + live.substr(live.find(".data"));
  const std::string other_host = live.substr(0, number) + "b-999999999-0";
  for (const std::string& name : {foreign, dead, other_host}) Env::posix().create(dir.file(name))->close();
  std::unique_ptr<FileLock> writer = Env::posix().lock(dir.file(foreign));
  write_step(dir.file("other"), 1);
  EXPECT_THAT(temporary_files(dir.path()), ::testing::UnorderedElementsAre(live, foreign, other_host));
  writer.reset();
  write_step(dir.file("other"), 2);
  EXPECT_THAT(temporary_files(dir.path()), ::testing::UnorderedElementsAre(live, other_host));
  own.finish();
  EXPECT_THAT(temporary_files(dir.path()), ::testing::ElementsAre(other_host));
}

// One that looks for leftovers while another begins to write takes nothing away from it.
TEST(CheckpointCommit, WritersThatBeginTogetherKeepTheirFiles) {
  const TempDir dir;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      FailingEnv env;  // which syncs nothing
      for (int32_t step = 1; step <= 100; ++step) write_step(dir.file(fmt::format("t{}", t)), step, env);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) EXPECT_EQ(read_step(dir.file(fmt::format("t{}", t))), 100);
  EXPECT_THAT(temporary_files(dir.path()), ::testing::IsEmpty());
}

TEST(CheckpointCommit, WhereNothingCanBeWrittenTheErrorSaysSo) {
  const TempDir dir;
  std::filesystem::create_directory(dir.file("file.index"));
  expect_error([&] { write_step(dir.file("file"), 1); }, Code::failed_precondition, dir.file("file"));
  EXPECT_THAT(temporary_files(dir.path()), ::testing::IsEmpty());
  const auto blocker = Env::posix().create(dir.file("no_folder"));
  expect_error([&] { write_step(dir.file("no_folder/m"), 1); }, Code::already_exists, "no_folder");
}

TEST(CheckpointCommit, AReadOnlyFolderIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write into read-only folders";
  const TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  expect_error([&] { write_step(dir.file("m"), 1); }, Code::permission_denied, dir.file("m"));
  std::filesystem::permissions(dir.path(), std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace runnel::io
