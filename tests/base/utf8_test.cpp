// Bytes that are no UTF-8: as in ICU, what could have begun a character is replaced once, any other byte by itself.
#include "runnel/base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace runnel {
namespace {

// How many bytes each character takes; negative: they are no character.
std::vector<int> lengths(std::string_view text) {
  std::vector<int> all;
  while (!text.empty()) {
    const CodePoint c = decode_utf8(text);
    EXPECT_EQ(c.valid || c.value == 0xFFFD, true);
    all.push_back(c.valid ? c.bytes : -c.bytes);
    text.remove_prefix(static_cast<size_t>(c.bytes));
  }
  return all;
}

TEST(Utf8, WhatBreaksOffIsReplacedOnce) {
  const std::vector<std::pair<std::string, std::vector<int>>> cases{
      {"h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", {1, 2, 3, 4}},
      {"\xc3z", {-1, 1}},
      {"\xe2\x82z", {-2, 1}},
      {"\xe2z", {-1, 1}},
      {"\xf0\x9f\x98z", {-3, 1}},
      {"\xf0\x9f\x98", {-3}},
      {"\xf0\x9f\x98\xf0\x9f\x98\x80", {-3, 4}},
      // Bytes that begin nothing: continuations, overlong forms, surrogates, values past U+10FFFF.
      {"\x80\xbf", {-1, -1}},
      {"\xc0\xaf", {-1, -1}},
      {"\xe0\x80\xaf", {-1, -1, -1}},
      {"\xed\xa0\x80", {-1, -1, -1}},
      {"\xf4\x90\x80\x80", {-1, -1, -1, -1}},
      {"\xf5\xff", {-1, -1}},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(lengths(text), expected) << testing::PrintToString(text);
}

TEST(Utf8, CasesReplaceAlike) {
  EXPECT_EQ(utf8_upper("a\xe2\x82z"), "A\xef\xbf\xbdZ");
  EXPECT_EQ(utf8_lower("A\xf0\x9f\x98"), "a\xef\xbf\xbd");
}

}  // namespace
}  // namespace runnel
