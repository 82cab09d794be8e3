#include <cstdint>
#include <cstdlib>
#include <string>

#include "runnel/base/crc32c.h"
#include "runnel/base/varint.h"
#include "runnel/io/event_reader.h"

namespace {

using namespace runnel;

// Everything that can be asked of an event; the sum keeps it from being left out.
size_t look_at(const io::Event& event) {
  size_t sum = event.body.size() + event.source_writer.size();
  io::EventRunMetadata run;
  if (event.kind == io::EventKind::tagged_run_metadata && io::parse_event_run_metadata(event.body, &run)) {
    sum += run.tag.size() + run.run_metadata.size();
  }
  if (event.kind != io::EventKind::summary) return sum;
  io::visit_event_values(event.body, [&](const io::EventValue& value) {
    sum += io::plugin_of(value).size() + value.tag.size();
    io::EventMetadata metadata;
    if (io::parse_event_metadata(value.metadata, &metadata)) sum += metadata.description.size();
    io::EventImage image;
    io::EventAudio audio;
    io::EventHistogram histogram;
    if (io::parse_event_image(value.body, &image)) sum += image.encoded.size();
    if (io::parse_event_audio(value.body, &audio)) sum += audio.encoded.size() + audio.content_type.size();
    if (io::parse_event_histogram(value.body, &histogram) && histogram.buckets() > 0) {
      sum += load_fixed64(histogram.limits.data() + histogram.limits.size() - 8) & 1;
    }
  });
  return sum;
}

size_t read_all(ByteSpan bytes) {
  io::EventReader reader(bytes, "fuzz");
  io::Event event;
  io::EventReader::Status status;
  size_t sum = 0;
  while ((status = reader.read(&event)) == io::EventReader::Status::event ||
         (status == io::EventReader::Status::damaged && reader.skip_damaged())) {
    if (status == io::EventReader::Status::event) sum += look_at(event);
  }
  if (reader.position().offset > bytes.size()) std::abort();
  return sum;
}

}  // namespace

// The bytes as a file, and as the body of one event whose checksums are right.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  volatile size_t sink = read_all(bytes);
  std::string file;
  append_fixed64(file, size);
  append_fixed32(file, crc32c_mask(crc32c(file.data(), 8)));
  file.append(reinterpret_cast<const char*>(data), size);
  append_fixed32(file, crc32c_mask(crc32c(data, size)));
  sink = sink + read_all(as_bytes(file));
  return 0;
}
