// Event files that TensorFlow 2.15 wrote, written again with our functions: the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <numbers>

#include "runnel/function/function.h"
#include "runnel/function/traced_blocks.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"
#include "runnel/summary/hparams.h"
#include "runnel/summary/summary.h"
#include "tests/summary/support.h"

namespace runnel::summary {
namespace {

using test::expect_same_events;
using test::TempDir;
using test::tensorflow_events;

// Runs `write` with a writer as default and compares its file with TensorFlow's of that name.
template <class F>
void expect_tensorflows(const std::string& name, const F& write) {
  TempDir dir;
  const SummaryWriter writer = create_file_writer(dir.path());
  {
    const auto scope = writer.as_default();
    write();
  }
  writer.close();
  experimental::set_step({});
  expect_same_events(dir.path(), tensorflow_events(name));
}

// From 0 to 1, as numpy's linspace has it.
Tensor line(const Shape& shape) {
  const int64_t n = shape.num_elements();
  std::vector<double> values(static_cast<size_t>(n));
  const double step = 1.0 / static_cast<double>(n - 1);
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = i + 1 == n ? 1.0 : static_cast<double>(i) * step;
  return Tensor::of<double>(values, shape);
}

TEST(LikeTensorFlow, Scalars) {
  RUNNEL_REQUIRE_FIXTURES();
  expect_tensorflows("scalar", [] {
    for (int i = 0; i < 5; ++i) {
      scalar("loss", 1.0 / (i + 1), i);
      scalar("nested/acc", i * 0.25, i, "An *accuracy*");
    }
    scalar("int", 7, 100);
    scalar("bool", true, 1);
    scalar("float64", constant(0.1, DType::float64), int64_t{1} << 40);
    scalar("nan", std::nan(""), 3);
    scalar("inf", -std::numeric_limits<double>::infinity(), 3);
    scalar("bad tag \u00e9 /x", 1., 4);
    {
      const auto outer = name_scope("outer");
      const auto inner = name_scope("inner");
      scalar("scoped", 2.0, 1);
    }
    {
      const auto custom = name_scope("custom");
      scalar("in_summary_scope", 2.5, 1);
    }
    experimental::set_step(50);
    scalar("default_step", 3.0);
    {
      const auto none = record_if(false);
      scalar("not_recorded", 3.0, 1);
    }
    const auto all = record_if([] { return Tensor(true); });
    scalar("recorded", 3.0, 1);
  });
}

TEST(LikeTensorFlow, Images) {
  RUNNEL_REQUIRE_FIXTURES();
  expect_tensorflows("image", [] {
    const auto floats = [](const Shape& shape) { return cast(line(shape), DType::float32); };
    const auto bytes = [](const Shape& shape) { return cast(line(shape) * 255.0, DType::uint8); };
    image("float_rgb", floats({2, 4, 5, 3}), 1);
    image("gray", floats({1, 3, 3, 1}), 1);
    image("rgba", floats({1, 3, 3, 4}), 1);
    image("gray_alpha", floats({1, 3, 3, 2}), 1);
    image("uint8", bytes({5, 2, 2, 3}), 2);
    image("max_outputs", bytes({5, 2, 2, 3}), 2, 5, "five");
    image("max_zero", bytes({5, 2, 2, 3}), 2, 0);
    image("out_of_range", cast(line({1, 2, 4, 3}) * 3.0 - 1.0, DType::float32), 3);
    image("float64", line({1, 2, 2, 3}), 3);
    image("float16", cast(line({1, 2, 2, 3}), DType::float16), 3);
    image("uint16", cast(line({1, 2, 2, 3}) * 65535.0, DType::uint16), 3);
    image("empty_batch", zeros({0, 2, 2, 3}), 4);
  });
}

TEST(LikeTensorFlow, Audio) {
  RUNNEL_REQUIRE_FIXTURES();
  expect_tensorflows("audio", [] {
    std::vector<float> wave;
    for (int i = 0; i < 81; ++i) {
      wave.push_back(static_cast<float>(std::sin(2 * std::numbers::pi * 50 * (i / 800.0))));
    }
    const Tensor mono = reshape(Tensor::of<float>(wave), {1, -1, 1});
    audio("mono", mono, 800, 1);
    audio("stereo", concat({mono, -mono / 2.f}, 2), 800, 1, 3, "wav", "two");
    audio("batch", tile(mono(all, slice(0, 20)), {5, 1, 1}), 8000, 2, 2);
    audio("clipped", 3.f * mono, 800, 3, 3, "wav");
  });
}

TEST(LikeTensorFlow, Histograms) {
  RUNNEL_REQUIRE_FIXTURES();
  // The values are those that stand in the fixture's description.
  const std::string described = test::read_bytes(test::fixtures() / "tf215/events/histogram/expected.json");
  const size_t begin = described.find('[', described.find("\"normal_values\""));
  std::vector<float> values;
  for (const char* at = described.c_str() + begin + 1; *at != ']';) {
    char* end = nullptr;
    values.push_back(std::strtof(at, &end));
    ASSERT_NE(end, at);
    at = end + std::strspn(end, ", \n");
  }
  ASSERT_EQ(values.size(), 200u);
  const Tensor v = Tensor::of<float>(values);
  expect_tensorflows("histogram", [&] {
    histogram("normal", v, 1);
    histogram("buckets5", v, 1, 5, "five buckets");
    histogram("constant", fill({7}, 2.5f), 1);
    histogram("single", {1.0f}, 1);
    histogram("empty", zeros({0}), 1);
    histogram("ints", range(10), 2);
    histogram("matrix", reshape(range(12.), {3, 4}), 2);
    histogram("one_bucket", v, 2, 1);
    histogram("zero_buckets", v, 2, 0);
  });
}

TEST(LikeTensorFlow, Text) {
  RUNNEL_REQUIRE_FIXTURES();
  expect_tensorflows("text", [] {
    text("plain", "hello 1", 1);
    text("markdown", "# Title\n\n* a\n* b\n\n|x|y|\n|-|-|\n|1|2|", 1, "md");
    text("vector", {"a", "b", "c"}, 2);
    text("matrix", {{"a", "b"}, {"c", "d"}}, 2);
    text("utf8", "\u00e9\u4e2d\U0001f600", 3);
    text("empty", "", 3);
  });
}

TEST(LikeTensorFlow, Tensors) {
  RUNNEL_REQUIRE_FIXTURES();
  expect_tensorflows("write_tensor", [] {
    const Tensor numbers{{0, 1, 2}, {3, 4, 1}};
    for (const DType t : {DType::float32, DType::float64, DType::int32, DType::int64, DType::uint8, DType::int8,
                          DType::float16, DType::bool_}) {
      write("t_" + std::string(t == DType::bool_ ? "bool" : dtype_name(t)), cast(numbers, t), 1);
    }
    write("complex", Tensor{std::complex<float>(1, 2)}, 2);
    write("bfloat16", cast(Tensor{1.5f, 2.5f}, DType::bfloat16), 2);
    write("string", {"x", "y"}, 2);
    write("scalar", 3.5f, 2);
    const Metadata metadata{
        .plugin_name = "mine", .plugin_content = "\x01\x02", .display_name = "shown", .description = "desc"};
    write("with_metadata", {1.f, 2.f}, 3, metadata.serialize());
    experimental::write_raw_pb(std::string("\x0a\x0a\x0a\x03raw\x15\x00\x00\xa0\x3f", 12), 4);
  });
}

TEST(LikeTensorFlow, InsideAFunction) {
  RUNNEL_REQUIRE_FIXTURES();
  const Variable step(int64_t{0});
  auto f = function([&](const Tensor& x) {
    {
      const auto scope = name_scope("scope");
      scalar("x", x, step);
    }
    IF(x > 1.f) { scalar("big", x * 10.f, step); }
    histogram("h", stack({x, x + 1.f}), step);
    return x;
  });
  expect_tensorflows("in_function", [&] {
    for (int i = 0; i < 4; ++i) {
      f(Tensor(static_cast<float>(i) * 0.75f));
      step.assign_add(int64_t{1});
    }
  });
}

// Graphs of TensorFlow itself: what it wrote, handed to the functions that write such things.
TEST(LikeTensorFlow, Graphs) {
  RUNNEL_REQUIRE_FIXTURES();
  const std::vector<std::string> theirs = test::records_of(tensorflow_events("graph"));
  ASSERT_EQ(theirs.size(), 3u);
  io::Event traced, graph;
  ASSERT_TRUE(io::parse_event(theirs[1], &traced) && io::parse_event(theirs[2], &graph));
  std::string run_metadata;
  io::visit_event_values(traced.body, [&](const io::EventValue& value) {
    // A TensorProto {dtype 1, tensor_shape 2, string_val 8}: the text is what follows the length.
    const size_t at = value.body.find('\x42');
    run_metadata = value.body.substr(at + 3);
  });
  expect_tensorflows("graph", [&] {
    run_metadata_graphs("my_trace", run_metadata, 0);
    graph_def(graph.body);
  });
}

// The same but for the order of a map's entries.
TEST(LikeTensorFlow, HyperparametersOfAnExperiment) {
  RUNNEL_REQUIRE_FIXTURES();
  expect_tensorflows("hparams", [] {
    hparams_config({{"units", Discrete{4, 8}},
                    {"dropout", RealInterval{0.1, 0.5}},
                    {"optimizer", Discrete{"adam", "sgd"}},
                    {"flag", Discrete{true, false}},
                    {"n", IntInterval{1, 5}, "N", "count"}},
                   {{.tag = "accuracy", .display_name = "Accuracy"}}, 1000);
  });
  for (int i = 0; i < 2; ++i) {
    TempDir dir;
    {
      const SummaryWriter writer = create_file_writer(dir.path());
      const auto scope = writer.as_default();
      hparams({{"units", i ? 8 : 4},
               {"dropout", i ? 0.5 : 0.1},
               {"optimizer", i ? "sgd" : "adam"},
               {"flag", i == 1},
               {"n", i + 1}},
              "trial" + std::to_string(i), 2000 + i);
      scalar("accuracy", 0.5 + i * 0.125, 1);
      writer.flush();
      const auto ours = test::records_of(writer.path()),
                 theirs = test::records_of(tensorflow_events("hparams/run" + std::to_string(i)));
      ASSERT_EQ(ours.size(), theirs.size());
      for (size_t k = 0; k < ours.size(); ++k) {
        std::string a = test::timeless(ours[k]), b = test::timeless(theirs[k]);
        if (k == 1) {
          std::ranges::sort(a);
          std::ranges::sort(b);
        }
        EXPECT_EQ(a, b) << k;
      }
    }
  }
}

// hashlib.sha256(json.dumps(hparams, sort_keys=True, separators=(",", ":")).encode()) of Python, where the dictionary
// is
// {"a\n\u00e9\x7f\"": "x\t\u20ac\U0001f600/", "big": 9007199254740993, "dim": 1e16, "large": 1e22, "n": 123456789.125,
//  "neg": -3, "one": 1.0, "real": 1e-05, "yes": True}
TEST(LikeTensorFlow, NamesOfTrials) {
  TempDir dir;
  const SummaryWriter writer = create_file_writer(dir.path());
  const auto scope = writer.as_default();
  const auto write = [](int64_t big) {
    hparams({{"a\n\u00e9\x7f\"", "x\t\u20ac\U0001f600/"},
             {"big", big},
             {"dim", 1e16},
             {"large", 1e22},
             {"n", 123456789.125},
             {"neg", -3},
             {"one", 1.0},
             {"real", 1e-05},
             {"yes", true}},
            "", 1);
  };
  write(9007199254740993);
  write(9007199254740992);
  writer.flush();
  const auto records = test::records_of(writer.path());
  ASSERT_EQ(records.size(), 3u);
  const std::string name = "67efc3fc37a686bcbb6d84641b9d8db8009d63ad6f2a74e8f6e64785d7b58df0";
  EXPECT_NE(records[1].find(name), std::string::npos);
  EXPECT_EQ(records[2].find(name), std::string::npos);  // the double next to it is the same
}

}  // namespace
}  // namespace runnel::summary
