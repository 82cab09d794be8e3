// Values as the Summary messages of TensorFlow 1: what a session fetches and a FileWriter writes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "runnel/base/format.h"
#include "runnel/base/varint.h"
#include "runnel/io/event.h"
#include "runnel/io/image.h"
#include "runnel/io/wav.h"
#include "runnel/io/wire.h"
#include "runnel/op/builder.h"
#include "runnel/tensor/serialize.h"

namespace runnel {
namespace {

using io::append_field;

struct ImageSummaryAttrs {
  int64_t max_images = 3;
  Tensor bad_color = Tensor::of<uint8_t>({255, 0, 0, 255});
  static constexpr auto fields() {
    using A = ImageSummaryAttrs;
    return field_list(field("max_images", &A::max_images, {.minimum = 1}), field("bad_color", &A::bad_color));
  }
};

struct AudioSummaryAttrs {
  int64_t max_outputs = 3;
  static constexpr auto fields() {
    return field_list(field("max_outputs", &AudioSummaryAttrs::max_outputs, {.minimum = 1}));
  }
};

// The only element of an input that must have rank 0.
std::string_view scalar_text(KernelContext& c, int i, const char* what) {
  if (c.in(i).shape().rank() != 0) {
    throw invalid_argument("{} must be a scalar, got shape {}", what, c.in(i).shape().str());
  }
  return c.in<Bytes>(i)->view();
}

// One value of a Summary: its tag, then what `put` appends.
template <class Put>
void append_value(std::string& summary, std::string_view tag, const Put& put) {
  std::string value;
  if (!tag.empty()) append_field(value, 1, tag);
  put(value);
  append_field(summary, 1, std::string_view(value));
}

// Numbers that are 0 are left out of a message.
void append_size(std::string& message, uint32_t field, int64_t number) {
  if (number != 0) io::append_varint_field(message, field, static_cast<uint64_t>(number));
}
void append_number(std::string& message, uint32_t field, double number) {
  if (number != 0 || std::signbit(number)) append_field(message, field, number);
}

// "tag/image/0", or "tag/image" where only one was asked for.
std::string numbered_tag(std::string_view tag, const char* kind, int64_t i, int64_t most) {
  return most > 1 ? fmt::format("{}/{}/{}", tag, kind, i) : fmt::format("{}/{}", tag, kind);
}

// --- histograms ---

// The right edges of the buckets: each range is a tenth longer than the one before.
const std::vector<double>& bucket_limits() {
  static const std::vector<double> all = [] {
    std::vector<double> positive;
    for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
    positive.push_back(std::numeric_limits<double>::max());
    std::vector<double> limits;
    for (size_t i = positive.size(); i-- > 0;) limits.push_back(-positive[i]);
    limits.push_back(0);
    limits.insert(limits.end(), positive.begin(), positive.end());
    return limits;
  }();
  return all;
}

struct CountedValues {
  double min = std::numeric_limits<double>::max(), max = std::numeric_limits<double>::lowest();
  double num = 0, sum = 0, sum_squares = 0;
  std::vector<double> counts = std::vector<double>(bucket_limits().size(), 0);

  void add(double value) {
    if (!std::isfinite(value)) {
      throw invalid_argument("a histogram counts finite numbers, there is {} among the values",
                             std::isnan(value) ? "NaN" : "infinity");
    }
    const auto& limits = bucket_limits();
    const auto above = std::upper_bound(limits.begin(), limits.end(), value);
    counts[std::min(static_cast<size_t>(above - limits.begin()), limits.size() - 1)] += 1;
    min = std::min(min, value);
    max = std::max(max, value);
    num += 1;
    sum += value;
    sum_squares += value * value;
  }

  // A HistogramProto; successive empty buckets are one.
  std::string message() const {
    std::string limits, kept, out;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0 && i + 1 < counts.size() && counts[i + 1] == 0) continue;
      append_fixed64(limits, std::bit_cast<uint64_t>(bucket_limits()[i]));
      append_fixed64(kept, std::bit_cast<uint64_t>(counts[i]));
    }
    append_number(out, 1, min);
    append_number(out, 2, max);
    append_number(out, 3, num);
    append_number(out, 4, sum);
    append_number(out, 5, sum_squares);
    append_field(out, 6, std::string_view(limits));
    append_field(out, 7, std::string_view(kept));
    return out;
  }
};

// --- images ---

// A pixel with a channel that is no finite number says nothing.
template <class T>
bool finite_pixel(const T* pixel, int64_t channels) {
  return std::all_of(pixel, pixel + channels, [](T v) { return std::isfinite(static_cast<double>(v)); });
}

// Numbers as pixels: 0 is black where all are positive, else the middle, and the largest one is as far off as it can
// be. Computed in T, as the pixels would differ otherwise.
template <class T>
std::vector<uint8_t> scaled_pixels(const T* values, int64_t pixels, int64_t channels, const uint8_t* bad_color) {
  float low = std::numeric_limits<float>::infinity(), high = -low;
  for (int64_t i = 0; i < pixels; ++i) {
    const T* const pixel = values + i * channels;
    if (!finite_pixel(pixel, channels)) continue;
    for (int64_t k = 0; k < channels; ++k) {
      low = std::min(low, static_cast<float>(pixel[k]));
      high = std::max(high, static_cast<float>(pixel[k]));
    }
  }
  constexpr float smallest = 1e-6f;
  const float far = low < 0 ? std::max(std::abs(low), std::abs(high)) : high;
  const T scale(far < smallest ? 0.f : (low < 0 ? 127.f : 255.f) / far);
  const T offset(low < 0 ? 128.f : 0.f);
  std::vector<uint8_t> out(static_cast<size_t>(pixels * channels));
  for (int64_t i = 0; i < pixels; ++i) {
    const bool finite = finite_pixel(values + i * channels, channels);
    for (int64_t k = 0; k < channels; ++k) {
      const int64_t at = i * channels + k;
      const T scaled = static_cast<T>(values[at] * scale);
      const T moved = static_cast<T>(scaled + offset);
      out[static_cast<size_t>(at)] = finite ? static_cast<uint8_t>(static_cast<float>(moved)) : bad_color[k];
    }
  }
  return out;
}

void require_images(const Shape& s) {
  if (s.rank() != 4 || (s[3] != 1 && s[3] != 3 && s[3] != 4)) {
    throw invalid_argument("the tensor must be [images, height, width, channels] with 1, 3 or 4 channels, got {}",
                           s.str());
  }
}

void require_bad_color(const Tensor& color, int64_t channels) {
  if (color.dtype() != DType::uint8 || color.shape().rank() != 1 || color.shape()[0] < channels) {
    throw invalid_argument("bad_color must be a vector of uint8 with at least {} elements, got {}{}", channels,
                           dtype_name(color.dtype()), color.shape().str());
  }
}

template <class T>
std::string image_summary(std::string_view tag, const Tensor& images, const ImageSummaryAttrs& a) {
  const Shape& s = images.shape();
  require_images(s);
  if constexpr (!std::is_same_v<T, uint8_t>) require_bad_color(a.bad_color, s[3]);
  const io::ImageSize size{1, s[1], s[2], s[3]};
  std::string summary;
  for (int64_t i = 0; i < std::min(a.max_images, s[0]); ++i) {
    const T* const from = images.data<T>() + i * size.samples();
    std::string png;
    if constexpr (std::is_same_v<T, uint8_t>) {
      png = io::encode_png(from, size, {});
    } else {
      const auto pixels = scaled_pixels(from, s[1] * s[2], s[3], a.bad_color.data<uint8_t>());
      png = io::encode_png(pixels.data(), size, {});
    }
    append_value(summary, numbered_tag(tag, "image", i, a.max_images), [&](std::string& value) {
      std::string image;
      append_size(image, 1, s[1]);
      append_size(image, 2, s[2]);
      append_size(image, 3, s[3]);
      append_field(image, 4, std::string_view(png));
      append_field(value, 4, std::string_view(image));
    });
  }
  return summary;
}

std::string audio_summary(std::string_view tag, const Tensor& clips, float sample_rate, int64_t max_outputs) {
  const Shape& s = clips.shape();
  if (s.rank() != 2 && s.rank() != 3) {
    throw invalid_argument("the tensor must be [clips, frames] or [clips, frames, channels], got {}", s.str());
  }
  if (!(sample_rate > 0)) throw invalid_argument("sample_rate must be more than 0, got {}", sample_rate);
  const int64_t frames = s[1], channels = s.rank() == 2 ? 1 : s[2];
  // The file has a whole number; larger ones than it can hold are refused there.
  const auto rate = static_cast<int64_t>(std::clamp(std::nearbyint(sample_rate), 1.f, 1e18f));
  std::string summary;
  for (int64_t i = 0; i < std::min(max_outputs, s[0]); ++i) {
    const std::string wav = io::encode_wav(clips.data<float>() + i * frames * channels, channels, rate, frames);
    append_value(summary, numbered_tag(tag, "audio", i, max_outputs), [&](std::string& value) {
      std::string audio;
      append_field(audio, 1, sample_rate);
      append_size(audio, 2, channels);
      append_size(audio, 3, frames);
      append_field(audio, 4, std::string_view(wav));
      append_field(audio, 5, std::string_view("audio/wav"));
      append_field(value, 6, std::string_view(audio));
    });
  }
  return summary;
}

// --- several in one ---

// The values of all messages; a tag stands in one of them only.
std::string merged_summaries(KernelContext& c) {
  std::string merged;
  std::unordered_set<std::string> tags;
  for (int i = 0; i < c.num_inputs(); ++i) {
    for (int64_t k = 0; k < c.in(i).num_elements(); ++k) {
      const bool whole = io::wire::read_bytes(c.in<Bytes>(i)[k].view(), [&](std::string_view bytes) {
        io::EventValue value;
        if (!io::parse_event_value(bytes, &value)) throw invalid_argument("input {} is no Summary message", i);
        if (!value.tag.empty() && !tags.emplace(value.tag).second) {
          throw invalid_argument("the tag '{}' stands in several of the summaries", value.tag);
        }
        append_field(merged, 1, bytes);
      });
      if (!whole) throw invalid_argument("input {} is no Summary message", i);
    }
  }
  return merged;
}

Tensor message_of(std::string_view bytes) { return Tensor(Bytes(bytes)); }

}  // namespace

void register_summary_messages(Registry& r) {
  using namespace std::string_view_literals;
  const Tensor one = message_of("\x0a\x08\x0a\x01\x61\x15\x00\x00\x80\x3f"sv);

  r.define("ScalarSummary")
      .in_host("tags", DType::string)
      .in("values", real_numbers)
      .out("summary", DType::string)
      .shape(scalar_shape)
      .cpu([]<class T>(KernelContext& c) {
        const Shape& tags = c.in(0).shape();
        const Shape& values = c.in(1).shape();
        if (tags != values) {
          throw invalid_argument("tags and values must have the same shape, got {} and {}", tags.str(), values.str());
        }
        std::string summary;
        for (int64_t i = 0; i < tags.num_elements(); ++i) {
          append_value(summary, c.in<Bytes>(0)[i],
                       [&](std::string& value) { append_field(value, 2, static_cast<float>(c.in<T>(1)[i])); });
        }
        *c.out<Bytes>() = Bytes(std::move(summary));
      })
      .doc("A Summary message with a simple value for each tag.")
      .sample({.in = {Tensor("a"), Tensor(1.f)}, .out = {one}})
      .sample({.in = {Tensor{"a", ""}, Tensor{1.f, 2.f}},
               .out = {message_of("\x0a\x08\x0a\x01\x61\x15\x00\x00\x80\x3f\x0a\x05\x15\x00\x00\x00\x40"sv)}})
      .sample({.in = {Tensor{"a"}, Tensor(1.f)}, .error = "must have the same shape"});

  r.define("HistogramSummary")
      .in_host("tag", DType::string)
      .in("values", real_numbers, DType::float32)
      .out("summary", DType::string)
      .shape(scalar_shape)
      .cpu([]<class T>(KernelContext& c) {
        const std::string_view tag = scalar_text(c, 0, "tag");
        CountedValues counted;
        for (int64_t i = 0; i < c.in(1).num_elements(); ++i) counted.add(static_cast<double>(c.in<T>(1)[i]));
        std::string summary;
        append_value(summary, tag,
                     [&](std::string& value) { append_field(value, 5, std::string_view(counted.message())); });
        *c.out<Bytes>() = Bytes(std::move(summary));
      })
      .doc("A Summary message with the histogram of all values, in buckets that grow with the distance from 0.")
      .sample({.in = {Tensor("h"), Tensor{1.f, 0.f}},
               .out = {message_of("\x0a\x7d\x0a\x01\x68\x2a\x78\x11\x00\x00\x00\x00\x00\x00\xf0\x3f\x19\x00\x00\x00"
                                  "\x00\x00\x00\x00\x40\x21\x00\x00\x00\x00\x00\x00\xf0\x3f\x29\x00\x00\x00\x00\x00\x00"
                                  "\xf0\x3f\x32\x28\x00\x00\x00\x00\x00\x00\x00\x00\x11\xea\x2d\x81\x99\x97\x71\x3d\x08"
                                  "\x99\x69\x19\x15\x5a\xed\x3f\x2b\x14\xfa\xcd\xbe\x24\xf0\x3f\xff\xff\xff\xff\xff\xff"
                                  "\xef\x7f\x3a\x28\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x3f\x00"
                                  "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00"
                                  "\x00\x00"sv)}})
      .sample({.in = {Tensor{"h"}, Tensor{1.f}}, .error = "tag must be a scalar"})
      .sample({.make = [] {
        return std::vector{Tensor("h"), Tensor{-1.5f, 3.f, 1e10f}};
      }});

  r.define<ImageSummaryAttrs>("ImageSummary")
      .in_host("tag", DType::string)
      .in("tensor", Types<uint8_t, float, Half, double>{}, DType::float32)
      .out("summary", DType::string)
      .shape(scalar_shape)
      .cpu([]<class T>(KernelContext& c, const ImageSummaryAttrs& a) {
        *c.out<Bytes>() = Bytes(image_summary<T>(scalar_text(c, 0, "tag"), c.in(1), a));
      })
      .doc(
          "A Summary message with the first max_images images, as PNG. Numbers that are no uint8 are scaled; pixels "
          "that are not finite get bad_color.")
      .sample({.make =
                   [] {
                     return std::vector{Tensor("i"), Tensor::of<float>({0.f, 1.f, 2.f, 3.f}, {2, 1, 2, 1})};
                   }})
      .sample({.make =
                   [] {
                     return std::vector{Tensor("i"), Tensor::of<float>({0.f, 1.f, 2.f}, {1, 1, 1, 3})};
                   }},
              {.max_images = 1})
      .sample({.in = {Tensor{"i"}, Tensor::of<float>({1}, {1, 1, 1, 1})}, .error = "tag must be a scalar"})
      .sample({.in = {Tensor("i"), Tensor::of<float>({1, 2}, {1, 1, 1, 2})}, .error = "1, 3 or 4 channels"});

  r.define<AudioSummaryAttrs>("AudioSummaryV2")
      .in_host("tag", DType::string)
      .in("tensor", DType::float32)
      .in_host("sample_rate", DType::float32)
      .out("summary", DType::string)
      .shape(scalar_shape)
      .cpu([](KernelContext& c, const AudioSummaryAttrs& a) {
        const std::string_view tag = scalar_text(c, 0, "tag");
        if (c.in(2).num_elements() != 1) {
          throw invalid_argument("sample_rate must be one number, got shape {}", c.in(2).shape().str());
        }
        *c.out<Bytes>() = Bytes(audio_summary(tag, c.in(1), *c.in<float>(2), a.max_outputs));
      })
      .doc("A Summary message with the first max_outputs clips, from -1 to 1, as WAV files.")
      .sample({.in = {Tensor("a"), Tensor{{0.f, 0.5f, -1.f}}, Tensor(100.f)},
               .out = {message_of("\x0a\x55\x0a\x09\x61/audio/0\x32\x48\x0d\x00\x00\xc8\x42\x10\x01\x18\x03\x22\x32"
                                  "RIFF\x2a\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x64\x00\x00\x00\xc8\x00"
                                  "\x00\x00\x02\x00\x10\x00\x64\x61ta\x06\x00\x00\x00\x00\x00\x00\x40\x00\x80\x2a\x09"
                                  "audio/wav"sv)}})
      .sample({.in = {Tensor("a"), Tensor::of<float>({0.f, 0.5f, -1.f, 2.f}, {1, 2, 2}), Tensor(100.6f)},
               .out = {message_of("\x0a\x55\x0a\x07\x61/audio\x32\x4a\x0d\x33\x33\xc9\x42\x10\x02\x18\x02\x22\x34"
                                  "RIFF\x2c\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00\x65\x00\x00\x00\x94\x01"
                                  "\x00\x00\x04\x00\x10\x00\x64\x61ta\x08\x00\x00\x00\x00\x00\x00\x40\x00\x80\xff\x7f"
                                  "\x2a\x09\x61udio/wav"sv)}},
              {.max_outputs = 1})
      .sample({.in = {Tensor("a"), Tensor{0.f}, Tensor(1.f)}, .error = "[clips, frames]"})
      .sample({.in = {Tensor("a"), Tensor{{0.f}}, Tensor(0.f)}, .error = "must be more than 0"});

  r.define("TensorSummaryV2")
      .type("T", data_types)
      .in_host("tag", DType::string)
      .in("tensor", "T")
      .in_host("serialized_summary_metadata", DType::string)
      .out("summary", DType::string)
      .shape(scalar_shape)
      .cpu([](KernelContext& c) {
        const std::string_view tag = scalar_text(c, 0, "tag");
        const std::string_view metadata = scalar_text(c, 2, "serialized_summary_metadata");
        io::EventMetadata parsed;
        std::string summary;
        append_value(summary, tag, [&](std::string& value) {
          append_field(value, 8, std::string_view(serialize_tensor_proto(c.in(1))));
          // There even where it says nothing, as in TensorFlow; bytes that are no metadata count for nothing.
          append_field(value, 9, io::parse_event_metadata(metadata, &parsed) ? metadata : std::string_view());
        });
        *c.out<Bytes>() = Bytes(std::move(summary));
      })
      .doc("A Summary message with a tensor and what its plugin is to know (a SummaryMetadata message).")
      .sample({.make =
                   [] {
                     return std::vector{Tensor("t"), Tensor{1.f, 2.f}, Tensor("")};
                   }})
      .sample({.in = {Tensor("t"), Tensor{"x", "y"}, message_of("\x0a\x06\x0a\x04text")},
               .out = {message_of("\x0a\x1d\x0a\x01t\x42\x0e\x08\x07\x12\x04\x12\x02\x08\x02\x42\x01x\x42\x01y\x4a\x08"
                                  "\x0a\x06\x0a\x04text")}})
      .sample({.in = {Tensor{"t"}, Tensor("x"), Tensor("")}, .error = "tag must be a scalar"});

  r.define("MergeSummary")
      .in_list("inputs", "N", DType::string)
      .at_least(1)
      .out("summary", DType::string)
      .shape(scalar_shape)
      .cpu([](KernelContext& c) { *c.out<Bytes>() = Bytes(merged_summaries(c)); })
      .doc("One Summary message with the values of several.")
      .sample(
          {.in = {one, message_of("\x0a\x08\x0a\x01\x62\x15\x00\x00\x00\x40"sv)},
           .out = {message_of("\x0a\x08\x0a\x01\x61\x15\x00\x00\x80\x3f\x0a\x08\x0a\x01\x62\x15\x00\x00\x00\x40"sv)}})
      .sample({.in = {one, one}, .error = "the tag 'a' stands in several"})
      .sample({.in = {Tensor("no summary")}, .error = "input 0 is no Summary"});
}

}  // namespace runnel
