#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

#include "runnel/io/gzip.h"
#include "runnel/io/record_index.h"
#include "runnel/io/record_reader.h"
#include "runnel/io/record_writer.h"
#include "tests/support/caller_lines.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

using test::expect_error;
using test::TempDir;
using test::text_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A second reader, written from the format alone and sharing nothing with ours: bit by bit, whole files.
namespace naive {

uint32_t crc(const std::string& text) {
  uint32_t r = 0xffffffffu;
  for (unsigned char c : text) {
    r ^= c;
    for (int i = 0; i < 8; ++i) r = (r & 1) != 0 ? (r >> 1) ^ 0x82f63b78u : r >> 1;
  }
  r = ~r;
  return ((r >> 15) | (r << 17)) + 0xa282ead8u;
}

uint64_t number(const std::string& text, size_t at, size_t width) {
  uint64_t v = 0;
  for (size_t i = width; i-- > 0;) v = v << 8 | static_cast<unsigned char>(text.at(at + i));
  return v;
}

std::string inflate_all(const std::string& file, int window) {
  std::string out(1 << 22, '\0');
  z_stream s{};
  inflateInit2(&s, window);
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data()));
  s.avail_in = static_cast<uInt>(file.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data());
  s.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&s, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(s.avail_in, 0U);
  out.resize(s.total_out);
  inflateEnd(&s);
  return out;
}

std::vector<std::string> records(const std::string& file) {
  std::vector<std::string> all;
  for (size_t at = 0; at < file.size();) {
    const uint64_t length = number(file, at, 8);
    EXPECT_EQ(number(file, at + 8, 4), crc(file.substr(at, 8)));
    all.push_back(file.substr(at + 12, length));
    EXPECT_EQ(number(file, at + 12 + length, 4), crc(all.back()));
    at += 16 + length;
  }
  return all;
}

}  // namespace naive

std::vector<std::string> sample_records() {
  std::vector<std::string> all = {"", "a", std::string("\0\xff\n", 3)};
  uint32_t x = 12345;
  for (size_t size : {7, 8, 9, 100, 842, 4096, 70000, 300000, 5, 0, 1}) {
    std::string text(size, '\0');
    for (char& c : text) {
      x = x * 1664525 + 1013904223;
      c = static_cast<char>(x >> 28);
    }
    all.push_back(text);
  }
  return all;
}

std::vector<std::string> read_all(RecordReader& reader) {
  std::vector<std::string> all;
  while (auto record = reader.next()) all.push_back(text_of(*record));
  return all;
}

std::string write_sample(const std::string& path, const TFRecordOptions& options = {}) {
  TFRecordWriter writer(path, options);
  for (const std::string& record : sample_records()) writer.write(record);
  writer.close();
  return path;
}

TEST(TFRecord, ASecondReaderFindsWhatWasWritten) {
  TempDir dir;
  const std::vector<std::string> expected = sample_records();
  for (size_t buffer : {size_t{1}, size_t{1000}, size_t{1} << 20}) {
    write_sample(dir.file("plain"), {.buffer_size = buffer});
    EXPECT_EQ(naive::records(test::read_text(dir.file("plain"))), expected);
    write_sample(dir.file("gz"), {.compression = Compression::gzip, .buffer_size = buffer});
    EXPECT_EQ(naive::records(naive::inflate_all(test::read_text(dir.file("gz")), 31)), expected);
    write_sample(dir.file("zz"), {.compression = Compression::zlib, .deflate = {.level = 9}, .buffer_size = buffer});
    EXPECT_EQ(naive::records(naive::inflate_all(test::read_text(dir.file("zz")), 15)), expected);
  }
}

TEST(TFRecord, ReadsEveryCompressionWithAnyBuffer) {
  TempDir dir;
  const std::vector<std::string> expected = sample_records();
  for (Compression compression : {Compression::none, Compression::gzip, Compression::zlib}) {
    const std::string path = write_sample(dir.file("f"), {.compression = compression});
    for (size_t buffer : {size_t{0}, size_t{1500}, size_t{1} << 18}) {
      RecordReader reader(path, {.compression = compression, .buffer_size = buffer});
      EXPECT_EQ(read_all(reader), expected);
      EXPECT_EQ(reader.position().record, expected.size());
      RecordReader detecting(path, {.detect_compression = true, .buffer_size = buffer});
      EXPECT_EQ(detecting.compression(), compression);
      EXPECT_EQ(read_all(detecting), expected);
      EXPECT_EQ(detecting.file_position(), detecting.file_size());
    }
  }
}

TEST(TFRecord, HeldRecordsStayValid) {
  TempDir dir;
  const std::vector<std::string> expected = sample_records();
  for (Compression compression : {Compression::none, Compression::gzip}) {
    const std::string path = write_sample(dir.file("f"), {.compression = compression});
    std::vector<std::pair<std::shared_ptr<const void>, ByteSpan>> held;
    {
      RecordReader reader(path, {.compression = compression, .buffer_size = 2000});
      while (auto record = reader.next()) held.emplace_back(reader.owner(), *record);
    }
    ASSERT_EQ(held.size(), expected.size());
    for (size_t i = 0; i < held.size(); ++i) EXPECT_EQ(text_of(held[i].second), expected[i]);
  }
}

TEST(TFRecord, SeeksToSavedPositions) {
  TempDir dir;
  const std::vector<std::string> expected = sample_records();
  for (Compression compression : {Compression::none, Compression::zlib}) {
    const std::string path = write_sample(dir.file("f"), {.compression = compression});
    RecordReader reader(path, {.compression = compression, .buffer_size = 1024});
    std::vector<RecordPosition> positions;
    do positions.push_back(reader.position());
    while (reader.next());
    for (size_t k = expected.size() + 1; k-- > 0;) {  // backwards, so that compressed files rewind
      reader.seek(positions[k]);
      EXPECT_EQ(read_all(reader),
                std::vector<std::string>(expected.begin() + static_cast<ptrdiff_t>(k), expected.end()));
    }
    RecordReader fresh(path, {.compression = compression});
    fresh.seek(positions[5]);
    EXPECT_EQ(text_of(*fresh.next()), expected[5]);
    EXPECT_EQ(fresh.position().record, 6U);
    expect_error([&] { fresh.seek({.offset = 1 << 30, .record = 9}); }, Code::out_of_range, "cannot go to byte");
  }
}

std::string framed(const std::vector<std::string>& records) {
  std::string file;
  for (const std::string& record : records) {
    std::string length(8, '\0');
    for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(record.size() >> (8 * i));
    auto fixed = [](uint32_t v) { return std::string(reinterpret_cast<const char*>(&v), 4); };
    file += length + fixed(naive::crc(length)) + record + fixed(naive::crc(record));
  }
  return file;
}

TEST(TFRecord, EveryCutAndEveryFlippedBitIsFound) {
  const std::vector<std::string> records = {"hello", "", "worlds"};
  const std::string whole = framed(records);
  const std::vector<size_t> ends = {0, 21, 37, 59};
  auto good_then = [&](const std::string& file) {
    RecordReader reader(nullptr, as_bytes(file), "memory");
    ByteSpan record;
    size_t good = 0;
    RecordReader::Status status;
    while ((status = reader.read(&record)) == RecordReader::Status::record) EXPECT_EQ(text_of(record), records[good++]);
    if (status == RecordReader::Status::damaged) {
      EXPECT_EQ(reader.error().record, good);
      EXPECT_EQ(reader.error().offset, ends[good]);
      EXPECT_EQ(reader.error().code, Code::data_loss);
      EXPECT_EQ(reader.read(&record), RecordReader::Status::damaged) << "damage does not go away";
    }
    return std::pair(good, status);
  };
  for (size_t n = 0; n <= whole.size(); ++n) {
    size_t good = 0;
    while (good < 3 && ends[good + 1] <= n) ++good;
    const auto status = ends[good] == n ? RecordReader::Status::end : RecordReader::Status::damaged;
    EXPECT_EQ(good_then(whole.substr(0, n)), std::pair(good, status)) << n;
  }
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string file = whole;
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ (1 << (bit % 8)));
    size_t good = 0;
    while (ends[good + 1] <= bit / 8) ++good;
    EXPECT_EQ(good_then(file), std::pair(good, RecordReader::Status::damaged)) << bit;
  }
}

TEST(TFRecord, SkipsARecordWhoseLengthIsTrusted) {
  std::string file = framed({"one", "two", "three"});
  file[19 + 12] ^= 1;
  RecordReader reader(nullptr, as_bytes(file), "memory");
  EXPECT_FALSE(reader.skip_damaged());
  EXPECT_EQ(text_of(*reader.next()), "one");
  expect_error([&] { reader.next(); }, Code::data_loss, "[TFRecord] memory: record 1 at byte 19: bad data checksum");
  EXPECT_TRUE(reader.skip_damaged());
  EXPECT_FALSE(reader.skip_damaged());
  EXPECT_EQ(text_of(*reader.next()), "three");
  file[38] ^= 1;
  RecordReader second(nullptr, as_bytes(file), "memory", {.verify = false});
  EXPECT_EQ(text_of(*second.next()), "one");
  EXPECT_EQ(text_of(*second.next()), "uwo");
  expect_error([&] { second.next(); }, Code::data_loss, "record 2 at byte 38: bad length checksum");
  EXPECT_FALSE(second.skip_damaged());
}

TEST(TFRecord, WrongCompressionSaysWhatToDo) {
  TempDir dir;
  const std::string plain = write_sample(dir.file("plain"));
  const std::string gz = write_sample(dir.file("gz"), {.compression = Compression::gzip});
  const std::string zz = write_sample(dir.file("zz"), {.compression = Compression::zlib});
  auto opened = [](const std::string& path, Compression c) { RecordReader(path, {.compression = c}).next(); };
  expect_error([&] { opened(gz, Compression::none); }, Code::data_loss,
               "looks like GZIP: open it with that compression");
  expect_error([&] { opened(zz, Compression::none); }, Code::data_loss,
               "looks like ZLIB: open it with that compression");
  expect_error([&] { opened(plain, Compression::gzip); }, Code::data_loss,
               "plain as GZIP: bad compressed data near byte");
  expect_error([&] { opened(plain, Compression::zlib); }, Code::data_loss,
               "plain as ZLIB: bad compressed data near byte");
  expect_error([&] { opened(zz, Compression::gzip); }, Code::data_loss, "zz as GZIP");
  expect_error([&] { opened(gz, Compression::zlib); }, Code::data_loss, "gz as ZLIB");
  expect_error([&] { opened(dir.file("none"), Compression::none); }, Code::not_found, "none");
  EXPECT_EQ(compression_from_name("GZIP"), Compression::gzip);
  expect_error([] { compression_from_name("LZ4"); }, Code::invalid_argument, "unknown compression 'LZ4'");
}

TEST(TFRecord, FilesOfAnotherKindAreToldApart) {
  const auto what = [](const std::string& bytes, Compression c = Compression::none) {
    RecordReader reader(nullptr, as_bytes(bytes), "file", {.compression = c});
    ByteSpan record;
    EXPECT_EQ(reader.read(&record), RecordReader::Status::damaged);
    return reader.error().what;
  };
  const std::string text = "Call me Ishmael. Some years ago, never mind how long precisely";
  EXPECT_EQ(what(text), "bad length checksum; this does not look like a TFRecord file, but like text");
  EXPECT_THAT(what("x^2 + y^2\n"), HasSubstr("like text"));  // "x^" could begin zlib, too
  EXPECT_THAT(what("\x89PNG\r\n\x1a\n with more behind it"),
              HasSubstr("or it is compressed: open it with compression"));
  const std::vector<std::byte> packed = gzip(as_bytes(text));
  EXPECT_THAT(what({reinterpret_cast<const char*>(packed.data()), packed.size()}), HasSubstr("looks like GZIP"));
  EXPECT_THAT(what({reinterpret_cast<const char*>(packed.data()), packed.size()}, Compression::gzip),
              HasSubstr("what the GZIP data holds is no TFRecord file"));
  // A record that is damaged behind its length, or not the first, is one of a TFRecord file all the same.
  std::string file = framed(sample_records());
  EXPECT_EQ(what(file.substr(0, kRecordHeader)).find("TFRecord"), std::string::npos);
  // So is one of which only a part of the first header is there.
  for (const size_t length : {0, 65, 376, 40056, 70000}) {
    const std::string whole = framed({std::string(length, 'x')});
    for (size_t n = 1; n < kRecordHeader; ++n) {
      EXPECT_EQ(what(whole.substr(0, n)), "truncated header (" + std::to_string(n) + " of 12 bytes left)") << length;
    }
    const std::vector<std::byte> cut = gzip(as_bytes(whole.substr(0, 5)));
    EXPECT_EQ(what({reinterpret_cast<const char*>(cut.data()), cut.size()}, Compression::gzip),
              "truncated header (5 of 12 bytes left)");
  }
}

TEST(TFRecord, ErrorsNameTheLineOfTheCall) {
  TempDir dir;
  EXPECT_NAMES_THIS_LINE(RecordReader(dir.file("none")));
  EXPECT_NAMES_THIS_LINE(IndexedRecords(dir.file("none")));
  EXPECT_NAMES_THIS_LINE(TFRecordWriter(dir.file("no/such/folder")));
  const std::string text = "no records here";
  RecordReader reader(nullptr, as_bytes(text), "memory");
  EXPECT_NAMES_THIS_LINE(reader.next());
  EXPECT_NAMES_THIS_LINE(reader.throw_error());
  EXPECT_NAMES_THIS_LINE(reader.seek({.offset = 100}));
  TFRecordWriter writer(dir.file("f"));
  writer.close();
  EXPECT_NAMES_THIS_LINE(writer.write("x"));
  EXPECT_NAMES_THIS_LINE(writer.flush());
}

TEST(TFRecord, RecordsBeforeDamageInCompressedDataAreDelivered) {
  const std::vector<std::string> records = sample_records();
  std::vector<std::byte> packed = gzip(as_bytes(framed(records)));
  packed.resize(packed.size() - 20);
  RecordReader reader(nullptr, packed, "cut.gz", {.compression = Compression::gzip});
  ByteSpan record;
  size_t good = 0;
  while (reader.read(&record) == RecordReader::Status::record) EXPECT_EQ(text_of(record), records[good++]);
  EXPECT_GT(good, 3U);
  EXPECT_EQ(reader.error().record, good);
  EXPECT_THAT(reader.error().what, HasSubstr("inside the compressed data"));
  // A whole stream with a wrong checksum of its own: all records first, then the damage.
  packed = gzip(as_bytes(framed(records)));
  packed[packed.size() - 6] ^= std::byte{1};
  RecordReader second(nullptr, packed, "bad.gz", {.compression = Compression::gzip});
  for (good = 0; second.read(&record) == RecordReader::Status::record;) ++good;
  EXPECT_EQ(good, records.size());
  EXPECT_THAT(second.error().what, HasSubstr("incorrect data check"));
}

TEST(TFRecord, EmptyFilesHaveNoRecords) {
  for (Compression c : {Compression::none, Compression::gzip, Compression::zlib}) {
    RecordReader reader(nullptr, {}, "empty", {.compression = c});
    EXPECT_EQ(reader.next(), std::nullopt);
  }
}

TEST(TFRecordWriter, FlushMakesRecordsReadable) {
  TempDir dir;
  for (Compression compression : {Compression::none, Compression::gzip}) {
    TFRecordWriter writer(dir.file("f"), {.compression = compression});
    writer.write("first");
    writer.flush();
    RecordReader reader(dir.file("f"), {.compression = compression});
    EXPECT_EQ(text_of(*reader.next()), "first");
    writer.write("second");
    EXPECT_EQ(writer.records(), 2U);
    EXPECT_EQ(writer.bytes(), 43U);
  }
  RecordReader reader(dir.file("f"), {.compression = Compression::gzip});  // the destructor closed it
  EXPECT_THAT(read_all(reader), ElementsAre("first", "second"));
}

TEST(TFRecordWriter, AtomicFilesAppearWhole) {
  TempDir dir;
  Env& env = Env::posix();
  {
    TFRecordWriter writer(dir.file("f"), {.atomic = true});
    writer.write("x");
    writer.flush();
    EXPECT_FALSE(env.exists(dir.file("f")));
    writer.close();
    EXPECT_TRUE(env.exists(dir.file("f")));
    writer.close();
    expect_error([&] { writer.write("y"); }, Code::failed_precondition, "f is closed");
  }
  try {
    TFRecordWriter writer(dir.file("g"), {.atomic = true});
    writer.write("x");
    throw std::runtime_error("something else");
  } catch (const std::runtime_error&) {
  }
  EXPECT_THAT(env.list(dir.path()), ElementsAre("f"));
  TFRecordWriter(dir.file("h"), {.atomic = true}).write("z");  // destroyed in peace: closed
  EXPECT_THAT(env.list(dir.path()), ElementsAre("f", "h"));
}

// The disk is full after some bytes.
class FullDisk : public EnvWrapper {
 public:
  using EnvWrapper::EnvWrapper;
  size_t room = 100;

  std::unique_ptr<WritableFile> create(const std::string& path) override {
    struct File : WritableFile {
      File(std::unique_ptr<WritableFile> t, size_t& r) : target(std::move(t)), room(r) {}
      void append(ByteSpan bytes) override {
        if (bytes.size() > room) throw Error(Code::resource_exhausted, "disk full");
        room -= bytes.size();
        target->append(bytes);
      }
      void sync() override { target->sync(); }
      void close() override { target->close(); }
      std::unique_ptr<WritableFile> target;
      size_t& room;
    };
    return std::make_unique<File>(EnvWrapper::create(path), room);
  }
};

TEST(TFRecordWriter, AFailedWriteIsNotForgotten) {
  TempDir dir;
  FullDisk env(Env::posix());
  {
    TFRecordWriter writer(dir.file("f"), {.buffer_size = 1, .atomic = true}, env);
    writer.write(std::string(50, 'a'));
    expect_error([&] { writer.write(std::string(80, 'b')); }, Code::resource_exhausted, "disk full");
    expect_error([&] { writer.write("c"); }, Code::failed_precondition, "an earlier write failed");
    expect_error([&] { writer.close(); }, Code::failed_precondition, "an earlier write failed");
  }
  EXPECT_THAT(Env::posix().list(dir.path()), ElementsAre());
  expect_error([&] { TFRecordWriter(dir.file("no/such/folder")); }, Code::not_found, "folder");
  expect_error([&] { TFRecordWriter(dir.file("f"), {.compression = Compression::gzip, .deflate = {.level = 77}}); },
               Code::invalid_argument, "level 77");
}

TEST(TFRecordWriter, WhatWasMovedFromSaysSo) {
  TempDir dir;
  TFRecordWriter writer(dir.file("f"));
  TFRecordWriter other = std::move(writer);
  const auto refused = [](const auto& use, const std::string& text) {
    expect_error(use, Code::failed_precondition, text);
  };
  const std::string text = "this TFRecordWriter was moved from";
  refused([&] { writer.write("a"); }, text);  // NOLINT(bugprone-use-after-move): the point
  refused([&] { writer.write("a"); }, "record_test.cpp:");
  refused([&] { writer.flush(); }, text);
  refused([&] { writer.close(); }, text);
  refused([&] { writer.records(); }, text);
  refused([&] { writer.bytes(); }, text);
  other.write("a");
  other.close();

  RecordReader reader(dir.file("f"));
  RecordReader second = std::move(reader);
  const std::string moved = "this RecordReader was moved from";
  ByteSpan span;
  refused([&] { reader.next(); }, moved);  // NOLINT(bugprone-use-after-move): the point
  refused([&] { reader.read(&span); }, moved);
  refused([&] { reader.error(); }, moved);
  refused([&] { reader.throw_error(); }, moved);
  refused([&] { reader.owner(); }, moved);
  refused([&] { reader.skip_damaged(); }, moved);
  refused([&] { reader.position(); }, moved);
  refused([&] { reader.seek({}); }, moved);
  refused([&] { reader.path(); }, moved);
  refused([&] { reader.compression(); }, moved);
  refused([&] { reader.file_size(); }, moved);
  refused([&] { reader.file_position(); }, moved);
  EXPECT_EQ(text_of(*second.next()), "a");
}

}  // namespace
}  // namespace runnel::io
