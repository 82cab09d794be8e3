// Errors of graphs and sessions name the line of the program that made the mistake.
#include "tests/support/caller_lines.h"

#include "runnel/compat/v1.h"
#include "runnel/compat/v1_train.h"
#include "runnel/graph/graph_def.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::compat::v1 {
namespace {

TEST(V1CallerLines, WithoutAGraph) {
  EXPECT_NAMES_THIS_LINE(Operation().name());
  EXPECT_NAMES_THIS_LINE(Operation().type());
  EXPECT_NAMES_THIS_LINE(operation_of(Tensor(1.f)));
  EXPECT_NAMES_THIS_LINE(placeholder(float32));
  EXPECT_NAMES_THIS_LINE(get_variable("v", {}));
  EXPECT_NAMES_THIS_LINE(get_variable("v", {4}, {}, fixed_size_partitioner(2)));
  EXPECT_NAMES_THIS_LINE(variable_scope("scope"));
  EXPECT_NAMES_THIS_LINE(assign(Variable(1.f), 2.f));
  EXPECT_NAMES_THIS_LINE(assign_add(Variable(1.f), 2.f));
  EXPECT_NAMES_THIS_LINE(assign_sub(Variable(1.f), 2.f));
  EXPECT_NAMES_THIS_LINE(global_variables_initializer());
  EXPECT_NAMES_THIS_LINE(variables_initializer({}));
  EXPECT_NAMES_THIS_LINE(no_op());
  EXPECT_NAMES_THIS_LINE(group({}));
  EXPECT_NAMES_THIS_LINE(updates([] {}));
  EXPECT_NAMES_THIS_LINE(control_dependencies({}));
  EXPECT_NAMES_THIS_LINE(gradients(Tensor(1.f), {}));
  EXPECT_NAMES_THIS_LINE(Fetch(Gradient()));
  EXPECT_NAMES_THIS_LINE(train::GradientDescentOptimizer(0.1).minimize(Tensor(1.f)));
  EXPECT_NAMES_THIS_LINE(from_graph_def("no graph"));
  EXPECT_NAMES_THIS_LINE(graph_def_functions("no graph"));
}

TEST(V1CallerLines, OfAGraph) {
  const Variable elsewhere(1.f);
  Graph graph;
  const auto scope = graph.as_default();
  const Variable v = get_variable("v", {2});
  const Tensor loss = placeholder(float32) * 2;
  EXPECT_NAMES_THIS_LINE(get_variable("w", {4}, {}, fixed_size_partitioner(0)));
  EXPECT_NAMES_THIS_LINE(get_variable("w", {4}, {}, fixed_size_partitioner(2, 3)));
  EXPECT_NAMES_THIS_LINE(assign(v, Tensor("text")));
  EXPECT_NAMES_THIS_LINE(assign(v, Tensor{1.f, 2.f, 3.f}));
  EXPECT_NAMES_THIS_LINE(assign_add(v, Tensor{1.f, 2.f, 3.f}));
  EXPECT_NAMES_THIS_LINE(variables_initializer({elsewhere}));
  EXPECT_NAMES_THIS_LINE(control_dependencies({Tensor(1.f)}));
  EXPECT_NAMES_THIS_LINE(group({Tensor(1.f)}));
  EXPECT_NAMES_THIS_LINE(gradients(Tensor(1.f), {v}));
  EXPECT_NAMES_THIS_LINE(train::AdamOptimizer().minimize(loss));
  EXPECT_NAMES_THIS_LINE(reset_default_graph());
  Session session;
  EXPECT_NAMES_THIS_LINE(session.value_of(v));
  EXPECT_NAMES_THIS_LINE(session.load(v, Tensor{1.f}));
  EXPECT_NAMES_THIS_LINE(session.run(Tensor(1.f)));
  session.close();
  EXPECT_NAMES_THIS_LINE(session.value_of(v));
  const Graph taken = std::move(graph);
  EXPECT_NAMES_THIS_LINE(graph.operations());        // NOLINT(bugprone-use-after-move)
  EXPECT_NAMES_THIS_LINE(graph.global_variables());  // NOLINT(bugprone-use-after-move)
  EXPECT_NAMES_THIS_LINE(graph.to_graph_def());      // NOLINT(bugprone-use-after-move)
  EXPECT_NAMES_THIS_LINE(graph.as_default());        // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace runnel::compat::v1
