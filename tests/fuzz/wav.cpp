#include "runnel/io/wav.h"

#include <cstdint>
#include <cstdlib>

#include "runnel/base/error.h"

// A WAV file: an Error, or whole moments that lie inside it and that a file of ours gives again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const io::Wav wav = io::parse_wav(bytes);
    if (wav.frames() * wav.channels * 2 != static_cast<int64_t>(wav.samples.size())) std::abort();
    if (wav.sample_rate == 0) return 0;  // read, but never written
    const std::string file = io::wav_header(wav.channels, wav.sample_rate, wav.frames()) + std::string(wav.samples);
    const io::Wav again = io::parse_wav(file);
    if (again.channels != wav.channels || again.sample_rate != wav.sample_rate || again.samples != wav.samples)
      std::abort();
  } catch (const Error&) {
  }
  return 0;
}
