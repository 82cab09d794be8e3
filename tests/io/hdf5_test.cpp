// Files of HDF5: what is written comes back, damaged files are Errors, and the library is loaded only when one is
// touched.
#include "runnel/io/hdf5.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

using test::expect_error;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

template <class T>
ByteSpan bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

const std::vector<float> kSix{1, 2, 3, -4.5f, 5, 6};

// A small file as Keras would write it.
std::string sample_file(const TempDir& dir) {
  const std::string path = dir.file("sample.h5");
  Hdf5Writer writer(path);
  writer.text_attribute("", "backend", std::string("tensorflow"));
  writer.text_attribute("/", "layer_names", std::vector<std::string>{"dense", "überdense", ""});
  writer.create_group("dense");
  writer.text_attribute("dense", "weight_names", std::vector<std::string>{});
  writer.write("dense/dense/kernel:0", {"float32", {2, 3}, bytes_of(kSix)});
  writer.write("scalar", {"float32", {}, bytes_of(kSix).first(4)});
  writer.write("nothing", {"int64", {0, 3}, {}});
  writer.create_group("layers/inner/vars");
  writer.finish();
  return path;
}

TEST(Hdf5, WhatIsWrittenComesBack) {
  const TempDir dir;
  const Hdf5Reader reader(sample_file(dir));
  EXPECT_THAT(reader.children("/"), ElementsAre("dense", "layers", "nothing", "scalar"));
  EXPECT_THAT(reader.text_attribute("/", "backend"), ElementsAre("tensorflow"));
  EXPECT_THAT(reader.text_attribute("", "layer_names"), ElementsAre("dense", "überdense", ""));
  EXPECT_THAT(reader.text_attribute("dense", "weight_names"), IsEmpty());
  EXPECT_TRUE(reader.has_attribute("dense", "weight_names"));
  EXPECT_FALSE(reader.has_attribute("dense", "weights"));

  const NpyArray kernel = reader.read("/dense/dense/kernel:0");
  EXPECT_EQ(kernel.dtype, "float32");
  EXPECT_THAT(kernel.shape, ElementsAre(2, 3));
  EXPECT_EQ(0, std::memcmp(kernel.data.data(), kSix.data(), kernel.data.size()));
  EXPECT_THAT(reader.read("scalar").shape, IsEmpty());
  EXPECT_EQ(reader.read("scalar").data.size(), 4u);
  EXPECT_THAT(reader.read("nothing").shape, ElementsAre(0, 3));

  std::map<std::string, Hdf5Kind> all;
  reader.walk("", [&](const std::string& object, Hdf5Kind kind) { all[object] = kind; });
  EXPECT_EQ(all.size(), 8u);
  EXPECT_EQ(all.at("layers/inner/vars"), Hdf5Kind::group);
  EXPECT_EQ(all.at("dense/dense/kernel:0"), Hdf5Kind::dataset);
  EXPECT_EQ(reader.kind("dense/nobody/kernel"), Hdf5Kind::none);
  EXPECT_EQ(reader.kind("scalar/below"), Hdf5Kind::none);
  EXPECT_EQ(reader.kind("/"), Hdf5Kind::group);
}

TEST(Hdf5, AFileThatIsCutShortWhileItIsOpen) {
  const TempDir dir;
  const std::string path = sample_file(dir);
  const Hdf5Reader reader(path);
  std::filesystem::resize_file(path, 0);
  const NpyArray kernel = reader.read("dense/dense/kernel:0");
  EXPECT_EQ(0, std::memcmp(kernel.data.data(), kSix.data(), kernel.data.size()));
  expect_error([&] { Hdf5Reader again(path); }, Code::data_loss, "sample.h5");
}

// The program ends before the file gets its name, as if it were killed.
class EndsBeforeRename : public EnvWrapper {
 public:
  EndsBeforeRename() : EnvWrapper(Env::posix()) {}
  void rename(const std::string&, const std::string&) override { ::_exit(0); }
};

TEST(Hdf5, WhatAKilledWriterLeftIsRemoved) {
  const TempDir dir;
  const auto write = [&](const std::string& name, Env& env) {
    Hdf5Writer writer(dir.file(name), env);
    writer.write("a", {"float32", {6}, bytes_of(kSix)});
    writer.finish();
  };
  const pid_t child = ::fork();
  if (child == 0) {
    EndsBeforeRename env;
    write("first.h5", env);
    ::_exit(1);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(Env::posix().list(dir.path()).size(), 1u);
  write("second.h5", Env::posix());
  EXPECT_THAT(Env::posix().list(dir.path()), ElementsAre("second.h5"));
}

TEST(Hdf5, EveryDtypeKeepsItsBits) {
  const TempDir dir;
  const std::vector<uint64_t> bits{0x3c00, 1, 0x7fc0, 0xffff, 42, 1u << 31, 7, 0x8000};
  const std::map<std::string, size_t> dtypes{{"int8", 1},    {"int16", 2},    {"int32", 4},   {"int64", 8},
                                             {"uint8", 1},   {"uint16", 2},   {"uint32", 4},  {"uint64", 8},
                                             {"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8}};
  Hdf5Writer writer(dir.file("all.h5"));
  for (const auto& [dtype, size] : dtypes) {
    writer.write(dtype, {dtype, {static_cast<int64_t>(64 / size)}, bytes_of(bits)});
  }
  const std::vector<uint8_t> flags{1, 0, 1};
  writer.write("bool", {"bool", {3}, bytes_of(flags)});
  writer.finish();
  const Hdf5Reader reader(dir.file("all.h5"));
  for (const auto& [dtype, size] : dtypes) {
    const NpyArray array = reader.read(dtype);
    EXPECT_EQ(array.dtype, dtype);
    EXPECT_EQ(0, std::memcmp(array.data.data(), bits.data(), 64)) << dtype;
  }
  EXPECT_EQ(reader.read("bool").dtype, "bool");
  EXPECT_EQ(0, std::memcmp(reader.read("bool").data.data(), flags.data(), 3));
}

TEST(Hdf5, ErrorsNameTheFileAndTheObject) {
  const TempDir dir;
  const Hdf5Reader reader(sample_file(dir));
  expect_error([&] { reader.read("dense/bias"); }, Code::not_found, "sample.h5, object 'dense/bias'");
  expect_error([&] { reader.read("dense"); }, Code::invalid_argument, "is a group, not an array");
  expect_error([&] { reader.children("scalar"); }, Code::invalid_argument, "is an array, not a group");
  expect_error([&] { reader.text_attribute("dense", "names"); }, Code::not_found, "has no attribute 'names'");
  expect_error([&] { Hdf5Reader missing(dir.file("none.h5")); }, Code::not_found, "none.h5");

  Hdf5Writer writer(dir.file("two.h5"));
  writer.write("a", {"float32", {6}, bytes_of(kSix)});
  expect_error([&] { writer.write("a", {"float32", {6}, bytes_of(kSix)}); }, Code::already_exists, "object 'a'");
  expect_error([&] { writer.write("a/b", {"float32", {6}, bytes_of(kSix)}); }, Code::already_exists, "object 'a/b'");
  expect_error([&] { writer.write("c", {"float32", {7}, bytes_of(kSix)}); }, Code::invalid_argument, "24 bytes");
  expect_error([&] { writer.write("c", {"complex64", {3}, bytes_of(kSix)}); }, Code::unimplemented, "complex64");
  expect_error([&] { writer.text_attribute("nobody", "n", std::string("x")); }, Code::not_found, "nobody");
  expect_error([&] { writer.text_attribute("a", "n", std::vector<std::string>(5000, "x")); }, Code::invalid_argument,
               "5000 texts");
  writer.finish();  // the file stays usable after all of them
  EXPECT_THAT(Hdf5Reader(dir.file("two.h5")).children(""), ElementsAre("a"));
}

TEST(Hdf5, NothingStandsUnderTheNameBeforeTheEnd) {
  const TempDir dir;
  const std::string path = sample_file(dir);
  {
    Hdf5Writer writer(path);
    writer.write("other", {"float32", {6}, bytes_of(kSix)});
  }
  EXPECT_EQ(Hdf5Reader(path).kind("dense"), Hdf5Kind::group);
  EXPECT_EQ(Hdf5Reader(path).kind("other"), Hdf5Kind::none);
  EXPECT_THAT(Env::posix().list(dir.path()), ElementsAre("sample.h5"));
}

TEST(Hdf5, NoFileOfHdf5) {
  const TempDir dir;
  const std::string path = dir.file("text.h5");
  Env::posix().write_file(path, as_bytes(std::string(5000, 'x')));
  expect_error([&] { Hdf5Reader reader(path); }, Code::data_loss, "text.h5: it does not begin as files of HDF5 do");
  Env::posix().write_file(dir.file("model.keras"), as_bytes("PK\x03\x04" + std::string(500, 'x')));
  expect_error([&] { Hdf5Reader reader(dir.file("model.keras")); }, Code::unimplemented,
               "model.keras: it is a ZIP archive");
  EXPECT_FALSE(is_hdf5_file(path));
  EXPECT_FALSE(is_hdf5_file(dir.path()));
  Env::posix().write_file(dir.file("empty.h5"), {});
  expect_error([&] { Hdf5Reader reader(dir.file("empty.h5")); }, Code::data_loss, "empty.h5");
  EXPECT_TRUE(is_hdf5_file(sample_file(dir)));
}

// Every file that is cut short gives an Error or what was written.
TEST(Hdf5, FilesThatAreCutShort) {
  const TempDir dir;
  const std::vector<std::byte> whole = Env::posix().read_file(sample_file(dir));
  for (size_t length = 1; length < whole.size(); length += 37) {
    try {
      const Hdf5Reader reader = Hdf5Reader::parse(ByteSpan(whole).first(length), "cut");
      const NpyArray kernel = reader.read("dense/dense/kernel:0");
      EXPECT_EQ(0, std::memcmp(kernel.data.data(), kSix.data(), 24)) << length;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr("cut")) << length;
    }
  }
}

TEST(Hdf5, SeveralThreads) {
  const TempDir dir;
  const std::string path = sample_file(dir);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 10; ++k) {
        EXPECT_EQ(Hdf5Reader(path).read("scalar").data.size(), 4u);
        Hdf5Writer writer(dir.file(std::to_string(i)));
        writer.write("a", {"float32", {6}, bytes_of(kSix)});
        writer.finish();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(Hdf5Reader(dir.file("3")).read("a").shape, std::vector<int64_t>{6});
}

bool hdf5_is_loaded() { return test::read_bytes("/proc/self/maps").find("libhdf5") != std::string::npos; }

TEST(Hdf5DeathTest, TheLibraryIsLoadedWhenAFileIsTouched) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process
  const auto run = [] {
    if (hdf5_is_loaded()) std::exit(1);
    if (is_hdf5_file("/proc/self/maps")) std::exit(2);
    if (hdf5_is_loaded()) std::exit(3);
    const TempDir dir;
    sample_file(dir);
    std::exit(hdf5_is_loaded() ? 0 : 4);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

TEST(Hdf5DeathTest, WithoutTheLibrary) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    setenv("RUNNEL_HDF5_LIBRARY", "libnone.so", 1);
    try {
      Hdf5Writer writer("/tmp/never.h5");
    } catch (const Error& e) {
      std::cerr << code_name(e.code()) << e.what();
      std::exit(0);
    }
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "UNAVAILABLE.*libnone.so.*apt install libhdf5-103-1");
}

}  // namespace
}  // namespace runnel::io
