// What profiles have of checkpoints.
#include <gmock/gmock.h>

#include "runnel/runnel.h"
#include "runnel/summary/profiler.h"
#include "runnel/track/checkpoint.h"
#include "tests/support/profiles.h"
#include "tests/support/temp_dir.h"

namespace runnel::train {
namespace {

using profile::Kind;
using profile::Recording;
using testing::ElementsAre;

TEST(CheckpointProfile, SavingAndRestoring) {
  test::TempDir dir;
  const Variable v(ones({1000}));
  Checkpoint checkpoint({{"v", v}});
  const Recording r = recorded([&] {
    const profiler::Trace step("train", 3);
    checkpoint.restore(checkpoint.write(dir.path() + "/ckpt"));
  });
  const std::vector<profile::Event> events = events_of(r, Kind::checkpoint);
  ASSERT_THAT(names_of(events),
              ElementsAre("capture values", "write checkpoint", "sync and name files", "restore checkpoint"));
  EXPECT_GE(events[0].bytes, 4000);
  EXPECT_GE(events[1].bytes, 4000);
  EXPECT_EQ(events[1].detail, dir.path() + "/ckpt");
  EXPECT_TRUE(is_inside(events[2], events[1]));
  for (const profile::Event& event : events) EXPECT_EQ(event.step, 3) << event.name;
}

TEST(CheckpointProfile, WritingInTheBackground) {
  test::TempDir dir;
  const Variable v(ones({1000}));
  Checkpoint checkpoint({{"v", v}});
  const Recording r = recorded([&] {
    checkpoint.write(dir.path() + "/ckpt", {.experimental_enable_async_checkpoint = true});
    checkpoint.sync();
  });
  const auto written = events_of(r, Kind::checkpoint, "write checkpoint");
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(thread_of(r, written[0]), "checkpoint writer");
  EXPECT_EQ(thread_of(r, events_of(r, Kind::checkpoint, "capture values").at(0)), "main");
  EXPECT_EQ(events_of(r, Kind::checkpoint, "wait for the checkpoint before").size(), 1U);
}

}  // namespace
}  // namespace runnel::train
