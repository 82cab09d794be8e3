#include "runnel/track/checkpoints_iterator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "runnel/runnel.h"
#include "runnel/track/checkpoint.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::train {
namespace {

using test::TempDir;
using testing::ElementsAre;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

TEST(CheckpointsIterators, GiveEachLatestCheckpointOnce) {
  const TempDir dir;
  Checkpoint checkpoint({{"v", Variable(1.f)}});
  checkpoint.save(dir.file("a"));
  std::vector<std::string> seen;
  for (const std::string& path : checkpoints_iterator(dir.path(), {.timeout = 0})) {
    seen.push_back(path.substr(path.rfind('/') + 1));
    if (seen.size() > 1) continue;
    checkpoint.save(dir.file("a"));
    checkpoint.save(dir.file("a"));  // the one before has gone by when it is asked
  }
  EXPECT_THAT(seen, ElementsAre("a-1", "a-3"));
}

TEST(CheckpointsIterators, WaitForAnotherProgram) {
  const TempDir dir;
  CheckpointsIterator iterator = checkpoints_iterator(dir.path(), {.timeout = 60, .seconds_to_sleep = 0.01});
  std::thread trainer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    Checkpoint({{"v", Variable(1.f)}}).save(dir.file("a"));
  });
  EXPECT_EQ(iterator.next(), dir.file("a-1"));
  trainer.join();
}

TEST(CheckpointsIterators, EndAfterTheTimeoutUnlessToldToGoOn) {
  const TempDir dir;
  const auto begin = Clock::now();
  EXPECT_EQ(checkpoints_iterator(dir.path(), {.timeout = 0.05, .seconds_to_sleep = 0.01}).next(), std::nullopt);
  EXPECT_GE(seconds_since(begin), 0.03);
  EXPECT_EQ(checkpoints_iterator(dir.path(), {.timeout = 0.05}).next(), std::nullopt);  // too short for one sleep
  int asked = 0;
  const auto save_when_asked = [&] {
    if (++asked == 2) Checkpoint({{"v", Variable(1.f)}}).save(dir.file("a"));
    return asked == 4;
  };
  CheckpointsIterator iterator = checkpoints_iterator(dir.path(), {.timeout = 0, .timeout_fn = save_when_asked});
  EXPECT_EQ(iterator.next(), dir.file("a-1"));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(iterator.next(), std::nullopt);
  EXPECT_EQ(asked, 4);
}

TEST(CheckpointsIterators, LetTimePassBetweenTwo) {
  const TempDir dir;
  Checkpoint checkpoint({{"v", Variable(1.f)}});
  checkpoint.save(dir.file("a"));
  CheckpointsIterator iterator = checkpoints_iterator(dir.path(), {.min_interval_secs = 0.1, .timeout = 0});
  const auto begin = Clock::now();
  EXPECT_EQ(iterator.next(), dir.file("a-1"));
  checkpoint.save(dir.file("a"));
  EXPECT_EQ(iterator.next(), dir.file("a-2"));
  EXPECT_GE(seconds_since(begin), 0.1);
  test::expect_error([&] { checkpoints_iterator(dir.path(), {.timeout = -1}); }, Code::invalid_argument,
                     "seconds are not negative, got timeout -1");
}

}  // namespace
}  // namespace runnel::train
