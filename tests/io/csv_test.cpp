#include "runnel/io/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace runnel::io {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

std::vector<std::string> split(std::string_view record, const CsvOptions& options = {}) {
  std::vector<std::string_view> fields;
  std::vector<std::string> storage;
  split_csv(record, options, fields, storage);
  return {fields.begin(), fields.end()};
}

TEST(Csv, SplitsAtDelimiters) {
  EXPECT_THAT(split("a,b,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split("a,,"), ElementsAre("a", "", ""));
  EXPECT_THAT(split(""), ElementsAre(""));
  EXPECT_THAT(split(","), ElementsAre("", ""));
  EXPECT_THAT(split("a b , c\r\n"), ElementsAre("a b ", " c"));
  EXPECT_THAT(split("a;b,c", {.delimiter = ';'}), ElementsAre("a", "b,c"));
}

TEST(Csv, UndoesQuotes) {
  EXPECT_THAT(split(R"("a,b",c)"), ElementsAre("a,b", "c"));
  EXPECT_THAT(split(R"("a ""quoted"" word","","""")"), ElementsAre("a \"quoted\" word", "", "\""));
  EXPECT_THAT(split("\"two\nlines\",x"), ElementsAre("two\nlines", "x"));
  EXPECT_THAT(split(R"("a",)"), ElementsAre("a", ""));
  EXPECT_THAT(split(R"("a",b")", {.quotes = false}), ElementsAre("\"a\"", "b\""));
  std::string many;
  std::vector<std::string> expected;
  for (int i = 0; i < 1000; ++i) {
    many += std::string(i > 0 ? "," : "") + "\"\"\"\"";
    expected.emplace_back("\"");
  }
  EXPECT_EQ(split(many), expected);
}

TEST(Csv, MisplacedQuotesAreErrors) {
  expect_error([] { split(R"(a,"b)"); }, Code::invalid_argument,
               "field 1 opens a quote at byte 2 that is never closed");
  expect_error([] { split(R"("a"b,c)"); }, Code::invalid_argument, "behind its closing quote at byte 3");
  expect_error([] { split(R"(a,b"c)"); }, Code::invalid_argument, "field 1 is not quoted, but has a quote or line end");
  expect_error([] { split("a\nb"); }, Code::invalid_argument, "at byte 1");
}

TEST(Csv, FindsTheEndOfARecord) {
  const std::string_view text = "a,b\n\"x\ny\",2\nlast";
  EXPECT_EQ(csv_record_end(text, 0, {}), 4U);
  EXPECT_EQ(csv_record_end(text, 4, {}), 12U);
  EXPECT_EQ(csv_record_end(text, 4, {.quotes = false}), 7U);
  EXPECT_EQ(csv_record_end(text, 12, {}), text.size());
}

}  // namespace
}  // namespace runnel::io
