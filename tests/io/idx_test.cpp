#include "runnel/io/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runnel/io/gzip.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

using test::expect_error;
using test::TempDir;
using ::testing::ElementsAre;

std::string idx_bytes(std::initializer_list<int> values) {
  std::string text;
  for (int value : values) text += static_cast<char>(value);
  return text;
}

TEST(Idx, ParsesTheHeaderAndKeepsTheData) {
  std::string file = idx_bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255});
  IdxView view = parse_idx(as_bytes(file), "x");
  EXPECT_EQ(view.type, IdxType::uint8);
  EXPECT_THAT(view.dims, ElementsAre(2, 3));
  EXPECT_EQ(test::text_of(view.data), idx_bytes({1, 2, 3, 4, 5, 255}));
}

TEST(Idx, ScalarsAndEmptyTensors) {
  EXPECT_EQ(parse_idx(as_bytes(idx_bytes({0, 0, 9, 0, 7})), "x").data.size(), 1U);
  std::string empty = idx_bytes({0, 0, 0x0e, 2, 255, 255, 255, 255, 0, 0, 0, 0});
  EXPECT_THAT(parse_idx(as_bytes(empty), "x").dims, ElementsAre(4294967295, 0));
}

template <class T>
std::vector<T> elements(const Idx& idx) {
  std::vector<T> values(idx.data.size() / sizeof(T));
  std::memcpy(values.data(), idx.data.data(), idx.data.size());
  return values;
}

TEST(Idx, ReadsEveryTypeIntoMachineOrder) {
  TempDir dir;
  auto read = [&](const std::string& file) {
    Env::posix().write_file(dir.file("f"), as_bytes(file));
    return read_idx(dir.file("f"));
  };
  EXPECT_THAT(elements<int8_t>(read(idx_bytes({0, 0, 9, 1, 0, 0, 0, 2, 255, 1}))), ElementsAre(-1, 1));
  EXPECT_THAT(elements<int16_t>(read(idx_bytes({0, 0, 0xb, 1, 0, 0, 0, 2, 1, 2, 255, 254}))), ElementsAre(258, -2));
  EXPECT_THAT(elements<int32_t>(read(idx_bytes({0, 0, 0xc, 1, 0, 0, 0, 1, 1, 2, 3, 4}))), ElementsAre(0x01020304));
  EXPECT_THAT(elements<float>(read(idx_bytes({0, 0, 0xd, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0}))), ElementsAre(1.5F));
  EXPECT_THAT(elements<double>(read(idx_bytes({0, 0, 0xe, 0, 0xc0, 0x04, 0, 0, 0, 0, 0, 0}))), ElementsAre(-2.5));
}

TEST(Idx, ReadsGzipByContent) {
  TempDir dir;
  std::string file = idx_bytes({0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9});
  Env::posix().write_file(dir.file("f"), gzip(as_bytes(file)));
  Idx idx = read_idx(dir.file("f"));
  EXPECT_THAT(idx.dims, ElementsAre(3));
  EXPECT_THAT(elements<uint8_t>(idx), ElementsAre(7, 8, 9));
}

TEST(Idx, BadFilesNameTheFileAndTheOffset) {
  auto bad = [](const std::string& file, const std::string& text) {
    SCOPED_TRACE(text);
    expect_error([&] { parse_idx(as_bytes(file), "name"); }, Code::data_loss, text);
  };
  bad("", "[idx] name: the file ends inside the 4-byte magic number at byte 0");
  bad(idx_bytes({0, 0, 8}), "at byte 3");
  bad(idx_bytes({0, 1, 8, 0, 0}), "not an idx file: 0x01 instead of 0 at byte 1");
  bad(idx_bytes({0, 0, 0xa, 0, 0}), "unknown element type 0x0a at byte 2");
  bad(idx_bytes({0, 0, 8, 3, 0, 0, 0, 1, 0}), "ends inside the header of 3 dimensions at byte 9");
  bad(idx_bytes({0, 0, 8, 1, 0, 0, 0, 2, 1}), "announces uint8 elements [2], but only 1 bytes follow it at byte 4");
  bad(idx_bytes({0, 0, 8, 1, 0, 0, 0, 2, 1, 2, 3}), "1 bytes too many after the elements at byte 10");
  bad(idx_bytes({0, 0, 8, 1, 0, 0, 0, 0, 3}), "1 bytes too many after the elements at byte 8");
  // Products that would wrap around 64 bits.
  bad(idx_bytes({0, 0, 8, 3, 128, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 4}), "but only 0 bytes follow it at byte 4");
}

TEST(Gzip, RoundTripsAnyLength) {
  for (size_t n : {size_t{0}, size_t{1}, size_t{1000}, size_t{1} << 18, (size_t{1} << 20) + 3}) {
    std::string text(n, 'a');
    for (size_t i = 0; i < n; ++i) text[i] = static_cast<char>(i * i >> 3);
    EXPECT_EQ(test::text_of(gunzip(gzip(as_bytes(text)), "x")), text) << n;
  }
}

TEST(Gzip, ReadsAllMembersAndIgnoresPadding) {
  std::vector<std::byte> file = gzip(as_bytes("one"));
  std::vector<std::byte> second = gzip(as_bytes("two"));
  file.insert(file.end(), second.begin(), second.end());
  EXPECT_EQ(test::text_of(gunzip(file, "x")), "onetwo");
  file.resize(file.size() + 10);
  EXPECT_EQ(test::text_of(gunzip(file, "x")), "onetwo");
}

TEST(Gzip, BadDataNamesTheFile) {
  std::vector<std::byte> file = gzip(as_bytes(std::string(1000, 'q')));
  for (size_t n = 0; n < file.size(); ++n) {
    expect_error([&] { gunzip(ByteSpan(file).first(n), "cut.gz"); }, Code::data_loss, "[gunzip] cut.gz: ");
  }
  expect_error([&] { gunzip(as_bytes("plain text"), "t"); }, Code::data_loss, "bad compressed data near byte");
  file[file.size() - 6] ^= std::byte{1};  // inside the checksum
  expect_error([&] { gunzip(file, "t"); }, Code::data_loss, "incorrect data check");
}

TEST(Gzip, StopsAtTheGivenSize) {
  std::vector<std::byte> bomb = gzip(as_bytes(std::string(1 << 22, '\0')));
  expect_error([&] { gunzip(bomb, "bomb", 1 << 20); }, Code::resource_exhausted, "more than the allowed 1048576");
  EXPECT_EQ(gunzip(bomb, "bomb", 1 << 22).size(), size_t{1} << 22);
}

}  // namespace
}  // namespace runnel::io
