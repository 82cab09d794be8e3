// What profiles have of eager ops.
#include <gmock/gmock.h>

#include "runnel/keras/keras.h"
#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/profiles.h"

namespace runnel {
namespace {

using profile::Kind;
using profile::Recording;
using testing::ElementsAre;

// The only event of this op.
profile::Event event_of(const Recording& r, const std::string& op) {
  const std::vector<profile::Event> found = events_of(r, Kind::op, op);
  EXPECT_EQ(found.size(), 1U) << op << " among " << testing::PrintToString(names_of(r.events));
  return found.empty() ? profile::Event() : found[0];
}

TEST(OpProfile, TellsShapesBytesAndOperations) {
  const Tensor x{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}, y{10.f, 20.f, 30.f};
  const Recording r = recorded([&] { add(x, y); });
  ASSERT_EQ(r.events.size(), 1U);
  const profile::Event& event = r.events[0];
  EXPECT_EQ(event.name, "AddV2");
  EXPECT_EQ(event.op_type, "AddV2");
  EXPECT_EQ(event.kind, Kind::op);
  EXPECT_EQ(event.detail, "float32[2,3] float32[3] -> float32[2,3]");
  EXPECT_EQ(event.bytes, 4 * (6 + 3 + 6));
  EXPECT_EQ(event.flops, 6);  // an elementwise op has one for each element
  EXPECT_EQ(event.step, -1);
  EXPECT_LT(event.begin_ns, event.end_ns);
  EXPECT_EQ(thread_of(r, event), "main");
}

TEST(OpProfile, NothingIsRecordedWhenItIsOff) {
  const Tensor x = ones({3});
  x + x;
  const Recording r = recorded([&] { x* x; });
  x - x;
  EXPECT_THAT(names_of(r.events), ElementsAre("Mul"));
}

TEST(OpProfile, OperationsOfProducts) {
  const Recording r = recorded([] {
    matmul(ones({2, 3}), ones({3, 5}));
    matmul(ones({7, 2, 3}), ones({7, 5, 3}), {.transpose_b = true});
  });
  EXPECT_EQ(event_of(r, "MatMul").flops, 2 * 2 * 3 * 5);
  EXPECT_EQ(event_of(r, "BatchMatMulV2").flops, 2 * 7 * 2 * 3 * 5);
  const Recording transposed = recorded([] { matmul(ones({3, 2}), ones({3, 5}), {.transpose_a = true}); });
  EXPECT_EQ(event_of(transposed, "MatMul").flops, 2 * 2 * 3 * 5);
}

TEST(OpProfile, OperationsOfConvolutionsAndTheirGradients) {
  const Tensor x = ones({2, 8, 8, 3}), w = ones({3, 3, 3, 4});
  const Recording r = recorded([&] {
    GradientTape tape;
    tape.watch(x);
    tape.watch(w);
    const Tensor y = nn::conv2d(x, w, {.padding = "SAME"});
    tape.gradient(y, std::vector<Tensor>{x, w});
  });
  const double each = 2.0 * (2 * 8 * 8 * 4) * (3 * 3 * 3);
  EXPECT_EQ(event_of(r, "Conv2D").flops, each);
  EXPECT_EQ(event_of(r, "Conv2DBackpropInput").flops, each);
  EXPECT_EQ(event_of(r, "Conv2DBackpropFilter").flops, each);
  const Recording depthwise = recorded([&] { nn::depthwise_conv2d(x, ones({3, 3, 3, 2}), {.padding = "SAME"}); });
  EXPECT_EQ(event_of(depthwise, "DepthwiseConv2dNative").flops, 2.0 * (2 * 8 * 8 * 6) * (3 * 3));
}

TEST(OpProfile, OperationsOfRecurrentLayers) {
  keras::layers::LSTM layer(5);
  const Tensor x = ones({2, 7, 3});
  layer(x);
  const Recording r = recorded([&] { layer(x); });
  EXPECT_EQ(event_of(r, "_RecurrentSequence").flops, 2.0 * (2 * 7) * (3 * 20 + 5 * 20));
}

TEST(OpProfile, AnErrorEndsTheEvent) {
  const Recording r = recorded([] {
    const Tensor a = ones({2, 3});
    test::expect_error([&] { matmul(a, a); }, Code::invalid_argument, "inner dimensions differ");
    a + a;
  });
  EXPECT_THAT(names_of(events_of(r, Kind::op)), ElementsAre("Fill", "MatMul", "AddV2"));
  const profile::Event failed = event_of(r, "MatMul");
  EXPECT_EQ(failed.detail, "float32[2,3] float32[2,3] -> nothing");
  EXPECT_EQ(failed.flops, 0);
  EXPECT_LE(failed.end_ns, event_of(r, "AddV2").begin_ns);
}

TEST(OpProfile, OpsOfAKernelAreInsideIt) {
  const Recording r = recorded([] {
    call_op("Einsum", {ones({2, 3}), ones({3, 4})}, {{"equation", std::string("ij,jk->ik")}});
  });
  const profile::Event outer = event_of(r, "Einsum"), inner = event_of(r, "MatMul");
  EXPECT_TRUE(is_inside(inner, outer));
  EXPECT_EQ(inner.flops, 48);
  EXPECT_EQ(outer.flops, 0);  // or they would count twice
}

TEST(OpProfile, StringsAndHandlesHaveNoBytes) {
  const Variable v(ones({4}));
  const Recording r = recorded([&] {
    v.assign_add(ones({4}));
    v.value();
  });
  EXPECT_EQ(event_of(r, "AssignAddVariableOp").bytes, 16);
}

TEST(OpProfile, MemoryIsOfTheOpThatTookIt) {
  Tensor large;
  const Recording r = recorded([&] { large = ones({1 << 20}); });
  ASSERT_FALSE(r.memory.empty());
  EXPECT_EQ(r.memory.back().op, "Fill");
  EXPECT_GE(r.memory.back().live_bytes, 4 << 20);
  const Recording released = recorded([&] { large = Tensor(); });
  ASSERT_EQ(released.memory.size(), 1U);
  EXPECT_LE(released.memory[0].live_bytes, r.memory.back().live_bytes - (4 << 20));
}

}  // namespace
}  // namespace runnel
