#include "runnel/keras/config.h"

#include <nlohmann/json.hpp>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/keras/named_callable.h"

namespace runnel::keras {
namespace {

const char* kind_name(const Config& config) {
  if (config.is_null()) return "null";
  if (config.is_text()) return "a text";
  if (config.is_number()) return "a number";
  if (config.is_list()) return "a list";
  return config.is_map() ? "a map" : "true or false";
}

[[noreturn]] void wrong_kind_of_config(const char* asked, const Config& got, const SourceSite& where) {
  throw at_line(
      invalid_argument("[keras] the configuration needs {}, got {}: {}", asked, kind_name(got), got.to_json()), where);
}

using Json = nlohmann::ordered_json;

Json json_of(const Config& config) {
  if (config.is_null()) return nullptr;
  if (config.is_text()) return config.as_text();
  if (config.is_list()) {
    Json out = Json::array();
    for (const Config& item : config.items()) out.push_back(json_of(item));
    return out;
  }
  if (config.is_map()) {
    Json out = Json::object();
    for (const auto& [key, item] : config.entries()) out[key] = json_of(item);
    return out;
  }
  if (!config.is_number()) return config.as_bool();
  return config.is_integer() ? Json(config.as_int()) : Json(config.as_double());
}

Config config_of(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean: return json.get<bool>();
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned: return json.get<int64_t>();
    case Json::value_t::number_float: return json.get<double>();
    case Json::value_t::string: return json.get<std::string>();
    case Json::value_t::array: {
      Config::List items;
      for (const Json& item : json) items.push_back(config_of(item));
      return items;
    }
    case Json::value_t::object: {
      Config::Map entries;
      for (const auto& [key, item] : json.items()) entries.emplace_back(key, config_of(item));
      return entries;
    }
    default: return {};
  }
}

}  // namespace

Config describe_callable(const std::type_info& type, const Config& settings, const char* what) {
  const std::string name = SerializableObjects::name_of(type);
  if (name.empty()) {
    throw make_error(Code::failed_precondition,
                     "[keras] a C++ function given as {} cannot be written down: give it by name "
                     "(register_keras_serializable), or leave out saving",
                     what);
  }
  return object_config(name, settings.is_null() ? Config::Map() : settings.entries());
}

Config::Config() = default;
Config::Config(bool value) : value_(value) {}
Config::Config(int value) : value_(int64_t{value}) {}
Config::Config(int64_t value) : value_(value) {}
Config::Config(double value) : value_(value) {}
Config::Config(const char* text) : value_(std::string(text)) {}
Config::Config(std::string text) : value_(std::move(text)) {}
Config::Config(List items) : value_(std::move(items)) {}
Config::Config(Map entries) : value_(std::move(entries)) {}
Config::Config(const Config& other) = default;
Config::Config(Config&& other) noexcept = default;
Config& Config::operator=(const Config& other) = default;
Config& Config::operator=(Config&& other) noexcept = default;
Config::~Config() = default;

bool operator==(const Config& a, const Config& b) { return a.value_ == b.value_; }

void add_entry(Config::Map& entries, const char* name, Config value) { entries.emplace_back(name, std::move(value)); }

bool Config::is_null() const { return std::holds_alternative<std::monostate>(value_); }
bool Config::is_text() const { return std::holds_alternative<std::string>(value_); }
bool Config::is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
bool Config::is_integer() const { return std::holds_alternative<int64_t>(value_); }
bool Config::is_list() const { return std::holds_alternative<List>(value_); }
bool Config::is_map() const { return std::holds_alternative<Map>(value_); }

Config::Config(const PartialShape& shape) {
  if (!shape.has_rank()) return;
  List items;
  for (const int64_t d : shape) {
    if (d == kUnknownDim) {
      items.emplace_back();
    } else {
      items.emplace_back(d);
    }
  }
  value_ = std::move(items);
}

Config::Config(const std::vector<int64_t>& numbers) : value_(List(numbers.begin(), numbers.end())) {}
Config::Config(const std::vector<double>& numbers) : value_(List(numbers.begin(), numbers.end())) {}

bool Config::as_bool(SourceSite where) const {
  if (const bool* value = std::get_if<bool>(&value_)) return *value;
  wrong_kind_of_config("true or false", *this, where);
}

int64_t Config::as_int(SourceSite where) const {
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return *value;
  wrong_kind_of_config("a whole number", *this, where);
}

double Config::as_double(SourceSite where) const {
  if (const double* value = std::get_if<double>(&value_)) return *value;
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  wrong_kind_of_config("a number", *this, where);
}

const std::string& Config::as_text(SourceSite where) const {
  if (const std::string* value = std::get_if<std::string>(&value_)) return *value;
  wrong_kind_of_config("a text", *this, where);
}

const Config::List& Config::items(SourceSite where) const {
  if (const List* value = std::get_if<List>(&value_)) return *value;
  wrong_kind_of_config("a list", *this, where);
}

const Config::Map& Config::entries(SourceSite where) const {
  if (const Map* value = std::get_if<Map>(&value_)) return *value;
  wrong_kind_of_config("a map", *this, where);
}

PartialShape Config::as_shape(SourceSite where) const {
  if (is_null()) return PartialShape::unknown();
  Dims dims;
  for (const Config& item : items(where)) dims.push_back(item.is_null() ? kUnknownDim : item.as_int(where));
  return PartialShape(dims);
}

std::vector<int64_t> Config::as_ints(SourceSite where) const {
  std::vector<int64_t> out;
  for (const Config& item : items(where)) out.push_back(item.as_int(where));
  return out;
}

std::vector<double> Config::as_doubles(SourceSite where) const {
  std::vector<double> out;
  for (const Config& item : items(where)) out.push_back(item.as_double(where));
  return out;
}

const Config* Config::find(std::string_view key, SourceSite where) const {
  for (const auto& [name, value] : entries(where)) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Config& Config::operator[](const AskedName& key) const {
  if (const Config* value = find(key.name, key.where)) return *value;
  throw at_line(make_error(Code::not_found, "[keras] the configuration has no entry '{}': {}", key.name, to_json()),
                key.where);
}

void Config::set(const std::string& key, Config value, SourceSite where) {
  if (is_null()) value_ = Map();
  Map* map = std::get_if<Map>(&value_);
  if (!map) wrong_kind_of_config("a map", *this, where);
  for (auto& [name, old] : *map) {
    if (name == key) {
      old = std::move(value);
      return;
    }
  }
  map->emplace_back(key, std::move(value));
}

std::string Config::to_json(int indent) const { return json_of(*this).dump(indent); }

Config Config::from_json(std::string_view text, SourceSite where) {
  return at_caller(where, [&]() -> Config {
    try {
      return config_of(Json::parse(text));
    } catch (const nlohmann::json::exception& e) {
      throw invalid_argument("[keras] not a configuration in JSON: {}", e.what());
    }
  });
}

}  // namespace runnel::keras
