#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/export.h"

namespace runnel::io {

// WAV files of 16-bit samples without compression (PCM).
struct Wav {
  int64_t channels = 0;
  int64_t sample_rate = 0;
  std::string_view samples;  // little-endian, those of all channels one after the other for each moment

  int64_t frames() const { return channels == 0 ? 0 : static_cast<int64_t>(samples.size()) / (2 * channels); }
  // Of moment i in a channel: -32768 to 32767.
  int16_t at(int64_t i, int64_t channel) const {
    const size_t p = static_cast<size_t>(i * channels + channel) * 2;
    return static_cast<int16_t>(static_cast<uint8_t>(samples[p]) | static_cast<uint8_t>(samples[p + 1]) << 8);
  }
};

// What a file holds, as views into its bytes. Throws Error (invalid_argument) naming the byte.
RUNNEL_API Wav parse_wav(std::string_view bytes);
// The 44 bytes that stand before the samples.
RUNNEL_API std::string wav_header(int64_t channels, int64_t sample_rate, int64_t frames);
// The whole file of samples from -1 to 1, those of all channels one after the other for each moment.
RUNNEL_API std::string encode_wav(const float* samples, int64_t channels, int64_t sample_rate, int64_t frames);

}  // namespace runnel::io
