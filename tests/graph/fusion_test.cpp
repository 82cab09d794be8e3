// Passes that join ops: fused activations, packed weights, updates of many variables at once.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <mutex>

#include "runnel/graph/decompose.h"
#include "runnel/graph/graph_def.h"
#include "runnel/graph/graph_function.h"
#include "runnel/graph/passes/pass.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

using FusionProgram = std::function<Tensor(const Tensor&)>;

std::shared_ptr<Graph> traced_for_fusion(const FusionProgram& f, const PartialShape& shape,
                                         std::vector<Tensor>* captures = nullptr) {
  Tracer tracer("test");
  const Tensor x = tracer.add_parameter(DType::float32, shape);
  tracer.open();
  tracer.set_outputs({f(x)});
  tracer.close();
  if (captures) *captures = tracer.captures();
  return tracer.graph();
}

int count_nodes(const Graph& g, const char* op) {
  int n = 0;
  for (const auto& node : g.nodes()) n += node->is(op);
  return n;
}

Tensor values(const Shape& shape, int seed) { return random::stateless_normal(shape, Tensor{seed, 7}); }

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && std::memcmp(a.raw(), b.raw(), a.num_bytes()) == 0;
}

// The function's result with the pass is that of the plain ops.
void expect_same(const FusionProgram& f, const Tensor& x, const PlanOptions& without) {
  const Tensor eager = f(x);
  EXPECT_TRUE(same_bits(function(f)(x), eager));
  EXPECT_TRUE(same_bits(function(f, {.plan = without})(x), eager)) << "without the pass";
}

TEST(FusedActivations, TakeInBiasAndActivation) {
  const Variable w(values({30, 20}, 1)), b(values({20}, 2)), k(values({3, 3, 4, 8}, 3)), c(values({8}, 4));
  const std::vector<std::function<Tensor(const Tensor&)>> activations{
      [](const Tensor& t) { return nn::relu(t); },
      [](const Tensor& t) { return nn::relu6(t); },
      [](const Tensor& t) { return nn::leaky_relu(t, 0.3); },
      [](const Tensor& t) { return nn::elu(t); },
      [](const Tensor& t) { return tanh(t); },
      [](const Tensor& t) { return sigmoid(t); },
      [](const Tensor& t) { return t; }};
  for (const auto& activation : activations) {
    for (const bool bias_add : {false, true}) {
      const FusionProgram dense = [&](const Tensor& x) {
        const Tensor y = matmul(x, w);
        return activation(bias_add ? nn::bias_add(y, b) : y + b);
      };
      auto g = traced_for_fusion(dense, {5, 30});
      EXPECT_TRUE(fuse_activations(*g));
      g->verify();
      EXPECT_EQ(count_nodes(*g, "_FusedMatMul"), 1);
      EXPECT_EQ(g->num_nodes(), 6);  // x, two handles, two reads
      for (const int64_t m : {1, 5, 50}) expect_same(dense, values({m, 30}, 5), {.fused_activations = false});
      const FusionProgram conv = [&](const Tensor& x) {
        const Tensor y = nn::conv2d(x, k, {.padding = "SAME"});
        return activation(bias_add ? nn::bias_add(y, c) : y + c);
      };
      auto h = traced_for_fusion(conv, {2, 9, 9, 4});
      EXPECT_TRUE(fuse_activations(*h));
      h->verify();
      EXPECT_EQ(count_nodes(*h, "_FusedConv2D"), 1);
      expect_same(conv, values({2, 9, 9, 4}, 6), {.fused_activations = false});
    }
  }
}

TEST(FusedActivations, LeaveWhatOthersUse) {
  const Variable w(values({3, 4}, 1)), b(values({4}, 2)), row(values({1, 4}, 3));
  const std::vector<FusionProgram> kept{
      [&](const Tensor& x) {  // the product has another user
        const Tensor y = matmul(x, w);
        return nn::relu(y + b) + y;
      },
      [&](const Tensor& x) { return nn::relu(matmul(x, w) + row); },  // no vector
      [&](const Tensor& x) { return nn::relu(b - matmul(x, w)); },    // no sum
      [&](const Tensor& x) { return nn::relu(matmul(x, w)); },        // no bias
  };
  for (const FusionProgram& f : kept) {
    auto g = traced_for_fusion(f, {2, 3});
    EXPECT_FALSE(fuse_activations(*g));
    expect_same(f, values({2, 3}, 9), {.fused_activations = false});
  }
  // The sum has another user: the activation stays by itself.
  const FusionProgram half = [&](const Tensor& x) {
    const Tensor y = matmul(x, w) + b;
    return nn::relu(y) + y;
  };
  auto g = traced_for_fusion(half, {2, 3});
  EXPECT_TRUE(fuse_activations(*g));
  EXPECT_EQ(count_nodes(*g, "Relu"), 1);
  expect_same(half, values({2, 3}, 9), {.fused_activations = false});
}

TEST(FusedActivations, NaNAndZerosKeepTheirBits) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const FusionProgram f = [](const Tensor& x) { return nn::relu(matmul(x, Tensor{{1.f}}) + Tensor{-0.f}); };
  expect_same(f, Tensor{{nan}, {inf}, {-inf}, {-0.f}, {0.f}, {1e-45f}, {-1e-45f}}, {.fused_activations = false});
}

TEST(FusedActivations, WorkWithUnknownShapesAndNameErrors) {
  const Variable w(values({3, 4}, 1)), b(values({4}, 2));
  auto f = function([&](const Tensor& x) { return nn::relu(matmul(x, w) + b); },
                    {.input_signature = {{PartialShape{kUnknownDim, kUnknownDim}, float32}}});
  const Tensor x = values({6, 3}, 3);
  EXPECT_TRUE(same_bits(f(x), nn::relu(matmul(x, w) + b)));
  try {
    f(values({6, 5}, 3));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("inner dimensions differ"), std::string::npos) << e.what();
  }
}

TEST(FusedActivations, AreTakenApartForExport) {
  const Variable w(values({3, 60}, 1)), b(values({60}, 2)), k(values({3, 3, 4, 8}, 3)), c(values({8}, 4));
  const FusionProgram f = [&](const Tensor& x) {
    return nn::elu(matmul(nn::leaky_relu(matmul(x, values({3, 3}, 8)) + Tensor{1.f, 2.f, 3.f}, 0.4), w) + b);
  };
  std::vector<Tensor> captures;
  auto g = traced_for_fusion(f, {1, 3}, &captures);
  fuse_activations(*g);
  pack_weights(*g);
  EXPECT_EQ(count_nodes(*g, "_FusedMatMul") + count_nodes(*g, "_PackedMatMul"), 2);
  const std::shared_ptr<const Graph> plain = decomposed(*g);
  plain->verify();
  for (const auto& node : plain->nodes()) EXPECT_TRUE(node->is("_Arg") || node->op->name[0] != '_') << node->op->name;
  const auto back = from_graph_def(g->to_graph_def());
  const Tensor x = values({1, 3}, 5);
  std::vector<Tensor> in{x};
  in.insert(in.end(), captures.begin(), captures.end());
  EXPECT_TRUE(same_bits(GraphFunction(back).run(in)[0], f(x)));
}

TEST(WeightPacking, KeepsOneCopyPerVersion) {
  const Variable w(values({200, 100}, 1)), b(values({100}, 2)), k(values({5, 5, 8, 16}, 3)), c(values({16}, 4));
  const FusionProgram dense = [&](const Tensor& x) { return nn::relu(matmul(x, w) + b); };
  const FusionProgram conv = [&](const Tensor& x) {
    return nn::relu(nn::bias_add(nn::conv2d(x, k, {.padding = "SAME"}), c));
  };
  auto g = traced_for_fusion(conv, {1, 14, 14, 8});
  fuse_activations(*g);
  EXPECT_TRUE(pack_weights(*g));
  prune(*g);
  g->verify();
  EXPECT_EQ(count_nodes(*g, "_PackedConv2D"), 1);
  EXPECT_EQ(count_nodes(*g, "ReadVariableOp"), 1);  // of the bias
  auto f = function(dense);
  auto h = function(conv);
  const Tensor x = values({1, 200}, 5), image = values({1, 14, 14, 8}, 6);
  for (int i = 0; i < 3; ++i) {  // a new value is seen at once
    EXPECT_TRUE(same_bits(f(x), dense(x)));
    EXPECT_TRUE(same_bits(f(x), dense(x)));
    EXPECT_TRUE(same_bits(h(image), conv(image)));
    w.assign_add(values({200, 100}, 7 + i));
    k.assign(k * 1.5f);
  }
  expect_same(dense, x, {.weight_packing = false});
  expect_same(conv, image, {.weight_packing = false});
  int made = 0;
  const auto make = [&](const Tensor& t) {
    ++made;
    return t;
  };
  VariableSlot& slot = w.slot();
  const std::lock_guard lock(slot.mutex);
  slot.packed("test", make);
  slot.packed("test", make);
  EXPECT_EQ(made, 1);
  slot.writable();
  slot.packed("test", make);
  EXPECT_EQ(made, 2);
}

TEST(WeightPacking, NotWhereTheFunctionWrites) {
  const Variable k(values({5, 5, 8, 16}, 3)), c(values({16}, 4));
  const FusionProgram step = [&](const Tensor& x) {
    const Tensor y = nn::relu(nn::bias_add(nn::conv2d(x, k, {.padding = "SAME"}), c));
    k.assign_sub(k * 0.1f);
    return y;
  };
  auto g = traced_for_fusion(step, {1, 14, 14, 8});
  fuse_activations(*g);
  EXPECT_FALSE(pack_weights(*g));
}

struct Adam {
  std::vector<Variable> v, m, s;
  explicit Adam(const std::vector<Shape>& shapes) {
    for (const Shape& shape : shapes) {
      v.emplace_back(values(shape, static_cast<int>(v.size())));
      m.emplace_back(zeros(shape));
      s.emplace_back(zeros(shape));
    }
  }
  Tensor step(const Tensor& x) const {
    for (size_t i = 0; i < v.size(); ++i) {
      call_op("ResourceApplyAdam", {v[i].handle(), m[i].handle(), s[i].handle(), x * 0.9f, x * 0.99f, Tensor(0.1f),
                                    Tensor(0.9f), Tensor(0.99f), Tensor(1e-7f), v[i] * x});
    }
    return reduce_sum(v[0]);
  }
};

TEST(FusedUpdates, AreOneOpOfTheSameBits) {
  const std::vector<Shape> shapes{{3}, {40000}, {7, 5}, {}};
  const Adam a(shapes), b(shapes);
  auto g = traced_for_fusion([&](const Tensor& x) { return a.step(x); }, {});
  optimize_and_verify(*g);
  EXPECT_EQ(count_nodes(*g, "_ManyResourceApplyAdam"), 1);
  EXPECT_EQ(count_nodes(*g, "ResourceApplyAdam"), 0);
  const std::shared_ptr<const Graph> plain = decomposed(*g);
  plain->verify();
  EXPECT_EQ(count_nodes(*plain, "ResourceApplyAdam"), 4);
  auto f = function([&](const Tensor& x) { return a.step(x); });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(f(Tensor(0.5f)), b.step(Tensor(0.5f))));
  for (size_t i = 0; i < shapes.size(); ++i) {
    EXPECT_TRUE(same_bits(a.v[i].value(), b.v[i].value()));
    EXPECT_TRUE(same_bits(a.m[i].value(), b.m[i].value()));
    EXPECT_TRUE(same_bits(a.s[i].value(), b.s[i].value()));
  }
}

TEST(FusedUpdates, WaitForNobody) {
  // The second update needs the first one's result; the third is of a variable that was updated before.
  const Variable v(Tensor{1.f, 2.f}), w(Tensor{3.f, 4.f});
  const FusionProgram f = [&](const Tensor& x) {
    call_op("ResourceApplyGradientDescent", {v.handle(), Tensor(0.5f), x});
    call_op("ResourceApplyGradientDescent", {w.handle(), Tensor(0.5f), v * x});
    call_op("ResourceApplyGradientDescent", {v.handle(), Tensor(0.5f), x});
    return v + w;
  };
  auto g = traced_for_fusion(f, {2});
  optimize_and_verify(*g);
  const Tensor start_v = v.value(), start_w = w.value(), x{0.25f, -1.f};
  const Tensor expected = f(x);
  v.assign(start_v);
  w.assign(start_w);
  EXPECT_TRUE(same_bits(function(f)(x), expected));
}

int place_of(const Graph& g, const char* op, int nth = 0) {
  for (const auto& node : g.nodes()) {
    if (node->is(op) && nth-- == 0) return node->id;
  }
  return -1;
}

TEST(EarlyUpdates, RunWhenNobodyNeedsTheOldValue) {
  const Variable v(values({1000}, 1)), w(values({1000}, 2));
  const auto program = [&](bool asserts) {
    return [&, asserts](const Tensor& x) {
      const Tensor g = x * v, h = exp(g) * w;
      if (asserts) assert_(reduce_all(h > 0.f), {h});
      const Tensor y = tanh(h) + w;
      call_op("ResourceApplyGradientDescent", {v.handle(), Tensor(0.5f), g});
      call_op("ResourceApplyGradientDescent", {w.handle(), Tensor(0.5f), h});
      return y;
    };
  };
  auto g = traced_for_fusion(program(false), {1000});
  EXPECT_TRUE(hoist_updates(*g));
  g->verify();
  EXPECT_LT(place_of(*g, "ResourceApplyGradientDescent"), place_of(*g, "Exp"));
  EXPECT_GT(place_of(*g, "ResourceApplyGradientDescent", 1), place_of(*g, "AddV2"));  // the sum reads w
  EXPECT_FALSE(hoist_updates(*g));
  auto held = traced_for_fusion(program(true), {1000});
  hoist_updates(*held);
  held->verify();
  EXPECT_GT(place_of(*held, "ResourceApplyGradientDescent"), place_of(*held, "Assert"));
  const Tensor v0 = v.value(), w0 = w.value(), x = values({1000}, 3);
  for (const bool asserts : {false, true}) {
    v.assign(v0);
    w.assign(abs(w0));
    const Tensor y = program(asserts)(x), v1 = v.value(), w1 = w.value();
    v.assign(v0);
    w.assign(abs(w0));
    EXPECT_TRUE(same_bits(function(program(asserts))(x), y));
    EXPECT_TRUE(same_bits(v.value(), v1));
    EXPECT_TRUE(same_bits(w.value(), w1));
  }
}

}  // namespace
}  // namespace runnel
