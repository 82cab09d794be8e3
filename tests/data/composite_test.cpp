// Elements that hold SparseTensors and RaggedTensors.
#include "tests/data/helpers.h"
#include "tests/support/temp_dir.h"

namespace runnel::data {
namespace {

// A SparseTensor of rank 1: values[k] at k.
SparseTensor sparse_of(const Ints& values) {
  const auto n = static_cast<int64_t>(values.size());
  return {Tensor::of<int64_t>(iota(n), Shape{n, 1}), Tensor::of<int64_t>(values, Shape{n}), Tensor{n}};
}
std::string text(const SparseTensor& s) {
  const auto list = [](const Tensor& t) { return ::testing::PrintToString(ints(t)); };
  return list(s.indices) + list(s.values) + list(s.dense_shape);
}
std::string text(const SparseTensor& s, const Ints& indices, const Ints& values, const Ints& shape) {
  EXPECT_EQ(s.indices.shape(), (Shape{static_cast<int64_t>(values.size()), static_cast<int64_t>(shape.size())}));
  return ::testing::PrintToString(indices) + ::testing::PrintToString(values) + ::testing::PrintToString(shape);
}

// The numbers 0..n-1, each as that many copies of itself in a sparse vector.
Dataset<SparseTensor> sparse_rows(int64_t n) {
  return range(n).map([](Tensor x) {
    const auto k = x.item<int64_t>();
    return sparse_of(Ints(static_cast<size_t>(k), k));
  });
}
// [[], [0]], [[0], [1]], [[0, 0], [2]], ...
Dataset<RaggedTensor> ragged_rows(int64_t n) {
  return range(n).map([](Tensor x) {
    const auto k = x.item<int64_t>();
    return RaggedTensor::of<int64_t>(std::vector<Ints>{Ints(static_cast<size_t>(k), 0), Ints{k}});
  });
}

TEST(Composite, ABatchOfSparseTensorsIsOneWithADimensionMore) {
  std::vector<std::string> got;
  for (const SparseTensor& s : sparse_rows(5).batch(3)) got.push_back(text(s));
  ASSERT_EQ(got.size(), 2u);
  auto it = sparse_rows(5).batch(3).make_iterator();
  const SparseTensor first = *it.next(), second = *it.next();
  EXPECT_EQ(text(first), text(first, {1, 0, 2, 0, 2, 1}, {1, 2, 2}, {3, 2}));
  EXPECT_EQ(text(second), text(second, {0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2, 1, 3}, {3, 3, 3, 4, 4, 4, 4}, {2, 4}));
  // Batches of batches, in parallel, over a stream.
  const auto twice =
      sparse_rows(4).filter([](const SparseTensor&) { return true; }).batch(2, {.num_parallel_calls = 2});
  const SparseTensor cube = *twice.batch(2).make_iterator().next();
  EXPECT_EQ(text(cube),
            text(cube, {0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 2}, {1, 2, 2, 3, 3, 3}, {2, 2, 3}));
}

TEST(Composite, ABatchOfRaggedTensorsIsOneWithARaggedDimensionMore) {
  auto it = ragged_rows(3).batch(2).make_iterator();
  EXPECT_EQ(it.next()->str(), "<tf.RaggedTensor [[[], [0]], [[0], [1]]]>");
  EXPECT_EQ(it.next()->str(), "<tf.RaggedTensor [[[0, 0], [2]]]>");
  EXPECT_EQ(ragged_rows(4).batch(2).batch(2).make_iterator().next()->str(),
            "<tf.RaggedTensor [[[[], [0]], [[0], [1]]], [[[0, 0], [2]], [[0, 0, 0], [3]]]]>");
  const auto narrow = ragged_rows(2).map(
      [](const RaggedTensor& r) { return RaggedTensor::from_row_splits(r.values(), cast(r.row_splits(), int32)); });
  EXPECT_EQ(narrow.batch(2).make_iterator().next()->row_splits().dtype(), int32);
}

TEST(Composite, UnbatchAndRebatchTakeThemApart) {
  const auto sparse = sparse_rows(5).batch(2);
  std::vector<std::string> rows;
  for (const SparseTensor& s : sparse.unbatch()) rows.push_back(text(s));
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[1], text(sparse_of({1})));
  auto three = sparse.rebatch(3).make_iterator();
  const SparseTensor first = *three.next(), second = *three.next();
  EXPECT_EQ(text(first), text(first, {1, 0, 2, 0, 2, 1}, {1, 2, 2}, {3, 3}));
  EXPECT_EQ(text(second), text(second, {0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2, 1, 3}, {3, 3, 3, 4, 4, 4, 4}, {2, 4}));

  const auto ragged = ragged_rows(5).batch(2);
  std::string all;
  for (const RaggedTensor& r : ragged.unbatch()) all += r.str().substr(17);
  EXPECT_EQ(all, "[[], [0]]>[[0], [1]]>[[0, 0], [2]]>[[0, 0, 0], [3]]>[[0, 0, 0, 0], [4]]>");
  EXPECT_EQ(ragged.rebatch(3).make_iterator().next()->str(),
            "<tf.RaggedTensor [[[], [0]], [[0], [1]], [[0, 0], [2]]]>");
  // A row of one ragged dimension is a tensor.
  const auto vectors = AnyDataset(ragged_rows(3)).unbatch().as<Tensor>();
  EXPECT_EQ(ints(vectors), (Ints{0, 0, 1, 0, 0, 2}));
  EXPECT_EQ(vectors.ragged_batch(6).make_iterator().next()->str(),
            "<tf.RaggedTensor [[], [0], [0], [1], [0, 0], [2]]>");
}

TEST(Composite, RaggedBatchesOfThemAndPaddedOnes) {
  EXPECT_EQ(ragged_rows(2).ragged_batch(2).make_iterator().next()->str(), "<tf.RaggedTensor [[[], [0]], [[0], [1]]]>");
  expect_error([] { ragged_rows(2).padded_batch(2).make_iterator().next(); }, Code::invalid_argument,
               "[padded_batch] takes tensors alone, not elements RaggedTensor(");
  expect_error([] { sparse_rows(2).padded_batch(2).make_iterator().next(); }, Code::invalid_argument, "SparseTensor(");
}

TEST(Composite, SlicesOfThem) {
  const RaggedTensor words = RaggedTensor::of<std::string>({{"a", "b"}, {}, {"c"}});
  // In any order.
  const SparseTensor marks{Tensor{{int64_t{2}, int64_t{1}}, {int64_t{0}, int64_t{0}}}, Tensor{7, 5},
                           Tensor{int64_t{3}, int64_t{2}}};
  const auto d = AnyDataset::from_tensor_slices(Nest(std::tuple{Nest(words), Nest(marks), Nest(Tensor{1, 2, 3})}));
  EXPECT_EQ(d.cardinality(), 3);
  auto it = d.make_iterator();
  const Nest first = *it.next();
  EXPECT_EQ(first[0].leaf().to_vector<std::string>(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(text(first[1].as<SparseTensor>()), text(first[1].as<SparseTensor>(), {0}, {5}, {2}));
  EXPECT_EQ(first[2].leaf().item<int>(), 1);
  EXPECT_EQ((*it.next())[1].as<SparseTensor>().values.dim(0), 0);
  EXPECT_EQ((*it.next())[1].as<SparseTensor>().values.item<int>(), 7);
  expect_error(
      [&] {
        AnyDataset::from_tensor_slices(Nest(std::tuple{Nest(words), Nest(Tensor{1, 2})}));
      },
      Code::invalid_argument, "have 3 and 2 rows");
}

TEST(Composite, ShuffleCachePrefetchAndRestore) {
  const test::TempDir dir;
  const auto all = [](const Dataset<RaggedTensor>& d) {
    std::vector<std::string> texts;
    for (const RaggedTensor& r : d) texts.push_back(r.str());
    return texts;
  };
  const auto plain = all(ragged_rows(8).batch(3));
  EXPECT_EQ(all(ragged_rows(8)
                    .cache()
                    .shuffle(8, 3)
                    .map([](const RaggedTensor& r) { return r; }, 2)
                    .cache()
                    .prefetch(2)
                    .batch(3))
                .size(),
            3u);
  const auto filed = ragged_rows(8).batch(3).cache(dir.file("ragged"));
  EXPECT_EQ(all(filed), plain);
  EXPECT_EQ(all(filed), plain) << "from the file";
  const auto sparse = sparse_rows(6).batch(2).cache(dir.file("sparse")).repeat(2);
  std::vector<std::string> twice;
  for (const SparseTensor& s : sparse) twice.push_back(text(s));
  ASSERT_EQ(twice.size(), 6u);
  EXPECT_TRUE(std::equal(twice.begin(), twice.begin() + 3, twice.begin() + 3));

  const auto d = ragged_rows(9).cache().shuffle(4, 1).batch(2).unbatch().batch(4);
  auto it = d.make_iterator();
  it.next();
  const std::string state = it.save();
  auto resumed = d.make_iterator();
  resumed.restore(state);
  while (const auto expected = it.next()) EXPECT_EQ(resumed.next()->str(), expected->str());
  EXPECT_FALSE(resumed.next());
}

TEST(Composite, ParsedExamplesInBatches) {
  std::vector<Bytes> records;
  for (int64_t i = 0; i < 5; ++i) {
    const io::Example e{{{{"n", io::Int64List{{i}}}, {"v", io::Int64List{Ints(static_cast<size_t>(i % 3), i)}}}}};
    records.emplace_back(e.serialize());
  }
  const io::ExampleSpec spec{{"n", io::FixedLenFeature{{}, int64}}, {"v", io::VarLenFeature{int64}}};
  const auto parsed = from_tensor_slices(Tensor::of<Bytes>(records)).map([spec](Tensor record) {
    return io::parse_single_example(record, spec);
  });
  const std::vector<TensorSpec> leaves = nest::flatten(parsed.batch(2).element_spec());
  ASSERT_EQ(leaves.size(), 4u);
  EXPECT_EQ(leaves[0].shape.str(), "[?]");
  EXPECT_EQ(leaves[3].shape.str(), "[2]");
  int64_t rows = 0;
  for (const Nest& batch : parsed.shuffle(5, 1).batch(2).prefetch(1)) {
    const auto v = batch["v"].as<SparseTensor>();
    const Tensor n = batch["n"].leaf();
    EXPECT_EQ(v.dense_shape.data<int64_t>()[0], n.dim(0));
    for (int64_t k = 0; k < v.values.dim(0); ++k)
      EXPECT_EQ(v.values.data<int64_t>()[k], n.data<int64_t>()[v.indices.data<int64_t>()[2 * k]]);
    rows += n.dim(0);
  }
  EXPECT_EQ(rows, 5);
  // Parsed in batches or batched after: the same.
  const Nest at_once = io::parse_example(Tensor::of<Bytes>(records), spec);
  const Nest later = *parsed.batch(5).make_iterator().next();
  EXPECT_EQ(text(later["v"].as<SparseTensor>()), text(at_once["v"].as<SparseTensor>()));
}

TEST(Composite, SpecsSayWhatComesOut) {
  const auto flat = [](const ElementSpec& spec) {
    std::string all;
    for (const TensorSpec& s : nest::flatten(spec)) all += s.shape.str() + " ";
    return all;
  };
  const SparseTensor s = sparse_of({4, 5});
  const auto sparse = from_tensors(s);
  EXPECT_EQ(flat(sparse.batch(3).element_spec()), "[?,2] [?] [2] ");
  EXPECT_EQ(flat(sparse.batch(3).unbatch().element_spec()), "[?,1] [?] [1] ");
  const auto ragged = from_tensors(RaggedTensor::of<int>({{1}, {2, 3}}));
  EXPECT_EQ(flat(ragged.batch(3, true).element_spec()), "[?] [?] [4] ");
  EXPECT_EQ(flat(ragged.unbatch().element_spec()), "[?] ");
  EXPECT_EQ(ragged.unbatch().cardinality(), 2);
  EXPECT_EQ(flat(from_tensors(Tensor{1, 2}).ragged_batch(2).element_spec()), "[?] [?] ");
  EXPECT_EQ(flat(from_tensors(std::tuple{Tensor{1, 2}, Tensor(3)})
                     .ragged_batch<std::tuple<RaggedTensor, Tensor>>(2)
                     .element_spec()),
            "[?] [?] [?] ");
}

TEST(Composite, WhatCannotBeBatchedSaysSo) {
  const SparseTensor vector = sparse_of({1}),
                     matrix{Tensor{{int64_t{0}, int64_t{0}}}, Tensor::of<int64_t>({1}), Tensor{int64_t{1}, int64_t{1}}};
  expect_error([&] { from_tensors(vector).concatenate(from_tensors(matrix)).batch(2).make_iterator().next(); },
               Code::invalid_argument, "rank 1 and 2");
  const IndexedSlices slices{Tensor{{1.f}}, Tensor{0}, Tensor{4, 1}};
  expect_error([&] { from_tensors(slices).batch(2).make_iterator().next(); }, Code::invalid_argument, "IndexedSlices");
}

}  // namespace
}  // namespace runnel::data
