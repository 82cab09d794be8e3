// Errors carry what they passed through as data, beside their text.
#include <gmock/gmock.h>

#include "runnel/io/idx.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

using Kind = ErrorFrame::Kind;

template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return Error(Code::unknown, "none");
}

TEST(ErrorFrames, AMessageThatBeginsWithANameHasItsFrame) {
  const Error named(Code::internal, "[MatMul] went wrong");
  ASSERT_EQ(named.frames().size(), 1u);
  EXPECT_EQ(named.frames()[0].kind, Kind::op);
  EXPECT_EQ(named.frames()[0].name, "MatMul");
  EXPECT_TRUE(Error(Code::internal, "[2,3] is no shape for it").frames().empty());
  EXPECT_TRUE(Error(Code::internal, "plain").frames().empty());
  EXPECT_TRUE(Error(Code::internal, "").frames().empty());
}

TEST(ErrorFrames, TextIsMadeOfFrames) {
  const Error bare(Code::internal, "wrong");
  const Error op = bare.inside({.kind = Kind::op, .name = "MatMul", .detail = "inputs a: float32[2]"});
  EXPECT_STREQ(op.what(), "[MatMul] wrong; inputs a: float32[2]");
  const Error node = op.inside({.kind = Kind::node, .name = "mul_1", .type = "MatMul"});
  EXPECT_STREQ(node.what(), "[MatMul] wrong; inputs a: float32[2]; node 'mul_1'");
  const Error layer = node.inside({.kind = Kind::layer, .name = "d", .type = "Dense", .detail = "float32[2]"});
  EXPECT_STREQ(layer.what(),
               "[MatMul] wrong; inputs a: float32[2]; node 'mul_1'\n  in layer 'd' (Dense) called with float32[2]");
  EXPECT_EQ(layer.code(), Code::internal);
  EXPECT_EQ(layer.frames().size(), 3u);
  const Error file = layer.inside({.kind = Kind::file, .name = "a.txt", .offset = 12});
  EXPECT_STREQ(file.what(), layer.what());
  EXPECT_EQ(file.frames().back().offset, 12);
  const Error other = file.reworded("in other words");
  EXPECT_STREQ(other.what(), "in other words");
  EXPECT_EQ(other.frames().size(), 4u);
}

TEST(ErrorFrames, OfAnOp) {
  const Error e = error_of([] { matmul(ones({2, 3}), ones({4, 5})); });
  ASSERT_EQ(e.frames().size(), 1u);
  EXPECT_EQ(e.frames()[0].kind, Kind::op);
  EXPECT_EQ(e.frames()[0].name, "MatMul");
  EXPECT_THAT(e.frames()[0].detail, ::testing::HasSubstr("float32[2,3]"));
  EXPECT_TRUE(e.frames()[0].where.known());
}

TEST(ErrorFrames, OfANodeOfAGraph) {
  auto inner = function([](const Tensor& x) { return assert_(reduce_all(x > 0), {x}), x * 2; });
  auto f = function([&](const Tensor& x) { return inner(x); }, {.name = "checked"});
  const Error e = error_of([&] { f(Tensor{-1.f}); });
  EXPECT_TRUE(e.has_frame(Kind::op));
  ASSERT_TRUE(e.has_frame(Kind::node));
  int nodes = 0;
  for (const ErrorFrame& frame : e.frames()) {
    if (frame.kind != Kind::node) continue;
    ++nodes;
    EXPECT_EQ(frame.type, "Assert");
  }
  EXPECT_EQ(nodes, 1);  // the innermost
  EXPECT_EQ(e.frames().back().kind, Kind::function);
  EXPECT_EQ(e.frames().back().name, "checked");
}

TEST(ErrorFrames, OfALayerInAModel) {
  auto model = keras::Sequential({keras::Dense({.units = 3}), keras::Dense({.units = 2, .name = "last"})});
  model(ones({1, 4}));
  const Error e = error_of([&] { model(ones({1, 5})); });
  int layers = 0;
  for (const ErrorFrame& frame : e.frames()) layers += frame.kind == Kind::layer;
  EXPECT_EQ(layers, 1) << e.what();
}

TEST(ErrorFrames, OfAFile) {
  const std::byte damaged[] = {std::byte{0}, std::byte{0}, std::byte{99}, std::byte{1}};
  const Error e = error_of([&] { io::parse_idx(damaged, "digits.idx"); });
  ASSERT_TRUE(e.has_frame(Kind::file)) << e.what();
  EXPECT_EQ(e.frames().back().name, "digits.idx");
  EXPECT_EQ(e.frames().back().offset, 2) << e.what();
}

TEST(ErrorFrames, PassThroughACallback) {
  const Error e = error_of([] {
    host_call(
        [](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{matmul(in[0], ones({7, 7}))};
        },
        {ones({2, 3})}, {DType::float32});
  });
  ASSERT_EQ(e.frames().size(), 1u) << e.what();
  EXPECT_EQ(e.frames()[0].name, "MatMul");
}

}  // namespace
}  // namespace runnel
