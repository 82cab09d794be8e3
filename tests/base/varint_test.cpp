#include "runnel/base/varint.h"

#include <gtest/gtest.h>

#include <string>

namespace runnel {
namespace {

std::string encoded(uint64_t v) {
  std::string s;
  append_varint(s, v);
  return s;
}

TEST(Varint, KnownBytes) {
  EXPECT_EQ(encoded(0), std::string(1, '\0'));
  EXPECT_EQ(encoded(1), "\x01");
  EXPECT_EQ(encoded(127), "\x7f");
  EXPECT_EQ(encoded(128), std::string("\x80\x01", 2));
  EXPECT_EQ(encoded(300), "\xac\x02");
  EXPECT_EQ(encoded(UINT64_MAX), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(Varint, RoundTripsAtEveryWidth) {
  for (int bit = 0; bit < 64; ++bit) {
    for (int64_t delta : {-1, 0, 1}) {
      const uint64_t v = (uint64_t{1} << bit) + static_cast<uint64_t>(delta);
      const std::string s = encoded(v);
      EXPECT_EQ(s.size(), varint_size(v));
      uint64_t back = 0;
      EXPECT_EQ(get_varint(s.data(), s.data() + s.size(), &back), s.data() + s.size());
      EXPECT_EQ(back, v);
      for (size_t n = 0; n < s.size(); ++n) EXPECT_EQ(get_varint(s.data(), s.data() + n, &back), nullptr);
    }
  }
}

TEST(Varint, RefusesMoreThanTenBytes) {
  const std::string s = std::string(10, '\x80') + '\x01';
  uint64_t v = 0;
  EXPECT_EQ(get_varint(s.data(), s.data() + s.size(), &v), nullptr);
  const std::string padded = std::string(9, '\x80') + '\0';  // zero, spelled long
  v = 1;
  EXPECT_NE(get_varint(padded.data(), padded.data() + padded.size(), &v), nullptr);
  EXPECT_EQ(v, 0u);
}

TEST(Varint, Narrow) {
  const std::string s = encoded(static_cast<uint64_t>(int64_t{-1}));
  uint32_t v = 0;
  EXPECT_EQ(get_varint32(s.data(), s.data() + s.size(), &v), s.data() + 10);
  EXPECT_EQ(v, 0xffffffffu);
  EXPECT_EQ(get_varint32(s.data(), s.data() + 3, &v), nullptr);
}

TEST(Varint, Zigzag) {
  EXPECT_EQ(zigzag_encode(0), 0u);
  EXPECT_EQ(zigzag_encode(-1), 1u);
  EXPECT_EQ(zigzag_encode(1), 2u);
  EXPECT_EQ(zigzag_encode(INT64_MAX), UINT64_MAX - 1);
  EXPECT_EQ(zigzag_encode(INT64_MIN), UINT64_MAX);
  for (int64_t v : {int64_t{0}, int64_t{-7}, int64_t{1} << 40, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(zigzag_decode(zigzag_encode(v)), v);
  }
}

TEST(Fixed, LittleEndianWithBounds) {
  std::string s;
  append_fixed32(s, 0x04030201);
  append_fixed64(s, 0x0c0b0a0908070605);
  EXPECT_EQ(s, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c");
  uint32_t a = 0;
  uint64_t b = 0;
  const char* end = s.data() + s.size();
  const char* p = get_fixed32(s.data(), end, &a);
  ASSERT_EQ(p, s.data() + 4);
  ASSERT_EQ(get_fixed64(p, end, &b), end);
  EXPECT_EQ(a, 0x04030201u);
  EXPECT_EQ(b, 0x0c0b0a0908070605u);
  EXPECT_EQ(get_fixed32(end - 3, end, &a), nullptr);
  EXPECT_EQ(get_fixed64(end - 7, end, &b), nullptr);
}

}  // namespace
}  // namespace runnel
