#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "runnel/base/asked.h"
#include "runnel/keras/int_tuple.h"
#include "runnel/op/fields.h"
#include "runnel/tensor/dtype.h"
#include "runnel/tensor/shape.h"

namespace runnel::keras {

// What describes a layer, model, optimizer, ...: the values of JSON, entries in the order they were added.
class RUNNEL_API Config {
 public:
  using List = std::vector<Config>;
  using Map = std::vector<std::pair<std::string, Config>>;

  // Everything is defined in the .cpp: the many users of descriptions compile faster.
  Config();                                     // null
  Config(bool value);                           // NOLINT: implicit, as all below
  Config(int value);                            // NOLINT
  Config(int64_t value);                        // NOLINT
  Config(double value);                         // NOLINT
  Config(const char* text);                     // NOLINT
  Config(std::string text);                     // NOLINT
  Config(List items);                           // NOLINT
  Config(Map entries);                          // NOLINT
  Config(const PartialShape& shape);            // NOLINT: a list, null for unknown dimensions
  Config(const std::vector<int64_t>& numbers);  // NOLINT
  Config(const std::vector<double>& numbers);   // NOLINT
  Config(const Config& other);
  Config(Config&& other) noexcept;
  Config& operator=(const Config& other);
  Config& operator=(Config&& other) noexcept;
  ~Config();

  bool is_null() const;
  bool is_text() const;
  bool is_number() const;
  bool is_integer() const;
  bool is_list() const;
  bool is_map() const;
  // An Error naming what was found instead.
  bool as_bool(SourceSite where = SourceSite::current()) const;
  int64_t as_int(SourceSite where = SourceSite::current()) const;
  double as_double(SourceSite where = SourceSite::current()) const;
  const std::string& as_text(SourceSite where = SourceSite::current()) const;
  const List& items(SourceSite where = SourceSite::current()) const;
  const Map& entries(SourceSite where = SourceSite::current()) const;
  PartialShape as_shape(SourceSite where = SourceSite::current()) const;
  std::vector<int64_t> as_ints(SourceSite where = SourceSite::current()) const;
  std::vector<double> as_doubles(SourceSite where = SourceSite::current()) const;

  // Of a map: null when there is no such entry; the second form is an Error then.
  const Config* find(std::string_view key, SourceSite where = SourceSite::current()) const;
  const Config& operator[](const AskedName& key) const;
  void set(const std::string& key, Config value, SourceSite where = SourceSite::current());

  std::string to_json(int indent = -1) const;
  static Config from_json(std::string_view text, SourceSite where = SourceSite::current());
  RUNNEL_API friend bool operator==(const Config& a, const Config& b);

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Map> value_;
};

// The axes of a setting: Keras writes one as a number, several as a list.
class AxisTuple : public IntTuple {
 public:
  using IntTuple::IntTuple;
  Config config() const { return size() == 1 ? Config(front()) : Config(*this); }
};

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

// How a setting of type T is written. Types with `Config config() const` and `static T from_config(const Config&)`
// need nothing more. An optional without a value is null; a list that is null is empty.
template <class T>
Config config_value(const T& value) {
  if constexpr (is_optional<T>) {
    return value ? config_value(*value) : Config();
  } else if constexpr (requires { value.config(); }) {
    return value.config();
  } else if constexpr (std::is_same_v<T, DType>) {
    return Config(dtype_name(value));
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    Config::List items(value.begin(), value.end());
    return items;
  } else {
    return Config(value);
  }
}

template <class T>
void read_config_value(const Config& config, T& value) {
  if constexpr (is_optional<T>) {
    value.reset();
    if (!config.is_null()) read_config_value(config, value.emplace());
  } else if constexpr (std::is_same_v<T, bool>) {
    value = config.as_bool();
  } else if constexpr (std::is_integral_v<T>) {
    value = static_cast<T>(config.as_int());
  } else if constexpr (std::is_floating_point_v<T>) {
    value = config.as_double();
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = config.is_null() ? std::string() : config.as_text();
  } else if constexpr (std::is_same_v<T, DType>) {
    value = dtype_from_name(config.as_text());
  } else if constexpr (std::is_same_v<T, PartialShape>) {
    value = config.as_shape();
  } else if constexpr (std::is_base_of_v<std::vector<int64_t>, T>) {
    value.clear();
    if (config.is_number()) {
      value.push_back(config.as_int());
    } else if (!config.is_null()) {
      value = config.as_ints();
    }
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    value.clear();
    if (config.is_number()) {
      value.push_back(config.as_double());
    } else if (!config.is_null()) {
      value = config.as_doubles();
    }
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    value.clear();
    for (const Config& item : config.items()) value.push_back(item.as_text());
  } else {
    value = T::from_config(config);
  }
}

RUNNEL_API void add_entry(Config::Map& entries, const char* name, Config value);

// Fields of an options struct as entries, and back; entries that are missing leave the options as they are.
template <class Options, class Fields>
Config::Map write_fields(const Options& options, const Fields& fields) {
  Config::Map entries;
  fields([&](const auto& field) { add_entry(entries, field.name, config_value(options.*(field.member))); });
  return entries;
}
template <class Options, class Fields>
void read_fields(Options& options, const Fields& fields, const Config& config) {
  fields([&](const auto& field) {
    if (const Config* value = config.find(field.name)) read_config_value(*value, options.*(field.member));
  });
}

// All fields of an options struct: `static constexpr auto fields()`, as attributes of ops have.
template <class Options>
Config::Map options_to_config(const Options& options) {
  return write_fields(options, Options::fields());
}
// A configuration with the entries of these options, too.
template <class Options>
Config with_options(Config config, const Options& options) {
  for (auto& [key, value] : options_to_config(options)) config.set(key, std::move(value));
  return config;
}
template <class Options>
Options options_from_config(const Config& config) {
  Options options;
  read_fields(options, Options::fields(), config);
  return options;
}

// The settings that two kinds of options share, by name and type, from one to the other.
template <class To, class From>
void copy_shared_fields(const From& from, To& to) {
  To::fields()([&](const auto& wanted) {
    From::fields()([&](const auto& given) {
      if constexpr (std::is_same_v<std::decay_t<decltype(from.*(given.member))>,
                                   std::decay_t<decltype(to.*(wanted.member))>>) {
        if (std::string_view(given.name) == wanted.name) to.*(wanted.member) = from.*(given.member);
      }
    });
  });
}

}  // namespace runnel::keras
