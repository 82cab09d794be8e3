#pragma once

// Internal: the members of a family of described functions, found by name or description.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/keras/named_callable.h"

namespace runnel::keras {

template <class T>
struct NamedMaker {
  std::string_view class_name;  // "GlorotUniform"
  std::string_view name;        // "glorot_uniform"
  T (*make)(const Config& settings);
};

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

}  // namespace runnel::keras
