// Summaries as in TensorFlow 1. The tags, names and bytes are those that TensorFlow 2.15 gave for the same program.
#include "runnel/compat/v1_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "runnel/graph/name_scope.h"
#include "runnel/io/event_reader.h"
#include "runnel/io/record_reader.h"
#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"
#include "runnel/summary/summary.h"
#include "tests/summary/support.h"
#include "tests/support/expect_error.h"

namespace runnel::compat::v1 {
namespace {

using test::expect_error;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The tags in a Summary message.
std::vector<std::string> tags_in(const Tensor& message) {
  std::vector<std::string> tags;
  EXPECT_TRUE(io::visit_event_values(message.item<std::string>(),
                                     [&](const io::EventValue& value) { tags.emplace_back(value.tag); }));
  return tags;
}

std::string name_of(const Tensor& t) { return operation_of(t).name(); }

TEST(V1Summary, WritesWhatTensorFlowWrites) {
  RUNNEL_REQUIRE_FIXTURES();
  TempDir dir;
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor x = placeholder(float32, {-1}, "x");
  {
    const auto inner = name_scope("s");
    summary::scalar("mean", reduce_mean(x));
  }
  summary::scalar("mean", reduce_max(x));
  summary::histogram("hist", x);
  summary::image("img", reshape(range(24.f), {2, 2, 2, 3}), 2);
  summary::audio("snd", reshape(sin(range(20.f)), {1, 20, 1}), 100.0);
  summary::text("txt", constant("hi"));
  summary::tensor_summary("tens", x);
  const Tensor merged = summary::merge_all();
  Session session(graph);
  {
    summary::FileWriter writer(dir.path(), graph);
    for (int i = 0; i < 3; ++i) {
      writer.add_summary(session.run(merged, {{x, {1.f, 2.f, 3.f * static_cast<float>(i)}}}), i);
    }
    writer.add_session_log({.status = summary::SessionLog::Status::start}, 3);
    writer.add_simple_values({{"by_hand", 4.5f}}, 4);
  }
  const std::vector<std::string> ours = test::records_of(test::only_event_file(dir.path()));
  const std::vector<std::string> theirs =
      test::records_of(test::fixtures() / "tf215/events/v1_file_writer/events.out.tfevents.0000000001.host");
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    io::Event mine, its;
    ASSERT_TRUE(io::parse_event(ours[i], &mine) && io::parse_event(theirs[i], &its));
    EXPECT_EQ(mine.kind, its.kind) << i;
    EXPECT_EQ(mine.step, its.step) << i;
    // Graphs are not the same byte for byte; the test below looks at ours.
    if (mine.kind == io::EventKind::graph_def || mine.kind == io::EventKind::meta_graph_def) continue;
    EXPECT_TRUE(test::timeless(ours[i]) == test::timeless(theirs[i])) << "event " << i;
  }
}

TEST(V1Summary, NamesTagsAndCollections) {
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor x = placeholder(float32, {-1}, "x");
  const Tensor mean = reduce_mean(x);
  const Tensor a = summary::scalar("mean", mean), again = summary::scalar("mean", mean);
  const Tensor family = summary::scalar("n", mean, {.family = "fam"});
  Tensor inner;
  {
    const auto s = name_scope("s");
    inner = summary::scalar("n", mean, {.family = "fam"});
  }
  const Tensor cleaned = summary::scalar("/il legal:%", mean);
  const Tensor other = summary::scalar("other", 1.f, {.collections = {"mine"}});
  const Tensor text = summary::text("tx", constant("a"));
  const Tensor tensor = summary::tensor_summary("te", x, {.summary_description = "d", .display_name = "D"});
  const Tensor image = summary::image("im", zeros({1, 2, 2, 1}), 1), audio = summary::audio("au", zeros({1, 4}), 8.f);
  EXPECT_EQ(name_of(a), "mean_1");
  EXPECT_EQ(name_of(again), "mean_2");
  EXPECT_EQ(name_of(family), "fam/n");
  EXPECT_EQ(name_of(inner), "s/fam/n");
  EXPECT_EQ(name_of(cleaned), "il_legal__");
  EXPECT_EQ(operation_of(text).type(), "TensorSummaryV2");
  const std::vector<std::string> names = graph.operations();
  for (const char* constant :
       {"mean_1/tags", "fam/n/tags", "tx/tag", "tx/serialized_summary_metadata", "im/tag", "au/sample_rate"}) {
    EXPECT_THAT(names, testing::Contains(constant));
  }
  EXPECT_EQ(get_collection(GraphKeys::SUMMARIES).size(), 9u);
  EXPECT_THAT(get_collection("nothing"), IsEmpty());
  EXPECT_EQ(get_collection(GraphKeys::SUMMARIES, "s/").size(), 1u);
  expect_error([] { get_collection(GraphKeys::SUMMARIES, "("); }, Code::invalid_argument, "no regular expression");
  EXPECT_FALSE(summary::merge_all("nothing").defined());
  const Tensor two = summary::merge({a, family}), all = summary::merge_all(), mine = summary::merge_all("mine");
  const Tensor named = summary::merge({a}, {}, "mm");
  EXPECT_EQ(name_of(two), "Merge/MergeSummary");
  EXPECT_EQ(name_of(all), "Merge_1/MergeSummary");
  EXPECT_EQ(name_of(named), "mm/mm");
  Session session(graph);
  const auto tags = [&](const Tensor& t) { return tags_in(session.run(t, {{x, {1.f}}})); };
  EXPECT_THAT(tags(inner), ElementsAre("fam/s/fam/n"));
  EXPECT_THAT(tags(two), ElementsAre("mean_1", "fam/fam/n"));
  EXPECT_THAT(tags(mine), ElementsAre("other"));
  EXPECT_THAT(tags(all), ElementsAre("mean_1", "mean_2", "fam/fam/n", "fam/s/fam/n", "il_legal__", "tx", "te",
                                     "im/image", "au/audio/0"));
  expect_error([] { summary::merge({}); }, Code::invalid_argument, "no summaries to merge");
  expect_error(
      [&] {
        session.run(summary::merge({a, a}), {{x, {1.f}}});
      },
      Code::invalid_argument, "the tag 'mean_1' stands in several");
}

TEST(V1Summary, WhereOpsRunEagerly) {
  const Tensor alone = summary::scalar("q", 1.f);
  EXPECT_EQ(alone.item<std::string>(), std::string("\x0a\x08\x0a\x01q\x15\x00\x00\x80?", 10));
  expect_error([&] { summary::merge({alone}); }, Code::failed_precondition, "run eagerly");
  expect_error([&] { summary::merge_all(); }, Code::failed_precondition, "run eagerly");
  expect_error([&] { summary::FileWriter("/nowhere"); }, Code::failed_precondition, "create_file_writer");
  TempDir dir;
  const runnel::summary::SummaryWriter writer = runnel::summary::create_file_writer(dir.path());
  {
    const auto recorded = writer.as_default(3);
    const auto scope = name_scope("n");
    EXPECT_EQ(summary::scalar("q", 1.f, {.family = "f"}).item<std::string>(), "");
    EXPECT_EQ(summary::text("tt", constant("x")).item<std::string>(), "");
    EXPECT_NE(summary::tensor_summary("ts", 1.f).item<std::string>(), "");  // is always an op
    summary::image("ii", zeros({1, 2, 2, 1}));
    summary::histogram("hh", {1.f, 2.f});
    summary::audio("aa", zeros({1, 4}), 8.f);
  }
  writer.close();
  EXPECT_THAT(test::tags_of(dir.path()), ElementsAre("f/n/f/q@3", "n/tt@3", "n/ii@3", "n/hh@3", "n/aa@3"));
}

// The pixels are those of TensorFlow's kernel.
TEST(V1Summary, FloatsAsPixels) {
  const auto pixels = [](const Tensor& images, std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
    std::vector<int> all;
    const std::string message = call_op("ImageSummary", {Tensor("i"), images}, attrs)[0].item<std::string>();
    io::visit_event_values(message, [&](const io::EventValue& value) {
      io::EventImage image;
      EXPECT_TRUE(io::parse_event_image(value.body, &image));
      const Tensor decoded = image::decode_png(Tensor(Bytes(image.encoded)));
      for (const uint8_t v : decoded.to_vector<uint8_t>()) all.push_back(v);
    });
    return all;
  };
  const float nan = std::nanf("");
  EXPECT_THAT(pixels(Tensor::of<float>({-1, 2, 0, nan}, {1, 2, 2, 1})), ElementsAre(64, 255, 128, 255));
  EXPECT_THAT(pixels(Tensor::of<float>({-1e-7f}, {1, 1, 1, 1})), ElementsAre(128));
  EXPECT_THAT(pixels(zeros({1, 1, 1, 1})), ElementsAre(0));
  EXPECT_THAT(pixels(Tensor::of<float>({nan, 1, 1}, {1, 1, 1, 3})), ElementsAre(255, 0, 0));
  EXPECT_THAT(pixels(Tensor::of<float>({nan, 1, 1}, {1, 1, 1, 3}), {{"bad_color", Tensor::of<uint8_t>({1, 2, 3})}}),
              ElementsAre(1, 2, 3));
  const Tensor line = reshape(cast(range(12), DType::float64) * (5.0 / 11) - 2.0, {1, 2, 2, 3});
  EXPECT_THAT(pixels(cast(line, DType::float16)), ElementsAre(43, 62, 81, 101, 120, 139, 158, 178, 197, 216, 235, 255));
  EXPECT_THAT(pixels(cast(reshape(range(3), {1, 1, 1, 3}), DType::uint8)), ElementsAre(0, 1, 2));
  expect_error(
      [&] {
        pixels(zeros({1, 1, 1, 3}), {{"bad_color", Tensor::of<uint8_t>({1, 2})}});
      },
      Code::invalid_argument, "bad_color must be a vector of uint8 with at least 3");
  expect_error([&] { pixels(zeros({1, 0, 1, 3})); }, Code::invalid_argument, "without pixels");
}

TEST(V1Summary, HistogramsOfTensorFlow) {
  const auto summary_of = [](const Tensor& values) {
    io::EventHistogram histogram;
    const Tensor message = summary::histogram("h", values);
    io::visit_event_values(message.item<std::string>(), [&](const io::EventValue& value) {
      EXPECT_TRUE(io::parse_event_histogram(value.body, &histogram));
    });
    std::vector<double> limits(histogram.buckets());
    std::memcpy(limits.data(), histogram.limits.data(), histogram.limits.size());
    return std::pair(histogram.min, limits);
  };
  using Limits = std::vector<double>;
  constexpr double most = std::numeric_limits<double>::max();
  EXPECT_EQ(summary_of(zeros({0})), std::pair(most, Limits{most}));
  EXPECT_EQ(summary_of(Tensor::of<double>({-most})).second.size(), 3u);  // in the second bucket from the left
  EXPECT_EQ(summary_of(Tensor::of<double>({most})).second.back(), most);
  expect_error([&] { summary_of(Tensor{std::nanf("")}); }, Code::invalid_argument, "NaN among the values");
  expect_error([&] { summary_of(Tensor{-HUGE_VALF}); }, Code::invalid_argument, "infinity among the values");
}

TEST(V1FileWriter, ClosesReopensAndRefuses) {
  TempDir dir;
  Graph graph;
  const auto scope = graph.as_default();
  const Tensor x = placeholder(float32, {}, "x");
  const Tensor loss = summary::scalar("loss", x);
  const Tensor text = summary::text("note", constant("t"));
  Session session(graph);
  summary::FileWriter writer(dir.path(), {.filename_suffix = ".suf"});
  EXPECT_EQ(writer.get_logdir(), dir.path());
  writer.add_summary(session.run(loss, {{x, 1.f}}), 1);
  writer.add_summary(session.run(text), 1);
  writer.add_summary(session.run(text).item<std::string>(), 2);  // as bytes
  writer.add_run_metadata("metadata", "run", 2);
  expect_error([&] { writer.add_run_metadata("", "run", 3); }, Code::invalid_argument, "already used");
  expect_error([&] { writer.add_summary("no summary"); }, Code::invalid_argument, "no Summary message");
  expect_error([&] { writer.add_summary(loss); }, Code::invalid_argument, "as a session gives it");
  expect_error([&] { writer.add_event("no event"); }, Code::invalid_argument, "no Event message");
  std::string event;
  io::append_event(event, 1, 7, io::EventKind::log_message, "");
  writer.add_event(event);
  writer.add_graph(graph, 8);
  writer.flush();
  const std::string first = test::only_event_file(dir.path());
  EXPECT_THAT(first, testing::EndsWith(".suf"));
  writer.close();
  writer.close();
  testing::internal::CaptureStderr();
  writer.add_summary(session.run(loss, {{x, 2.f}}), 9);
  writer.flush();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("is closed: what it is given is dropped"));
  EXPECT_THAT(test::tags_of(dir.path()),
              ElementsAre("loss@1", "note@1", "note@2", "tagged_run_metadata", "log_message", "graph_def"));
  // Metadata stands with the first value of a tag.
  std::vector<bool> described;
  for (const std::string& record : test::records_of(first)) {
    io::Event each;
    ASSERT_TRUE(io::parse_event(record, &each));
    if (each.kind != io::EventKind::summary) continue;
    io::visit_event_values(each.body, [&](const io::EventValue& value) {
      if (value.tag == "note") described.push_back(!value.metadata.empty());
    });
  }
  EXPECT_THAT(described, ElementsAre(true, false));
  std::filesystem::remove(first);
  writer.reopen();
  writer.reopen();
  writer.add_summary(session.run(loss, {{x, 3.f}}), 10);
  writer.close();
  EXPECT_THAT(test::tags_of(dir.path()), ElementsAre("loss@10"));
}

TEST(V1FileWriter, TheGraphComesWithItsCollections) {
  TempDir dir;
  Graph graph;
  const auto scope = graph.as_default();
  summary::scalar("one", placeholder(float32, {}, "x"));
  { const summary::FileWriter writer(dir.path(), graph); }
  const auto records = test::records_of(test::only_event_file(dir.path()));
  ASSERT_EQ(records.size(), 3u);
  io::Event graph_event, meta;
  ASSERT_TRUE(io::parse_event(records[1], &graph_event) && io::parse_event(records[2], &meta));
  EXPECT_EQ(graph_event.kind, io::EventKind::graph_def);
  EXPECT_EQ(graph_event.body, graph.to_graph_def());
  EXPECT_EQ(meta.kind, io::EventKind::meta_graph_def);
  EXPECT_THAT(std::string(meta.body), HasSubstr(graph.to_graph_def()));
  // {key: "summaries", value: {node_list: {value: "one:0"}}}
  EXPECT_THAT(std::string(meta.body), HasSubstr("\x0a\x09summaries\x12\x09\x0a\x07\x0a\x05one:0"));
}

TEST(V1FileWriter, ManyThreads) {
  TempDir dir;
  Graph graph;
  const auto scope = graph.as_default();
  {
    summary::FileWriter writer(dir.path());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 100; ++i) writer.add_simple_values({{"t" + std::to_string(t), 1.f}}, i);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(test::tags_of(dir.path()).size(), 400u);
}

}  // namespace
}  // namespace runnel::compat::v1
