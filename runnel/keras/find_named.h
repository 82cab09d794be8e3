#pragma once

// Internal: the members of a family of described functions, found by name or description, and listed.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/keras/named_callable.h"
#include "runnel/keras/settings_of.h"

namespace runnel::keras {

template <class T>
struct NamedMaker {
  std::string_view class_name;  // "GlorotUniform"
  std::string_view name;        // "glorot_uniform"
  T (*make)(const Config& settings);
  std::vector<Setting> (*settings)();
};
// One that is made from a struct of settings by `function`, or without any.
template <class T, class Options, T (*function)(const Options&)>
constexpr NamedMaker<T> maker(std::string_view class_name, std::string_view name) {
  return {class_name, name, [](const Config& settings) { return function(options_from_config<Options>(settings)); },
          [] { return settings_of<Options>(); }};
}
template <class T, T (*function)()>
constexpr NamedMaker<T> maker(std::string_view class_name, std::string_view name) {
  return {class_name, name, [](const Config&) { return function(); }, [] { return std::vector<Setting>(); }};
}

// `function`, written as what is made of these settings.
template <class T, class Options>
T described(const char* class_name, const Options& options, typename T::Function function) {
  return {object_config(class_name, options_to_config(options)), std::move(function)};
}

struct Description {
  std::string name;
  Config settings;  // a map, without entries that are null
};
// A name alone, or {"class_name": ..., "config": {...}}; anything else is an Error.
Description read_description(const char* what, const Config& description);
[[noreturn]] void unknown_description(const char* what, const std::string& name,
                                      const std::vector<std::string_view>& known);

// A function of your own by its registered name; none if there is no such name.
template <class T>
T find_registered(const Description& wanted) {
  using Named = NamedFunction<typename T::Signature>;
  const std::shared_ptr<Named> found = SerializableObjects::make<Named>(wanted.name, wanted.settings);
  return found ? T(found->description, found->function) : T();
}

template <class T, size_t N>
T find_named(const char* what, const NamedMaker<T> (&makers)[N], const Config& description) {
  const Description wanted = read_description(what, description);
  std::vector<std::string_view> known;
  for (const NamedMaker<T>& maker : makers) {
    if (wanted.name == maker.class_name || wanted.name == maker.name) return maker.make(wanted.settings);
    known.push_back(maker.name);
  }
  if (T own = find_registered<T>(wanted)) return own;
  unknown_description(what, wanted.name, known);
}

// Every class once, also one with several names.
template <class T, size_t N>
void list_named(const char* kind, const NamedMaker<T> (&makers)[N], std::vector<ClassSettings>& all) {
  for (const NamedMaker<T>& maker : makers) {
    const auto is_same = [&](const ClassSettings& c) { return c.kind == kind && c.name == maker.class_name; };
    if (std::ranges::none_of(all, is_same)) all.push_back({kind, std::string(maker.class_name), maker.settings()});
  }
}

}  // namespace runnel::keras
