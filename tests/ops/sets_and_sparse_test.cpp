#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using testing::ElementsAre;

SparseTensor sparse_of(const Tensor& dense) { return sparse::from_dense(dense); }

TEST(Sets, DenseAndSparse) {
  const Tensor a{{1, 2}, {3, 4}}, b{{2, 9}, {3, 4}};
  EXPECT_THAT(sets::intersection(a, b).values.to_vector<int>(), ElementsAre(2, 3, 4));
  EXPECT_THAT(sets::intersection(a, sparse_of(b)).values.to_vector<int>(), ElementsAre(2, 3, 4));
  EXPECT_THAT(sets::union_(sparse_of(a), sparse_of(b)).values.to_vector<int>(), ElementsAre(1, 2, 9, 3, 4));
  EXPECT_THAT(sets::difference(a, b).values.to_vector<int>(), ElementsAre(1));
  EXPECT_THAT(sets::difference(a, b, false).values.to_vector<int>(), ElementsAre(9));
  EXPECT_THAT(sets::size(sets::union_(a, b)).to_vector<int>(), ElementsAre(3, 2));
}

TEST(Sparse, ProductsFromBothSides) {
  const Tensor a{{1.f, 0.f, 2.f}, {0.f, 3.f, 0.f}}, b{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}};
  EXPECT_EQ(sparse::sparse_dense_matmul(sparse_of(a), b).to_vector<float>(), matmul(a, b).to_vector<float>());
  EXPECT_EQ(sparse::sparse_dense_matmul(transpose(b), sparse_of(transpose(a))).to_vector<float>(),
            matmul(transpose(b), transpose(a)).to_vector<float>());
  EXPECT_EQ(sparse::sparse_dense_matmul(transpose(b), sparse_of(a), false, true).to_vector<float>(),
            matmul(transpose(b), transpose(a)).to_vector<float>());
}

TEST(Sparse, ReshapedJoinedAndFilled) {
  const Tensor a{{1.f, 0.f, 2.f}, {0.f, 0.f, 0.f}, {0.f, 3.f, 0.f}};
  EXPECT_EQ(sparse::to_dense(sparse::reshape(sparse_of(a), {1, -1})).to_vector<float>(), a.to_vector<float>());
  const SparseTensor two = sparse::concat(1, {sparse_of(a), sparse_of(a)});
  EXPECT_EQ(sparse::to_dense(two).to_vector<float>(), concat({a, a}, 1).to_vector<float>());
  const SparseTensor wide = sparse::concat(0, {sparse_of(a), sparse_of(ones({1, 4}))}, true);
  EXPECT_THAT(wide.dense_shape.to_vector<int64_t>(), ElementsAre(4, 4));
  const sparse::FilledRows filled = sparse::fill_empty_rows(sparse_of(a), 9);
  EXPECT_THAT(filled.empty_row_indicator.to_vector<bool>(), ElementsAre(false, true, false));
  EXPECT_THAT(filled.sp_ordered_output.values.to_vector<float>(), ElementsAre(1, 2, 9, 3));
}

TEST(Sparse, SegmentsOfPickedRows) {
  const Tensor data{{1.f, 2.f}, {3.f, 4.f}};
  EXPECT_THAT(sparse::segment_sum(data, {0, 1, 1}, {0, 0, 1}).to_vector<float>(), ElementsAre(4, 6, 3, 4));
  EXPECT_THAT(sparse::segment_mean(data, {0, 1, 1}, {0, 0, 1}, Tensor(3)).to_vector<float>(),
              ElementsAre(2, 3, 3, 4, 0, 0));
}

TEST(Partition, ThereAndBack) {
  const Tensor x{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}, to{1, 0, 1};
  const auto parts = dynamic_partition(x, to, 2), places = dynamic_partition(range(3), to, 2);
  EXPECT_THAT(parts[1].to_vector<float>(), ElementsAre(1, 2, 5, 6));
  EXPECT_EQ(dynamic_stitch(places, parts).to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(batch_to_space(space_to_batch(reshape(x, {1, 3, 2}), {3}, {{0, 0}}), {3}, {{0, 0}}).to_vector<float>(),
            x.to_vector<float>());
}

TEST(Strings, JoinedAlongAxes) {
  const Tensor x{{"a", "b"}, {"c", "d"}};
  EXPECT_EQ(strings::reduce_join(x).item<std::string>(), "abcd");
  EXPECT_THAT(strings::reduce_join(x, 0, false, "-").to_vector<std::string>(), ElementsAre("a-c", "b-d"));
  EXPECT_THAT(
      strings::unicode_encode(strings::unicode_decode(Tensor{"h\xc3\xa9", "x"}), "UTF-8").to_vector<std::string>(),
      ElementsAre("h\xc3\xa9", "x"));
  EXPECT_THAT(strings::unicode_encode(Tensor{{104, 105}, {0x1f600, 33}}, "UTF-8").to_vector<std::string>(),
              ElementsAre("hi", "\xf0\x9f\x98\x80!"));
  EXPECT_EQ(io::decode_base64(io::encode_base64(Tensor("any \xff bytes"))).item<std::string>(), "any \xff bytes");
}

TEST(Image, PatchesAndBoxes) {
  const Tensor image = reshape(cast(range(1, 17), DType::float32), {1, 4, 4, 1});
  const Tensor patches = image::extract_patches(image, {1, 2, 2, 1}, {1, 2, 2, 1}, {1, 1, 1, 1}, "VALID");
  EXPECT_EQ(patches.shape(), (Shape{1, 2, 2, 4}));
  EXPECT_THAT(patches[0][0][1].to_vector<float>(), ElementsAre(3, 4, 7, 8));
  const Tensor boxes{{0.f, 0.f, 1.f, 1.f}, {0.f, 0.1f, 1.f, 1.1f}, {0.f, 10.f, 1.f, 11.f}}, scores{.9f, .75f, .95f};
  EXPECT_THAT(image::non_max_suppression(boxes, scores, 3).to_vector<int>(), ElementsAre(2, 0));
  const auto soft = image::non_max_suppression_with_scores(boxes, scores, 3, 1.0, 0.0, 0.5);
  EXPECT_THAT(soft.selected_indices.to_vector<int>(), ElementsAre(2, 0, 1));
}

TEST(Ragged, RangesRowsAndTheSparseForm) {
  const RaggedTensor r = ragged::range({0, 5, 8}, {3, 2, 8}, {1, -1, 1});
  EXPECT_EQ(r.str(), "<tf.RaggedTensor [[0, 1, 2], [5, 4, 3], []]>");
  EXPECT_EQ(ragged::gather(r, {2, 0}).str(), "<tf.RaggedTensor [[], [0, 1, 2]]>");
  EXPECT_EQ(ragged::gather(r, {{1}, {0}}).str(), "<tf.RaggedTensor [[[5, 4, 3]], [[0, 1, 2]]]>");
  const SparseTensor s = ragged::to_sparse(r);
  EXPECT_THAT(s.dense_shape.to_vector<int64_t>(), ElementsAre(3, 3));
  EXPECT_EQ(ragged::from_sparse(s).str(), r.str());
  EXPECT_EQ(ragged::from_value_rowids(Tensor{1, 2, 3}, Tensor{0, 2, 2}, Tensor(4)).str(),
            "<tf.RaggedTensor [[1], [], [2, 3], []]>");
  EXPECT_THROW(ragged::from_sparse({Tensor{{int64_t{0}, int64_t{1}}}, Tensor{1}, Tensor{int64_t{1}, int64_t{2}}}),
               Error);
}

TEST(Sparse, Counts) {
  const SparseTensor counts = sparse::bincount(Tensor{{1, 1, 4}, {0, 2, 2}}, {.axis = -1});
  EXPECT_EQ(sparse::to_dense(counts).to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 0, 0, 1, 1, 0, 2, 0, 0}));
}

TEST(Partition, ReversedAndDifferent) {
  EXPECT_THAT(reverse_sequence(Tensor{{1, 2, 3}, {4, 5, 6}}, {2, 3}, 1).to_vector<int>(),
              ElementsAre(2, 1, 3, 6, 5, 4));
  const ListDifference left = setdiff1d(Tensor{1, 2, 3}, Tensor{2});
  EXPECT_THAT(left.out.to_vector<int>(), ElementsAre(1, 3));
  EXPECT_THAT(left.idx.to_vector<int>(), ElementsAre(0, 2));
  EXPECT_THAT(tensor_diag_part(tensor_diag(Tensor{1.f, 2.f})).to_vector<float>(), ElementsAre(1, 2));
}

// Numbers given by TensorFlow 2.15.
TEST(Ctc, LossAndItsDerivative) {
  const Tensor logits = reshape(linspace(-1.0, 1.0, 32), {4, 2, 4});
  const Tensor x = cast(logits, DType::float64);
  const nn::CtcOptions last{.blank_index = -1};
  GradientTape tape;
  tape.watch(x);
  const Tensor loss = nn::ctc_loss(Tensor{{0, 1}, {2, 0}}, x, {2, 1}, {4, 3}, last);
  EXPECT_NEAR(loss.to_vector<double>()[0], 2.9044423, 1e-5);
  EXPECT_NEAR(loss.to_vector<double>()[1], 2.1909833, 1e-5);
  const std::vector<double> dx = tape.gradient(loss, x).value().to_vector<double>();
  EXPECT_NEAR(dx[0], -0.41963658, 1e-5);
  EXPECT_NEAR(dx[6], -0.23195532, 1e-5);
  const auto at = [&](size_t i, double by) {
    std::vector<double> moved = x.to_vector<double>();
    moved[i] += by;
    const Tensor there = Tensor::of<double>(moved, Shape{4, 2, 4});
    return reduce_sum(nn::ctc_loss(Tensor{{0, 1}, {2, 0}}, there, {2, 1}, {4, 3}, last)).item<double>();
  };
  for (size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(dx[i], (at(i, 1e-5) - at(i, -1e-5)) / 2e-5, 1e-6) << i;
  const Tensor first = nn::ctc_loss(Tensor{{1, 2}, {3, 0}}, x, {2, 1}, {4, 3});
  EXPECT_NEAR(first.to_vector<double>()[0], 2.960491, 1e-5);
  EXPECT_NEAR(first.to_vector<double>()[1], 2.3319654, 1e-5);
  const auto decoded = nn::ctc_greedy_decoder(logits, {4, 3}, true, 0);
  EXPECT_THAT(decoded.decoded.values.to_vector<int64_t>(), ElementsAre(3, 3));
}

// Numbers given by TensorFlow 2.15.
TEST(Ctc, RowsWithoutLabelsAreBlankAllTheTime) {
  std::vector<float> numbers;
  for (int i = 0; i < 24; ++i) numbers.push_back(static_cast<float>(i % 5));
  const Tensor x = Tensor::of<float>(numbers, Shape{4, 2, 3});
  const auto loss = [&](const Tensor& lengths) { return nn::ctc_loss(Tensor{{1, 2}, {0, 0}}, x, lengths, {4, 4}); };
  const std::vector<float> eager = loss(Tensor{2, 0}).to_vector<float>();
  EXPECT_NEAR(eager[0], 2.9234984f, 1e-5);
  EXPECT_NEAR(eager[1], 6.2076583f, 1e-5);
  auto traced = function(loss, {.input_signature = {TensorSpec({2}, DType::int32)}});
  EXPECT_NEAR(traced(Tensor{2, 0}).to_vector<float>()[1], eager[1], 1e-6);
  const Tensor narrow = nn::ctc_loss(Tensor::empty(DType::int32, {2, 0}), x, {0, 0}, {4, 3});
  EXPECT_NEAR(narrow.to_vector<float>()[1], 3.800051f, 1e-4);  // three of the four times
  // Nothing to say at no time costs nothing, and has no derivative; a label at no time is an error.
  GradientTape tape;
  tape.watch(x);
  const Tensor none = nn::ctc_loss(Tensor{{1, 2}, {0, 0}}, x, {2, 0}, {4, 0});
  EXPECT_NEAR(none.to_vector<float>()[0], 2.9234984f, 1e-5);
  EXPECT_EQ(none.to_vector<float>()[1], 0);
  const std::vector<float> dx = tape.gradient(none, x).value().to_vector<float>();
  for (size_t i = 0; i < dx.size(); ++i) {
    if (i / 3 % 2 == 0) continue;  // of the first row
    EXPECT_EQ(dx[i], 0) << i;
  }
  test::expect_error(
      [&] {
        nn::ctc_loss(Tensor{{1, 2}, {1, 0}}, x, {0, 1}, {4, 0});
      },
      Code::invalid_argument, "do not fit");
}

TEST(Image, PartsAtRandomStayInside) {
  const Tensor box{{{0.1f, 0.2f, 0.9f, 0.8f}}};
  for (int seed = 0; seed < 20; ++seed) {
    const auto part = image::stateless_sample_distorted_bounding_box({100, 200, 3}, box, {seed, 7}, 0.3);
    const std::vector<int> begin = part.begin.to_vector<int>(), size = part.size.to_vector<int>();
    EXPECT_GE(begin[0], 0);
    EXPECT_LE(begin[0] + size[0], 100);
    EXPECT_LE(begin[1] + size[1], 200);
    EXPECT_EQ(size[2], -1);
  }
}

TEST(Quantization, StepsAndTheirCut) {
  const Tensor x{-10.f, -0.5f, 0.25f, 7.f};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = quantization::fake_quant_with_min_max_args(x, -1, 0.5, 2);
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(-1, -0.5f, 0.5f, 0.5f));
  EXPECT_THAT(tape.gradient(y, x).value().to_vector<float>(), ElementsAre(0, 1, 1, 0));
}

}  // namespace
}  // namespace runnel
