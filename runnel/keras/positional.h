#pragma once

// The main arguments of layers, which Keras takes before the named ones: Dense(10), Conv2D(32, {3, 5}, {.strides = 2}).

#include <concepts>
#include <type_traits>
#include <utility>

#include "runnel/base/export.h"

namespace runnel::keras {

// The first member of settings that have main arguments. With it, braces without names are never settings: {10} and
// {3, 2} are main arguments. Never given itself.
struct NamedOnly {};

namespace detail {

[[noreturn]] RUNNEL_API void argument_given_twice(const char* class_name);

// Numbers are not cut off, and truth values are no numbers.
template <class From, class To>
concept KeepsKind = !std::is_arithmetic_v<To> ||
                    (std::is_same_v<From, bool> == std::is_same_v<To, bool> && std::is_arithmetic_v<From> &&
                     (std::is_floating_point_v<To> || std::is_integral_v<From>));

// A value of type T, also from one or several in braces. Never from {}, which stands for settings.
template <class T>
class PositionalValue {
 public:
  template <class U>
    requires(std::convertible_to<U, T> && KeepsKind<std::remove_cvref_t<U>, T>)
  PositionalValue(U&& value) : value_(std::forward<U>(value)) {}  // NOLINT: implicit, as below
  template <class A, class B, class... More>
    requires requires(A a, B b, More... more) {
      T{a, b, more...};
    }
  PositionalValue(A a, B b, More... more) : value_{a, b, more...} {}
  // {{1, 2}, {3, 4}}
  PositionalValue(std::pair<int, int> a, std::pair<int, int> b)
    requires std::constructible_from<T, std::pair<int, int>, std::pair<int, int>>
      : value_(a, b) {}

  T& get() { return value_; }

 private:
  T value_;
};

// The same from several in braces only.
template <class T>
class SeveralValues : public PositionalValue<T> {
 public:
  template <class A, class B, class... More>
    requires std::constructible_from<PositionalValue<T>, A, B, More...>
  SeveralValues(A a, B b, More... more) : PositionalValue<T>(a, b, more...) {}  // NOLINT: implicit, as below
  SeveralValues(std::pair<int, int> a, std::pair<int, int> b)
    requires std::constructible_from<T, std::pair<int, int>, std::pair<int, int>>
      : PositionalValue<T>(a, b) {}
};

// In place of an argument that a layer does not have.
struct NoArgument {};

template <auto member>
struct MemberType {
  using type = NoArgument;
};
template <class O, class T, T O::*member>
struct MemberType<member> {
  using type = T;
};

}  // namespace detail

// Which settings are the main arguments: `using Positional = PositionalSettings<&O::filters, &O::kernel_size>`.
template <auto first = nullptr, auto second = nullptr>
struct PositionalSettings {
  using First = detail::PositionalValue<typename detail::MemberType<first>::type>;
  using Second = detail::PositionalValue<typename detail::MemberType<second>::type>;
  using Several = detail::SeveralValues<typename detail::MemberType<first>::type>;
  // In braces: {1000, 64}.
  struct Both {
    First one;
    Second other;
  };

  template <class Options>
  static Options with(Options options, const char* class_name, First& value) {
    set<first>(options, class_name, value);
    return options;
  }
  template <class Options>
  static Options with(Options options, const char* class_name, First& value, Second& other) {
    set<first>(options, class_name, value);
    set<second>(options, class_name, other);
    return options;
  }

 private:
  template <auto member, class Options, class Value>
  static void set(Options& options, const char* class_name, Value& value) {
    if constexpr (!std::is_null_pointer_v<decltype(member)>) {
      using T = typename detail::MemberType<member>::type;
      static_assert(std::equality_comparable<T>, "or it would not be seen that the setting is given twice");
      if (!(options.*member == Options().*member)) detail::argument_given_twice(class_name);
      options.*member = std::move(value.get());
    }
  }
};

namespace detail {
template <class Options>
struct PositionalIn {
  using type = PositionalSettings<>;
};
template <class Options>
  requires requires { typename Options::Positional; }
struct PositionalIn<Options> {
  using type = typename Options::Positional;
};
}  // namespace detail
template <class Options>
using PositionalOf = typename detail::PositionalIn<Options>::type;

}  // namespace runnel::keras
