#pragma once

// Internal: how many members a struct of settings has, so that a list of its fields can be checked to name them all.

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace runnel::keras {

template <class T>
class PerOutput;

namespace detail {

struct AnyValue;
// Types that take an AnyValue by a constructor, beside which a conversion to the type itself would be ambiguous: those
// that hold a value and take what converts to it. Tensors would take it as a text.
template <class T>
inline constexpr bool takes_any_value = std::is_same_v<T, std::string_view>;
template <class T>
inline constexpr bool takes_any_value<std::optional<T>> = std::is_constructible_v<T, AnyValue>;
template <class T>
inline constexpr bool takes_any_value<PerOutput<T>> = std::convertible_to<AnyValue, T>;

// Stands for the value of a member of any type; never made.
struct AnyValue {
  template <class T>
    requires(!takes_any_value<T>)
  operator T() const;  // NOLINT: implicit
};

template <class Options, size_t... I>
constexpr bool takes_values(std::index_sequence<I...>) {
  return requires { Options{(static_cast<void>(I), AnyValue())...}; };
}

}  // namespace detail

// Does the aggregate have exactly this many members? It can be made from as many values, and not from one more.
template <class Options, size_t count>
inline constexpr bool has_member_count = detail::takes_values<Options>(std::make_index_sequence<count>()) &&
                                         !detail::takes_values<Options>(std::make_index_sequence<count + 1>());

// How many different names a list of fields has.
template <class Fields>
constexpr size_t count_names(const Fields& fields) {
  std::array<std::string_view, 64> names;
  size_t count = 0;
  fields([&](const auto& field) {
    for (size_t i = 0; i < count; ++i) {
      if (names[i] == field.name) return;
    }
    names[count++] = field.name;
  });
  return count;
}

}  // namespace runnel::keras
