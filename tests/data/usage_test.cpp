// What a user meets who makes a mistake: every error names the line that the mistake stands in.
#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include "runnel/base/env.h"
#include "tests/data/helpers.h"
#include "tests/support/small_stack.h"
#include "tests/support/temp_dir.h"

namespace runnel::data {
namespace {

// The error of f names this file and the line `line`, once.
template <class F>
void expect_named(const F& f, uint32_t line, const std::string& text) {
  const std::string place = "usage_test.cpp:" + std::to_string(line) + ")";
  try {
    f();
    ADD_FAILURE() << "no error, wanted: " << text;
  } catch (const Error& e) {
    const std::string said = e.what();
    EXPECT_THAT(said, ::testing::HasSubstr(text));
    EXPECT_THAT(said, ::testing::HasSubstr(place));
    EXPECT_EQ(said.find(" (at "), said.rfind(" (at ")) << said;
  }
}
#define EXPECT_LINE(statement, text) expect_named([&] { statement; }, __LINE__, text)

TEST(Usage, SourcesNameTheLine) {
  EXPECT_LINE(from_tensor_slices(Tensor(1)), "is a scalar");
  EXPECT_LINE(from_tensor_slices(Tensor{1, 2}, Tensor{1, 2, 3}), "first dimensions differ");
  EXPECT_LINE(from_tensor_slices(Tensor{1}, Tensor{1}, Tensor{1, 2}), "first dimensions differ");
  EXPECT_LINE(from_tensor_slices(std::map<std::string, Tensor>{{"a", Tensor(1)}}), "component ['a'] is a scalar");
  EXPECT_LINE(from_tensor_slices(RaggedTensor::of<int>({{1}}), Tensor{1, 2}), "rows");
  EXPECT_LINE(AnyDataset::from_tensor_slices(Tensor(1)), "is a scalar");
  EXPECT_LINE(AnyDataset::zip({}), "no dataset");
  EXPECT_LINE(range(0, 10, 0), "the step is 0");
  EXPECT_LINE(choose_from_datasets(std::vector<Dataset<Tensor>>{}, range(1)), "no dataset");
  EXPECT_LINE(sample_from_datasets(std::vector{range(1)}, {0.5, 0.5}), "2 weights for 1 datasets");
  const std::vector two{range(1), range(1)};
  EXPECT_LINE(sample_from_datasets(two, {-0.5, 1.0}), "weight 0 is -0.5: weights are numbers of 0 or more");
  EXPECT_LINE(sample_from_datasets(two, {0.5, std::nan("")}), "weight 1 is nan");
  EXPECT_LINE(sample_from_datasets(two, {0.5, HUGE_VAL}), "weight 1 is inf");
  EXPECT_LINE(sample_from_datasets(two, {0.0, 0.0}), "all weights are 0");
  EXPECT_LINE(list_files("/no/such/*.png"), "no file fits");
  EXPECT_LINE(TFRecordDataset(Tensor{1, 2}), "paths must be a string or a vector of strings, not int32[2]");
  EXPECT_LINE(TFRecordDataset("x", {.compression_type = "zip"}), "zip");
  EXPECT_LINE(TextLineDataset("x", {.compression_type = "zip"}), "zip");
  EXPECT_LINE(FixedLengthRecordDataset("x", {}), "record_bytes 0");
  EXPECT_LINE(IndexedRecordDataset("/no/such/file"), "No such file");
  EXPECT_LINE(csv("x", {Tensor(0.f)}, {.field_delim = ", "}), "not one character");
}

TEST(Usage, SourcesWantTensorsThatReferToSomething) {
  EXPECT_LINE(from_tensors(Tensor()), "[from_tensors] there is a Tensor that refers to nothing");
  EXPECT_LINE(from_tensors(std::tuple{Tensor(1), Tensor()}), "refers to nothing at [1]");
  EXPECT_LINE(from_tensor_slices(Tensor{1}, Tensor()), "refers to nothing at [1]");
}

TEST(Usage, TransformationsNameTheLine) {
  const Dataset<Tensor> d = range(9);
  const AnyDataset any = d;
  const auto same = [](Tensor t) { return t; };
  EXPECT_LINE(d.batch(0), "batch size is 0");
  EXPECT_LINE(any.batch(-1), "batch size is -1");
  EXPECT_LINE(d.batch(1, {.num_parallel_calls = -2}), "num_parallel_calls is -2");
  EXPECT_LINE(d.shuffle(0), "buffer_size is 0");
  EXPECT_LINE(d.shuffle(0, 7), "buffer_size is 0");
  EXPECT_LINE(d.shard(2, 2), "no shard 2 of 2");
  EXPECT_LINE(d.prefetch(-3), "buffer_size is -3");
  EXPECT_LINE(d.map(same, -5), "num_parallel_calls is -5");
  EXPECT_LINE(d.map(same, {.num_parallel_calls = -5}), "num_parallel_calls is -5");
  EXPECT_LINE(any.map([](const Nest& n) { return n; }, -5), "num_parallel_calls is -5");
  EXPECT_LINE(d.interleave([](Tensor) { return range(2); }, {.block_length = 0}), "block_length is 0");
  EXPECT_LINE(d.interleave([](Tensor) { return range(2); }, {.num_parallel_calls = -2}), "num_parallel_calls is -2");
  EXPECT_LINE(TFRecordDataset("x", {.num_parallel_reads = -2}), "num_parallel_reads is -2");
  EXPECT_LINE(csv("x", {Tensor(0.f)}, {.num_parallel_calls = -2}), "num_parallel_calls is -2");
  EXPECT_LINE(d.padded_batch(0), "batch size is 0");
  EXPECT_LINE(d.ragged_batch(0), "batch size is 0");
  EXPECT_LINE(d.rebatch(0), "batch size is 0");
  EXPECT_LINE(d.window(0), "size 0");
  EXPECT_LINE(d.split({0.8, 0.3}), "add up to 1.1");
  EXPECT_LINE(d.rejection_resample(same, {}), "0 target");
  EXPECT_LINE(d.bucket_by_sequence_length([](Tensor) { return int64_t{1}; }, {2}, {1}), "need 2 batch sizes");
  EXPECT_LINE((any.as<Tensor, Tensor>()), "[as] the elements are int64[], not (?, ?)");
}

TEST(Usage, ErrorsOfAPassNameTheStage) {
  const auto rows = range(3).map([](Tensor x) { return zeros({x.item<int64_t>()}); });
  const auto batches = rows.batch(2);
  const uint32_t batch_line = __LINE__ - 1;
  expect_named([&] { batches.make_iterator().next(); }, batch_line, "element 1 of the batch");
  const auto streamed = stream(3).map([](Tensor x) { return zeros({x.item<int64_t>()}); }).batch(2);
  const uint32_t streamed_line = __LINE__ - 1;
  auto begun = streamed.make_iterator();
  begun.next();  // what came before the error
  expect_named([&] { begun.next(); }, streamed_line, "element 1 of the batch");
  const auto parallel = rows.batch(2, {.num_parallel_calls = 2}).prefetch(2);
  const uint32_t parallel_line = __LINE__ - 1;
  expect_named([&] { parallel.make_iterator().next(); }, parallel_line, "element 1 of the batch");
  const TextLineDataset lines("/no/such/file");
  const uint32_t lines_line = __LINE__ - 1;
  expect_named([&] { lines.batch(2).make_iterator().next(); }, lines_line, "No such file");
  auto it = range(1).make_iterator();
  it.get_next();
  EXPECT_LINE(it.get_next(), "end of sequence");
}

// What f throws, and under which code.
template <class F>
std::pair<Code, std::string> thrown(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  ADD_FAILURE() << "no error";
  return {Code::unknown, ""};
}

TEST(Usage, ErrorsInCallablesSayWhichStageCalledThem) {
  const auto fail = [](Tensor) -> Tensor { throw Error(Code::aborted, "mine"); };
  const auto expect_stage = [](const auto& d, const std::string& name, uint32_t line) {
    const auto [code, said] = thrown([&] { d.make_iterator().next(); });
    EXPECT_EQ(code, Code::aborted);
    EXPECT_EQ(said,
              "mine\n  in the callable of " + name + ", a stage made at " + __FILE__ + ":" + std::to_string(line));
  };
  expect_stage(range(2).map(fail), "map", __LINE__);
  expect_stage(stream(2).map(fail), "map", __LINE__);
  expect_stage(stream(2).map(fail, 2), "map", __LINE__);
  expect_stage(range(2).map(fail, 2).prefetch(1), "map", __LINE__);
  expect_stage(range(4).map(fail).batch(2), "map", __LINE__);
  expect_stage(stream(4).map(fail).batch(2, {.num_parallel_calls = 2}), "map", __LINE__);
  expect_stage(range(2).filter(fail), "filter", __LINE__);
  expect_stage(range(2).take_while(fail), "take_while", __LINE__);
  const auto expand = [](Tensor) -> Dataset<Tensor> { throw Error(Code::aborted, "mine"); };
  expect_stage(range(2).flat_map(expand), "flat_map", __LINE__);
  expect_stage(range(2).interleave(expand), "interleave", __LINE__);
  const auto add = [](Tensor, Tensor) -> std::tuple<Tensor, Tensor> { throw Error(Code::aborted, "mine"); };
  expect_stage(range(2).scan(0, add), "scan", __LINE__);
  expect_stage(range(2).rejection_resample(fail, {1.0}), "rejection_resample", __LINE__);
  const auto group = [](int64_t, const Dataset<Tensor>& d) { return d.batch(2); };
  expect_stage(range(2).group_by_window(fail, group, 2), "group_by_window", __LINE__);
  const auto pass = [](Tensor x) { return x; };
  const auto no_group = [](int64_t, const Dataset<Tensor>&) -> Dataset<Tensor> { throw Error(Code::aborted, "mine"); };
  expect_stage(range(2).group_by_window(pass, no_group, 2), "group_by_window", __LINE__);
  const auto generated =
      from_generator([] { return []() -> std::optional<Tensor> { throw Error(Code::aborted, "mine"); }; });
  EXPECT_THAT(thrown([&] { generated.make_iterator().next(); }).second,
              ::testing::StartsWith("mine\n  in the callable of from_generator, a stage made at "));
}

TEST(Usage, AnOpInACallableNamesItsLineAndTheStage) {
  const auto two_by_two = [](Tensor x) { return reshape(x, {2, 2}); };
  const uint32_t op_line = __LINE__ - 1;
  const auto d = range(2).map(two_by_two);
  const std::string stage = "a stage made at " + std::string(__FILE__) + ":" + std::to_string(__LINE__ - 1);
  expect_named([&] { d.batch(2).make_iterator().next(); }, op_line, "[Reshape]");
  EXPECT_THAT(thrown([&] { d.make_iterator().next(); }).second, ::testing::EndsWith(stage));
}

TEST(Usage, TensorsThatReferToNothingAreErrors) {
  const auto nothing = [](Tensor) { return Tensor(); };
  const auto indexed = range(2).map(nothing);
  const uint32_t line = __LINE__ - 1;
  expect_named([&] { indexed.make_iterator().next(); }, line,
               "[map] the callable gave a Tensor that refers to nothing");
  expect_named([&] { indexed.batch(2).make_iterator().next(); }, line, "refers to nothing");
  EXPECT_EQ(str(indexed.element_spec()), "?");
  const auto parallel = stream(2).map([](Tensor x) { return std::tuple{x, Tensor()}; }, 2);
  const uint32_t parallel_line = __LINE__ - 1;
  expect_named([&] { parallel.make_iterator().next(); }, parallel_line, "refers to nothing at [1]");
  const auto sums = range(3).scan(Tensor(int64_t{0}), [](Tensor sum, Tensor x) {
    Tensor next = sum + x;
    Tensor element = x.item<int64_t>() == 1 ? Tensor() : next;
    return std::tuple{next, element};
  });
  auto it = sums.make_iterator();
  EXPECT_EQ(it.next()->item<int64_t>(), 0);
  expect_error([&] { it.next(); }, Code::invalid_argument, "[scan] the callable gave a Tensor that refers to nothing");
  EXPECT_EQ(it.next()->item<int64_t>(), 2);  // the state is that of before
  const auto generated = from_generator([] { return []() -> std::optional<Tensor> { return Tensor(); }; });
  expect_error([&] { generated.make_iterator().next(); }, Code::invalid_argument, "[from_generator]");
}

// The tensors one after the other.
auto generated(std::vector<Tensor> all, ElementSpec spec = unknown_spec(nullptr)) {
  return from_generator(
      [all] {
        return [all, i = size_t{0}]() mutable -> std::optional<Tensor> {
          if (i == all.size()) return std::nullopt;
          return all[i++];
        };
      },
      std::move(spec));
}

TEST(Usage, GeneratorsKeepToWhatTheySaid) {
  const auto free = generated({Tensor{1.f}, Tensor{1.f, 2.f}, Tensor(1), Tensor{3.f}});
  auto it = free.make_iterator();
  it.next();
  EXPECT_EQ(it.next()->dim(0), 2);  // nobody said anything of shapes
  expect_error([&] { it.next(); }, Code::invalid_argument,
               "[from_generator] element 2 is int32[], where the spec or the elements before it say float32<unknown>");
  auto resumed = free.make_iterator();
  resumed.restore(it.save());
  EXPECT_EQ(resumed.next()->item<float>(), 3.f);
  EXPECT_FALSE(resumed.next());
  const TensorSpec pairs{PartialShape{2}, float32, ""};
  const auto stated = generated({Tensor{1.f, 2.f}, Tensor{1.f}, Tensor{1, 2}, Tensor{3.f, 4.f}}, pairs);
  auto checked = stated.make_iterator();
  checked.next();
  expect_error([&] { checked.next(); }, Code::invalid_argument, "element 1 is float32[1]");
  expect_error([&] { checked.next(); }, Code::invalid_argument, "element 2 is int32[2]");
  EXPECT_EQ(checked.next()->to_vector<float>()[1], 4.f);
  const auto lists = from_generator([] {
    return
        [n = size_t{0}]() mutable -> std::optional<std::vector<Tensor>> { return std::vector<Tensor>(++n, Tensor(1)); };
  });
  auto growing = lists.make_iterator();
  growing.next();
  expect_error([&] { growing.next(); }, Code::invalid_argument, "element 1 is [int32[], int32[]]");
}

TEST(Usage, DatasetsThatFollowEachOtherAreOfOneKind) {
  const auto floats = from_tensors(Tensor{1.f});
  const auto ints = from_tensors(Tensor{1});
  EXPECT_LINE(floats.concatenate(ints), "[concatenate] the datasets differ at element: float32[1] and int32[1]");
  EXPECT_LINE(floats.concatenate(range(2).map([](Tensor x) { return x; })), "[concatenate]");
  const AnyDataset any = floats;
  EXPECT_LINE(any.concatenate(zip(floats, floats)), "differ in structure at element: float32[1] and (float32[1], ");
  const std::vector<Dataset<Tensor>> both{floats, ints};
  EXPECT_LINE(choose_from_datasets(both, range(2)), "[choose_from_datasets] the datasets differ");
  EXPECT_LINE(sample_from_datasets(both), "[sample_from_datasets] the datasets differ");
  EXPECT_EQ(str(floats.concatenate(from_tensors(Tensor{1.f, 2.f})).element_spec()), "float32[?]");
  EXPECT_EQ(str(stream(2).concatenate(range(2)).element_spec()), "?");
  EXPECT_EQ(str(zip(any, floats).concatenate(zip(AnyDataset(stream(2)), floats)).element_spec()), "(?, float32[1])");
}

TEST(Usage, FoldsOfWhatNeverEndsAreErrors) {
  const auto sum = [](int64_t total, Tensor x) { return total + x.item<int64_t>(); };
  EXPECT_LINE(counter().reduce(int64_t{0}, sum), "[reduce] the dataset never ends");
  EXPECT_LINE(range(3).repeat().reduce(int64_t{0}, sum), "take(n)");
  EXPECT_EQ(range(3).repeat().take(4).reduce(int64_t{0}, sum), 3);
}

TEST(Usage, BatchesOfScalarsAreNotRagged) {
  const auto scalars = range(3).ragged_batch(2);
  const uint32_t line = __LINE__ - 1;
  expect_named([&] { scalars.make_iterator().next(); }, line, "[ragged_batch] the elements are scalars (int64)");
  EXPECT_EQ(range(3).ragged_batch<Tensor>(2).make_iterator().next()->dim(0), 2);
  const auto pairs = zip(range(3), from_tensor_slices(Tensor{{1}, {2}, {3}}));
  expect_error([&] { pairs.ragged_batch(2).make_iterator().next(); }, Code::invalid_argument,
               "ragged_batch<std::tuple<RaggedTensor, Tensor>>(n)");
}

TEST(Usage, OpsOfCallablesKeepTheirLines) {
  const auto d = range(2).map([](Tensor x) { return reshape(x, {2, 2}); });
  const uint32_t op_line = __LINE__ - 1;
  expect_named([&] { d.batch(2).make_iterator().next(); }, op_line, "[Reshape]");
}

TEST(Usage, AdviceForABatchFitsTheElements) {
  const auto mixed = [](Tensor a, Tensor b) {
    const auto either = [a, b](Tensor i) { return std::vector<Tensor>{i.item<int64_t>() == 0 ? a : b}; };
    return range(2).map(either).batch(2);
  };
  const auto message = [](const auto& dataset) -> std::string {
    try {
      dataset.make_iterator().next();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  using ::testing::Not;
  EXPECT_THAT(message(mixed(Tensor{1.f}, Tensor{1})),
              AllOf(HasSubstr("is int32[1] at [0], the ones before it are float32[1]"), HasSubstr("cast()"),
                    Not(HasSubstr("padded_batch"))));
  EXPECT_THAT(message(mixed(Tensor{1.f}, Tensor{{1.f}})), AllOf(HasSubstr("reshape()"), Not(HasSubstr("padded"))));
  EXPECT_THAT(message(mixed(Tensor{1.f}, Tensor{1.f, 2.f})), HasSubstr("padded_batch"));
  const auto ragged = [](Tensor a, Tensor b) {
    return range(2).map([a, b](Tensor i) { return i.item<int64_t>() == 0 ? a : b; });
  };
  EXPECT_THAT(message(ragged(Tensor{1.f}, Tensor{1}).padded_batch(2)), HasSubstr("one dtype"));
  EXPECT_THAT(message(ragged(Tensor{1.f}, Tensor{1}).ragged_batch(2)), HasSubstr("one dtype"));
}

TEST(Usage, FiltersTakeBools) {
  EXPECT_EQ(ints(range(4).filter([](Tensor x) { return x > 1; })), (Ints{2, 3}));
  EXPECT_EQ(ints(range(4).filter([](Tensor x) { return x.item<int64_t>() > 1; })), (Ints{2, 3}));
  static_assert(!detail::decides<int> && !detail::decides<double>);
  static_assert(detail::decides<bool> && detail::decides<Tensor>);
  expect_error([] { ints(range(2).filter([](Tensor x) { return x; })); }, Code::invalid_argument,
               "[filter] the callable gave int64[], not a bool");
  expect_error([] { ints(range(2).take_while([](Tensor x) { return reshape(x > 1, {1}); })); }, Code::invalid_argument,
               "[take_while] the callable gave bool[1], not a bool");
  expect_error([] { AnyDataset(range(2)).filter([](const Nest& n) { return n.leaf(); }).make_iterator().next(); },
               Code::invalid_argument, "[filter] the callable gave int64[]");
}

TEST(Usage, MissingFoldersAreErrors) {
  const test::TempDir folder;
  const auto cached = range(3).cache(folder.file("none/cache"));
  const uint32_t line = __LINE__ - 1;
  expect_named([&] { ints(cached); }, line, "none does not exist");
  EXPECT_FALSE(Env::posix().exists(folder.file("none")));
  expect_error([&] { io::TFRecordWriter(folder.file("none/a.tfrecord")); }, Code::not_found, "none/a.tfrecord");
  expect_error([&] { io::TFRecordWriter(folder.file("none/a.tfrecord"), {.atomic = true}); }, Code::not_found, "none/");
  EXPECT_FALSE(Env::posix().exists(folder.file("none")));
  EXPECT_EQ(ints(range(3).snapshot(folder.file("made/here"))), iota(3));  // makes its folder, as TensorFlow's does
}

TEST(Usage, ADatasetMayBeAssignedLater) {
  Dataset<Tensor> none;
  AnyDataset nothing;
  EXPECT_LINE(none.batch(2), "default-constructed");
  EXPECT_LINE(none.map([](Tensor t) { return t; }), "default-constructed");
  EXPECT_LINE(none.cardinality(), "default-constructed");
  EXPECT_LINE(none.make_iterator(), "default-constructed");
  EXPECT_LINE(for (const Tensor& t : none) print(t), "default-constructed");
  EXPECT_LINE(for (const Nest& n : nothing) print(n.leaf()), "default-constructed");
  expect_error([&] { nothing = none; }, Code::failed_precondition, "default-constructed");
  EXPECT_LINE(zip(range(2), none), "default-constructed");
  EXPECT_LINE(TFRecordDataset{none}, "default-constructed");
  none = range(3);
  nothing = none;
  EXPECT_EQ(ints(none), iota(3));
  EXPECT_EQ(nothing.cardinality(), 3);
}

TEST(Usage, ZipTakesDatasetsBracesAndTuples) {
  const auto a = range(3);
  const auto b = range(10, 20);
  const auto sums = [](const Dataset<Tensor, Tensor>& d) {
    Ints all;
    for (auto [x, y] : d) all.push_back((x + y).item<int64_t>());
    return all;
  };
  EXPECT_EQ(sums(zip(a, b)), (Ints{10, 12, 14}));
  EXPECT_EQ(sums(zip({a, b})), (Ints{10, 12, 14}));
  EXPECT_EQ(sums(zip(std::tuple{a, b})), (Ints{10, 12, 14}));
  EXPECT_EQ(sums(zip(std::vector<AnyDataset>{a, b}).as<Tensor, Tensor>()), (Ints{10, 12, 14}));
  const auto nested = zip(a, zip({a, b}));
  static_assert(std::same_as<decltype(nested), const Dataset<Tensor, std::tuple<Tensor, Tensor>>>);
  const AnyDataset mixed = zip({AnyDataset(a), AnyDataset(zip(a, b))}).map([](const Nest& n) { return n; });
  EXPECT_EQ(str(mixed.element_spec()), "(int64[], (int64[], int64[]))");
  EXPECT_EQ(zip(a, b, a, b, a).cardinality(), 3);
}

TEST(Usage, AnyDatasetsAreRangesToo) {
  const AnyDataset any = from_tensor_slices(std::map<std::string, Tensor>{{"a", Tensor{1, 2}}, {"b", Tensor{3, 4}}});
  Ints all;
  for (const Nest& element : any) all.push_back((element["a"].leaf() * element["b"].leaf()).item<int32_t>());
  EXPECT_EQ(all, (Ints{3, 8}));
  const auto total = function([&](Tensor sum) {
    for (const Nest& element : any) sum = sum + element["a"].leaf();
    return sum;
  });
  EXPECT_EQ(total(Tensor(1)).item<int32_t>(), 4);
  EXPECT_EQ(any.as<Nest>().window(2).cardinality(), 1);
}

TEST(Usage, StatesMayBeginAsNumbers) {
  EXPECT_EQ(range(5).reduce(int64_t{0}, [](Tensor sum, Tensor x) { return sum + x; }).item<int64_t>(), 10);
  EXPECT_EQ(range(5).reduce(0, [](int sum, Tensor x) { return sum + static_cast<int>(x.item<int64_t>()); }), 10);
  const auto sums = range(4).scan(int64_t{0}, [](Tensor sum, Tensor x) { return std::tuple{sum + x, sum + x}; });
  EXPECT_EQ(ints(sums), (Ints{0, 1, 3, 6}));
}

TEST(Usage, SlicesTakeBraces) {
  const auto d = from_tensor_slices({{1, 2}, {3, 4}}, {0, 1});
  static_assert(std::same_as<decltype(d), const Dataset<Tensor, Tensor>>);
  EXPECT_EQ(str(d.element_spec()), "(int32[2], int32[])");
  const auto named = from_tensor_slices(Tensor{1, 2}, {"cat", "dog"});  // no place in a program
  EXPECT_EQ(str(named.element_spec()), "(int32[], string[])");
}

TEST(Usage, SpecsAndElementsCanBePrinted) {
  std::ostringstream out;
  out << from_tensor_slices(std::map<std::string, Tensor>{{"a", Tensor{1.f}}}, Tensor{"x"}).element_spec();
  EXPECT_EQ(out.str(), "({'a': float32[]}, string[])");
  std::ostringstream element;
  element << Nest(std::tuple{Tensor(1), Tensor{2, 3}});
  EXPECT_THAT(element.str(), ::testing::StartsWith("("));
  EXPECT_THAT(element.str(), ::testing::HasSubstr(", "));
}

class Tables : public ::testing::Test {
 protected:
  std::string table(const std::string& name, const std::string& text) {
    io::write_file(folder_.file(name), text);
    return folder_.file(name);
  }
  test::TempDir folder_;
};

TEST_F(Tables, ColumnsTakeDtypesAndDefaults) {
  const std::string path = table("a.csv", "x,y,z\n1,2.5,a\n2,,\n");
  std::vector<std::string> words;
  Ints numbers;
  for (const std::vector<Tensor>& row : experimental::CsvDataset(path, {int64, 7.f, "none"}, {.header = true})) {
    numbers.push_back(row[0].item<int64_t>());
    words.push_back(row[2].item<std::string>());
  }
  EXPECT_THAT(numbers, ElementsAre(1, 2));
  EXPECT_THAT(words, ElementsAre("a", "none"));
  const experimental::CsvDataset strict(path, {int32, float32, DType::string}, {.header = true});
  auto it = strict.make_iterator();
  it.next();
  expect_error([&] { it.next(); }, Code::invalid_argument, "field 1");
}

TEST_F(Tables, ARowKnowsHowManyFieldsItHas) {
  const std::string path = table("a.csv", "1,2.5\n");
  const auto rows = csv(path, {int32, 0.f});
  for (const auto& row : rows) {
    EXPECT_EQ(row.size(), 2u);
    EXPECT_EQ(row[1].item<float>(), 2.5f);
    expect_error([&] { row[2]; }, Code::out_of_range, "[csv] there is no field 2: a row has 2");
  }
  const auto beyond = rows.map([](CsvFields row) { return row[5]; });
  const uint32_t line = __LINE__ - 1;
  expect_named([&] { beyond.make_iterator().next(); }, line, "no field 5");
  const auto total = rows.map([](const std::vector<Tensor>& row) { return cast(row[0], float32) + row[1]; });
  EXPECT_EQ(total.make_iterator().next()->item<float>(), 3.5f);
  EXPECT_EQ((*rows.batch(2).make_iterator().next())[1].shape(), (Shape{1}));
  const auto doubled = function([](CsvFields row) { return row[1] * 2; });
  EXPECT_EQ(rows.map(doubled).make_iterator().next()->item<float>(), 5.f);
  const Dataset<std::vector<Tensor>> plain = rows;
  EXPECT_EQ(plain.make_iterator().next()->at(1).item<float>(), 2.5f);
  static_assert(!std::is_convertible_v<Dataset<Tensor>, Dataset<std::vector<Tensor>>>);
}

TEST_F(Tables, NamesAndDtypesAreFound) {
  table("1.csv", "id,big,share,word,empty\n1,1,1,1,\n2,5000000000,0.5,x,\n");
  table("2.csv", "id,big,share,word,empty\n3,2,1e300,\"a,b\",\n");
  const auto d = experimental::make_csv_dataset(folder_.file("*.csv"), 2, {.num_epochs = 1, .shuffle = false});
  std::vector<experimental::CsvBatch> batches;
  for (const auto& batch : d) batches.push_back(batch);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].at("id").dtype(), DType::int32);
  EXPECT_EQ(batches[0].at("big").dtype(), DType::int64);
  EXPECT_EQ(batches[0].at("share").dtype(), DType::float64);
  EXPECT_EQ(batches[0].at("empty").dtype(), DType::string);
  EXPECT_THAT(batches[0].at("big").to_vector<int64_t>(), ElementsAre(1, 5000000000));
  EXPECT_THAT(batches[1].at("word").to_vector<std::string>(), ElementsAre("a,b"));
}

TEST_F(Tables, ALabelIsTakenOut) {
  const std::string path = table("a.csv", "a,b,y\n1,2,0\n3,4,1\n5,6,1\n");
  const auto d = experimental::make_csv_dataset(path, 2, "y", {.select_columns = {"y", "b"}, .shuffle = false});
  EXPECT_LT(d.cardinality(), 0);
  auto it = d.make_iterator();
  auto [features, label] = *it.next();
  EXPECT_EQ(features.size(), 1u);
  EXPECT_THAT(features.at("b").to_vector<int32_t>(), ElementsAre(2, 4));
  EXPECT_THAT(label.to_vector<int32_t>(), ElementsAre(0, 1));
  EXPECT_THAT(std::get<1>(*it.next()).to_vector<int32_t>(), ElementsAre(1, 0));  // goes on at the beginning
  Ints all;
  for (auto [x, y] : experimental::make_csv_dataset(path, 1, "y", {.num_epochs = 2, .shuffle_seed = 3})) {
    all.push_back(x.at("a").item<int32_t>());
  }
  EXPECT_THAT(all, ::testing::UnorderedElementsAre(1, 1, 3, 3, 5, 5));
}

TEST_F(Tables, MistakesNameTheLine) {
  namespace e = experimental;
  const std::string path = table("a.csv", "a,b\n1,2\n");
  EXPECT_LINE(e::make_csv_dataset(folder_.file("none*"), 2), "no file fits");
  EXPECT_LINE(e::make_csv_dataset(path, 2, "c"), "the label 'c' is no column; they are a, b");
  EXPECT_LINE(e::make_csv_dataset(path, 2, {.select_columns = {"c"}}), "select_columns has 'c'");
  EXPECT_LINE(e::make_csv_dataset(path, 2, {.header = false}), "column_names");
  EXPECT_LINE(e::make_csv_dataset(path, 2, {.column_defaults = {Tensor(0)}}), "1 column_defaults for 2 columns");
  EXPECT_LINE(e::make_csv_dataset(path, 0), "batch size is 0");
  EXPECT_LINE(e::make_csv_dataset(table("b.csv", "a,a\n1,2\n"), 2), "two columns have one name");
}

TEST(Usage, AnIteratorThatWasMovedFromSaysSo) {
  const auto refused = [](const auto& use) {
    expect_error(use, Code::failed_precondition, "this Iterator was moved from");
  };
  auto it = range(4).make_iterator();
  auto other = std::move(it);
  refused([&] { it.next(); });  // NOLINT(bugprone-use-after-move): the point
  refused([&] { it.save(); });
  refused([&] { it.restore(""); });
  refused([&] { it.explain(); });
  refused([&] { it.handle(); });
  EXPECT_LINE(it.get_next(), "this Iterator was moved from");
  EXPECT_EQ(rest(other), iota(4));
  AnyIterator any = AnyDataset(range(4)).make_iterator();
  const AnyIterator second = std::move(any);
  refused([&] { any.next(); });  // NOLINT(bugprone-use-after-move): the point
  refused([&] { any.pipeline(); });
  Item item;
  EXPECT_LINE(any.get_next(item), "this Iterator was moved from");
}

TEST(Usage, DatasetsInsideOneAnotherWithoutEndAreAnError) {
  const std::string text = "the datasets inside one another have used up the stack";
  std::function<Dataset<Tensor>()> expands = [&] {
    return range(2).flat_map([&](const Tensor&) { return expands(); });
  };
  std::function<Dataset<Tensor>()> reads = [&] {
    return from_generator([&] { return [&]() -> std::optional<Tensor> { return reads().make_iterator().next(); }; });
  };
  test::on_small_stack([&] {
    for (const auto& make : {expands, reads}) {
      expect_error([&] { make().make_iterator().next(); }, Code::resource_exhausted, text);
    }
  });
}

// As deep as the program says, on a stack that has no room for it.
TEST(Usage, IteratorsThatHoldOneAnotherEnd) {
  test::on_small_stack([] {
    auto kept = std::make_shared<Iterator<Tensor>>(range(1).make_iterator());
    const std::weak_ptr<Iterator<Tensor>> innermost = kept;
    for (int i = 0; i < 10000; ++i) {
      auto it =
          from_generator([kept] { return [kept]() -> std::optional<Tensor> { return Tensor(1); }; }).make_iterator();
      it.next();
      kept = std::make_shared<Iterator<Tensor>>(std::move(it));
    }
    EXPECT_FALSE(innermost.expired());
    kept.reset();
    EXPECT_TRUE(innermost.expired());
  });
}

TEST(Usage, AnIteratorThatIsReadInsideItsOwnPipelineIsAnError) {
  const std::string text = "the iterator is read inside its own pipeline";
  for (const int parallel : {0, 2}) {
    std::optional<Iterator<Tensor>> it;
    const auto restart = [&](const Tensor& x) {
      if (x.item<int64_t>() == 2) it->next();
      return x;
    };
    it.emplace(range(4).map(restart, parallel).make_iterator());
    Ints got;
    got.push_back(it->next()->item<int64_t>());
    got.push_back(it->next()->item<int64_t>());
    expect_error([&] { it->next(); }, Code::failed_precondition, text);
    got.push_back(it->next()->item<int64_t>());  // usable as before
    EXPECT_THAT(got, ElementsAre(0, 1, 3));
  }
  std::optional<Iterator<Tensor>> it;
  std::string state;
  it.emplace(range(4)
                 .map([&](const Tensor& x) {
                   if (x.item<int64_t>() == 1) it->restore(state);
                   return x;
                 })
                 .make_iterator());
  state = it->save();
  it->next();
  expect_error([&] { it->next(); }, Code::failed_precondition, text);
}

TEST(Usage, AnIteratorMayBeDroppedInsideItsOwnPipeline) {
  std::optional<Iterator<Tensor>> it;
  it.emplace(range(10)
                 .map([&](const Tensor& x) {
                   if (x.item<int64_t>() == 2) it.reset();
                   return x;
                 })
                 .make_iterator());
  Ints got;
  while (it) got.push_back(it->next()->item<int64_t>());
  EXPECT_THAT(got, ElementsAre(0, 1, 2));
}

TEST(Usage, NumbersAsLargeAsThereAreDoNotOverflow) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  for (const Dataset<Tensor>& d : {range(10), stream(10)}) {
    EXPECT_EQ(ints(d.repeat(most).take(20)).size(), 20u);
    int batches = 0;
    for (const Tensor& t : d.batch(most)) {
      EXPECT_EQ(t.to_vector<int64_t>(), iota(10));
      ++batches;
    }
    EXPECT_EQ(batches, 1);
    EXPECT_EQ(ints(d.shard(most, 3)), Ints{3});
    EXPECT_EQ(ints(d.skip(most)), Ints{});
  }
  EXPECT_EQ(range(10).repeat(most).cardinality(), INFINITE_CARDINALITY);
  EXPECT_EQ(range(10).repeat(0).cardinality(), 0);
  EXPECT_EQ(range(0).repeat(most).cardinality(), 0);
  EXPECT_EQ(range(1).repeat(5).cardinality(), 5);
  EXPECT_EQ(range(10).batch(most).cardinality(), 1);
  EXPECT_EQ(range(10).batch(most, true).cardinality(), 0);
  EXPECT_EQ(range(10).padded_batch(most).cardinality(), 1);
  EXPECT_EQ(range(10).window(3, {.shift = most}).cardinality(), 1);
  EXPECT_EQ(ints(counter().concatenate(counter()).take(3)), iota(3));
  Ints sizes;
  for (const Tensor& t : stream(10).batch(most, {.num_parallel_calls = 2})) sizes.push_back(t.shape()[0]);
  EXPECT_EQ(sizes, Ints{10});
}

TEST(Usage, AForOverAnEndlessDatasetInAFunctionIsAnError) {
  const auto endless = range(2).repeat();
  const auto sum = function([&](Tensor s) {
    for (const Tensor& x : endless) s = s + x;
    return s;
  });
  expect_error([&] { sum(Tensor(int64_t{0})); }, Code::invalid_argument, "[for] the dataset never ends");
  expect_error([&] { sum(Tensor(int64_t{0})); }, Code::invalid_argument, "usage_test.cpp:");
  const auto some = function([&](Tensor s) {
    for (const Tensor& x : endless.take(5)) s = s + x;
    return s;
  });
  EXPECT_EQ(some(Tensor(int64_t{0})).item<int64_t>(), 2);
}

}  // namespace
}  // namespace runnel::data
