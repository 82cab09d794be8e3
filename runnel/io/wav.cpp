#include "runnel/io/wav.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "runnel/base/format.h"

namespace runnel::io {
namespace {

constexpr int64_t kMaxChannels = 1024;

struct WavReader {
  std::string_view all;
  size_t at = 0;

  std::string_view take(size_t n) {
    if (all.size() - at < n) {
      throw invalid_argument("the WAV file ends early: {} bytes at byte {}, {} are needed", all.size() - at, at, n);
    }
    at += n;
    return all.substr(at - n, n);
  }
  uint32_t number(int bytes) {
    const std::string_view b = take(static_cast<size_t>(bytes));
    uint32_t value = 0;
    for (int i = bytes - 1; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(b[static_cast<size_t>(i)]);
    return value;
  }
  void expect(std::string_view tag) {
    const size_t begin = at;
    const std::string_view got = take(tag.size());
    if (got != tag) throw invalid_argument("no WAV file: '{}' is missing at byte {}", tag, begin);
  }
  // Past what writers put before the format: padding, and what they tell of the recording.
  void skip_to_format() {
    static constexpr std::string_view kPassed[] = {"JUNK", "bext", "iXML", "qlty", "mext", "levl", "link", "axml"};
    for (;;) {
      const size_t begin = at;
      const std::string_view name = take(4);
      if (name == "fmt ") return;
      if (std::find(std::begin(kPassed), std::end(kPassed), name) == std::end(kPassed)) {
        throw invalid_argument("no WAV file: 'fmt ' is missing at byte {}", begin);
      }
      const uint32_t size = number(4);
      take(size);
    }
  }
};

void put(uint32_t value, int bytes, std::string& out) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
}

}  // namespace

Wav parse_wav(std::string_view bytes) {
  WavReader in{bytes};
  in.expect("RIFF");
  in.number(4);  // the size of the file: writers of streams do not know it
  in.expect("WAVE");
  in.skip_to_format();
  const uint32_t header = in.number(4);
  if (header != 16 && header != 18)
    throw invalid_argument("the format of a WAV file has 16 or 18 bytes, got {}", header);
  const uint32_t format = in.number(2);
  if (format != 1)
    throw invalid_argument("only WAV files without compression (format 1) are read, this has format {}", format);
  Wav wav;
  wav.channels = in.number(2);
  wav.sample_rate = in.number(4);
  const uint32_t per_second = in.number(4), per_frame = in.number(2), bits = in.number(2);
  if (bits != 16) throw invalid_argument("only WAV files of 16 bits are read, this has {}", bits);
  if (wav.channels < 1 || wav.channels > kMaxChannels) {
    throw invalid_argument("a WAV file has 1 to {} channels, got {}", kMaxChannels, wav.channels);
  }
  if (per_frame != 2 * wav.channels || per_second != static_cast<uint32_t>(per_frame * wav.sample_rate)) {
    throw invalid_argument("the WAV file's bytes per moment ({}) and per second ({}) do not fit {} channels at rate {}",
                           per_frame, per_second, wav.channels, wav.sample_rate);
  }
  if (header == 18) in.number(2);
  bool found = false;
  while (in.at < bytes.size()) {
    const size_t begin = in.at;
    const std::string_view name = in.take(4);
    const uint32_t size = in.number(4);
    const std::string_view content = in.take(size);
    if (name != "data") continue;
    if (found) throw invalid_argument("the WAV file has a second part of samples at byte {}", begin);
    found = true;
    wav.samples = content.substr(0, size / per_frame * per_frame);
  }
  if (!found) throw invalid_argument("the WAV file has no samples");
  return wav;
}

std::string wav_header(int64_t channels, int64_t sample_rate, int64_t frames) {
  if (channels < 1 || channels > 0xFFFF) throw invalid_argument("a WAV file has 1 to 65535 channels, got {}", channels);
  if (sample_rate < 1 || sample_rate > 0xFFFFFFFF) {
    throw invalid_argument("the sample rate of a WAV file must be positive, got {}", sample_rate);
  }
  const int64_t size = frames * channels * 2;
  if (size > 0xFFFFFFFF - 36)
    throw invalid_argument("{} moments of {} channels are more than a WAV file can hold", frames, channels);
  std::string out = "RIFF";
  put(static_cast<uint32_t>(36 + size), 4, out);
  out += "WAVEfmt ";
  put(16, 4, out);
  put(1, 2, out);
  put(static_cast<uint32_t>(channels), 2, out);
  put(static_cast<uint32_t>(sample_rate), 4, out);
  put(static_cast<uint32_t>(sample_rate * channels * 2), 4, out);
  put(static_cast<uint32_t>(channels * 2), 2, out);
  put(16, 2, out);
  out += "data";
  put(static_cast<uint32_t>(size), 4, out);
  return out;
}

std::string encode_wav(const float* samples, int64_t channels, int64_t sample_rate, int64_t frames) {
  constexpr float full_scale = 32768;
  std::string file = wav_header(channels, sample_rate, frames);
  for (int64_t i = 0; i < frames * channels; ++i) {
    const float loud = std::clamp(std::round(samples[i] * full_scale), -full_scale, full_scale - 1);
    const auto sample = static_cast<uint16_t>(static_cast<int16_t>(std::isnan(loud) ? 0 : loud));
    file += static_cast<char>(sample & 255);
    file += static_cast<char>(sample >> 8);
  }
  return file;
}

}  // namespace runnel::io
