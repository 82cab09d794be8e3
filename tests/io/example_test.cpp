#include "runnel/io/example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runnel/io/example_locator.h"
#include "tests/support/expect_error.h"

namespace runnel::io {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (int value : values) text += static_cast<char>(value);
  return text;
}

Example contact() {
  return {{{{"name", BytesList{{"Al"}}}, {"id", Int64List{{300, -1}}}, {"score", FloatList{{1.5f}}}}}};
}

TEST(Example, SerializesKeysInOrderAndNumbersPacked) {
  // Worked out by hand from the wire format.
  const std::string id = bytes({0x0a, 2,    'i',  'd',  0x12, 16,   0x1a, 14,   0x0a, 12,   0xac,
                                2,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1});
  const std::string name = bytes({0x0a, 4, 'n', 'a', 'm', 'e', 0x12, 6, 0x0a, 4, 0x0a, 2, 'A', 'l'});
  const std::string score = bytes({0x0a, 5, 's', 'c', 'o', 'r', 'e', 0x12, 8, 0x12, 6, 0x0a, 4, 0, 0, 0xc0, 0x3f});
  auto entry = [](const std::string& body) { return bytes({0x0a, static_cast<int>(body.size())}) + body; };
  const std::string features = entry(id) + entry(name) + entry(score);
  EXPECT_EQ(contact().serialize(), entry(features));
  EXPECT_EQ(Example::parse(contact().serialize()), contact());
  EXPECT_EQ(Example{}.serialize(), bytes({0x0a, 0}));
  EXPECT_EQ(Example::parse(""), Example{});
}

TEST(Example, EmptyListsAreNotMissingLists) {
  const Example example{{{{"a", Int64List{}}, {"b", Feature{}}, {"c", BytesList{{""}}}}}};
  const Example back = Example::parse(example.serialize());
  EXPECT_EQ(back, example);
  EXPECT_NE(back.features.feature.at("a").int64_list(), nullptr);
  EXPECT_EQ(back.features.feature.at("b").kind.index(), 0U);
}

// A field of type "bytes" with a one-byte tag and length.
std::string field(int tag, const std::string& body) { return bytes({tag, static_cast<int>(body.size())}) + body; }

TEST(Example, ReadsWhateverProtobufReads) {
  auto example = [](const std::string& entries) { return field(0x0a, entries); };
  auto entry = [](const std::string& key, const std::string& feature) {
    return field(0x0a, field(0x0a, key) + field(0x12, feature));
  };
  const std::string three = field(0x1a, bytes({8, 3}));  // an unpacked 3
  EXPECT_EQ(Example::parse(example(entry("a", three))), (Example{{{{"a", Int64List{{3}}}}}}));
  EXPECT_EQ(Example::parse(example(entry("f", field(0x12, bytes({0x0d, 0, 0, 0x80, 0x3f, 0x0a, 4, 0, 0, 0, 0x40}))))),
            (Example{{{{"f", FloatList{{1, 2}}}}}}));
  // The last entry of a key counts; two messages of features are merged.
  const std::string four = field(0x1a, bytes({8, 4}));
  EXPECT_EQ(Example::parse(example(entry("a", three) + entry("b", three)) + example(entry("a", four))),
            (Example{{{{"a", Int64List{{4}}}, {"b", Int64List{{3}}}}}}));
  // In one feature lists of a kind are merged, and another kind replaces them.
  EXPECT_EQ(Example::parse(example(entry("a", three + four))), (Example{{{{"a", Int64List{{3, 4}}}}}}));
  EXPECT_EQ(Example::parse(example(entry("a", three + field(0x0a, field(0x0a, "x"))))),
            (Example{{{{"a", BytesList{{"x"}}}}}}));
  // Value before key, a missing key, unknown fields of every type.
  EXPECT_EQ(Example::parse(example(field(0x0a, field(0x12, three) + field(0x0a, "z")))),
            (Example{{{{"z", Int64List{{3}}}}}}));
  EXPECT_EQ(Example::parse(example(field(0x0a, field(0x12, three)))), (Example{{{{"", Int64List{{3}}}}}}));
  const std::string unknown = bytes({0x50, 1}) + bytes({0x51, 1, 2, 3, 4, 5, 6, 7, 8}) + field(0x52, "?") +
                              bytes({0x53, 0x08, 1, 0x54}) + bytes({0x55, 1, 2, 3, 4});
  EXPECT_EQ(Example::parse(unknown + example(unknown + entry("a", unknown + three)) + unknown),
            (Example{{{{"a", Int64List{{3}}}}}}));
}

TEST(Example, DamageIsAnErrorWithItsOffset) {
  expect_error([] { Example::parse(bytes({0x0a, 5, 1})); }, Code::data_loss, "damaged at byte 1 of 3");
  expect_error([] { Example::parse("This is no message"); }, Code::data_loss, "no valid message");
  const std::string whole = contact().serialize();
  for (size_t n = 1; n < whole.size(); ++n) {
    EXPECT_THROW(Example::parse(whole.substr(0, n)), Error) << n;
  }
}

SequenceExample film() {
  return {{{{"id", Int64List{{7}}}}},
          {{{"frames", FeatureList{{BytesList{{"a"}}, BytesList{{"b", "c"}}, Feature{}}}}, {"none", FeatureList{}}}}};
}

TEST(SequenceExample, RoundTrips) {
  EXPECT_EQ(SequenceExample::parse(film().serialize()), film());
  EXPECT_EQ(SequenceExample{}.serialize(), "");
  const std::string list = field(0x0a, field(0x0a, "w") + field(0x12, field(0x0a, field(0x1a, bytes({0x0a, 1, 5})))));
  EXPECT_EQ((SequenceExample{{}, {{{"w", FeatureList{{Int64List{{5}}}}}}}}).serialize(), field(0x12, list));
  for (size_t n = 1; n < film().serialize().size(); ++n) {
    try {
      SequenceExample::parse(film().serialize().substr(0, n));  // the cut behind the context is a message
    } catch (const Error&) {
    }
  }
}

TEST(ExampleLocator, AgreesWithTheGeneralParserOnRandomAndDamagedRecords) {
  std::mt19937 random(7);
  auto below = [&](uint32_t n) { return random() % n; };
  const std::vector<std::string_view> keys = {"a", "b", "long name of a feature", ""};
  ExampleLocator locator(keys);
  std::vector<ExampleLocator::Found> found(keys.size());
  size_t located = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    Example example;
    for (std::string_view key : {"a", "b", "c", "d", "long name of a feature", ""}) {
      Feature& f = example.features.feature[std::string(key)];
      switch (below(5)) {
        case 0: f = Int64List{{static_cast<int64_t>(random()), -5}}; break;
        case 1: f = FloatList{{1.f, 2.f, 3.f}}; break;
        case 2: f = BytesList{{"xyz", std::string(below(300), 'q')}}; break;
        case 3: break;
        default: example.features.feature.erase(std::string(key));
      }
    }
    std::string record = example.serialize();
    if (below(2) == 0 && !record.empty()) record[below(static_cast<uint32_t>(record.size()))] ^= 1 << below(8);
    if (!locator.locate(record, found.data())) continue;
    // The lists inside are not looked at by locate; where they are damaged the general parser refuses.
    Example expected;
    try {
      expected = Example::parse(record);
    } catch (const Error&) {
      continue;
    }
    ++located;
    for (size_t k = 0; k < keys.size(); ++k) {
      const auto it = expected.features.feature.find(std::string(keys[k]));
      const Feature want = it == expected.features.feature.end() ? Feature{} : it->second;
      ASSERT_EQ(static_cast<size_t>(found[k].kind), want.kind.index());
      if (const auto* list = want.int64_list()) {
        std::vector<int64_t> values(list->value.size());
        ASSERT_EQ(wire::read_int64s(found[k].list, values.data(), 1), static_cast<int64_t>(values.size()));
        wire::read_int64s(found[k].list, values.data(), static_cast<int64_t>(values.size()));
        ASSERT_EQ(values, list->value);
      } else if (const auto* floats = want.float_list()) {
        ASSERT_EQ(wire::read_floats(found[k].list, nullptr, 0), static_cast<int64_t>(floats->value.size()));
      }
    }
  }
  EXPECT_GT(located, 3000U);
}

TEST(ExampleJson, ValuesAndRoundTrip) {
  const Example e = example_from_json(R"({"features": {"feature": {
      "i": {"int64List": {"value": ["-9223372036854775808", 7, 2.0]}},
      "f": {"float_list": {"value": [1, 0.5, "-Infinity", "2.5"]}},
      "b": {"bytesList": {"value": ["AP8=", "YQ", ""]}}, "e": {}}}})");
  EXPECT_THAT(e.features.feature.at("i").int64_list()->value, ElementsAre(INT64_MIN, 7, 2));
  EXPECT_THAT(e.features.feature.at("f").float_list()->value, ElementsAre(1.f, .5f, -INFINITY, 2.5f));
  EXPECT_THAT(e.features.feature.at("b").bytes_list()->value, ElementsAre(bytes({0, 255}), "a", ""));
  EXPECT_EQ(e.features.feature.at("e"), Feature{});
  EXPECT_EQ(example_from_json(example_to_json(e)), e);
  EXPECT_EQ(example_to_json(contact()),
            R"({"features":{"feature":{"id":{"int64List":{"value":["300","-1"]}},)"
            R"("name":{"bytesList":{"value":["QWw="]}},"score":{"floatList":{"value":[1.5]}}}}})");
  EXPECT_EQ(example_from_json("{}"), Example{});
}

TEST(ExampleJson, ErrorsSayWhere) {
  auto bad = [](const std::string& feature, const std::string& text) {
    expect_error([&] { example_from_json(R"({"features": {"feature": {"k": )" + feature + "}}}"); },
                 Code::invalid_argument, text);
  };
  bad(R"({"int64List": {"value": ["1x"]}})", R"(feature 'k'.int64List.value[0]: "1x" is no 64-bit integer)");
  bad(R"({"int64List": {"value": [1.5]}})", "1.5 is no 64-bit integer");
  bad(R"({"int64List": {"value": [9223372036854775808]}})", "is no 64-bit integer");
  bad(R"({"floatList": {"value": [true]}})", "true is no number");
  bad(R"({"bytesList": {"value": ["*"]}})", "'*' is no base64");
  bad(R"({"bytesList": {"value": ["YWJjZ"]}})", "stops short");
  bad(R"({"bytesList": {"values": []}})", "unknown name 'values'");
  bad(R"({"doubleList": {"value": []}})", "unknown name 'doubleList'");
  bad(R"({"floatList": {}, "int64List": {}})", "one list only");
  bad("[]", "expected an object, found array");
  expect_error([] { example_from_json("{"); }, Code::invalid_argument, "no valid JSON");
}

}  // namespace
}  // namespace runnel::io
