#pragma once

// Internal: the fields of a struct of settings as listings show them.

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "runnel/base/error.h"
#include "runnel/keras/member_count.h"
#include "runnel/keras/serialization.h"
#include "runnel/keras/settings.h"

namespace runnel::keras {

// A class that is a setting may say what it is called: kTypeName.
template <class T>
std::string setting_type() {
  if constexpr (is_optional<T>) {
    return "optional(" + setting_type<typename T::value_type>() + ")";
  } else if constexpr (requires { T::kTypeName; }) {
    return T::kTypeName;
  } else if constexpr (std::is_same_v<T, bool>) {
    return "bool";
  } else if constexpr (std::is_integral_v<T>) {
    return "int";
  } else if constexpr (std::is_floating_point_v<T>) {
    return "float";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return "str";
  } else if constexpr (std::is_same_v<T, DType>) {
    return "dtype";
  } else if constexpr (std::is_same_v<T, PartialShape>) {
    return "shape";
  } else if constexpr (requires { typename T::mapped_type; }) {
    return "dict(" + setting_type<typename T::key_type>() + ", " + setting_type<typename T::mapped_type>() + ")";
  } else if constexpr (requires { typename T::value_type; }) {
    return "list(" + setting_type<typename T::value_type>() + ")";
  } else {
    return class_name_of(typeid(T));  // "Tensor", "function"
  }
}

template <class T>
inline constexpr bool has_config_form =
    std::is_same_v<T, DType> || std::is_same_v<T, std::vector<std::string>> ||
    std::is_constructible_v<Config, const T&> || requires(const T& value) { value.config(); };
template <class T>
inline constexpr bool has_config_form<std::optional<T>> = has_config_form<T>;

// Null for what cannot be written down: callbacks, tensors, a layer that must be given.
template <class T>
Config default_of(const T& value) {
  if constexpr (has_config_form<T>) {
    try {
      return config_value(value);
    } catch (const Error&) {
    }
  }
  return {};
}

// `list` gives the list of fields, in which every member of the struct must be. A name that comes twice is taken as it
// is said first.
template <class Options, class List>
std::vector<Setting> settings_in(List list) {
  constexpr size_t guards = requires(Options& o) { o.named_only; } ? 1 : 0;  // of type NamedOnly
  static_assert(has_member_count<Options, count_names(list()) + guards>,
                "a member of the struct is not among its fields");
  std::vector<Setting> all;
  const Options defaults{};
  list()([&](const auto& field) {
    const auto& value = defaults.*(field.member);
    const auto is_listed = [&](const Setting& s) { return s.name == field.name; };
    if (std::ranges::any_of(all, is_listed)) return;
    all.push_back({field.name, setting_type<std::decay_t<decltype(value)>>(), default_of(value), field.doc});
  });
  return all;
}
template <class Options>
std::vector<Setting> settings_of() {
  return settings_in<Options>([] { return Options::fields(); });
}

}  // namespace runnel::keras
