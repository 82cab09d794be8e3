// Graphs as TensorFlow's GraphDef and back.
#include "runnel/graph/graph_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "runnel/function/control_flow.h"
#include "runnel/graph/call.h"
#include "runnel/graph/graph_function.h"
#include "runnel/graph/tracer.h"
#include "runnel/ops/tensor_array.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/wire.h"

namespace runnel {
namespace {

using test::expect_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Traced {
  std::shared_ptr<Graph> graph;
  std::vector<Tensor> captures;
};
Traced traced(const std::vector<PartialShape>& parameters,
              const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f) {
  Tracer tracer("traced");
  std::vector<Tensor> in;
  for (size_t i = 0; i < parameters.size(); ++i) {
    in.push_back(tracer.add_parameter(DType::float32, parameters[i], "x" + std::to_string(i)));
  }
  tracer.open();
  tracer.set_outputs(f(in));
  tracer.close();
  return {tracer.graph(), tracer.captures()};
}

std::vector<Tensor> run(const std::shared_ptr<Graph>& graph, const std::vector<Tensor>& inputs) {
  graph->verify();
  return GraphFunction(graph).run(inputs);
}

// A node of a GraphDef, taken apart by hand.
struct NodeView {
  std::string op;
  std::vector<std::string> inputs;
  std::map<std::string, std::string_view> attrs;
};
std::map<std::string, NodeView> nodes_of(std::string_view graph_def, int field = 1) {
  std::map<std::string, NodeView> all;
  for (std::string_view node : test::wire_messages(graph_def, field)) {
    std::string name;
    NodeView view;
    for (const auto& f : test::wire_fields(node)) {
      if (f.number == 1) name = f.bytes;
      if (f.number == 2) view.op = f.bytes;
      if (f.number == 3) view.inputs.emplace_back(f.bytes);
      if (f.number != 5) continue;
      view.attrs[std::string(test::wire_messages(f.bytes, 1).at(0))] =
          test::wire_messages(f.bytes, 2).empty() ? std::string_view() : test::wire_messages(f.bytes, 2)[0];
    }
    all[name] = view;
  }
  return all;
}

TEST(GraphDef, IsWhatTensorFlowWrites) {
  const auto t = traced({{kUnknownDim, 2}}, [](const auto& x) {
    return std::vector<Tensor>{matmul(x[0], constant({{1.f}, {2.f}}), {.transpose_b = false})};
  });
  const std::string bytes = t.graph->to_graph_def();  // the nodes are views of it
  const auto nodes = nodes_of(bytes);
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes.at("x0").op, "Placeholder");
  EXPECT_EQ(nodes.at("x0").attrs.at("dtype"), "\x30\x01");
  const NodeView& product = nodes.at("MatMul");
  EXPECT_EQ(product.op, "MatMul");
  EXPECT_EQ(product.inputs[0], "x0");
  EXPECT_EQ(nodes.at(product.inputs[1]).op, "Const");
  EXPECT_EQ(product.attrs.at("T"), "\x30\x01");
  EXPECT_EQ(product.attrs.at("transpose_a"), std::string_view("\x28\x00", 2));
  EXPECT_THAT(nodes.at("Identity").inputs, ElementsAre("MatMul"));
}

TEST(GraphDef, ComesBack) {
  const auto t = traced({{kUnknownDim}, {3}}, [](const auto& x) {
    const auto parts = split(x[1], 3);
    const Tensor y = concat({x[0] * parts[2], parts[0] - 1, nn::leaky_relu(x[0], 0.3)}, 0);
    return std::vector<Tensor>{y, x[1], reduce_sum(y)};
  });
  const std::string bytes = t.graph->to_graph_def();
  const auto back = from_graph_def(bytes);
  const std::vector<Tensor> in{Tensor{-1.f, 2.f}, Tensor{3.f, 4.f, 5.f}};
  const auto direct = run(t.graph, in);
  const auto again = run(back, in);
  ASSERT_EQ(again.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(again[i].to_vector<float>(), direct[i].to_vector<float>());
  EXPECT_EQ(from_graph_def(bytes)->to_graph_def().size(), bytes.size());
  EXPECT_EQ(back->inputs()[1]->name, "x1");
  EXPECT_EQ(back->inputs()[0]->shape(), PartialShape{kUnknownDim});
}

TEST(GraphDef, ATensorArrayIsListOps) {
  const auto t = traced({{3}}, [](const auto& x) {
    TensorArray ta(float32, 3, {.element_shape = PartialShape{}});
    for (int i = 0; i < 3; ++i) ta = ta.write(i, x[0][i] * 2);
    return std::vector<Tensor>{ta.stack(), ta.read(1), ta.gather({2, 2})};
  });
  std::set<std::string> ops;
  const std::string bytes = t.graph->to_graph_def();
  for (const auto& [name, node] : nodes_of(bytes)) ops.insert(node.op);
  for (const char* op : {"TensorListReserve", "TensorListSetItem", "TensorListStack", "TensorListGetItem"}) {
    EXPECT_TRUE(ops.contains(op)) << op;
  }
  const auto out = run(from_graph_def(bytes), {Tensor{1.f, 2.f, 3.f}});
  EXPECT_THAT(out[0].to_vector<float>(), ElementsAre(2, 4, 6));
  EXPECT_EQ(out[1].item<float>(), 4);
  EXPECT_THAT(out[2].to_vector<float>(), ElementsAre(6, 6));
}

// The number of keys after those that are given are inserted.
auto size_of_a_nameless_table() {
  return traced({{kUnknownDim}}, [](const auto& x) {
    const Tensor keys = cast(x[0], DType::int64);
    const Tensor table =
        call_op("MutableHashTableV2", {}, {{"key_dtype", DType::int64}, {"value_dtype", DType::int64}})[0];
    call_op("LookupTableInsertV2", {table, keys, keys});
    return call_op("LookupTableSizeV2", {table});
  });
}

// As in a session of TensorFlow 1, whose kernels keep the tables that they make.
TEST(GraphDef, ATableWithoutANameIsItsNodes) {
  const auto t = size_of_a_nameless_table();
  const std::string bytes = t.graph->to_graph_def();
  const auto back = from_graph_def(bytes), other = from_graph_def(bytes);
  const GraphFunction f(back);
  EXPECT_EQ(f.run({Tensor{1.f}})[0].item<int64_t>(), 1);
  EXPECT_EQ(f.run({Tensor{2.f, 3.f}})[0].item<int64_t>(), 3);
  EXPECT_EQ(run(other, {Tensor{1.f}})[0].item<int64_t>(), 1);
}

TEST(GraphDef, ATableWithoutANameStaysWithoutOneWhenItIsWritten) {
  const auto t = size_of_a_nameless_table();
  auto first = from_graph_def(t.graph->to_graph_def());
  EXPECT_EQ(run(first, {Tensor{1.f}})[0].item<int64_t>(), 1);
  const std::string again = first->to_graph_def();
  const auto nodes = nodes_of(again);
  const NodeView& table = nodes.at("MutableHashTableV2");
  EXPECT_EQ(table.op, "MutableHashTableV2");
  EXPECT_EQ(table.attrs.at("shared_name"), std::string_view("\x12\x00", 2));

  const auto second = from_graph_def(again), third = from_graph_def(again);
  EXPECT_EQ(run(second, {Tensor{1.f}})[0].item<int64_t>(), 1);
  EXPECT_EQ(run(second, {Tensor{2.f}})[0].item<int64_t>(), 2);  // found again by another plan of the graph
  EXPECT_EQ(run(third, {Tensor{3.f}})[0].item<int64_t>(), 1);
  EXPECT_EQ(run(first, {Tensor{4.f}})[0].item<int64_t>(), 2);
  first.reset();
  EXPECT_EQ(run(second, {Tensor{5.f}})[0].item<int64_t>(), 3);  // nothing of it went with another graph
  EXPECT_EQ(run(third, {Tensor{6.f}})[0].item<int64_t>(), 2);
}

// The graph does not know of the table, and so not the shape of what is looked up, before it runs.
TEST(GraphDef, TablesOfVectorsHaveTheirShapesWhenTheyRun) {
  for (const bool dense : {false, true}) {
    const auto t = traced({{kUnknownDim}}, [&](const auto& x) {
      const Tensor keys = cast(x[0], DType::int64);
      std::vector<std::pair<std::string, AttrValue>> attrs{{"value_dtype", DType::float32},
                                                           {"value_shape", PartialShape{2}}};
      std::vector<Tensor> marks;
      if (dense) {
        marks = {Tensor(int64_t{-1}), Tensor(int64_t{-2})};
      } else {
        attrs.emplace_back("key_dtype", DType::int64);
      }
      const Tensor table = call_op(dense ? "MutableDenseHashTableV2" : "MutableHashTableOfTensorsV2", marks, attrs)[0];
      call_op("LookupTableInsertV2", {table, keys, stack({x[0], -x[0]}, -1)});
      return call_op("LookupTableFindV2", {table, concat({keys, keys + int64_t{10}}, 0), Tensor{7.f, 8.f}});
    });
    const GraphFunction f(from_graph_def(t.graph->to_graph_def()));
    const Tensor found = f.run({Tensor{1.f, 2.f}})[0];
    EXPECT_EQ(found.shape(), (Shape{4, 2}));
    EXPECT_THAT(found.to_vector<float>(), ElementsAre(1, -1, 2, -2, 7, 8, 7, 8));
    EXPECT_THAT(f.run({Tensor{11.f}})[0].to_vector<float>(), ElementsAre(11, -11, 7, 8));  // the table of before
    EXPECT_THAT(f.run({Tensor{1.f}})[0].to_vector<float>(), ElementsAre(1, -1, 11, -11));
  }
}

TEST(GraphDef, AVariableWithoutADtypeIsAnError) {
  const auto field = [](char key, const std::string& bytes) {
    return std::string{key, static_cast<char>(bytes.size())} + bytes;
  };
  const std::string variable = field(0x0a, "v") + field(0x12, "VariableV2");
  const std::string user = field(0x0a, "y") + field(0x12, "Identity") + field(0x1a, "v");
  test::expect_error([&] { from_graph_def(field(0x0a, variable) + field(0x0a, user)); }, Code::invalid_argument,
                     "'v' (VariableV2) says nothing of attribute 'dtype'");
}

TEST(GraphDef, CallsThatDoNotFitTheirFunctionAreErrors) {
  const auto inner = traced({{kUnknownDim}}, [](const auto& x) { return std::vector<Tensor>{x[0] * 2, x[0]}; });
  const auto body = func_attr(std::make_shared<const GraphFunction>(inner.graph));
  const std::vector<DType> one{DType::float32}, two{DType::float32, DType::float32}, ints{DType::int32};
  const Tensor x{1.f, 2.f};
  const auto refused = [&](const std::vector<Tensor>& in, const std::vector<DType>& Tin, const std::vector<DType>& Tout,
                           const std::vector<PartialShape>& shapes, const std::string& text) {
    test::expect_error(
        [&] {
          call_op("PartitionedCall", in, {{"Tin", Tin}, {"Tout", Tout}, {"f", body}, {"_output_shapes", shapes}});
        },
        Code::invalid_argument, text);
  };
  refused({x, x}, two, two, {}, "takes 1 inputs, got 2");
  refused({Tensor{1}}, ints, two, {}, "is float32, got int32");
  refused({x}, one, one, {}, "gives 2 outputs, the op has 1");
  refused({x}, one, {DType::float32, DType::int32}, {}, "the op's is int32");
  refused({x}, one, two, {PartialShape{3}}, "output 0 has shape [2], the op says [3]");
}

TEST(GraphDef, OnlyCallsAddWhatAFunctionHasCaptured) {
  const auto inner = traced({{kUnknownDim}}, [](const auto& x) { return std::vector<Tensor>{x[0] * 2}; });
  const auto closed = std::make_shared<GraphFunction>(inner.graph);
  closed->captures = {Tensor{1.f, 2.f}};
  const std::vector<DType> none, one{DType::float32};
  const auto out = call_op("PartitionedCall", {}, {{"Tin", none}, {"Tout", one}, {"f", func_attr(closed)}});
  EXPECT_THAT(out[0].to_vector<float>(), ElementsAre(2, 4));
  test::expect_error(
      [&] {
        call_op("If", {Tensor(true)},
                {{"Tin", none}, {"Tout", one}, {"then_branch", func_attr(closed)}, {"else_branch", func_attr(closed)}});
      },
      Code::invalid_argument, "takes 1 inputs, got 0");
}

TEST(GraphDef, FunctionsStandInTheLibrary) {
  const auto inner = traced({{kUnknownDim}}, [](const auto& x) {
    const auto parts = unstack(stack({x[0], x[0] * 3}));
    return std::vector<Tensor>{parts[1], x[0]};
  });
  const auto body = std::make_shared<const GraphFunction>(inner.graph);
  const auto t = traced({{2}}, [&](const auto& x) {
    const std::vector<DType> in{DType::float32};
    const std::vector<DType> out{DType::float32, DType::float32};
    return call_op("PartitionedCall", {x[0]}, {{"Tin", in}, {"Tout", out}, {"f", func_attr(body)}});
  });
  const std::string bytes = t.graph->to_graph_def();
  EXPECT_THAT(graph_def_functions(bytes), ElementsAre("traced"));
  const std::string_view library = test::wire_messages(bytes, 2).at(0);
  const auto nodes = nodes_of(test::wire_messages(library, 1).at(0), 3);
  EXPECT_THAT(nodes.at("Unpack").inputs, ElementsAre("Pack:output:0"));
  const auto out = run(from_graph_def(bytes), {Tensor{1.f, 2.f}});
  EXPECT_THAT(out[0].to_vector<float>(), ElementsAre(3, 6));
  EXPECT_THAT(out[1].to_vector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(run(from_graph_def(bytes, {.function = "traced"}), {Tensor{5.f}})[0].to_vector<float>(), ElementsAre(15));
}

TEST(GraphDef, BranchesAndLoopsComeBack) {
  const auto t = traced({{}}, [](const auto& x) {
    const auto [i, sum, seen] =
        while_loop([&](const Tensor& i, const Tensor&, const TensorArray&) { return i < 4; },
                   [&](const Tensor& i, const Tensor& sum, const TensorArray& seen) {
                     const Tensor more = cond(
                         i < 2, [&] { return sum + x[0]; }, [&] { return sum * x[0]; });
                     return std::tuple{i + 1, more, seen.write(i, more)};
                   },
                   std::tuple{Tensor(0), Tensor(1.f), TensorArray(float32, 4, {.element_shape = PartialShape{}})});
    return std::vector<Tensor>{sum, seen.stack()};
  });
  const std::string bytes = t.graph->to_graph_def();
  EXPECT_EQ(graph_def_functions(bytes).size(), 4u);
  const auto out = run(from_graph_def(bytes), {Tensor(3.f)});
  EXPECT_EQ(out[0].item<float>(), 63);
  EXPECT_THAT(out[1].to_vector<float>(), ElementsAre(4, 7, 21, 63));
  EXPECT_EQ(from_graph_def(bytes)->to_graph_def().size(), bytes.size());
}

TEST(GraphDef, EffectsAndTheirOrderComeBack) {
  Variable v(1.f);
  const auto t = traced({{}}, [&](const auto& x) {
    v.assign(x[0]);
    v.assign_add(1.f);
    return std::vector<Tensor>{v.value() * 2};
  });
  const auto back = from_graph_def(t.graph->to_graph_def());
  EXPECT_EQ(run(back, {Tensor(4.f), v.handle()})[0].item<float>(), 10);
  EXPECT_EQ(v.value().item<float>(), 5);
}

TEST(GraphDef, PartsCanBeTaken) {
  const auto t = traced({{}}, [](const auto& x) { return std::vector<Tensor>{sqrt(square(x[0]) + 1)}; });
  const std::string bytes = t.graph->to_graph_def();
  EXPECT_EQ(run(from_graph_def(bytes, {.inputs = {"Square"}, .outputs = {"AddV2:0"}}), {Tensor(5.f)})[0].item<float>(),
            6);
  expect_error([&] { from_graph_def(bytes, {.outputs = {"Nothing"}}); }, Code::invalid_argument,
               "'outputs' wants 'Nothing', but there is no such node");
}

// Messages put together by hand.
std::string bytes_field(int number, std::string_view bytes) {
  std::string out;
  append_varint(out, static_cast<uint64_t>(number) << 3 | 2);
  append_varint(out, bytes.size());
  return out + std::string(bytes);
}
std::string node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs) {
  std::string def = bytes_field(1, name) + bytes_field(2, op);
  for (const std::string& in : inputs) def += bytes_field(3, in);
  return bytes_field(1, def);
}

TEST(GraphDef, RefusesWhatMakesNoGraph) {
  expect_error([] { from_graph_def("\x0a\x05hello"); }, Code::data_loss, "no GraphDef");
  expect_error([] { from_graph_def(node("a", "Frobnicate", {})); }, Code::not_found,
               "node 'a': there is no op 'Frobnicate'");
  expect_error([] { from_graph_def(node("a", "Neg", {"b"})); }, Code::invalid_argument,
               "'a' wants 'b', but there is no such node");
  expect_error([] { from_graph_def(node("a", "Neg", {"b"}) + node("b", "Neg", {"a"})); }, Code::unimplemented,
               "a cycle");
  expect_error([] { from_graph_def(node("a", "Neg", {"b:x"})); }, Code::invalid_argument, "no name of a tensor");
  expect_error([] { from_graph_def(node("a", "NoOp", {}) + node("a", "NoOp", {})); }, Code::invalid_argument,
               "two nodes are called 'a'");
  expect_error([] { from_graph_def(node("a", "Const", {})); }, Code::invalid_argument, "attribute 'dtype'");
}

TEST(GraphDef, AttributesMustBeWhatTheirOpsAllow) {
  const auto t = traced({{3}}, [](const auto& x) {
    return std::vector<Tensor>{pad(x[0], Tensor{{1, 1}}, "REFLECT"), x[0]};
  });
  std::string bytes = t.graph->to_graph_def();
  const size_t at = bytes.find("REFLECT");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 7, "REFLEXT");
  expect_error([&] { from_graph_def(bytes); }, Code::invalid_argument,
               "[MirrorPad] Value for attr 'mode' of \"REFLEXT\" is not in the list of allowed values");

  std::string nameless = t.graph->to_graph_def();
  const size_t key = nameless.find("\x0a\x04mode");  // of the map of attributes
  ASSERT_NE(key, std::string::npos);
  nameless.replace(key + 2, 4, "mood");
  expect_error([&] { from_graph_def(nameless); }, Code::invalid_argument,
               "node 'MirrorPad' (MirrorPad) says nothing of attribute 'mode'");
}

TEST(GraphDef, DamagedBytesGiveAnErrorOrAGraph) {
  const auto t = traced({{2, 2}}, [](const auto& x) {
    TensorArray ta(float32, 2);
    ta = ta.unstack(matmul(x[0], x[0], {.transpose_a = true}));
    return std::vector<Tensor>{ta.concat(), reshape(transpose(x[0], {1, 0}), {4})};
  });
  const std::string good = t.graph->to_graph_def();
  uint32_t seed = 7;
  auto next = [&](size_t n) {
    seed = seed * 1664525u + 1013904223u;
    return static_cast<size_t>(seed >> 8) % n;
  };
  int errors = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (size_t k = 0; k <= next(3); ++k) bad[next(bad.size())] = static_cast<char>(next(256));
    if (next(4) == 0) bad.resize(next(bad.size()));
    try {
      from_graph_def(bad)->verify();
    } catch (const Error& e) {
      EXPECT_NE(e.code(), Code::internal) << e.what();
      ++errors;
    }
  }
  EXPECT_GT(errors, 1000);
}

std::string graph_of_saved_model(const std::string& path) {
  const std::string bytes = test::read_bytes(test::fixtures() / path);
  return std::string(test::wire_messages(test::wire_messages(bytes, 2).at(0), 2).at(0));
}

// The handbook's MLP as TensorFlow saved it: its call function computes what the layers do.
TEST(GraphDef, RunsAFunctionThatTensorFlowTraced) {
  RUNNEL_REQUIRE_FIXTURES();
  const std::string bytes =
      graph_of_saved_model("handbook/docs/_static/code/zh/savedmodel/custom/saved/saved_model.pb");
  std::string call;
  for (const std::string& name : graph_def_functions(bytes)) {
    if (name.starts_with("__inference_call_")) call = name;
  }
  ASSERT_FALSE(call.empty());
  const auto graph = from_graph_def(bytes, {.function = call});
  ASSERT_EQ(graph->inputs().size(), 5u) << graph->to_text();
  const Variable kernel1(random::normal({784, 100}) * 0.1f);
  const Variable bias1(random::normal({100}));
  const Variable kernel2(random::normal({100, 10}) * 0.1f);
  const Variable bias2(random::normal({10}));
  const Tensor x = random::uniform({50, 28, 28, 1});
  const auto out = run(graph, {x, kernel1.handle(), bias1.handle(), kernel2.handle(), bias2.handle()});
  const Tensor hidden = nn::relu(matmul(reshape(x, {50, 784}), kernel1) + bias1);
  const Tensor expected = nn::softmax(matmul(hidden, kernel2) + bias2);
  ASSERT_EQ(out[0].shape(), (Shape{50, 10}));
  for (int64_t i = 0; i < 500; ++i) EXPECT_NEAR(out[0].data<float>()[i], expected.data<float>()[i], 1e-6);
}

TEST(GraphDef, RunsALoopThatTensorFlowTraced) {
  RUNNEL_REQUIRE_FIXTURES();
  const std::string bytes = graph_of_saved_model(
      "Intel-tensorflow_tensorflow/tensorflow/c/experimental/saved_model/internal/testdata/SimpleWhileLoop/"
      "saved_model.pb");
  std::string wrapper;
  for (const std::string& name : graph_def_functions(bytes)) {
    if (name.starts_with("__inference_signature_wrapper")) wrapper = name;
  }
  const auto graph = from_graph_def(bytes, {.function = wrapper});
  EXPECT_EQ(run(graph, {Tensor(4.f)})[0].item<float>(), 4 + 3 + 2 + 1);
}

TEST(GraphDef, RunsAGraphThatTensorFlowWrote) {
  RUNNEL_REQUIRE_FIXTURES();
  const std::string bytes =
      test::read_bytes(test::fixtures() / "onnx_tensorflow-onnx/tests/models/regression/graphdef/frozen.pb");
  const auto graph = from_graph_def(bytes);
  ASSERT_EQ(graph->inputs().size(), 1u) << graph->to_text();
  const auto one = run(graph, {Tensor{1.f, 2.f, 3.f}})[0].to_vector<float>();
  ASSERT_EQ(one.size(), 3u);
  EXPECT_NEAR(one[2] - one[1], one[1] - one[0], 1e-5) << "a line";
  EXPECT_NE(one[0], one[1]);
}

// A program of TensorFlow 1 with variables that are references: they are initialised, read and trained as there.
TEST(GraphDef, TrainsAGraphWithReferenceVariables) {
  RUNNEL_REQUIRE_FIXTURES();
  const std::string meta =
      test::read_bytes(test::fixtures() / "onnx_tensorflow-onnx/tests/models/regression/checkpoint/model.meta");
  const std::string bytes(test::wire_messages(meta, 2).at(0));
  std::shared_ptr<Graph> first_part;
  const auto part = [&](std::vector<std::string> outputs, std::vector<std::string> targets) {
    auto graph = from_graph_def(
        bytes,
        {.inputs = {"X", "Y"}, .outputs = std::move(outputs), .targets = std::move(targets), .state_of = first_part});
    if (!first_part) first_part = graph;
    return graph;
  };
  const Tensor x{1.f, 2.f, 3.f}, y{3.f, 5.f, 7.f};
  const auto weights = part({"W/read", "b/read"}, {});
  expect_error([&] { run(weights, {x, y}); }, Code::failed_precondition, "'W' has no value yet");
  run(part({}, {"init"}), {x, y});
  const auto start = run(weights, {x, y});
  const auto step = part({"truediv"}, {"GradientDescent"});
  const float first = run(step, {x, y})[0].item<float>();
  float last = first;
  for (int i = 0; i < 50; ++i) last = run(step, {x, y})[0].item<float>();
  EXPECT_LT(last, 0.2f * first);
  const auto now = run(weights, {x, y});
  EXPECT_NE(now[0].item<float>(), start[0].item<float>());
  const auto line = run(part({"pred"}, {}), {x, y})[0].to_vector<float>();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(line[i], now[0].item<float>() * x.to_vector<float>()[i] + now[1].item<float>(), 1e-5f);
  }
}

}  // namespace
}  // namespace runnel
