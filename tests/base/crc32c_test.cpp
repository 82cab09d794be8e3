#include "runnel/base/crc32c.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace runnel {
namespace {

using Bytes = std::vector<unsigned char>;

uint32_t crc_of(const Bytes& b) { return crc32c(b.data(), b.size()); }

// One bit at a time, from the definition.
uint32_t reference(const unsigned char* p, size_t n) {
  uint32_t r = 0xffffffff;
  for (size_t i = 0; i < n; ++i) {
    r ^= p[i];
    for (int bit = 0; bit < 8; ++bit) r = r & 1 ? (r >> 1) ^ 0x82f63b78u : r >> 1;
  }
  return ~r;
}

TEST(Crc32c, Rfc3720Vectors) {
  EXPECT_EQ(crc_of(Bytes(32, 0)), 0x8a9136aau);
  EXPECT_EQ(crc_of(Bytes(32, 0xff)), 0x62a8ab43u);
  Bytes rising(32);
  std::iota(rising.begin(), rising.end(), static_cast<unsigned char>(0));
  EXPECT_EQ(crc_of(rising), 0x46dd794eu);
  EXPECT_EQ(crc_of(Bytes(rising.rbegin(), rising.rend())), 0x113fdb5cu);
  const Bytes iscsi_read{0x01, 0xc0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
                         0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0,    0};
  EXPECT_EQ(crc_of(iscsi_read), 0xd9963a56u);
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c("", 0), 0u);
}

TEST(Crc32c, AllLengthsAndAlignmentsAgreeWithTheDefinition) {
  std::mt19937 rng(3);
  Bytes data(50000);
  for (unsigned char& b : data) b = static_cast<unsigned char>(rng());
  std::vector<size_t> sizes;
  for (size_t n = 0; n < 80; ++n) sizes.push_back(n);
  for (size_t n = 80; n < 7000; n += 61) sizes.push_back(n);
  for (size_t n : {255, 256, 767, 768, 769, 1535, 1536, 4096, 12287, 12288, 12289, 13056, 24576, 40001}) {
    sizes.push_back(n);
  }
  for (size_t n : sizes) {
    for (size_t offset : {0, 1, 3, 7}) {
      const uint32_t want = reference(data.data() + offset, n);
      ASSERT_EQ(crc32c(data.data() + offset, n), want) << n << " at " << offset;
      ASSERT_EQ(crc32c_extend_portable(0, data.data() + offset, n), want) << n << " at " << offset;
    }
  }
}

TEST(Crc32c, ExtendJoins) {
  const std::string text(30000, 'q');
  const uint32_t whole = crc32c(text.data(), text.size());
  for (size_t cut : {0, 1, 8, 777, 12288, 29999, 30000}) {
    const uint32_t head = crc32c(text.data(), cut);
    EXPECT_EQ(crc32c_extend(head, text.data() + cut, text.size() - cut), whole);
    EXPECT_EQ(crc32c_extend_portable(head, text.data() + cut, text.size() - cut), whole);
  }
}

TEST(Crc32c, MaskRoundTrips) {
  EXPECT_EQ(crc32c_mask(0), 0xa282ead8u);
  for (uint32_t crc : {0u, 1u, 0xe3069283u, 0xffffffffu, 0x80008000u}) {
    EXPECT_NE(crc32c_mask(crc), crc);
    EXPECT_EQ(crc32c_unmask(crc32c_mask(crc)), crc);
    EXPECT_EQ(crc32c_unmask(crc32c_unmask(crc32c_mask(crc32c_mask(crc)))), crc);
  }
  // A TFRecord's eight length bytes 05 00 .. 00 carry this checksum.
  const unsigned char length[8] = {5};
  EXPECT_EQ(crc32c_mask(crc32c(length, 8)), ((reference(length, 8) >> 15 | reference(length, 8) << 17) + 0xa282ead8u));
}

}  // namespace
}  // namespace runnel
