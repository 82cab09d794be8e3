#include "runnel/io/glob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

using ::testing::ElementsAre;

TEST(Glob, MatchesNames) {
  EXPECT_TRUE(matches_pattern("train-00001.tfrecord", "train-*.tfrecord"));
  EXPECT_TRUE(matches_pattern("aXbXc", "*X*"));
  EXPECT_TRUE(matches_pattern("", "*"));
  EXPECT_TRUE(matches_pattern("abcabd", "*ab?"));
  EXPECT_FALSE(matches_pattern("abcab", "*ab?"));
  EXPECT_TRUE(matches_pattern("f7", "f[0-9]"));
  EXPECT_FALSE(matches_pattern("fx", "f[0-9]"));
  EXPECT_TRUE(matches_pattern("fx", "f[!0-9]"));
  EXPECT_TRUE(matches_pattern("f]", "f[]x]"));
  EXPECT_TRUE(matches_pattern("f*", R"(f\*)"));
  EXPECT_FALSE(matches_pattern("fa", R"(f\*)"));
  EXPECT_FALSE(matches_pattern("abc", "ab"));
  EXPECT_FALSE(matches_pattern(std::string(3000, 'a'), "*a*a*a*a*a*a*a*b"));  // no exponential search
}

TEST(Glob, FindsPaths) {
  test::TempDir dir;
  Env& env = Env::posix();
  for (const char* name : {"a/1.txt", "a/2.txt", "b/1.txt", "b/3.png", ".hidden"}) {
    env.create_dirs(parent_dir(dir.file(name)));
    env.write_file(dir.file(name), {});
  }
  EXPECT_THAT(matching_paths(dir.file("*/1.txt")), ElementsAre(dir.file("a/1.txt"), dir.file("b/1.txt")));
  EXPECT_THAT(matching_paths(dir.file("a/*")), ElementsAre(dir.file("a/1.txt"), dir.file("a/2.txt")));
  EXPECT_THAT(matching_paths(dir.file("*")), ElementsAre(dir.file("a"), dir.file("b")));
  EXPECT_THAT(matching_paths(dir.file(".h*")), ElementsAre(dir.file(".hidden")));
  EXPECT_THAT(matching_paths(dir.file("b/3.png")), ElementsAre(dir.file("b/3.png")));
  EXPECT_THAT(matching_paths(dir.file("none/*")), ElementsAre());
  EXPECT_THAT(matching_paths(dir.file("a/1.txt/*")), ElementsAre());
  EXPECT_THAT(matching_paths(""), ElementsAre());
}

}  // namespace
}  // namespace runnel::io
