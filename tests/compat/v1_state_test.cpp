// Whose variables and tables are: of a session, or of the graphs that were read together.
#include <gtest/gtest.h>

#include "runnel/compat/v1.h"
#include "runnel/graph/graph_def.h"
#include "runnel/graph/graph_function.h"
#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::compat::v1 {
namespace {

using test::expect_error;

Tensor variable_of_name_w() {
  return call_op("VarHandleOp", {},
                 {{"shared_name", std::string("w")}, {"dtype", DType::float32}, {"shape", PartialShape::unknown()}})[0];
}

// A graph with nodes that give variable 'w' 10, add 1 to it and read it; that put a key into a table without a name,
// and count its keys.
std::string graph_with_state() {
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor w = variable_of_name_w();
  call_op("AssignVariableOp", {w, constant(10.f)});
  call_op("AssignAddVariableOp", {w, constant(1.f)});
  call_op("ReadVariableOp", {w}, {{"dtype", DType::float32}});
  const Tensor table =
      call_op("MutableHashTableV2", {}, {{"key_dtype", DType::int64}, {"value_dtype", DType::int64}})[0];
  const Tensor seven = constant(int64_t{7});
  call_op("LookupTableInsertV2", {table, seven, seven});
  call_op("LookupTableSizeV2", {table});
  return graph.to_graph_def();
}

using GraphPtr = std::shared_ptr<runnel::Graph>;
void run_target(const std::string& bytes, const char* target, const GraphPtr& state_of) {
  GraphFunction(from_graph_def(bytes, {.targets = {target}, .state_of = state_of})).run({});
}
Tensor value_in(const std::string& bytes, const char* output, const GraphPtr& state_of) {
  return GraphFunction(from_graph_def(bytes, {.outputs = {output}, .state_of = state_of})).run({})[0];
}

TEST(GraphState, OfGraphsThatWereReadTogetherIsOne) {
  const std::string bytes = graph_with_state();
  const GraphPtr one = from_graph_def(bytes, {.outputs = {"ReadVariableOp"}});
  const GraphPtr other = from_graph_def(bytes, {.outputs = {"ReadVariableOp"}});
  run_target(bytes, "AssignVariableOp", one);
  run_target(bytes, "AssignVariableOp", other);
  run_target(bytes, "AssignAddVariableOp", one);
  run_target(bytes, "AssignAddVariableOp", one);
  run_target(bytes, "AssignAddVariableOp", other);
  EXPECT_EQ(GraphFunction(one).run({})[0].item<float>(), 12);
  EXPECT_EQ(GraphFunction(other).run({})[0].item<float>(), 11);
  EXPECT_EQ(value_in(bytes, "ReadVariableOp", one).item<float>(), 12);
  // One that is read for itself has nothing of them, nor has the program.
  expect_error([&] { value_in(bytes, "ReadVariableOp", nullptr); }, Code::failed_precondition, "'w' has no value yet");
  const Tensor eager = variable_of_name_w();
  EXPECT_FALSE(call_op("VarIsInitializedOp", {eager})[0].item<bool>());
  call_op("DestroyResourceOp", {eager});
  EXPECT_EQ(GraphFunction(one).run({})[0].item<float>(), 12);
}

TEST(GraphState, OfTablesWithoutANameIsTheirNodes) {
  const std::string bytes = graph_with_state();
  const GraphPtr one = from_graph_def(bytes, {.outputs = {"LookupTableSizeV2"}});
  const GraphPtr other = from_graph_def(bytes, {.outputs = {"LookupTableSizeV2"}});
  run_target(bytes, "LookupTableInsertV2", one);
  EXPECT_EQ(GraphFunction(one).run({})[0].item<int64_t>(), 1);
  EXPECT_EQ(GraphFunction(other).run({})[0].item<int64_t>(), 0);
}

TEST(GraphState, GoesWithTheLastGraphOfIt) {
  const std::string bytes = graph_with_state();
  GraphPtr first = from_graph_def(bytes, {.targets = {"AssignVariableOp"}});
  const GraphPtr second = from_graph_def(bytes, {.outputs = {"VarHandleOp"}, .state_of = first});
  GraphFunction(first).run({});
  first.reset();
  EXPECT_EQ(value_in(bytes, "ReadVariableOp", second).item<float>(), 10);
  std::weak_ptr<Object> variable;
  {
    const GraphPtr last = from_graph_def(bytes, {.outputs = {"VarHandleOp"}});
    variable = GraphFunction(last).run({})[0].data<ResourceHandle>()->object;
    EXPECT_FALSE(variable.expired());
  }
  EXPECT_TRUE(variable.expired());
}

TEST(GraphState, IsOfGraphsThatWereRead) {
  const auto made = std::make_shared<runnel::Graph>("made_here");
  expect_error([&] { from_graph_def(graph_with_state(), {.targets = {"NoOp"}, .state_of = made}); },
               Code::invalid_argument, "`state_of` is 'made_here', which was not read from a GraphDef");
}

TEST(SessionState, TablesThatChangeAreTheSessions) {
  lookup::MutableHashTable table(DType::string, DType::int64, int64_t{-1});
  table.insert("before", int64_t{5});
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor key = placeholder(DType::string, PartialShape{}, "key");
  const Tensor found = table.lookup(key);
  const Operation insert = updates([&] { table.insert(key, int64_t{9}); });
  Session one(graph), two(graph);
  one.run(insert, {{key, "new"}});
  EXPECT_EQ(one.run(found, {{key, "new"}}).item<int64_t>(), 9);
  EXPECT_EQ(two.run(found, {{key, "new"}}).item<int64_t>(), -1);
  EXPECT_EQ(two.run(found, {{key, "before"}}).item<int64_t>(), 5);
}

}  // namespace
}  // namespace runnel::compat::v1
