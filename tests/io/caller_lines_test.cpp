// Errors of files and their formats name the line of the program that asked.
#include "tests/support/caller_lines.h"

#include "runnel/io/checkpoint_reader.h"
#include "runnel/io/checkpoint_slice.h"
#include "runnel/io/checkpoint_state.h"
#include "runnel/io/checkpoint_writer.h"
#include "runnel/io/compression.h"
#include "runnel/io/csv.h"
#include "runnel/io/datasets.h"
#include "runnel/io/example.h"
#include "runnel/io/hdf5.h"
#include "runnel/io/idx.h"
#include "runnel/io/npz.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

using test::TempDir;

const std::string kText = "no such format";

TEST(FileCallerLines, Arrays) {
  const TempDir dir;
  const ByteSpan bytes = std::as_bytes(std::span(kText));
  EXPECT_NAMES_THIS_LINE(parse_idx(bytes, "text"));
  EXPECT_NAMES_THIS_LINE(read_idx(dir.file("none")));
  EXPECT_NAMES_THIS_LINE(npy_dtype_size("float33"));
  EXPECT_NAMES_THIS_LINE(parse_npy(bytes, "text"));
  EXPECT_NAMES_THIS_LINE(read_npy(dir.file("none")));
  EXPECT_NAMES_THIS_LINE(parse_npz(bytes, "text"));
  EXPECT_NAMES_THIS_LINE(read_npz(dir.file("none")));
  EXPECT_NAMES_THIS_LINE(npy({"float32", {3}, bytes}));
  EXPECT_NAMES_THIS_LINE(npz({{"a", {"float33", {3}, bytes}}}));
}

TEST(FileCallerLines, Text) {
  const ByteSpan bytes = std::as_bytes(std::span(kText));
  std::vector<std::string_view> fields;
  std::vector<std::string> storage;
  std::byte out[4];
  EXPECT_NAMES_THIS_LINE(split_csv("\"open", {}, fields, storage));
  EXPECT_NAMES_THIS_LINE(compression_from_name("LZMA"));
  EXPECT_NAMES_THIS_LINE(InflateReader(bytes, Compression::gzip, "text").read(out));
  EXPECT_NAMES_THIS_LINE(Example::parse("\xff"));
  EXPECT_NAMES_THIS_LINE(SequenceExample::parse("\xff"));
  EXPECT_NAMES_THIS_LINE(example_from_json("{"));
  EXPECT_NAMES_THIS_LINE(dataset_spec("nope"));
  EXPECT_NAMES_THIS_LINE(get_dataset("nope"));
}

TEST(FileCallerLines, Hdf5) {
  const TempDir dir;
  EXPECT_NAMES_THIS_LINE(Hdf5Reader(dir.file("none")));
  EXPECT_NAMES_THIS_LINE(Hdf5Reader::parse(std::as_bytes(std::span(kText)), "text"));
  EXPECT_NAMES_THIS_LINE(Hdf5Writer(dir.file("no/such/folder/x.h5")).finish());
}

TEST(FileCallerLines, Checkpoints) {
  const TempDir dir;
  const std::vector<int64_t> two{2};
  const float values[] = {1, 2};
  {
    CheckpointWriter writer(dir.file("c"));
    EXPECT_NAMES_THIS_LINE(writer.add("short", 1, two, std::as_bytes(std::span(values, 1))));
  }
  {
    CheckpointWriter writer(dir.file("c"));
    writer.add("x", 1, two, std::as_bytes(std::span(values)));
    writer.finish();
    EXPECT_NAMES_THIS_LINE(writer.add("y", 1, two, std::as_bytes(std::span(values))));
    EXPECT_NAMES_THIS_LINE(writer.finish());
  }
  const CheckpointReader reader(dir.file("c"));
  std::byte out[1];
  EXPECT_NAMES_THIS_LINE(CheckpointReader(dir.file("none")));
  EXPECT_NAMES_THIS_LINE(reader.entry("nope"));
  EXPECT_NAMES_THIS_LINE(reader.read(reader.entry("x"), out));
  EXPECT_NAMES_THIS_LINE(reader.read(reader.entry("x"), {{5, 9}}, out));
  EXPECT_NAMES_THIS_LINE(reader.read_strings(reader.entry("x")));
  EXPECT_NAMES_THIS_LINE(parse_slice_spec("nonsense"));
  EXPECT_NAMES_THIS_LINE(slice_shape(two, {{1, 5}}));
  EXPECT_NAMES_THIS_LINE(parse_checkpoint_state("nope: 1"));
  EXPECT_NAMES_THIS_LINE(write_checkpoint_state(dir.path(), {.model_checkpoint_path = "checkpoint"}));
  Env::posix().write_file(dir.file("checkpoint"), std::as_bytes(std::span(kText)));
  EXPECT_NAMES_THIS_LINE(read_checkpoint_state(dir.path()));
}

}  // namespace
}  // namespace runnel::io
