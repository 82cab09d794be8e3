// profiler::start, stop, Profile and Trace.
#include "runnel/summary/profiler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <thread>

#include "runnel/base/profile_scope.h"
#include "runnel/runnel.h"
#include "runnel/summary/summary.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/profiles.h"
#include "tests/support/resident.h"
#include "tests/support/temp_dir.h"

namespace runnel::profiler {
namespace {

using profile::Event;
using profile::Kind;
using profile::Recording;
using test::expect_error;
using test::TempDir;
using testing::ElementsAre;

// The files of the profiles below a folder.
std::vector<std::string> profile_files(const std::string& logdir) {
  std::vector<std::string> found;
  const std::filesystem::path folder = std::filesystem::path(logdir) / "plugins" / "profile";
  if (!std::filesystem::exists(folder)) return found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) found.push_back(entry.path().filename());
  }
  std::ranges::sort(found);
  return found;
}

TEST(Profiler, WritesWhereTensorBoardLooks) {
  TempDir dir;
  start(dir.path() + "/logs");
  matmul(ones({2, 2}), ones({2, 2}));
  stop();
  const std::vector<std::string> files = profile_files(dir.path() + "/logs");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_TRUE(files[0].ends_with(".trace.json.gz")) << files[0];
  EXPECT_TRUE(files[1].ends_with(".xplane.pb")) << files[1];
}

TEST(Profiler, WithoutSaveNothingIsWritten) {
  TempDir dir;
  start(dir.path());
  stop(false);
  EXPECT_TRUE(profile_files(dir.path()).empty());
}

TEST(Profiler, ProfileIsABlock) {
  TempDir dir;
  {
    const experimental::Profile profile(dir.path());
    ones({3});
  }
  EXPECT_EQ(profile_files(dir.path()).size(), 2U);
  EXPECT_EQ(profile::current_recording(), 0U);
}

TEST(Profiler, Errors) {
  TempDir dir;
  expect_error([] { stop(); }, Code::unavailable, "none was started");
  expect_error([] { stop(); }, Code::unavailable, "profiler_test.cpp");
  expect_error([] { start(""); }, Code::invalid_argument, "no name");
  start(dir.path());
  expect_error([&] { start(dir.path()); }, Code::already_exists, "by profiler::start");
  expect_error([&] { Profile second(dir.path()); }, Code::already_exists, "profiler_test.cpp");
  stop();
  EXPECT_EQ(profile_files(dir.path()).size(), 2U);  // the first one was not disturbed
}

TEST(Profiler, AFolderThatCannotBeMadeIsAnErrorAtTheStart) {
  TempDir dir;
  Env::posix().write_file(dir.path() + "/file", as_bytes(std::string("no folder")));
  expect_error([&] { start(dir.path() + "/file/logs"); }, Code::failed_precondition, "/file");
  EXPECT_EQ(profile::current_recording(), 0U);
}

TEST(Profiler, TracesNest) {
  const Recording r = recorded([] {
    const Trace outer("load");
    {
      const Trace step("train", 3);
      const Trace inner("forward");
      ones({2});
    }
    {
      const Trace step("train", 4);
      zeros({2});
    }
    ones({2});
  });
  const std::vector<Event> steps = events_of(r, Kind::step);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].name, "train");
  EXPECT_EQ(steps[0].step, 3);
  EXPECT_EQ(steps[1].step, 4);
  const std::vector<Event> user = events_of(r, Kind::user);
  EXPECT_THAT(names_of(user), ElementsAre("load", "forward"));
  EXPECT_EQ(user[0].step, -1);
  EXPECT_EQ(user[1].step, 3);
  std::vector<int64_t> of_ops;
  for (const Event& event : events_of(r, Kind::op)) of_ops.push_back(event.step);
  EXPECT_THAT(of_ops, ElementsAre(3, 4, -1));
  EXPECT_TRUE(is_inside(user[1], steps[0]));
  EXPECT_TRUE(is_inside(steps[0], user[0]));
}

TEST(Profiler, ATraceThatEndsOnAnotherThreadIsNamedAndNeverFreed) {
  if (test::kSanitized) GTEST_SKIP() << "it leaks on purpose";
  std::string told;
  const Recording r = recorded([&] {
    std::thread([&] {  // whose step goes on until it ends
      auto step = std::make_unique<profiler::Trace>("train", 1);
      testing::internal::CaptureStderr();
      std::thread([&] { step.reset(); }).join();
      told = testing::internal::GetCapturedStderr();
      const Tensor sum = zeros({2}) + 1.f;
    })
        .join();
  });
  EXPECT_THAT(told, testing::HasSubstr("'train' ended on another thread"));
  EXPECT_FALSE(events_of(r, Kind::op).empty());
}

TEST(Profiler, MetadataIsShownWithTheTrace) {
  const Recording r = recorded([] {
    Trace step("train", 0);
    step.set_metadata("batch_size", 50);
    step.set_metadata("model", "mlp");
    Trace part("part");
    part.set_metadata("of", "step");
  });
  EXPECT_EQ(events_of(r, Kind::step).at(0).detail, "batch_size=50 model=mlp");
  EXPECT_EQ(events_of(r, Kind::user).at(0).detail, "of=step");
  expect_error([] { Trace("train", -2); }, Code::invalid_argument, "step_num is -2");
}

TEST(Profiler, AnExceptionEndsTraces) {
  const Recording r = recorded([] {
    try {
      const Trace step("train", 1);
      const Trace part("part");
      throw std::runtime_error("away");
    } catch (const std::runtime_error&) {
    }
    ones({2});
  });
  EXPECT_EQ(events_of(r, Kind::step).size(), 1U);
  EXPECT_EQ(events_of(r, Kind::user).size(), 1U);
  EXPECT_EQ(events_of(r, Kind::op).at(0).step, -1);
}

// A callback of fit starts and stops within steps.
TEST(Profiler, StepsUnderWayAtStartAndStopAreKeptAsFarAsTheyCame) {
  TempDir dir;
  {
    const Trace step("train", 5);
    start(dir.path());
    ones({2});
    stop();
  }
  const std::string file = [&] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.path())) {
      if (entry.path().string().ends_with(".xplane.pb")) return entry.path().string();
    }
    return std::string();
  }();
  const std::string bytes = test::read_bytes(file);
  EXPECT_NE(bytes.find("train"), std::string::npos);
}

TEST(Profiler, GroupsOfAPlanCountToTheStep) {
  const auto loop = [](const Tensor& n, const Tensor& x) {
    const auto [i, y] = while_loop([&](const Tensor& i, const Tensor&) { return i < n; },
                                   [&](const Tensor& i, const Tensor& y) { return std::tuple(i + 1, y + x); },
                                   std::tuple(Tensor(0), x));
    return y;
  };
  auto f = function([&](const Tensor& n, const Tensor& x) { return loop(n, x) + loop(n, x * 2.f); });
  const Tensor n(50), x{1.f, 2.f};
  f(n, x);
  const Recording r = recorded([&] {
    const Trace step("train", 9);
    f(n, x);
  });
  EXPECT_FALSE(events_of(r, Kind::group).empty());
  for (const Event& event : r.events) EXPECT_EQ(event.step, 9) << event.name;  // also on threads of the pool
}

TEST(Profiler, SummariesAreEvents) {
  TempDir dir;
  const Recording r = recorded([&] {
    const auto writer = summary::create_file_writer(dir.path());
    {
      const auto scope = writer.as_default(0);
      summary::scalar("loss", 1.f);
      summary::write("values", ones({2}));
    }
    writer.close();
  });
  std::vector<std::string> own, background;
  for (const Event& event : events_of(r, Kind::summary)) {
    (thread_of(r, event) == "main" ? own : background).push_back(event.name);
  }
  EXPECT_THAT(own, ElementsAre("loss", "values"));
  EXPECT_THAT(background, testing::Contains("write events"));
}

// What the program below does; it is run as a program of its own.
TEST(ProfiledProgram, Computes) { EXPECT_EQ(matmul(ones({2, 2}), ones({2, 2})).shape(), Shape({2, 2})); }

// This program, with RUNNEL_PROFILE; what it says on standard error.
std::string run_with_profile(const std::string& profile, const TempDir& dir) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = "RUNNEL_PROFILE='" + profile + "' '" + self +
                              "' --gtest_filter=ProfiledProgram.Computes > /dev/null 2> '" + dir.path() + "/said'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return test::read_bytes(dir.path() + "/said");
}

TEST(Profiler, TheEnvironmentMayAskForAProfileOfAnyProgram) {
  TempDir dir;
  run_with_profile(dir.path() + "/new/trace.json", dir);
  EXPECT_THAT(test::read_bytes(dir.path() + "/new/trace.json"), testing::HasSubstr("MatMul"));
  run_with_profile(dir.path() + "/trace.json.gz", dir);
  EXPECT_EQ(test::read_bytes(dir.path() + "/trace.json.gz").substr(0, 2), "\x1f\x8b");
  run_with_profile(dir.path() + "/folder", dir);
  EXPECT_EQ(profile_files(dir.path() + "/folder").size(), 2U);
}

TEST(Profiler, AFileThatTheEnvironmentAsksForAndThatCannotBeIsSaid) {
  TempDir dir;
  Env::posix().write_file(dir.path() + "/file", as_bytes(std::string("no folder")));
  EXPECT_THAT(run_with_profile(dir.path() + "/file/trace.json", dir),
              testing::HasSubstr("RUNNEL_PROFILE: nothing is recorded"));
}

// Whole programs under load: for the thread sanitizer.
TEST(Profiler, EightThreadsWorkWhileProfilesStartAndStop) {
  auto f = function([](const Tensor& x) { return matmul(x, x) + 1.f; });
  const Tensor x = ones({4, 4});
  f(x);
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; !done; ++i) {
        const Trace step("train", i);
        if (t % 2 == 0) {
          f(x);
        } else {
          x + x;
        }
        if (i % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));  // reading them takes longer
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const Recording r = recorded([] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
    for (const Event& event : r.events) {
      ASSERT_LE(event.begin_ns, event.end_ns);
      if (event.kind == Kind::op) {
        ASSERT_EQ(event.detail, "float32[4,4] float32[4,4] -> float32[4,4]");
      }
    }
  }
  done = true;
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace runnel::profiler
