// Where summaries go: writers, scopes, steps, conditions, functions, threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "runnel/function/control_flow.h"
#include "runnel/function/function.h"
#include "runnel/function/traced_blocks.h"
#include "runnel/graph/graph.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/reduce.h"
#include "runnel/summary/charts.h"
#include "runnel/summary/summary.h"
#include "runnel/tensor/serialize.h"
#include "tests/summary/support.h"
#include "tests/support/expect_error.h"

namespace runnel::summary {
namespace {

using test::expect_error;
using test::tags_of;
using test::TempDir;
using testing::ElementsAre;
using testing::IsEmpty;

class Summaries : public testing::Test {
 protected:
  // Tags and steps of what `body` writes with a writer as default.
  template <class F>
  std::vector<std::string> written(const F& body) {
    TempDir dir;
    const SummaryWriter writer = create_file_writer(dir.path());
    {
      const auto scope = writer.as_default();
      body();
    }
    writer.close();
    return tags_of(dir.path());
  }
  void TearDown() override { experimental::set_step({}); }
};

TEST_F(Summaries, WithoutAWriterNothingIsDone) {
  EXPECT_FALSE(scalar("a", 1.0, 1).item<bool>());
  EXPECT_FALSE(scalar("a", 1.0).item<bool>());  // not even the step is asked for
  EXPECT_FALSE(should_record_summaries().item<bool>());
  EXPECT_FALSE(has_default_writer());
  EXPECT_FALSE(write(
                   "a", [] { return ADD_FAILURE(), Tensor(1); }, 1)
                   .item<bool>());
  const SummaryWriter none = create_noop_writer();
  const auto scope = none.as_default(3);
  EXPECT_FALSE(scalar("a", 1.0, 1).item<bool>());
  none.flush();
  none.close();
}

TEST_F(Summaries, ScopesNest) {
  TempDir outer_dir, inner_dir;
  const SummaryWriter outer = create_file_writer(outer_dir.path()), inner = create_file_writer(inner_dir.path());
  {
    const auto a = outer.as_default(10);
    scalar("one", 1);
    {
      const auto b = inner.as_default(20);
      scalar("two", 2);
      experimental::set_step(21);
      scalar("three", 3);
      const auto c = create_noop_writer().as_default();  // changes nothing
      scalar("four", 4);
    }
    scalar("five", 5);
    const auto b = inner.as_default();  // the step stays
    scalar("six", 6);
  }
  EXPECT_FALSE(has_default_writer());
  outer.close();
  inner.close();
  EXPECT_THAT(tags_of(outer_dir.path()), ElementsAre("one@10", "five@10"));
  EXPECT_THAT(tags_of(inner_dir.path()), ElementsAre("two@20", "three@21", "four@21", "six@10"));
  expect_error([&] { const auto closed = inner.as_default(); }, Code::failed_precondition, "is closed");
  inner.flush();  // nothing to do
  inner.close();
}

TEST_F(Summaries, StepsAndConditions) {
  EXPECT_THAT(written([&] {
                expect_error([] { scalar("a", 1); }, Code::invalid_argument, "there is no step");
                expect_error([] { scalar("a", 1, Tensor(1.5f)); }, Code::invalid_argument, "must be an integer");
                const Variable step(int64_t{7});
                experimental::set_step(step);
                scalar("variable", 1);
                step.assign(int64_t{8});
                scalar("variable", 1);
                scalar("int32", 1, Tensor(9));
                int asked = 0;
                const auto some = record_if([&] { return Tensor(++asked % 2 == 0); });
                for (int i = 0; i < 4; ++i) scalar("second", 1, i);
                const auto none = record_if(false);
                scalar("none", 1, 1);
                EXPECT_FALSE(should_record_summaries().item<bool>());
              }),
              ElementsAre("variable@7", "variable@8", "int32@9", "second@1", "second@3"));
}

TEST_F(Summaries, WrongValuesNameTheCaller) {
  written([] {
    expect_error([] { scalar("a", {1.f, 2.f}, 1); }, Code::invalid_argument, "writer_test.cpp");
    expect_error([] { scalar("a", {1.f, 2.f}, 1); }, Code::invalid_argument, "one number of rank 0, got float32[2]");
    expect_error([] { scalar("a", ones({1}), 1); }, Code::invalid_argument, "one number of rank 0, got float32[1]");
    expect_error([] { image("a", zeros({2, 2, 3}), 1); }, Code::invalid_argument, "[images, height, width, channels]");
    expect_error([] { image("a", zeros({1, 2, 2, 3}), 1, -1); }, Code::invalid_argument, "max_outputs");
    expect_error([] { audio("a", zeros({2, 2}), 8000, 1); }, Code::invalid_argument, "[clips, frames, channels]");
    expect_error([] { audio("a", zeros({1, 2, 2}), 8000, 1, 3, "mp3"); }, Code::invalid_argument, "mp3");
    expect_error([] { text("a", 1.f, 1); }, Code::invalid_argument, "must be strings, got float32");
    expect_error([] { experimental::write_raw_pb("no summary", 1); }, Code::invalid_argument, "no Summary");
    expect_error([] { const auto wrong = name_scope("a/"); }, Code::invalid_argument, "no name of a scope");
  });
}

// The tags are those that TensorFlow 2.15 gave for the same program.
TEST_F(Summaries, TagsInBranchesAndLoops) {
  auto f = function([](Tensor x) {
    {
      const auto scope = name_scope("A");
      IF(x > 1.f) { scalar("t1", x, 1); }
      else {
        scalar("e1", x, 1);
      }
    }
    IF(x > 1.f) { scalar("t2", x, 1); }
    IF(x > 1.f) {
      IF(x > 2.f) { scalar("t3", x, 1); }
    }
    Tensor i(0);
    WHILE(i < 2) {
      scalar("l", x, i);
      IF(x > 1.f) { scalar("lc", x, 1); }
      i = i + 1;
    }
    WHILE(x > 0.f) {
      scalar("w", x, 1);
      x = x - 1.f;
    }
    {
      const auto scope = name_scope("A");
      scalar("again", x, 1);
    }
    scalar("again2", x, 1);
    scalar("again2", x, 1);
    return x;
  });
  EXPECT_THAT(written([&] { f(Tensor(3.f)); }),
              ElementsAre("A/cond/t1@1", "cond/t2@1", "cond_1/cond/t3@1", "while/l@0", "while/cond/lc@1", "while/l@1",
                          "while/cond/lc@1", "while_1/w@1", "while_1/w@1", "while_1/w@1", "A_1/again@1", "again2@1",
                          "again2@1"));
  // Scopes around the call are no part of it; the writer is the one of the trace.
  EXPECT_THAT(written([&] {
                const auto scope = name_scope("E");
                {
                  const auto again = name_scope("E");
                  scalar("ee", 1, 1);
                }
                auto g = function([](const Tensor& x) {
                  cond(
                      x > 1.f, [&] { return scalar("c", x, 1); }, [] { return Tensor(false); });
                  return x;
                });
                g(Tensor(2.f));
              }),
              ElementsAre("E/E/ee@1", "cond/c@1"));
}

TEST_F(Summaries, FunctionsHoldOpsOfTensorFlow) {
  TempDir dir;
  const SummaryWriter writer = create_file_writer(dir.path());
  const auto scope = writer.as_default();
  auto f = function([&](const Tensor& x, const Tensor& step) {
    scalar("s", x, step);
    image("i", reshape(x, {1, 1, 1, 1}), step);
    audio("a", reshape(x, {1, 1, 1}), 8000, step);
    text("t", "text", step);
    const auto some = record_if([&] { return step > int64_t{0}; });
    scalar("some", x, step);
    flush();
    return x;
  });
  for (int64_t step : {0, 1}) f(Tensor(0.5f), Tensor(step));
  EXPECT_THAT(tags_of(dir.path()), ElementsAre("s@0", "i@0", "a@0", "t@0", "s@1", "i@1", "a@1", "t@1", "some@1"));
  const std::string text = f.get_concrete_function(Tensor(0.5f), Tensor(int64_t{0})).graph().to_text();
  EXPECT_THAT(text, testing::HasSubstr("WriteSummary"));
  EXPECT_THAT(text, testing::HasSubstr("FlushSummaryWriter"));
}

// Our own op for buckets is written out as ops of TensorFlow, which give the same.
TEST_F(Summaries, HistogramsInFilesAreMadeOfPublicOps) {
  TempDir dir;
  const SummaryWriter writer = create_file_writer(dir.path());
  const auto scope = writer.as_default();
  auto f = function([](const Tensor& x) {
    histogram("h", x, 1, 4);
    return x;
  });
  for (const Tensor& x : {Tensor{1.f, 2.f, 2.5f, 9.f}, Tensor{3.f, 3.f}, zeros({0})}) {
    const Graph& graph = f.get_concrete_function(x).graph();
    const std::string bytes = graph.to_graph_def();
    EXPECT_EQ(bytes.find("_SummaryBuckets"), std::string::npos);
    EXPECT_NE(bytes.find("UnsortedSegmentSum"), std::string::npos);
  }
  int found = 0;
  for (const auto& node : f.get_concrete_function(Tensor{1.f}).graph().nodes()) {
    if (!node->is("_SummaryBuckets")) continue;
    ++found;
    for (const Tensor& x : {Tensor{1.f, 2.f, 2.5f, 9.f}, Tensor{3.f, 3.f}, zeros({0}), Tensor{-5.f, 5.f, 0.1f}}) {
      const Tensor ours = call_op("_SummaryBuckets", {x}, {{"buckets", int64_t{4}}})[0];
      const Tensor composed = node->op->decompose({x}, node->attrs.get())[0];
      EXPECT_TRUE(reduce_all(equal(ours, composed)).item<bool>()) << ours.str() << composed.str();
    }
  }
  EXPECT_EQ(found, 1);
}

TEST_F(Summaries, WhatIsDroppedWasNotWritten) {
  TempDir dir;
  std::ofstream(dir.path() + "/file") << "no folder";
  const std::string wrong = dir.path() + "/file/logs";
  expect_error([&] { create_file_writer(wrong); }, Code::failed_precondition, "file");
  testing::internal::CaptureStderr();
  const SummaryWriter writer = create_file_writer(wrong, {.keep_going = true});
  {
    const auto scope = writer.as_default(1);
    EXPECT_FALSE(scalar("a", 1).item<bool>());
    EXPECT_FALSE(text("b", "text").item<bool>());
    EXPECT_FALSE(experimental::write_raw_pb("").item<bool>());
    EXPECT_FALSE(graph_def(""));
  }
  writer.close();
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(told, '\n'), 1) << told;
  EXPECT_THAT(told, testing::HasSubstr("file/logs"));
}

Tensor opened_by_name(const std::string& name, const std::string& folder) {
  const Tensor writer = call_op("SummaryWriter", {}, {{"shared_name", name}, {"container", std::string()}})[0];
  call_op("CreateSummaryFileWriter", {writer, Tensor(folder), Tensor(10), Tensor(120'000), Tensor(".v2")}, {});
  return writer;
}

TEST_F(Summaries, AClosedWriterLosesItsName) {
  TempDir dir;
  const std::string first = dir.path() + "/first", second = dir.path() + "/second";
  for (const std::string& folder : {first, second}) {
    const Tensor writer = opened_by_name("of_the_test", folder);
    opened_by_name("of_the_test", folder);  // the same, which has its file
    call_op("WriteSummary", {writer, Tensor(int64_t{1}), Tensor(1.f), Tensor("tag"), Tensor("")}, {});
    call_op("CloseSummaryWriter", {writer}, {});
    expect_error([&] { const auto closed = SummaryWriter(writer).as_default(); }, Code::failed_precondition,
                 "is closed");
  }
  EXPECT_THAT(tags_of(first), ElementsAre("tag@1"));
  EXPECT_THAT(tags_of(second), ElementsAre("tag@1"));
}

// The program of the test below.
TEST_F(Summaries, DISABLED_LeavesANamedWriterOpen) {
  const char* folder = std::getenv("RUNNEL_TEST_FOLDER");
  if (!folder) GTEST_SKIP() << "the test below runs it";
  const SummaryWriter writer(opened_by_name("until_exit", folder));
  call_op("WriteSummary", {writer.handle(), Tensor(int64_t{1}), Tensor(1.f), Tensor("last"), Tensor("")}, {});
}

TEST_F(Summaries, ANamedWriterIsWrittenOutAtExit) {
  TempDir dir;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("RUNNEL_TEST_FOLDER", dir.path().c_str(), 1);
    ::alarm(60);  // ends what hangs
    if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(99);
    ::execl(program.c_str(), program.c_str(), "--gtest_filter=Summaries.DISABLED_LeavesANamedWriterOpen",
            "--gtest_also_run_disabled_tests", nullptr);
    ::_exit(98);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(tags_of(dir.path()), ElementsAre("last@1"));
}

TEST_F(Summaries, ManyThreadsOneFolder) {
  TempDir dir;
  constexpr int threads = 8, steps = 200;
  {
    const SummaryWriter shared = create_file_writer(dir.path());
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        const auto scope = shared.as_default();
        for (int i = 0; i < steps; ++i) {
          experimental::set_step(i);
          scalar("t" + std::to_string(t), i);
          if (i % 50 == 0) histogram("h" + std::to_string(t), {1.f, 2.f});
        }
        experimental::set_step({});
      });
    }
    for (std::thread& thread : pool) thread.join();
  }
  std::map<std::string, int> counts;
  for (const std::string& tag : tags_of(dir.path())) ++counts[tag.substr(0, tag.find('@'))];
  ASSERT_EQ(counts.size(), 2u * threads);
  for (const auto& [tag, count] : counts) EXPECT_EQ(count, tag[0] == 't' ? steps : 4) << tag;
}

// Eight threads with writers of their own in one folder.
void write_from_threads(const std::string& folder, const std::string& who) {
  constexpr int threads = 8, steps = 100;
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      const SummaryWriter own = create_file_writer(folder, {.max_queue = t});
      const auto scope = own.as_default();
      for (int i = 0; i < steps; ++i) {
        scalar(who + std::to_string(t), i, i);
        if (i % 25 == 0) text("note" + who, "text", i);
        if (i % 50 == 0) own.flush();
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
}

// The other process of the test below.
TEST_F(Summaries, DISABLED_WritesFromThreads) {
  const char* folder = std::getenv("RUNNEL_TEST_FOLDER");
  if (!folder) GTEST_SKIP() << "the test below runs it";
  write_from_threads(folder, "other");
}

TEST_F(Summaries, ManyThreadsAndTwoProcessesOneFolder) {
  TempDir dir;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("RUNNEL_TEST_FOLDER", dir.path().c_str(), 1);
    ::alarm(60);  // ends what hangs
    if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(99);
    ::execl(program.c_str(), program.c_str(), "--gtest_filter=Summaries.DISABLED_WritesFromThreads",
            "--gtest_also_run_disabled_tests", nullptr);
    ::_exit(98);
  }
  write_from_threads(dir.path(), "mine");
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::map<std::string, int> counts;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    if (!io::is_event_file(entry.path().filename().string())) continue;
    ++files;
    io::EventReader reader(entry.path());
    io::Event event;
    io::EventReader::Status read;
    int64_t next = 0;
    while ((read = reader.read(&event)) == io::EventReader::Status::event) {
      if (event.kind != io::EventKind::summary) continue;
      io::visit_event_values(event.body, [&](const io::EventValue& value) {
        ++counts[std::string(value.tag)];
        if (value.tag.substr(0, 4) != "note") {
          EXPECT_EQ(event.step, next++);
        }
      });
    }
    EXPECT_EQ(read, io::EventReader::Status::end) << entry.path();
  }
  EXPECT_EQ(files, 16);
  EXPECT_EQ(counts.size(), 18u);
  for (const auto& [tag, count] : counts) EXPECT_EQ(count, tag.starts_with("note") ? 32 : 100) << tag;
}

TEST_F(Summaries, PrecisionAndRecall) {
  TempDir dir;
  {
    const SummaryWriter writer = create_file_writer(dir.path());
    const auto scope = writer.as_default();
    pr_curve("pr", {false, true, true, false}, {0.1f, 0.4f, 0.9f, 0.6f}, 1, 1, {.num_thresholds = 3});
    custom_scalars_layout({{"losses", {{"both", {"loss", "val_loss"}}}, true}});
  }
  const auto records = test::records_of(test::only_event_file(dir.path()));
  ASSERT_EQ(records.size(), 3u);
  io::Event event;
  ASSERT_TRUE(io::parse_event(records[1], &event));
  io::visit_event_values(event.body, [](const io::EventValue& value) {
    EXPECT_EQ(value.tag, "pr/pr_curves");
    io::EventMetadata metadata;
    ASSERT_TRUE(io::parse_event_metadata(value.metadata, &metadata));
    EXPECT_EQ(metadata.plugin, "pr_curves");
    EXPECT_EQ(metadata.plugin_content, "\x10\x03");
    EXPECT_EQ(metadata.display_name, "pr");
    const Tensor curve = parse_tensor_proto(value.body);
    // Buckets of the predictions: 0, 0, 1, 1. Above thresholds 0, 1/2 and 1: 2, 1, 0 true, 2, 1, 0 false ones.
    const float expected[] = {2, 1, 0, 2, 1, 0, 0, 1, 2, 0, 1, 2, 0.5f, 0.5f, 0, 1, 0.5f, 0};
    ASSERT_EQ(curve.shape(), Shape({6, 3}));
    for (int i = 0; i < 18; ++i) EXPECT_FLOAT_EQ(curve.data<float>()[i], expected[i]) << i;
  });
  // Layout {2: Category {1: title, 2: Chart {1: title, 2: {1: tag, 1: tag}}, 3: closed}}
  EXPECT_THAT(records[2], testing::HasSubstr("\x0a\x06losses\x12\x18\x0a\x04"
                                             "both\x12\x10\x0a\x04loss\x0a\x08val_loss\x18\x01"));
}

}  // namespace
}  // namespace runnel::summary
