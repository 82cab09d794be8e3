// What profiles have of pipelines.
#include <algorithm>
#include <map>
#include <set>

#include "runnel/io/profile_report.h"
#include "runnel/summary/profiler.h"
#include "tests/data/helpers.h"
#include "tests/support/profiles.h"

namespace runnel::data {
namespace {

using profile::Event;
using profile::Kind;
using profile::Recording;
using ::testing::Each;
using ::testing::StartsWith;

TEST(PipelineProfile, StagesOnTheThreadThatReads) {
  const auto dataset = stream(6).map([](const Tensor& t) { return t * Tensor(int64_t{2}); }).batch(3);
  const Recording r = recorded([&] { EXPECT_EQ(ints(dataset), (Ints{0, 2, 4, 6, 8, 10})); });
  const std::vector<Event> waits = events_of(r, Kind::input_wait, "iterator");
  ASSERT_EQ(waits.size(), 3U);  // two elements, and the end
  const std::vector<Event> batches = events_of(r, Kind::stage, "Batch");
  const std::vector<Event> maps = events_of(r, Kind::stage, "Batch::Map");
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_EQ(batches[0].bytes, 3 * 8);
  EXPECT_THAT(batches[0].detail, ::testing::HasSubstr("profile_test.cpp:"));
  EXPECT_GE(maps.size(), 3U);
  for (const Event& event : maps) {
    EXPECT_EQ(thread_of(r, event), "main");
    EXPECT_TRUE(std::ranges::any_of(batches, [&](const Event& batch) { return is_inside(event, batch); }));
  }
  EXPECT_TRUE(is_inside(batches[0], waits[0]));
  std::map<std::string, int64_t> elements;
  for (const io::ProfiledStage& stage : io::make_profile_report(r).input.stages) elements[stage.path] = stage.elements;
  EXPECT_EQ(elements["Batch::Map"], 6);  // however many of them an event stands for
  EXPECT_EQ(elements["Batch"], 2);       // the end of the data is none
}

TEST(PipelineProfile, WorkOnThreadsOfTheirOwn) {
  const auto dataset = stream(64)
                           .map([](const Tensor& t) { return t * Tensor(int64_t{2}); }, {.num_parallel_calls = 2})
                           .batch(8)
                           .prefetch(2);
  const Recording r = recorded([&] {
    const profiler::Trace step("train", 7);
    EXPECT_EQ(ints(dataset).size(), 64U);
  });
  const std::vector<Event> maps = events_of(r, Kind::stage, "Prefetch::Batch::ParallelMap");
  EXPECT_EQ(maps.size(), 64U);
  for (const Event& event : maps) {
    const std::string thread = thread_of(r, event);
    if (thread != "main") {
      EXPECT_THAT(thread, StartsWith("pipeline "));
      EXPECT_EQ(event.step, -1);  // it works ahead of any step
    }
  }
  const std::vector<Event> waits = events_of(r, Kind::input_wait, "iterator");
  ASSERT_EQ(waits.size(), 9U);
  for (const Event& event : waits) {
    EXPECT_EQ(event.step, 7);
    EXPECT_EQ(thread_of(r, event), "main");
  }
  const std::vector<Event> queues = events_of(r, Kind::input_wait, "Prefetch");
  ASSERT_FALSE(queues.empty());
  EXPECT_THAT(queues[0].detail, ::testing::HasSubstr("elements ready"));
}

TEST(PipelineProfile, OpsAndTracesInAMapAreOfItsThread) {
  auto f = function(
      [](const Tensor& x) {
        GradientTape tape;
        tape.watch(x);
        const Tensor y = x * x;
        return tape.gradient(y, x).value();
      },
      {.name = "slope"});
  const auto dataset = stream(16)
                           .map([&](const Tensor& t) { return f(cast(t, DType::float32)); }, {.num_parallel_calls = 2})
                           .prefetch(1);
  const Recording r = recorded([&] { EXPECT_EQ(ints(dataset)[3], 6); });
  ASSERT_EQ(events_of(r, Kind::tracing).size(), 1U);
  const std::vector<Event> runs = events_of(r, Kind::run, "slope_0");
  ASSERT_EQ(runs.size(), 16U);
  const std::vector<Event> maps = events_of(r, Kind::stage, "Prefetch::ParallelMap");
  for (const Event& run : runs) {
    EXPECT_TRUE(
        std::ranges::any_of(maps, [&](const Event& map) { return map.thread == run.thread && is_inside(run, map); }));
  }
}

TEST(PipelineProfile, AnErrorEndsTheStage) {
  const auto dataset = stream(4).map([](const Tensor& t) {
    if (static_cast<int64_t>(t) == 1) throw Error(Code::invalid_argument, "one is refused");
    return t;
  });
  const Recording r = recorded([&] {
    auto it = dataset.make_iterator();
    it.next();
    expect_error([&] { it.next(); }, Code::invalid_argument, "one is refused");
    EXPECT_EQ(rest(it), (Ints{2, 3}));
  });
  EXPECT_EQ(events_of(r, Kind::stage, "Map").size(), 5U);  // four elements, and the end
}

TEST(PipelineProfile, NothingIsRecordedWhenItIsOff) {
  const auto dataset = range(100).map([](const Tensor& t) { return t; }, {.num_parallel_calls = 2}).prefetch(2);
  ints(dataset);
  EXPECT_TRUE(recorded([] {}).events.empty());
}

}  // namespace
}  // namespace runnel::data
