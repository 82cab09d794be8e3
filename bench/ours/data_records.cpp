// TFRecord files through a pipeline: records in batches, and Examples of encoded images parsed.
#include <unistd.h>

#include "bench/common.h"
#include "bench/records.h"
#include "runnel/runnel.h"

namespace {

using namespace runnel;
using Calls = std::vector<std::function<void()>>;

constexpr int kRecords = 40000;

struct RecordFile {
  std::string path = "/tmp/runnel_bench_data_" + std::to_string(::getpid());
  RecordFile() {
    io::TFRecordWriter writer(path);
    for (int i = 0; i < kRecords; ++i) writer.write(bench::image_record(i));
    writer.close();
  }
  ~RecordFile() { Env::posix().remove(path); }
};

Calls batches() {
  auto file = std::make_shared<RecordFile>();
  return {[file, d = data::TFRecordDataset(file->path).batch(bench::kBatch)] {
    int64_t n = 0;
    for (const Tensor& t : d) n += t.dim(0);
    if (n != kRecords) std::abort();
  }};
}

// Read one by one, with all that can be tuned left to the library, and with nothing.
Calls single(bool tuned) {
  auto file = std::make_shared<RecordFile>();
  const auto d =
      tuned ? data::TFRecordDataset(file->path, {.num_parallel_reads = data::AUTOTUNE}).prefetch(data::AUTOTUNE)
            : data::TFRecordDataset(file->path);
  return {[file, d] {
    int64_t n = 0;
    for (const Tensor& t : d) n += t.defined() ? 1 : 0;
    if (n != kRecords) std::abort();
  }};
}

// The clock that the goal of records per second sets.
Calls clock(double records_per_second) {
  return {[=] {
    const double end = bench::seconds() + kRecords / records_per_second;
    while (bench::seconds() < end) {
    }
  }};
}

// Examples as image datasets have them: an encoded image and its label.
constexpr int kImages = 1000;
struct ImageFile {
  std::string path = "/tmp/runnel_bench_images_" + std::to_string(::getpid());
  ImageFile() {
    io::TFRecordWriter writer(path);
    for (int i = 0; i < kImages; ++i) {
      const Tensor pixels = Tensor::empty(uint8, {128, 128, 3});
      auto* p = pixels.mutable_data<uint8_t>();
      for (int y = 0; y < 128; ++y) {
        for (int x = 0; x < 384; ++x) p[y * 384 + x] = static_cast<uint8_t>(x * y / 64 + i * 7 + x * x % 13);
      }
      const io::Example example{{{{"image", io::BytesList{{image::encode_jpeg(pixels).item<std::string>()}}},
                                  {"label", io::Int64List{{i % 10}}}}}};
      writer.write(example.serialize());
    }
    writer.close();
  }
  ~ImageFile() { Env::posix().remove(path); }
};

// What training does with a record: parsed, its image decoded, resized and standardised.
Calls parsed(const std::vector<int>& parallel) {
  auto file = std::make_shared<ImageFile>();
  const io::ExampleSpec spec{{"image", io::FixedLenFeature{{}, DType::string}},
                             {"label", io::FixedLenFeature{{}, int64}}};
  const auto parse = [spec](Tensor record) {
    const auto parsed = io::parse_single_example(record, spec);
    const Tensor pixels = image::resize(image::decode_jpeg(parsed["image"], {.channels = 3}), {64, 64});
    return std::tuple{image::per_image_standardization(pixels), parsed["label"]};
  };
  Calls calls;
  for (const int p : parallel) {
    const auto d = data::TFRecordDataset(file->path).map(parse, p).batch(bench::kBatch).prefetch(data::AUTOTUNE);
    calls.emplace_back([file, d] {
      int64_t n = 0;
      for (auto [x, y] : d) n += y.dim(0);
      if (n != kImages) std::abort();
    });
  }
  return calls;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"tfrecord_dataset", [](int) { return batches(); }},
      {"tfrecord_dataset_2m", [](int) { return clock(2e6); }},
      {"autotune_reading", [](int) { return single(true); }},
      {"autotune_reading_sequential", [](int) { return single(false); }},
      {"autotune_records", [](int) { return parsed({data::AUTOTUNE}); }},
      {"autotune_records_grid",
       [](int) {
         return parsed({1, 2, 3, 4});
       }},
      {"autotune_records_grid_worst", [](int) { return parsed({1}); }},
  };
  return bench::main_of(argc, argv, cases, set_num_threads);
}
