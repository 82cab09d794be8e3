// TFRecord files through a pipeline: records in batches, and Examples parsed.
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

// The clock that the goal of records per second sets.
Calls clock(double records_per_second) {
  return {[=] {
    const double end = bench::seconds() + kRecords / records_per_second;
    while (bench::seconds() < end) {
    }
  }};
}

Calls parsed(const std::vector<int>& parallel) {
  auto file = std::make_shared<RecordFile>();
  const io::ExampleSpec spec{{"image_raw", io::FixedLenFeature{{}, DType::string}},
                             {"label", io::FixedLenFeature{{}, int64}}};
  // What training does with a record: its pixels as numbers.
  const auto parse = [spec](Tensor records) {
    const auto parsed = io::parse_example(records, spec);
    const Tensor pixels = cast(io::decode_raw(parsed["image_raw"], uint8), float32) / 255.f;
    const Tensor centred = pixels - reduce_mean(pixels, 1, true);
    return std::tuple{centred / sqrt(reduce_mean(centred * centred, 1, true) + 1e-6f), parsed["label"]};
  };
  Calls calls;
  for (const int p : parallel) {
    const auto d = data::TFRecordDataset(file->path).batch(bench::kBatch).map(parse, p).prefetch(data::AUTOTUNE);
    calls.emplace_back([file, d] {
      int64_t n = 0;
      for (auto [x, y] : d) n += y.dim(0);
      if (n != kRecords) std::abort();
    });
  }
  return calls;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"tfrecord_dataset", [](int) { return batches(); }},
      {"tfrecord_dataset_2m", [](int) { return clock(2e6); }},
      {"autotune_records", [](int) { return parsed({data::AUTOTUNE}); }},
      {"autotune_records_grid",
       [](int) {
         return parsed({1, 2, 3, 4});
       }},
      {"autotune_records_worst", [](int) { return parsed({1}); }},
  };
  return bench::main_of(argc, argv, cases, set_num_threads);
}
