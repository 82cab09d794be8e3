// Writers that are killed at any moment.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "runnel/io/event_reader.h"
#include "runnel/io/event_writer.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

// Writes steps 0, 1, 2, ... and after every tenth, once it is flushed, says so through the pipe.
[[noreturn]] void write_until_killed(const std::string& folder, int told) {
  EventWriter writer(folder);
  for (int64_t step = 0;; ++step) {
    writer.write_tensor(step, "loss", "tensor", "metadata");
    if (step % 10 != 9) continue;
    writer.flush();
    if (::write(told, &step, sizeof step) != sizeof step) ::_exit(1);
  }
}

TEST(EventWriter, KilledAtAnyMomentItLosesAtMostTheTail) {
  test::TempDir dir;
  for (int round = 0; round < 100; ++round) {
    const std::string folder = dir.path() + "/" + std::to_string(round);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) write_until_killed(folder, ends[1]);
    ::close(ends[1]);
    int64_t flushed = -1, step = 0;
    ASSERT_EQ(::read(ends[0], &flushed, sizeof flushed), static_cast<ssize_t>(sizeof flushed));  // it is at work
    std::this_thread::sleep_for(std::chrono::microseconds(37 * round % 2000));
    ::kill(child, SIGKILL);
    while (::read(ends[0], &step, sizeof step) == sizeof step) flushed = step;
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);

    EventReader reader(find_event_runs(folder).at(0).files.at(0));
    Event event;
    EventReader::Status status;
    int64_t next = 0;
    while ((status = reader.read(&event)) == EventReader::Status::event) {
      if (event.kind == EventKind::summary) {
        EXPECT_EQ(event.step, next++);
      }
    }
    EXPECT_TRUE(status == EventReader::Status::end || status == EventReader::Status::cut);
    EXPECT_GT(next, flushed);
  }
}

}  // namespace
}  // namespace runnel::io
