#include <gtest/gtest.h>

#include <sstream>

#include "runnel/tensor/tensor.h"

namespace runnel {
namespace {

std::string streamed(const Tensor& tensor) {
  std::ostringstream out;
  out << tensor;
  return out.str();
}

TEST(TensorText, Streams) {
  EXPECT_EQ(streamed(Tensor(1.0f)), "tf.Tensor(1.0, shape=(), dtype=float32)");
  EXPECT_EQ(streamed(Tensor({1, 2, 3})), "tf.Tensor([1 2 3], shape=(3,), dtype=int32)");
  EXPECT_EQ(streamed(Tensor({{1.0f, 2.0f}, {3.0f, 4.0f}})),
            "tf.Tensor(\n[[1. 2.]\n [3. 4.]], shape=(2, 2), dtype=float32)");
  EXPECT_EQ(streamed(Tensor("abc")), "tf.Tensor(b'abc', shape=(), dtype=string)");
  EXPECT_EQ(streamed(Tensor::of(std::vector<bool>{true, false})), "tf.Tensor([ True False], shape=(2,), dtype=bool)");
  EXPECT_EQ(streamed(Tensor::empty(float32, Shape{0, 3})), "tf.Tensor([], shape=(0, 3), dtype=float32)");
  EXPECT_EQ(streamed(Tensor()), "tf.Tensor(<undefined>)");
}

TEST(TensorText, Repr) {
  EXPECT_EQ(Tensor({1.0f, 2.0f}).repr(),
            "<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>");
}

TEST(TensorText, SymbolicTensorsShowWhatIsKnown) {
  struct Node : Symbol {
    explicit Node(PartialShape s) : known(std::move(s)) {}
    const PartialShape& shape() const override { return known; }
    PartialShape known;
  };
  const auto symbolic = [](const PartialShape& shape) {
    return Tensor(make_ref<TensorImpl>(float32, std::make_shared<Node>(shape)));
  };
  EXPECT_EQ(symbolic({kUnknownDim, 2}).str(), "tf.Tensor(shape=(None, 2), dtype=float32)");
  EXPECT_EQ(symbolic(PartialShape::unknown()).repr(), "<tf.Tensor: shape=<unknown>, dtype=float32>");
}

}  // namespace
}  // namespace runnel
