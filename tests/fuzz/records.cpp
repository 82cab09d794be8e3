#include <cstdint>
#include <cstdlib>

#include "runnel/io/record_reader.h"

// A TFRecord file, plain or compressed: records up to the damage or the end, the same ones again after a seek, and
// positions that never go back.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  using io::RecordReader;
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  RecordReader reader(nullptr, bytes, "fuzz", {.detect_compression = true, .buffer_size = 1024});
  ByteSpan record;
  io::RecordPosition middle;
  uint64_t total = 0;
  unsigned sum = 0;
  RecordReader::Status status;
  while ((status = reader.read(&record)) == RecordReader::Status::record) {
    for (std::byte b : record) sum += static_cast<unsigned>(b);
    if (reader.position().offset < total + record.size() + 16) std::abort();
    total = reader.position().offset;
    if (reader.position().record == 2) middle = reader.position();
    if (total > (1 << 22)) return 0;
  }
  const io::RecordPosition end = reader.position();
  if (status == RecordReader::Status::damaged && reader.skip_damaged()) reader.read(&record);
  reader.seek(middle);
  while (reader.read(&record) == RecordReader::Status::record) {
  }
  if (reader.position().offset != end.offset || reader.position().record != end.record) std::abort();
  volatile unsigned sink = sum;
  (void)sink;
  return 0;
}
