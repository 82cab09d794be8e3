// Event files: bytes as TensorFlow writes them, files of many writers, damage, growth.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <sstream>
#include <thread>

#include "runnel/base/format.h"
#include "runnel/io/event.h"
#include "runnel/io/event_reader.h"
#include "runnel/io/event_writer.h"
#include "runnel/io/record_writer.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"

#if defined(__SANITIZE_THREAD__)
#define RUNNEL_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RUNNEL_UNDER_TSAN 1
#endif
#endif

namespace runnel::io {
namespace {

namespace stdfs = std::filesystem;
using namespace std::string_view_literals;
using test::expect_error;
using test::fixtures;
using test::read_bytes;
using test::TempDir;
using Status = EventReader::Status;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

constexpr char kScalar[] = "\x08\x01\x12\x00\x22\x04\x00\x00\x80\x3f";  // float32, rank 0, content 1
const std::string_view kOne(kScalar, sizeof kScalar - 1);
constexpr std::string_view kScalars = "\x0a\x09\x0a\x07scalars";

std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : stdfs::directory_iterator(folder)) found.push_back(entry.path());
  return found;
}

// Every tag with its step, in order; the file must be whole.
std::vector<std::pair<std::string, int64_t>> tags_in(const std::string& path) {
  std::vector<std::pair<std::string, int64_t>> tags;
  EventReader reader(path);
  Event event;
  Status status;
  while ((status = reader.read(&event)) == Status::event) {
    const auto take = [&](const EventValue& value) { tags.emplace_back(value.tag, event.step); };
    if (event.kind == EventKind::summary) {
      EXPECT_TRUE(visit_event_values(event.body, take));
    }
  }
  EXPECT_EQ(status, Status::end) << path;
  return tags;
}

// The bytes stand in shared/fixtures/tf215/events, where TensorFlow 2.15 put them.
TEST(Event, BytesAreThoseOfTensorFlow) {
  const auto time = [](uint64_t bits) { return std::bit_cast<double>(bits); };
  std::string bytes;
  append_tensor_event(bytes, time(0x41dabf625dc87f78), 0, "loss", kOne, kScalars);
  EXPECT_EQ(hex(bytes), "09787fc85d62bfda412a210a1f0a046c6f7373420a0801120022040000803f4a0b0a090a077363616c617273");
  bytes.clear();
  append_tensor_event(bytes, time(0x41dabf625dc87f78), 300, "loss", kOne, "");
  EXPECT_EQ(hex(bytes), "09787fc85d62bfda4110ac022a140a120a046c6f7373420a0801120022040000803f");
  bytes.clear();
  append_version_event(bytes, time(0x41dabf625dc00000));
  EXPECT_EQ(hex(bytes),
            "090000c05d62bfda411a0d627261696e2e4576656e743a3252240a2274656e736f72666c6f772e636f72652e7574696c2e6576656e"
            "74735f777269746572");
}

TEST(Event, PartsOfAnEventAreFoundAgain) {
  std::string bytes;
  append_tensor_event(bytes, 12.5, -3, "a/b", kOne, "\x0a\x0b\x0a\x07scalars\x12\x00\x12\x01n\x1a\x01t\x20\x01"sv);
  Event event;
  ASSERT_TRUE(parse_event(bytes, &event));
  EXPECT_EQ(event.wall_time, 12.5);
  EXPECT_EQ(event.step, -3);
  ASSERT_EQ(event.kind, EventKind::summary);
  int values = 0;
  ASSERT_TRUE(visit_event_values(event.body, [&](const EventValue& value) {
    ++values;
    EXPECT_EQ(value.tag, "a/b");
    EXPECT_EQ(value.kind, ValueKind::tensor);
    EXPECT_EQ(value.body, kOne);
    EXPECT_EQ(plugin_of(value), "scalars");
    EventMetadata metadata;
    ASSERT_TRUE(parse_event_metadata(value.metadata, &metadata));
    EXPECT_EQ(metadata.display_name, "n");
    EXPECT_EQ(metadata.description, "t");
    EXPECT_EQ(metadata.data_class, 1);
  }));
  EXPECT_EQ(values, 1);
  for (size_t n = 1; n < bytes.size(); ++n) {  // what is cut short makes no sense, or is another event: no crash
    if (parse_event(std::string_view(bytes).substr(0, n), &event) && event.kind == EventKind::summary) {
      ADD_FAILURE() << "a summary of " << n << " bytes";
    }
  }
}

TEST(Event, EveryFileOfOthersIsRead) {
  RUNNEL_REQUIRE_FIXTURES();
  std::istringstream table(read_bytes(fixtures() / "EXPECTED_events.tsv"));
  std::string line;
  std::getline(table, line);
  std::string last;
  int files = 0;
  while (std::getline(table, line)) {
    std::istringstream cells(line);
    std::string file, count;
    std::getline(cells, file, '\t');
    std::getline(cells, count, '\t');
    if (file == last) continue;
    last = file;
    EventReader reader(fixtures() / file);
    Event event;
    Status status;
    int64_t events = 0;
    while ((status = reader.read(&event)) == Status::event) {
      ++events;
      if (event.kind == EventKind::summary) {
        EXPECT_TRUE(visit_event_values(event.body, [](const EventValue&) {}));
      }
    }
    EXPECT_EQ(status, Status::end) << file;
    EXPECT_EQ(events, std::stoll(count)) << file;
    ++files;
  }
  EXPECT_GT(files, 30);
}

TEST(EventWriter, NamesAndOrdersAsTensorFlow) {
  TempDir dir;
  const std::string folder = dir.path() + "/a/b";
  EventWriter writer(folder, {.filename_suffix = ".v2"});
  EXPECT_TRUE(std::regex_match(stdfs::path(writer.path()).filename().string(),
                               std::regex(R"(events\.out\.tfevents\.\d{10}\..+\.\d+\.\d+\.v2)")))
      << writer.path();
  EXPECT_GT(stdfs::file_size(writer.path()), 70u);  // the first event, from the beginning
  for (int64_t step = 0; step < 1000; ++step) writer.write_tensor(step, "loss", kOne, kScalars);
  writer.flush();
  const auto tags = tags_in(writer.path());
  ASSERT_EQ(tags.size(), 1000u);
  for (size_t i = 0; i < tags.size(); ++i) EXPECT_EQ(tags[i].second, static_cast<int64_t>(i));
  writer.close();
  writer.close();
  expect_error([&] { writer.write_tensor(0, "loss", kOne, kScalars); }, Code::failed_precondition, "is closed");
  EXPECT_TRUE(EventWriter(folder, {.filename_suffix = "abc"}).path().ends_with(".abc"));
  expect_error([&] { EventWriter bad(folder, {.max_queue = -1}); }, Code::invalid_argument, "max_queue");
  std::ofstream(dir.path() + "/file") << "x";
  expect_error([&] { EventWriter bad(dir.path() + "/file/sub"); }, Code::failed_precondition, "file");
}

TEST(EventWriter, WritesWithoutBeingTold) {
  using namespace std::chrono_literals;
  TempDir dir;
  const auto in_time = [](const EventWriter& writer, size_t wanted, std::chrono::milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    size_t found = 0;
    while ((found = tags_in(writer.path()).size()) < wanted && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(20ms);
    }
    return found;
  };
  EventWriter few(dir.path(), {.max_queue = 3});
  for (int i = 0; i < 3; ++i) few.write_tensor(i, "t", kOne, kScalars);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(tags_in(few.path()).size(), 0u);  // three may wait
  few.write_tensor(3, "t", kOne, kScalars);
  EXPECT_EQ(in_time(few, 4, 10s), 4u);
  few.write_tensor(4, "t", kOne, kScalars);
  few.schedule_flush();
  EXPECT_EQ(in_time(few, 5, 10s), 5u);
  EventWriter soon(dir.path(), {.max_queue = 1000, .flush_millis = 50});
  soon.write_tensor(0, "t", kOne, kScalars);
  EXPECT_EQ(in_time(soon, 1, 10s), 1u);
}

TEST(EventWriter, ManyThreadsAndWritersInOneFolder) {
  TempDir dir;
  constexpr int threads = 8, events = 500;
  {
    EventWriter shared(dir.path());
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        EventWriter own(dir.path());
        for (int i = 0; i < events; ++i) {
          shared.write_tensor(i, fmt::format("shared{}", t), kOne, kScalars);
          own.write_tensor(i, fmt::format("own{}", t), kOne, kScalars);
          if (i % 100 == 0) shared.flush();
        }
      });
    }
    for (std::thread& thread : pool) thread.join();
  }
  std::map<std::string, int64_t> next;
  for (const std::string& file : event_files(dir.path())) {
    for (const auto& [tag, step] : tags_in(file)) EXPECT_EQ(step, next[tag]++) << tag;  // the order of each thread
  }
  ASSERT_EQ(next.size(), 2u * threads);
  for (const auto& [tag, count] : next) EXPECT_EQ(count, events) << tag;
}

// Files that take `room` bytes.
class FullDiskOfEvents : public EnvWrapper {
 public:
  explicit FullDiskOfEvents(size_t room) : EnvWrapper(Env::posix()), room_(room) {}
  std::unique_ptr<WritableFile> create(const std::string& path) override {
    struct File : WritableFile {
      std::unique_ptr<WritableFile> file;
      size_t room;
      void append(ByteSpan bytes) override {
        const size_t fits = std::min(room, bytes.size());
        file->append(bytes.first(fits));
        room -= fits;
        if (fits < bytes.size()) throw Error(Code::resource_exhausted, "disk full");
      }
      void sync() override { file->sync(); }
      void close() override { file->close(); }
    };
    auto file = std::make_unique<File>();
    file->file = EnvWrapper::create(path);
    file->room = room_;
    return file;
  }

 private:
  size_t room_;
};

TEST(EventWriter, FullDiskIsAnErrorThatNamesTheFile) {
  TempDir dir;
  FullDiskOfEvents env(300);
  EventWriter writer(dir.path(), {}, env);
  for (int i = 0; i < 10; ++i) writer.write_tensor(i, "loss", kOne, kScalars);
  expect_error([&] { writer.flush(); }, Code::resource_exhausted, writer.path());
  expect_error([&] { writer.write_tensor(0, "loss", kOne, kScalars); }, Code::resource_exhausted, "disk full");
  expect_error([&] { writer.close(); }, Code::resource_exhausted, "events are lost");
  EventReader reader(writer.path());
  Event event;
  int whole = 0;
  Status status;
  while ((status = reader.read(&event)) == Status::event) ++whole;
  EXPECT_EQ(status, Status::cut);
  EXPECT_GT(whole, 2);
  EXPECT_LT(whole, 10);
}

TEST(EventWriter, FullDiskLeavesTheProgramRunningIfAsked) {
  TempDir dir;
  FullDiskOfEvents env(300);
  EventWriter writer(dir.path(), {.keep_going = true}, env);
  testing::internal::CaptureStderr();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) writer.write_tensor(i, "loss", kOne, kScalars);
    writer.flush();
  }
  writer.close();
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(told, '\n'), 1) << told;
  EXPECT_THAT(told, testing::HasSubstr(writer.path()));
}

// Counts what is written, and holds it back while it is not open.
class GatedDisk : public EnvWrapper {
 public:
  GatedDisk() : EnvWrapper(Env::posix()) {}
  std::unique_ptr<WritableFile> create(const std::string& path) override {
    struct File : WritableFile {
      GatedDisk& disk;
      std::unique_ptr<WritableFile> file;
      File(GatedDisk& d, std::unique_ptr<WritableFile> f) : disk(d), file(std::move(f)) {}
      void append(ByteSpan bytes) override {
        {
          std::unique_lock lock(disk.mutex_);
          ++disk.begun_;
          disk.changed_.notify_all();
          disk.changed_.wait(lock, [&] { return disk.open_; });
          disk.bytes_ += bytes.size();
          disk.changed_.notify_all();
        }
        if (disk.keeps_) file->append(bytes);
      }
      void sync() override { file->sync(); }
      void close() override { file->close(); }
    };
    return std::make_unique<File>(*this, EnvWrapper::create(path));
  }
  void set_open(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  void drop_bytes() { keeps_ = false; }
  // Waits until a write has begun after the first `before` ones.
  bool write_begins(int before) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return begun_ > before; });
  }
  bool has_bytes(size_t wanted) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return bytes_ >= wanted; });
  }
  int begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  std::atomic<bool> keeps_ = true;
  int begun_ = 0;
  size_t bytes_ = 0;
};

TEST(EventWriter, WhatIsAskedForDuringAWriteIsDoneAfterIt) {
  TempDir dir;
  GatedDisk disk;
  EventWriter writer(dir.path(), {.max_queue = 1000}, disk);  // by itself it would wait for two minutes
  const int begun = disk.begun();
  disk.set_open(false);
  writer.write_tensor(0, "first", kOne, kScalars);
  writer.schedule_flush();
  EXPECT_TRUE(disk.write_begins(begun));
  writer.write_tensor(1, "second", kOne, kScalars);
  writer.schedule_flush();
  disk.set_open(true);
  EXPECT_TRUE(disk.write_begins(begun + 1));
}

TEST(EventWriter, SleepsWhileNothingWaits) {
  using namespace std::chrono_literals;
  TempDir dir;
  EventWriter writer(dir.path(), {.flush_millis = 0});
  writer.write_tensor(0, "t", kOne, kScalars);
  writer.flush();
  const auto waits = [] {  // of all threads
    ::rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
  };
  const auto before = waits();
  std::this_thread::sleep_for(400ms);
  EXPECT_LT(waits() - before, 50);  // it would be about 200, were it to look every 2 ms
  writer.write_tensor(1, "t", kOne, kScalars);
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (tags_in(writer.path()).size() < 2 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(tags_in(writer.path()).size(), 2u);  // an event wakes it
}

TEST(EventWriter, LargeEventsAreWrittenBeforeTheQueueIsFull) {
  TempDir dir;
  GatedDisk disk;
  disk.drop_bytes();
  EventWriter writer(dir.path(), {.max_queue = 1000}, disk);
  const std::string large(size_t{45} << 20, 'x');
  for (int i = 0; i < 3; ++i) writer.write(large);  // 135 MB; calls would wait at 256
  EXPECT_TRUE(disk.has_bytes(large.size()));
}

TEST(EventWriter, ClosedWhileACallWaitsForRoom) {
  TempDir dir;
  GatedDisk disk;
  disk.drop_bytes();
  EventWriter writer(dir.path(), {.max_queue = 1000}, disk);
  const int begun = disk.begun();
  disk.set_open(false);
  writer.write_tensor(0, "first", kOne, kScalars);
  writer.schedule_flush();
  EXPECT_TRUE(disk.write_begins(begun));  // from here on all stays in the queue
  const std::string large(size_t{90} << 20, 'x');
  for (int i = 0; i < 3; ++i) writer.write(large);
  testing::internal::CaptureStderr();
  std::thread waits([&] {
    expect_error([&] { writer.write_tensor(1, "late", kOne, kScalars); }, Code::failed_precondition, "is closed");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::thread closes([&] { writer.close(); });
  while (writer.is_open()) std::this_thread::yield();
  std::atomic<bool> second_returned = false;
  std::thread closes_too([&] {
    writer.close();
    second_returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(second_returned);  // nothing of it is on the disk yet
  disk.set_open(true);
  waits.join();
  closes.join();
  closes_too.join();
  testing::internal::GetCapturedStderr();  // the disk is slower than the program
  EXPECT_TRUE(disk.has_bytes(3 * large.size()));
}

TEST(EventWriter, FullDiskFromTheBeginning) {
  TempDir dir;
  FullDiskOfEvents env(0);
  expect_error([&] { EventWriter writer(dir.path(), {}, env); }, Code::resource_exhausted, "disk full");
  testing::internal::CaptureStderr();
  {
    EventWriter writer(dir.path(), {.keep_going = true}, env);
    EXPECT_FALSE(writer.write_tensor(0, "loss", kOne, kScalars));
    writer.flush();
  }
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(told, '\n'), 1) << told;
  EventWriter other(dir.path());
  EXPECT_TRUE(other.write_tensor(0, "loss", kOne, kScalars));
}

// Two containers may have one folder, host name and process number.
TEST(EventWriter, NeverTakesTheFileOfAnother) {
  TempDir dir;
  const std::string path = EventWriter(dir.path()).path();
  std::smatch part;
  const std::regex form(R"((.*tfevents\.)(\d+)(\..*\.\d+\.)(\d+))");
  ASSERT_TRUE(std::regex_match(path, part, form)) << path;
  std::vector<std::string> taken;
  for (int64_t second = 0; second < 60; ++second) {  // whenever it is made
    taken.push_back(fmt::format("{}{:010}{}{}", part[1].str(), std::stoll(part[2]) + second, part[3].str(),
                                std::stoll(part[4]) + 1));
    std::ofstream(taken.back()) << "another's";
  }
  const EventWriter writer(dir.path());
  EXPECT_EQ(std::ranges::count(taken, writer.path()), 0);
  for (const std::string& file : taken) ASSERT_EQ(read_bytes(file), "another's");
}

TEST(EventWriter, AChildOfForkHasNone) {
#ifdef RUNNEL_UNDER_TSAN
  GTEST_SKIP() << "ThreadSanitizer knows no threads of a forked program";
#endif
  TempDir dir;
  auto writer = std::make_unique<EventWriter>(dir.path(), EventWriterOptions{.max_queue = 1000});
  writer->write_tensor(0, "loss", kOne, kScalars);
  const auto refused = [](const auto& call) {
    try {
      call();
    } catch (const Error& e) {
      return e.code() == Code::failed_precondition && std::string(e.what()).find("forked") != std::string::npos;
    }
    return false;
  };
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // ends what hangs
    bool right = !writer->is_open() && refused([&] { writer->write_tensor(1, "loss", kOne, kScalars); }) &&
                 refused([&] { writer->flush(); });
    writer->schedule_flush();
    writer->close();
    writer.reset();
    EventWriter own(dir.path());
    right = right && own.write_tensor(7, "child", kOne, kScalars);
    own.close();
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  writer->write_tensor(1, "loss", kOne, kScalars);
  writer->close();
  EXPECT_EQ(tags_in(writer->path()).size(), 2u);
  EXPECT_EQ(event_files(dir.path()).size(), 2u);
}

TEST(EventReader, CutAndDamagedEvents) {
  TempDir dir;
  std::string path;
  {
    EventWriter writer(dir.path());
    for (int i = 0; i < 5; ++i) writer.write_tensor(i, "loss", kOne, kScalars);
    path = writer.path();
  }
  const std::string whole = read_bytes(path);
  const size_t first = 16 + 62, each = (whole.size() - first - (16 + 44)) / 4;  // step 0 takes two bytes less
  const auto read_all = [](std::string_view bytes, Status* status) {
    EventReader reader(std::as_bytes(std::span(bytes)), "memory");
    Event event;
    int events = 0;
    while ((*status = reader.read(&event)) == Status::event || (*status == Status::damaged && reader.skip_damaged())) {
      events += *status == Status::event;
    }
    return events;
  };
  Status status;
  EXPECT_EQ(read_all(whole, &status), 6);
  EXPECT_EQ(status, Status::end);
  for (size_t cut = 1; cut < each; ++cut) {  // a file that ends anywhere in its last event
    EXPECT_EQ(read_all(std::string_view(whole).substr(0, whole.size() - cut), &status), 5);
    EXPECT_EQ(status, Status::cut) << cut;
  }
  std::string flipped = whole;
  flipped[first + 20] ^= 1;  // inside the first scalar: it is lost, those behind it are not
  EXPECT_EQ(read_all(flipped, &status), 5);
  EXPECT_EQ(status, Status::end);
  flipped = whole;
  flipped[first] ^= 1;  // its length: nothing behind it can be found
  EXPECT_EQ(read_all(flipped, &status), 1);
  EXPECT_EQ(status, Status::damaged);

  TFRecordWriter other(dir.path() + "/tfevents");
  other.write("no event");
  other.close();
  EventReader reader(dir.path() + "/tfevents");
  Event event;
  EXPECT_EQ(reader.read(&event), Status::damaged);
  expect_error([&] { reader.throw_error(); }, Code::data_loss, "tfevents: event 0 at byte 0: the record is no event");
  EXPECT_TRUE(reader.skip_damaged());
  EXPECT_EQ(reader.read(&event), Status::end);
}

TEST(EventReader, FollowsAFileThatGrows) {
  TempDir dir;
  const std::string source = dir.path() + "/source", path = dir.path() + "/tfevents";
  {
    TFRecordWriter writer(source);
    std::string event;
    for (int i = 0; i < 3; ++i) {
      event.clear();
      append_tensor_event(event, i, i, "loss", kOne, kScalars);
      writer.write(event);
    }
  }
  const std::string whole = read_bytes(source);
  std::ofstream empty(path, std::ios::binary);
  empty.close();
  EventReader reader(path);
  Event event;
  int64_t steps = 0;
  for (const char c : whole) {  // byte by byte
    std::ofstream(path, std::ios::binary | std::ios::app) << c;
    ASSERT_TRUE(reader.refresh());
    ASSERT_FALSE(reader.refresh());
    Status status;
    while ((status = reader.read(&event)) == Status::event) EXPECT_EQ(event.step, steps++);
    ASSERT_NE(status, Status::damaged);
  }
  EXPECT_EQ(steps, 3);
  stdfs::resize_file(path, 10);
  expect_error([&] { reader.refresh(); }, Code::data_loss, "another file");
}

TEST(EventReader, AFolderThatCannotBeReadIsLeftOut) {
  struct Closed : EnvWrapper {
    Closed() : EnvWrapper(Env::posix()) {}
    std::vector<std::string> list(const std::string& folder) override {
      if (folder.ends_with("closed")) throw Error(Code::permission_denied, "[list] " + folder + ": denied");
      return EnvWrapper::list(folder);
    }
  } env;
  TempDir dir;
  for (const char* run : {"closed", "open"}) EventWriter(dir.path() + "/" + run).close();
  testing::internal::CaptureStderr();
  for (int round = 0; round < 2; ++round) {
    const std::vector<EventRun> runs = find_event_runs(dir.path(), env);
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_EQ(runs[0].name, "open");
  }
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(told, '\n'), 1) << told;  // once
  expect_error([&] { find_event_runs(dir.path() + "/closed", env); }, Code::permission_denied, "denied");
}

TEST(EventReader, FindsRuns) {
  TempDir dir;
  for (const char* run : {"train", "validation", "deep/er"}) EventWriter(dir.path() + "/" + run).close();
  EventWriter(dir.path()).close();
  std::ofstream(dir.path() + "/train/other.txt") << "x";
  const std::vector<EventRun> runs = find_event_runs(dir.path());
  std::vector<std::string> names;
  for (const EventRun& run : runs) {
    names.push_back(run.name);
    EXPECT_EQ(run.files.size(), 1u);
  }
  EXPECT_THAT(names, testing::ElementsAre(".", "deep/er", "train", "validation"));
  EXPECT_EQ(find_event_runs(runs[0].files[0])[0].files, runs[0].files);
  stdfs::create_directory_symlink(".", dir.path() + "/again");
  stdfs::create_directory_symlink("..", dir.path() + "/deep/up");
  stdfs::create_directory_symlink("train", dir.path() + "/latest");
  for (const char* link : {"a", "b"}) stdfs::create_directory_symlink(dir.path(), dir.path() + "/deep/er/" + link);
  EXPECT_EQ(find_event_runs(dir.path()).size(), runs.size());  // links into the folder add nothing
  TempDir elsewhere;
  EventWriter(elsewhere.path() + "/outside").close();
  stdfs::create_directory_symlink(dir.path(), elsewhere.path() + "/back");
  stdfs::create_directory_symlink(elsewhere.path(), dir.path() + "/far");
  stdfs::create_directory_symlink(elsewhere.path(), dir.path() + "/further");
  names.clear();
  for (const EventRun& run : find_event_runs(dir.path())) names.push_back(run.name);
  EXPECT_THAT(names, testing::ElementsAre(".", "deep/er", "far/outside", "train", "validation"));
  expect_error([&] { find_event_runs(dir.path() + "/missing"); }, Code::not_found, "missing");
}

}  // namespace
}  // namespace runnel::io
