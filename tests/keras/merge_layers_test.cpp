// Layers that make one tensor of several.
#include <gtest/gtest.h>

#include <cmath>

#include "runnel/keras/functional.h"
#include "runnel/keras/layers/merge.h"
#include "tests/keras/layer_checks.h"

namespace runnel::keras {
namespace {

using runnel::test::expect_close;
using runnel::test::expect_config;
using runnel::test::expect_error;
using runnel::test::expect_gradients;
using runnel::test::random_tensor;
using runnel::test::values_of;

// The call with the inputs eagerly, and inside a function that does not know the batch.
template <class L>
void expect_merged(L& layer, const Tensor& a, const Tensor& b, const std::vector<double>& expected,
                   const Shape& shape) {
  {
    SCOPED_TRACE("eager");
    expect_close(layer({a, b}), expected, shape, 1e-6);
  }
  SCOPED_TRACE("traced");
  const auto spec = [](const Tensor& t) {
    Dims dims = t.shape().dims();
    dims[0] = kUnknownDim;
    return TensorSpec{PartialShape(dims), t.dtype(), ""};
  };
  const auto f = function(
      [&](const Tensor& x, const Tensor& y) -> Tensor {
        return layer({x, y});
      },
      {.input_signature = {spec(a), spec(b)}});
  expect_close(f(a, b), expected, shape, 1e-6);
}

const Tensor kA{{1.f, -2.f}, {3.f, 4.f}};
const Tensor kB{{5.f, 1.f}, {2.f, -6.f}};

TEST(MergeLayers, Elementwise) {
  Add add;
  expect_merged(add, kA, kB, {6, -1, 5, -2}, {2, 2});
  Subtract subtract;
  expect_merged(subtract, kA, kB, {-4, -3, 1, 10}, {2, 2});
  Multiply multiply;
  expect_merged(multiply, kA, kB, {5, -2, 6, -24}, {2, 2});
  Average average;
  expect_merged(average, kA, kB, {3, -0.5, 2.5, -1}, {2, 2});
  Maximum maximum;
  expect_merged(maximum, kA, kB, {5, 1, 3, 4}, {2, 2});
  Minimum minimum;
  expect_merged(minimum, kA, kB, {1, -2, 2, -6}, {2, 2});
}

TEST(MergeLayers, AnyNumberOfInputs) {
  expect_close(Add()({kA, kB, kA}), {7, -3, 8, 2}, {2, 2}, 1e-6);
  expect_close(Average()({kA, kB, kB}), {11. / 3, 0, 7. / 3, -8. / 3}, {2, 2}, 1e-6);
  expect_close(Multiply()({kA, kA, kA}), {1, -8, 27, 64}, {2, 2}, 1e-6);
  expect_close(Maximum()(std::vector<Tensor>{kA}), values_of(kA), {2, 2}, 0);
  const auto add = make<Add>();
  expect_close(add({kA, kB}), {6, -1, 5, -2}, {2, 2}, 1e-6);
  expect_error([] { Subtract()({kA, kB, kA}); }, Code::invalid_argument, "exactly 2 tensors, got 3");
  expect_error([] { Add()(kA); }, Code::invalid_argument, "single tensor");
  expect_error([] { Add()(std::vector<Tensor>{}); }, Code::invalid_argument, "one or more");
}

// New axes go after the batch: [2,2] with [2,3,2] is [2,1,2] with it.
TEST(MergeLayers, Broadcast) {
  const Tensor c = random_tensor({2, 3, 2}, float32, 5);
  const std::vector<double> a = values_of(kA), v = values_of(c);
  std::vector<double> expected;
  for (size_t i = 0; i < v.size(); ++i) expected.push_back(a[i / 6 * 2 + i % 2] * v[i]);
  Multiply multiply;
  expect_merged(multiply, kA, c, expected, {2, 3, 2});
  expect_merged(multiply, c, kA, expected, {2, 3, 2});

  const Tensor column{{1.f}, {2.f}};
  Add add;
  expect_merged(add, column, kA, {2, -1, 5, 6}, {2, 2});
  expect_error([] { Add()({kA, ones({2, 3})}); }, Code::invalid_argument, "do not fit together: [2,2], [2,3]");
  expect_error([] { Add()({kA, ones({1, 2})}); }, Code::invalid_argument, "different batch sizes: [2,2], [1,2]");
}

TEST(MergeLayers, Concatenate) {
  Concatenate last;
  expect_merged(last, kA, kB, {1, -2, 5, 1, 3, 4, 2, -6}, {2, 4});
  Concatenate middle({.axis = 1});
  const Tensor c = random_tensor({2, 1, 3}, float32, 1), d = random_tensor({2, 2, 3}, float32, 2);
  const std::vector<double> p = values_of(c), q = values_of(d);
  std::vector<double> expected;
  for (size_t i = 0; i < 2; ++i) {
    expected.insert(expected.end(), p.begin() + static_cast<long>(3 * i), p.begin() + static_cast<long>(3 * i + 3));
    expected.insert(expected.end(), q.begin() + static_cast<long>(6 * i), q.begin() + static_cast<long>(6 * i + 6));
  }
  expect_merged(middle, c, d, expected, {2, 3, 3});
  expect_config(middle, R"({"axis":1})");
  expect_error([] { Concatenate()({kA, ones({3, 2})}); }, Code::invalid_argument, "equal but for axis -1");
  expect_error([] { Concatenate()({kA, ones({2, 2, 1})}); }, Code::invalid_argument, "[2,2], [2,2,1]");
  expect_error([] { Concatenate({.axis = 2})({kA, kB}); }, Code::invalid_argument, "Concatenate");
}

// The sums of products, by loops over [batch, i, s] and [batch, s, j].
TEST(MergeLayers, Dot) {
  const Tensor x = random_tensor({2, 3, 4}, float32, 1), y = random_tensor({2, 4, 5}, float32, 2);
  const std::vector<double> p = values_of(x), q = values_of(y);
  std::vector<double> expected;
  for (size_t b = 0; b < 2; ++b) {
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 5; ++j) {
        double sum = 0;
        for (size_t s = 0; s < 4; ++s) sum += p[(b * 3 + i) * 4 + s] * q[(b * 4 + s) * 5 + j];
        expected.push_back(sum);
      }
    }
  }
  Dot dot({.axes = {2, 1}});
  expect_merged(dot, x, y, expected, {2, 3, 5});
  Dot negative({.axes = {-1, -2}});
  expect_merged(negative, x, y, expected, {2, 3, 5});
  Dot same({.axes = {1}});
  expect_merged(same, linalg::matrix_transpose(x), y, expected, {2, 3, 5});
  expect_config(dot, R"({"axes":[2,1],"normalize":false})");
  expect_config(same, R"({"axes":1,"normalize":false})");
}

TEST(MergeLayers, DotOfVectorsAndCosine) {
  Dot dot({.axes = {1}});
  expect_merged(dot, kA, kB, {3, -18}, {2, 1});
  Dot cosine({.axes = {-1}, .normalize = true});
  expect_merged(cosine, kA, kB, {3 / std::sqrt(5. * 26), -18 / std::sqrt(25. * 40)}, {2, 1});
  expect_error([] { Dot()({kA, kB}); }, Code::invalid_argument, "axes");
  expect_error([] { Dot({.axes = {0}})({kA, kB}); }, Code::invalid_argument, "axis 0, the batch");
  expect_error([] { Dot({.axes = {1}})({kA, ones({2, 3})}); }, Code::invalid_argument, "sizes 2 and 3");
  expect_error([] { Dot({.axes = {1}})({kA, kB, kA}); }, Code::invalid_argument, "list of 2 tensors, got 3");
}

TEST(MergeLayers, Gradients) {
  const std::vector<Tensor> x = {random_tensor({2, 3}, float64, 1), random_tensor({2, 4, 3}, float64, 2)};
  Multiply multiply({.dtype = "float64"});
  expect_gradients([&](const std::vector<Tensor>& in) { return multiply({in[0], in[1]}); }, x);
  Average average({.dtype = "float64"});
  expect_gradients([&](const std::vector<Tensor>& in) { return average({in[0], in[1]}); }, x);
  Dot dot({.axes = {-1}, .normalize = true, .dtype = "float64"});
  expect_gradients([&](const std::vector<Tensor>& in) { return dot({in[0], in[1]}); }, x, 12, 1e-5);
}

// Passes its input on with a mask of its own.
struct MaskGiver : Layer {
  Tensor mask;
  Tensor call(const Tensor& x, const CallArgs&) override { return x + 0; }
  Tensor compute_mask(const Nest&, const Tensor&) override { return mask; }
};

// The mask that a layer gets after the merge of two inputs with these masks (undefined: none).
template <class L>
struct MaskAfterMerge : Layer {
  L merge;
  MaskGiver first, second;
  Tensor seen;
  MaskAfterMerge(const typename L::Options& options, const Tensor& a, const Tensor& b) : merge(options) {
    first.mask = a;
    second.mask = b;
  }
  Tensor call(const Tensor& x, const CallArgs&) override {
    struct Probe : Layer {
      Tensor* seen;
      Tensor call(const Tensor& in, const CallArgs& args) override {
        *seen = args.mask;
        return in;
      }
    } probe;
    probe.seen = &seen;
    return probe(merge({first(x), second(x)}));
  }
  Tensor operator()() {
    Layer::operator()(ones({2, 3, 4}));
    return seen;
  }
};

TEST(MergeLayers, Masks) {
  const Tensor a{{true, true, false}, {true, false, false}}, b{{true, false, true}, {true, true, false}};
  const std::vector<bool> both{true, false, false, true, false, false};
  EXPECT_FALSE(MaskAfterMerge<Add>({}, {}, {})().defined());
  EXPECT_EQ(MaskAfterMerge<Add>({}, {}, a)().to_vector<bool>(), a.to_vector<bool>());
  EXPECT_EQ(MaskAfterMerge<Add>({}, a, b)().to_vector<bool>(), both);
  EXPECT_FALSE(MaskAfterMerge<Concatenate>({}, {}, {})().defined());
  EXPECT_EQ(MaskAfterMerge<Concatenate>({}, a, b)().to_vector<bool>(), both);
  EXPECT_EQ(MaskAfterMerge<Concatenate>({}, {}, b)().to_vector<bool>(), b.to_vector<bool>());
  const Tensor joined = MaskAfterMerge<Concatenate>({.axis = 1}, a, b)();
  EXPECT_EQ(joined.shape(), (Shape{2, 6}));
  EXPECT_EQ(joined.to_vector<bool>(), concat({a, b}, 1).to_vector<bool>());
  EXPECT_FALSE(MaskAfterMerge<Dot>({.axes = {2}}, a, b)().defined());
}

TEST(MergeLayers, InFunctionalModels) {
  const Tensor x = Input({2}), y = Input({2});
  const auto add = make<Add>();
  const Tensor sum = add({x, y});
  const Tensor out = Concatenate()({sum, Multiply()({x, sum})});
  EXPECT_EQ(out.partial_shape(), (PartialShape{kUnknownDim, 4}));
  const FunctionalGraph graph(std::vector<Tensor>{x, y}, out);
  expect_close(graph.run(std::vector<Tensor>{kA, kB}, {}).leaf(), {6, -1, 6, 2, 5, -2, 15, -8}, {2, 4}, 1e-6);
}

}  // namespace
}  // namespace runnel::keras
