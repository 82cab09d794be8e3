// Writers that are killed at any moment.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "runnel/io/event_reader.h"
#include "runnel/io/event_writer.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

// Of step i: from a few bytes to what takes the system several writes.
std::string content_of_step(int64_t i) { return std::string(static_cast<size_t>(i * 7919 % 40'000), 'x'); }

// Writes steps 0, 1, 2, ... and now and then, once it is flushed, says so through the pipe.
[[noreturn]] void write_until_killed(const std::string& folder, int told) {
  EventWriter writer(folder);
  for (int64_t step = 0;; ++step) {
    writer.write_tensor(step, "loss", content_of_step(step), "metadata");
    if (step % 10 != 9) continue;
    writer.flush();
    if (::write(told, &step, sizeof step) != sizeof step) ::_exit(1);
  }
}

// RUNNEL_CRASH_ROUNDS: how many times (scripts/check crash).
int crash_rounds() {
  const char* wanted = std::getenv("RUNNEL_CRASH_ROUNDS");
  return wanted ? std::atoi(wanted) : 100;
}

TEST(EventWriter, KilledAtAnyMomentItLosesAtMostTheTail) {
  test::TempDir dir;
  std::mt19937 random(20);
  for (int round = 0; round < crash_rounds(); ++round) {
    const std::string folder = dir.path() + "/" + std::to_string(round);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) write_until_killed(folder, ends[1]);
    ::close(ends[1]);
    int64_t flushed = -1, step = 0;
    ASSERT_EQ(::read(ends[0], &flushed, sizeof flushed), static_cast<ssize_t>(sizeof flushed));  // it is at work
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    ::kill(child, SIGKILL);
    while (::read(ends[0], &step, sizeof step) == sizeof step) flushed = step;
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);

    EventReader reader(find_event_runs(folder).at(0).files.at(0));
    Event event;
    EventReader::Status status;
    int64_t next = 0;
    while ((status = reader.read(&event)) == EventReader::Status::event) {
      if (event.kind != EventKind::summary) continue;
      EXPECT_EQ(event.step, next);
      visit_event_values(event.body,
                         [&](const EventValue& value) { EXPECT_TRUE(value.body == content_of_step(next)); });
      ++next;
    }
    EXPECT_TRUE(status == EventReader::Status::end || status == EventReader::Status::cut);
    EXPECT_GT(next, flushed);
    std::filesystem::remove_all(folder);
  }
}

}  // namespace
}  // namespace runnel::io
