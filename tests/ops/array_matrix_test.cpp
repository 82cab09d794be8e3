#include <cstring>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/movement.h"

namespace runnel {
namespace {

using test::expect_error;

TEST(Reverse, EveryDtype) {
  const Shape shape{2, 3, 4};
  expect_moved(
      [](const Tensor& x) {
        return reverse(x, {0, -1});
      },
      shape, shape,
      [&](const Dims& i) {
        return ravel({1 - i[0], i[1], 3 - i[2]}, shape);
      });
  expect_moved([](const Tensor& x) { return reverse(x, 1); }, shape, shape,
               [&](const Dims& i) {
                 return ravel({i[0], 2 - i[1], i[2]}, shape);
               });
  expect_moved([](const Tensor& x) { return reverse(x, 0); }, {0, 2}, {0, 2}, [](const Dims&) { return kZero; });
}

TEST(Roll, EveryDtype) {
  const Shape shape{3, 5};
  auto modulo = [](int64_t a, int64_t n) { return (a % n + n) % n; };
  for (int64_t s : {0, 1, -1, 4, 7, -12}) {
    expect_moved([&](const Tensor& x) { return roll(x, s, 1); }, shape, shape,
                 [&](const Dims& i) {
                   return ravel({i[0], modulo(i[1] - s, 5)}, shape);
                 });
    expect_moved(
        [&](const Tensor& x) {
          return roll(x, {s, 2}, {0, 1});
        },
        shape, shape,
        [&](const Dims& i) {
          return ravel({modulo(i[0] - s, 3), modulo(i[1] - 2, 5)}, shape);
        });
  }
  EXPECT_EQ(roll(Tensor{1, 2, 3}, {1, 1}, {0, 0}).to_vector<int32_t>(), (std::vector<int32_t>{2, 3, 1}));
  expect_error([] { roll(Tensor{1, 2}, 1, 1); }, Code::invalid_argument, "[Roll] axis 1 is out of range for rank 1");
}

TEST(SpaceToDepth, AndBack) {
  const Shape space{2, 4, 6, 3}, depth{2, 2, 3, 12};
  const Source to_depth = [&](const Dims& i) {
    const int64_t block = i[3] / 3;
    return ravel({i[0], i[1] * 2 + block / 2, i[2] * 2 + block % 2, i[3] % 3}, space);
  };
  const Source to_space = [&](const Dims& i) {
    return ravel({i[0], i[1] / 2, i[2] / 2, (i[1] % 2 * 2 + i[2] % 2) * 3 + i[3]}, depth);
  };
  expect_moved([](const Tensor& x) { return space_to_depth(x, 2); }, space, depth, to_depth);
  expect_moved([](const Tensor& x) { return depth_to_space(x, 2); }, depth, space, to_space);
  expect_error(
      [] {
        space_to_depth(zeros({1, 3, 2, 1}), 2);
      },
      Code::invalid_argument, "does not divide into blocks of 2");
  expect_error([] { space_to_depth(zeros({2, 2}), 2); }, Code::invalid_argument, "input must have rank 4");
}

// The element of a matrix by its definition: where diagonal element (d, j) of an aligned band stands.
struct Aligned {
  int64_t lower, upper, rows, cols, length;
  std::string align;
  int64_t diagonal_length(int64_t d) const {
    int64_t n = 0;
    for (int64_t i = 0; i < rows; ++i) n += i + d >= 0 && i + d < cols;
    return n;
  }
  int64_t position(int64_t i, int64_t d) const {  // of matrix element (i, i + d) in its row of the band
    const bool right = d >= 0 ? align.starts_with("RIGHT") : align.ends_with("RIGHT");
    return i - std::max<int64_t>(-d, 0) + (right ? length - diagonal_length(d) : 0);
  }
};

TEST(MatrixDiag, PartAndSetAgreeWithTheDefinition) {
  for (const char* align : {"RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"}) {
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{3, 4}, {4, 3}, {3, 3}}) {
      for (int64_t lower = -2; lower <= 2; ++lower) {
        for (int64_t upper = lower; upper <= 2; ++upper) {
          const int64_t length = std::min(rows + std::min<int64_t>(upper, 0), cols - std::max<int64_t>(lower, 0));
          const Aligned band{lower, upper, rows, cols, length, align};
          const MatrixDiagOptions options{.k = {lower, upper}, .align = align};
          const Tensor x = numbered(int32, {2, rows, cols});
          const Tensor part = matrix_diag_part(x, options);
          const int64_t count = upper - lower + 1;
          ASSERT_EQ(part.shape().str(), (count == 1 ? Shape{2, length} : Shape{2, count, length}).str());
          std::vector<int32_t> expected(static_cast<size_t>(part.num_elements()), 0);
          for (int64_t b = 0; b < 2; ++b) {
            for (int64_t i = 0; i < rows; ++i) {
              for (int64_t j = 0; j < cols; ++j) {
                const int64_t d = j - i;
                if (d < lower || d > upper) continue;
                expected[static_cast<size_t>((b * count + upper - d) * length + band.position(i, d))] =
                    x.data<int32_t>()[(b * rows + i) * cols + j];
              }
            }
          }
          ASSERT_EQ(part.to_vector<int32_t>(), expected)
              << align << ' ' << rows << 'x' << cols << ' ' << lower << ".." << upper;
          // Setting what was taken changes nothing; a matrix made of it has zeros outside the band.
          ASSERT_EQ(matrix_set_diag(x, part, options).to_vector<int32_t>(), x.to_vector<int32_t>());
          MatrixDiagOptions sized = options;
          sized.num_rows = rows;
          sized.num_cols = cols;
          const bool smallest =
              rows == length - std::min<int64_t>(upper, 0) || cols == length + std::max<int64_t>(lower, 0);
          if (!smallest) continue;
          const auto made = matrix_diag(part, sized).to_vector<int32_t>();
          for (int64_t k = 0; k < 2 * rows * cols; ++k) {
            const int64_t d = k % cols - k / cols % rows;
            ASSERT_EQ(made[static_cast<size_t>(k)], d < lower || d > upper ? 0 : x.data<int32_t>()[k]);
          }
        }
      }
    }
  }
}

TEST(MatrixDiag, EveryDtypeAndDefaults) {
  expect_moved([](const Tensor& x) { return matrix_diag(x); }, {2, 3}, {2, 3, 3},
               [](const Dims& i) { return i[1] == i[2] ? i[0] * 3 + i[1] : kZero; });
  expect_moved([](const Tensor& x) { return linalg::diag(x, {.k = {1}}); }, {2}, {3, 3},
               [](const Dims& i) { return i[1] == i[0] + 1 ? i[0] : kZero; });
  EXPECT_EQ(matrix_diag_part(eye(3)).to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(matrix_diag({1.f}, {.num_rows = 2, .padding_value = Tensor(9.f)}).to_vector<float>(),
            (std::vector<float>{1, 9}));
  expect_error([] { matrix_diag_part(eye(3), {.k = {3}}); }, Code::invalid_argument,
               "diagonal 3 lies outside a matrix of 3 x 3");
  expect_error([] { matrix_diag_part(eye(3), {.k = {1, 0}}); }, Code::invalid_argument, "k [1, 0] is no range");
  expect_error([] { matrix_diag_part(eye(3), {.align = "MIDDLE"}); }, Code::invalid_argument,
               "attr 'align' of \"MIDDLE\"");
}

TEST(MatrixBandPart, EveryDtype) {
  const Shape shape{2, 3, 4};
  for (int64_t lower : {-1, 0, 1, 3}) {
    for (int64_t upper : {-1, 0, 2}) {
      expect_moved([&](const Tensor& x) { return linalg::band_part(x, lower, upper); }, shape, shape,
                   [&](const Dims& i) {
                     const int64_t d = i[2] - i[1];
                     return (lower < 0 || -d <= lower) && (upper < 0 || d <= upper) ? ravel(i, shape) : kZero;
                   });
    }
  }
}

TEST(Searchsorted, EverySide) {
  const Tensor sorted{1.f, 3.f, 3.f, 8.f};
  EXPECT_EQ(searchsorted(sorted, {0.f, 3.f, 9.f}).to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 4}));
  EXPECT_EQ(searchsorted(sorted, {0.f, 3.f, 9.f}, "right", int64).to_vector<int64_t>(),
            (std::vector<int64_t>{0, 3, 4}));
  EXPECT_EQ(searchsorted(Tensor{{{1, 2}, {5, 6}}}, Tensor{{{2}, {2}}}).to_vector<int32_t>(),
            (std::vector<int32_t>{1, 0}));
  expect_error([&] { searchsorted(sorted, {1.f}, "middle"); }, Code::invalid_argument,
               "side must be 'left' or 'right'");
}

TEST(Masks, BooleanMask) {
  const Tensor x{{1, 2}, {3, 4}, {5, 6}};
  EXPECT_EQ(boolean_mask(x, {true, false, true}).to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 5, 6}));
  EXPECT_EQ(boolean_mask(x, {false, true}, 1).shape().str(), "[3,1]");
  EXPECT_EQ(boolean_mask(x, {{true, false}, {false, true}, {true, true}}).to_vector<int32_t>(),
            (std::vector<int32_t>{1, 4, 5, 6}));
  EXPECT_EQ(boolean_mask(x, {false, false, false}).shape().str(), "[0,2]");
  expect_error(
      [&] {
        boolean_mask(x, {true, false});
      },
      Code::invalid_argument, "does not match dimensions 0.. of [3,2]");
  expect_error([&] { boolean_mask(x, {1, 0, 1}); }, Code::invalid_argument, "must be bool, got int32");
}

TEST(Masks, SequenceMask) {
  EXPECT_EQ(sequence_mask({1, 3, 0}).to_vector<bool>(),
            (std::vector<bool>{true, false, false, true, true, true, false, false, false}));
  EXPECT_EQ(sequence_mask({{1}, {2}}, 2, float32).to_vector<float>(), (std::vector<float>{1, 0, 1, 1}));
  EXPECT_EQ(sequence_mask(zeros({2}, int64)).shape().str(), "[2,0]");
}

// As in TensorFlow: lengths are cast to the dtype of maxlen, which is their own where it is not given.
TEST(Masks, SequenceMaskComparesInTheDtypeOfMaxlen) {
  const Tensor half{2.5f, 0.5f};
  EXPECT_EQ(sequence_mask(half, 3).to_vector<bool>(), (std::vector<bool>{true, true, false, false, false, false}));
  EXPECT_EQ(sequence_mask(half, 3.f).to_vector<bool>(), (std::vector<bool>{true, true, true, true, false, false}));
  EXPECT_EQ(sequence_mask(half).to_vector<bool>(), (std::vector<bool>{true, true, true, true, false, false}));
  EXPECT_EQ(sequence_mask(Tensor{int64_t{2}}, 3).to_vector<bool>(), (std::vector<bool>{true, true, false}));
  EXPECT_EQ(sequence_mask(Tensor{2}, Tensor(int64_t{3})).to_vector<bool>(), (std::vector<bool>{true, true, false}));
  expect_error(
      [&] {
        sequence_mask(half, Tensor{3, 4});
      },
      Code::invalid_argument, "maxlen must be a scalar, got shape [2]");
}

TEST(Grids, Meshgrid) {
  const auto xy = meshgrid({Tensor{1, 2, 3}, Tensor{4, 5}});
  EXPECT_EQ(xy[0].to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(xy[1].to_vector<int32_t>(), (std::vector<int32_t>{4, 4, 4, 5, 5, 5}));
  const auto ij = meshgrid({Tensor{1, 2, 3}, Tensor{4, 5}, Tensor{6}}, "ij");
  EXPECT_EQ(ij[0].shape().str(), "[3,2,1]");
  EXPECT_EQ(ij[1].to_vector<int32_t>(), (std::vector<int32_t>{4, 5, 4, 5, 4, 5}));
}

// As in TensorFlow: whatever its shape, an argument is a row of values.
TEST(Grids, MeshgridTakesMatricesFlat) {
  const auto xy = meshgrid({Tensor{{1, 2}, {3, 4}}, Tensor{{5}, {6}}, Tensor(7)});
  ASSERT_EQ(xy.size(), 3u);
  EXPECT_EQ(xy[0].shape().str(), "[2,4,1]");
  EXPECT_EQ(xy[0].to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(xy[1].to_vector<int32_t>(), (std::vector<int32_t>{5, 5, 5, 5, 6, 6, 6, 6}));
  EXPECT_EQ(xy[2].to_vector<int32_t>(), std::vector<int32_t>(8, 7));
}

TEST(Repeat, AlongAnAxis) {
  const Tensor x{{1, 2}, {3, 4}};
  EXPECT_EQ(repeat(x, 2).to_vector<int32_t>(), (std::vector<int32_t>{1, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(repeat(x, {2, 1}, 0).to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 1, 2, 3, 4}));
  EXPECT_EQ(repeat(x, {0, 3}, 1).to_vector<int32_t>(), (std::vector<int32_t>{2, 2, 2, 4, 4, 4}));
  EXPECT_EQ(repeat(Tensor("a"), 3).to_vector<std::string>(), (std::vector<std::string>{"a", "a", "a"}));
  EXPECT_EQ(repeat(x, {0, 0}, 0).shape().str(), "[0,2]");
  expect_error([&] { repeat(x, {1, 2, 3}, 0); }, Code::invalid_argument, "3 repeats for axis 0 of size 2");
}

}  // namespace
}  // namespace runnel
