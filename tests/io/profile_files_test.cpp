// Profiles as files: XSpace, Chrome traces, the folder that TensorBoard reads, TensorFlow's own files, damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "runnel/base/format.h"
#include "runnel/io/chrome_trace.h"
#include "runnel/io/event_reader.h"
#include "runnel/io/gzip.h"
#include "runnel/io/profile_files.h"
#include "runnel/io/profile_names.h"
#include "runnel/io/xplane.h"
#include "tests/support/expect_error.h"
#include "tests/support/failing_env.h"
#include "tests/support/fixtures.h"
#include "tests/support/made_profiles.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wire.h"

namespace runnel::io {
namespace {

using test::expect_error;
using test::fixtures;
using test::kMs;
using test::TempDir;
using test::training_recording;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Everything that a recording holds, in words.
std::string in_words(const profile::Recording& r) {
  std::string text = fmt::format("{} {} {} lost {} peak {} {}\n", r.host, r.started_unix_ns, r.length_ns, r.lost,
                                 r.peak.flops_per_second, r.peak.bytes_per_second);
  for (const profile::Thread& t : r.threads) text += fmt::format("thread {} {}\n", t.id, t.name);
  for (const profile::Event& e : r.events) {
    text += fmt::format("{} '{}' '{}' thread {} {}..{} step {} bytes {} flops {} '{}'\n", profile_kind_name(e.kind),
                        e.name, e.op_type, e.thread, e.begin_ns, e.end_ns, e.step, e.bytes, e.flops, e.detail);
  }
  for (const profile::MemorySample& m : r.memory) text += fmt::format("{} {} {}\n", m.at_ns, m.live_bytes, m.op);
  return text;
}

// Every kind, and names that are hard on the files.
profile::Recording every_kind() {
  profile::Recording r{
      .host = "a host", .started_unix_ns = 1'600'000'000'123'456'789, .length_ns = 1'000'003, .lost = 7};
  // The system gave one number to two threads, one after the other.
  r.threads = {{7, "main"}, {7, "pool 0"}, {8, "pipeline ParallelMap 1"}, {9, "nothing happened"}};
  r.peak = {.flops_per_second = 1.25e11, .bytes_per_second = 3e10};
  const auto add = [&](profile::Kind kind, std::string name, std::string type = "") {
    const auto n = static_cast<int64_t>(r.events.size());
    r.events.push_back({.name = std::move(name),
                        .op_type = std::move(type),
                        .kind = kind,
                        .thread = static_cast<uint32_t>(n % 3),
                        .begin_ns = n * 1001,
                        .end_ns = n * 1001 + 997,
                        .step = n % 2 == 0 ? -1 : n,
                        .bytes = n * 10,
                        .flops = static_cast<double>(n) * 0.5,
                        .detail = n % 3 == 0 ? "" : "\"quoted\" and \\ and \n"});
  };
  add(profile::Kind::op, "MatMul", "MatMul");
  add(profile::Kind::op, "MatMul");
  add(profile::Kind::node, "model/dense/MatMul", "MatMul");
  add(profile::Kind::node, "_odd name: with ünicode", "_Fused:Op");
  add(profile::Kind::node, "", "");
  add(profile::Kind::chain, "Mul_3");
  add(profile::Kind::group, "Group");
  add(profile::Kind::run, "train_step");
  add(profile::Kind::run, "train:Step");
  add(profile::Kind::tracing, "f");
  add(profile::Kind::pass, "fuse");
  add(profile::Kind::stage, "Prefetch(2)::Batch");
  add(profile::Kind::stage, "Prefetch(2)");
  add(profile::Kind::input_wait, "iterator");
  add(profile::Kind::checkpoint, "write shard 0");
  add(profile::Kind::summary, "flush");
  add(profile::Kind::step, "train");
  add(profile::Kind::step, "a:Step");
  add(profile::Kind::user, "loads:Image");
  add(profile::Kind::user, "MemoryAllocation");
  add(profile::Kind::user, "Iterator::mine");
  add(profile::Kind::user, "IteratorGetNext:IteratorGetNext");
  r.memory = {{0, 100, ""}, {5, 1'000'100, "Mul"}, {5, 100, "Add"}, {900'000, 50, "model/dense/MatMul"}};
  return r;
}

TEST(ProfileFiles, XspaceComesBackAsItWas) {
  for (const profile::Recording& r : {every_kind(), training_recording()}) {
    EXPECT_EQ(in_words(parse_xspace(xspace_bytes(r), "mine")), in_words(r));
  }
}

TEST(ProfileFiles, ChromeTraceComesBackAsItWas) {
  for (const profile::Recording& r : {every_kind(), training_recording()}) {
    EXPECT_EQ(in_words(parse_chrome_trace(chrome_trace_json(r), "mine")), in_words(r));
  }
}

TEST(ProfileFiles, RecordingWithoutEventsComesBack) {
  const profile::Recording r{.host = "h", .started_unix_ns = 5, .length_ns = 10, .threads = {{1, "main"}}};
  EXPECT_EQ(in_words(parse_xspace(xspace_bytes(r), "mine")), in_words(r));
  EXPECT_EQ(in_words(parse_chrome_trace(chrome_trace_json(r), "mine")), in_words(r));
}

TEST(ProfileFiles, NumbersOfThreadsThatCameAgainFindFreeLines) {
  for (const uint32_t id : {7U, UINT32_MAX - 2, UINT32_MAX - 1}) {
    profile::Recording r = training_recording();
    r.threads = {{id, "a"}, {id, "b"}, {id, "c"}, {UINT32_MAX - 1, "d"}};
    EXPECT_EQ(in_words(parse_xspace(xspace_bytes(r), "mine")), in_words(r)) << id;
    EXPECT_EQ(in_words(parse_chrome_trace(chrome_trace_json(r), "mine")), in_words(r)) << id;
  }
}

// What the plugin goes by; it reads the files in tests/interop/profile.
TEST(ProfileFiles, NamesAreThoseThatTensorBoardKnows) {
  const auto name = [](profile::Kind kind, const char* text, const char* type = "") {
    return tensorflow_event_name({.name = text, .op_type = type, .kind = kind});
  };
  EXPECT_EQ(name(profile::Kind::op, "MatMul", "MatMul"), "MatMul:MatMul");
  EXPECT_EQ(name(profile::Kind::op, "MatMul"), "MatMul:MatMul");
  EXPECT_EQ(name(profile::Kind::node, "a/b", "Relu"), "a/b:Relu");
  EXPECT_EQ(name(profile::Kind::node, "_a b:0", "relu"), "._a_b_0:_relu");
  EXPECT_EQ(name(profile::Kind::chain, "Mul_3"), "Mul_3:Chain");
  EXPECT_EQ(name(profile::Kind::stage, "Batch::Map"), "Iterator::Batch::Map");
  EXPECT_EQ(name(profile::Kind::input_wait, "iterator"), "IteratorGetNext:IteratorGetNext");
  EXPECT_EQ(name(profile::Kind::run, "train_step"), "FunctionRun: train_step");
  EXPECT_EQ(name(profile::Kind::user, "loads:Image"), "loads: Image");
  profile::Event event;
  take_tensorflow_name("EagerLocalExecute: Identity", &event);
  EXPECT_EQ(event.kind, profile::Kind::run);
  take_tensorflow_name("gradient_tape/model_3/MatMul_1:MatMul", &event);
  EXPECT_EQ(event.kind, profile::Kind::node);
  EXPECT_EQ(event.name, "gradient_tape/model_3/MatMul_1");
  EXPECT_EQ(event.op_type, "MatMul");
  take_tensorflow_name("IteratorGetNextOp::DoCompute", &event);
  EXPECT_EQ(event.kind, profile::Kind::input_wait);
  take_tensorflow_name("convert_to_tensor", &event);
  EXPECT_EQ(event.kind, profile::Kind::user);
  EXPECT_EQ(event.op_type, "");
}

// Read with another library than the one that wrote it.
TEST(ProfileFiles, ChromeTraceHasWhatPerfettoShows) {
  const profile::Recording r = training_recording();
  const auto trace = nlohmann::json::parse(chrome_trace_json(r));
  std::map<std::string, int> phases;
  std::map<int64_t, std::string> threads;
  std::vector<int64_t> memory;
  std::vector<std::string> steps;
  bool found = false;
  for (const auto& e : trace["traceEvents"]) {
    ++phases[e["ph"]];
    if (e["name"] == "thread_name") threads[e["tid"]] = e["args"]["name"];
    if (e["ph"] == "C") memory.push_back(e["args"]["live bytes"]);
    if (e["ph"] == "X" && threads[e["tid"]] == "steps") steps.push_back(e["name"]);
    if (e["name"] != "dense/MatMul" || e["ts"] != 12500.0) continue;
    found = true;
    EXPECT_EQ(e["dur"], 2000.0);
    EXPECT_EQ(threads[e["tid"]], "main");
    EXPECT_EQ(e["args"]["op"], "MatMul");
    EXPECT_EQ(e["args"]["step"], 11);
    EXPECT_EQ(e["args"]["bytes"], 8'000'000);
    EXPECT_EQ(e["args"]["flops"], 4e8);
    EXPECT_EQ(e["args"]["shapes"], "float32[50,784] float32[784,100] -> float32[50,100]");
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(phases["X"], static_cast<int>(r.events.size()) + 4);
  EXPECT_EQ(memory, (std::vector<int64_t>{5'000'000, 6'000'000, 7'000'000, 8'000'000, 9'000'000, 8'000'000}));
  EXPECT_THAT(steps, ElementsAre("train 10", "train 11", "train 12", "train 13"));
}

// The fields by hand, so that reader and writer cannot agree on a mistake.
TEST(ProfileFiles, XspaceHasTensorFlowsFields) {
  const std::string bytes = xspace_bytes(training_recording());
  const auto planes = test::wire_messages(bytes, 1);
  ASSERT_EQ(planes.size(), 1u);
  EXPECT_EQ(test::wire_messages(bytes, 4).at(0), "box");
  std::map<uint64_t, std::string> events, stats;
  std::vector<std::string_view> lines;
  for (const test::WireField& f : test::wire_fields(planes[0])) {
    if (f.number == 2) {
      EXPECT_EQ(f.bytes, "/host:CPU");
    }
    if (f.number == 3) lines.push_back(f.bytes);
    if (f.number != 4 && f.number != 5) continue;
    const auto entry = test::wire_fields(f.bytes);
    for (const test::WireField& m : test::wire_fields(entry.at(1).bytes)) {
      if (m.number == 2) (f.number == 4 ? events : stats)[entry.at(0).integer] = std::string(m.bytes);
    }
  }
  ASSERT_EQ(lines.size(), 4u);  // three threads and memory
  const auto first_event = test::wire_fields(test::wire_messages(lines[0], 4).at(0));
  std::map<std::string, uint64_t> said;
  std::string step_name;
  for (const test::WireField& f : first_event) {
    if (f.number == 1) {
      EXPECT_EQ(events[f.integer], "train");
    }
    if (f.number == 3) {
      EXPECT_EQ(f.integer, 8'000'000'000u);  // picoseconds
    }
    if (f.number != 4) continue;
    const auto stat = test::wire_fields(f.bytes);
    if (stat.at(1).number == 7) step_name = stats[stat.at(1).integer];
    if (stat.at(1).number == 4) said[stats[stat.at(0).integer]] = stat.at(1).integer;
  }
  EXPECT_EQ(said, (std::map<std::string, uint64_t>{{"_r", 1}, {"group_id", 0}, {"step_num", 10}}));
  EXPECT_EQ(step_name, "train 10");
}

TEST(ProfileFiles, FolderIsTheOneTensorBoardReads) {
  const TempDir dir;
  profile::Recording r = training_recording();
  const std::string first = write_profile_folder(r, dir.path());
  EXPECT_THAT(first, ::testing::MatchesRegex(".*/plugins/profile/2023_11_1[45]_[0-9_]+/box.xplane.pb"));
  EXPECT_EQ(in_words(read_profile_file(first)), in_words(r));
  const std::string trace = first.substr(0, first.size() - 10) + ".trace.json.gz";
  EXPECT_EQ(in_words(read_profile_file(trace)), in_words(r));

  std::vector<std::string> marks;
  for (const std::string& name : Env::posix().list(dir.path())) {
    if (name != "plugins") marks.push_back(name);
  }
  ASSERT_EQ(marks.size(), 1u);
  EXPECT_THAT(marks[0], ::testing::MatchesRegex("events\\.out\\.tfevents\\.[0-9]+\\.box\\.profile-empty"));
  EventReader reader(dir.file(marks[0]));
  io::Event event;
  ASSERT_EQ(reader.read(&event), EventReader::Status::event);
  EXPECT_EQ(event.body, "brain.Event:2");
  EXPECT_EQ(reader.read(&event), EventReader::Status::end);

  // The same second: nothing is overwritten, and one mark is enough.
  r.host = "box/2";
  r.events.resize(1);
  const std::string other_host = write_profile_folder(r, dir.path());
  EXPECT_EQ(parent_dir(other_host), parent_dir(first));
  EXPECT_THAT(other_host, HasSubstr("/box_2.xplane.pb"));
  const std::string second = write_profile_folder(r, dir.path());
  EXPECT_EQ(parent_dir(second), parent_dir(first) + "_2");
  EXPECT_EQ(read_profile_file(first).events.size(), training_recording().events.size());
  EXPECT_EQ(Env::posix().list(dir.path()).size(), 2u);
}

TEST(ProfileFiles, ADiskThatFailsIsAnErrorThatNamesTheFile) {
  const TempDir dir;
  for (int step = 0;; ++step) {
    ASSERT_LT(step, 100);
    const std::string folder = dir.file(std::to_string(step));
    test::FailingEnv env;
    env.fail_at = step;
    try {
      write_profile_folder(training_recording(), folder, env);
      ASSERT_LE(env.steps, step) << "step " << step << " failed and nobody said so";
      break;  // every step had its turn
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr(folder));
    }
  }
}

TEST(ProfileFiles, NameSaysWhatAFileBecomes) {
  const TempDir dir;
  const profile::Recording r = every_kind();
  for (const char* name : {"a.pb", "a.xplane.pb", "a.json", "a.json.gz"}) {
    write_profile_file(r, dir.file(name));
    EXPECT_EQ(in_words(read_profile_file(dir.file(name))), in_words(r)) << name;
  }
  EXPECT_EQ(test::read_text(dir.file("a.json")).substr(0, 2), "{\"");
  expect_error([&] { write_profile_file(r, dir.file("a.txt")); }, Code::invalid_argument,
               "a.txt: the name of a profile");
}

TEST(ProfileFiles, AllProfilesOfAFolderAreFound) {
  const TempDir dir;
  profile::Recording r = training_recording();
  const std::string older = write_profile_folder(r, dir.file("[run] 1/train"));
  r.started_unix_ns += 3'600'000'000'000;
  const std::string newer = write_profile_folder(r, dir.file("another"));
  const auto paths = [&](const std::string& path) {
    std::vector<std::string> all;
    for (const ProfileFile& f : find_profiles(path)) all.push_back(f.path);
    return all;
  };
  EXPECT_THAT(paths(dir.path()), ElementsAre(older, newer));
  EXPECT_THAT(paths(dir.file("[run] 1")), ElementsAre(older));
  EXPECT_THAT(paths(parent_dir(newer)), ElementsAre(newer));
  EXPECT_THAT(paths(parent_dir(parent_dir(newer))), ElementsAre(newer));
  EXPECT_THAT(paths(newer), ElementsAre(newer));
  EXPECT_EQ(find_profiles(dir.path())[0].host, "box");
  Env::posix().remove(newer);  // only the trace is left
  EXPECT_THAT(paths(dir.file("another")), ElementsAre(HasSubstr("box.trace.json.gz")));
  Env::posix().create_dirs(dir.file("empty"));
  expect_error([&] { find_profiles(dir.file("empty")); }, Code::not_found, "no profile is there");
  expect_error([&] { find_profiles(dir.file("nothing")); }, Code::not_found, "nothing");
}

// Whatever is cut off or changed: an Error that names the file, or a recording.
TEST(ProfileFiles, DamagedXspaceIsAnError) {
  const std::string whole = xspace_bytes(every_kind());
  int errors = 0;
  for (size_t size = 1; size < whole.size(); ++size) {
    try {
      parse_xspace(std::string_view(whole).substr(0, size), "cut.pb");
    } catch (const Error& e) {
      ++errors;
      EXPECT_THAT(e.what(), HasSubstr("[profile] cut.pb: at byte "));
      EXPECT_EQ(e.code(), Code::data_loss);
    }
  }
  EXPECT_GT(errors, static_cast<int>(whole.size()) - 20);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ (1 << i % 8));
    try {
      parse_xspace(changed, "changed.pb");
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("[profile] changed.pb: "));
    }
  }
}

TEST(ProfileFiles, DamageInXspaceHasAnOffset) {
  // A plane with a line with an event of a name that no one gives.
  const std::string event("\x08\x05\x10\x01\x18\x01", 6);
  const std::string line = "\x22\x06" + event;
  const std::string plane = "\x1a" + std::string(1, static_cast<char>(line.size())) + line;
  const std::string space = "\x0a" + std::string(1, static_cast<char>(plane.size())) + plane;
  expect_error([&] { parse_xspace(space, "f.pb"); }, Code::data_loss,
               "[profile] f.pb: at byte 6: an event has the name 5");
  std::string early = space;
  early.replace(early.size() - 2, 2, "\x12\x00", 2);  // its third field is no number
  expect_error([&] { parse_xspace(early, "f.pb"); }, Code::data_loss, "at byte 6");
  expect_error([&] { parse_xspace("hello world", "f.pb"); }, Code::data_loss, "f.pb: at byte 2: no XSpace");
}

TEST(ProfileFiles, DamagedTraceIsAnError) {
  expect_error([] { parse_chrome_trace("{\"traceEvents\": [{]}", "t.json"); }, Code::data_loss,
               "[profile] t.json: at byte 18: ");
  expect_error([] { parse_chrome_trace("{\"events\": []}", "t.json"); }, Code::data_loss, "no list 'traceEvents'");
  expect_error([] { parse_chrome_trace("17", "t.json"); }, Code::data_loss, "no list 'traceEvents'");
  expect_error([] { parse_chrome_trace(R"([{"ph":"M"},{"ph":"X","name":"a"}])", "t.json"); }, Code::data_loss,
               "event 1 of the trace: 'ts' must be a time");
  expect_error([] { parse_chrome_trace(R"([{"ph":"X","ts":1,"dur":-1}])", "t.json"); }, Code::data_loss,
               "'dur' must be a time");
  expect_error([] { parse_chrome_trace(R"([{"ph":"X","name":"late","ts":1e12},{"ph":"X","ts":0}])", "t.json"); },
               Code::data_loss, "'late' ends more than a day after");
  const std::string deep(100, '[');
  expect_error([&] { parse_chrome_trace(deep, "t.json"); }, Code::data_loss, "nested too deep");
  const TempDir dir;
  Env::posix().write_file(dir.file("x.pb"), {});
  expect_error([&] { read_profile_file(dir.file("x.pb")); }, Code::data_loss, "x.pb: the file is empty");
  Env::posix().write_file(dir.file("y.json"), as_bytes("[]"));
  expect_error([&] { read_profile_file(dir.file("y.json")); }, Code::data_loss, "no thread and no event");
}

TEST(ProfileFiles, TimesSince1970BecomeTimesSinceTheFirstEvent) {
  const profile::Recording r = parse_chrome_trace(
      R"([{"ph":"X","pid":3,"tid":4,"name":"b","ts":1700000000000010,"dur":5},{"ph":"X","pid":3,"tid":4,"name":"a","ts":1700000000000000,"dur":5}])",
      "t.json");
  ASSERT_EQ(r.events.size(), 2u);
  EXPECT_EQ(r.events[0].name, "a");
  EXPECT_EQ(r.events[0].begin_ns, 0);
  EXPECT_EQ(r.events[1].begin_ns, 10'000);
  EXPECT_EQ(r.started_unix_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(r.length_ns, 15'000);
}

TEST(ProfileFiles, ReadsTensorFlows) {
  RUNNEL_REQUIRE_FIXTURES();
  const profile::Recording r =
      read_profile_file(fixtures() / "tf215/events/profile/plugins/profile/2024_01_01_00_00_00/host.xplane.pb");
  EXPECT_EQ(r.host, "host");
  ASSERT_EQ(r.threads.size(), 1u);
  EXPECT_EQ(r.threads[0].name, "python");
  std::vector<int64_t> steps;
  int in_steps = 0;
  for (const profile::Event& e : r.events) {
    if (e.kind == profile::Kind::step) {
      EXPECT_EQ(e.name, "train");
      steps.push_back(e.step);
    } else {
      in_steps += e.step == steps.back();
    }
  }
  EXPECT_THAT(steps, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(in_steps, 10);  // a call of the function and its execution in each
  EXPECT_EQ(r.events[0].begin_ns, 6619 + 56304);
  EXPECT_EQ(r.events[0].end_ns, 6619 + 56304 + 2460026);
}

// One profile in both of TensorFlow's files, with threads that work for one another.
TEST(ProfileFiles, BothFilesOfTensorFlowSayTheSame) {
  RUNNEL_REQUIRE_FIXTURES();
  const auto folder =
      fixtures() / "clsandoval_mlbook/my_logs/run_2021_05_27-21_28_04/train/plugins/profile/2021_05_27_13_28_04";
  const profile::Recording space = read_profile_file(folder / "THINKPAD2.xplane.pb");
  const profile::Recording trace = read_profile_file(folder / "THINKPAD2.trace.json.gz");
  EXPECT_EQ(space.threads.size(), 10u);
  EXPECT_EQ(trace.threads.size(), 10u);
  const auto nodes = [](const profile::Recording& r) {
    std::vector<std::string> names;
    for (const profile::Event& e : r.events) {
      if (e.kind == profile::Kind::node) names.push_back(e.name + " " + e.op_type);
    }
    std::sort(names.begin(), names.end());
    return names;
  };
  EXPECT_EQ(nodes(space).size(), 34u);
  EXPECT_EQ(nodes(trace), nodes(space));
  int in_step = 0;
  for (const profile::Event& e : space.events) in_step += e.kind == profile::Kind::node && e.step >= 0;
  EXPECT_GT(in_step, 25);
}

}  // namespace
}  // namespace runnel::io
