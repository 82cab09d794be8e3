#include "tools/event_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runnel/base/error.h"
#include "runnel/io/event_point.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/tensor/serialize.h"
#include "runnel/tensor/tensor.h"

namespace runnel::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownText = 200;
constexpr int64_t kShownNumbers = 6;

// Numbers that JSON does not have are texts.
Json event_number(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return v;
}

// As short as a float allows: 0.1, not 0.10000000149011612.
Json event_float(float v) {
  if (!std::isfinite(v)) return event_number(v);
  return std::stod(fmt::format("{}", v));
}

Json event_text(std::string_view text) {
  return std::string(text.substr(0, kShownText)) + (text.size() > kShownText ? "..." : "");
}

Json sizes_json(const Shape& shape) {
  Json sizes = Json::array();
  for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  return sizes;
}

// Rows of (left, right, count).
Json buckets_json(const std::vector<double>& rows) {
  const size_t k = rows.size() / 3;
  double total = 0;
  for (size_t i = 0; i < k; ++i) total += rows[3 * i + 2];
  Json json = {{"buckets", k}};
  if (k > 0) {
    json["min"] = event_number(rows[0]);
    json["max"] = event_number(rows[3 * k - 2]);
  }
  json["total"] = event_number(total);
  return json;
}

Json old_histogram(std::string_view body) {
  io::EventHistogram h;
  if (!io::parse_event_histogram(body, &h)) return {{"error", "the histogram is damaged"}};
  return buckets_json(io::histogram_rows(h));
}

Json old_image(std::string_view body) {
  io::EventImage image;
  if (!io::parse_event_image(body, &image)) return {{"error", "the image is damaged"}};
  return {{"width", image.width}, {"height", image.height}, {"images", 1}, {"bytes", image.encoded.size()}};
}

Json old_audio(std::string_view body) {
  io::EventAudio audio;
  if (!io::parse_event_audio(body, &audio)) return {{"error", "the audio is damaged"}};
  return {{"clips", 1}, {"bytes", audio.encoded.size()}};
}

int64_t decimal(std::string_view text) {
  int64_t v = 0;
  for (const char c : text.substr(0, 18)) {
    if (c < '0' || c > '9') break;
    v = v * 10 + (c - '0');
  }
  return v;
}

Json strings_json(const Tensor& t, std::string_view plugin) {
  const Bytes* values = t.data<Bytes>();
  const int64_t n = t.num_elements();
  if (plugin == "images" && n >= 2) {
    return {{"width", decimal(values[0].view())},
            {"height", decimal(values[1].view())},
            {"images", n - 2},
            {"bytes", n > 2 ? values[2].view().size() : 0}};
  }
  if (plugin == "audio") {  // rows of (clip, label)
    return {{"clips", t.shape().rank() > 0 ? t.shape()[0] : 1}, {"bytes", n > 0 ? values[0].view().size() : 0}};
  }
  Json json = {{"dtype", "string"}, {"shape", sizes_json(t.shape())}};
  if (n > 0) {
    json["text"] = event_text(values[0].view());
    json["bytes"] = values[0].view().size();
  }
  return json;
}

std::vector<double> first_numbers(const Tensor& t, int64_t most) {
  const int64_t n = std::min(t.num_elements(), most);
  const Tensor wide = cast(slice(reshape(t, {-1}), {0}, {n}), DType::float64);
  const double* v = wide.data<double>();
  return {v, v + n};
}

Json tensor_json(std::string_view body, std::string_view plugin) {
  // One number may stand for all of a huge tensor: nothing much larger than the file itself is made of it.
  const size_t most = (size_t{4} << 20) + 16 * body.size();
  const Tensor t = parse_tensor_proto(body, most);
  if (t.dtype() == DType::string) return strings_json(t, plugin);
  const bool numbers = is_float(t.dtype()) || is_integer(t.dtype()) || t.dtype() == DType::bool_;
  if (numbers && plugin == "histograms" && t.shape().rank() == 2 && t.shape()[1] == 3) {
    return buckets_json(first_numbers(t, t.num_elements()));
  }
  if (numbers && t.num_elements() == 1 && (plugin == "scalars" || t.shape().rank() == 0)) {
    return t.dtype() == DType::float32 ? event_float(*t.data<float>()) : event_number(first_numbers(t, 1)[0]);
  }
  Json json = {{"dtype", dtype_name(t.dtype())}, {"shape", sizes_json(t.shape())}};
  if (numbers) {
    Json first = Json::array();
    for (const double v : first_numbers(t, kShownNumbers)) first.push_back(event_number(v));
    json["first"] = std::move(first);
  }
  return json;
}

}  // namespace

Json describe_event_value(const io::EventValue& value, std::string_view plugin) {
  switch (value.kind) {
    case io::ValueKind::simple_value: return event_float(value.simple_value);
    case io::ValueKind::histogram: return old_histogram(value.body);
    case io::ValueKind::image: return old_image(value.body);
    case io::ValueKind::audio: return old_audio(value.body);
    case io::ValueKind::tensor: try { return tensor_json(value.body, plugin);
      } catch (const Error& e) {
        return {{"error", e.what()}};
      }
    case io::ValueKind::obsolete_histogram:
    case io::ValueKind::none: break;
  }
  // Hyperparameters and the like: all is in the metadata.
  return {{"metadata_bytes", value.metadata.size()}};
}

Json describe_event_bytes(std::string_view bytes) { return {{"bytes", bytes.size()}}; }

std::string description_text(const Json& description) {
  if (description.is_number()) return fmt::format("{}", description.get<double>());
  if (description.is_string()) return description.get<std::string>();
  std::string text;
  for (const auto& [name, part] : description.items()) {
    text += (text.empty() ? "" : " ") + name + "=" + part.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return text;
}

}  // namespace runnel::tools
