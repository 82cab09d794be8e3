// TFRecord files and the Examples in them.
#include <unistd.h>

#include "bench/common.h"
#include "bench/records.h"
#include "runnel/runnel.h"

namespace {

using namespace runnel;
using Call = std::function<void()>;

// A file of 64 MB that is removed at once: the mapping stays.
struct RecordFile {
  std::string path = "/tmp/runnel_bench_" + std::to_string(::getpid());
  RecordFile() {
    io::TFRecordWriter writer(path);
    for (int i = 0; writer.bytes() < (64u << 20); ++i) writer.write(bench::image_record(i));
    writer.close();
  }
  ~RecordFile() { Env::posix().remove(path); }
};

Call read_all() {
  auto file = std::make_shared<RecordFile>();
  return [file, reader = std::make_shared<io::RecordReader>(file->path)] {
    reader->seek({});
    size_t bytes = 0;
    ByteSpan record;
    while (reader->read(&record) == io::RecordReader::Status::record) bytes += record.size();
    if (bytes == 0) std::abort();
  };
}

std::vector<Tensor> batches(std::string (*record)(int)) {
  std::vector<Tensor> all;
  for (int b = 0; b < bench::kBatches; ++b) {
    std::vector<Bytes> records;
    for (int i = 0; i < bench::kBatch; ++i) records.emplace_back(record(b * bench::kBatch + i));
    all.push_back(Tensor::of<Bytes>(records));
  }
  return all;
}

Call parse(std::string (*record)(int), const io::ExampleSpec& spec) {
  return [all = batches(record), spec, b = size_t{0}]() mutable { io::parse_example(all[b++ % all.size()], spec); };
}

}  // namespace

int main(int argc, char** argv) {
  return bench::main_of(argc, argv,
                        {{"tfrecord_read", [](int) { return std::vector<Call>{read_all()}; }},
                         {"example_parse",
                          [](int) {
                            const io::ExampleSpec spec{{"image_raw", io::FixedLenFeature{{}, DType::string}},
                                                       {"label", io::FixedLenFeature{{}, int64}}};
                            return std::vector<Call>{parse(bench::image_record, spec)};
                          }},
                         {"example_parse_small",
                          [](int) {
                            const io::ExampleSpec spec{{"values", io::FixedLenFeature{{16}}},
                                                       {"id", io::FixedLenFeature{{}, int64}},
                                                       {"name", io::FixedLenFeature{{}, DType::string}}};
                            return std::vector<Call>{parse(bench::small_record, spec)};
                          }}},
                        [](int threads) { set_num_threads(threads); });
}
