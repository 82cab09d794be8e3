// WAV files.
#include "runnel/ops/audio.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/io/origin.h"
#include "runnel/io/wav.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"

namespace runnel {
namespace {

struct DecodeWavAttrs {
  int64_t desired_channels = -1;
  int64_t desired_samples = -1;
  static constexpr auto fields() {
    return field_list(field("desired_channels", &DecodeWavAttrs::desired_channels),
                      field("desired_samples", &DecodeWavAttrs::desired_samples));
  }
};

constexpr float kFullScale = 32768;

void decode(KernelContext& c, const DecodeWavAttrs& a) {
  if (a.desired_channels < -1 || a.desired_samples < -1) {
    throw invalid_argument("desired_channels and desired_samples are -1 (all there are) or more, got {} and {}",
                           a.desired_channels, a.desired_samples);
  }
  const std::string_view bytes = *c.in<Bytes>(0);
  io::Wav wav;
  try {
    wav = io::parse_wav(bytes);
  } catch (const Error& e) {
    const std::string origin = io::origin_of(bytes);
    throw Error(e.code(), origin.empty() ? e.what() : origin + ": " + e.what());
  }
  const int64_t channels = a.desired_channels < 0 ? wav.channels : a.desired_channels;
  const int64_t frames = a.desired_samples < 0 ? wav.frames() : a.desired_samples;
  auto* to = c.allocate(0, Shape{frames, channels}).mutable_data<float>();
  for (int64_t i = 0; i < frames; ++i) {
    for (int64_t k = 0; k < channels; ++k) {
      *to++ = i < wav.frames() ? static_cast<float>(wav.at(i, std::min(k, wav.channels - 1))) / kFullScale : 0.f;
    }
  }
  *c.out<int32_t>(1) = static_cast<int32_t>(wav.sample_rate);
}

void encode(KernelContext& c) {
  const Shape& s = c.in(0).shape();
  *c.out<Bytes>() = io::encode_wav(c.in<float>(0), s[1], c.int_scalar(1), s[0]);
}

// Two moments of two channels at 8000 Hz: 0.5, -1 and 0.99996948, 0.25.
std::string sample_file() { return io::wav_header(2, 8000, 2) + std::string("\0\x40\0\x80\xff\x7f\0\x20", 8); }

}  // namespace

void register_audio(Registry& r) {
  const Tensor file = Tensor(Bytes(sample_file()));
  r.define<DecodeWavAttrs>("DecodeWav")
      .in("contents", DType::string)
      .out("audio", DType::float32)
      .out("sample_rate", DType::int32)
      .shape([](InferContext& c, const DecodeWavAttrs& a) {
        c.require_rank(0, 0);
        c.output(0, PartialShape{a.desired_samples < 0 ? kUnknownDim : a.desired_samples,
                                 a.desired_channels < 0 ? kUnknownDim : a.desired_channels});
        c.output(1, PartialShape{});
      })
      .cpu([](KernelContext& c, const DecodeWavAttrs& a) { decode(c, a); })
      .doc("The samples of a WAV file, one row for each moment and one column for each channel.")
      .sample({.in = {file}, .out = {Tensor{{0.5f, -1.f}, {32767.f / 32768.f, 0.25f}}, Tensor(8000)}})
      .sample({.in = {file}, .out = {Tensor{{0.5f, -1.f, -1.f}}, Tensor(8000)}},
              {.desired_channels = 3, .desired_samples = 1})
      .sample({.in = {file}, .out = {Tensor{{0.5f}, {32767.f / 32768.f}, {0.f}}, Tensor(8000)}},
              {.desired_channels = 1, .desired_samples = 3})
      .sample({.in = {Tensor(Bytes(sample_file().substr(0, 50)))}, .error = "ends early"})
      .sample({.in = {Tensor("text")}, .error = "'RIFF' is missing at byte 0"})
      .sample({.in = {Tensor("text")}, .error = "-1 (all there are) or more"}, {.desired_channels = -2});

  r.define("EncodeWav")
      .in("audio", DType::float32)
      .in_host("sample_rate", DType::int32)
      .out("contents", DType::string)
      .shape([](InferContext& c) {
        c.require_rank(0, 2);
        c.require_rank(1, 0);
        scalar_shape(c);
      })
      .cpu([](KernelContext& c) { encode(c); })
      .doc("The WAV file of samples, one row for each moment and one column for each channel.")
      .sample({.in = {Tensor{{0.5f, -1.2f}, {1.f, 0.25f}}, Tensor(8000)}, .out = {file}})
      .sample({.in = {Tensor{{0.5f}}, Tensor(0)}, .error = "sample rate"});
}

namespace audio {

DecodedWav decode_wav(const Operand& contents, int64_t desired_channels, int64_t desired_samples) {
  static const Op<DecodeWavAttrs> op("DecodeWav");
  const auto parts = op.many({contents}, {.desired_channels = desired_channels, .desired_samples = desired_samples});
  return {parts[0], parts[1]};
}
Tensor encode_wav(const Operand& audio, const Operand& sample_rate) {
  static const Op op("EncodeWav");
  return op({audio, sample_rate});
}

}  // namespace audio
}  // namespace runnel
