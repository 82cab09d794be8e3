#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/io/example.h"

namespace runnel::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string to_base64(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += k <= n ? alphabet[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+' || c == '-') return 62;  // the second is the alphabet for addresses
  if (c == '/' || c == '_') return 63;
  return -1;
}

std::string from_base64(std::string_view text, const std::string& path) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string out;
  uint32_t word = 0;
  int bits = 0;
  for (char c : text) {
    const int digit = base64_digit(c);
    if (digit < 0) throw invalid_argument("{}: '{}' is no base64", path, c);
    word = word << 6 | static_cast<uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out += static_cast<char>(word >> bits & 0xff);
    }
  }
  if (text.size() % 4 == 1) throw invalid_argument("{}: base64 text that stops short", path);
  return out;
}

int64_t to_int64(const Json& j, const std::string& path) {
  if (j.is_number_unsigned()) {
    const auto v = j.get<uint64_t>();
    if (v <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return static_cast<int64_t>(v);
  } else if (j.is_number_integer()) {
    return j.get<int64_t>();
  } else if (j.is_number_float()) {
    const auto v = j.get<double>();
    if (v == std::floor(v) && std::abs(v) < 0x1p63) return static_cast<int64_t>(v);
  } else if (j.is_string()) {
    const auto& text = j.get_ref<const std::string&>();
    int64_t v = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (error == std::errc() && end == text.data() + text.size()) return v;
  }
  throw invalid_argument("{}: {} is no 64-bit integer", path, j.dump(-1, ' ', true, Json::error_handler_t::replace));
}

float to_float(const Json& j, const std::string& path) {
  if (j.is_number()) return static_cast<float>(j.get<double>());
  if (j.is_string()) {
    const auto& text = j.get_ref<const std::string&>();
    if (text == "NaN") return std::numeric_limits<float>::quiet_NaN();
    if (text == "Infinity") return std::numeric_limits<float>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<float>::infinity();
    double v = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (error == std::errc() && end == text.data() + text.size()) return static_cast<float>(v);
  }
  throw invalid_argument("{}: {} is no number", path, j.dump(-1, ' ', true, Json::error_handler_t::replace));
}

const Json& require_object(const Json& j, const std::string& path) {
  if (!j.is_object()) throw invalid_argument("{}: expected an object, found {}", path, j.type_name());
  return j;
}
[[noreturn]] void unknown(const std::string& name, const std::string& path, const char* known) {
  throw invalid_argument("{}: unknown name '{}' (it can be {})", path, name, known);
}

template <class List, class Read>
List read_list(const Json& j, const std::string& path, Read read) {
  List list;
  for (const auto& [name, values] : require_object(j, path).items()) {
    if (name != "value") unknown(name, path, "value");
    if (values.is_null()) continue;
    if (!values.is_array()) throw invalid_argument("{}.value: expected a list, found {}", path, values.type_name());
    for (size_t i = 0; i < values.size(); ++i) {
      list.value.push_back(read(values[i], fmt::format("{}.value[{}]", path, i)));
    }
  }
  return list;
}

Feature read_feature(const Json& j, const std::string& path) {
  Feature feature;
  for (const auto& [name, list] : require_object(j, path).items()) {
    if (list.is_null()) continue;
    const std::string inner = path + "." + name;
    if (feature.kind.index() != 0) throw invalid_argument("{}: a feature has one list only", path);
    if (name == "bytesList" || name == "bytes_list") {
      feature = read_list<BytesList>(list, inner, [](const Json& v, const std::string& at) {
        if (!v.is_string()) throw invalid_argument("{}: expected base64 text, found {}", at, v.type_name());
        return from_base64(v.get_ref<const std::string&>(), at);
      });
    } else if (name == "floatList" || name == "float_list") {
      feature = read_list<FloatList>(list, inner, to_float);
    } else if (name == "int64List" || name == "int64_list") {
      feature = read_list<Int64List>(list, inner, to_int64);
    } else {
      unknown(name, path, "bytesList, floatList or int64List");
    }
  }
  return feature;
}

Json write_feature(const Feature& feature) {
  Json values = Json::array();
  if (const auto* bytes = feature.bytes_list()) {
    for (const std::string& v : bytes->value) values.push_back(to_base64(v));
    return {{"bytesList", {{"value", values}}}};
  }
  if (const auto* floats = feature.float_list()) {
    for (float v : floats->value) {
      if (std::isnan(v))
        values.push_back("NaN");
      else if (std::isinf(v))
        values.push_back(v > 0 ? "Infinity" : "-Infinity");
      else
        values.push_back(std::stod(fmt::format("{}", v)));  // the fewest digits of a float, not of its double
    }
    return {{"floatList", {{"value", values}}}};
  }
  if (const auto* integers = feature.int64_list()) {
    for (int64_t v : integers->value) values.push_back(std::to_string(v));
    return {{"int64List", {{"value", values}}}};
  }
  return Json::object();
}

Json write_features(const Features& features) {
  Json map = Json::object();
  for (const auto& [key, feature] : features.feature) map[key] = write_feature(feature);
  return {{"feature", map}};
}

std::string text_of(const Json& j, int indent) {
  return j.dump(indent, ' ', false, Json::error_handler_t::replace);  // keys need not be UTF-8
}

}  // namespace

Example example_from_json(std::string_view json, SourceSite where) {
  return at_caller(where, [&] {
    Json j;
    try {
      j = Json::parse(json);
    } catch (const Json::exception& e) {
      throw invalid_argument("no valid JSON: {}", e.what());
    }
    Example example;
    for (const auto& [name, features] : require_object(j, "example").items()) {
      if (name != "features") unknown(name, "example", "features");
      if (features.is_null()) continue;
      for (const auto& [inner, map] : require_object(features, "features").items()) {
        if (inner != "feature") unknown(inner, "features", "feature");
        if (map.is_null()) continue;
        for (const auto& [key, feature] : require_object(map, "features.feature").items()) {
          example.features.feature[key] = read_feature(feature, fmt::format("feature '{}'", key));
        }
      }
    }
    return example;
  });
}

std::string example_to_json(const Example& example, int indent) {
  return text_of({{"features", write_features(example.features)}}, indent);
}

std::string sequence_example_to_json(const SequenceExample& example, int indent) {
  Json lists = Json::object();
  for (const auto& [key, list] : example.feature_lists.feature_list) {
    Json features = Json::array();
    for (const Feature& feature : list.feature) features.push_back(write_feature(feature));
    lists[key] = {{"feature", features}};
  }
  return text_of({{"context", write_features(example.context)}, {"featureLists", {{"featureList", lists}}}}, indent);
}

}  // namespace runnel::io
