#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "runnel/runnel.h"

namespace runnel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

Words words(const Tensor& t) { return t.to_vector<std::string>(); }

template <class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Strings, Join) {
  EXPECT_EQ(words(strings::join({Tensor{"a", "b"}, Tensor("x")}, "-")), (Words{"a-x", "b-x"}));
  EXPECT_EQ(words(strings::join({Tensor("a"), Tensor("b")})), (Words{"ab"}));
  EXPECT_EQ(strings::join({Tensor::empty(DType::string, {0}), Tensor("b")}).shape(), (Shape{0}));
}

TEST(Strings, SplitIsRagged) {
  const RaggedTensor r = strings::split(Tensor{"hello world", " a  b c ", ""});
  EXPECT_EQ(words(r.flat_values()), (Words{"hello", "world", "a", "b", "c"}));
  EXPECT_EQ(r.row_splits().to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 5, 5}));
  const RaggedTensor s = strings::split(Tensor{"a,b,,c", ","}, ",");
  EXPECT_EQ(words(s.flat_values()), (Words{"a", "b", "", "c", "", ""}));
  EXPECT_EQ(words(strings::split(Tensor{"a,b,c"}, ",", 1).flat_values()), (Words{"a", "b,c"}));
  EXPECT_EQ(words(strings::split(Tensor{" a b  c "}, "", 1).flat_values()), (Words{"a", "b  c "}));
  const RaggedTensor deep = strings::split(Tensor{{"a b", "c"}, {"d", "e f g"}});
  EXPECT_EQ(words(deep.flat_values()), (Words{"a", "b", "c", "d", "e", "f", "g"}));
  EXPECT_EQ(deep.nrows(), 2);
}

TEST(Strings, SplitWorksInFunctions) {
  auto pieces = function([](const Tensor& text) {
    const RaggedTensor r = strings::split(text, ",");
    return std::vector<Tensor>{r.values(), r.row_splits()};
  });
  const auto out = pieces(Tensor{"a,b", "c", ""});
  EXPECT_EQ(words(out[0]), (Words{"a", "b", "c", ""}));
  EXPECT_EQ(out[1].to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 3, 4}));
}

TEST(Strings, LengthAndSubstr) {
  const Tensor t{"h\xc3\xa9llo", "abc"};
  EXPECT_THAT(strings::length(t).to_vector<int32_t>(), ElementsAre(6, 3));
  EXPECT_THAT(strings::length(t, strings::Unit::utf8_char).to_vector<int32_t>(), ElementsAre(5, 3));
  EXPECT_EQ(words(strings::substr(t, 1, 2, strings::Unit::utf8_char)), (Words{"\xc3\xa9l", "bc"}));
  EXPECT_EQ(words(strings::substr(t, Tensor{-2, 0}, Tensor{2, 99})), (Words{"lo", "abc"}));
  EXPECT_EQ(strings::substr(t, Tensor{{0}, {1}}, Tensor{{1}, {1}}).shape(), (Shape{2, 2}));
  EXPECT_THAT(message([&] { strings::substr(t, 4, 1); }), HasSubstr("[Substr] position 4 is outside a string of 3"));
}

TEST(Strings, CaseAndWhiteSpace) {
  EXPECT_EQ(words(strings::lower(Tensor{"HeLLo \xc3\x89"})), (Words{"hello \xc3\x89"}));
  EXPECT_EQ(words(strings::lower(Tensor{"HeLLo \xc3\x89"}, "utf-8")), (Words{"hello \xc3\xa9"}));
  EXPECT_EQ(words(strings::upper(Tensor{"stra\xc3\x9f"
                                        "e"})),
            (Words{"STRA\xc3\x9f"
                   "E"}));
  EXPECT_EQ(words(strings::strip(Tensor{"\t a \n", ""})), (Words{"a", ""}));
}

TEST(Strings, RegularExpressions) {
  EXPECT_THAT(strings::regex_full_match(Tensor{"TF lib", "lib"}, "TF.*").to_vector<bool>(), ElementsAre(true, false));
  EXPECT_EQ(words(strings::regex_replace(Tensor{"Text with tags.<br /><b>contains html</b>"}, "<[^>]+>", " ")),
            (Words{"Text with tags.  contains html "}));
  EXPECT_EQ(words(strings::regex_replace("aaa", "a", "b", false)), (Words{"baa"}));
  EXPECT_THAT(message([] { strings::regex_full_match("a", "("); }), HasSubstr("no regular expression"));
  EXPECT_THAT(message([] { strings::regex_replace("a", "a", "\\3"); }), HasSubstr("rewrite"));
}

TEST(Strings, Numbers) {
  EXPECT_THAT(strings::to_number(Tensor{"3.25", "-1e3", " inf "}).to_vector<float>(),
              ElementsAre(3.25f, -1000.f, std::numeric_limits<float>::infinity()));
  EXPECT_EQ(strings::to_number("9007199254740993", int64).item<int64_t>(), 9007199254740993);
  EXPECT_THAT(message([] { strings::to_number(Tensor{"12", "12a"}, int32); }), HasSubstr("'12a' is no int32"));
  EXPECT_THAT(message([] { strings::to_number(""); }), HasSubstr("'' is no float32"));
  EXPECT_THAT(strings::to_number(Tensor{"0x1f", "-0x1F", "0x.8", "1e-60", "-1e60"}).to_vector<float>(),
              ElementsAre(31.f, -31.f, .5f, 0.f, -std::numeric_limits<float>::infinity()));
  // Short numbers are read in another way than long ones: the same value to the last bit.
  for (const double value :
       {0.1, -0.3, 1234.567, 0.000001, 16777217.0, 9999999.0, 0.7, 123456.7, 8.5899346, -0.0, 33333.33}) {
    for (const char* spec : {"%.0f", "%.1f", "%.3f", "%.7f", "%.12f", "%.15f"}) {
      char text[64];
      std::snprintf(text, sizeof text, spec, value);
      const auto same = [](auto a, auto b) { return a == b && std::signbit(a) == std::signbit(b); };
      EXPECT_TRUE(same(strings::to_number(text).item<float>(), std::strtof(text, nullptr))) << text;
      EXPECT_TRUE(same(strings::to_number(text, float64).item<double>(), std::strtod(text, nullptr))) << text;
    }
  }
  for (const char* text : {"1.2.3", "--1", "1-", ".", "1 2", "-"}) {
    EXPECT_THAT(message([&] { strings::to_number(text); }), HasSubstr("is no float32"));
  }
  for (const char* text : {"0x-5", "-0x-5", "0xinf", "0xnan", "0x", "0x+1"}) {
    EXPECT_THAT(message([&] { strings::to_number(text); }), HasSubstr("is no float32"));
  }
  EXPECT_EQ(words(strings::as_string(Tensor{1, -20})), (Words{"1", "-20"}));
  EXPECT_EQ(words(strings::as_string(Tensor{3.1415926f}, {.precision = 2})), (Words{"3.14"}));
  EXPECT_EQ(words(strings::as_string(Tensor{1.5f}, {.scientific = true})), (Words{"1.500000e+00"}));
  EXPECT_EQ(words(strings::as_string(Tensor{1.5f}, {.shortest = true})), (Words{"1.5"}));
  EXPECT_EQ(words(strings::as_string(Tensor{true, false})), (Words{"true", "false"}));
  EXPECT_EQ(words(strings::as_string(Tensor{7}, {.width = 4, .fill = "0"})), (Words{"0007"}));
}

TEST(Strings, Format) {
  EXPECT_EQ(strings::format("x: {}, y: {}", {Tensor{1, 2, 3}, Tensor("s")}).item<std::string>(),
            "x: [1 2 3], y: \"s\"");
  EXPECT_EQ(strings::format("{}", {range(10)}).item<std::string>(), "[0 1 2 ... 7 8 9]");
  EXPECT_EQ(strings::format("{}", {Tensor{{1.5f, 2.f}, {3.f, 4.f}}}).item<std::string>(), "[[1.5 2]\n [3 4]]");
  EXPECT_THAT(message([] { strings::format("{} {}", {Tensor(1)}); }), HasSubstr("more placeholders"));
}

TEST(Strings, Unicode) {
  const RaggedTensor r = strings::unicode_split(Tensor{"h\xc3\xa9", "\xf0\x9f\x98\x80!"});
  EXPECT_EQ(words(r.flat_values()), (Words{"h", "\xc3\xa9", "\xf0\x9f\x98\x80", "!"}));
  EXPECT_EQ(r.row_splits().to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 4}));
  EXPECT_THAT(strings::unicode_decode(Tensor{"\xff"
                                             "a"})
                  .flat_values()
                  .to_vector<int32_t>(),
              ElementsAre(0xFFFD, 'a'));
  // Overlong and surrogates: every byte is bad by itself. Cut short: as many as could have begun a character.
  EXPECT_EQ(strings::unicode_decode(Tensor{"\xc0\x80"}).flat_values().num_elements(), 2);
  EXPECT_EQ(strings::unicode_decode(Tensor{"\xed\xa0\x80"}).flat_values().num_elements(), 3);
  EXPECT_EQ(strings::unicode_decode(Tensor{"\xe2\x82"}).flat_values().num_elements(), 1);
  const Tensor cut{"\xe2\x82z\xf0\x9f\x98"};
  EXPECT_EQ(words(strings::unicode_transcode(cut, "UTF-8", "UTF-8")), (Words{"\xef\xbf\xbdz\xef\xbf\xbd"}));
  EXPECT_EQ(words(strings::upper(cut, "utf-8")), (Words{"\xef\xbf\xbdZ\xef\xbf\xbd"}));
  // Half a pair and a byte more.
  EXPECT_EQ(words(strings::unicode_transcode(Tensor{"\xd8\x3d\xde"}, "UTF-16-BE", "UTF-8")), (Words{"\xef\xbf\xbd"}));
  EXPECT_EQ(words(strings::unicode_transcode(Tensor{"\x3d\xd8\xde"}, "UTF-16-LE", "UTF-8")), (Words{"\xef\xbf\xbd"}));
}

// Thousands are written in chunks and share memory, long ones have their own, and single ones outlive the rest.
TEST(Strings, ManyOfAllLengths) {
  std::vector<std::string> given;
  for (size_t i = 0; i < 3000; ++i) {
    const size_t length = i % 97 == 0 ? 5000 + i : i % 5 == 0 ? 0 : i % 61;
    std::string text;
    for (size_t k = 0; k < length; ++k) text += static_cast<char>("aBcZ9 @[`{\xc3"[(i + k) % 11]);
    given.push_back(text);
  }
  const auto ascii = [](std::string text, char first, int by) {
    for (char& c : text) c = static_cast<char>(c >= first && c < first + 26 ? c + by : c);
    return text;
  };
  const auto expected = [&](auto f) {
    Words all;
    for (const std::string& text : given) all.push_back(f(text));
    return all;
  };
  const Tensor in = Tensor::of(given);
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    EXPECT_EQ(words(strings::lower(in)), expected([&](const std::string& s) { return ascii(s, 'A', 32); }));
    EXPECT_EQ(words(strings::upper(in)), expected([&](const std::string& s) { return ascii(s, 'a', -32); }));
    EXPECT_EQ(words(strings::substr(in, 0, 4)), expected([](const std::string& s) { return s.substr(0, 4); }));
    EXPECT_EQ(words(strings::substr(in, 0, 1000)), expected([](const std::string& s) { return s.substr(0, 1000); }));
    EXPECT_EQ(words(strings::join({in, Tensor("x"), in}, "-")),
              expected([](const std::string& s) { return s + "-x-" + s; }));
    EXPECT_EQ(words(io::decode_base64(io::encode_base64(in))), given);
    EXPECT_EQ(words(strings::strip(in)), expected([](std::string s) {
                s.erase(0, s.find_first_not_of(' '));
                return s.substr(0, s.find_last_not_of(' ') + 1);
              }));
  }
  set_num_threads(2);
  Tensor kept;
  {
    const Tensor all = strings::upper(in);
    kept = gather(all, Tensor{3, 97, 2999});
  }
  EXPECT_EQ(words(kept), (Words{ascii(given[3], 'a', -32), ascii(given[97], 'a', -32), ascii(given[2999], 'a', -32)}));
  // The first error is that of the first bad string, whatever thread finds one.
  std::vector<std::string> numbers(2000, "1.5");
  numbers[700] = "first";
  numbers[1900] = "second";
  EXPECT_THAT(message([&] { strings::to_number(Tensor::of(numbers)); }), HasSubstr("'first' is no float32"));
}

TEST(Strings, ANumberIsNoString) {
  EXPECT_THAT(message([] { strings::lower(Tensor{1.f}); }),
              HasSubstr("[StringLower] input must be string, got float32"));
  EXPECT_THAT(message([] { add(Tensor("a"), Tensor("b")); }), HasSubstr("[AddV2]"));
}

TEST(Lookup, StaticTable) {
  const lookup::StaticHashTable table(Tensor{"a", "b"}, Tensor{1, 2}, -1);
  EXPECT_THAT(table.lookup(Tensor{"b", "x", "a"}).to_vector<int32_t>(), ElementsAre(2, -1, 1));
  EXPECT_EQ(table.size(), 2);
  EXPECT_THAT(message([&] { table.lookup(Tensor{int64_t{1}}); }), HasSubstr("keys of dtype string, got int64"));
  EXPECT_THAT(message([] {
                (void)lookup::StaticHashTable(Tensor{"a", "a"}, Tensor{1, 2}, 0);
              }),
              HasSubstr("two values"));
  EXPECT_THAT(message([] { lookup::StaticHashTable(Tensor{1.f}, Tensor{1}, 0); }), HasSubstr("no table from float32"));
}

TEST(Lookup, MutableTable) {
  lookup::MutableHashTable table(int64, float32, 0.5f);
  table.insert(Tensor{int64_t{1}, int64_t{2}}, Tensor{10.f, 20.f});
  table.insert(Tensor{int64_t{2}, int64_t{3}}, Tensor{21.f, 30.f});
  EXPECT_EQ(table.size(), 3);
  const Tensor keys{{int64_t{2}, int64_t{9}}};
  EXPECT_THAT(table[keys].to_vector<float>(), ElementsAre(21.f, 0.5f));
  table.remove(Tensor{int64_t{1}, int64_t{7}});
  const auto all = table.export_contents();
  EXPECT_THAT(all.keys.to_vector<int64_t>(), ElementsAre(2, 3));
  EXPECT_THAT(all.values.to_vector<float>(), ElementsAre(21.f, 30.f));
  for (int64_t i = 0; i < 100; ++i) table.insert(Tensor{i}, Tensor{static_cast<float>(i)});
  for (int64_t i = 0; i < 90; ++i) table.remove(Tensor{i});
  EXPECT_EQ(table.size(), 10);
  EXPECT_EQ(table[Tensor(int64_t{95})].item<float>(), 95.f);
}

}  // namespace
}  // namespace runnel
