#include "runnel/base/env.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "runnel/base/sha256.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel {
namespace {

using test::expect_error;
using test::read_text;
using test::TempDir;
using test::text_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Env& env() { return Env::posix(); }

TEST(Env, WritesAndReadsBack) {
  TempDir dir;
  std::string path = dir.file("a");
  env().write_file(path, as_bytes(std::string("hello\0world", 11)));
  EXPECT_EQ(read_text(path), std::string("hello\0world", 11));
  EXPECT_EQ(env().stat(path).size, 11U);
  EXPECT_FALSE(env().stat(path).is_dir);
  EXPECT_TRUE(env().stat(dir.path()).is_dir);
  env().write_file(path, {});
  EXPECT_EQ(read_text(path), "");
  EXPECT_THAT(env().list(dir.path()), ElementsAre("a"));  // no temporary file stays
}

TEST(Env, WhatCannotBeLookedUpIsNotMissing) {
  TempDir dir;
  env().write_file(dir.file("a"), {});
  EXPECT_TRUE(env().exists(dir.file("a")));
  EXPECT_FALSE(env().exists(dir.file("b")));
  EXPECT_FALSE(env().exists(dir.file("a/b")));  // "a" is no folder
  ASSERT_EQ(::symlink("loop", dir.file("loop").c_str()), 0);
  expect_error([&] { (void)env().exists(dir.file("loop/b")); }, Code::unknown, "loop/b");
  env().remove(dir.file("loop"));
}

TEST(Env, ReadFileSeesMoreThanStatAnnounced) {
  // Files of /proc say that they are empty.
  EXPECT_THAT(text_of(env().read_file("/proc/self/status")), ::testing::HasSubstr("Name:"));
}

TEST(Env, PipesAreRefusedAtOnceWherePlacesAreRead) {
  const TempDir dir;
  const std::string pipe = dir.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error([&] { Env::posix().open_random(pipe); }, Code::failed_precondition, pipe + ": a pipe, not a file");
  expect_error([&] { Env::posix().map(pipe); }, Code::failed_precondition, pipe + ": a pipe, not a file");
}

TEST(Env, SequentialReadStopsAtTheEnd) {
  TempDir dir;
  env().write_file(dir.file("a"), as_bytes("abcdefgh"));
  auto file = env().open_sequential(dir.file("a"));
  std::vector<std::byte> buffer(5);
  EXPECT_EQ(file->read(buffer), 5U);
  EXPECT_EQ(text_of(buffer), "abcde");
  EXPECT_EQ(file->read(buffer), 3U);
  EXPECT_EQ(text_of(ByteSpan(buffer).first(3)), "fgh");
  EXPECT_EQ(file->read(buffer), 0U);
}

TEST(Env, RandomAccessReadsAnywhereFromManyThreads) {
  TempDir dir;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>('a' + i % 23);
  env().write_file(dir.file("a"), as_bytes(text));
  auto file = env().open_random(dir.file("a"));
  EXPECT_EQ(file->size(), text.size());
  std::atomic<int> wrong{0};
  auto check = [&](size_t start) {
    std::vector<std::byte> buffer(100);
    for (size_t offset = start; offset < text.size() + 200; offset += 7) {
      size_t n = file->read(offset, buffer);
      std::string expected = offset < text.size() ? text.substr(offset, 100) : "";
      if (text_of(ByteSpan(buffer).first(n)) != expected) ++wrong;
    }
  };
  std::thread other(check, 0);
  check(3);
  other.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Env, MapsWholeFilesAndEmptyOnes) {
  TempDir dir;
  env().write_file(dir.file("a"), as_bytes("mapped"));
  env().write_file(dir.file("empty"), {});
  auto file = env().map(dir.file("a"));
  EXPECT_EQ(text_of(file->bytes()), "mapped");
  EXPECT_EQ(env().map(dir.file("empty"))->bytes().size(), 0U);
}

TEST(Env, AppendsAndTruncates) {
  TempDir dir;
  std::string path = dir.file("a");
  env().open_to_append(path)->append(as_bytes("one"));
  env().open_to_append(path)->append(as_bytes("two"));
  EXPECT_EQ(read_text(path), "onetwo");
  env().create(path)->append(as_bytes("3"));
  EXPECT_EQ(read_text(path), "3");
}

TEST(Env, FoldersAndRenames) {
  TempDir dir;
  std::string deep = dir.file("x/y/z");
  env().create_dirs(deep);
  env().create_dirs(deep);
  env().write_file(deep + "/b", as_bytes("b"));
  env().write_file(deep + "/a", as_bytes("a"));
  EXPECT_THAT(env().list(deep), ElementsAre("a", "b"));
  env().rename(deep + "/a", deep + "/b");
  EXPECT_EQ(read_text(deep + "/b"), "a");
  env().remove_tree(dir.file("x"));
  env().remove_tree(dir.file("x"));
  EXPECT_THAT(env().list(dir.path()), IsEmpty());
}

TEST(Env, ErrorsNameTheFileAndTheReason) {
  TempDir dir;
  std::string none = dir.file("none");
  expect_error([&] { env().open_sequential(none); }, Code::not_found, "[open] " + none + ": No such file");
  expect_error([&] { env().open_random(none); }, Code::not_found, none);
  expect_error([&] { env().map(none); }, Code::not_found, "[open] " + none);
  expect_error([&] { env().stat(none); }, Code::not_found, "[stat] " + none);
  expect_error([&] { env().list(none); }, Code::not_found, "[list] " + none);
  expect_error([&] { env().remove(none); }, Code::not_found, "[remove] " + none);
  expect_error([&] { env().rename(none, none + "2"); }, Code::not_found, none + " to " + none + "2");
  expect_error([&] { env().read_file(dir.path()); }, Code::failed_precondition, "Is a directory");
  expect_error([&] { env().create(dir.path()); }, Code::failed_precondition, dir.path());
  expect_error([&] { env().write_file(dir.file("no/such"), {}); }, Code::not_found, dir.file("no/such"));
  env().write_file(dir.file("plain"), {});
  expect_error([&] { env().create_dirs(dir.file("plain/sub")); }, Code::failed_precondition, "plain/sub");
  expect_error([&] { env().create_dirs(dir.file("plain")); }, Code::already_exists, "plain");
}

// Fails the n-th step of writing a file.
class FailingEnv : public EnvWrapper {
 public:
  FailingEnv(Env& target, std::string step) : EnvWrapper(target), step_(std::move(step)) {}
  std::unique_ptr<WritableFile> create(const std::string& path) override {
    fail_at("create", path);
    return std::make_unique<File>(*this, EnvWrapper::create(path), path);
  }
  void rename(const std::string& from, const std::string& to) override {
    fail_at("rename", to);
    EnvWrapper::rename(from, to);
  }

 private:
  struct File : WritableFile {
    File(FailingEnv& env, std::unique_ptr<WritableFile> file, std::string path)
        : env(env), file(std::move(file)), path(std::move(path)) {}
    void append(ByteSpan bytes) override {
      file->append(bytes.first(bytes.size() / 2));
      env.fail_at("append", path);
      file->append(bytes.subspan(bytes.size() / 2));
    }
    void sync() override {
      env.fail_at("sync", path);
      file->sync();
    }
    void close() override {
      env.fail_at("close", path);
      file->close();
    }
    FailingEnv& env;
    std::unique_ptr<WritableFile> file;
    std::string path;
  };
  void fail_at(const std::string& step, const std::string& path) const {
    if (step == step_) throw Error(Code::resource_exhausted, "[" + step + "] " + path + ": disk full");
  }
  std::string step_;
};

TEST(Env, AFailedWriteLeavesTheOldFileAndNothingElse) {
  for (const char* step : {"create", "append", "sync", "close", "rename"}) {
    SCOPED_TRACE(step);
    TempDir dir;
    env().write_file(dir.file("a"), as_bytes("old"));
    FailingEnv failing(env(), step);
    expect_error([&] { failing.write_file(dir.file("a"), as_bytes("brand new")); }, Code::resource_exhausted, step);
    EXPECT_EQ(read_text(dir.file("a")), "old");
    EXPECT_THAT(env().list(dir.path()), ElementsAre("a"));
  }
}

TEST(Env, ConcurrentWritersLeaveOneWholeFile) {
  TempDir dir;
  std::string path = dir.file("a");
  auto writer = [&](char c) {
    for (int i = 0; i < 20; ++i) env().write_file(path, as_bytes(std::string(10000, c)));
  };
  std::thread other(writer, 'x');
  writer('y');
  other.join();
  std::string text = read_text(path);
  EXPECT_EQ(text, std::string(10000, text[0]));
  EXPECT_THAT(env().list(dir.path()), ElementsAre("a"));
}

TEST(Env, ALockIsHeldByOneAtATime) {
  TempDir dir;
  std::string path = dir.file("lock");
  std::atomic<int> inside{0};  // atomic: ThreadSanitizer does not know that a file lock orders memory
  std::atomic<int> worst{0};
  auto work = [&] {
    for (int i = 0; i < 50; ++i) {
      auto lock = env().lock(path);
      worst = std::max<int>(worst, ++inside);
      std::this_thread::yield();
      --inside;
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(worst, 1);
}

// Two ends of a pipe; what is written at one is read at the other, also by a child.
struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void put() const { EXPECT_EQ(::write(ends[1], "x", 1), 1); }
  void take() const {
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  }
  int ends[2] = {};
};

TEST(Env, AForkedChildDoesNotHoldALock) {
  TempDir dir;
  const std::string path = dir.file("lock");
  const Pipe born, may_end;
  auto lock = env().lock(path);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    born.put();
    may_end.take();
    lock.reset();  // closed already, and no other descriptor with it
    ::_exit(0);
  }
  born.take();
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_NE(::flock(file, LOCK_EX | LOCK_NB), 0);  // the parent still has it
  lock.reset();
  EXPECT_EQ(::flock(file, LOCK_EX | LOCK_NB), 0);  // and the child, which lives, has not
  ::close(file);
  may_end.put();
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Env, RemovingATreeLeavesWhatLinksLeadTo) {
  TempDir outside;
  env().write_file(outside.file("kept"), as_bytes(std::string("here")));
  TempDir dir;
  const std::string tree = dir.file("tree");
  env().create_dirs(tree + "/inner");
  std::filesystem::create_directory_symlink(outside.path(), tree + "/outside");
  std::filesystem::create_directory_symlink("..", tree + "/inner/up");
  std::filesystem::create_symlink("nothing", tree + "/nowhere");
  env().remove_tree(tree);
  EXPECT_THAT(env().list(dir.path()), IsEmpty());
  EXPECT_EQ(read_text(outside.file("kept")), "here");
}

TEST(Paths, JoinAndParent) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(join_path("a", "/b"), "/b");
  EXPECT_EQ(parent_dir("a/b"), "a");
  EXPECT_EQ(parent_dir("/b"), "/");
  EXPECT_EQ(parent_dir("b"), ".");
}

// The examples of FIPS 180-2, appendix B.
TEST(Sha256, KnownDigests) {
  EXPECT_EQ(sha256_hex(as_bytes("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(as_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, OfFilesInPieces) {
  TempDir dir;
  std::string million(1'000'000, 'a');
  env().write_file(dir.file("a"), as_bytes(million));
  const char* expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
  EXPECT_EQ(sha256_file(env(), dir.file("a")), expected);
  Sha256 sha;
  for (int i = 0; i < 1000; ++i) sha.update(as_bytes(std::string(1000, 'a')));
  EXPECT_EQ(sha.hex(), expected);
  env().write_file(dir.file("b"), as_bytes(std::string(1 << 18, 'b')));  // exactly one read
  EXPECT_EQ(sha256_file(env(), dir.file("b")), sha256_hex(as_bytes(std::string(1 << 18, 'b'))));
}

}  // namespace
}  // namespace runnel
