// Checkpoints that are written while the program goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "runnel/base/log.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/runnel.h"
#include "runnel/tensor/allocator.h"
#include "runnel/track/checkpoint_manager.h"
#include "tests/support/expect_error.h"
#include "tests/support/failing_env.h"
#include "tests/support/resident.h"
#include "tests/support/temp_dir.h"

// A child of fork() lacks the threads whose memory then looks leaked: LeakSanitizer asks here when a process ends.
const pid_t tests_pid = getpid();
extern "C" int __lsan_is_turned_off();  // NOLINT(bugprone-reserved-identifier): its name
extern "C" int __lsan_is_turned_off() { return getpid() != tests_pid; }

namespace runnel::train {
namespace {

using test::expect_error;
using test::FailingEnv;
using test::TempDir;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Writing waits at its first file until it may go on.
class GatedEnv : public EnvWrapper {
 public:
  GatedEnv() : EnvWrapper(Env::posix()) {}
  std::unique_ptr<WritableFile> create(const std::string& path) override {
    std::unique_lock lock(mutex_);
    ++waiting;
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return open_; });  // a failed test opens it never
    --waiting;
    return EnvWrapper::create(path);
  }
  void open(bool now = true) {
    const std::lock_guard lock(mutex_);
    open_ = now;
    changed_.notify_all();
  }
  std::atomic<int> waiting = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

CheckpointOptions async_in(Env& env) { return {.experimental_enable_async_checkpoint = true, .env = &env}; }

struct SavedValues {
  Variable v{zeros({1000})};
  Variable step{int64_t{0}};
  Checkpoint checkpoint{{{"v", v}, {"step", step}}};
  void set(int64_t now) {
    v.assign(fill({1000}, static_cast<float>(now)));
    step.assign(now);
  }
  int64_t whole() const {
    const auto now = step.value().item<int64_t>();
    EXPECT_THAT(v.value().to_vector<float>(), Each(static_cast<float>(now)));
    return now;
  }
};

int64_t step_in(const std::string& prefix) {
  SavedValues fresh;
  fresh.checkpoint.restore(prefix).assert_consumed();
  return fresh.whole();
}

TEST(AsyncSave, WritesTheValuesOfTheCall) {
  const TempDir dir;
  GatedEnv env;
  SavedValues s;
  s.set(1);
  const std::string path = s.checkpoint.save(dir.file("m"), async_in(env));
  EXPECT_EQ(path, dir.file("m-1"));
  s.set(2);
  s.v.assign_add(ones({1000}));
  EXPECT_FALSE(io::checkpoint_exists(path));
  EXPECT_EQ(latest_checkpoint(dir.path()), std::nullopt);
  env.open();
  s.checkpoint.sync();
  EXPECT_EQ(latest_checkpoint(dir.path()), path);
  EXPECT_EQ(step_in(path), 1);
  EXPECT_EQ(s.checkpoint.write(dir.file("w"), async_in(env)), dir.file("w"));
  s.checkpoint.sync();
  EXPECT_TRUE(io::checkpoint_exists(dir.file("w")));
}

TEST(AsyncSave, OneAtATimeAndRestoreWaits) {
  const TempDir dir;
  GatedEnv env;
  SavedValues s;
  s.set(1);
  s.checkpoint.save(dir.file("m"), async_in(env));
  std::thread opener([&] {
    while (env.waiting == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(env.waiting, 1);
    env.open();
  });
  s.set(2);
  s.checkpoint.save(dir.file("m"), async_in(env));  // waits for the first one
  EXPECT_TRUE(io::checkpoint_exists(dir.file("m-1")));
  opener.join();
  s.set(3);
  s.checkpoint.restore(dir.file("m-2"));  // for the second
  EXPECT_EQ(s.whole(), 2);
}

TEST(AsyncSave, AnErrorIsThrownOnceByTheNextCall) {
  const TempDir dir;
  SavedValues s;
  s.set(1);
  s.checkpoint.save(dir.file("m"));
  const std::string full = "No space left on device";
  std::deque<FailingEnv> envs;
  const auto fail = [&] {
    FailingEnv& env = envs.emplace_back();
    env.fail_at = 2;
    s.checkpoint.save(dir.file("m"), async_in(env));
  };
  fail();
  expect_error([&] { s.checkpoint.sync(); }, Code::resource_exhausted, full);
  s.checkpoint.sync();
  fail();
  expect_error([&] { s.checkpoint.save(dir.file("m")); }, Code::resource_exhausted, full);
  const int64_t counted = s.checkpoint.save_counter().value().item<int64_t>();
  EXPECT_EQ(s.checkpoint.save(dir.file("m")), dir.file("m-" + std::to_string(counted + 1)));
  fail();
  expect_error([&] { s.checkpoint.restore(dir.file("m-1")); }, Code::resource_exhausted, full);
  EXPECT_EQ(latest_checkpoint(dir.path()), dir.file("m-" + std::to_string(counted + 1)));
  fail();
  ::testing::internal::CaptureStderr();
  s.checkpoint = Checkpoint();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(full));
}

TEST(AsyncSave, CallbacksComeInOrderAndTheirErrorsToo) {
  const TempDir dir;
  SavedValues s;
  std::vector<std::string> calls;
  CheckpointOptions options = async_in(Env::posix());
  options.experimental_write_callbacks = {[&](const std::string& path) {
                                            EXPECT_TRUE(io::checkpoint_exists(path));
                                            calls.push_back("a " + path);
                                          },
                                          [&](const std::string& path) { calls.push_back("b " + path); }};
  s.checkpoint.save(dir.file("m"), options);
  s.checkpoint.sync();
  EXPECT_THAT(calls, ElementsAre("a " + dir.file("m-1"), "b " + dir.file("m-1")));
  options.experimental_write_callbacks = {[](const std::string&) { throw std::out_of_range("mine"); }};
  s.checkpoint.write(dir.file("w"), options);
  EXPECT_THROW(s.checkpoint.sync(), std::out_of_range);
  EXPECT_TRUE(io::checkpoint_exists(dir.file("w")));
}

TEST(AsyncSave, ACallbackMayOwnTheCheckpointButNotWaitForIt) {
  const TempDir dir;
  GatedEnv env;
  std::atomic<bool> called = false;
  {
    Checkpoint checkpoint({{"v", Variable(1.f)}});
    CheckpointOptions options = async_in(env);
    options.experimental_write_callbacks = {[&called, checkpoint](const std::string&) {
      expect_error([&] { checkpoint.sync(); }, Code::failed_precondition, "a callback of an asynchronous save");
      called = true;
    }};
    checkpoint.write(dir.file("m"), options);
  }
  env.open();  // the thread has the last owner now
  for (int i = 0; i < 2000 && !called; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(called);
}

TEST(AsyncSave, TakesOneCopyOfTheVariablesAtMost) {
  const TempDir dir;
  GatedEnv env;
  const Variable a(zeros({1 << 20})), b(zeros({1 << 20}));
  const Tensor one = ones({1 << 20});
  Checkpoint checkpoint({{"a", a}, {"b", b}});
  const auto bytes = static_cast<int64_t>(2 * (sizeof(float) << 20));
  const auto before = static_cast<int64_t>(host_memory::stats().in_use);
  checkpoint.write(dir.file("m"), async_in(env));
  EXPECT_LT(static_cast<int64_t>(host_memory::stats().in_use) - before, 10000);
  for (int i = 0; i < 3; ++i) {
    a.assign_add(one);
    b.assign_add(one);
  }
  EXPECT_LE(static_cast<int64_t>(host_memory::stats().in_use) - before, bytes + bytes / 10);  // blocks are rounded up
  env.open();
  checkpoint.sync();
  EXPECT_LT(static_cast<int64_t>(host_memory::stats().in_use) - before, 10000);
}

TEST(AsyncSave, AManagersLatestIsTheLastThatWasWritten) {
  const TempDir dir;
  GatedEnv env;
  env.open();
  SavedValues s;
  CheckpointManager manager(s.checkpoint, {.directory = dir.path(), .max_to_keep = 2, .env = &env});
  const ManagerSave async = {.options = {.experimental_enable_async_checkpoint = true}};
  for (int i = 1; i <= 4; ++i) {
    s.set(i);
    EXPECT_EQ(manager.save({}, async), dir.file("ckpt-" + std::to_string(i)));
  }
  manager.sync();
  EXPECT_THAT(manager.checkpoints(), ElementsAre(dir.file("ckpt-3"), dir.file("ckpt-4")));
  env.open(false);
  s.set(5);
  manager.save({}, async);
  EXPECT_EQ(manager.latest_checkpoint(), dir.file("ckpt-4"));
  env.open();
  EXPECT_EQ(manager.restore_or_initialize(), dir.file("ckpt-5"));
}

TEST(AsyncSave, AManagerThatIsGoneHasSaved) {
  const TempDir dir;
  {
    SavedValues s;
    s.set(1);
    CheckpointManager(s.checkpoint, dir.path(), 2)
        .save({}, {.options = {.experimental_enable_async_checkpoint = true}});
  }
  EXPECT_EQ(step_in(*latest_checkpoint(dir.path())), 1);
}

TEST(AsyncSave, AManagerTellsOfAFailureThoughNothingIsDue) {
  const TempDir dir;
  FailingEnv env;
  env.fail_at = 2;
  SavedValues s;
  s.set(0);
  CheckpointManager manager(
      s.checkpoint,
      {.directory = dir.path(), .max_to_keep = 2, .step_counter = s.step, .checkpoint_interval = 1000, .env = &env});
  const ManagerSave async = {.options = {.experimental_enable_async_checkpoint = true}};
  EXPECT_TRUE(manager.save({}, async).has_value());
  s.set(1);
  bool told = false;
  for (int i = 0; i < 2000 && !told; ++i) {
    try {
      EXPECT_FALSE(manager.save({}, async).has_value());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("No space left on device"));
      told = true;
    }
  }
  EXPECT_TRUE(told);
  EXPECT_TRUE(manager.save({}, async).has_value());  // what failed was no checkpoint: the next one is due
  manager.sync();
  EXPECT_EQ(step_in(*latest_checkpoint(dir.path())), 1);
  s.set(2);
  EXPECT_FALSE(manager.save({}, async).has_value());
}

TEST(AsyncSave, ExitWaits) {
  if (test::kThreadSanitizer) GTEST_SKIP() << "a child of fork() may start no threads";
  const TempDir dir;
  EXPECT_EXIT(
      {
        auto* const s = new SavedValues;  // nobody destroys it
        auto* const env = new GatedEnv;
        s->set(1);
        s->checkpoint.save(dir.file("m"), async_in(*env));
        std::thread([env] {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          env->open();
        }).detach();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
  const std::optional<std::string> latest = latest_checkpoint(dir.path());
  ASSERT_TRUE(latest);
  EXPECT_EQ(step_in(*latest), 1);
}

TEST(AsyncSave, ACallbackMayEndTheProgram) {
  const TempDir dir;
  EXPECT_EXIT(
      {
        ::alarm(30);  // where it waits for itself
        auto* const s = new SavedValues;
        s->set(1);
        s->checkpoint.save(dir.file("m"), {.experimental_enable_async_checkpoint = true,
                                           .experimental_write_callbacks = {[](const std::string&) { std::exit(3); }}});
        s->checkpoint.sync();
      },
      ::testing::ExitedWithCode(3), "");
  EXPECT_EQ(step_in(*latest_checkpoint(dir.path())), 1);
}

TEST(AsyncSave, ExitTellsOfAFailure) {
  if (test::kThreadSanitizer) GTEST_SKIP() << "a child of fork() may start no threads";
  const TempDir dir;
  EXPECT_EXIT(
      {
        auto* const s = new SavedValues;  // nobody destroys it, and nobody calls sync
        auto* const env = new FailingEnv;
        env->fail_at = 2;
        s->checkpoint.save(dir.file("m"), async_in(*env));
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "an asynchronous save failed: .*No space left on device");
}

TEST(AsyncSave, AForkedChildDoesNotWaitForItsParentsSave) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers do not follow the threads of a parent";
  const TempDir dir;
  GatedEnv env;
  SavedValues s;
  s.set(1);
  s.checkpoint.save(dir.file("m"), async_in(env));
  while (env.waiting == 0) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(15);          // where it hangs
    s.checkpoint.sync();  // there is nothing to wait for
    s.checkpoint = Checkpoint();
    std::exit(7);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  env.open();
  s.checkpoint.sync();
  EXPECT_EQ(step_in(dir.file("m-1")), 1);
}

// Every file that is synced takes a second of the clock.
class SlowEnv : public FailingEnv {
 public:
  double now = 1000;

 private:
  void on_sync(const std::string&) override { ++now; }
};

TEST(SavePace, SavesCostThePartOfTheTimeThatWasAskedFor) {
  const TempDir dir;
  SlowEnv env;
  SavedValues s;
  CheckpointManager manager(
      s.checkpoint,
      {.directory = dir.path(), .max_to_keep = 2, .max_overhead = 0.1, .env = &env, .clock = [&] { return env.now; }});
  const double begin = env.now;
  double saving = 0;
  int saves = 0;
  while (env.now < begin + 1000) {
    const double start = env.now;
    if (manager.save()) ++saves;
    saving += env.now - start;
    ++env.now;  // a step of the program
  }
  EXPECT_GE(saves, 20);
  EXPECT_NEAR(saving / 1000, 0.1, 0.02);
  EXPECT_TRUE(manager.save({}, {.check_interval = false}).has_value());
}

// A folder with two checkpoints of steps 1 and 2; then saves step 3.
void save_third(const std::string& dir, Env& env, bool async) {
  SavedValues s;
  CheckpointManager manager(s.checkpoint, {.directory = dir, .max_to_keep = 2, .env = &env});
  s.set(3);
  manager.save(3, {.options = {.experimental_enable_async_checkpoint = async}});
  manager.sync();
}

void save_two(const std::string& dir) {
  SavedValues s;
  FailingEnv env;
  CheckpointManager manager(s.checkpoint, {.directory = dir, .max_to_keep = 2, .env = &env});
  for (int i = 1; i <= 2; ++i) {
    s.set(i);
    manager.save();
  }
}

int steps_of_third() {
  const TempDir dir;
  save_two(dir.path());
  FailingEnv env;
  save_third(dir.path(), env, false);
  return env.steps;
}

// Without those of writers that still live, as this process does.
size_t finished_files(const std::string& dir) {
  const std::vector<std::string> names = Env::posix().list(dir);
  return static_cast<size_t>(std::count_if(
      names.begin(), names.end(), [](const std::string& name) { return name.find(".tmp") == std::string::npos; }));
}

class CheckpointManagerFaults : public ::testing::Test {
 protected:
  CheckpointManagerFaults() { set_log_level(LogLevel::error); }
  ~CheckpointManagerFaults() override { set_log_level(LogLevel::warning); }
};

TEST_F(CheckpointManagerFaults, WhateverFailsTheLatestIsWhole) {
  const int steps = steps_of_third();
  EXPECT_GE(steps, 18);
  for (const bool async : {false, true}) {
    for (const bool dies : {false, true}) {
      for (int at = 0; at < steps; ++at) {
        const TempDir dir;
        save_two(dir.path());
        FailingEnv env;
        env.fail_at = at;
        env.dies = dies;
        bool failed = false;
        try {
          save_third(dir.path(), env, async);
        } catch (const Error& error) {
          failed = true;
          EXPECT_THAT(error.what(), HasSubstr("No space left on device"));
        }
        const std::string& what = env.log[static_cast<size_t>(at)];
        const auto latest = latest_checkpoint(dir.path());
        ASSERT_TRUE(latest.has_value()) << what;
        const int64_t step = step_in(*latest);
        EXPECT_EQ(*latest, dir.file("ckpt-" + std::to_string(step)));
        EXPECT_TRUE(step == 3 || (failed && step == 2)) << what;
        FailingEnv working;
        save_third(dir.path(), working, false);
        EXPECT_EQ(step_in(*latest_checkpoint(dir.path())), 3);
        EXPECT_EQ(finished_files(dir.path()), 5u) << what;
      }
    }
  }
}

TEST_F(CheckpointManagerFaults, WithoutPowerTheLatestIsWhole) {
  using Loss = test::PowerlessEnv::Loss;
  const int steps = steps_of_third();
  for (const Loss loss : {Loss::bytes, Loss::all_names, Loss::oldest_name}) {
    for (int at = 0; at <= steps; ++at) {
      const TempDir dir;
      save_two(dir.path());
      test::PowerlessEnv env;
      env.fail_at = at;
      env.dies = true;
      bool failed = false;
      try {
        save_third(dir.path(), env, false);
      } catch (const Error&) {
        failed = true;
      }
      env.lose(loss);
      const auto latest = latest_checkpoint(dir.path());
      ASSERT_TRUE(latest.has_value()) << "step " << at;
      const int64_t step = step_in(*latest);
      EXPECT_TRUE(step == 3 || (failed && step == 2)) << "step " << at;
    }
  }
}

// A small file system of its own; not there where the test may not make one.
class SmallDisk {
 public:
  SmallDisk() : mounted_(::mount("tmpfs", dir_.path().c_str(), "tmpfs", 0, "size=200k") == 0) {}
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) ::umount2(dir_.path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const TempDir& dir() const { return dir_; }

 private:
  TempDir dir_;
  bool mounted_;
};

TEST_F(CheckpointManagerFaults, AFullDisk) {
  const SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "a small file system cannot be mounted here; failing Envs stand for it";
  SavedValues s;
  s.set(1);
  CheckpointManager manager(s.checkpoint, disk.dir().path(), 2);
  manager.save();
  const size_t files = Env::posix().list(disk.dir().path()).size();
  s.checkpoint.track("large", Variable(zeros({100000})));
  for (const bool async : {false, true}) {
    expect_error(
        [&] {
          manager.save({}, {.options = {.experimental_enable_async_checkpoint = async}});
          manager.sync();
        },
        Code::resource_exhausted, "No space left on device");
    EXPECT_EQ(step_in(*latest_checkpoint(disk.dir().path())), 1);
    EXPECT_EQ(Env::posix().list(disk.dir().path()).size(), files);
  }
}

}  // namespace
}  // namespace runnel::train
