#include <cstring>

#include "runnel/runnel.h"
#include "runnel/tensor/type_sets.h"
#include "tests/support/expect_error.h"
#include "tests/support/movement.h"

namespace runnel {
namespace {

using test::expect_error;

TEST(Shapes, ReshapeExpandSqueezeKeepElements) {
  auto same = [](const Shape& s) { return [s](const Dims& i) { return ravel(i, s); }; };
  expect_moved([](const Tensor& x) { return reshape(x, {-1, 4}); }, {2, 6}, {3, 4}, same({3, 4}));
  expect_moved([](const Tensor& x) { return reshape(x, Shape{}); }, {1, 1}, {}, same({}));
  expect_moved([](const Tensor& x) { return expand_dims(x, 1); }, {2, 3}, {2, 1, 3}, same({2, 1, 3}));
  expect_moved([](const Tensor& x) { return expand_dims(x, -1); }, {}, {1}, same({1}));
  expect_moved([](const Tensor& x) { return squeeze(x); }, {1, 2, 1, 3}, {2, 3}, same({2, 3}));
  expect_moved([](const Tensor& x) { return squeeze(x, {0, -2}); }, {1, 2, 1, 3}, {2, 3}, same({2, 3}));
  expect_moved([](const Tensor& x) { return squeeze(x, 2); }, {1, 2, 1, 3}, {1, 2, 3}, same({1, 2, 3}));
  expect_moved([](const Tensor& x) { return identity(x); }, {2, 0}, {2, 0}, same({2, 0}));
  expect_moved([](const Tensor& x) { return stop_gradient(x); }, {2}, {2}, same({2}));
  expect_moved([](const Tensor& x) { return ensure_shape(x, {kUnknownDim, 3}); }, {2, 3}, {2, 3}, same({2, 3}));
}

TEST(Shapes, AreReadAsTensors) {
  const Tensor x = zeros({2, 0, 3});
  EXPECT_EQ(shape(x).to_vector<int32_t>(), (std::vector<int32_t>{2, 0, 3}));
  EXPECT_EQ(shape(x, int64).to_vector<int64_t>(), (std::vector<int64_t>{2, 0, 3}));
  EXPECT_EQ(size(x).item<int32_t>(), 0);
  EXPECT_EQ(size(Tensor("a"), int64).item<int64_t>(), 1);
  EXPECT_EQ(rank(x).item<int32_t>(), 3);
  const auto both = shape_n({x, Tensor(1.f)}, int64);
  EXPECT_EQ(both[0].to_vector<int64_t>(), (std::vector<int64_t>{2, 0, 3}));
  EXPECT_EQ(both[1].num_elements(), 0);
}

TEST(Shapes, SayWhatIsWrong) {
  const Tensor x = zeros({2, 3});
  expect_error([&] { squeeze(x, 0); }, Code::invalid_argument, "[Squeeze] dimension 0 of [2,3] has size 2, not 1");
  expect_error([&] { expand_dims(x, 4); }, Code::invalid_argument, "[ExpandDims] axis 4 is out of range for rank 3");
  expect_error([&] { ensure_shape(x, {3, 2}); }, Code::invalid_argument, "[EnsureShape] the shape is [2,3], not [3,2]");
  expect_error([&] { reshape(x, {4, -1}); }, Code::invalid_argument, "[Reshape] 6 elements do not fit [4,?]");
  expect_error([&] { shape(x, float32); }, Code::invalid_argument, "attr 'out_type' of float32 is not in the list");
}

TEST(Constants, HaveDtypeAndShape) {
  EXPECT_EQ(constant(1e-10, float64).item<double>(), 1e-10);
  EXPECT_EQ(constant({0.1, 0.2}, float64).to_vector<double>(), (std::vector<double>{0.1, 0.2}));
  EXPECT_EQ(constant({0.5, 0.25}).dtype(), float32);
  EXPECT_EQ(constant({{1, 2}, {3, 4}}, int64).to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(constant(7, uint8, {2, 2}).to_vector<uint8_t>(), (std::vector<uint8_t>{7, 7, 7, 7}));
  EXPECT_EQ(constant({1, 2, 3, 4}, int32, {2, 2}).shape().str(), "[2,2]");
  EXPECT_EQ(constant("text").item<std::string>(), "text");
  expect_error([] { constant(1.5, int32); }, Code::invalid_argument, "1.5");
  expect_error([] { constant({1, 2, 3}, int32, {2}); }, Code::invalid_argument, "has 3 elements");
}

TEST(Constants, FillEveryDtype) {
  data_types.for_each([]<class T>() {
    const DType dtype = dtype_of<T>;
    const Tensor x = numbered(dtype, {2, 2});
    const Tensor z = zeros({3}, dtype);
    EXPECT_TRUE(z.data<T>()[2] == T()) << dtype_name(dtype);
    EXPECT_TRUE(zeros_like(x).template data<T>()[3] == T()) << dtype_name(dtype);
    const Tensor f = fill({2, 3}, x(0, 1));
    EXPECT_TRUE(f.data<T>()[5] == x.data<T>()[1]) << dtype_name(dtype);
    if constexpr (!std::is_same_v<T, Bytes>) {
      EXPECT_TRUE(ones({3}, dtype).template data<T>()[2] == T(1)) << dtype_name(dtype);
      EXPECT_TRUE(ones_like(x).template data<T>()[3] == T(1)) << dtype_name(dtype);
    }
  });
  EXPECT_EQ(zeros_like(zeros({2, 3}), int32).dtype(), int32);
  EXPECT_EQ(zeros({0, 2}).shape().str(), "[0,2]");
  expect_error([] { ones({1}, DType::string); }, Code::invalid_argument, "no 1 of dtype string");
}

TEST(Sequences, Range) {
  EXPECT_EQ(range(4).to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(range(5, 0, -2).to_vector<int32_t>(), (std::vector<int32_t>{5, 3, 1}));
  EXPECT_EQ(range(0, 1, 0.25).to_vector<float>(), (std::vector<float>{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(range(int64_t{3}).dtype(), int64);
  EXPECT_EQ(range(Tensor::of<double>({1.5})[0]).to_vector<double>(), (std::vector<double>{0, 1}));
  EXPECT_EQ(range(0).num_elements(), 0);
  EXPECT_EQ(range(3, 3).num_elements(), 0);
  EXPECT_EQ(range(0.f, .3f, .1f).num_elements(), 3);  // counted in float32
  EXPECT_EQ(range(0., .3, .1).num_elements(), 3);
  expect_error([] { range(0, 3, 0); }, Code::invalid_argument, "[Range] delta is zero");
  expect_error([] { range(3, 0); }, Code::invalid_argument, "delta 1 leads away from the limit: start 3, limit 0");
}

TEST(Sequences, Linspace) {
  EXPECT_EQ(linspace(0, 1, 5).to_vector<float>(), (std::vector<float>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(linspace(3.0, 1.0, 1).to_vector<float>(), (std::vector<float>{3}));
  const Tensor rows = linspace(Tensor{0.f, 10.f}, Tensor{1.f, 20.f}, 3);
  EXPECT_EQ(rows.to_vector<float>(), (std::vector<float>{0, 10, 0.5, 15, 1, 20}));
  EXPECT_EQ(linspace(Tensor{0.f, 10.f}, Tensor{1.f, 20.f}, 3, -1).to_vector<float>(),
            (std::vector<float>{0, 0.5, 1, 10, 15, 20}));
  expect_error([] { linspace(0, 1, 0); }, Code::invalid_argument, "num must be at least 1, got 0");
}

TEST(Sequences, OneHotAndEye) {
  EXPECT_EQ(one_hot({1, 3, -1}, 3).to_vector<float>(), (std::vector<float>{0, 1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(one_hot({0, 1}, 2, "on", "off", 0).to_vector<std::string>(),
            (std::vector<std::string>{"on", "off", "off", "on"}));
  EXPECT_EQ(one_hot(Tensor::of<uint8_t>({2}), 3, -1, int32).to_vector<int32_t>(), (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(one_hot(Tensor{{0, 1}}, 3, 1).shape().str(), "[1,3,2]");
  EXPECT_EQ(eye(2).to_vector<float>(), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(eye(1, 2, {2}, bool_).to_vector<bool>(), (std::vector<bool>{true, false, true, false}));
}

}  // namespace
}  // namespace runnel
