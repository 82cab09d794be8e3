#include "runnel/base/small_vector.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace runnel {
namespace {

using V = SmallVector<int64_t, 4>;

int64_t sum_of(std::span<const int64_t> s) {
  int64_t sum = 0;
  for (int64_t v : s) sum += v;
  return sum;
}

TEST(SmallVector, StaysInlineUpToN) {
  V v;
  EXPECT_TRUE(v.empty());
  for (int64_t i = 0; i < 4; ++i) v.push_back(i);
  EXPECT_TRUE(v.is_inline());
  v.push_back(4);
  EXPECT_FALSE(v.is_inline());
  EXPECT_EQ(v, (V{0, 1, 2, 3, 4}));
  EXPECT_EQ(v.front(), 0);
  EXPECT_EQ(v.back(), 4);
}

TEST(SmallVector, ConstructsFromEverything) {
  EXPECT_EQ(V(3, 7), (V{7, 7, 7}));
  EXPECT_EQ(V(2), (V{0, 0}));
  const std::vector<int> from{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(V(from.begin(), from.end()), (V{1, 2, 3, 4, 5, 6}));
  const std::vector<int64_t> wide{9, 8};
  EXPECT_EQ(V(std::span<const int64_t>(wide)), (V{9, 8}));
  EXPECT_TRUE((V{9, 8}) == std::span<const int64_t>(wide));
}

TEST(SmallVector, CopiesAndMoves) {
  for (size_t n : {0u, 3u, 4u, 5u, 40u}) {
    V a;
    for (size_t i = 0; i < n; ++i) a.push_back(static_cast<int64_t>(i * i));
    V b = a;
    EXPECT_EQ(a, b);
    V c = std::move(a);
    EXPECT_EQ(b, c);
    EXPECT_TRUE(a.empty());  // NOLINT: the moved-from state is defined
    a = b;
    EXPECT_EQ(a, b);
    V d(7, 1);
    d = std::move(a);
    EXPECT_EQ(d, b);
    V& same = d;
    d = same;
    EXPECT_EQ(d, b);
  }
}

TEST(SmallVector, AnElementOfItselfMayBePushedAndInserted) {
  V v{1, 2, 3, 4};
  v.push_back(v[0]);
  EXPECT_EQ(v, (V{1, 2, 3, 4, 1}));
  V w{1, 2, 3, 4};
  w.insert(w.begin(), w[3]);
  EXPECT_EQ(w, (V{4, 1, 2, 3, 4}));
}

TEST(SmallVector, ConvertsToSpan) {
  V v{1, 2, 3};
  EXPECT_EQ(sum_of(v), 6);
  std::span<int64_t> s = v;
  s[0] = 10;
  EXPECT_EQ(sum_of(v), 15);
}

TEST(SmallVector, InequalityOfSizeAndValue) {
  EXPECT_NE((V{1, 2}), (V{1, 2, 3}));
  EXPECT_NE((V{1, 2, 4}), (V{1, 2, 3}));
}

TEST(SmallVector, AgreesWithStdVectorUnderRandomEdits) {
  std::mt19937 rng(1);
  for (int round = 0; round < 200; ++round) {
    V v;
    std::vector<int64_t> ref;
    for (int step = 0; step < 60; ++step) {
      const size_t at = ref.empty() ? 0 : rng() % (ref.size() + 1);
      const int64_t x = static_cast<int64_t>(rng());
      switch (rng() % 7) {
        case 0: v.push_back(x), ref.push_back(x); break;
        case 1: v.insert(v.begin() + at, x), ref.insert(ref.begin() + at, x); break;
        case 2:
          if (at < ref.size()) v.erase(v.begin() + at), ref.erase(ref.begin() + at);
          break;
        case 3: v.resize(at + 2, x), ref.resize(at + 2, x); break;
        case 4: {
          const std::vector<int> more{1, 2, 3};
          v.insert(v.begin() + at, more.begin(), more.end());
          ref.insert(ref.begin() + at, more.begin(), more.end());
          break;
        }
        case 5:
          v.erase(v.begin() + at / 2, v.begin() + at);
          ref.erase(ref.begin() + at / 2, ref.begin() + at);
          break;
        case 6:
          if (!ref.empty()) v.pop_back(), ref.pop_back();
          break;
      }
      ASSERT_EQ(std::vector<int64_t>(v.begin(), v.end()), ref);
      ASSERT_EQ(std::vector<int64_t>(v.rbegin(), v.rend()), std::vector<int64_t>(ref.rbegin(), ref.rend()));
    }
  }
}

}  // namespace
}  // namespace runnel
