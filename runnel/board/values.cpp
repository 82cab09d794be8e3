#include "runnel/board/values.h"

#include <cstring>

#include "runnel/base/format.h"
#include "runnel/base/varint.h"
#include "runnel/io/wire.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/tensor/serialize.h"

namespace runnel::board {
namespace {

using io::wire::Cursor;
using io::wire::tag;

// What nearly all scalars are, without a Tensor: a float32 of rank 0. False: something else, or damaged.
bool read_plain_scalar(std::string_view tensor, float* number) {
  Cursor c(tensor);
  bool is_float = false, found = false;
  while (!c.done()) {
    uint32_t t = 0;
    uint64_t v = 0;
    std::string_view bytes;
    if (!c.tag(&t)) return false;
    switch (t) {
      case tag(1, io::wire::kVarint):
        if (!c.varint(&v)) return false;
        is_float = v == 1;
        break;
      case tag(2, io::wire::kBytes):
        if (!c.bytes(&bytes) || !bytes.empty()) return false;
        break;
      case tag(4, io::wire::kBytes):
      case tag(5, io::wire::kBytes):
        if (!c.bytes(&bytes) || bytes.size() != sizeof *number) return false;
        std::memcpy(number, bytes.data(), sizeof *number);
        found = true;
        break;
      case tag(5, io::wire::kFixed32): {
        uint32_t bits = 0;
        const char* next = get_fixed32(c.p, c.end, &bits);
        if (next == nullptr) return false;
        c.p = next;
        std::memcpy(number, &bits, sizeof bits);
        found = true;
        break;
      }
      default:
        if (!c.skip(t)) return false;
    }
  }
  return is_float && found;
}

// One number may stand for all of a huge tensor: nothing much larger than the file itself is made of it.
Tensor tensor_of(std::string_view body) { return parse_tensor_proto(body, (size_t{4} << 20) + 16 * body.size()); }

bool has_numbers(const Tensor& t) { return is_float(t.dtype()) || is_integer(t.dtype()) || t.dtype() == DType::bool_; }

std::vector<int64_t> sizes_of(const Shape& shape) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  return sizes;
}

Error damaged_value(const io::EventPoint& point, const char* what) {
  return make_error(Code::data_loss, "the {} of '{}' at step {} is damaged", what, point.tag, point.event.step);
}

}  // namespace

bool read_scalar(const io::EventValue& value, float* number) {
  if (value.kind == io::ValueKind::simple_value) {
    *number = value.simple_value;
    return true;
  }
  if (value.kind != io::ValueKind::tensor) return false;
  if (read_plain_scalar(value.body, number)) return true;
  try {
    const Tensor t = tensor_of(value.body);
    if (!has_numbers(t) || t.num_elements() != 1) return false;
    *number = static_cast<float>(*cast(reshape(t, {1}), DType::float64).data<double>());
    return true;
  } catch (const Error&) {
    return false;
  }
}

Numbers numbers_of(const io::EventPoint& point) {
  if (point.value != nullptr && point.value->kind == io::ValueKind::histogram) {
    io::EventHistogram histogram;
    if (!io::parse_event_histogram(point.value->body, &histogram)) throw damaged_value(point, "histogram");
    std::vector<double> rows = io::histogram_rows(histogram);
    const auto buckets = static_cast<int64_t>(rows.size() / 3);
    return {.shape = {buckets, 3}, .values = std::move(rows)};
  }
  if (point.value == nullptr) throw make_error(Code::invalid_argument, "'{}' holds bytes, no numbers", point.tag);
  if (point.value->kind == io::ValueKind::simple_value) return {.shape = {}, .values = {point.value->simple_value}};
  if (point.value->kind == io::ValueKind::none) return {.shape = {0}, .values = {}};  // all is in the metadata
  if (point.value->kind != io::ValueKind::tensor) throw damaged_value(point, "value");
  const Tensor t = tensor_of(point.value->body);
  if (!has_numbers(t)) {
    throw make_error(Code::invalid_argument, "the value of '{}' holds {}, no numbers", point.tag,
                     dtype_name(t.dtype()));
  }
  const Tensor wide = cast(reshape(t, {-1}), DType::float64);
  const double* values = wide.data<double>();
  return {.shape = sizes_of(t.shape()), .values = {values, values + wide.num_elements()}};
}

bool holds_texts(const io::EventPoint& point) {
  if (point.value == nullptr) return true;
  if (point.value->kind == io::ValueKind::image || point.value->kind == io::ValueKind::audio) return true;
  if (point.value->kind != io::ValueKind::tensor) return false;
  constexpr uint64_t kString = 7;
  Cursor c(point.value->body);
  for (uint32_t t = 0; !c.done();) {
    uint64_t dtype = 0;
    if (!c.tag(&t)) return false;
    if (t == tag(1, io::wire::kVarint)) return c.varint(&dtype) && dtype == kString;
    if (!c.skip(t)) return false;
  }
  return false;
}

Texts texts_of(const io::EventPoint& point) {
  if (point.value == nullptr) return {.shape = {1}, .values = {std::string(point.bytes)}};
  if (point.value->kind == io::ValueKind::image) {
    io::EventImage image;
    if (!io::parse_event_image(point.value->body, &image)) throw damaged_value(point, "image");
    return {.shape = {3},
            .values = {std::to_string(image.width), std::to_string(image.height), std::string(image.encoded)}};
  }
  if (point.value->kind == io::ValueKind::audio) {
    io::EventAudio audio;
    if (!io::parse_event_audio(point.value->body, &audio)) throw damaged_value(point, "clip");
    return {.shape = {1, 2}, .values = {std::string(audio.encoded), ""}};
  }
  if (point.value->kind != io::ValueKind::tensor) throw damaged_value(point, "tensor");
  const Tensor t = tensor_of(point.value->body);
  if (t.dtype() != DType::string) {
    throw make_error(Code::invalid_argument, "the value of '{}' holds {}, no texts", point.tag, dtype_name(t.dtype()));
  }
  Texts texts{.shape = sizes_of(t.shape()), .values = {}};
  const Bytes* values = t.data<Bytes>();
  for (int64_t i = 0; i < t.num_elements(); ++i) texts.values.push_back(values[i].str());
  return texts;
}

const char* media_type(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
  if (bytes.starts_with("\xff\xd8\xff")) return "image/jpeg";
  if (bytes.starts_with("GIF8")) return "image/gif";
  if (bytes.starts_with("BM")) return "image/bmp";
  const bool riff = bytes.starts_with("RIFF") && bytes.size() >= 12;
  if (riff && bytes.substr(8, 4) == "WEBP") return "image/webp";
  if (riff && bytes.substr(8, 4) == "WAVE") return "audio/wav";
  return "application/octet-stream";
}

}  // namespace runnel::board
