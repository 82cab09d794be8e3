// What a profile says: worked out by hand for recordings made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "runnel/io/memory_pairs.h"
#include "runnel/io/profile_report.h"
#include "runnel/io/profile_steps.h"
#include "tests/support/made_profiles.h"

namespace runnel::io {
namespace {

using test::kMs;
using test::training_recording;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ProfileKind = profile::Kind;

// Events in milliseconds; thread 0 is the program's own.
class Made {
 public:
  explicit Made(int64_t length_ms) {
    r.length_ns = length_ms * kMs;
    r.threads = {{1, "main"}, {2, "pool 0"}, {3, "pipeline ParallelMap 0"}, {4, "pipeline ParallelMap 1"}};
  }
  profile::Event& add(ProfileKind kind, const char* name, double begin, double end, int64_t step = -1,
                      uint32_t thread = 0) {
    r.events.push_back({.name = name,
                        .op_type = kind == ProfileKind::node ? "T" : "",
                        .kind = kind,
                        .thread = thread,
                        .begin_ns = static_cast<int64_t>(begin * 1e6),
                        .end_ns = static_cast<int64_t>(end * 1e6),
                        .step = step});
    return r.events.back();
  }
  ProfileReport report() {
    test::put_in_order(r);
    return make_profile_report(r);
  }
  profile::Recording r;
};

// input, compute, host and idle in tenths of a millisecond.
std::vector<int64_t> parts(const StepTimes& s) {
  const int64_t tenth = kMs / 10;
  return {s.input_ns / tenth, s.compute_ns / tenth, s.host_ns / tenth, s.idle_ns / tenth};
}
const ProfiledOp& row(const ProfileReport& report, const std::string& name) {
  for (const ProfiledOp& op : report.ops) {
    if (op.name == name) return op;
  }
  throw std::runtime_error("no op " + name);
}

TEST(ProfileReport, StepsHaveTheirParts) {
  const ProfileReport report = make_profile_report(training_recording());
  EXPECT_TRUE(report.steps_marked);
  ASSERT_EQ(report.steps.size(), 4u);
  for (int64_t k = 0; k < 4; ++k) {
    const StepTimes& s = report.steps[static_cast<size_t>(k)];
    EXPECT_EQ(s.number, 10 + k);
    EXPECT_EQ(s.length_ns, 8 * kMs + k * kMs / 2);
    EXPECT_THAT(parts(s), ElementsAre(15, 35, 20, 10 + 5 * k));
  }
  ASSERT_EQ(report.summaries.size(), 1u);
  const StepSummary& s = report.summaries[0];
  EXPECT_EQ(s.name, "train");
  EXPECT_EQ(s.count, 4);
  EXPECT_EQ(s.longest, 3u);
  EXPECT_EQ(s.length.total_ns, 35 * kMs);
  EXPECT_EQ(s.idle.min_ns, kMs);
  EXPECT_EQ(s.idle.max_ns, 5 * kMs / 2);
  EXPECT_EQ(s.idle.total_ns, 7 * kMs);
}

TEST(ProfileReport, OpsHaveTimesRatesAndSharesOfThePeak) {
  const ProfileReport report = make_profile_report(training_recording());
  ASSERT_EQ(report.ops.size(), 3u);
  EXPECT_EQ(report.ops[0].name, "dense/add");
  EXPECT_EQ(report.ops[0].self_ns, 12 * kMs);
  EXPECT_EQ(report.ops[1].name, "dense/MatMul");
  EXPECT_EQ(report.ops[1].type, "MatMul");
  EXPECT_EQ(report.ops[1].calls, 4);
  EXPECT_EQ(report.ops[1].total_ns, 8 * kMs);
  EXPECT_DOUBLE_EQ(report.ops[1].flops_per_second(), 200e9);  // 4e8 in 2 ms
  EXPECT_DOUBLE_EQ(report.ops[1].bytes_per_second(), 4e9);
  const PeakShare product = share_of_peak(report.ops[1], report.peak), relu = share_of_peak(report.ops[2], report.peak);
  EXPECT_DOUBLE_EQ(product.share, 0.5);  // of 400 GFLOP/s; and 0.2 of 20 GB/s
  EXPECT_TRUE(product.of_flops);
  EXPECT_DOUBLE_EQ(relu.share, 0.5);
  EXPECT_FALSE(relu.of_flops);
  EXPECT_EQ(share_of_peak(report.ops[1], {}).share, 0);  // not known: nothing made up
}

TEST(ProfileReport, TwoThreadsAtOnceCountOnce) {
  Made made(20);
  made.add(ProfileKind::step, "train", 0, 10, 1);
  made.add(ProfileKind::node, "a", 1, 5, 1);
  made.add(ProfileKind::node, "b", 3, 7, 1, 1);
  made.add(ProfileKind::node, "later", 9, 12, 1, 1);        // goes on after the step
  made.add(ProfileKind::node, "of another", 1, 9, 2, 1);    // step 2 is not there
  made.add(ProfileKind::node, "of the pool", 7, 9, -1, 1);  // of no step
  const ProfileReport report = made.report();
  EXPECT_THAT(parts(report.steps.at(0)), ElementsAre(0, 70, 0, 30));
}

TEST(ProfileReport, WhatIsInsideIsNotCountedTwice) {
  Made made(20);
  made.add(ProfileKind::step, "train", 0, 12, 1);
  made.add(ProfileKind::node, "while", 1, 11, 1);
  made.add(ProfileKind::run, "body", 2, 9, 1);
  made.add(ProfileKind::node, "body/a", 3, 6, 1);
  made.add(ProfileKind::op, "Mul", 4, 5, 1);
  made.add(ProfileKind::node, "body/a", 7, 8, 1);
  const ProfileReport report = made.report();
  EXPECT_EQ(row(report, "while").total_ns, 10 * kMs);
  EXPECT_EQ(row(report, "while").self_ns, 3 * kMs);
  EXPECT_EQ(row(report, "body/a").calls, 2);
  EXPECT_EQ(row(report, "body/a").total_ns, 4 * kMs);
  EXPECT_EQ(row(report, "body/a").self_ns, 3 * kMs);
  EXPECT_EQ(row(report, "Mul").self_ns, 1 * kMs);
  EXPECT_THAT(parts(report.steps.at(0)), ElementsAre(0, 100, 0, 20));
}

TEST(ProfileReport, AnOpInsideItselfCountsOnce) {
  Made made(20);
  made.add(ProfileKind::node, "f", 0, 8);
  made.add(ProfileKind::node, "f", 1, 7);
  made.add(ProfileKind::node, "f", 2, 3);
  made.add(ProfileKind::node, "f", 2, 3, -1, 1);  // on another thread: time of its own
  const ProfiledOp f = row(made.report(), "f");
  EXPECT_EQ(f.calls, 4);
  EXPECT_EQ(f.total_ns, 9 * kMs);
  EXPECT_EQ(f.self_ns, 9 * kMs);
}

TEST(ProfileReport, StepsOfOneNumberAreToldApartByTime) {
  Made made(100);
  made.add(ProfileKind::step, "train", 0, 10, 1);
  made.add(ProfileKind::step, "test", 20, 26, 1);
  made.add(ProfileKind::step, "train", 30, 40, 2);
  made.add(ProfileKind::node, "a", 1, 4, 1, 1);
  made.add(ProfileKind::node, "a", 21, 22, 1, 1);
  made.add(ProfileKind::node, "a", 31, 32, -1, 0);  // says no step, but happens in one
  const ProfileReport report = made.report();
  ASSERT_EQ(report.steps.size(), 3u);
  EXPECT_THAT(parts(report.steps[0]), ElementsAre(0, 30, 0, 70));
  EXPECT_THAT(parts(report.steps[1]), ElementsAre(0, 10, 0, 50));
  EXPECT_THAT(parts(report.steps[2]), ElementsAre(0, 10, 0, 90));
  ASSERT_EQ(report.summaries.size(), 2u);
  EXPECT_EQ(report.summaries[0].name, "train");
  EXPECT_EQ(report.summaries[0].count, 2);
  EXPECT_EQ(report.summaries[1].name, "test");
}

TEST(ProfileReport, AStepAroundStepsIsNone) {
  Made made(100);
  made.add(ProfileKind::step, "epoch", 0, 50, 1);
  made.add(ProfileKind::step, "train", 0, 20, 1);
  made.add(ProfileKind::step, "train", 20, 50, 2);
  made.add(ProfileKind::node, "a", 1, 4, 1);
  const ProfileReport report = made.report();
  ASSERT_EQ(report.steps.size(), 2u);
  EXPECT_EQ(report.steps[0].name, "train");
  EXPECT_THAT(parts(report.steps[0]), ElementsAre(0, 30, 0, 170));
}

TEST(ProfileReport, WithoutStepsTheRecordingIsOne) {
  Made made(50);
  made.add(ProfileKind::tracing, "f", 0, 10);
  made.add(ProfileKind::pass, "fuse", 4, 6);
  made.add(ProfileKind::pass, "one pass", 4, 5);  // inside of another
  made.add(ProfileKind::node, "a", 20, 25);
  made.add(ProfileKind::node, "a", 22, 30, -1, 1);
  made.add(ProfileKind::input_wait, "iterator", 40, 42);
  made.add(ProfileKind::input_wait, "queue", 43, 44, -1, 2);  // a stage waits, not the program
  made.add(ProfileKind::stage, "Map", 10, 20, -1, 2);
  made.add(ProfileKind::node, "in the map", 11, 19, -1, 2);
  const ProfileReport report = made.report();
  EXPECT_FALSE(report.steps_marked);
  ASSERT_EQ(report.steps.size(), 1u);
  EXPECT_THAT(parts(report.steps[0]), ElementsAre(20, 100, 100, 280));
  EXPECT_THAT(profile_report_text(report), HasSubstr("No step was marked"));
  ASSERT_EQ(report.work.size(), 2u);
  EXPECT_EQ(report.work[0].kind, ProfileKind::tracing);
  EXPECT_EQ(report.work[0].total_ns, 10 * kMs);
  EXPECT_EQ(report.work[1].calls, 2);
  EXPECT_EQ(report.work[1].total_ns, 2 * kMs);
  EXPECT_EQ(row(report, "in the map").calls, 1);
}

TEST(ProfileReport, WaitingComesBeforeAllElse) {
  Made made(20);
  made.add(ProfileKind::step, "train", 0, 10, 1);
  made.add(ProfileKind::input_wait, "iterator", 1, 6, 1);  // a pipeline without threads works in the caller
  made.add(ProfileKind::stage, "Map", 1, 5, 1);
  made.add(ProfileKind::node, "in the map", 2, 4, 1);
  made.add(ProfileKind::node, "beside", 5, 8, 1, 1);
  const ProfileReport report = made.report();
  EXPECT_THAT(parts(report.steps.at(0)), ElementsAre(50, 20, 0, 30));
}

TEST(ProfileReport, TheSlowestStageIsNamedWithWhatToDo) {
  const ProfileReport report = make_profile_report(training_recording());
  EXPECT_EQ(report.input.waits, 4);
  EXPECT_EQ(report.input.waited_ns, 6 * kMs);
  EXPECT_DOUBLE_EQ(report.input.share, 6.0 / 35);
  ASSERT_EQ(report.input.stages.size(), 3u);
  EXPECT_EQ(report.input.stages[0].path, "Prefetch::Batch::Map");
  EXPECT_EQ(report.input.stages[0].own_ns, 4 * 28 * kMs / 10);
  EXPECT_DOUBLE_EQ(report.input.stages[0].busy, 11.2 / 40);
  EXPECT_EQ(report.input.stages[1].own_ns, 4 * 2 * kMs / 10);
  EXPECT_EQ(report.input.stages[2].own_ns, 4 * kMs / 10);
  EXPECT_EQ(report.input.bottleneck, 0);
  EXPECT_EQ(
      report.input.words,
      "The steps wait for input, somewhat: 1.50 ms each, 17% of their time. The slowest stage is Map "
      "(Prefetch::Batch::Map): 2.80 ms for each element on 1 thread, busy 28% of the time. To do: call its function on "
      "several threads with map(f, data::AUTOTUNE), or put cache() behind it.");
}

// Two threads share the map's work; the batch waits for them most of the time and must not look busy.
TEST(ProfileReport, AStageThatWaitsIsNotTheSlowest) {
  Made made(100);
  for (int k = 0; k < 10; ++k) {
    const double t = k * 10;
    made.add(ProfileKind::step, "train", t, t + 10, k);
    made.add(ProfileKind::input_wait, "iterator", t, t + 9, k);
    made.add(ProfileKind::stage, "Batch", t, t + 9, k);
    made.add(ProfileKind::input_wait, "Batch::ParallelMap", t + 1, t + 8, k);
    made.add(ProfileKind::stage, "Batch::ParallelMap", t, t + 8, -1, 2);
    made.add(ProfileKind::stage, "Batch::ParallelMap", t + 1, t + 9, -1, 3);
  }
  const ProfileReport report = made.report();
  ASSERT_EQ(report.input.stages.size(), 2u);
  const ProfiledStage& map = report.input.stages[0];
  EXPECT_EQ(map.path, "Batch::ParallelMap");
  EXPECT_EQ(map.elements, 20);
  EXPECT_EQ(map.threads, 2);
  EXPECT_DOUBLE_EQ(map.busy, 0.8);
  EXPECT_EQ(report.input.stages[1].own_ns, 20 * kMs);
  EXPECT_EQ(report.input.stages[1].waited_ns, 70 * kMs);
  EXPECT_EQ(report.input.bottleneck, 0);
  EXPECT_THAT(report.input.words, HasSubstr("The steps wait for input: 9.00 ms each, 90% of their time."));
  EXPECT_THAT(report.input.words, HasSubstr("The slowest stage is ParallelMap"));
  EXPECT_THAT(report.input.words, HasSubstr("To do: end the pipeline with prefetch(data::AUTOTUNE)"));
}

TEST(ProfileReport, AnEventOfAStageMayStandForSeveralElements) {
  Made made(100);
  for (const char* detail : {"a b.cpp:1, 32 elements", "32 elements", "a b.cpp:1, 0 elements", "a b.cpp:1", "",
                             " elements", "-5 elements", "99999999999999999999 elements"}) {
    made.add(ProfileKind::stage, "Map", 0, 10).detail = detail;
  }
  const ProfileReport report = made.report();
  ASSERT_EQ(report.input.stages.size(), 1u);
  EXPECT_EQ(report.input.stages[0].elements, 32 + 32 + 0 + 5);
}

// The threads of the map have work, but do not get to do it.
TEST(ProfileReport, AStageThatHardlyWorksIsNotToBlame) {
  Made made(100);
  made.add(ProfileKind::step, "train", 0, 100, 0);
  made.add(ProfileKind::input_wait, "iterator", 0, 90, 0);
  made.add(ProfileKind::stage, "Prefetch::ParallelMap", 0, 10, -1, 2);
  const ProfileReport report = made.report();
  EXPECT_THAT(report.input.words, HasSubstr("busy 10% of the time. To do: find out what its threads wait for"));
}

TEST(ProfileReport, InputThatKeepsUpIsSaidToDoSo) {
  Made made(100);
  made.add(ProfileKind::step, "train", 0, 100, 0);
  made.add(ProfileKind::input_wait, "iterator", 0, 2, 0);
  EXPECT_EQ(made.report().input.words, "The input keeps up: a step waits 2.00 ms for it, 2.0% of its time.");
  Made none(100);
  none.add(ProfileKind::node, "a", 0, 2);
  EXPECT_EQ(none.report().input.words, "");
  EXPECT_THAT(profile_report_text(none.report()), Not(HasSubstr("Input")));
}

TEST(ProfileReport, MemoryIsHeldByThoseWhoseAllocationsWereThere) {
  const ProfileReport report = make_profile_report(training_recording());
  ASSERT_TRUE(report.has_memory);
  const ProfiledMemory& m = report.memory;
  EXPECT_EQ(m.start_bytes, 5'000'000);
  EXPECT_EQ(m.peak_bytes, 9'000'000);
  EXPECT_EQ(m.peak_at_ns, 326 * kMs / 10);
  EXPECT_EQ(m.peak_step, 13);
  EXPECT_EQ(m.end_bytes, 8'000'000);
  ASSERT_EQ(m.holders.size(), 2u);
  EXPECT_EQ(m.holders[0].op, "");
  EXPECT_EQ(m.holders[0].bytes, 5'000'000);
  EXPECT_EQ(m.holders[1].op, "dense/MatMul");
  EXPECT_EQ(m.holders[1].bytes, 4'000'000);
  ASSERT_EQ(m.chart.size(), kMemoryChartColumns);
  EXPECT_EQ(m.chart.front(), 5'000'000);
  EXPECT_EQ(m.chart[35], 7'000'000);  // until 20 ms
  EXPECT_EQ(m.chart.back(), 8'000'000);
  EXPECT_EQ(*std::max_element(m.chart.begin(), m.chart.end()), 9'000'000);
}

TEST(ProfileReport, ReleasesGoToAllocationsOfTheirSize) {
  profile::Recording r{.length_ns = 100, .threads = {{1, "main"}}};
  r.memory = {{0, 1000, ""},  {1, 1300, "a"}, {2, 1400, "b"}, {3, 1100, "x"},  // releases a's 300
              {4, 1500, "c"},                                                  // 400
              {5, 900, "y"},   // 600 that nobody had: what was there before
              {6, 2900, "d"},  // 2000: the peak
              {7, 2500, "z"}};
  const std::vector<MemoryChange> changes = pair_memory(r.memory);
  EXPECT_EQ(changes[1].partner, 3);
  EXPECT_EQ(changes[3].partner, 1);
  EXPECT_EQ(changes[5].partner, -1);
  EXPECT_EQ(changes[7].partner, 4);
  const ProfiledMemory m = make_profile_report(r).memory;
  std::map<std::string, int64_t> held;
  int64_t sum = 0;
  for (const MemoryHolder& h : m.holders) sum += held[h.op] = h.bytes;
  EXPECT_EQ(held, (std::map<std::string, int64_t>{{"", 400}, {"b", 100}, {"c", 400}, {"d", 2000}}));
  EXPECT_EQ(sum, m.peak_bytes);
  // More released than was ever there before: the oldest allocations went.
  for (size_t i = 1; i < r.memory.size(); ++i) r.memory[i].live_bytes -= 900;
  r.memory[0].live_bytes = 100;
  sum = 0;
  for (const MemoryHolder& h : make_profile_report(r).memory.holders) {
    EXPECT_GT(h.bytes, 0);
    sum += h.bytes;
  }
  EXPECT_EQ(sum, 2000);
}

TEST(ProfileReport, ReadsWell) {
  const std::string text = profile_report_text(make_profile_report(training_recording()));
  EXPECT_THAT(text, HasSubstr(R"(
Time of steps
  4 x train     mean      min      max   share
  compute    3.50 ms  3.50 ms  3.50 ms   40.0%
  input      1.50 ms  1.50 ms  1.50 ms   17.1%
  host       2.00 ms  2.00 ms  2.00 ms   22.9%
  idle       1.75 ms  1.00 ms  2.50 ms   20.0%
  step       8.75 ms  8.00 ms  9.50 ms  100.0%
)"));
  EXPECT_THAT(text, HasSubstr(R"(
3 of 3 ops, by own time (24.0 ms in all)
  op           type    calls    total      own  share  GFLOP/s  GB/s    of peak
  dense/add    AddV2       4  12.0 ms  12.0 ms  50.0%        -     -          -
  dense/MatMul MatMul      4  8.00 ms  8.00 ms  33.3%      200  4.00  50% flops
  dense/Relu   Relu        4  4.00 ms  4.00 ms  16.7%        -  10.0  50% bytes
  Peak of the machine, measured when it was recorded: 400 GFLOP/s (float32), 20.0 GB/s.
)"));
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    EXPECT_LE(end - begin, 120u) << text.substr(begin, end - begin);
    EXPECT_TRUE(end == begin || text[end - 1] != ' ') << text.substr(begin, end - begin);
  }
}

TEST(ProfileReport, SaysWhenEventsWereLostAndNothingWasDone) {
  profile::Recording r{.length_ns = 5, .threads = {{1, "main"}}, .lost = 12};
  const std::string text = profile_report_text(make_profile_report(r));
  EXPECT_THAT(text, HasSubstr("12 events found no room"));
  EXPECT_THAT(text, HasSubstr("No op was recorded"));
}

TEST(ProfileReport, NamesCannotWriteToTheTerminal) {
  Made made(10);
  made.add(ProfileKind::node, "\x1b[31mred", 0, 2);
  made.add(ProfileKind::node, "a/very/long/name/that/goes/on/and/on/until/it/ends/in/MatMul", 2, 3);
  const std::string text = profile_report_text(made.report());
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("  ..goes/on/and/on/until/it/ends/in/MatMul "));
}

TEST(ProfileReport, JsonSaysTheSame) {
  const auto json = nlohmann::json::parse(profile_report_json(make_profile_report(training_recording())));
  EXPECT_EQ(json["host"], "box");
  EXPECT_EQ(json["summaries"][0]["compute"]["mean_ns"], 7 * kMs / 2);
  EXPECT_EQ(json["steps"][3]["number"], 13);
  EXPECT_EQ(json["ops"][1]["name"], "dense/MatMul");
  EXPECT_EQ(json["ops"][1]["gflops_per_second"], 200);
  EXPECT_EQ(json["ops"][1]["share_of_peak"], 0.5);
  EXPECT_EQ(json["ops"][0]["share_of_peak"], nullptr);
  EXPECT_EQ(json["input"]["bottleneck"], "Prefetch::Batch::Map");
  EXPECT_EQ(json["memory"]["holders"][0]["op"], nullptr);
  EXPECT_EQ(json["memory"]["peak_bytes"], 9'000'000);
}

}  // namespace
}  // namespace runnel::io
