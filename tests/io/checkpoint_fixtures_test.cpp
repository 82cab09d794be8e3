// Checkpoints that TensorFlow wrote, against tables made by an independent reader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "runnel/base/format.h"
#include "runnel/base/sha256.h"
#include "runnel/io/checkpoint_entry.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_reader.h"
#include "runnel/io/checkpoint_table.h"
#include "runnel/io/checkpoint_writer.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"

namespace runnel::io {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::fixtures;
using test::read_bytes;
using test::TempDir;

using Row = std::vector<std::string>;

std::vector<Row> table_rows(const std::string& name) {
  std::vector<Row> rows;
  std::istringstream text(read_bytes(fixtures() / name));
  for (std::string line; std::getline(text, line);) {
    Row row;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, '\t');) row.push_back(cell);
    row.resize(13);
    rows.push_back(row);
  }
  rows.erase(rows.begin());
  return rows;
}

template <class T>
std::vector<double> as_doubles(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return {values.begin(), values.end()};
}

std::vector<double> values_of(const CheckpointReader& reader, const CheckpointEntry& entry) {
  reader.check(entry);
  std::vector<std::byte> bytes(byte_size(entry));
  reader.read(entry, bytes);
  const std::string dtype = checkpoint_dtype_name(entry.dtype);
  if (dtype == "float32") return as_doubles<float>(bytes);
  if (dtype == "float64") return as_doubles<double>(bytes);
  if (dtype == "int32") return as_doubles<int32_t>(bytes);
  if (dtype == "int64") return as_doubles<int64_t>(bytes);
  ADD_FAILURE() << dtype;
  return {};
}

std::string shape_text(const CheckpointEntry& entry) { return fmt::format("[{}]", fmt::join(entry.shape, ", ")); }

TEST(CheckpointFixtures, HoldWhatTheTableStates) {
  RUNNEL_REQUIRE_FIXTURES();
  std::map<std::string, std::vector<Row>> by_prefix;
  for (const Row& row : table_rows("EXPECTED_ckpt.tsv")) by_prefix[row[0]].push_back(row);
  EXPECT_EQ(by_prefix.size(), 50U);
  for (const auto& [prefix, rows] : by_prefix) {
    const CheckpointReader reader((fixtures() / prefix).string());
    EXPECT_EQ(reader.entries().size(), rows.size()) << prefix;
    for (const Row& row : rows) {
      SCOPED_TRACE(prefix + " " + row[1]);
      const CheckpointEntry& entry = reader.entry(row[1]);
      EXPECT_EQ(checkpoint_dtype_name(entry.dtype), row[2]);
      EXPECT_EQ(shape_text(entry), row[3]);
      EXPECT_EQ(std::to_string(entry.shard), row[4]);
      EXPECT_EQ(std::to_string(entry.offset), row[5]);
      EXPECT_EQ(std::to_string(entry.size), row[6]);
      EXPECT_EQ(fmt::format("{:08x}", entry.crc32c), row[7]);
      if (row[8] == "NOSHARD") {
        expect_error([&] { reader.check(entry); }, Code::not_found, "the file is missing");
      } else if (row[2] == "string") {
        const std::vector<std::string> strings = reader.read_strings(entry);
        std::vector<size_t> lengths;
        for (const std::string& each : strings) lengths.push_back(each.size());
        EXPECT_EQ(fmt::format("{} string(s), lengths [{}], sha256 of first {}", strings.size(),
                              fmt::join(lengths, ", "), sha256_hex(as_bytes(strings.at(0))).substr(0, 16)),
                  row[12]);
      } else {
        const std::vector<double> values = values_of(reader, entry);
        double sum = 0;
        for (double each : values) sum += each;
        EXPECT_NEAR(sum, std::stod(row[9]), 1e-9 * std::max(1.0, std::abs(sum)) + 1e-9 * values.size());
        EXPECT_EQ(values.front(), std::stod(row[10]));
        EXPECT_EQ(values.back(), std::stod(row[11]));
      }
    }
  }
}

std::vector<fs::path> all_indexes() {
  std::vector<fs::path> found;
  for (const auto& file : fs::recursive_directory_iterator(fixtures())) {
    if (file.path().extension() == ".index") found.push_back(file.path());
  }
  return found;
}

TEST(CheckpointFixtures, IndexesWrittenAgainAreTheSameBytes) {
  RUNNEL_REQUIRE_FIXTURES();
  int same = 0, compressed = 0, damaged = 0;
  for (const fs::path& path : all_indexes()) {
    const std::string bytes = read_bytes(path);
    std::map<std::string, std::string> table;
    try {
      read_table(as_bytes(bytes), path, [&](std::string_view key, std::string_view value) {
        std::string again;
        if (key.empty()) {
          again = std::string(value);  // may state another producer
        } else {
          again = entry_bytes(parse_entry(key, value));
        }
        table.emplace(key, again);
        EXPECT_EQ(again, value) << path << " " << key;
      });
    } catch (const Error&) {
      ++damaged;
      continue;
    }
    if (write_table(table) == bytes) {
      ++same;
    } else {
      ++compressed;  // only compression may make the difference: the blocks are then shorter
      EXPECT_LT(bytes.size(), write_table(table).size()) << path;
    }
  }
  EXPECT_EQ(same, 153);
  EXPECT_EQ(compressed, 3);
  EXPECT_EQ(damaged, 7);
}

TEST(CheckpointFixtures, DamagedOnesGiveWhatTheTableStates) {
  RUNNEL_REQUIRE_FIXTURES();
  const fs::path derived = fixtures() / "derived/ckpt";
  std::set<std::string> seen;
  for (const Row& row : table_rows("DERIVED_EXPECT.tsv")) {
    if (!row[0].starts_with("derived/ckpt/") || !row[1].starts_with("(as an")) continue;
    const std::string name = row[0].substr(std::string("derived/ckpt/").size());
    SCOPED_TRACE(name);
    seen.insert(name);
    const std::string prefix = (derived / name / "ckpt").string();
    if (row[3].starts_with("open fails")) {
      expect_error([&] { CheckpointReader reader(prefix); }, Code::data_loss, prefix + ".index");
      continue;
    }
    const CheckpointReader reader(prefix);
    EXPECT_EQ(reader.entries().size(), 11U);
    for (const CheckpointEntry& entry : reader.entries()) {
      const bool bad = row[3].find("'" + entry.key + "'") != std::string::npos;
      const auto read = [&] {
        if (entry.dtype == kCheckpointString) {
          reader.read_strings(entry);
        } else {
          values_of(reader, entry);
        }
      };
      if (!bad) {
        EXPECT_NO_THROW(read()) << entry.key;
      } else {
        expect_error(read, name == "missing_shard" ? Code::not_found : Code::data_loss, entry.key);
        expect_error(read, name == "missing_shard" ? Code::not_found : Code::data_loss, reader.shard_path(entry.shard));
      }
    }
  }
  EXPECT_EQ(seen.size(), 9U);
  // What is no checkpoint at all, but a file that stands for one elsewhere.
  expect_error(
      [] {
        CheckpointReader reader(
            (fixtures() / "corrupt_natural/MTRNord_lfs_pointer_savedmodel/variables/variables").string());
      },
      Code::data_loss, "magic number");
}

// Whatever TensorFlow wrote into one shard comes out as the same files when its values are written again in the order
// in which they stand there.
TEST(CheckpointFixtures, OneShardWrittenAgainIsTheSameBytes) {
  RUNNEL_REQUIRE_FIXTURES();
  TempDir dir;
  int compared = 0;
  for (const fs::path& path : all_indexes()) {
    if (path.string().find("/tf215/checkpoints/") == std::string::npos || path.parent_path().filename() == "partial") {
      continue;
    }
    const std::string prefix = path.string().substr(0, path.string().size() - 6);
    const CheckpointReader reader(prefix);
    if (reader.num_shards() != 1) continue;
    std::vector<std::pair<const CheckpointEntry*, CheckpointEntry>> stored;  // the whole, and what stands in the shard
    for (const CheckpointEntry& entry : reader.entries()) {
      if (entry.slices.empty()) {
        stored.emplace_back(&entry, entry);
      } else {
        for (const CheckpointEntry& part : reader.parts(entry)) stored.emplace_back(&entry, part);
      }
    }
    std::stable_sort(stored.begin(), stored.end(),
                     [](const auto& a, const auto& b) { return a.second.offset < b.second.offset; });
    const std::string again = dir.file("again");
    {
      CheckpointWriter writer(again);
      for (const auto& [whole, entry] : stored) {
        if (!whole->slices.empty()) {
          std::vector<std::byte> bytes(entry.size);
          reader.read(entry, bytes);
          const std::vector<CheckpointEntry> parts = reader.parts(*whole);
          for (size_t i = 0; i < parts.size(); ++i) {
            if (parts[i].key == entry.key)
              writer.add_part(whole->key, entry.dtype, whole->shape, whole->slices[i], bytes);
          }
        } else if (entry.dtype == kCheckpointString || entry.dtype == kCheckpointVariant) {
          const std::vector<std::string> strings = reader.read_strings(entry);
          const std::vector<std::string_view> views(strings.begin(), strings.end());
          if (entry.dtype == kCheckpointString) {
            writer.add_strings(entry.key, entry.shape, views);
          } else {
            writer.add_variants(entry.key, entry.shape, views);
          }
        } else {
          std::vector<std::byte> bytes(byte_size(entry));
          reader.read(entry, bytes);
          writer.add(entry.key, entry.dtype, entry.shape, bytes);
        }
      }
      writer.finish();
    }
    EXPECT_EQ(read_bytes(again + ".data-00000-of-00001"), read_bytes(prefix + ".data-00000-of-00001")) << prefix;
    EXPECT_EQ(read_bytes(again + ".index"), read_bytes(prefix + ".index")) << prefix;
    remove_checkpoint(again);
    EXPECT_TRUE(fs::is_empty(dir.path()));
    ++compared;
  }
  EXPECT_GT(compared, 40);
}

}  // namespace
}  // namespace runnel::io
