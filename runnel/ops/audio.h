#pragma once

#include <cstdint>

#include "runnel/op/operand.h"

namespace runnel::audio {

struct DecodedWav {
  Tensor audio;        // float32 [samples, channels], -1 to 1
  Tensor sample_rate;  // int32 scalar
};
// A WAV file of 16 bits without compression, a scalar string. With desired_channels, the last channel is repeated or
// channels are left out; with desired_samples, the end is cut or filled with zeros.
RUNNEL_API DecodedWav decode_wav(const Operand& contents, int64_t desired_channels = -1, int64_t desired_samples = -1);
// The file of such samples; those beyond -1 and 1 are cut.
RUNNEL_API Tensor encode_wav(const Operand& audio, const Operand& sample_rate);

}  // namespace runnel::audio
