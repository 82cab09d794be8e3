#include "runnel/ops/io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runnel/io/example.h"
#include "runnel/ops/parse.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

using test::expect_error;
using test::TempDir;
using ::testing::ElementsAre;

TEST(Files, WriteReadMatch) {
  TempDir dir;
  const std::string contents("a\0b\n", 4);
  write_file(dir.file("new/folder/x.txt"), Tensor(Bytes(contents)));
  write_file(dir.file("new/folder/y.txt"), "second");
  EXPECT_EQ(read_file(dir.file("new/folder/x.txt")).item<std::string>(), contents);
  EXPECT_THAT(matching_files(dir.file("new/*/*.txt")).to_vector<std::string>(),
              ElementsAre(dir.file("new/folder/x.txt"), dir.file("new/folder/y.txt")));
  EXPECT_EQ(matching_files(dir.file("*.png")).shape(), Shape{0});
  EXPECT_THAT(Env::posix().list(dir.file("new/folder")), ElementsAre("x.txt", "y.txt"));
  expect_error([&] { read_file(dir.file("none")); }, Code::not_found, "none");
}

TEST(Files, WriteGoesThroughLinks) {
  TempDir dir;
  write_file(dir.file("target"), "something longer");
  std::filesystem::create_symlink(dir.file("target"), dir.file("link"));
  write_file(dir.file("link"), "short");
  EXPECT_TRUE(std::filesystem::is_symlink(dir.file("link")));
  EXPECT_EQ(read_file(dir.file("target")).item<std::string>(), "short");
}

TEST(Tensors, SerializeAndParse) {
  for (const Tensor& t : {Tensor{{1.f, 2.f}}, Tensor(int64_t{7}), Tensor{"a", ""}, Tensor::empty(uint8, {0, 3})}) {
    const Tensor back = parse_tensor(serialize_tensor(t), t.dtype());
    EXPECT_EQ(back.str(), t.str());
  }
  expect_error([] { parse_tensor("garbage", float32); }, Code::data_loss, "[ParseTensor] failed: ");
  expect_error([] { parse_tensor(serialize_tensor(Tensor(1)), float32); }, Code::invalid_argument,
               "int32, not of float32");
}

TEST(DecodeRaw, FixedLength) {
  EXPECT_EQ(decode_raw(Tensor{{"ab", "cd"}}, uint8).shape(), (Shape{1, 2, 2}));
  EXPECT_THAT(decode_raw("abc", uint8, true, 5).to_vector<uint8_t>(), ElementsAre(97, 98, 99, 0, 0));
  const Tensor floats = Tensor::of<float>({1.5f, -2.f});
  const std::string raw(static_cast<const char*>(floats.raw()), floats.num_bytes());
  EXPECT_THAT(decode_raw(Tensor(Bytes(raw)), float32).to_vector<float>(), ElementsAre(1.5f, -2.f));
  std::string swapped = raw;
  for (size_t i = 0; i < 8; i += 4)
    std::reverse(swapped.begin() + static_cast<long>(i), swapped.begin() + static_cast<long>(i) + 4);
  EXPECT_THAT(decode_raw(Tensor(Bytes(swapped)), float32, false).to_vector<float>(), ElementsAre(1.5f, -2.f));
  expect_error([] { decode_raw("ab", DType::string); }, Code::invalid_argument,
               "attr 'out_type' of string is not in the list of allowed values");
}

TEST(DecodeCsv, Columns) {
  const std::vector<Tensor> defaults = {Tensor{0.f}, Tensor{int64_t{5}}, Tensor{"?"}};
  const auto columns = decode_csv(Tensor{"1.5,2,x", "-3e2,,", " 4 ,6,\"a,b\""}, defaults);
  EXPECT_THAT(columns[0].to_vector<float>(), ElementsAre(1.5f, -300.f, 4.f));
  EXPECT_THAT(columns[1].to_vector<int64_t>(), ElementsAre(2, 5, 6));
  EXPECT_THAT(columns[2].to_vector<std::string>(), ElementsAre("x", "?", "a,b"));
  EXPECT_EQ(decode_csv("7", {Tensor{0}})[0].shape(), Shape{});
  expect_error([] { decode_csv("99999999999", {Tensor{0}}); }, Code::invalid_argument, "does not fit int32");
  expect_error([] { decode_csv("1.5", {Tensor{0}}); }, Code::invalid_argument, "field 0: '1.5' is no int32");
  expect_error([] { decode_csv("1", {Tensor{true}}); }, Code::invalid_argument, "'OUT_TYPE' of bool is not");
  expect_error(
      [] {
        decode_csv("1,2", {Tensor{0}, Tensor{0}}, {.field_delim = "ab"});
      },
      Code::invalid_argument, "one character");
  expect_error([] { decode_csv("1,2", {Tensor{0}}, {.select_cols = {2}}); }, Code::invalid_argument, "more than 2");
}

TEST(DecodeJsonExample, GivesWhatParseExampleReads) {
  const Tensor json{R"({"features": {"feature": {"x": {"floatList": {"value": [1, 2.5]}}}}})"};
  const ParsedExample parsed = parse_example(decode_json_example(json), {{"x", FixedLenFeature{{2}}}});
  EXPECT_THAT(parsed["x"].to_vector<float>(), ElementsAre(1.f, 2.5f));
}

}  // namespace
}  // namespace runnel::io
