#include "runnel/base/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace runnel {
namespace {

using Block = Philox::Block;

// Random123's published vectors for philox4x32-10: counter, key, result.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0})(), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t f = 0xffffffff;
  EXPECT_EQ(Philox({f, f, f, f}, {f, f})(), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0})(),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, SeedsAsTensorFlow) {
  const Philox p(0x1111111122222222u, 0x3333333344444444u);
  EXPECT_EQ(p.key(), (Philox::Key{0x22222222, 0x11111111}));
  EXPECT_EQ(p.counter(), (Block{0, 0, 0x44444444, 0x33333333}));
}

TEST(Philox, SkipEqualsDrawing) {
  for (uint64_t n : {0u, 1u, 2u, 100u}) {
    Philox a(42, 7), b = a;
    a.skip(n);
    for (uint64_t i = 0; i < n; ++i) b();
    EXPECT_EQ(a, b);
    EXPECT_EQ(a(), b());
  }
}

TEST(Philox, CounterCarriesThroughAllWords) {
  const uint32_t f = 0xffffffff;
  const auto after = [](Block counter, uint64_t n) {
    Philox p(counter, {1, 2});
    p.skip(n);
    return p.counter();
  };
  EXPECT_EQ(after({f, 0, 0, 0}, 1), (Block{0, 1, 0, 0}));
  EXPECT_EQ(after({f, f, 0, 0}, 1), (Block{0, 0, 1, 0}));
  EXPECT_EQ(after({f, f, f, 5}, 1), (Block{0, 0, 0, 6}));
  EXPECT_EQ(after({f, f, f, f}, 1), (Block{0, 0, 0, 0}));
  EXPECT_EQ(after({1, 0, 0, 0}, uint64_t{7} << 32 | f), (Block{0, 8, 0, 0}));
  EXPECT_EQ(after({5, f, 0, 0}, uint64_t{1} << 32), (Block{5, 0, 1, 0}));
}

TEST(Philox, FillEqualsCalls) {
  for (const Block start : {Block{0, 0, 3, 4}, Block{0xfffffff0, 0xffffffff, 9, 0}, Block{0xfffffff3, 1, 2, 3}}) {
    for (int64_t blocks : {0, 1, 7, 8, 9, 64, 101}) {
      Philox a(start, {77, 88}), b = a;
      std::vector<uint32_t> got(static_cast<size_t>(4 * blocks) + 4, 12345);
      philox_fill(a, got.data(), blocks);
      for (int64_t i = 0; i < blocks; ++i) {
        const Block want = b();
        for (size_t j = 0; j < 4; ++j) ASSERT_EQ(got[static_cast<size_t>(4 * i) + j], want[j]) << i;
      }
      EXPECT_EQ(a, b);
      EXPECT_EQ(got[static_cast<size_t>(4 * blocks)], 12345u);
    }
  }
}

TEST(Philox, WordsComeInOrder) {
  Philox gen(5);
  PhiloxWords words(gen);
  for (int i = 0; i < 3; ++i) {
    for (uint32_t want : gen()) EXPECT_EQ(words(), want);
  }
}

TEST(PhiloxUniform, FloatUsesTheLow23Bits) {
  EXPECT_EQ(uniform_float(0), 0.0f);
  EXPECT_EQ(uniform_float(0xff800000), 0.0f);
  EXPECT_EQ(uniform_float(0x7fffff), 1.0f - std::ldexp(1.0f, -23));
  EXPECT_EQ(uniform_float(0xffc00000), 0.5f);
  for (uint32_t x : {1u, 12345u, 0xdeadbeefu}) {
    EXPECT_EQ(uniform_float(x), static_cast<float>(x % (1u << 23)) * std::ldexp(1.0f, -23));
  }
}

TEST(PhiloxUniform, DoubleUses52Bits) {
  EXPECT_EQ(uniform_double(0, 0), 0.0);
  EXPECT_EQ(uniform_double(0xffffffff, 0xffffffff), 1.0 - std::ldexp(1.0, -52));
  EXPECT_EQ(uniform_double(0x80000, 0), 0.5);
  EXPECT_EQ(uniform_double(0, 1), std::ldexp(1.0, -52));
}

TEST(PhiloxUniform, HalfTypes) {
  EXPECT_EQ(uniform_half(0xffff), 1.0f - std::ldexp(1.0f, -10));
  EXPECT_EQ(uniform_half(0x10200), 0.5f);
  EXPECT_EQ(uniform_bfloat16(0xffff), 1.0f - std::ldexp(1.0f, -7));
  EXPECT_EQ(uniform_bfloat16(0x40), 0.5f);
}

TEST(PhiloxUniform, Integers) {
  EXPECT_EQ(uniform_int32(17, -5, 5), -5 + 7);
  EXPECT_EQ(uniform_int32(0xfffffffe, INT32_MIN, INT32_MAX), INT32_MAX - 1);
  EXPECT_EQ(uniform_int64(2, 1, 0, 10), ((int64_t{1} << 32) + 2) % 10);
  EXPECT_EQ(uniform_int64(0xfffffffe, 0xffffffff, INT64_MIN, INT64_MAX), INT64_MAX - 1);
  EXPECT_EQ(uniform_bits64(0x1, 0x2), 0x0000000200000001u);
}

TEST(PhiloxNormal, BoxMullerPairs) {
  // u = 0.5, angle = pi/2: the sine carries the whole radius.
  const auto [s, c] = box_muller(0x400000, 0x200000);
  EXPECT_FLOAT_EQ(s, std::sqrt(2.0f * std::log(2.0f)));
  EXPECT_NEAR(c, 0.0f, 1e-6);
  // A zero uniform counts as 1e-7.
  EXPECT_FLOAT_EQ(box_muller(0, 0)[1], std::sqrt(-2.0f * std::log(1.0e-7f)));
  EXPECT_DOUBLE_EQ(box_muller_double(0, 0, 0, 0)[1], std::sqrt(-2.0 * std::log(1.0e-7)));
  EXPECT_DOUBLE_EQ(box_muller_double(0x80000, 0, 0x40000, 0)[0], std::sqrt(2.0 * std::log(2.0)));
}

TEST(PhiloxNormal, HasUnitMoments) {
  Philox gen(2024);
  double sum = 0, squares = 0;
  const int blocks = 50000;
  for (int i = 0; i < blocks; ++i) {
    const Block x = gen();
    for (const auto& pair : {box_muller(x[0], x[1]), box_muller(x[2], x[3])}) {
      for (float v : pair) sum += v, squares += v * v;
    }
  }
  EXPECT_NEAR(sum / (4 * blocks), 0.0, 0.01);
  EXPECT_NEAR(squares / (4 * blocks), 1.0, 0.02);
}

}  // namespace
}  // namespace runnel
