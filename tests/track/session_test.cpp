// Checkpoints in graphs of TensorFlow 1, and the files that its programs wrote: values go by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/compat/v1.h"
#include "runnel/runnel.h"
#include "runnel/track/checkpoint.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"

namespace runnel::train {
namespace {

namespace v1 = compat::v1;
using test::expect_error;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;

float number_in(v1::Session& session, const Variable& v) { return session.run(v).item<float>(); }

TEST(SessionCheckpoints, KeepWhatTheSessionHas) {
  const TempDir dir;
  std::string path;
  {
    const v1::Graph graph;
    const v1::Graph::Scope scope = graph.as_default();
    const Variable w = v1::get_variable("w", {}, {.initializer = v1::constant_initializer(1)});
    Checkpoint checkpoint({{"w", w}});
    v1::Session session(graph);
    expect_error([&] { checkpoint.write(dir.file("ckpt")); }, Code::failed_precondition, "save(prefix, session)");
    expect_error([&] { checkpoint.save(dir.file("ckpt"), session); }, Code::failed_precondition,
                 "global_variables_initializer");
    session.run(v1::global_variables_initializer());
    session.run(v1::assign_add(w, 4.f));
    EXPECT_EQ(checkpoint.save(dir.file("ckpt"), session), dir.file("ckpt-1"));
    session.run(v1::assign_add(w, 4.f));
    path = checkpoint.save(dir.file("ckpt"), session);
    EXPECT_EQ(path, dir.file("ckpt-2"));
  }
  const v1::Graph graph;
  const v1::Graph::Scope scope = graph.as_default();
  const Variable w = v1::get_variable("w", {}, {.initializer = v1::constant_initializer(1)});
  const Variable late = v1::get_variable("late", {}, {.initializer = v1::constant_initializer(7)});
  Checkpoint checkpoint({{"w", w}, {"late", late}});
  v1::Session session(graph);
  session.run(v1::global_variables_initializer());
  EXPECT_EQ(number_in(session, w), 1);
  const RestoreStatus status = checkpoint.restore(path);
  EXPECT_EQ(number_in(session, w), 1);  // not before the session is told
  status.run_restore_ops(session);
  EXPECT_EQ(number_in(session, w), 9);

  v1::Session other(graph);
  status.initialize_or_restore(other);
  EXPECT_EQ(number_in(other, w), 9);
  EXPECT_EQ(number_in(other, late), 7);
  EXPECT_EQ(checkpoint.save(dir.file("ckpt"), other), dir.file("ckpt-3"));

  v1::Session fresh(graph);
  const RestoreStatus nothing = checkpoint.restore(std::nullopt);
  nothing.initialize_or_restore(fresh);
  EXPECT_EQ(number_in(fresh, late), 7);
  expect_error([&] { nothing.run_restore_ops(fresh); }, Code::failed_precondition, "no checkpoint was given");
}

TEST(NamedCheckpoints, FindVariablesByTheirFullNames) {
  RUNNEL_REQUIRE_FIXTURES();
  for (const char* file : {"plain-30", "sharded-30"}) {
    SCOPED_TRACE(file);
    const std::string path = (test::fixtures() / "tf215/checkpoints/v1_saver" / file).string();
    struct Layer : Trackable {
      Variable w{zeros({4, 2}), {.name = "layer/w"}}, b{zeros({4}), {.name = "layer/b"}};
      Layer() {
        track("any", w);
        track("name", b);
      }
    } layer;
    const Variable step(int64_t{0}, {.name = "step"}), parts(zeros({6, 2}), {.name = "parts"});
    Checkpoint checkpoint({{"layer", layer}, {"step", step}});
    const RestoreStatus status = checkpoint.restore(path);
    status.assert_consumed().assert_existing_objects_matched().assert_nontrivial_match();
    EXPECT_EQ(layer.b.value().to_vector<float>(), (std::vector<float>(4, 0.5F)));
    EXPECT_EQ(layer.w.value().to_vector<float>(), load_variable(path, "layer/w").to_vector<float>());
    EXPECT_EQ(step.value().item<int64_t>(), 1);
    EXPECT_THAT(status.str(), HasSubstr("unused      parts"));
    // In three parts in the file; and the variable comes later.
    checkpoint.track("later", parts);
    EXPECT_EQ(parts.value().to_vector<float>(), (std::vector<float>(12, 0.25F)));
    EXPECT_THAT(status.str(), HasSubstr("4 matched"));
    const Variable unknown(0.f, {.name = "unknown"});
    checkpoint.track("unknown", unknown);
    expect_error([&] { status.assert_consumed(); }, Code::failed_precondition, "unknown");
  }
}

TEST(NamedCheckpoints, ThatDoNotFitChangeNothing) {
  RUNNEL_REQUIRE_FIXTURES();
  const std::string path = (test::fixtures() / "tf215/checkpoints/v1_saver/plain-30").string();
  const Variable b(zeros({4}), {.name = "layer/b"}), w(zeros({2, 2}), {.name = "layer/w"});
  Checkpoint checkpoint({{"b", b}, {"w", w}});
  expect_error([&] { checkpoint.restore(path); }, Code::invalid_argument, "Variable 'layer/w' has shape [2,2]");
  EXPECT_EQ(b.value().to_vector<float>(), (std::vector<float>(4, 0)));

  Checkpoint later({{"b", b}});
  const RestoreStatus status = later.read(path);
  status.expect_partial();
  expect_error([&] { later.track("w", w); }, Code::invalid_argument, "Variable 'layer/w' has shape [2,2]");
  expect_error([&] { status.assert_existing_objects_matched(); }, Code::failed_precondition, "do not fit the program");
  EXPECT_THAT(status.str(), HasSubstr("mismatched  layer/w  float32  [4,2]  Variable 'layer/w' has shape [2,2]"));
}

}  // namespace
}  // namespace runnel::train
