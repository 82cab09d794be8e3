// TFRecord files as a source that answers by number.
#include <atomic>

#include "runnel/data/pipeline.h"
#include "tests/data/helpers.h"
#include "tests/support/temp_dir.h"

namespace runnel::data {
namespace {

using ::testing::HasSubstr;

std::string write(const test::TempDir& dir, const std::string& name, int64_t first, int64_t n) {
  const std::string path = dir.file(name);
  io::TFRecordWriter writer(path);
  for (int64_t i = first; i < first + n; ++i) writer.write(std::to_string(i));
  writer.close();
  return path;
}
Ints numbers(const Dataset<Tensor>& d) {
  Ints all;
  for (const Tensor& t : d) {
    for (int64_t k = 0; k < t.num_elements(); ++k) all.push_back(std::stoll(std::string(t.data<Bytes>()[k].view())));
  }
  return all;
}

TEST(IndexedRecords, FilesAsOneSequence) {
  const test::TempDir dir;
  const std::string a = write(dir, "a", 0, 7), none = write(dir, "none", 0, 0), b = write(dir, "b", 7, 5);
  io::RecordIndex::build(b).save(b);
  const IndexedRecordDataset d({a, none, b});
  EXPECT_EQ(d.cardinality(), 12);
  EXPECT_EQ(d.element_spec().leaf().dtype, DType::string);
  EXPECT_EQ(numbers(d), iota(12));
  EXPECT_EQ(numbers(d.batch(5)), iota(12));
  EXPECT_EQ(numbers(d.skip(9)), iota(3, 9));
  EXPECT_EQ(numbers(IndexedRecordDataset(list_files(dir.file("[ab]"), false))), iota(12));
  EXPECT_EQ(IndexedRecordDataset(none).cardinality(), 0);
}

TEST(IndexedRecords, AShuffleOfEverythingHoldsNothing) {
  const test::TempDir dir;
  const std::string path = write(dir, "many", 0, 1000);
  const auto d = IndexedRecordDataset(path).shuffle(1000, 3).with_options({.byte_budget = 64}).batch(10);
  EXPECT_EQ(d.cardinality(), 100);
  Ints all = numbers(d);
  EXPECT_NE(all, iota(1000));
  const Ints second = numbers(d);
  EXPECT_NE(all, second) << "another order in each pass";
  auto it = d.make_iterator();
  EXPECT_THAT(it.next()->num_elements(), 10);
  EXPECT_LT(it.save().size(), 100u) << "a position";
  EXPECT_EQ(it.any().pipeline().budget.peak(), 0);
  // The same order as that of a buffer that holds all records.
  EXPECT_EQ(numbers(IndexedRecordDataset(path).shuffle(1000, 3)), numbers(TFRecordDataset(path).shuffle(1000, 3)));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, iota(1000));
  // Parts that share no record.
  const auto parts = IndexedRecordDataset(path).split({0.9, 0.1}, 1);
  EXPECT_EQ(parts[0].cardinality(), 900);
  Ints both = numbers(parts[0]);
  for (const int64_t n : numbers(parts[1])) both.push_back(n);
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, iota(1000));
}

TEST(IndexedRecords, RestoredAnywhere) {
  const test::TempDir dir;
  const std::string path = write(dir, "records", 0, 40);
  const auto d = IndexedRecordDataset(path).shuffle(40).map([](Tensor x) { return x; }, 2).batch(3).prefetch(2);
  auto it = d.make_iterator();
  for (int k = 0; k < 5; ++k) it.next();
  auto resumed = d.make_iterator();
  resumed.restore(it.save());
  while (const auto expected = it.next()) {
    EXPECT_EQ(resumed.next()->to_vector<std::string>(), expected->to_vector<std::string>());
  }
  EXPECT_FALSE(resumed.next());
}

TEST(IndexedRecords, ErrorsNameFileRecordAndOffset) {
  const test::TempDir dir;
  const std::string path = write(dir, "damaged", 0, 5);
  io::RecordIndex::build(path).save(path);
  std::string bytes = test::read_text(path);
  bytes[2 * 17 + 12] ^= 1;  // the data of record 2
  Env::posix().write_file(path, as_bytes(bytes));
  auto it = IndexedRecordDataset(path).make_iterator();
  EXPECT_EQ(it.next()->item<std::string>(), "0");
  EXPECT_EQ(it.next()->item<std::string>(), "1");
  expect_error([&] { it.next(); }, Code::data_loss, "damaged: record 2 at byte 34: bad data checksum");
  EXPECT_EQ(it.next()->item<std::string>(), "3");
  const auto count = std::make_shared<std::atomic<int64_t>>(0);
  EXPECT_EQ(numbers(IndexedRecordDataset(path).ignore_errors(count)), (Ints{0, 1, 3, 4}));
  EXPECT_EQ(*count, 1);
  Env::posix().write_file(path, as_bytes(bytes + "more"));
  expect_error([&] { IndexedRecordDataset{path}; }, Code::failed_precondition, "runnel records index");
  expect_error([&] { IndexedRecordDataset{dir.file("absent")}; }, Code::not_found, "absent");
  const std::string packed = dir.file("packed");
  io::TFRecordWriter writer(packed, {.compression = io::Compression::gzip});
  writer.write("x");
  writer.close();
  expect_error([&] { IndexedRecordDataset{packed}; }, Code::failed_precondition, "is compressed");
}

}  // namespace
}  // namespace runnel::data
