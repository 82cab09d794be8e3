#include "runnel/base/profile.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "runnel/base/error.h"
#include "runnel/base/profile_scope.h"
#include "tests/support/expect_error.h"
#include "tests/support/profiles.h"

namespace runnel::profile {
namespace {

using test::expect_error;
using testing::ElementsAre;

void put_named(const std::string& name, int64_t begin = now_ticks(), int64_t step = -1) {
  put({.kind = Kind::user,
       .begin_ticks = begin,
       .end_ticks = now_ticks(),
       .step = step,
       .name = name,
       .payload = name});
}

TEST(Profile, HasEventsInTheOrderOfTheirBegins) {
  const Recording r = recorded([] {
    const int64_t first = now_ticks();
    put_named("inner", now_ticks(), 3);
    put_named("outer", first);
    put({.kind = Kind::op,
         .begin_ticks = now_ticks(),
         .end_ticks = now_ticks(),
         .bytes = 12,
         .flops = 2.5,
         .name = "op"});
  });
  ASSERT_THAT(names_of(r.events), ElementsAre("outer", "inner", "op"));
  EXPECT_EQ(r.events[1].step, 3);
  EXPECT_EQ(r.events[1].detail, "inner");
  EXPECT_EQ(r.events[2].kind, Kind::op);
  EXPECT_EQ(r.events[2].bytes, 12);
  EXPECT_EQ(r.events[2].flops, 2.5);
  EXPECT_TRUE(is_inside(r.events[1], r.events[0]));
  EXPECT_EQ(r.threads.size(), 1U);
  EXPECT_EQ(r.threads[0].name, "main");
  EXPECT_EQ(r.threads[0].id, static_cast<uint32_t>(getpid()));
  EXPECT_GT(r.started_unix_ns, int64_t{1'600'000'000} * 1'000'000'000);
  EXPECT_NE(r.host, "");
  EXPECT_EQ(r.lost, 0);
}

TEST(Profile, MeasuresTimeAsTheClockDoes) {
  const Recording r = recorded([] {
    const int64_t begin = now_ticks();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    put_named("sleep", begin);
  });
  const int64_t took = r.events.at(0).end_ns - r.events[0].begin_ns;
  EXPECT_GE(took, 29'000'000);
  EXPECT_LE(took, r.length_ns);
  EXPECT_LE(r.events[0].end_ns, r.length_ns);
}

TEST(Profile, RecordsNothingWhenItIsOff) {
  EXPECT_EQ(current_recording(), 0U);
  put_named("before");
  sample_memory(1);
  const Recording r = recorded([] { put_named("during"); });
  put_named("after");
  EXPECT_THAT(names_of(r.events), ElementsAre("during"));
  EXPECT_TRUE(r.memory.empty());
  EXPECT_THAT(names_of(recorded([] { put_named("next"); }).events), ElementsAre("next"));
}

TEST(Profile, OneRecordingAtATime) {
  expect_error([] { stop(); }, Code::unavailable, "no profile is being recorded");
  start();
  expect_error([] { start(); }, Code::already_exists, "another profile");
  put_named("kept");
  EXPECT_EQ(stop().events.size(), 1U);
}

TEST(Profile, ClipsWhatBeganBefore) {
  const int64_t before = now_ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const Recording r = recorded([&] { put_named("long", before); });
  EXPECT_EQ(r.events.at(0).begin_ns, 0);
  EXPECT_LE(r.events[0].end_ns, r.length_ns);
}

TEST(Profile, KeepsEventsOfThreadsThatEnd) {
  const Recording r = recorded([] {
    for (int i = 0; i < 3; ++i) {
      std::thread([i] {
        const ThreadName name("reader", i);
        put_named("read");
      }).join();
    }
    std::thread([] { put_named("anonymous"); }).join();
  });
  std::vector<std::string> threads;
  for (const Event& event : r.events) threads.push_back(thread_of(r, event));
  EXPECT_THAT(threads, ElementsAre("reader 0", "reader 1", "reader 2", "thread"));
}

TEST(Profile, AThreadMayStopWhatAnotherStarted) {
  std::thread([] { start(); }).join();
  put_named("here");
  Recording r;
  std::thread([&] { r = stop(); }).join();
  EXPECT_THAT(names_of(r.events), ElementsAre("here"));
}

TEST(Profile, SamplesOfMemoryAreOfTheInnermostEvent) {
  const Recording r = recorded([] {
    sample_memory(100);
    const int64_t outer = now_ticks();
    sample_memory(200);
    const int64_t inner = now_ticks();
    sample_memory(300);
    put({.kind = Kind::op, .begin_ticks = inner, .end_ticks = now_ticks(), .name = "inner"});
    sample_memory(150);
    put({.kind = Kind::run, .begin_ticks = outer, .end_ticks = now_ticks(), .name = "outer"});
  });
  ASSERT_EQ(r.memory.size(), 4U);
  EXPECT_EQ(r.memory[0].op, "");
  EXPECT_EQ(r.memory[1].op, "outer");
  EXPECT_EQ(r.memory[2].op, "inner");
  EXPECT_EQ(r.memory[3].op, "outer");
  EXPECT_EQ(r.memory[2].live_bytes, 300);
  EXPECT_LE(r.memory[0].at_ns, r.memory[3].at_ns);
}

TEST(Profile, CountsWhatFindsNoRoom) {
  constexpr int64_t kEvents = 300;
  const std::string large(size_t{1} << 20, 'x');
  const Recording r = recorded([&] {
    for (int64_t i = 0; i < kEvents; ++i) {
      put({.begin_ticks = now_ticks(), .end_ticks = now_ticks(), .name = "large", .payload = large});
    }
    put_named("small");
  });
  EXPECT_GT(r.lost, 0);
  EXPECT_GT(r.events.size(), 50U);
  EXPECT_EQ(static_cast<int64_t>(r.events.size()) + r.lost, kEvents + 1);
  EXPECT_EQ(recorded([] { put_named("again"); }).lost, 0);
}

TEST(Profile, StartsAndStopsWhileEightThreadsHaveEvents) {
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&done, t] {
      for (int i = 0; !done; ++i) {
        put_named("event " + std::to_string(t) + " " + std::string(static_cast<size_t>(i % 50), 'x'));
        sample_memory(i);
        if (i % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));  // reading them takes longer
      }
    });
  }
  size_t events = 0;
  for (int i = 0; i < 40; ++i) {
    const Recording r = recorded([] { std::this_thread::sleep_for(std::chrono::microseconds(300)); });
    for (const Event& event : r.events) {
      ASSERT_EQ(event.name, event.detail);  // whole
      ASSERT_LE(event.begin_ns, event.end_ns);
      ASSERT_LE(event.end_ns, r.length_ns);
      ASSERT_LT(event.thread, r.threads.size());
    }
    events += r.events.size();
  }
  done = true;
  for (std::thread& t : threads) t.join();
  EXPECT_GT(events, 0U);
}

TEST(Profile, AChildOfForkRecordsForItself) {
  const Recording r = recorded([] {
    put_named("parent");
    const pid_t child = fork();
    if (child == 0) {
      const bool off = current_recording() == 0;
      put_named("nobody's");
      const bool own = names_of(recorded([] { put_named("child"); }).events) == std::vector<std::string>{"child"};
      _exit(off && own ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
  EXPECT_THAT(names_of(r.events), ElementsAre("parent"));
}

}  // namespace
}  // namespace runnel::profile
