#include <gtest/gtest.h>

#include <sstream>

#include "runnel/ops/state.h"

namespace runnel {
namespace {

std::string streamed(const Variable& variable) {
  std::ostringstream out;
  out << variable;
  return out.str();
}

TEST(VariableText, AsTensorFlowPrints) {
  const Variable w(Tensor({1.0f, 2.0f}), {.name = "w"});
  EXPECT_EQ(streamed(w), "<tf.Variable 'w:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>");
  w.assign(Tensor({3.5f, -1.0f}));
  EXPECT_EQ(streamed(w), "<tf.Variable 'w:0' shape=(2,) dtype=float32, numpy=array([ 3.5, -1. ], dtype=float32)>");
  const Variable open(Tensor({{1, 2}}), {.name = "open", .shape = PartialShape{kUnknownDim, 2}});
  EXPECT_EQ(streamed(open), "<tf.Variable 'open:0' shape=(None, 2) dtype=int32, numpy=array([[1, 2]], dtype=int32)>");
  EXPECT_EQ(streamed(Variable(3.0f)), "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=3.0>");
}

}  // namespace
}  // namespace runnel
