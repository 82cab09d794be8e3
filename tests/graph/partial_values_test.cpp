// Shapes that are known in part flow through what is computed with them.
#include <gtest/gtest.h>

#include "runnel/graph/graph_function.h"
#include "runnel/graph/tracer.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

constexpr int64_t u = kUnknownDim;

// The shape that f(x) is known to have while it is traced for an x of shape [?,3], which must be the one it has.
PartialShape traced_shape(const std::function<Tensor(const Tensor&)>& f) {
  Tracer tracer("partial");
  const Tensor x = tracer.add_parameter(DType::float32, {u, 3});
  tracer.open();
  const Tensor y = f(x);
  tracer.set_outputs({y});
  tracer.close();
  GraphFunction run(tracer.graph());
  for (const int64_t n : {2, 5}) {
    std::vector<Tensor> in{ones(Shape{n, 3})};
    in.insert(in.end(), tracer.captures().begin(), tracer.captures().end());
    const Shape actual = run.run(in)[0].shape();
    EXPECT_TRUE(y.partial_shape().compatible_with(actual)) << y.partial_shape().str() << " and " << actual.str();
  }
  return y.partial_shape();
}

#define EXPECT_SHAPE(expression, ...) \
  EXPECT_EQ(traced_shape([](const Tensor& x) -> Tensor { return expression; }).str(), PartialShape(__VA_ARGS__).str())

TEST(PartialValues, StackedSizes) {
  EXPECT_SHAPE(zeros(stack({shape(x)[0], 4})), {u, 4});
  EXPECT_SHAPE(zeros(stack({Tensor(4), shape(x)[0], shape(x)[1]})), {4, u, 3});
  EXPECT_SHAPE(random::normal(stack({shape(x)[0], 4})), {u, 4});
  EXPECT_SHAPE(fill(shape(x), 2.f), {u, 3});
  EXPECT_SHAPE(broadcast_to(Tensor(1.f), stack({shape(x)[0], 7})), {u, 7});
}

TEST(PartialValues, PiecesOfAShape) {
  EXPECT_SHAPE(zeros(shape(x)(slice(1, 2))), {3});
  EXPECT_SHAPE(zeros(concat({shape(x)(slice(0, 1)), Tensor{4, 5}}, 0)), {u, 4, 5});
  EXPECT_SHAPE(zeros(concat({Tensor{2}, shape(x)}, 0)), {2, u, 3});
  EXPECT_SHAPE(zeros(gather(shape(x), Tensor{1, 0, 1})), {3, u, 3});
  EXPECT_SHAPE(zeros(reverse(shape(x), 0)), {3, u});
  EXPECT_SHAPE(zeros(tile(shape(x), {2})), {u, 3, u, 3});
  EXPECT_SHAPE(zeros(stack(unstack(shape(x), 0, 2))), {u, 3});
  EXPECT_SHAPE(zeros(concat(split(shape(x), 2, 0), 0)), {u, 3});
}

TEST(PartialValues, ShapesOfScalars) {
  EXPECT_SHAPE(zeros(expand_dims(shape(x)[1], 0)), {3});
  EXPECT_SHAPE(zeros(reshape(shape(x)[1], {1})), {3});
  EXPECT_SHAPE(zeros(stack({squeeze(shape(x)(slice(1, 2))), shape(x)[0]})), {3, u});
  EXPECT_SHAPE(zeros(identity(shape(x))), {u, 3});
}

TEST(PartialValues, Arithmetic) {
  EXPECT_SHAPE(zeros(shape(x) + 1), {u, 4});
  EXPECT_SHAPE(zeros(shape(x) * 2), {u, 6});
  EXPECT_SHAPE(zeros(shape(x) - 1), {u, 2});
  EXPECT_SHAPE(zeros(floordiv(shape(x), 2)), {u, 1});
  EXPECT_SHAPE(zeros(floormod(shape(x), 2)), {u, 1});
  EXPECT_SHAPE(zeros(maximum(shape(x), 4)), {u, 4});
  EXPECT_SHAPE(zeros(shape(x) * Tensor{2, 5}), {u, 15});
  EXPECT_SHAPE(zeros(cast(cast(shape(x), DType::int64) * Tensor(int64_t{2}), DType::int32)), {u, 6});
  EXPECT_SHAPE(zeros(stack({shape(x)[0] * shape(x)[1], shape(x)[1] + 2})), {u, 5});
  EXPECT_SHAPE(zeros(stack({reduce_prod(shape(x)(slice(1, 2))), size(x)})), {3, u});
  // Divided by what is not known: not known either, and no error.
  EXPECT_SHAPE(zeros(floordiv(Tensor{6, 6}, shape(x))), {u, 2});
}

TEST(PartialValues, WhoReadsThem) {
  EXPECT_SHAPE(reshape(x, stack({shape(x)[0], Tensor(1), Tensor(3)})), {u, 1, 3});
  EXPECT_SHAPE(reshape(x, stack({shape(x)[0], Tensor(-1)})), {u, u});
  EXPECT_SHAPE(reshape(zeros({6, 10}), stack({Tensor(4), Tensor(5), floordiv(3 * shape(x)[0], shape(x)[0])})),
               {4, 5, 3});
  EXPECT_SHAPE(tile(Tensor{{1.f, 2.f}}, stack({shape(x)[0], Tensor(3)})), {u, 6});
  EXPECT_SHAPE(slice(zeros({9, 9}), {0, 0}, stack({shape(x)[0], Tensor(2)})), {u, 2});
  EXPECT_SHAPE(strided_slice(zeros({9, 9}), {0, 1}, stack({shape(x)[0], Tensor(4)}), {1, 1}), {u, 3});
  EXPECT_SHAPE(image::resize(zeros({1, 4, 4, 1}), stack({shape(x)[0], Tensor(6)})), {1, u, 6, 1});
}

// A size of -1 that is known is no size that is unknown, but may be taken for one.
TEST(PartialValues, MinusOne) {
  EXPECT_SHAPE(zeros(stack({shape(x)[0], shape(x)[1] - 4 + 6})), {u, 5});
  EXPECT_SHAPE(reshape(x, stack({shape(x)[1] - 4, shape(x)[0]})), {u, u});
}

// Sizes captured by a body, and the state of a loop.
TEST(PartialValues, LoopsKeepTheShapeOfTheirState) {
  EXPECT_SHAPE(std::get<1>(while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                                      [&](const Tensor& i, const Tensor& s) {
                                        return std::tuple{i + 1, s + zeros(stack({shape(x)[0], 4}))};
                                      },
                                      std::tuple{Tensor(0), zeros(stack({shape(x)[0], 4}))})),
               {u, 4});
  EXPECT_SHAPE(
      [&] {
        const Tensor sizes = stack({shape(x)[0], 4});
        return cond(
            reduce_sum(x) > 0, [&] { return zeros(sizes); }, [&] { return ones(sizes); });
      }(),
      {u, 4});
}

}  // namespace
}  // namespace runnel
