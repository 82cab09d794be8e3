#include "runnel/io/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "runnel/base/sha256.h"
#include "tests/support/expect_error.h"
#include "tests/support/http_server.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

using test::expect_error;
using test::HttpServer;
using test::read_text;
using test::TempDir;
using ::testing::ElementsAre;

std::string body() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += static_cast<char>(i * 7 % 251);
  return text;
}

TEST(Fetch, DownloadsChecksAndReports) {
  HttpServer server({{"f", {.body = body()}}});
  TempDir dir;
  uint64_t last = 0;
  uint64_t total = 0;
  FetchOptions options{.sha256 = sha256_hex(as_bytes(body())), .progress = [&](uint64_t done, uint64_t all) {
                         EXPECT_GE(done, last);
                         last = done;
                         total = all;
                       }};
  fetch(server.url("f"), dir.file("new/f"), options);
  EXPECT_EQ(read_text(dir.file("new/f")), body());
  EXPECT_EQ(last, body().size());
  EXPECT_EQ(total, body().size());
  EXPECT_THAT(Env::posix().list(dir.file("new")), ElementsAre("f"));
}

TEST(Fetch, GoesOnAfterABrokenConnection) {
  HttpServer server({{"f", {.body = body(), .cut_after = 60'000}}});
  TempDir dir;
  FetchOptions options{.sha256 = sha256_hex(as_bytes(body()))};
  expect_error([&] { fetch(server.url("f"), dir.file("f"), options); }, Code::unavailable, server.url("f"));
  EXPECT_FALSE(Env::posix().exists(dir.file("f")));
  fetch(server.url("f"), dir.file("f"), options);
  EXPECT_EQ(read_text(dir.file("f")), body());
  EXPECT_THAT(server.requests(), ElementsAre("f", "f from 60000"));
}

TEST(Fetch, StartsAgainWhereTheServerCannotResume) {
  HttpServer server({{"f", {.body = body(), .ranges = false}}});
  TempDir dir;
  Env::posix().write_file(dir.file("f.part"), as_bytes(body().substr(0, 1000)));
  fetch(server.url("f"), dir.file("f"), {.sha256 = sha256_hex(as_bytes(body()))});
  EXPECT_EQ(read_text(dir.file("f")), body());
}

TEST(Fetch, StartsAgainWhenThePartDoesNotFit) {
  for (size_t size : {size_t{1000}, body().size(), body().size() + 50}) {
    SCOPED_TRACE(size);
    HttpServer server({{"f", {.body = body()}}});
    TempDir dir;
    Env::posix().write_file(dir.file("f.part"), as_bytes(std::string(size, '?')));
    fetch(server.url("f"), dir.file("f"), {.sha256 = sha256_hex(as_bytes(body()))});
    EXPECT_EQ(read_text(dir.file("f")), body());
    EXPECT_THAT(server.requests(), ElementsAre("f from " + std::to_string(size), "f"));
  }
}

TEST(Fetch, WithoutAChecksumNeverResumes) {
  HttpServer server({{"f", {.body = body()}}});
  TempDir dir;
  Env::posix().write_file(dir.file("f.part"), as_bytes("junk"));
  fetch(server.url("f"), dir.file("f"));
  EXPECT_EQ(read_text(dir.file("f")), body());
}

TEST(Fetch, AWrongChecksumLeavesNothing) {
  HttpServer server({{"f", {.body = body()}}});
  TempDir dir;
  std::string wrong(64, '0');
  expect_error([&] { fetch(server.url("f"), dir.file("f"), {.sha256 = wrong}); }, Code::data_loss, "expected " + wrong);
  EXPECT_TRUE(Env::posix().list(dir.path()).empty());
}

TEST(Fetch, ErrorsNameTheUrl) {
  HttpServer server({});
  TempDir dir;
  expect_error([&] { fetch(server.url("none"), dir.file("f")); }, Code::not_found, server.url("none"));
  expect_error([&] { fetch("http://127.0.0.1:1/f", dir.file("f")); }, Code::unavailable, "http://127.0.0.1:1/f");
  expect_error([&] { fetch("file:///etc/passwd", dir.file("f")); }, Code::unavailable, "file:///etc/passwd");
  EXPECT_FALSE(Env::posix().exists(dir.file("f")));
}

TEST(Fetch, AnExceptionOfTheCallbackComesOut) {
  HttpServer server({{"f", {.body = body()}}});
  TempDir dir;
  FetchOptions options{.progress = [](uint64_t, uint64_t) { throw Error(Code::cancelled, "stop"); }};
  expect_error([&] { fetch(server.url("f"), dir.file("f"), options); }, Code::cancelled, "stop");
  EXPECT_FALSE(Env::posix().exists(dir.file("f")));
}

class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) {
      old_ = old;
      had_ = true;
    }
    if (value != nullptr) {
      ::setenv(name, value, 1);
    } else {
      ::unsetenv(name);
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;
  ~ScopedVariable() {
    if (had_) {
      ::setenv(name_, old_.c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

TEST(CacheDir, FollowsTheEnvironment) {
  ScopedVariable home("HOME", "/h");
  ScopedVariable cache("XDG_CACHE_HOME", nullptr);
  ScopedVariable runnel("RUNNEL_HOME", nullptr);
  EXPECT_EQ(cache_dir(), "/h/.cache/runnel");
  ScopedVariable with_cache("XDG_CACHE_HOME", "/c");
  EXPECT_EQ(cache_dir(), "/c/runnel");
  ScopedVariable with_runnel("RUNNEL_HOME", "/r");
  EXPECT_EQ(cache_dir(), "/r");
  ScopedVariable empty_runnel("RUNNEL_HOME", "");
  EXPECT_EQ(cache_dir(), "/c/runnel");
  ScopedVariable no_cache("XDG_CACHE_HOME", nullptr);
  ScopedVariable no_home("HOME", nullptr);
  expect_error([] { cache_dir(); }, Code::failed_precondition, "RUNNEL_HOME");
}

}  // namespace
}  // namespace runnel::io
