#include "runnel/io/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <complex>
#include <cstring>
#include <map>

#include "runnel/io/process.h"
#include "runnel/io/zip.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

using test::expect_error;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A file of version 1 around a header and elements as they are given.
std::string npy_file(const std::string& header, const std::string& data) {
  std::string file = "\x93NUMPY";
  file += {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return file + header + data;
}
std::string npy_header(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}
std::string raw(std::initializer_list<int> values) {
  std::string text;
  for (int value : values) text += static_cast<char>(value);
  return text;
}
template <class T>
std::vector<T> elements_of(const NpyArray& array) {
  std::vector<T> values(array.data.size() / sizeof(T));
  std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}
NpyArray parse(const std::string& file) { return parse_npy(as_bytes(file), "x"); }

TEST(Npy, BothByteOrdersGiveTheMachines) {
  const NpyArray little = parse(npy_file(npy_header("<i2", "(2,)"), raw({1, 2, 254, 255})));
  EXPECT_EQ(little.dtype, "int16");
  EXPECT_THAT(little.shape, ElementsAre(2));
  EXPECT_THAT(elements_of<int16_t>(little), ElementsAre(513, -2));
  EXPECT_THAT(elements_of<int16_t>(parse(npy_file(npy_header(">i2", "(2,)"), raw({1, 2, 255, 254})))),
              ElementsAre(258, -2));
  const auto complex = elements_of<std::complex<float>>(
      parse(npy_file(npy_header(">c8", "(1,)"), raw({0x3f, 0xc0, 0, 0, 0xc0, 0, 0, 0}))));
  EXPECT_EQ(complex.at(0), std::complex<float>(1.5F, -2));  // each half is swapped by itself
}

TEST(Npy, FortranOrderBecomesRowOrder) {
  const NpyArray matrix = parse(npy_file(npy_header("|u1", "(2, 3)", "True"), raw({1, 2, 3, 4, 5, 6})));
  EXPECT_THAT(matrix.shape, ElementsAre(2, 3));
  EXPECT_THAT(elements_of<uint8_t>(matrix), ElementsAre(1, 3, 5, 2, 4, 6));
  const NpyArray cube = parse(npy_file(npy_header("|u1", "(2, 2, 2)", "True"), raw({0, 1, 2, 3, 4, 5, 6, 7})));
  EXPECT_THAT(elements_of<uint8_t>(cube), ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
}

TEST(Npy, ScalarsEmptyArraysBoolsAndOldHeaders) {
  EXPECT_THAT(parse(npy_file(npy_header("|b1", "()"), raw({7}))).shape, IsEmpty());
  EXPECT_THAT(elements_of<uint8_t>(parse(npy_file(npy_header("|b1", "(3,)"), raw({0, 7, 1})))), ElementsAre(0, 1, 1));
  EXPECT_THAT(parse(npy_file(npy_header("<f8", "(9000000000000000000, 0, 9000000000000000000)"), "")).data, IsEmpty());
  EXPECT_THAT(parse(npy_file("{\"shape\":(2L,3L),'fortran_order':False,'descr':'|i1'}", "abcdef")).shape,
              ElementsAre(2, 3));
  std::string second = npy_file(npy_header("|i1", "(1,)"), "a");
  second[6] = 2;
  second.insert(10, 2, '\0');  // the length has four bytes
  EXPECT_THAT(elements_of<char>(parse(second)), ElementsAre('a'));
}

TEST(Npy, DamagedFilesNameTheFileAndTheOffset) {
  auto bad = [](const std::string& file, const std::string& text) {
    SCOPED_TRACE(text);
    expect_error([&] { parse_npy(as_bytes(file), "name"); }, Code::data_loss, text);
  };
  bad("", "[npy] name: not a .npy file: it does not begin with \\x93NUMPY at byte 0");
  bad("\x93NUMPY\1", "ends inside the magic number at byte 7");
  bad(raw({0x93, 'N', 'U', 'M', 'P', 'Y', 9, 0, 0, 0}), "unknown version 9 at byte 6");
  bad(raw({0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 50, 0}), "header of 50 bytes does not fit into the 0 that follow");
  bad(npy_file("{'descr': '<f4'}", ""), "lacks descr, fortran_order or shape at byte 26");
  bad(npy_file("{'descr' '<f4'}", ""), "has no ':' at byte 19");
  bad(npy_file("{'descr': '<f4", ""), "a text without an end at byte 20");
  bad(npy_file("{'descr': '<f4', 'descr': '<f4'}", ""), "'descr' stands twice");
  bad(npy_file("{'colour': 3}", ""), "unknown entry 'colour'");
  bad(npy_file(npy_header("<f4", "(-1,)"), ""), "no dimension");
  bad(npy_file(npy_header("<f4", "(99999999999999999999,)"), ""), "no dimension");
  bad(npy_file(npy_header("<f4", "(2, 2") + "x", ""), "at byte");
  bad(npy_file(npy_header("<f4", "(2,)", "true"), ""), "neither True nor False");
  bad(npy_file(npy_header("?f4", "(2,)"), ""), "no type '?f4'");
  const size_t begin = npy_file(npy_header("<f4", "(2,)"), "").size();
  bad(npy_file(npy_header("<f4", "(2,)"), "1234567"),
      "float32 elements [2], but only 7 bytes follow it at byte " + std::to_string(begin));
  bad(npy_file(npy_header("<f4", "(2,)"), "123456789"),
      "1 bytes too many after the elements at byte " + std::to_string(begin + 8));
  bad(npy_file(npy_header("<f4", "(4294967296, 4294967296)"), ""), "but only 0 bytes follow it");  // would wrap around
}

TEST(Npy, TextsRecordsAndObjectsSaySo) {
  for (const char* descr : {"|S5", "<U3", "|O", "<M8[ns]", "<f16"}) {
    expect_error([&] { parse(npy_file(npy_header(descr, "(1,)"), "")); }, Code::unimplemented,
                 std::string("an array of type '") + descr + "' is not read");
  }
  expect_error([] { parse(npy_file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "")); },
               Code::unimplemented, "an array of records is not read");
}

TEST(Npy, WritingAndReadingGivesTheSame) {
  const std::vector<float> values = {1, -2, 3.5, 4, 5, 6};
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{6}, {2, 3}, {1, 2, 3}, {6, 1}}) {
    const std::vector<std::byte> file = npy({"float32", shape, std::as_bytes(std::span(values))});
    const NpyArray again = parse_npy(file, "x");
    EXPECT_EQ(again.dtype, "float32");
    EXPECT_EQ(again.shape, shape);
    EXPECT_EQ(elements_of<float>(again), values);
    EXPECT_EQ((file.size() - sizeof(float) * values.size()) % 64, 0U);
  }
  EXPECT_THAT(test::text_of(npy({"float32", {6}, std::as_bytes(std::span(values))})), HasSubstr("'shape': (6,), }"));
  expect_error(
      [&] {
        npy({"float32", {5}, std::as_bytes(std::span(values))});
      },
      Code::invalid_argument, "float32 elements [5] are 20 bytes, but 24 were given");
  expect_error([&] { npy({"float31", {6}, {}}); }, Code::invalid_argument, "'float31'");
}

TEST(Npz, StoredAndCompressed) {
  const std::vector<int32_t> many(1000, 7);
  const std::vector<uint8_t> few = {1, 2};
  const std::vector<NamedView> arrays = {{"many", {"int32", {10, 100}, std::as_bytes(std::span(many))}},
                                         {"few", {"uint8", {2}, std::as_bytes(std::span(few))}}};
  const std::vector<std::byte> plain = npz(arrays), packed = npz(arrays, true);
  EXPECT_LT(packed.size(), plain.size() / 4);
  for (const auto& file : {plain, packed}) {
    const std::vector<NamedArray> again = parse_npz(file, "x");
    ASSERT_EQ(again.size(), 2U);
    EXPECT_EQ(again[0].name, "many");
    EXPECT_THAT(again[0].array.shape, ElementsAre(10, 100));
    EXPECT_EQ(elements_of<int32_t>(again[0].array), many);
    EXPECT_EQ(again[1].name, "few");
    EXPECT_EQ(elements_of<uint8_t>(again[1].array), few);
  }
  expect_error([&] { parse_npz(packed, "big.npz", 2000); }, Code::resource_exhausted, "more than the allowed 2000");
  expect_error(
      [] {
        parse_npz(zip({{"a.txt", as_bytes("text")}}), "t.npz");
      },
      Code::data_loss, "[npy] t.npz (a.txt): not a .npy file");
  const auto one = npy({"uint8", {2}, std::as_bytes(std::span(few))});
  expect_error(
      [&] {
        parse_npz(zip({{"a.npy", one}, {"a", one}}), "t.npz");
      },
      Code::data_loss, "the array 'a' stands twice at byte");
}

// --- against NumPy itself ---

// A Python with numpy; empty: there is none.
std::string python_with_numpy() {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    if (program_exists(python) &&
        run_process({python, "-c", "import numpy"}, std::chrono::seconds(60), [] {}).status == 0) {
      return python;
    }
  }
  return "";
}

class NumPy : public ::testing::Test {
 protected:
  void SetUp() override {
    if (python_.empty()) GTEST_SKIP() << "no python3 with numpy is installed";
  }
  void run(const std::string& script) {
    const ProcessResult result =
        run_process({python_, "-c", "import numpy as np\n" + script, dir_.path()}, std::chrono::seconds(60), [] {});
    ASSERT_EQ(result.status, 0) << result.output;
  }
  static const std::string python_;
  TempDir dir_;
};
const std::string NumPy::python_ = python_with_numpy();

TEST_F(NumPy, ReadsWhatItWrites) {
  run(R"(
import sys
types = 'bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128'.split()
arrays = {}
for t in types:
  a = (np.arange(24) % 11 - (0 if t[0] in 'bu' else 5)).astype(t).reshape(2, 3, 4)
  arrays[t] = a
  arrays[t + '_f'] = np.asfortranarray(a)
  arrays[t + '_b'] = a.astype(a.dtype.newbyteorder('>'))
arrays['scalar'] = np.float32(2.5)
arrays['empty'] = np.zeros((0, 3))
np.savez(sys.argv[1] + '/plain.npz', **arrays)
np.savez_compressed(sys.argv[1] + '/packed.npz', **arrays)
np.save(sys.argv[1] + '/one.npy', np.array([[1, 2], [3, 4]], 'int64'))
)");
  for (const char* file : {"plain.npz", "packed.npz"}) {
    SCOPED_TRACE(file);
    std::map<std::string, NpyArray> arrays;
    for (NamedArray& each : read_npz(dir_.file(file))) arrays[each.name] = std::move(each.array);
    EXPECT_EQ(arrays.size(), 3 * 14 + 2U);
    for (const auto& [name, array] : arrays) {
      SCOPED_TRACE(name);
      if (name == "scalar" || name == "empty") continue;
      EXPECT_THAT(array.shape, ElementsAre(2, 3, 4));
      EXPECT_EQ(array.dtype, name.substr(0, name.find('_')));
      EXPECT_EQ(array.data, arrays[array.dtype].data);  // order and endianness are undone
    }
    EXPECT_EQ(elements_of<int16_t>(arrays["int16"]).at(23), 23 % 11 - 5);
    EXPECT_EQ(elements_of<double>(arrays["float64"]).at(4), -1);
    EXPECT_EQ(elements_of<std::complex<double>>(arrays["complex128"]).at(0), std::complex<double>(-5, 0));
    EXPECT_THAT(elements_of<float>(arrays["scalar"]), ElementsAre(2.5F));
    EXPECT_THAT(arrays["empty"].shape, ElementsAre(0, 3));
  }
  EXPECT_THAT(elements_of<int64_t>(read_npy(dir_.file("one.npy"))), ElementsAre(1, 2, 3, 4));
}

TEST_F(NumPy, IsReadByIt) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  const std::vector<uint8_t> bytes(5000, 9);
  for (bool compress : {false, true}) {
    const auto file = npz({{"values", {"float64", {2, 3}, std::as_bytes(std::span(values))}},
                           {"bytes", {"uint8", {5000}, std::as_bytes(std::span(bytes))}}},
                          compress);
    Env::posix().write_file(dir_.file("ours.npz"), file);
    run(R"(
import sys
f = np.load(sys.argv[1] + '/ours.npz')
assert f.files == ['values', 'bytes'], f.files
assert f['values'].dtype == np.float64 and f['values'].tolist() == [[1, 2, 3], [4, 5, 6]], f['values']
assert f['bytes'].dtype == np.uint8 and f['bytes'].shape == (5000,) and (f['bytes'] == 9).all()
)");
  }
}

}  // namespace
}  // namespace runnel::io
