// Parts of a partitioned variable cover it, each element once.
#include <gtest/gtest.h>

#include <map>

#include "runnel/io/checkpoint_entry.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_reader.h"
#include "runnel/io/checkpoint_slice.h"
#include "runnel/io/checkpoint_table.h"
#include "runnel/io/checkpoint_writer.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

using test::expect_error;
using test::TempDir;

constexpr int kInt8 = 6;
const std::vector<int64_t> kTen = {10};

// A checkpoint whose index says that `w`, of 10 elements, has these parts; no library writes it so.
void write_index(const std::string& prefix, const std::vector<CheckpointSlice>& slices) {
  std::map<std::string, std::string> table;
  table[""] = header_bytes({.num_shards = 1});
  CheckpointEntry whole{.key = "w", .dtype = kInt8, .shape = kTen};
  uint64_t written = 0;
  for (const CheckpointSlice& slice : slices) {
    CheckpointEntry part{.key = slice_key("w", slice), .dtype = kInt8, .shape = slice_shape(kTen, slice)};
    part.offset = written;
    part.size = byte_size(part);
    written += part.size;
    table[part.key] = entry_bytes(part);
    whole.slices.push_back(slice);
  }
  table["w"] = entry_bytes(whole);
  Env::posix().write_file(checkpoint_shard_path(prefix, 0, 1), std::vector<std::byte>(written));
  Env::posix().write_file(checkpoint_index_path(prefix), as_bytes(write_table(table)));
}

TEST(CheckpointParts, ThatOverlapAreNotRead) {
  const TempDir dir;
  const std::string prefix = dir.file("x");
  write_index(prefix, {{{0, 5}}, {{3, 5}}});  // ten elements together, and none of the last two
  const CheckpointReader reader(prefix);
  std::vector<std::byte> room(10);
  expect_error([&] { reader.read(reader.entry("w"), room); }, Code::data_loss, "parts 0 and 1 of it have elements");
  write_index(prefix, {{{5, 5}}, {{0, 5}}});
  const CheckpointReader whole(prefix);
  whole.check(whole.entry("w"));
}

TEST(CheckpointParts, ThatOverlapAreNotWritten) {
  const TempDir dir;
  CheckpointWriter writer(dir.file("x"));
  const std::vector<std::byte> five(5);
  writer.add_part("w", kInt8, kTen, {{0, 5}}, five);
  expect_error(
      [&] {
        writer.add_part("w", kInt8, kTen, {{3, 5}}, five);
      },
      Code::invalid_argument, "key 'w': the parts 0,5 and 3,5 have elements in common");
  writer.add_part("w", kInt8, kTen, {{5, 5}}, five);
  writer.finish();
  const CheckpointReader reader(dir.file("x"));
  reader.check(reader.entry("w"));
}

TEST(CheckpointParts, OverlapsAreFoundInGrids) {
  const std::vector<int64_t> shape = {6, 4};
  std::vector<CheckpointSlice> grid;
  for (int64_t row = 0; row < 6; row += 2) {
    grid.push_back({{row, 2}, {0, 3}});
    grid.push_back({{row, 2}, {3, 1}});
  }
  grid.push_back({{1, 0}, {}});  // without elements
  EXPECT_FALSE(find_overlap(shape, grid));
  grid[3] = {{2, 2}, {2, 2}};
  EXPECT_EQ(find_overlap(shape, grid), (std::pair<size_t, size_t>{2, 3}));
  const CheckpointSlice rows = {{0, 3}, {}}, below = {{3, 3}, {}}, column = {{}, {1, 1}};
  EXPECT_FALSE(slices_overlap(shape, rows, below));
  EXPECT_TRUE(slices_overlap(shape, rows, column));
  EXPECT_EQ(find_overlap(shape, std::vector{below, rows, column}), (std::pair<size_t, size_t>{1, 2}));
}

}  // namespace
}  // namespace runnel::io
