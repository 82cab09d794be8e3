#include <gtest/gtest.h>

#include <sstream>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

std::string text(const auto& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(Sparse, ToDenseAndBack) {
  const SparseTensor s{Tensor::of<int64_t>({0, 1, 2, 0}, {2, 2}), Tensor{5.f, 6.f}, Tensor::of<int64_t>({3, 2})};
  EXPECT_EQ(sparse::to_dense(s).to_vector<float>(), (std::vector<float>{0, 5, 0, 0, 6, 0}));
  EXPECT_EQ(sparse::to_dense(s, Tensor(-1.f)).to_vector<float>(), (std::vector<float>{-1, 5, -1, -1, 6, -1}));
  const SparseTensor back = sparse::from_dense(sparse::to_dense(s));
  EXPECT_EQ(back.indices.to_vector<int64_t>(), s.indices.to_vector<int64_t>());
  EXPECT_EQ(back.values.to_vector<float>(), s.values.to_vector<float>());
  EXPECT_EQ(back.dense_shape.to_vector<int64_t>(), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(sparse::from_dense(Tensor{"", "a"}).values.to_vector<std::string>(), (std::vector<std::string>{"a"}));
  EXPECT_EQ(sparse::to_dense(sparse::eye(2, 3)).to_vector<float>(), (std::vector<float>{1, 0, 0, 0, 1, 0}));
}

TEST(Sparse, ValidatesAndReorders) {
  const SparseTensor s{Tensor::of<int64_t>({2, 0, 1}, {3, 1}), Tensor{1, 2, 3}, Tensor::of<int64_t>({3})};
  expect_error([&] { sparse::to_dense(s); }, Code::invalid_argument,
               "[SparseToDense] indices[1] = [0] is out of order");
  EXPECT_EQ(sparse::to_dense(s, {}, false).to_vector<int32_t>(), (std::vector<int32_t>{2, 3, 1}));
  EXPECT_EQ(sparse::to_dense(sparse::reorder(s)).to_vector<int32_t>(), (std::vector<int32_t>{2, 3, 1}));
  SparseTensor outside = s;
  outside.dense_shape = Tensor::of<int64_t>({2});
  expect_error([&] { sparse::to_dense(outside, {}, false); }, Code::invalid_argument,
               "indices[0] = [2] is out of bounds: the shape is [2]");
}

TEST(Sparse, Prints) {
  const SparseTensor s{Tensor::of<int64_t>({1}, {1, 1}), Tensor{5}, Tensor::of<int64_t>({3})};
  EXPECT_EQ(text(s),
            "SparseTensor(indices=tf.Tensor([[1]], shape=(1, 1), dtype=int64), values=tf.Tensor([5], shape=(1,), "
            "dtype=int32), dense_shape=tf.Tensor([3], shape=(1,), dtype=int64))");
}

TEST(Slices, AddUp) {
  const IndexedSlices s{Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}, Tensor{2, 0, 2}, Tensor{3, 2}};
  EXPECT_EQ(to_dense(s).to_vector<float>(), (std::vector<float>{3, 4, 0, 0, 6, 8}));
  EXPECT_EQ(to_dense(merge_slices(s, s)).to_vector<float>(), (std::vector<float>{6, 8, 0, 0, 12, 16}));
}

TEST(Ragged, KnowsItsRows) {
  const RaggedTensor r = RaggedTensor::of<int>({{1, 2}, {}, {3}});
  EXPECT_EQ(r.row_splits().to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_EQ(r.row_lengths().to_vector<int64_t>(), (std::vector<int64_t>{2, 0, 1}));
  EXPECT_EQ(r.nrows().item<int64_t>(), 3);
  EXPECT_EQ(r.shape().str(), "[3,?]");
  EXPECT_EQ(r[0].to_vector<int32_t>(), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(r[1].num_elements(), 0);
  EXPECT_EQ(r[-1].to_vector<int32_t>(), (std::vector<int32_t>{3}));
  EXPECT_EQ(r.values().to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(text(r), "<tf.RaggedTensor [[1, 2], [], [3]]>");
  expect_error([&] { r[3]; }, Code::out_of_range, "[RaggedTensor] index 3 is out of range for 3 rows");
  EXPECT_EQ(text(RaggedTensor::of<double>({{1.5}, {2, 3}})), "<tf.RaggedTensor [[1.5], [2.0, 3.0]]>");
  EXPECT_EQ(text(RaggedTensor::of<std::string>({{"a", "b"}, {"c"}})), "<tf.RaggedTensor [[b'a', b'b'], [b'c']]>");
}

TEST(Ragged, FromLengthsSplitsAndTensors) {
  const Tensor values{1.f, 2.f, 3.f};
  EXPECT_EQ(text(RaggedTensor::from_row_lengths(values, Tensor{1, 2})), "<tf.RaggedTensor [[1.0], [2.0, 3.0]]>");
  EXPECT_EQ(text(RaggedTensor::from_row_splits(values, Tensor{0, 3})), "<tf.RaggedTensor [[1.0, 2.0, 3.0]]>");
  EXPECT_EQ(text(RaggedTensor::from_tensor(Tensor{{1, 2}, {3, 4}})), "<tf.RaggedTensor [[1, 2], [3, 4]]>");
  EXPECT_EQ(text(RaggedTensor::from_tensor(Tensor{{1, 2}, {3, 4}}, Tensor{2, 1})), "<tf.RaggedTensor [[1, 2], [3]]>");
  expect_error(
      [&] {
        RaggedTensor::from_row_splits(values, Tensor{0, 2});
      },
      Code::invalid_argument, "[RaggedTensor] row_splits end at 2, there are 3 values");
  expect_error(
      [&] {
        RaggedTensor::from_row_splits(values, Tensor{1, 3});
      },
      Code::invalid_argument, "start with 1, not 0");
  expect_error(
      [&] {
        RaggedTensor::from_row_splits(values, Tensor{0, 2, 1, 3});
      },
      Code::invalid_argument, "fall: 1 after 2");
}

TEST(Ragged, ToTensor) {
  const RaggedTensor r = RaggedTensor::of<int>({{1, 2}, {}, {3}});
  EXPECT_EQ(r.to_tensor().to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 0, 0, 3, 0}));
  EXPECT_EQ(r.to_tensor(Tensor(-1)).to_vector<int32_t>(), (std::vector<int32_t>{1, 2, -1, -1, 3, -1}));
  EXPECT_EQ(r.to_tensor({}, {2, 3}).to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 0, 0, 0, 0}));
  EXPECT_EQ(r.to_tensor({}, {-1, 1}).to_vector<int32_t>(), (std::vector<int32_t>{1, 0, 3}));
  const RaggedTensor rows = RaggedTensor::from_row_splits(Tensor{{1, 2}, {3, 4}, {5, 6}}, Tensor{0, 1, 3});
  EXPECT_EQ(rows.to_tensor(Tensor{7, 8}).to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 7, 8, 3, 4, 5, 6}));
  const RaggedTensor words = RaggedTensor::of<std::string>({{"a"}, {"b", "c"}});
  EXPECT_EQ(words.to_tensor().to_vector<std::string>(), (std::vector<std::string>{"a", "", "b", "c"}));
}

TEST(Ragged, Nests) {
  const RaggedTensor r = RaggedTensor::of<int>({{{1}, {2, 3}}, {}, {{4, 5, 6}}});
  EXPECT_EQ(r.ragged_rank(), 2);
  EXPECT_EQ(text(r), "<tf.RaggedTensor [[[1], [2, 3]], [], [[4, 5, 6]]]>");
  EXPECT_EQ(text(r.ragged_values()), "<tf.RaggedTensor [[1], [2, 3], [4, 5, 6]]>");
  EXPECT_EQ(text(r.ragged_row(0)), "<tf.RaggedTensor [[1], [2, 3]]>");
  EXPECT_EQ(text(r.ragged_row(-1)), "<tf.RaggedTensor [[4, 5, 6]]>");
  EXPECT_EQ(text(r.ragged_row(1)), "<tf.RaggedTensor []>");
  EXPECT_EQ(r.to_tensor().shape().str(), "[3,2,3]");
  EXPECT_EQ(r.to_tensor().to_vector<int32_t>(),
            (std::vector<int32_t>{1, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 0, 0, 0}));
  expect_error([&] { r.values(); }, Code::failed_precondition, "ask for ragged_values()");
}

TEST(Ragged, GradientsReachTheValues) {
  const Tensor values = Tensor::of<double>({1, 2, 3});
  GradientTape tape;
  tape.watch(values);
  const Tensor dense = RaggedTensor::from_row_splits(values, Tensor{0, 1, 3}).to_tensor();
  const Tensor g = tape.gradient(dense, values, Tensor::of<double>({1, 2, 3, 4}, {2, 2}));
  EXPECT_EQ(g.to_vector<double>(), (std::vector<double>{1, 3, 4}));
}

}  // namespace
}  // namespace runnel
