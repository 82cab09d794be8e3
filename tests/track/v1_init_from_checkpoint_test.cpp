#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/runnel.h"
#include "runnel/track/v1_saver.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"

namespace runnel::compat::v1 {
namespace {

using test::expect_error;
using test::TempDir;
using testing::Each;
using testing::ElementsAre;
using train::init_from_checkpoint;

// old/a = 1, 2; old/b = 3 four times; c = 5; parts = 0, 1, ..., 5 in three rows.
std::string old_checkpoint(const TempDir& dir) {
  const Graph graph;
  const Graph::Scope scope = graph.as_default();
  const auto rows = [](const Shape&, DType) { return Tensor{{0.f, 1.f}, {2.f, 3.f}, {4.f, 5.f}}; };
  get_variable("old/a", {2}, {.initializer = [](const Shape&, DType) { return Tensor{1.f, 2.f}; }});
  get_variable("old/b", {4}, {.initializer = constant_initializer(3)});
  get_variable("c", {}, {.dtype = DType::int64, .initializer = [](const Shape&, DType) { return Tensor(int64_t{5}); }});
  get_variable("parts", {3, 2}, {.initializer = rows}, fixed_size_partitioner(3));
  Session session(graph);
  session.run(global_variables_initializer());
  return train::Saver().save(session, dir.file("old"));
}

std::vector<float> floats(Session& session, const Tensor& tensor) { return session.run(tensor).to_vector<float>(); }
std::vector<float> floats(Session& session, const Variable& v) { return session.run(v).to_vector<float>(); }

TEST(InitFromCheckpoint, GivesInitializersTheValuesOfOtherNames) {
  const TempDir dir;
  const std::string old = old_checkpoint(dir);
  const Graph graph;
  const Graph::Scope scope = graph.as_default();
  const Variable a = get_variable("x", {2}), b = get_variable("y", {4}), other = get_variable("z", {1});
  init_from_checkpoint(old, {{"old/a", a}, {"old/b", "y"}});
  Session session(graph), second(graph);
  session.run(global_variables_initializer());
  EXPECT_THAT(floats(session, a), ElementsAre(1, 2));
  EXPECT_THAT(floats(session, b), ElementsAre(3, 3, 3, 3));
  session.run(assign(a, {7.f, 8.f}));
  EXPECT_THAT(floats(session, a), ElementsAre(7, 8));
  second.run(variables_initializer({a}));
  EXPECT_THAT(floats(second, a), ElementsAre(1, 2));
}

TEST(InitFromCheckpoint, GivesScopesTheValuesOfOtherScopes) {
  const TempDir dir;
  old_checkpoint(dir);
  {
    const Graph graph;
    const Graph::Scope scope = graph.as_default();
    const Variable a = get_variable("new/a", {2}), b = get_variable("new/b", {4}), apart = get_variable("newer", {1});
    init_from_checkpoint(dir.path(), {{"old/", "new/"}});  // the latest of the folder
    Session session(graph);
    session.run(global_variables_initializer());
    EXPECT_THAT(floats(session, a), ElementsAre(1, 2));
    EXPECT_THAT(floats(session, b), Each(3));
  }
  const Graph graph;
  const Graph::Scope scope = graph.as_default();
  const Variable c = get_variable("s/c", {}, {.dtype = DType::int64});
  const PartitionedVariable parts = get_variable("s/parts", {3, 2}, {}, fixed_size_partitioner(2));
  init_from_checkpoint(dir.path(), {{"/", "s/"}});
  Session session(graph);
  session.run(global_variables_initializer());
  EXPECT_EQ(session.run(c).item<int64_t>(), 5);
  EXPECT_THAT(floats(session, parts.as_tensor()), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(InitFromCheckpoint, CutsValuesIntoParts) {
  const TempDir dir;
  const std::string old = old_checkpoint(dir);
  const Graph graph;
  const Graph::Scope scope = graph.as_default();
  const PartitionedVariable p = get_variable("p", {3, 2}, {}, fixed_size_partitioner(2)),
                            q = get_variable("q", {3, 2}, {}, fixed_size_partitioner(2, 1));
  const Variable whole = get_variable("whole", {3, 2});
  init_from_checkpoint(old, {{"parts", p}, {"parts", "q"}, {"parts", whole}});
  Session session(graph);
  session.run(global_variables_initializer());
  EXPECT_THAT(floats(session, p.as_tensor()), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(floats(session, q.parts()[1]), ElementsAre(1, 3, 5));
  EXPECT_THAT(floats(session, whole), ElementsAre(0, 1, 2, 3, 4, 5));
  expect_error(
      [&] {
        init_from_checkpoint(old, {{"parts", std::vector<Variable>{p.parts()[0], q.parts()[0]}}});
      },
      Code::invalid_argument, "Slices must all be from the same tensor: p != q");
  expect_error(
      [&] {
        init_from_checkpoint(old, {{"parts", std::vector<Variable>{p.parts()[0], whole}}});
      },
      Code::invalid_argument, "'whole' is no part of a variable in parts");
}

TEST(InitFromCheckpoint, ReadsWhenTheInitializerRuns) {
  const TempDir dir;
  const std::string old = old_checkpoint(dir);
  const Graph graph;
  const Graph::Scope scope = graph.as_default();
  const Variable a = get_variable("a", {2});
  init_from_checkpoint(old, {{"old/a", a}});
  std::string bytes = test::read_bytes(old + ".data-00000-of-00001");
  for (char& c : bytes) c = static_cast<char>(~c);
  Env::posix().write_file(old + ".data-00000-of-00001", as_bytes(bytes));
  Session session(graph);
  expect_error([&] { session.run(global_variables_initializer()); }, Code::data_loss, "key 'old/a'");
}

TEST(InitFromCheckpoint, ChangesNothingWhereSomethingIsWrong) {
  const TempDir dir;
  const std::string old = old_checkpoint(dir);
  const Graph graph;
  const Graph::Scope scope = graph.as_default();
  const Variable a = get_variable("a", {2}, {.initializer = zeros_initializer()}), wide = get_variable("new/b", {9});
  const auto refused = [&](const train::AssignmentMap& map, Code code, const std::string& text) {
    expect_error([&] { init_from_checkpoint(old, map); }, code, text);
  };
  refused({{"old/a", a}, {"x", "a"}}, Code::not_found, "Tensor x, which is for variable 'a', is not found");
  refused({{"old/a", a}, {"old/b", wide}}, Code::invalid_argument,
          "new/b (float32[9]) doesn't match with tensor old/b (float32[4])");
  refused({{"c", get_variable("c", {})}}, Code::invalid_argument, "tensor c (int64[])");
  refused({{"old/a", "nobody"}}, Code::not_found, "no variable of that name");
  refused({{"old/a", "new/"}}, Code::not_found, "'scope/' for 'other_scope/'");
  refused({{"old/", "new/"}}, Code::invalid_argument, "new/b (float32[9])");
  expect_error([&] { init_from_checkpoint(dir.file("none"), {}); }, Code::not_found, "no such checkpoint");
  Session session(graph);
  session.run(variables_initializer({a}));
  EXPECT_THAT(floats(session, a), ElementsAre(0, 0));
}

TEST(InitFromCheckpoint, AssignsAtOnceWhereThereIsNoGraph) {
  const TempDir dir;
  const std::string old = old_checkpoint(dir);
  const Variable a(Tensor{0.f, 0.f});
  init_from_checkpoint(old, {{"old/a", a}});
  EXPECT_THAT(a.value().to_vector<float>(), ElementsAre(1, 2));
  expect_error(
      [&] {
        init_from_checkpoint(old, {{"old/a", "a"}});
      },
      Code::failed_precondition, "give the variable itself");
}

}  // namespace
}  // namespace runnel::compat::v1
