#include "runnel/io/record_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/io/record_writer.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

using test::expect_error;
using test::TempDir;
using test::text_of;

std::string record(size_t i) { return std::string(i * 37 % 101, static_cast<char>('a' + i % 26)); }

void write(const std::string& path, size_t n, Compression compression = Compression::none) {
  TFRecordWriter writer(path, {.compression = compression});
  for (size_t i = 0; i < n; ++i) writer.write(record(i));
  writer.close();
}

TEST(RecordIndex, GivesLengthAndRandomAccess) {
  TempDir dir;
  const std::string path = dir.file("f");
  for (size_t n : {size_t{0}, size_t{1}, size_t{200}}) {
    write(path, n);
    for (bool saved : {false, true}) {
      if (saved) RecordIndex::build(path).save(path);
      const IndexedRecords records(path);
      ASSERT_EQ(records.size(), n);
      for (size_t k = 0; k < n; ++k) EXPECT_EQ(text_of(records[n - 1 - k]), record(n - 1 - k));
      expect_error([&] { records[n]; }, Code::out_of_range, "record");
    }
    Env::posix().remove(record_index_path(path));
  }
}

TEST(RecordIndex, NoticesWhenItDoesNotFit) {
  TempDir dir;
  const std::string path = dir.file("f");
  write(path, 10);
  RecordIndex::build(path).save(path);
  write(path, 11);
  expect_error([&] { IndexedRecords records(path); }, Code::failed_precondition, "make it again");
  write(path, 10);
  std::string bytes = test::read_text(record_index_path(path));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 4;
    Env::posix().write_file(record_index_path(path), as_bytes(damaged));
    EXPECT_THROW(RecordIndex::load(path), Error) << i;
  }
  Env::posix().write_file(record_index_path(path), as_bytes(bytes.substr(0, 20)));
  expect_error([&] { RecordIndex::load(path); }, Code::data_loss, "no index of records");
}

TEST(RecordIndex, DamageAndCompressionAreTold) {
  TempDir dir;
  const std::string path = dir.file("f");
  write(path, 10);
  RecordIndex::build(path).save(path);
  std::string bytes = test::read_text(path);
  const RecordIndex index = RecordIndex::load(path);
  bytes[index.offset(3) + 13] ^= 1;
  Env::posix().write_file(path, as_bytes(bytes));
  expect_error([&] { index.offset(10); }, Code::out_of_range, "record 10 of an index of 10");
  expect_error([&] { index.length(10); }, Code::out_of_range, "record 10 of an index of 10");
  const IndexedRecords records(path);  // trusts the index
  EXPECT_EQ(text_of(records[2]), record(2));
  expect_error([&] { records[3]; }, Code::data_loss, "record 3 at byte " + std::to_string(index.offset(3)));
  expect_error([&] { RecordIndex::build(path); }, Code::data_loss, "bad data checksum");
  write(dir.file("gz"), 3, Compression::gzip);
  expect_error([&] { RecordIndex::build(dir.file("gz")); }, Code::failed_precondition, "is compressed (GZIP)");
}

TEST(RecordIndex, WhatWasMovedFromSaysSo) {
  TempDir dir;
  write(dir.file("f"), 3);
  IndexedRecords records(dir.file("f"));
  const IndexedRecords other = std::move(records);
  EXPECT_EQ(other.size(), 3u);
  const std::string text = "this IndexedRecords was moved from";
  const auto refused = [&](const auto& use) { expect_error(use, Code::failed_precondition, text); };
  refused([&] { records.size(); });  // NOLINT(bugprone-use-after-move): the point
  refused([&] { records[0]; });
  refused([&] { records.owner(); });
  refused([&] { records.index(); });

  RecordIndex index = RecordIndex::build(dir.file("f"));
  const RecordIndex second = std::move(index);
  EXPECT_EQ(second.size(), 3u);
  const std::string moved = "this RecordIndex was moved from";
  // NOLINTNEXTLINE(bugprone-use-after-move): the point
  expect_error([&] { index.size(); }, Code::failed_precondition, moved);
  expect_error([&] { index.offset(0); }, Code::failed_precondition, moved);
  expect_error([&] { index.file_size(); }, Code::failed_precondition, moved);
}

}  // namespace
}  // namespace runnel::io
