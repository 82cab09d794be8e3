#include "runnel/ops/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/base/parallel.h"
#include "runnel/function/function.h"
#include "runnel/io/example.h"
#include "runnel/io/record_reader.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"

namespace runnel::io {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

Tensor batch(const std::vector<Example>& examples) {
  std::vector<Bytes> records;
  for (const Example& e : examples) records.emplace_back(e.serialize());
  return Tensor::of<Bytes>(records);
}

const Example first{{{{"label", Int64List{{3}}}, {"w", FloatList{{1, 2, 3, 4}}}, {"tags", BytesList{{"x", "y"}}}}}};
const Example second{{{{"label", Int64List{{-1}}}, {"w", FloatList{{5, 6, 7, 8}}}, {"extra", Int64List{{9}}}}}};

TEST(ParseExample, DenseFeatures) {
  const ExampleSpec spec{{"label", FixedLenFeature{{}, int64}}, {"w", FixedLenFeature{{2, 2}}}};
  const ParsedExample parsed = parse_example(batch({first, second}), spec);
  EXPECT_EQ(parsed["label"].shape(), Shape{2});
  EXPECT_THAT(parsed["label"].to_vector<int64_t>(), ElementsAre(3, -1));
  EXPECT_EQ(parsed["w"].shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(parsed["w"].to_vector<float>(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  const ParsedExample single = parse_single_example(Tensor(Bytes(first.serialize())), spec);
  EXPECT_EQ(single["w"].shape(), (Shape{2, 2}));
  EXPECT_EQ(single["label"].item<int64_t>(), 3);
  EXPECT_EQ(parse_example(batch({}), spec)["w"].shape(), (Shape{0, 2, 2}));
}

TEST(ParseExample, AFeatureMayBeReplaced) {
  ParsedExample parsed = parse_single_example(
      Tensor(Bytes(first.serialize())),
      {{"label", FixedLenFeature{{}, int64}}, {"w", FixedLenFeature{{4}}}, {"tags", VarLenFeature{DType::string}}});
  const ParsedExample as_read = parsed;
  parsed["w"] = Tensor{{1, 2}};
  EXPECT_EQ(parsed["w"].shape(), (Shape{1, 2}));
  EXPECT_EQ(parsed.nest()["w"].leaf().dtype(), int32);
  EXPECT_EQ(as_read["w"].shape(), Shape{4});
  expect_error([&] { parsed["missing"] = 1; }, Code::not_found, "missing");
  expect_error([&] { parsed["tags"] = 1; }, Code::invalid_argument, "tags");
}

TEST(ParseExample, StringsShareTheRecordsBytes) {
  const Tensor records = batch({first});
  const Tensor tags = parse_example(records, {{"tags", FixedLenFeature{{2}, DType::string}}})["tags"];
  EXPECT_THAT(tags.to_vector<std::string>(), ElementsAre("x", "y"));
  const std::string_view record = records.data<Bytes>()[0].view();
  EXPECT_GE(tags.data<Bytes>()[0].view().data(), record.data());
  EXPECT_LT(tags.data<Bytes>()[0].view().data(), record.data() + record.size());
}

TEST(ParseExample, DefaultsStandInForMissingFeatures) {
  const ExampleSpec spec{{"extra", FixedLenFeature{{}, int64, Tensor(7)}},
                         {"tags", FixedLenFeature{{2}, DType::string, Tensor{"p", "q"}}},
                         {"none", FixedLenFeature{{3}, float32, Tensor(0.5f)}}};
  const ParsedExample parsed = parse_example(batch({first, second}), spec);
  EXPECT_THAT(parsed["extra"].to_vector<int64_t>(), ElementsAre(7, 9));
  EXPECT_THAT(parsed["tags"].to_vector<std::string>(), ElementsAre("x", "y", "p", "q"));
  EXPECT_THAT(parsed["none"].to_vector<float>(), ElementsAre(.5f, .5f, .5f, .5f, .5f, .5f));
  // A feature without a list counts as missing, as in TensorFlow.
  const Example empty{{{{"extra", Feature{}}}}};
  EXPECT_THAT(parse_example(batch({empty}), spec)["extra"].to_vector<int64_t>(), ElementsAre(7));
}

TEST(ParseExample, FeaturesOfAnyLength) {
  const ExampleSpec spec{{"tags", VarLenFeature{DType::string}},
                         {"w", RaggedFeature{}},
                         {"steps", RaggedFeature{.value_key = "w", .row_splits_dtype = int64}},
                         {"extra", FixedLenSequenceFeature{{}, int64, true, Tensor(-1)}}};
  const Example third{{{{"w", FloatList{}}, {"extra", Int64List{{1, 2, 3}}}}}};
  const ParsedExample parsed = parse_example(batch({first, second, third}), spec);
  const SparseTensor tags = parsed.sparse("tags");
  EXPECT_THAT(tags.indices.to_vector<int64_t>(), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(tags.values.to_vector<std::string>(), ElementsAre("x", "y"));
  EXPECT_THAT(tags.dense_shape.to_vector<int64_t>(), ElementsAre(3, 2));
  EXPECT_EQ(parsed.ragged("w").str(), "<tf.RaggedTensor [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], []]>");
  EXPECT_EQ(parsed.ragged("w").row_splits().dtype(), int32);
  EXPECT_EQ(parsed.ragged("steps").row_splits().dtype(), int64);
  EXPECT_EQ(parsed["extra"].shape(), (Shape{3, 3}));
  EXPECT_THAT(parsed["extra"].to_vector<int64_t>(), ElementsAre(-1, -1, -1, 9, -1, -1, 1, 2, 3));

  const ParsedExample single = parse_single_example(Tensor(Bytes(third.serialize())), spec);
  EXPECT_EQ(single.sparse("tags").indices.shape(), (Shape{0, 1}));
  EXPECT_THAT(single.sparse("tags").dense_shape.to_vector<int64_t>(), ElementsAre(0));
  EXPECT_EQ(single["w"].shape(), Shape{0});
  EXPECT_THAT(single["extra"].to_vector<int64_t>(), ElementsAre(1, 2, 3));
  const Nest all = parsed;
  EXPECT_THAT(all.keys(), ElementsAre("extra", "steps", "tags", "w"));
  EXPECT_THAT(all["tags"].as<SparseTensor>().values.to_vector<std::string>(), ElementsAre("x", "y"));
}

// The same rows in every way of writing them: [[1, 2], [], [3]].
TEST(ParseExample, PartitionsCutValuesIntoRows) {
  const Example rows{{{{"v", FloatList{{1, 2, 3}}},
                       {"splits", Int64List{{0, 2, 2, 3}}},
                       {"lengths", Int64List{{2, 0, 1}}},
                       {"starts", Int64List{{0, 2, 2}}},
                       {"limits", Int64List{{2, 2, 3}}},
                       {"ids", Int64List{{0, 0, 2}}}}}};
  const Example none{};
  const Example one{{{{"v", FloatList{{4}}},
                      {"splits", Int64List{{0, 1}}},
                      {"lengths", Int64List{{1}}},
                      {"starts", Int64List{{0}}},
                      {"limits", Int64List{{1}}},
                      {"ids", Int64List{{0}}}}}};
  const std::vector<RaggedPartition> all = {RowSplits{"splits"}, RowLengths{"lengths"}, RowStarts{"starts"},
                                            RowLimits{"limits"}, ValueRowIds{"ids"}};
  for (const RaggedPartition& partition : all) {
    SCOPED_TRACE(partition.index());
    const ExampleSpec spec{{"r", RaggedFeature{.value_key = "v", .partitions = {partition}}},
                           {"v", RaggedFeature{.row_splits_dtype = int64}}};
    const ParsedExample parsed = parse_example(batch({rows, none, one}), spec);
    EXPECT_EQ(parsed.ragged("r").str(), "<tf.RaggedTensor [[[1.0, 2.0], [], [3.0]], [], [[4.0]]]>");
    EXPECT_EQ(parsed.ragged("r").row_splits().dtype(), int32);
    EXPECT_EQ(parsed.ragged("v").str(), "<tf.RaggedTensor [[1.0, 2.0, 3.0], [], [4.0]]>");
    const ParsedExample single = parse_single_example(Tensor(Bytes(rows.serialize())), spec);
    EXPECT_EQ(single.ragged("r").str(), "<tf.RaggedTensor [[1.0, 2.0], [], [3.0]]>");
    EXPECT_THAT(single["v"].to_vector<float>(), ElementsAre(1, 2, 3));
    EXPECT_EQ(single.nest()["r"].as<RaggedTensor>().str(), "<tf.RaggedTensor [[1.0, 2.0], [], [3.0]]>");
  }
}

TEST(ParseExample, PartitionsOfPartitions) {
  const Example lines{{{{"xy", FloatList{{1, 2, 3, 4, 5, 6}}}, {"points", Int64List{{2, 1}}}, {"n", Int64List{{2}}}}}};
  const Example other{{{{"xy", FloatList{{7, 8}}}, {"points", Int64List{{0, 1}}}, {"n", Int64List{{1, 1}}}}}};
  const ExampleSpec spec{
      {"lines", RaggedFeature{.value_key = "xy", .partitions = {RowLengths{"points"}, UniformRowLength{2}}}},
      {"groups", RaggedFeature{.value_key = "xy",
                               .partitions = {RowLengths{"n"}, RowLengths{"points"}, UniformRowLength{2}},
                               .row_splits_dtype = int64}},
      {"pairs", RaggedFeature{.value_key = "xy", .partitions = {UniformRowLength{1}, UniformRowLength{2}}}},
      {"even", RaggedFeature{.value_key = "xy", .partitions = {UniformRowLength{1}, RowLengths{"points2"}}}}};
  Example with_even = lines, other_even = other;
  with_even.features.feature["points2"] = Int64List{{4, 2}};
  other_even.features.feature["points2"] = Int64List{{2}};
  const ParsedExample parsed = parse_example(batch({with_even, other_even}), spec);
  EXPECT_EQ(parsed.ragged("lines").str(),
            "<tf.RaggedTensor [[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]], [[], [[7.0, 8.0]]]]>");
  EXPECT_EQ(parsed.ragged("lines").flat_values().shape(), (Shape{4, 2}));
  EXPECT_EQ(parsed.ragged("groups").str(),
            "<tf.RaggedTensor [[[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]]], [[[]], [[[7.0, 8.0]]]]]>");
  EXPECT_EQ(parsed.ragged("pairs").flat_values().shape(), (Shape{4, 1, 2}));
  EXPECT_EQ(parsed.ragged("even").str(), "<tf.RaggedTensor [[[[1.0, 2.0, 3.0, 4.0]], [[5.0, 6.0]]], [[[7.0, 8.0]]]]>");
  const ParsedExample single = parse_single_example(Tensor(Bytes(with_even.serialize())), spec);
  EXPECT_EQ(single.ragged("lines").str(), "<tf.RaggedTensor [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]]>");
  EXPECT_EQ(single["pairs"].shape(), (Shape{3, 1, 2}));
  // In a function, where values are known only when it runs.
  const auto f = function([spec](const Tensor& records) { return parse_example(records, spec).ragged("lines"); });
  EXPECT_EQ(f(batch({with_even, other_even})).str(), parsed.ragged("lines").str());
}

TEST(ParseExample, PartitionsThatDoNotFit) {
  const auto fails = [](const std::vector<int64_t>& numbers, const RaggedPartition& partition,
                        const std::string& text) {
    const Example bad{{{{"v", FloatList{{1, 2, 3}}}, {"p", Int64List{numbers}}}}};
    const ExampleSpec spec{{"r", RaggedFeature{.value_key = "v", .partitions = {partition}}}};
    expect_error([&] { parse_single_example(Tensor(Bytes(bad.serialize())), spec); }, Code::invalid_argument, text);
  };
  fails({0, 2}, RowSplits{"p"}, "record 0: feature 'r': row_splits end at 2, but there are 3 values");
  fails({1, 3}, RowSplits{"p"}, "row_splits begin with 1, not 0");
  fails({0, 2, 1, 3}, RowSplits{"p"}, "must not fall, and number 2 is 1 after 2");
  fails({}, RowSplits{"p"}, "end at 0, but there are 3 values");
  fails({2, 2}, RowLengths{"p"}, "row 1 has 2 values, but 1 of 3 are left");
  fails({-1, 4}, RowLengths{"p"}, "row 0 has -1 values");
  fails({2}, RowLengths{"p"}, "end at 2, but there are 3 values");
  fails({0, 4}, RowStarts{"p"}, "rows begin at 4 at last, but there are 3 values");
  fails({3, 2}, RowLimits{"p"}, "must not fall");
  fails({0, 1}, ValueRowIds{"p"}, "2 row ids for 3 values");
  fails({0, 2, 1}, ValueRowIds{"p"}, "must not fall");
  fails({0, 1, int64_t{1} << 50}, ValueRowIds{"p"}, "rows empty");
  fails({}, UniformRowLength{2}, "3 values are no rows of 2");
  const auto spec_of = [](const RaggedPartition& p) { ExampleSpec{{"r", RaggedFeature{.partitions = {p}}}}; };
  expect_error([&] { spec_of(UniformRowLength{0}); }, Code::invalid_argument, "feature 'r': rows of 0 values");
  expect_error([&] { spec_of(RowSplits{""}); }, Code::invalid_argument, "feature 'r': a partition without a key");
}

TEST(ParseExample, StepsOfAShape) {
  const ExampleSpec spec{{"w", FixedLenSequenceFeature{{2}, float32, true}}};
  const Example longer{{{{"w", FloatList{{1, 2, 3, 4, 5, 6}}}}}};
  const Tensor w = parse_example(batch({first, longer}), spec)["w"];
  EXPECT_EQ(w.shape(), (Shape{2, 3, 2}));
  EXPECT_THAT(w.to_vector<float>(), ElementsAre(1, 2, 3, 4, 0, 0, 1, 2, 3, 4, 5, 6));
  const Example odd{{{{"w", FloatList{{1, 2, 3}}}}}};
  expect_error(
      [&] {
        parse_example(batch({first, odd}), spec);
      },
      Code::invalid_argument, "record 1: feature 'w': it has 3 values, which is no multiple of the 2 of one step");
}

TEST(ParseExample, UnusualButValidRecordsAreRead) {
  // An unpacked number, the key twice, and an unknown field: the general parser has to look.
  const std::string record(
      "\x0a\x1e\x0a\x0d\x0a\x05label\x12\x04\x1a\x02\x08\x05\x0a\x0d\x0a\x05label\x12\x04\x1a\x02"
      "\x08\x06\x50\x01",
      34);
  const ExampleSpec spec{{"label", FixedLenFeature{{}, int64}}, {"v", VarLenFeature{int64}}};
  EXPECT_THAT(parse_example(Tensor{Bytes(record), Bytes(first.serialize())}, spec)["label"].to_vector<int64_t>(),
              ElementsAre(6, 3));
}

TEST(ParseExample, ErrorsNameRecordAndFeature) {
  auto fails = [](const Tensor& records, const ExampleSpec& spec, Code code, const std::string& text,
                  const Tensor& names = {}) { expect_error([&] { parse_example(records, spec, names); }, code, text); };
  const Tensor records = batch({first, second});
  fails(records, {{"tags", FixedLenFeature{{2}, DType::string}}}, Code::invalid_argument,
        "[ParseExampleV2] record 1: feature 'tags': it is missing and has no default value");
  fails(records, {{"label", FixedLenFeature{{}}}}, Code::invalid_argument,
        "record 0: feature 'label': it holds int64s, not floats");
  fails(records, {{"w", FixedLenFeature{{3}}}}, Code::invalid_argument,
        "feature 'w': it has 4 values, but its shape asks for 3");
  fails(records, {{"w", VarLenFeature{int64}}}, Code::invalid_argument, "feature 'w': it holds floats, not int64s");
  fails(records, {{"tags", FixedLenFeature{{2}, DType::string}}}, Code::invalid_argument, "record 1 ('two.rec')",
        Tensor{"one.rec", "two.rec"});
  fails(Tensor{"no message"}, {{"a", VarLenFeature{}}}, Code::data_loss,
        "record 0: no valid message: damaged at byte 0");
  expect_error(
      [&] {
        ExampleSpec{{"a", VarLenFeature{int32}}};
      },
      Code::invalid_argument, "feature 'a': features are float32, int64 or string, not int32");
  expect_error([&] { ExampleSpec{{"a", FixedLenFeature{{-1}}}}; }, Code::invalid_argument, "must be fully known");
  fails(records, {{"a", FixedLenSequenceFeature{{}}}}, Code::invalid_argument, "needs allow_missing");
  const ExampleSpec spec{{"label", FixedLenFeature{{}, int64}}, {"tags", VarLenFeature{DType::string}}};
  const ParsedExample parsed = parse_example(records, spec);
  expect_error([&] { parsed["x"]; }, Code::not_found, "no feature is called 'x'; there are: label, tags");
  expect_error([&] { parsed["tags"]; }, Code::invalid_argument, "use parsed.sparse");
  expect_error([&] { parse_example(Tensor("x"), spec); }, Code::invalid_argument, "parse_single_example");
  expect_error([&] { parse_single_example(records, spec); }, Code::invalid_argument, "parse_example");
}

TEST(ParseExample, LargeBatchesAreTheSameWithAnyNumberOfThreads) {
  std::vector<Example> examples;
  for (int64_t i = 0; i < 3000; ++i) {
    examples.push_back({{{{"i", Int64List{{i}}},
                          {"b", BytesList{{std::string(500, static_cast<char>(i))}}},
                          {"v", FloatList{std::vector<float>(static_cast<size_t>(i % 7), static_cast<float>(i))}}}}});
  }
  const Tensor records = batch(examples);
  const ExampleSpec spec{
      {"i", FixedLenFeature{{}, int64}}, {"v", RaggedFeature{}}, {"b", VarLenFeature{DType::string}}};
  const int threads = num_threads();
  std::vector<std::vector<float>> values;
  for (int n : {1, 2}) {
    set_num_threads(n);
    const ParsedExample parsed = parse_example(records, spec);
    values.push_back(parsed.ragged("v").flat_values().to_vector<float>());
    const auto numbers = parsed["i"].to_vector<int64_t>();
    for (size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], static_cast<int64_t>(i));
    EXPECT_EQ(parsed.sparse("b").values.data<Bytes>()[2999].view(), std::string(500, static_cast<char>(2999)));
  }
  set_num_threads(threads);
  EXPECT_EQ(values[0], values[1]);
}

TEST(ParseExample, InsideAFunction) {
  const ExampleSpec spec{{"label", FixedLenFeature{{}, int64}}, {"w", FixedLenFeature{{4}}}};
  auto f = function([&](const Tensor& record) {
    const ParsedExample parsed = parse_single_example(record, spec);
    return std::tuple(parsed["w"], parsed["label"]);
  });
  const auto [w, label] = f(Tensor(Bytes(second.serialize())));
  EXPECT_THAT(w.to_vector<float>(), ElementsAre(5, 6, 7, 8));
  EXPECT_EQ(label.item<int64_t>(), -1);
}

const SequenceExample film{{{{"id", Int64List{{7}}}}},
                           {{{"frame", FeatureList{{FloatList{{1, 2}}, FloatList{{3, 4}}}}},
                             {"words", FeatureList{{BytesList{{"a"}}, BytesList{{"b", "c"}}}}}}}};
const SequenceExample still{{{{"id", Int64List{{8}}}}}, {{{"frame", FeatureList{{FloatList{{5, 6}}}}}}}};

TEST(ParseSequenceExample, OneAndMany) {
  const ExampleSpec context{{"id", FixedLenFeature{{}, int64}}};
  const ExampleSpec lists{{"frame", FixedLenSequenceFeature{{2}}}, {"words", VarLenFeature{DType::string}}};
  const ParsedSequence one = parse_single_sequence_example(Tensor(Bytes(film.serialize())), context, lists);
  EXPECT_EQ(one.context["id"].leaf().item<int64_t>(), 7);
  EXPECT_EQ(one.sequences["frame"].leaf().shape(), (Shape{2, 2}));
  const auto words = one.sequences["words"].as<SparseTensor>();
  EXPECT_THAT(words.indices.to_vector<int64_t>(), ElementsAre(0, 0, 1, 0, 1, 1));
  EXPECT_THAT(words.dense_shape.to_vector<int64_t>(), ElementsAre(2, 2));

  const Tensor both{Bytes(film.serialize()), Bytes(still.serialize())};
  const ParsedSequence many = parse_sequence_example(both, context, lists);
  EXPECT_THAT(many.context["id"].leaf().to_vector<int64_t>(), ElementsAre(7, 8));
  EXPECT_THAT(many.sequences["frame"].leaf().to_vector<float>(), ElementsAre(1, 2, 3, 4, 5, 6, 0, 0));
  EXPECT_THAT(many.lengths["frame"].leaf().to_vector<int64_t>(), ElementsAre(2, 1));
  EXPECT_THAT(many.sequences["words"].as<SparseTensor>().dense_shape.to_vector<int64_t>(), ElementsAre(2, 2, 2));
  const ParsedSequence ragged = parse_sequence_example(both, context, {{"words", RaggedFeature{DType::string}}});
  EXPECT_EQ(ragged.sequences["words"].as<RaggedTensor>().str(), "<tf.RaggedTensor [[[b'a'], [b'b', b'c']], []]>");
}

TEST(ParseSequenceExample, Partitions) {
  const SequenceExample a{{{{"c", Int64List{{1, 2, 3}}}, {"cl", Int64List{{1, 2}}}}},
                          {{{"v", FeatureList{{Int64List{{1, 2, 3}}, Int64List{{4}}}}},
                            {"l", FeatureList{{Int64List{{2, 1}}, Int64List{{1}}}}}}}};
  const SequenceExample b{{{{"c", Int64List{}}}},
                          {{{"v", FeatureList{{Int64List{{5, 6}}}}}, {"l", FeatureList{{Int64List{{0, 2}}}}}}}};
  const ExampleSpec context{{"c", RaggedFeature{.dtype = int64, .partitions = {RowLengths{"cl"}}}}};
  const ExampleSpec lists{{"v", RaggedFeature{.dtype = int64, .partitions = {RowLengths{"l"}}}}};
  const ParsedSequence one = parse_single_sequence_example(Tensor(Bytes(a.serialize())), context, lists);
  EXPECT_EQ(one.context["c"].as<RaggedTensor>().str(), "<tf.RaggedTensor [[1], [2, 3]]>");
  EXPECT_EQ(one.sequences["v"].as<RaggedTensor>().str(), "<tf.RaggedTensor [[[1, 2], [3]], [[4]]]>");
  const ParsedSequence many =
      parse_sequence_example(Tensor{Bytes(a.serialize()), Bytes(b.serialize())}, context, lists);
  EXPECT_EQ(many.context["c"].as<RaggedTensor>().str(), "<tf.RaggedTensor [[[1], [2, 3]], []]>");
  EXPECT_EQ(many.sequences["v"].as<RaggedTensor>().str(), "<tf.RaggedTensor [[[[1, 2], [3]], [[4]]], [[[], [5, 6]]]]>");
  SequenceExample short_of_one = a;
  short_of_one.feature_lists.feature_list["l"] = FeatureList{{Int64List{{2, 1}}}};
  expect_error([&] { parse_single_sequence_example(Tensor(Bytes(short_of_one.serialize())), {}, lists); },
               Code::invalid_argument, "feature 'v': its values are in 2 lists, its partition in 1");
}

TEST(ParseSequenceExample, Errors) {
  const Tensor record(Bytes(still.serialize()));
  expect_error(
      [&] {
        parse_single_sequence_example(record, {}, {{"x", FixedLenSequenceFeature{{}}}});
      },
      Code::invalid_argument, "feature list 'x' is missing");
  expect_error(
      [&] {
        parse_single_sequence_example(record, {}, {{"frame", FixedLenSequenceFeature{{3}}}}, "s.rec");
      },
      Code::invalid_argument, "record 0 ('s.rec'): feature list 'frame', step 0: it has 2 values");
  expect_error(
      [&] {
        parse_single_sequence_example(record, {}, {{"frame", VarLenFeature{int64}}});
      },
      Code::invalid_argument, "it holds floats, not int64s");
  expect_error(
      [&] {
        parse_single_sequence_example(record, {}, {{"frame", FixedLenFeature{{2}}}});
      },
      Code::invalid_argument, "lists are FixedLenSequenceFeature");
  const ParsedSequence empty =
      parse_single_sequence_example(record, {}, {{"x", FixedLenSequenceFeature{{3}, float32, true}}});
  EXPECT_EQ(empty.sequences["x"].leaf().shape(), (Shape{0, 3}));
}

// Records of TensorFlow's files, read into tensors and compared with the messages they hold.
TEST(ParseExample, ReadsTensorFlowsFiles) {
  RUNNEL_REQUIRE_FIXTURES();
  const auto folder = test::fixtures() / "tensorflow_tfx/tfx/components/testdata";
  RecordReader reader(folder / "penguin/data/Split-train/data_tfrecord-00000-of-00001.gz",
                      {.compression = Compression::gzip});
  std::vector<Bytes> records;
  std::vector<Example> examples;
  while (auto record = reader.next()) {
    const std::string_view text(reinterpret_cast<const char*>(record->data()), record->size());
    records.emplace_back(reader.owner(), text);
    examples.push_back(Example::parse(text));
  }
  ASSERT_EQ(records.size(), 234U);
  const ParsedExample parsed = parse_example(
      Tensor::of<Bytes>(records), {{"species", FixedLenFeature{{}, int64}}, {"body_mass_g", FixedLenFeature{{1}}}});
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(parsed["species"].data<int64_t>()[i], examples[i].features.feature.at("species").int64_list()->value[0]);
    EXPECT_EQ(parsed["body_mass_g"].data<float>()[i],
              examples[i].features.feature.at("body_mass_g").float_list()->value[0]);
  }
}

TEST(ParseSequenceExample, ReadsTensorFlowsFiles) {
  RUNNEL_REQUIRE_FIXTURES();
  const auto folder = test::fixtures() / "tensorflow_tfx/tfx/components/testdata";
  RecordReader reader(folder / "tfrecord_sequence/Split-eval/data_tfrecord_eval.gz", {.detect_compression = true});
  std::vector<Bytes> records;
  while (auto record = reader.next()) {
    records.emplace_back(reader.owner(),
                         std::string_view(reinterpret_cast<const char*>(record->data()), record->size()));
  }
  ASSERT_EQ(records.size(), 4500U);
  const ParsedSequence parsed =
      parse_sequence_example(Tensor::of<Bytes>(records), {{"i", VarLenFeature{int64}}, {"f", RaggedFeature{}}},
                             {{"s", FixedLenSequenceFeature{{}, DType::string, true}}});
  // Record n holds the numbers 10500 + n (see `runnel records cat`); every so often a feature is left out.
  const auto integers = parsed.context["i"].as<SparseTensor>();
  for (size_t k = 0; k < integers.values.to_vector<int64_t>().size(); ++k) {
    ASSERT_EQ(integers.values.data<int64_t>()[k], 10500 + integers.indices.data<int64_t>()[2 * k]);
  }
  EXPECT_EQ(parsed.sequences["s"].leaf().data<Bytes>()[0].view(), "10500");
  EXPECT_EQ(parsed.lengths["s"].leaf().shape(), Shape{4500});
}

TEST(ParseExample, ASpecThatWasMovedFromSaysSo) {
  ExampleSpec spec{{"label", FixedLenFeature{{}, int64}}};
  const ExampleSpec other = std::move(spec);
  EXPECT_EQ(parse_example(batch({first}), other)["label"].item<int64_t>(), 3);
  const std::string text = "this ExampleSpec was moved from";
  // NOLINTNEXTLINE(bugprone-use-after-move): the point
  expect_error([&] { parse_example(batch({first}), spec); }, Code::failed_precondition, text);
  expect_error([&] { parse_single_example(first.serialize(), spec); }, Code::failed_precondition, text);
}

}  // namespace
}  // namespace runnel::io
