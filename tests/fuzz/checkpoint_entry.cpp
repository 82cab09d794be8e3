#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runnel/base/error.h"
#include "runnel/io/checkpoint_entry.h"
#include "runnel/io/checkpoint_slice.h"
#include "runnel/io/checkpoint_strings.h"

using namespace runnel;

namespace {

void check_entry(std::string_view bytes) {
  const io::CheckpointEntry entry = io::parse_entry("key", bytes);
  const std::string normal = io::entry_bytes(entry);
  if (io::entry_bytes(io::parse_entry("key", normal)) != normal) std::abort();
  for (const io::CheckpointSlice& slice : entry.slices) {
    if (io::slice_shape(entry.shape, slice).size() != entry.shape.size()) std::abort();
    if (io::slice_key(entry.key, slice).front() != '\0') std::abort();
  }
}

void check_header(std::string_view bytes) {
  const io::CheckpointHeader header = io::parse_header(bytes);
  if (header.num_shards < 0) std::abort();
  io::parse_header(io::header_bytes(header));
}

template <class From, class To>
void check_texts(std::string_view bytes, uint64_t count, From from, To to) {
  uint32_t crc = 0;
  const std::vector<std::string_view> texts = from(bytes, count, &crc);
  const io::StringTensorBytes again = to(texts);
  uint32_t crc_again = 0;
  if (from(again.bytes, count, &crc_again) != texts || crc_again != crc || again.crc32c != crc) std::abort();
}

}  // namespace

// The first byte says what the rest is: the entry of a value, the header, or the bytes of a tensor of strings or of
// variants, which begin with how many they are. An Error, or something that comes back from the bytes it is written as.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto count = static_cast<uint64_t>(data[1]);
  try {
    switch (data[0] % 4) {
      case 0: check_entry(bytes); break;
      case 1: check_header(bytes); break;
      case 2: check_texts(bytes.substr(1), count, io::strings_from_bytes, io::strings_to_bytes); break;
      default: check_texts(bytes.substr(1), count, io::variants_from_bytes, io::variants_to_bytes); break;
    }
  } catch (const Error&) {
  } catch (const io::StringTensorFault& fault) {
    if (fault.at > bytes.size()) std::abort();
  }
  return 0;
}
