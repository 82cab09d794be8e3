#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "runnel/io/cifar.h"
#include "runnel/io/tar.h"
#include "runnel/io/zip.h"
#include "tests/support/expect_error.h"
#include "tests/support/image_files.h"
#include "tests/support/tar_file.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

using test::crc32_of;
using test::expect_error;
using test::put_le;
using test::TempDir;
using test::text_of;
using ::testing::ElementsAre;

TEST(Zip, MembersComeBack) {
  const std::string repeated(10000, 'x');
  for (bool compress : {false, true}) {
    const auto file = zip({{"a", as_bytes("alpha")}, {"empty", {}}, {"dir/b", as_bytes(repeated)}}, compress);
    const std::vector<ZipMember> members = zip_members(file, "z");
    ASSERT_EQ(members.size(), 3U);
    EXPECT_EQ(members[2].name, "dir/b");
    EXPECT_EQ(members[2].method, compress ? 8 : 0);
    EXPECT_EQ(text_of(read_zip_member(file, members[0], "z")), "alpha");
    EXPECT_EQ(text_of(read_zip_member(file, members[1], "z")), "");
    EXPECT_EQ(text_of(read_zip_member(file, members[2], "z")), repeated);
  }
  EXPECT_TRUE(zip_members(zip({}), "z").empty());
}

TEST(Zip, EveryCutIsNoticed) {
  const auto file = zip({{"a", as_bytes("alpha")}}, true);
  for (size_t n = 0; n < file.size(); ++n) {
    expect_error([&] { zip_members(ByteSpan(file).first(n), "cut.zip"); }, Code::data_loss, "[zip] cut.zip: ");
  }
}

TEST(Zip, DamageNamesTheMemberAndTheOffset) {
  auto file = zip({{"a", as_bytes("alpha")}});
  const std::vector<ZipMember> members = zip_members(file, "z");
  file[31] ^= std::byte{1};  // the first byte of the data
  expect_error([&] { read_zip_member(file, members[0], "z"); }, Code::data_loss, "the checksum of 'a' is");
  file[0] = std::byte{'Q'};
  expect_error([&] { read_zip_member(file, members[0], "z"); }, Code::data_loss,
               "no header of the member 'a' at byte 0");

  std::string text(1000, 'y');
  auto packed = zip({{"b", as_bytes(text)}}, true);
  ZipMember member = zip_members(packed, "z").at(0);
  for (auto [size, message] : {std::pair<uint64_t, const char*>{999, "more data than the 999 bytes announced"},
                               {1001, "only 1000 of the 1001 bytes announced"},
                               {100000000, "cannot hold the 100000000 announced"}}) {
    member.size = size;
    expect_error([&] { read_zip_member(packed, member, "z"); }, Code::data_loss, message);
  }
  member.size = 1000;
  expect_error([&] { read_zip_member(packed, member, "z", 999); }, Code::resource_exhausted, "1000 bytes");
  member.compressed_size -= 1;
  expect_error([&] { read_zip_member(packed, member, "z"); }, Code::data_loss, "it ends early");
  member.method = 12;
  expect_error([&] { read_zip_member(packed, member, "z"); }, Code::unimplemented, "compressed by method 12");
  member.header_offset = uint64_t{1} << 63;
  expect_error([&] { read_zip_member(packed, member, "z"); }, Code::data_loss, "does not lie in the file");
}

// By hand, as programs write files that may grow past 4 GiB: sizes, offsets and the count stand in zip64 fields.
TEST(Zip, ReadsZip64) {
  const std::string data = "hello";
  std::string file;
  put_le(file, 0x04034b50, 4);
  for (int i = 0; i < 5; ++i) put_le(file, 0, 2);
  put_le(file, crc32_of(data), 4);
  put_le(file, 0xffffffff, 4);
  put_le(file, 0xffffffff, 4);
  put_le(file, 1, 2);
  put_le(file, 20, 2);
  file += "f";
  put_le(file, 1, 2), put_le(file, 16, 2), put_le(file, 5, 4), put_le(file, 0, 4), put_le(file, 5, 4),
      put_le(file, 0, 4);
  file += data;
  const auto directory = static_cast<uint32_t>(file.size());
  put_le(file, 0x02014b50, 4);
  for (int i = 0; i < 6; ++i) put_le(file, 0, 2);
  put_le(file, crc32_of(data), 4);
  put_le(file, 0xffffffff, 4);
  put_le(file, 0xffffffff, 4);
  put_le(file, 1, 2);
  put_le(file, 4 + 4 + 28, 2);
  for (int i = 0; i < 5; ++i) put_le(file, 0, 2);
  put_le(file, 0xffffffff, 4);
  file += "f";
  put_le(file, 0x9999, 2), put_le(file, 4, 2), put_le(file, 0, 4);  // a field of somebody else's
  put_le(file, 1, 2), put_le(file, 24, 2);
  for (uint32_t wide : {5u, 5u, 0u}) put_le(file, wide, 4), put_le(file, 0, 4);
  const auto end = static_cast<uint32_t>(file.size());
  put_le(file, 0x06064b50, 4);
  put_le(file, 44, 4), put_le(file, 0, 4);
  put_le(file, 45, 2), put_le(file, 45, 2), put_le(file, 0, 4), put_le(file, 0, 4);
  for (uint32_t wide : {1u, 1u, end - directory, directory}) put_le(file, wide, 4), put_le(file, 0, 4);
  put_le(file, 0x07064b50, 4);
  put_le(file, 0, 4), put_le(file, end, 4), put_le(file, 0, 4), put_le(file, 1, 4);
  put_le(file, 0x06054b50, 4);
  put_le(file, 0, 4), put_le(file, 0xffff, 2), put_le(file, 0xffff, 2);
  put_le(file, 0xffffffff, 4), put_le(file, 0xffffffff, 4);
  put_le(file, 3, 2);
  file += "end";  // a comment

  const std::vector<ZipMember> members = zip_members(as_bytes(file), "z");
  ASSERT_EQ(members.size(), 1U);
  EXPECT_EQ(members[0].size, 5U);
  EXPECT_EQ(text_of(read_zip_member(as_bytes(file), members[0], "z")), "hello");
}

TEST(Tar, FilesOfAnArchive) {
  const std::string big(1500, 'b'), long_name = std::string(120, 'n') + ".bin";
  const std::string file = test::tar_member("dir/", "", '5') + test::tar_member("dir/a", "alpha") +
                           test::tar_member("dir/big", big) + test::tar_member("link", "", '2') +
                           test::tar_member("././@LongLink", long_name + '\0', 'L') +
                           test::tar_member(long_name.substr(0, 99), "long") +
                           test::tar_member("pax", "20 mtime=1600000000\n14 path=pax/x\n", 'x') +
                           test::tar_member("short", "pax") + test::tar_end();
  const std::vector<TarMember> members = tar_members(as_bytes(file), "t");
  ASSERT_EQ(members.size(), 4U);
  EXPECT_EQ(members[3].name, "pax/x");
  EXPECT_EQ(members[0].name, "dir/a");
  EXPECT_EQ(text_of(members[0].bytes), "alpha");
  EXPECT_EQ(text_of(members[1].bytes), big);
  EXPECT_EQ(members[2].name, long_name);
  EXPECT_EQ(text_of(members[2].bytes), "long");
}

TEST(Tar, DamageNamesTheFileAndTheOffset) {
  const std::string file = test::tar_member("a", "alpha");
  auto bad = [](const std::string& archive, const std::string& text) {
    expect_error([&] { tar_members(as_bytes(archive), "t.tar"); }, Code::data_loss, text);
  };
  bad(file.substr(0, 100), "[tar] t.tar: the file ends inside a header at byte 0");
  bad(file.substr(0, 515), "a member of 5 bytes, but only 3 follow at byte 0");
  bad(file + std::string(512, 'x'), "the header's checksum is wrong at byte 1024");
}

TEST(Cifar, ColoursStandSideBySide) {
  TempDir dir;
  auto record = [](int label, int seed) {
    std::string text(1, static_cast<char>(label));
    for (int i = 0; i < 3072; ++i) text += static_cast<char>(i / 1024 * 80 + (i % 1024 + seed) % 77);
    return text;
  };
  Env::posix().write_file(dir.file("1"), as_bytes(record(3, 0) + record(9, 5)));
  Env::posix().write_file(dir.file("2"), as_bytes(record(0, 9)));
  const Cifar10 read = read_cifar10({dir.file("1"), dir.file("2")});
  EXPECT_EQ(read.count, 3);
  EXPECT_THAT(read.labels, ElementsAre(std::byte{3}, std::byte{9}, std::byte{0}));
  ASSERT_EQ(read.images.size(), 3U * 3072);
  for (size_t image : {0U, 1U, 2U}) {
    const int seed = std::array{0, 5, 9}[image];
    for (size_t y : {0U, 13U, 31U}) {
      for (size_t x : {0U, 7U, 31U}) {
        for (size_t c : {0U, 1U, 2U}) {
          const int expected = static_cast<int>(c) * 80 + (static_cast<int>(y * 32 + x) + seed) % 77;
          EXPECT_EQ(static_cast<int>(read.images[image * 3072 + (y * 32 + x) * 3 + c]), expected);
        }
      }
    }
  }
  Cifar10 out;
  expect_error([&] { append_cifar10(as_bytes(record(3, 0).substr(1)), "f", out); }, Code::data_loss,
               "[cifar10] f: the file ends inside a record of 3073 bytes at byte 3072");
  expect_error([&] { append_cifar10(as_bytes(record(3, 0) + record(10, 0)), "f", out); }, Code::data_loss,
               "no class 10 at byte 3073");
}

}  // namespace
}  // namespace runnel::io
