// Dense tables, and tables whose values are vectors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using testing::ElementsAre;

Tensor longs(const std::vector<int64_t>& values) { return Tensor::of(values); }

lookup::DenseHashTable small_table() {
  return lookup::DenseHashTable(DType::int64, DType::int64, -1, -2, -3, {.initial_num_buckets = 4});
}

TEST(DenseHashTables, AreFilledAskedAndEmptied) {
  lookup::DenseHashTable table(DType::string, DType::int64, -1, "", "$");
  table.insert({"a", "b", "c"}, {0, 1, 2});
  table.remove(Tensor{"c"});
  EXPECT_THAT(table.lookup({"a", "b", "c", "d"}).to_vector<int64_t>(), ElementsAre(0, 1, -1, -1));
  EXPECT_EQ(table.size(), 2);
  table.insert_or_assign(Tensor{"b"}, Tensor{int64_t{7}});
  table.erase(Tensor{"x"});
  EXPECT_EQ(table[Tensor("b")].item<int64_t>(), 7);
  EXPECT_EQ(table.size(), 2);
  EXPECT_EQ(table.export_contents().keys.shape(), (Shape{131072, 1}));
}

// A key stands in the bucket of its hash (of an integer, the integer), or 1, 3, 6, ... further on.
TEST(DenseHashTables, HaveTheirBucketsWhereTensorFlowHasThem) {
  lookup::DenseHashTable table = small_table();
  table.insert(longs({5, 1, 4}), longs({50, 10, 40}));  // 5 and 1 want the same
  auto all = table.export_contents();
  EXPECT_EQ(all.keys.shape(), (Shape{4, 1}));
  EXPECT_THAT(all.keys.to_vector<int64_t>(), ElementsAre(4, 5, 1, -2));
  EXPECT_THAT(all.values.to_vector<int64_t>(), ElementsAre(40, 50, 10, 0));
  table.remove(longs({5}));
  EXPECT_THAT(table.export_contents().keys.to_vector<int64_t>(), ElementsAre(4, -3, 1, -2));
  EXPECT_THAT(table.lookup(longs({1, 5})).to_vector<int64_t>(), ElementsAre(10, -1));
  table.insert(longs({9, 3}), longs({90, 30}));  // four keys are more than 0.8 of four
  EXPECT_THAT(table.export_contents().keys.to_vector<int64_t>(), ElementsAre(-2, 1, 9, 3, 4, -2, -2, -2));
  EXPECT_EQ(table.size(), 4);
}

TEST(DenseHashTables, WithoutAnEmptyBucketStillAnswer) {
  lookup::DenseHashTable table = small_table();
  for (int64_t key = 0; key < 40; ++key) {  // each leaves a deleted key
    table.insert(longs({key}), longs({key}));
    table.remove(longs({key}));
  }
  EXPECT_THAT(table.export_contents().keys.to_vector<int64_t>(), ElementsAre(-3, -3, -3, -3));
  EXPECT_EQ(table.lookup(longs({7})).to_vector<int64_t>(), (std::vector<int64_t>{-1}));
  table.insert(longs({7}), longs({70}));
  EXPECT_EQ(table.lookup(longs({7})).to_vector<int64_t>(), (std::vector<int64_t>{70}));
}

TEST(DenseHashTables, HaveVectorsAsKeysAndValues) {
  lookup::DenseHashTable table(DType::int32, DType::float32, Tensor{-1.f, -2.f}, Tensor{0, 0}, Tensor{0, -1},
                               {.initial_num_buckets = 8});
  table.insert(Tensor{{1, 2}, {2, 1}}, Tensor{{1.f, 2.f}, {3.f, 4.f}});
  EXPECT_TRUE(reduce_all(equal(table.lookup(Tensor{{2, 1}, {5, 5}}), Tensor{{3.f, 4.f}, {-1.f, -2.f}})).item<bool>());
  expect_error([&] { table.lookup(Tensor{{1, 2, 3}}); }, Code::invalid_argument, "does not end so: [1,3]");
  expect_error(
      [&] {
        table.insert(Tensor{{1, 2}}, Tensor{{1.f}});
      },
      Code::invalid_argument, "to keys of shape [1,2] belong values of shape [1,2], got [1,1]");
}

TEST(DenseHashTables, RefuseTheirMarksAndChangeNothing) {
  lookup::DenseHashTable table = small_table();
  expect_error(
      [&] {
        table.insert(longs({1, -2}), longs({1, 2}));
      },
      Code::invalid_argument, "Using the empty_key as a table key is not allowed");
  expect_error([&] { table.remove(longs({-3})); }, Code::invalid_argument,
               "Using the deleted_key as a table key is not allowed");
  expect_error([&] { table.lookup(longs({-3})); }, Code::invalid_argument, "deleted_key");
  expect_error([&] { table.remove(Tensor(int64_t{1})); }, Code::invalid_argument, "takes a list of keys");
  EXPECT_EQ(table.size(), 0);
  expect_error(
      [&] {
        table.lookup(reshape(longs({1, 2, 3, 4}), {2, 2}));
      },
      Code::invalid_argument, "takes a list of keys of shape [], got [2,2]");
  expect_error([] { lookup::DenseHashTable(DType::int64, DType::int64, -1, 0, 0); }, Code::invalid_argument,
               "Empty and deleted keys cannot be equal");
  expect_error([] { lookup::DenseHashTable(DType::int64, DType::int64, -1, 0, 1, {.initial_num_buckets = 5}); },
               Code::invalid_argument, "at least 4 and a power of 2, got: 5");
  expect_error([] { lookup::DenseHashTable(DType::float32, DType::int64, -1, 0.f, 1.f); }, Code::invalid_argument,
               "no table from float32");
}

TEST(DenseHashTables, ImportTheirBuckets) {
  lookup::DenseHashTable table = small_table();
  const auto import_rows = [&](const Tensor& keys, const Tensor& values) {
    call_op("LookupTableImportV2", {table.handle(), keys, values});
  };
  const Tensor keys = reshape(longs({-2, 9, 1, -3}), {4, 1}), values = reshape(longs({0, 90, 10, 0}), {4, 1});
  import_rows(keys, values);
  EXPECT_EQ(table.size(), 2);
  EXPECT_THAT(table.lookup(longs({1, 9, 2})).to_vector<int64_t>(), ElementsAre(10, 90, -1));
  expect_error(
      [&] {
        import_rows(longs({1, 2, 3, 4}), longs({1, 2, 3, 4}));
      },
      Code::invalid_argument, "keys of shape [n,1] and values of shape [n,1], got [4] and [4]");
  expect_error([&] { import_rows(keys.rows(0, 3), values.rows(0, 3)); }, Code::invalid_argument, "power of 2, got: 3");
  EXPECT_EQ(table.size(), 2);
}

TEST(DenseHashTables, AreFoundByTheirName) {
  const auto named = [](const PartialShape& shape) {
    return call_op("MutableDenseHashTableV2", {Tensor(int64_t{-1}), Tensor(int64_t{-2})},
                   {{"shared_name", std::string("lookup_dense_test")},
                    {"value_dtype", DType::float32},
                    {"value_shape", shape}})[0];
  };
  call_op("LookupTableInsertV2", {named({2}), longs({4}), Tensor{{1.f, 2.f}}});
  EXPECT_EQ(call_op("LookupTableSizeV2", {named({2})})[0].item<int64_t>(), 1);
  expect_error([&] { named({}); }, Code::invalid_argument,
               "maps int64 to float32[2], this asks for another table from int64 to float32");
}

TEST(TablesOfVectors, HaveARowForEachKey) {
  lookup::MutableHashTable table(DType::string, DType::float32, Tensor{-1.f, -2.f});
  table.insert({"a", "b"}, Tensor{{1.f, 2.f}, {3.f, 4.f}});
  table.insert(Tensor{"b"}, Tensor{{5.f, 6.f}});
  const Tensor found = table.lookup(Tensor{{"b"}, {"x"}});
  EXPECT_EQ(found.shape(), (Shape{2, 1, 2}));
  EXPECT_THAT(found.to_vector<float>(), ElementsAre(5, 6, -1, -2));
  EXPECT_THAT(table.lookup({"x", "a"}, Tensor{{7.f, 8.f}, {9.f, 10.f}}).to_vector<float>(), ElementsAre(7, 8, 1, 2));
  for (int i = 0; i < 60; ++i) table.insert(Tensor{std::to_string(i)}, Tensor{{static_cast<float>(i), 0.f}});
  for (int i = 0; i < 59; ++i) table.remove(Tensor{std::to_string(i)});  // the rows of others move
  const auto all = table.export_contents();
  EXPECT_THAT(all.keys.to_vector<std::string>(), ElementsAre("a", "b", "59"));
  EXPECT_EQ(all.values.shape(), (Shape{3, 2}));
  EXPECT_THAT(all.values.to_vector<float>(), ElementsAre(1, 2, 5, 6, 59, 0));
  EXPECT_THAT(table.lookup({"59", "b"}).to_vector<float>(), ElementsAre(59, 0, 5, 6));
  expect_error([&] { table.insert(Tensor{"a"}, Tensor{1.f}); }, Code::invalid_argument,
               "to keys of shape [1] belong values of shape [1,2], got [1]");
  expect_error([&] { table.lookup(Tensor{"x"}, Tensor{1.f}); }, Code::invalid_argument, "the shape of one value, [2]");
  expect_error([] { lookup::MutableHashTable(DType::string, DType::float32, Tensor{{1.f}}); }, Code::invalid_argument,
               "must be a scalar or a vector, got shape [1,1]");
  expect_error([] { lookup::MutableHashTable(DType::string, DType::int64, Tensor(1.f)); }, Code::invalid_argument,
               "default_value is float32, the values are int64");
}

// The shape of what is looked up is known from the table, where a graph captures it.
TEST(TablesOfVectors, TellGraphsTheirShapes) {
  lookup::MutableHashTable table(DType::string, DType::float32, Tensor{-1.f, -2.f});
  PartialShape seen, exported;
  const auto traced = function(
      [&](const Tensor& keys) {
        const Tensor found = table.lookup(keys);
        seen = found.partial_shape();
        exported = table.export_contents().values.partial_shape();
        return found;
      },
      {.input_signature = {TensorSpec({kUnknownDim, 3}, DType::string)}});
  EXPECT_EQ(traced(Tensor{{"a", "b", "c"}}).shape(), (Shape{1, 3, 2}));
  EXPECT_EQ(seen.str(), "[?,3,2]");
  EXPECT_EQ(exported.str(), "[?,2]");
}

TEST(TablesOfVectors, AreMadeByOps) {
  const auto make = [](const PartialShape& shape) {
    return call_op("AnonymousMutableHashTableOfTensors", {},
                   {{"key_dtype", DType::int64}, {"value_dtype", DType::bool_}, {"value_shape", shape}})[0];
  };
  const Tensor table = make({2});
  call_op("LookupTableInsertV2", {table, longs({4}), Tensor{{true, false}}});
  EXPECT_EQ(call_op("LookupTableFindV2", {table, longs({4}), Tensor{false, false}})[0].to_vector<bool>(),
            (std::vector<bool>{true, false}));
  expect_error([&] { make({}); }, Code::invalid_argument, "Default value must be a vector, got shape []");
}

}  // namespace
}  // namespace runnel
