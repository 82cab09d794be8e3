#pragma once

// Structures as C++ types: tuples, vectors, arrays, maps and optionals of tensors and other values. What functions take
// and return, and what datasets yield, is walked here; as values of one type they are a Nest (tensor/nest.h), which
// goes by the same traits.
#include <array>
#include <concepts>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "runnel/tensor/tensor.h"

namespace runnel::structure {

template <class T>
inline constexpr bool is_tuple = false;
template <class... Ts>
inline constexpr bool is_tuple<std::tuple<Ts...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_array = false;
template <class T, size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class K, class T>
inline constexpr bool is_map<std::map<K, T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

// Shows a value to `v`, in order: v.list(size), v.map(size) and v.optional(has_value) of what they are, then each part
// between v.item(index) or v.entry(key) and v.done(). Everything that is no structure is v.leaf(value).
template <class T, class Visitor>
void visit(const T& value, Visitor& v) {
  if constexpr (is_vector<T> || is_array<T>) {
    v.list(value.size());
    size_t i = 0;
    for (const auto& item : value) {
      v.item(i++);
      visit<typename T::value_type>(item, v);
      v.done();
    }
  } else if constexpr (is_map<T>) {
    v.map(value.size());
    for (const auto& [key, item] : value) {
      v.entry(key);
      visit(item, v);
      v.done();
    }
  } else if constexpr (is_tuple<T>) {
    size_t i = 0;
    const auto part = [&](const auto& item) {
      v.item(i++);
      visit(item, v);
      v.done();
    };
    std::apply([&](const auto&... items) { (part(items), ...); }, value);
  } else if constexpr (is_optional<T>) {
    v.optional(value.has_value());
    if (value) visit(*value, v);
  } else {
    v.leaf(value);
  }
}

// Tensors in a value of this type where the type alone says how many, else -1.
template <class T>
constexpr int fixed_tensors() {
  if constexpr (std::same_as<T, Tensor>) {
    return 1;
  } else if constexpr (is_tuple<T>) {
    return []<size_t... I>(std::index_sequence<I...>) {
      constexpr bool all = ((fixed_tensors<std::tuple_element_t<I, T>>() >= 0) && ...);
      return all ? (fixed_tensors<std::tuple_element_t<I, T>>() + ... + 0) : -1;
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  } else {
    return -1;
  }
}

// A value of such a type from next(), called once for each of its tensors in order.
template <class T, class Next>
T from_tensors(Next& next) {
  if constexpr (std::same_as<T, Tensor>) {
    return next();
  } else {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return T{from_tensors<std::tuple_element_t<I, T>>(next)...};
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  }
}

// The tensors of such a value, in order.
template <class T>
void append_tensors(const T& value, std::vector<Tensor>& tensors) {
  if constexpr (std::same_as<T, Tensor>) {
    tensors.push_back(value);
  } else {
    std::apply([&](const auto&... each) { (append_tensors(each, tensors), ...); }, value);
  }
}

}  // namespace runnel::structure
