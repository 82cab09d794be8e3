#include <cstring>
#include <limits>
#include <vector>

#include "runnel/op/context.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/movement.h"

namespace runnel {
namespace {

using test::expect_error;

// gather by its definition: out[b, o, i, n] = params[b, o, indices[b, i], n].
void check_gather(const Shape& params, const Tensor& indices, int axis, int batch) {
  SCOPED_TRACE(params.str() + " axis " + std::to_string(axis) + " batch " + std::to_string(batch));
  const Dims at = int_values(indices);
  Dims to(params.begin(), params.begin() + axis);
  to.insert(to.end(), indices.shape().begin() + batch, indices.shape().end());
  to.insert(to.end(), params.begin() + axis + 1, params.end());
  expect_moved([&](const Tensor& x) { return gather(x, indices, axis, batch); }, params, Shape(to),
               [&](const Dims& i) {
                 Dims index(i.begin(), i.begin() + batch);
                 index.insert(index.end(), i.begin() + axis, i.begin() + axis + (indices.rank() - batch));
                 Dims source(i.begin(), i.begin() + axis);
                 source.push_back(at[static_cast<size_t>(ravel(index, indices.shape()))]);
                 source.insert(source.end(), i.begin() + axis + (indices.rank() - batch), i.end());
                 return ravel(source, params);
               });
}

TEST(Gather, TakesSlicesOfEveryDtype) {
  check_gather({4, 3}, Tensor{3, 0, 3}, 0, 0);
  check_gather({4, 3}, Tensor(2), 0, 0);
  check_gather({4, 3}, Tensor{{1, 2}, {0, 0}}, 1, 0);
  check_gather({2, 5, 3}, Tensor{4, 1}, 1, 0);
  check_gather({2, 5, 3}, Tensor::of<int64_t>({2, 0}), 2, 0);
  check_gather({2, 5, 3}, Tensor{{4, 1, 0}, {2, 2, 3}}, 1, 1);
  check_gather({2, 3, 5}, Tensor{{4, 1, 0}, {2, 2, 3}}, 2, 1);
  check_gather({2, 3, 4}, Tensor{{1, 2, 3}, {3, 3, 0}}, 2, 2);
  check_gather({4, 0}, Tensor{3, 0}, 0, 0);
  check_gather({3, 2}, zeros({0}, int32), 0, 0);
}

TEST(Gather, NamesTheIndexAndTheBound) {
  const Tensor x = numbered(float32, {3, 2});
  expect_error([&] { gather(x, Tensor{0, 3}); }, Code::invalid_argument, "[GatherV2] indices[1] = 3 is not in [0, 3)");
  expect_error([&] { gather(x, Tensor{-1}); }, Code::invalid_argument, "indices[0] = -1 is not in [0, 3)");
  expect_error([&] { gather(x, Tensor{0}, 2); }, Code::invalid_argument, "axis 2 is out of range for rank 2");
  expect_error([&] { gather(x, Tensor{0}, 0, 2); }, Code::invalid_argument, "batch_dims 2 is out of range");
  expect_error([&] { gather(x, Tensor{{0}, {1}}, 1, 1); }, Code::invalid_argument, "batch dimension 0 differs");
  expect_error([&] { gather(x, Tensor{0.f}); }, Code::invalid_argument, "indices cannot be float32");
  expect_error([&] { gather(Tensor(1.f), Tensor{0}); }, Code::invalid_argument, "params must have rank 1 or more");
}

TEST(Gather, GradientOnAxisZeroIsSlices) {
  const Tensor x = numbered(float64, {4, 2});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = gather(x, Tensor{{1, 3}, {1, 0}});
  const Gradient g = tape.gradient(y, x, numbered(float64, {2, 2, 2}));
  ASSERT_TRUE(g.is_slices());
  EXPECT_EQ(g.slices().values.shape().str(), "[4,2]");
  EXPECT_EQ(g.slices().indices.to_vector<int32_t>(), (std::vector<int32_t>{1, 3, 1, 0}));
  EXPECT_EQ(g.value().to_vector<double>(), (std::vector<double>{7, 8, 1 + 5, 2 + 6, 0, 0, 3, 4}));
  // Two gathers of one tensor: the slices are joined.
  const Gradient both = tape.gradient({y, gather(x, Tensor::of<int64_t>({2}))}, {x})[0];
  ASSERT_TRUE(both.is_slices());
  EXPECT_EQ(both.value().to_vector<double>(), (std::vector<double>{1, 1, 2, 2, 1, 1, 1, 1}));
}

TEST(Gather, DenseGradientsByBruteForce) {
  struct Case {
    Shape params;
    Tensor indices;
    int axis, batch;
  };
  for (const Case& c : {Case{{2, 3}, Tensor{2, 0, 2}, 1, 0}, Case{{2, 3, 2}, Tensor{{1, 1}, {0, 2}}, 1, 1},
                        Case{{2, 2, 3}, Tensor{{1, 1}, {0, 2}}, 2, 1}, Case{{3, 4, 2}, Tensor(3), 1, 0}}) {
    const Tensor x = numbered(float64, c.params);
    GradientTape tape;
    tape.watch(x);
    const Tensor y = gather(x, c.indices, c.axis, c.batch);
    const Tensor weights = numbered(float64, y.shape(), 10);
    // Element k of y is element source[k] of x: found by gathering the numbers of the elements.
    std::vector<double> expected(static_cast<size_t>(x.num_elements()), 0);
    const auto which =
        gather(reshape(range(static_cast<int64_t>(x.num_elements())), c.params), c.indices, c.axis, c.batch);
    for (int64_t k = 0; k < y.num_elements(); ++k) {
      expected[static_cast<size_t>(which.data<int64_t>()[k])] += weights.data<double>()[k];
    }
    const Gradient g = tape.gradient(y, x, weights);
    EXPECT_FALSE(g.is_slices());
    EXPECT_EQ(g.value().to_vector<double>(), expected);
  }
}

TEST(GatherNd, TakesPositions) {
  const Shape shape{3, 4, 2};
  expect_moved(
      [](const Tensor& x) {
        return gather_nd(x, Tensor{{2, 1}, {0, 3}});
      },
      shape, {2, 2},
      [&](const Dims& i) {
        return i[0] == 0 ? ravel({2, 1, i[1]}, shape) : ravel({0, 3, i[1]}, shape);
      });
  expect_moved(
      [](const Tensor& x) {
        return gather_nd(x, Tensor{{{1, 0, 1}}});
      },
      shape, {1, 1},
      [&](const Dims&) {
        return ravel({1, 0, 1}, shape);
      });
  expect_moved(
      [](const Tensor& x) {
        return gather_nd(x, zeros({2, 0}, int32));
      },
      shape, {2, 3, 4, 2},
      [&](const Dims& i) {
        return ravel({i[1], i[2], i[3]}, shape);
      });
  // In batches: row i of x is asked for position at[i].
  expect_moved(
      [](const Tensor& x) {
        return gather_nd(x, Tensor{{3}, {0}, {2}}, 1);
      },
      shape, {3, 2},
      [&](const Dims& i) {
        const int64_t at[] = {3, 0, 2};
        return ravel({i[0], at[i[0]], i[1]}, shape);
      });
  expect_error(
      [&] {
        gather_nd(numbered(float32, {2, 2}), Tensor{{0, 2}});
      },
      Code::invalid_argument, "[GatherNd] indices[0] has 2 for dimension 1, which is not in [0, 2)");
}

TEST(Gather, SameBitsWithThreads) {
  const Tensor x = numbered(float32, {500, 300});
  const Tensor at = floormod(range(2000) * 37, 500);
  expect_same_with_threads([&] { return gather(x, at); });
  expect_same_with_threads([&] { return gather(x, floormod(at, 300), 1); });
  expect_same_with_threads([&] { return scatter_nd(expand_dims(at, 1), numbered(float32, {2000, 70}), {500, 70}); });
  expect_same_with_threads([&] {
    return scatter_nd(expand_dims(floormod(at, 3), 1), numbered(float32, {2000, 5000}), {3, 5000});
  });
}

TEST(GatherNd, ManyScalars) {
  const int64_t n = 1000;
  std::vector<int32_t> at;
  std::vector<float> expected;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t a = i * 7 % 5, b = i * 13 % 4, c = i * 29 % 6;
    at.insert(at.end(), {static_cast<int32_t>(a), static_cast<int32_t>(b), static_cast<int32_t>(c)});
    expected.push_back(static_cast<float>((a * 4 + b) * 6 + c));
  }
  const Tensor x = reshape(range(5 * 4 * 6), {5, 4, 6});
  EXPECT_EQ(gather_nd(cast(x, float32), Tensor::of(at, Shape{n, 3})).to_vector<float>(), expected);
  at[3 * 700 + 1] = 4;
  at[3 * 701 + 2] = -1;
  expect_error(
      [&] {
        gather_nd(x, Tensor::of(at, Shape{n, 3}));
      },
      Code::invalid_argument, "indices[700] has 4 for dimension 1, which is not in [0, 4)");
  at[3 * 700 + 1] = 0;
  at[3 * 701 + 2] = std::numeric_limits<int32_t>::min();
  expect_error(
      [&] {
        gather_nd(x, Tensor::of(at, Shape{n, 3}));
      },
      Code::invalid_argument, "indices[701] has -2147483648 for dimension 2");
}

TEST(ScatterNd, AddsUp) {
  const Tensor y = scatter_nd(Tensor{{2}, {0}, {2}}, Tensor{{1, 2}, {3, 4}, {5, 6}}, {4, 2});
  EXPECT_EQ(y.to_vector<int32_t>(), (std::vector<int32_t>{3, 4, 0, 0, 6, 8, 0, 0}));
  EXPECT_EQ(scatter_nd(Tensor::of<int64_t>({0, 0}, {1, 2}), Tensor{1.5f}, {1, 1}).to_vector<float>(),
            (std::vector<float>{1.5f}));
  EXPECT_EQ(scatter_nd(zeros({0, 1}, int32), zeros({0}), {3}).to_vector<float>(), (std::vector<float>{0, 0, 0}));
  expect_error([] { scatter_nd(Tensor{{4}}, Tensor{1.f}, {4}); }, Code::invalid_argument,
               "[ScatterNd] indices[0] = [4] does not lie within shape [4]");
  expect_error([] { scatter_nd(Tensor{{0}}, Tensor{{1.f}}, {4}); }, Code::invalid_argument,
               "updates have shape [1,1], not [1]");
}

TEST(TensorScatter, UpdatesInOrder) {
  const Tensor x{1.f, 2.f, 3.f};
  const Tensor at{{1}, {1}, {0}};
  const Tensor u{10.f, -20.f, 7.f};
  EXPECT_EQ(tensor_scatter_nd_update(x, at, u).to_vector<float>(), (std::vector<float>{7, -20, 3}));
  EXPECT_EQ(tensor_scatter_nd_add(x, at, u).to_vector<float>(), (std::vector<float>{8, -8, 3}));
  EXPECT_EQ(tensor_scatter_nd_sub(x, at, u).to_vector<float>(), (std::vector<float>{-6, 12, 3}));
  EXPECT_EQ(tensor_scatter_nd_min(x, at, u).to_vector<float>(), (std::vector<float>{1, -20, 3}));
  EXPECT_EQ(tensor_scatter_nd_max(x, at, u).to_vector<float>(), (std::vector<float>{7, 10, 3}));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(tensor_scatter_nd_update(Tensor{"a", "b"}, Tensor{{1}}, Tensor{"c"}).to_vector<std::string>(),
            (std::vector<std::string>{"a", "c"}));
}

}  // namespace
}  // namespace runnel
