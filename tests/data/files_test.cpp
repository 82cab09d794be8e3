#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "runnel/io/gzip.h"
#include "runnel/io/record_writer.h"
#include "tests/data/helpers.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"

namespace runnel::data {
namespace {

using Texts = std::vector<std::string>;

Texts texts(const Dataset<Tensor>& d) {
  Texts all;
  for (const Tensor& t : d) {
    for (const std::string& s : t.to_vector<std::string>()) all.push_back(s);
  }
  return all;
}

class Files : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return join_path(dir_.path(), name); }
  std::string write(const std::string& name, const std::string& text) const {
    Env::posix().write_file(path(name), as_bytes(text));
    return path(name);
  }
  std::string write_records(const std::string& name, int from, int to,
                            io::Compression compression = io::Compression::none) const {
    io::TFRecordWriter w(path(name), {.compression = compression});
    for (int k = from; k < to; ++k) w.write("record " + std::to_string(k));
    w.close();
    return path(name);
  }
  test::TempDir dir_;
};

// Stops after every element in turn and goes on with another iterator.
void expect_restorable(const Dataset<Tensor>& d) {
  const Texts whole = texts(d);
  for (size_t stop = 0; stop <= whole.size(); ++stop) {
    auto it = d.make_iterator();
    for (size_t k = 0; k < stop; ++k) ASSERT_EQ(it.next()->item<std::string>(), whole[k]);
    auto resumed = d.make_iterator();
    resumed.restore(it.save());
    for (size_t k = stop; k < whole.size(); ++k) ASSERT_EQ(resumed.next()->item<std::string>(), whole[k]);
    ASSERT_FALSE(resumed.next());
  }
}

TEST_F(Files, LinesOfText) {
  const std::string a = write("a.txt", "one\ntwo\r\n\nfour"), b = write("b.txt", "five\n"), empty = write("empty", "");
  const Texts expected{"one", "two", "", "four", "five"};
  EXPECT_EQ(texts(TextLineDataset({a, empty, b})), expected);
  EXPECT_EQ(texts(TextLineDataset(a)), (Texts{"one", "two", "", "four"}));
  EXPECT_EQ(texts(TextLineDataset(from_tensor_slices(Tensor{a, b}))), expected);
  EXPECT_EQ(texts(TextLineDataset({a, b}, {.num_parallel_reads = 2})), (Texts{"one", "five", "two", "", "four"}));
  EXPECT_EQ(texts(TextLineDataset({a, b}).batch(2)), expected);
  expect_restorable(TextLineDataset({a, empty, b}));
  expect_restorable(TextLineDataset({a, b}, {.num_parallel_reads = 2}));
}

TEST_F(Files, LinesOfCompressedText) {
  std::string text;
  Texts expected;
  for (int k = 0; k < 3000; ++k) {
    expected.push_back(std::string(static_cast<size_t>(k % 300), 'x') + std::to_string(k));
    text += expected.back() + "\n";
  }
  const std::vector<std::byte> packed = io::gzip(as_bytes(text));
  Env::posix().write_file(path("a.gz"), packed);
  const TextLineDataset d(path("a.gz"), {.compression_type = "GZIP", .buffer_size = 1000});
  EXPECT_EQ(texts(d), expected);
  auto it = d.make_iterator();
  for (int k = 0; k < 1234; ++k) it.next();
  auto resumed = d.make_iterator();
  resumed.restore(it.save());
  EXPECT_EQ(resumed.next()->item<std::string>(), expected[1234]);
  expect_error([&] { TextLineDataset(path("a.gz"), {.compression_type = "LZ4"}); }, Code::invalid_argument, "LZ4");
}

TEST_F(Files, Csv) {
  const std::string a = write("a.csv", "id,name,score\n1,one,0.5\n2,\"two, or\n2\",\n\n"),
                    b = write("b.csv", "h\r\n3,,1.5\r\n");
  const auto d = csv({a, b}, {Tensor(int64_t{0}), Tensor("none"), Tensor(-1.f)}, {.header = true});
  std::vector<std::string> rows;
  for (const std::vector<Tensor>& row : d) {
    ASSERT_EQ(row.size(), 3u);
    rows.push_back(std::to_string(row[0].item<int64_t>()) + "|" + row[1].item<std::string>() + "|" +
                   std::to_string(row[2].item<float>()).substr(0, 4));
  }
  EXPECT_EQ(rows, (Texts{"1|one|0.50", "2|two, or\n2|-1.0", "3|none|1.50"}));
  auto it = d.make_iterator();
  it.next();
  auto resumed = d.make_iterator();
  resumed.restore(it.save());
  EXPECT_EQ((*resumed.next())[0].item<int64_t>(), 2);
  for (const auto& row : csv(a, {Tensor(0.f)}, {.header = true, .select_cols = {2}}).take(1))
    EXPECT_EQ(row[0].item<float>(), 0.5f);
}

TEST_F(Files, ListFiles) {
  write("x1.txt", "");
  write("x2.txt", "");
  write("y1.txt", "");
  EXPECT_EQ(texts(list_files(path("x*.txt"), false)), (Texts{path("x1.txt"), path("x2.txt")}));
  Texts any = texts(list_files({path("y*"), path("x?.txt")}, true, 3));
  EXPECT_EQ(any, texts(list_files({path("y*"), path("x?.txt")}, true, 3)));
  std::sort(any.begin(), any.end());
  EXPECT_EQ(any, (Texts{path("x1.txt"), path("x2.txt"), path("y1.txt")}));
  expect_error([&] { list_files(path("z*")); }, Code::not_found, "no file fits");
}

TEST_F(Files, RecordsOfAFixedLength) {
  const std::string a = write("a.bin", "HHaabbccF"), b = write("b.bin", "HHddF");
  const FixedLengthOptions options{.record_bytes = 2, .header_bytes = 2, .footer_bytes = 1};
  EXPECT_EQ(texts(FixedLengthRecordDataset({a, b}, options)), (Texts{"aa", "bb", "cc", "dd"}));
  expect_restorable(FixedLengthRecordDataset({a, b}, options));
  const std::string cut = write("cut.bin", "HHaabF");
  auto it = FixedLengthRecordDataset({cut, b}, options).make_iterator();
  EXPECT_EQ(it.next()->item<std::string>(), "aa");
  expect_error([&] { it.next(); }, Code::data_loss, "cut.bin: byte 4, record 1: 1 bytes are left");
  EXPECT_EQ(it.next()->item<std::string>(), "dd");
  expect_error([&] { FixedLengthRecordDataset(a, {}); }, Code::invalid_argument, "record_bytes 0");
}

TEST_F(Files, TFRecords) {
  const std::string a = write_records("a", 0, 5), b = write_records("b", 5, 8);
  Texts expected;
  for (int k = 0; k < 8; ++k) expected.push_back("record " + std::to_string(k));
  EXPECT_EQ(texts(TFRecordDataset({a, b})), expected);
  EXPECT_EQ(texts(TFRecordDataset({a, b}).batch(3)), expected);
  EXPECT_EQ(texts(TFRecordDataset({a, b}, {.num_parallel_reads = 2}))[1], "record 5");
  expect_restorable(TFRecordDataset({a, b}));
  expect_restorable(TFRecordDataset({a, b}, {.num_parallel_reads = AUTOTUNE}));
  for (const char* kind : {"GZIP", "ZLIB"}) {
    const std::string c = write_records(kind, 0, 8, io::compression_from_name(kind));
    EXPECT_EQ(texts(TFRecordDataset(c, {.compression_type = kind})), expected);
    expect_restorable(TFRecordDataset(c, {.compression_type = kind}));
  }
}

TEST_F(Files, DamageComesInItsPlace) {
  const std::string a = write_records("a", 0, 5), b = write_records("b", 5, 8);
  std::string bytes = test::read_bytes(a);
  bytes[2 * 24 + 13] ^= 1;  // in the data of record 2: each takes 12 + 8 + 4 bytes
  write("a", bytes);
  auto it = TFRecordDataset({a, b}).make_iterator();
  EXPECT_EQ(it.next()->item<std::string>(), "record 0");
  EXPECT_EQ(it.next()->item<std::string>(), "record 1");
  expect_error([&] { it.next(); }, Code::data_loss, "/a");
  EXPECT_EQ(it.next()->item<std::string>(), "record 3");
  const auto count = std::make_shared<std::atomic<int64_t>>(0);
  EXPECT_EQ(texts(TFRecordDataset({a, b}).prefetch(2).ignore_errors(count)).size(), 7u);
  EXPECT_EQ(*count, 1);
  EXPECT_EQ(texts(TFRecordDataset({path("missing"), b}).ignore_errors(count)).size(), 3u);
  EXPECT_EQ(*count, 2);
  auto batches = TFRecordDataset(a).batch(4).make_iterator();
  EXPECT_EQ(batches.next()->dim(0), 2);
  expect_error([&] { batches.next(); }, Code::data_loss, "/a");
}

TEST_F(Files, CacheInAFile) {
  Env::posix().create_dirs(path("cache"));
  const std::string file = path("cache/elements");
  std::atomic<int> calls{0};
  const auto make = [&] {
    return range(6)
        .map([&](Tensor x) {
          ++calls;
          return std::map<std::string, Tensor>{{"x", x}, {"name", Tensor("n" + std::to_string(x.item<int64_t>()))}};
        })
        .cache(file);
  };
  const auto first = make();
  {
    auto it = first.make_iterator();
    for (int k = 0; k < 3; ++k) it.next();
  }
  EXPECT_FALSE(Env::posix().exists(file)) << "a pass that was left makes no cache";
  EXPECT_EQ(Env::posix().list(path("cache")).size(), 0u) << "and leaves nothing behind";
  calls = 0;
  for (const auto& d : {first, make(), make()}) {
    int64_t k = 0;
    for (auto e : d) {
      EXPECT_EQ(e.at("x").item<int64_t>(), k);
      EXPECT_EQ(e.at("name").item<std::string>(), "n" + std::to_string(k++));
    }
    EXPECT_EQ(k, 6);
  }
  EXPECT_EQ(calls, 6) << "computed once, read twice";
  auto it = make().make_iterator();
  it.next();
  it.next();
  auto resumed = make().make_iterator();
  resumed.restore(it.save());
  EXPECT_EQ(resumed.next()->at("x").item<int64_t>(), 2);
}

TEST_F(Files, Snapshot) {
  std::atomic<int> calls{0};
  const auto make = [&](int64_t n) {
    return range(n).map([&](Tensor x) { return ++calls, x; }).batch(2).snapshot(path("snap"));
  };
  EXPECT_EQ(ints(make(4)), iota(4));
  EXPECT_EQ(ints(make(4)), iota(4));
  EXPECT_EQ(calls, 4);
}

TEST_F(Files, CacheInMemory) {
  std::atomic<int> calls{0};
  const auto d = stream(5).map([&](Tensor x) { return ++calls, x; }).shuffle(5).cache();
  const Ints first = ints(d);
  EXPECT_EQ(ints(d), first);
  EXPECT_EQ(ints(d.repeat(3)).size(), 15u);
  EXPECT_EQ(calls, 5);
}

TEST(Fixtures, RecordsThatTensorFlowWrote) {
  RUNNEL_REQUIRE_FIXTURES();
  std::ifstream table(test::fixtures() / "EXPECTED_tfrecord.tsv");
  std::string line;
  int files = 0;
  std::getline(table, line);
  while (std::getline(table, line) && files < 20) {
    std::istringstream fields(line);
    std::string name, kind, records;
    std::getline(fields, name, '\t');
    std::getline(fields, kind, '\t');
    std::getline(fields, records, '\t');
    const auto path = test::fixtures() / name;
    if (!std::filesystem::exists(path) || records.empty() || !std::isdigit(static_cast<unsigned char>(records[0])))
      continue;
    kind = kind == "none" ? "" : kind.substr(0, 4);
    int64_t n = 0;
    for (const Tensor& t : TFRecordDataset(path.string(), {.compression_type = kind}).batch(64)) n += t.dim(0);
    EXPECT_EQ(n, std::stoll(records)) << name;
    ++files;
  }
  EXPECT_GT(files, 3);
}

// What an iterator throws first, and how many elements came before it.
std::pair<int, std::string> first_error(const Dataset<Tensor>& d) {
  int before = 0;
  try {
    for ([[maybe_unused]] const Tensor& t : d) ++before;
  } catch (const Error& e) {
    return {before, e.what()};
  }
  return {before, ""};
}

TEST_F(Files, AnImageThatDoesNotDecodeIsNamedByItsFile) {
  const Tensor pixels = zeros({2, 2, 3}, DType::uint8);
  const std::string good = image::encode_png(pixels).item<std::string>();
  const Tensor paths{write("a.png", good), write("b.jpg", "no picture"), write("c.png", good.substr(0, 40)),
                     write("d.png", "")};
  const auto decoded = [](int parallel) {
    return [parallel](const Dataset<Tensor>& d) {
      return d.map([](Tensor p) { return image::decode_png(io::read_file(p)); }, {.num_parallel_calls = parallel});
    };
  };
  for (const int parallel : {0, 2}) {
    const auto [before, error] = first_error(decoded(parallel)(from_tensor_slices(paths)));
    EXPECT_EQ(before, 1);
    EXPECT_NE(error.find(path("b.jpg") + ": the contents (10 bytes"), std::string::npos) << error;
  }
  const auto [before, error] = first_error(decoded(0)(from_tensor_slices(paths).skip(2)));
  EXPECT_NE(error.find(path("c.png")), std::string::npos) << error;
  EXPECT_NE(error.find("byte 40"), std::string::npos) << error;
  const auto [none, empty] = first_error(decoded(0)(from_tensor_slices(paths).skip(3)));
  EXPECT_NE(empty.find(path("d.png") + ": the contents are empty"), std::string::npos) << empty;
}

TEST_F(Files, ARecordThatDoesNotFitIsNamedByFileNumberAndOffset) {
  using io::Example;
  for (const io::Compression compression : {io::Compression::none, io::Compression::gzip}) {
    io::TFRecordWriter w(path("train"), {.compression = compression});
    const std::string good = Example{{{{"x", io::Int64List{{1}}}, {"image", io::BytesList{{"no"}}}}}}.serialize();
    for (int k = 0; k < 1000; ++k) w.write(good);
    w.write(Example{{{{"y", io::Int64List{{1}}}}}}.serialize());
    w.close();
    const std::string name = compression == io::Compression::none ? "" : "GZIP";
    const size_t at = 1000 * (good.size() + io::kRecordHeader + io::kRecordFooter);
    const std::string place = path("train") + ", record 1000 at byte " + std::to_string(at);
    const io::ExampleSpec spec{{"x", io::FixedLenFeature{{}, DType::int64}}};
    const auto records = TFRecordDataset(path("train"), {.compression_type = name, .buffer_size = 2000});
    const auto [before, error] =
        first_error(records.map([&](Tensor r) { return io::parse_single_example(r, spec)["x"]; }));
    EXPECT_EQ(before, 1000);
    EXPECT_NE(error.find(place), std::string::npos) << error;
    EXPECT_NE(error.find("feature 'x'"), std::string::npos) << error;
    const auto [none, bad_image] = first_error(records.skip(7).map([](Tensor r) {
      const io::ExampleSpec image{{"image", io::FixedLenFeature{{}, DType::string}}};
      return image::decode_jpeg(io::parse_single_example(r, image)["image"]);
    }));
    EXPECT_EQ(none, 0);
    EXPECT_NE(bad_image.find(path("train") + ", record 7 at byte "), std::string::npos) << bad_image;
  }
}

// As programs for TensorFlow are written: a dataset of files, and for each the dataset that reads it.
TEST_F(Files, InterleaveAndFlatMapTakeDatasetsOfFiles) {
  write_records("part-0", 0, 2);
  write_records("part-1", 2, 4);
  const auto files = list_files(path("part-*"), false);
  const auto turns = files.interleave([](Tensor f) { return TFRecordDataset(f); }, {.cycle_length = 2});
  static_assert(std::same_as<decltype(turns), const Dataset<Tensor>>);
  EXPECT_EQ(texts(turns), (Texts{"record 0", "record 2", "record 1", "record 3"}));
  const Texts in_order{"record 0", "record 1", "record 2", "record 3"};
  EXPECT_EQ(texts(files.flat_map([](Tensor f) { return TFRecordDataset(f); })), in_order);
  EXPECT_EQ(texts(files.interleave([](Tensor f) { return TFRecordDataset(f).map([](Tensor r) { return r; }); },
                                   {.cycle_length = 1, .num_parallel_calls = 2})),
            in_order);
  EXPECT_EQ(texts(files.interleave([](Tensor f) { return TFRecordDataset(f); },
                                   {.cycle_length = 2, .num_parallel_calls = AUTOTUNE})),
            (Texts{"record 0", "record 2", "record 1", "record 3"}));
  EXPECT_EQ(texts(files.flat_map([](Tensor f) { return FixedLengthRecordDataset(f, {.record_bytes = 24}); })).size(),
            4u);
  EXPECT_EQ(texts(TFRecordDataset(Tensor::of(Texts{path("part-1"), path("part-0")}))),
            (Texts{"record 2", "record 3", "record 0", "record 1"}));
  const auto lines = from_tensor_slices(Tensor{write("l.txt", "a\nb\n")});
  EXPECT_EQ(texts(lines.flat_map([](Tensor f) { return TextLineDataset(f); })), (Texts{"a", "b"}));
  EXPECT_EQ(texts(lines.flat_map([](Tensor f) { return from_tensor_slices(stack({f, f})); })).size(), 2u);
}

TEST_F(Files, ErrorsOfCsvNameTheFileAndTheLine) {
  const std::string text = "id,score,note\n1,2,\"a\nb\"\n\n3,x,\n4,5,\n",
                    place = "/bad.csv, line 5: field 1: 'x' is no float32";
  const std::string good = write("good.csv", "id,score,note\n1,2,\n"), bad = write("bad.csv", text);
  const std::vector<Tensor> defaults{Tensor(0), Tensor(0.f), Tensor("")};
  for (const int parallel : {0, 2}) {
    auto rows = csv({good, bad}, defaults, {.header = true, .num_parallel_calls = parallel}).make_iterator();
    rows.next();
    rows.next();
    expect_error([&] { rows.next(); }, Code::invalid_argument, place);
    EXPECT_EQ((*rows.next())[0].item<int32_t>(), 4);
  }
  // The program's line too.
  auto short_rows = csv(bad, {Tensor(0)}, {.header = true}).make_iterator();
  expect_error([&] { short_rows.next(); }, Code::invalid_argument, "files_test.cpp");
  const auto decode = [&](Tensor lines) { return io::decode_csv(lines, defaults); };
  auto batches = TextLineDataset(bad).skip(4).shuffle(2).batch(2).map(decode).make_iterator();
  expect_error([&] { batches.next(); }, Code::invalid_argument, place);
}

TEST_F(Files, LinesOfCompressedTextAreCountedToo) {
  std::string text;
  for (int k = 1; k <= 1000; ++k) text += k == 777 ? "x\n" : std::to_string(k) + "\n";
  const std::string gz = path("long.gz");
  Env::posix().write_file(gz, io::gzip(as_bytes(text)));
  auto failing = csv(gz, {Tensor(0)}, {.compression_type = "GZIP", .buffer_size = 100}).skip(776).make_iterator();
  expect_error([&] { failing.next(); }, Code::invalid_argument, "long.gz, line 777: field 0");
}

}  // namespace
}  // namespace runnel::data
