// trace_on, trace_export and trace_off. What is written is read by hand: messages have fields of numbers and bytes.
#include "runnel/summary/trace.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <vector>

#include "runnel/base/profile_scope.h"
#include "runnel/function/traced_blocks.h"
#include "runnel/graph/graph_def.h"
#include "runnel/graph/name_scope.h"
#include "runnel/io/event.h"
#include "runnel/runnel.h"
#include "runnel/summary/profiler.h"
#include "runnel/summary/summary.h"
#include "runnel/tensor/serialize.h"
#include "tests/summary/support.h"
#include "tests/support/expect_error.h"
#include "tests/support/wire.h"

namespace runnel::summary {
namespace {

using test::expect_error;
using test::TempDir;
using testing::HasSubstr;
using testing::Not;

struct Exported {
  std::string plugin;
  std::string run_metadata;
};

// By "tag@step".
std::map<std::string, Exported> exports_in(const std::string& folder) {
  std::map<std::string, Exported> found;
  for (const std::string& record : test::records_of(test::only_event_file(folder))) {
    io::Event event;
    EXPECT_TRUE(io::parse_event(record, &event));
    if (event.kind != io::EventKind::summary) continue;
    io::visit_event_values(event.body, [&](const io::EventValue& value) {
      found[std::string(value.tag) + "@" + std::to_string(event.step)] = {
          std::string(io::plugin_of(value)), parse_tensor_proto(value.body).to_vector<std::string>().at(0)};
    });
  }
  return found;
}

class TraceSummary : public testing::Test {
 protected:
  void TearDown() override {
    trace_off();
    EXPECT_EQ(profile::current_recording(), 0U);
  }
  std::map<std::string, Exported> exported() {
    writer.close();
    return exports_in(dir.path());
  }
  TempDir dir;
  SummaryWriter writer = create_file_writer(dir.path());
};

TEST_F(TraceSummary, HasTheGraphsOfFunctionsThatAreCalled) {
  auto f = function(
      [](const Tensor& x) {
        const auto scope = name_scope("product");
        return nn::relu(nn::bias_add(matmul(x, x), ones({2}))) + 1.f;
      },
      {.name = "f"});
  auto g = function([](const Tensor& x) { return x * 2.f; }, {.name = "g"});
  auto not_called = function([](const Tensor& x) { return exp(x); }, {.name = "h"});
  f(ones({2, 2}));  // was traced before
  not_called(ones({2}));
  trace_on();
  f(ones({2, 2}));
  f(ones({2, 2}));
  g(ones({3}));
  {
    const auto scope = writer.as_default();
    trace_export("my_trace", 4);
  }
  not_called(ones({2}));
  const auto values = exported();
  ASSERT_EQ(values.size(), 1U);
  const Exported& value = values.at("my_trace@4");
  EXPECT_EQ(value.plugin, "graph_run_metadata_graph");
  const std::vector<std::string_view> functions = test::wire_messages(value.run_metadata, 4);
  ASSERT_EQ(functions.size(), 2U);  // each function once
  EXPECT_TRUE(test::wire_messages(value.run_metadata, 1).empty());
  const std::string traced(test::wire_messages(functions[0], 2).at(0)),
      runs(test::wire_messages(functions[0], 3).at(0));
  EXPECT_THAT(traced, HasSubstr("product/MatMul"));
  EXPECT_THAT(traced, HasSubstr("_output_shapes"));
  EXPECT_THAT(traced, HasSubstr("Relu"));
  EXPECT_THAT(runs, HasSubstr("_FusedMatMul"));  // after the passes
  EXPECT_THAT(value.run_metadata, Not(HasSubstr("Exp")));
  EXPECT_NO_THROW(from_graph_def(traced));
}

TEST_F(TraceSummary, FunctionsInsideAreInTheLibrary) {
  auto f = function([](const Tensor& n) {
    Tensor i(0);
    WHILE(i < n) { i = i + 1; }
    return i;
  });
  trace_on();
  f(Tensor(3));
  const auto scope = writer.as_default(0);
  trace_export("loop");
  const auto values = exported();
  const std::vector<std::string_view> functions = test::wire_messages(values.at("loop@0").run_metadata, 4);
  ASSERT_EQ(functions.size(), 1U);
  EXPECT_EQ(graph_def_functions(test::wire_messages(functions[0], 2).at(0)).size(), 2U);  // condition and body
}

TEST_F(TraceSummary, WithAProfile) {
  auto f = function([](const Tensor& x) { return matmul(x, x); }, {.name = "f"});
  trace_on(true, true);
  f(ones({2, 2}));
  const auto scope = writer.as_default(0);
  expect_error([] { trace_export("profiled"); }, Code::invalid_argument, "profiler_outdir");
  trace_export("profiled", {}, dir.path() + "/profile");
  const auto values = exported();
  const Exported& value = values.at("profiled@0");
  EXPECT_EQ(value.plugin, "graph_run_metadata");
  EXPECT_EQ(test::wire_messages(value.run_metadata, 4).size(), 1U);
  const std::vector<std::string_view> measured = test::wire_messages(value.run_metadata, 1);
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_THAT(std::string(measured[0]), HasSubstr("MatMul = MatMul(float32[2,2] float32[2,2] -> float32[2,2])"));
  EXPECT_TRUE(std::filesystem::exists(dir.path() + "/profile/plugins/profile"));
}

TEST_F(TraceSummary, TraceOnMayHaveTheFolder) {
  trace_on(false, true, dir.path() + "/profile");
  trace_export("nobody writes it");
  EXPECT_TRUE(std::filesystem::exists(dir.path() + "/profile/plugins/profile"));
  EXPECT_TRUE(exported().empty());  // there was no writer
}

// What was recorded is written before anything else can fail.
TEST_F(TraceSummary, AProfileThatCannotBeWrittenEndsTheTrace) {
  std::ofstream(dir.path() + "/file") << "no folder";
  trace_on(true, true, dir.path() + "/file/profile");
  expect_error([] { trace_export("lost"); }, Code::failed_precondition, "file");
  expect_error([] { trace_export("again"); }, Code::invalid_argument, "no trace is on");
  EXPECT_NO_THROW(profiler::start(dir.path() + "/next"));
  profiler::stop(false);
}

TEST_F(TraceSummary, Errors) {
  expect_error([] { trace_export("none", 0); }, Code::invalid_argument, "no trace is on");
  trace_off();  // nothing is on: nothing happens
  trace_on(true, true, dir.path() + "/profile");
  expect_error([&] { profiler::start(dir.path()); }, Code::already_exists, "by summary::trace_on");
  expect_error([] { profiler::stop(); }, Code::unavailable, "none was started");  // it is not its own
  {
    const auto scope = writer.as_default();
    expect_error([] { trace_export("no step"); }, Code::invalid_argument, "no step");
    trace_export("a step", 1);  // the trace was still on
  }
  EXPECT_EQ(exported().count("a step@1"), 1U);
}

TEST_F(TraceSummary, TraceOffForgetsWhatItHas) {
  auto f = function([](const Tensor& x) { return x * 2.f; });
  trace_on(true, true, dir.path() + "/profile");
  f(ones({2}));
  trace_off();
  EXPECT_FALSE(std::filesystem::exists(dir.path() + "/profile"));
  trace_on();
  const auto scope = writer.as_default(0);
  trace_export("empty");
  EXPECT_EQ(exported().at("empty@0").run_metadata, "");
}

TEST_F(TraceSummary, WarningsWhereItCannotBe) {
  testing::internal::CaptureStderr();
  auto f = function([](const Tensor& x) {
    trace_on();
    trace_export("inside", 0);
    return x;
  });
  f(ones({1}));
  trace_on();
  trace_on();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("[summary::trace_on] a function is being traced"));
  EXPECT_THAT(said, HasSubstr("[summary::trace_export] a function is being traced"));
  EXPECT_THAT(said, HasSubstr("a trace is on already"));
}

}  // namespace
}  // namespace runnel::summary
