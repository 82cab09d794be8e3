// The index of event files: what it knows of them while they grow, are cut, replaced and deleted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <sstream>

#include "runnel/base/format.h"
#include "runnel/board/index.h"
#include "runnel/board/line_query.h"
#include "runnel/board/values.h"
#include "tests/board/event_files.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"

namespace runnel::board {
namespace {

using namespace test;
namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const char kFile[] = "events.out.tfevents.1.host.v2";

struct Watched {
  TempDir dir;
  Index index{{{.name = "", .path = dir.path()}}};

  std::string file(const std::string& run, const std::string& name = kFile) { return dir.file(run + "/" + name); }
  SeriesInfo series(const std::string& run, const std::string& tag) {
    const std::optional<SeriesInfo> info = index.find(run, tag);
    EXPECT_TRUE(info) << run << " " << tag;
    return info.value_or(SeriesInfo{});
  }
  std::vector<int64_t> steps(const std::string& run, const std::string& tag = "loss") {
    std::vector<int64_t> steps;
    const auto line = read_line(index, series(run, tag).id, {});
    if (!line) return steps;
    for (const LinePoint& p : line->points) steps.push_back(p.step);
    return steps;
  }
};

std::string scalars_between(int64_t begin, int64_t end) {
  std::string bytes;
  for (int64_t i = begin; i < end; ++i) bytes += scalar_record(i, static_cast<float>(i % 997));
  return bytes;
}

TEST(Index, AnAbsentFolderIsEmptyAndFills) {
  TempDir dir;
  Index index({{.name = "", .path = dir.file("later")}});
  index.refresh();
  EXPECT_TRUE(index.list().series.empty());
  EXPECT_FALSE(index.list().loading);
  append_file(dir.file("later/run/") + kFile, version_record() + scalar_record(3, 1.5f));
  EXPECT_TRUE(index.refresh());
  const Listing listing = index.list();
  ASSERT_EQ(listing.series.size(), 1u);
  EXPECT_EQ(listing.series[0].run, "run");
  EXPECT_EQ(listing.series[0].last.value, 1.5f);
  EXPECT_FALSE(index.refresh());
}

TEST(Index, FollowsAFileByteByByte) {
  Watched w;
  const std::string head = version_record(),
                    bytes = head + scalar_record(1, 1) + scalar_record(2, 2) + scalar_record(3, 3);
  const size_t record = scalar_record(1, 1).size();
  for (size_t n = 1; n <= bytes.size(); ++n) {
    append_file(w.file("run"), bytes.substr(n - 1, 1));
    w.index.refresh();
    const auto info = w.index.find("run", "loss");
    EXPECT_EQ(info ? info->count : 0, n < head.size() ? 0 : (n - head.size()) / record) << n;
  }
  EXPECT_THAT(w.steps("run"), ElementsAre(1, 2, 3));
  EXPECT_TRUE(w.index.list().complaints.empty());
}

TEST(Index, AFileThatIsReplacedCountsAnew) {
  Watched w;
  append_file(w.file("run"), version_record() + scalars_between(0, 100));
  w.index.refresh();
  const uint32_t old = w.series("run", "loss").id;
  const uint64_t before = w.index.list().generation;
  // Shorter.
  write_new_file(w.file("run"), version_record() + scalars_between(500, 503));
  EXPECT_TRUE(w.index.refresh());
  EXPECT_THAT(w.steps("run"), ElementsAre(500, 501, 502));
  EXPECT_NE(w.series("run", "loss").id, old);
  EXPECT_FALSE(w.index.find(old));
  EXPECT_TRUE(w.index.list(before).whole) << "who knew the old series must hear that it is gone";
  // Longer, with the same beginning.
  write_new_file(w.file("run"), version_record() + scalars_between(700, 900));
  w.index.refresh();
  EXPECT_EQ(w.series("run", "loss").first.step, 700);
  EXPECT_EQ(w.series("run", "loss").count, 200u);
  // Empty, and written again.
  write_new_file(w.file("run"), "");
  w.index.refresh();
  EXPECT_FALSE(w.index.find("run", "loss"));
  append_file(w.file("run"), version_record() + scalar_record(9, 1));
  w.index.refresh();
  EXPECT_THAT(w.steps("run"), ElementsAre(9));
}

TEST(Index, WhatIsDeletedIsGone) {
  Watched w;
  append_file(w.file("a"), version_record() + scalars_between(0, 3));
  append_file(w.file("a", "events.out.tfevents.2.host.v2"), version_record() + scalars_between(3, 5));
  append_file(w.file("b"), version_record() + scalar_record(0, 1));
  w.index.refresh();
  EXPECT_THAT(w.index.list().runs, ElementsAre("a", "b"));
  EXPECT_THAT(w.steps("a"), ElementsAre(0, 1, 2, 3, 4));
  fs::remove(w.file("a"));
  w.index.refresh();
  EXPECT_THAT(w.steps("a"), ElementsAre(3, 4));
  fs::remove_all(w.dir.file("a"));
  w.index.refresh();
  EXPECT_THAT(w.index.list().runs, ElementsAre("b"));
  EXPECT_EQ(w.index.list().files, 1u);
  append_file(w.file("a"), version_record() + scalar_record(7, 1));
  w.index.refresh();
  EXPECT_THAT(w.steps("a"), ElementsAre(7));
}

TEST(Index, WritersSideBySideStandInTheOrderOfTime) {
  Watched w;
  append_file(w.file("run"), version_record() + scalar_record(1, 1, "loss", 10) + scalar_record(3, 1, "loss", 30));
  append_file(w.file("run", "events.out.tfevents.2.other"),
              version_record() + scalar_record(2, 1, "loss", 20) + scalar_record(4, 1, "loss", 40));
  w.index.refresh();
  EXPECT_THAT(w.steps("run"), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(w.series("run", "loss").count, 4u);
  EXPECT_EQ(w.series("run", "loss").last.step, 4);
}

TEST(Index, EveryPointOfALongLineCanBeRead) {
  Watched w;
  constexpr int64_t n = 100'000;
  std::string bytes = version_record();
  for (int64_t i = 0; i < n; ++i) {
    bytes += scalar_record(i, static_cast<float>(i % 997));
    if (i % 3 == 0) bytes += scalar_record(i, 0, "other");
  }
  append_file(w.file("run"), bytes);
  w.index.refresh();
  const SeriesInfo info = w.series("run", "loss");
  EXPECT_EQ(info.count, static_cast<uint64_t>(n));
  const auto whole = read_line(w.index, info.id, {.most = 500});
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->all);
  EXPECT_LE(whole->points.size(), 500u);
  EXPECT_EQ(whole->points.back().step, n - 1);
  for (const int64_t from : {int64_t{0}, int64_t{54'321}, n - 50}) {
    const auto part = read_line(w.index, info.id, {.from = from, .to = from + 99});
    ASSERT_TRUE(part);
    EXPECT_TRUE(part->all);
    ASSERT_EQ(part->points.size(), static_cast<size_t>(std::min(n - from, int64_t{100})));
    for (size_t i = 0; i < part->points.size(); ++i) {
      EXPECT_EQ(part->points[i].step, from + static_cast<int64_t>(i));
      EXPECT_EQ(part->points[i].value, static_cast<float>(part->points[i].step % 997));
    }
  }
  PointStream stream(w.index, *w.index.line(info.id));
  std::vector<LinePoint> some;
  int64_t next = 0;
  while (stream.next(&some)) {
    for (const LinePoint& p : some) ASSERT_EQ(p.step, next++);
  }
  EXPECT_EQ(next, n);
}

TEST(Index, RecordsLargerThanAWindowAreRead) {
  Watched w;
  for (const size_t size : {(size_t{1} << 20) - 100, (size_t{1} << 20) + 1, size_t{3'000'000}}) {
    append_file(w.file("run"), image_record(static_cast<int64_t>(size), std::string(size, 'x')));
  }
  append_file(w.file("run"), scalar_record(1, 1));
  w.index.refresh();
  EXPECT_THAT(w.steps("run"), ElementsAre(1));
  const std::vector<ValuePlace> places = w.index.places(w.series("run", "image").id);
  ASSERT_EQ(places.size(), 3u);
  for (const ValuePlace& place : places) {
    size_t size = 0;
    EXPECT_TRUE(w.index.read_value(place.file, place.offset, "image",
                                   [&](const io::EventPoint& point) { size = texts_of(point).values.at(2).size(); }));
    EXPECT_EQ(size, static_cast<size_t>(place.step));
  }
}

TEST(Index, PlacesThatAreNoneAreRefused) {
  Watched w;
  append_file(w.file("run"), version_record() + image_record(1, "a") + scalar_record(1, 1));
  w.index.refresh();
  const ValuePlace place = w.index.places(w.series("run", "image").id).at(0);
  const auto never = [](const io::EventPoint&) { ADD_FAILURE(); };
  EXPECT_FALSE(w.index.read_value(place.file + 1, place.offset, "image", never));
  EXPECT_FALSE(w.index.read_value(place.file, place.offset, "loss", never));
  for (const uint64_t offset : {place.offset + 1, uint64_t{0}, uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_FALSE(w.index.read_value(place.file, offset, "image", never));
  }
}

TEST(Index, DamageIsToldAndSteppedOver) {
  Watched w;
  std::string broken = scalar_record(1, 1);
  broken[broken.size() - 6] ^= 1;
  append_file(w.file("run"), version_record() + scalar_record(0, 1) + broken + scalar_record(2, 1));
  w.index.refresh();
  EXPECT_THAT(w.steps("run"), ElementsAre(0, 2));
  ASSERT_EQ(w.index.list().complaints.size(), 1u);
  EXPECT_THAT(w.index.list().complaints[0], HasSubstr("bad data checksum"));
  // Behind a length that makes no sense nothing is found, until the file is another one.
  append_file(w.file("run"), std::string(40, '\xee') + scalar_record(3, 1));
  w.index.refresh();
  EXPECT_THAT(w.steps("run"), ElementsAre(0, 2));
  EXPECT_THAT(w.index.list().complaints[0], HasSubstr("bad length checksum"));
}

TEST(Index, ARecordThatIsTooLargeTakesNoMemory) {
  Watched w;
  std::string header;
  append_fixed64(header, kLargestRecord + 1);
  append_fixed32(header, crc32c_mask(crc32c(header.data(), 8)));
  append_file(w.file("run"), version_record() + header);
  const uint64_t behind = version_record().size() + kLargestRecord + 1 + 16;
  fs::resize_file(w.file("run"), behind);  // a hole
  append_file(w.file("run"), scalar_record(5, 1));
  w.index.refresh();
  EXPECT_THAT(w.steps("run"), ElementsAre(5));
  EXPECT_THAT(w.index.list().complaints.at(0), HasSubstr("is left out"));
}

TEST(Index, LinksMustNotLeaveTheFolder) {
  TempDir outside;
  append_file(outside.file("run/") + kFile, version_record() + scalar_record(0, 1));
  Watched w;
  append_file(w.file("own"), version_record() + scalar_record(0, 1));
  fs::create_directory_symlink(outside.path(), w.dir.file("folder"));
  fs::create_symlink(outside.file("run/") + kFile, w.dir.file("linked.tfevents"));
  fs::create_directory_symlink(w.dir.file("own"), w.dir.file("again"));
  w.index.refresh();
  EXPECT_THAT(w.index.list().runs, ElementsAre("own"));
  Index follows({{.name = "", .path = w.dir.path()}}, {.follow_links = true});
  follows.refresh();
  EXPECT_THAT(follows.list().runs, ElementsAre(".", "folder/run", "own"));
}

// Files and folders whose paths end so cannot be looked at or read.
struct UnreadableEnv : EnvWrapper {
  UnreadableEnv() : EnvWrapper(Env::posix()) {}
  std::string stat_of, list_of, read_of;

  static void refuse(const std::string& path, const std::string& end) {
    if (!end.empty() && path.ends_with(end)) throw make_error(Code::permission_denied, "[test] {}: denied", path);
  }
  FileInfo stat(const std::string& path) override {
    refuse(path, stat_of);
    return EnvWrapper::stat(path);
  }
  std::vector<std::string> list(const std::string& dir) override {
    refuse(dir, list_of);
    return EnvWrapper::list(dir);
  }
  // The file can be opened, and its first bytes can be compared, but what comes in large pieces cannot be read.
  std::unique_ptr<RandomAccessFile> open_random(const std::string& path) override {
    struct File : RandomAccessFile {
      std::unique_ptr<RandomAccessFile> target;
      bool fails = false;
      uint64_t size() const override { return target->size(); }
      size_t read(uint64_t offset, std::span<std::byte> out) const override {
        if (fails && out.size() > 64) throw make_error(Code::unavailable, "[test] no bytes");
        return target->read(offset, out);
      }
    };
    auto file = std::make_unique<File>();
    file->target = EnvWrapper::open_random(path);
    file->fails = !read_of.empty() && path.ends_with(read_of);
    return file;
  }
};

TEST(Index, AFileThatCannotBeReadIsReadLater) {
  TempDir dir;
  UnreadableEnv env;
  Index index({{.name = "", .path = dir.path()}}, {}, env);
  const std::string path = dir.file("run/") + kFile;
  append_file(path, version_record() + scalar_record(1, 1));
  env.read_of = kFile;
  EXPECT_TRUE(index.refresh());
  EXPECT_THAT(index.list().complaints, ElementsAre(HasSubstr("no bytes")));
  EXPECT_FALSE(index.refresh()) << "the same complaint is no news";
  env.read_of.clear();
  EXPECT_TRUE(index.refresh());
  EXPECT_TRUE(index.list().complaints.empty());
  EXPECT_TRUE(index.find("run", "loss"));
  EXPECT_FALSE(index.refresh());
}

TEST(Index, AReplacedFileThatCannotBeReadAtOnceKeepsNoOldTag) {
  TempDir dir;
  UnreadableEnv env;
  Index index({{.name = "", .path = dir.path()}}, {}, env);
  const std::string path = dir.file("run/") + kFile;
  append_file(path, version_record() + scalar_record(1, 1, "old") + scalar_record(1, 1, "older"));
  index.refresh();
  env.read_of = kFile;
  write_new_file(path, version_record() + scalar_record(7, 5, "new"));
  index.refresh();
  EXPECT_TRUE(index.find("run", "old")) << "what was known stays until the new file can be read";
  env.read_of.clear();
  EXPECT_TRUE(index.refresh());
  EXPECT_FALSE(index.find("run", "old"));
  EXPECT_FALSE(index.find("run", "older"));
  const auto info = index.find("run", "new");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->count, 1u);
  EXPECT_EQ(info->last.value, 5);
}

TEST(Index, WhatCannotBeListedIsNotGone) {
  TempDir dir;
  UnreadableEnv env;
  Index index({{.name = "", .path = dir.path()}}, {}, env);
  append_file(dir.file("a/") + kFile, version_record() + scalar_record(1, 1));
  append_file(dir.file("ab/deep/") + kFile, version_record() + scalar_record(1, 1));
  append_file(dir.file("b/") + kFile, version_record() + scalar_record(1, 1));
  index.refresh();
  const uint32_t id = index.find("a", "loss")->id;
  const auto expect_all = [&] {
    index.refresh();
    EXPECT_THAT(index.list().runs, ElementsAre("a", "ab/deep", "b"));
    EXPECT_THAT(index.list().complaints, ElementsAre(HasSubstr("denied")));
    EXPECT_EQ(index.find("a", "loss")->id, id);
  };
  env.list_of = "/a";
  expect_all();
  env.list_of = dir.path();
  expect_all();
  env.list_of.clear();
  env.stat_of = std::string("/a/") + kFile;
  expect_all();
  env.stat_of.clear();
  env.list_of = "/a";
  fs::remove_all(dir.file("ab"));
  index.refresh();
  EXPECT_THAT(index.list().runs, ElementsAre("a", "b"));
  env.list_of.clear();
  fs::remove_all(dir.file("a"));
  index.refresh();
  EXPECT_THAT(index.list().runs, ElementsAre("b"));
  EXPECT_TRUE(index.list().complaints.empty());
}

TEST(Index, BlocksOfScalarsEndBeforeOtherValues) {
  Watched w;
  append_file(w.file("run"), version_record() + scalar_record(1, 1));
  for (int64_t i = 0; i < 20; ++i) append_file(w.file("run"), image_record(i, std::string(100'000, 'x')));
  append_file(w.file("run"), scalar_record(2, 1));
  w.index.refresh();
  const auto line = w.index.line(w.series("run", "loss").id);
  ASSERT_TRUE(line);
  for (const LineParts::Part& part : line->parts) {
    EXPECT_EQ(part.blocks.size(), 2u);
    for (const Block& block : part.blocks) {
      EXPECT_LT(block.end - block.begin, 300'000u);
      EXPECT_EQ(w.index.read_block(block, "loss").size(), 1u);
    }
  }
}

TEST(Index, ListsWhatChangedSince) {
  Watched w;
  append_file(w.file("a"), version_record() + scalar_record(0, 1));
  append_file(w.file("b"), version_record() + scalar_record(0, 1));
  w.index.refresh();
  const Listing all = w.index.list();
  EXPECT_TRUE(all.whole);
  EXPECT_EQ(all.series.size(), 2u);
  EXPECT_TRUE(w.index.list(all.generation).series.empty());
  append_file(w.file("b"), scalar_record(1, 1));
  w.index.refresh();
  const Listing news = w.index.list(all.generation);
  EXPECT_FALSE(news.whole);
  ASSERT_EQ(news.series.size(), 1u);
  EXPECT_EQ(news.series[0].run, "b");
  EXPECT_GT(news.generation, all.generation);
  EXPECT_TRUE(w.index.list(news.generation + 100).whole) << "of another server";
}

TEST(Index, SeveralLogFoldersAreNamed) {
  TempDir dir;
  append_file(dir.file("x/run/") + kFile, version_record() + scalar_record(0, 1));
  append_file(dir.file("y/") + kFile, version_record() + scalar_record(0, 1));
  Index index(parse_logdirs(fmt::format("first:{0}/x,{0}/y", dir.path())));
  index.refresh();
  EXPECT_THAT(index.list().runs, ElementsAre("first/run", "y"));
}

TEST(LogDirs, AreParsed) {
  TempDir dir;
  fs::create_directory(dir.file("a:b,c"));
  EXPECT_EQ(parse_logdirs(dir.file("a:b,c")).size(), 1u) << "what is there is one folder";
  const auto several = parse_logdirs("one:/x/y,/z/w:1/");
  ASSERT_EQ(several.size(), 2u);
  EXPECT_EQ(several[0].name, "one");
  EXPECT_EQ(several[0].path, "/x/y");
  EXPECT_EQ(several[1].name, "w:1");
  expect_error([] { parse_logdirs("a:/x,a:/y"); }, Code::invalid_argument, "two log folders are named 'a'");
  expect_error([] { parse_logdirs("a:/x,"); }, Code::invalid_argument, "empty path");
  Env::posix().create(dir.file("plain"))->close();
  expect_error([&] { parse_logdirs(dir.file("plain")); }, Code::invalid_argument, "is a file; give the folder");
  expect_error([&] { parse_logdirs("a:/x,b:" + dir.file("plain")); }, Code::invalid_argument, "is a file");
}

// Every row of what TensorBoard's own reader says of TensorFlow's files.
TEST(Index, KnowsWhatTensorBoardKnowsOfTheFixtures) {
  RUNNEL_REQUIRE_FIXTURES();
  std::istringstream table(read_bytes(fixtures() / "EXPECTED_events.tsv"));
  std::string row;
  std::getline(table, row);
  std::map<std::string, std::unique_ptr<Index>> indexes;
  int rows = 0;
  while (std::getline(table, row)) {
    std::istringstream cells(row);
    std::vector<std::string> c;
    for (std::string cell; std::getline(cells, cell, '\t');) c.push_back(cell);
    if (c.size() < 8 || c[2].empty()) continue;
    std::unique_ptr<Index>& index = indexes[c[0]];
    if (!index) {
      index = std::make_unique<Index>(std::vector<LogDir>{{.name = "", .path = (fixtures() / c[0]).string()}});
      index->refresh();
    }
    const std::optional<SeriesInfo> info = index->find(".", c[2]);
    ASSERT_TRUE(info) << row;
    EXPECT_EQ(info->tag.plugin, c[3]) << row;
    EXPECT_EQ(std::to_string(info->count), c[5]) << row;
    EXPECT_EQ(std::to_string(info->first.step), c[6]) << row;
    EXPECT_EQ(std::to_string(info->last.step), c[7]) << row;
    if (info->tag.is_scalar()) {
      EXPECT_EQ(info->last.value, std::stof(c[8].substr(c[8].rfind(' ')))) << row;
    } else {
      EXPECT_EQ(index->places(info->id).size(), info->count) << row;
    }
    ++rows;
  }
  EXPECT_GT(rows, 100);
}

}  // namespace
}  // namespace runnel::board
