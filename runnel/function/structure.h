#pragma once

// Arguments and results of functions: tensors and plain values in C++ structures.
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "runnel/function/tensor_spec.h"
#include "runnel/op/gradient.h"
#include "runnel/ops/state.h"
#include "runnel/tensor/nest.h"
#include "runnel/tensor/structure.h"

namespace runnel::function_detail {

using structure::fixed_tensors;
using structure::is_array;
using structure::is_map;
using structure::is_optional;
using structure::is_tuple;
using structure::is_vector;

template <class T>
concept PlainText = std::convertible_to<const T&, std::string_view>;
template <class T>
concept PlainNumber = Number<T> || std::is_enum_v<T>;
// SparseTensor, RaggedTensor, IndexedSlices, TensorArray: there and back through a Nest.
template <class T>
concept NestLike = std::constructible_from<Nest, const T&> && requires(const Nest& n) { n.template as<T>(); };

// A copy of `value` in which every tensor t is f(t); tensors that refer to nothing stay so.
template <class T, class F>
T map_tensors(const T& value, F& f) {
  if constexpr (std::same_as<T, Tensor>) {
    return value.defined() ? f(value) : value;
  } else if constexpr (std::same_as<T, Gradient>) {
    if (!value.defined()) return value;
    if (!value.is_slices()) return Gradient(f(value.dense()));
    const IndexedSlices& s = value.slices();
    Tensor values = f(s.values);
    Tensor indices = f(s.indices);
    return Gradient(IndexedSlices{values, indices, s.dense_shape.defined() ? f(s.dense_shape) : Tensor()});
  } else if constexpr (std::same_as<T, Variable> || PlainNumber<T> || PlainText<T>) {
    return value;
  } else if constexpr (is_vector<T>) {
    T out;
    for (const auto& item : value) out.push_back(map_tensors<typename T::value_type>(item, f));
    return out;
  } else if constexpr (is_array<T>) {
    T out = value;
    for (auto& item : out) item = map_tensors(item, f);
    return out;
  } else if constexpr (is_map<T>) {
    T out;
    for (const auto& [key, item] : value) out.emplace(key, map_tensors(item, f));
    return out;
  } else if constexpr (is_tuple<T>) {
    return std::apply([&](const auto&... items) { return T{map_tensors(items, f)...}; }, value);
  } else if constexpr (is_optional<T>) {
    return value ? T(map_tensors(*value, f)) : value;
  } else if constexpr (std::same_as<T, Nest>) {
    return nest::map_structure([&](const Tensor& t) { return map_tensors(t, f); }, value);
  } else {
    static_assert(NestLike<T>,
                  "a function takes and returns tensors, variables, numbers, texts and structures of them");
    return nest::map_structure([&](const Tensor& t) { return map_tensors(t, f); }, Nest(value)).template as<T>();
  }
}

// What a caller gets of what the body of a function returns: a variable becomes its value, a text that others own a
// copy, for the trace outlives them; the rest stays as it is.
template <class R>
struct Returned {
  using type = R;
};
template <class R>
using ReturnedAs = typename Returned<R>::type;
template <>
struct Returned<Variable> {
  using type = Tensor;
};
template <class T>
  requires std::same_as<T, const char*> || std::same_as<T, char*> || std::same_as<T, std::string_view>
struct Returned<T> {
  using type = std::string;
};
template <class T, class A>
struct Returned<std::vector<T, A>> {
  using type = std::vector<ReturnedAs<T>>;
};
template <class T, size_t N>
struct Returned<std::array<T, N>> {
  using type = std::array<ReturnedAs<T>, N>;
};
template <class K, class T>
struct Returned<std::map<K, T>> {
  using type = std::map<ReturnedAs<K>, ReturnedAs<T>>;
};
template <class... T>
struct Returned<std::tuple<T...>> {
  using type = std::tuple<ReturnedAs<T>...>;
};
template <class A, class B>
struct Returned<std::pair<A, B>> {
  using type = std::pair<ReturnedAs<A>, ReturnedAs<B>>;
};
template <class T>
struct Returned<std::optional<T>> {
  using type = std::optional<ReturnedAs<T>>;
};

template <class R>
ReturnedAs<R> returned(const R& value) {
  using Out = ReturnedAs<R>;
  if constexpr (std::same_as<R, Out>) {
    return value;
  } else if constexpr (std::same_as<R, Variable>) {
    return value.defined() ? value.value() : Tensor();
  } else if constexpr (PlainText<R>) {
    return Out(value);
  } else if constexpr (is_tuple<R>) {
    return std::apply([](const auto&... items) { return Out{returned(items)...}; }, value);
  } else if constexpr (is_map<R>) {
    Out out;
    for (const auto& [key, item] : value) out.emplace(returned(key), returned(item));
    return out;
  } else if constexpr (is_vector<R>) {
    Out out;
    for (const auto& item : value) out.push_back(returned(item));
    return out;
  } else if constexpr (is_array<R>) {
    Out out;
    for (size_t i = 0; i < value.size(); ++i) out[i] = returned(value[i]);
    return out;
  } else {
    return value ? Out(returned(*value)) : Out();
  }
}

// Where a trace gets a Tensor for what the caller gave.
template <class T>
using Traced = std::conditional_t<std::same_as<T, TensorSpec>, Tensor, T>;

}  // namespace runnel::function_detail
