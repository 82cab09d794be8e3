#pragma once

// Arguments and results of functions: tensors and plain values in C++ structures.
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "runnel/base/small_vector.h"
#include "runnel/function/tensor_spec.h"
#include "runnel/op/gradient.h"
#include "runnel/ops/state.h"
#include "runnel/tensor/nest.h"

namespace runnel::function_detail {

template <class T>
inline constexpr bool is_vector = false;
template <class T, class A>
inline constexpr bool is_vector<std::vector<T, A>> = true;
template <class T>
inline constexpr bool is_array = false;
template <class T, size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class K, class T>
inline constexpr bool is_map<std::map<K, T>> = true;
template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

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

// What makes a trace fit a call: dtype and shape of tensors, identity of variables, the value of everything else. As a
// list of words, and the tensors found on the way.
class RUNNEL_API CallKey {
 public:
  SmallVector<uint64_t, 48> words;
  SmallVector<uint32_t, 32> dims_at;  // words that are dimensions
  SmallVector<const Tensor*, 16> tensors;

  void tag(uint64_t kind, uint64_t more = 0) { words.push_back(kind << 56 | more); }
  void tensor(const Tensor& t) {
    if (!t.defined()) return tag(1);
    tensors.push_back(&t);
    if (t.is_symbolic()) [[unlikely]] {
      return shape_of(t.dtype(), t.partial_shape());
    }
    const Dims& dims = t.shape().dims();
    tag(2, static_cast<uint64_t>(t.dtype()) << 8 | dims.size());
    for (const int64_t d : dims) {
      dims_at.push_back(static_cast<uint32_t>(words.size()));
      words.push_back(static_cast<uint64_t>(d));
    }
  }
  void shape_of(DType dtype, const PartialShape& shape);
  void text(std::string_view s);
  template <class T>
  void number(T value) {
    if constexpr (std::is_enum_v<T>) {
      tag(4);
      words.push_back(static_cast<uint64_t>(value));
    } else if constexpr (std::integral<T>) {
      tag(4, std::same_as<T, bool> ? 1 : sizeof(T) << 1 | std::is_signed_v<T>);
      words.push_back(static_cast<uint64_t>(value));
    } else {
      tag(5, sizeof(T));
      std::array<uint64_t, (sizeof(T) + 7) / 8> bits{};
      std::memcpy(bits.data(), &value, sizeof(T));
      for (const uint64_t w : bits) words.push_back(w);
    }
  }
  void variable(const Variable& v) {
    tag(6);
    words.push_back(v.defined() ? reinterpret_cast<uintptr_t>(&v.slot()) : 0);
  }
  const Tensor& own(Tensor t) {
    owned_.push_back(std::make_unique<Tensor>(std::move(t)));
    return *owned_.back();
  }

  template <class T>
  void add(const T& value) {
    if constexpr (std::same_as<T, Tensor>) {
      tensor(value);
    } else if constexpr (std::same_as<T, TensorSpec>) {
      // Stands for a tensor that is not there: a symbol of its own would do, but only its description counts.
      specs.push_back(value);
      shape_of(value.dtype, value.shape);
      tensors.push_back(nullptr);
    } else if constexpr (std::same_as<T, Variable>) {
      variable(value);
    } else if constexpr (PlainText<T>) {
      text(value);
    } else if constexpr (PlainNumber<T>) {
      number(value);
    } else if constexpr (std::same_as<T, Gradient>) {
      tag(7, value.is_slices());
      if (!value.is_slices()) {
        tensor(value.dense());
      } else {
        tensor(value.slices().values);
        tensor(value.slices().indices);
        tensor(value.slices().dense_shape);
      }
    } else if constexpr (is_vector<T> || is_array<T>) {
      tag(8, value.size());
      for (const auto& item : value) add<typename T::value_type>(item);
    } else if constexpr (is_map<T>) {
      tag(9, value.size());
      for (const auto& [key, item] : value) {
        add(key);
        add(item);
      }
    } else if constexpr (is_tuple<T>) {
      std::apply([&](const auto&... items) { (add(items), ...); }, value);
    } else if constexpr (is_optional<T>) {
      tag(10, value.has_value());
      if (value) add(*value);
    } else if constexpr (std::same_as<T, Nest>) {
      nest(value);
    } else {
      static_assert(NestLike<T>,
                    "a function takes and returns tensors, variables, numbers, texts and structures of them");
      owned_nests_.push_back(std::make_unique<Nest>(value));
      nest(*owned_nests_.back());
    }
  }

  std::vector<TensorSpec> specs;  // given in place of tensors, in order

 private:
  void nest(const Nest& n);
  std::vector<std::unique_ptr<Tensor>> owned_;
  std::vector<std::unique_ptr<Nest>> owned_nests_;
};

// One line per thing a call depends on: where it is, and what it is ("float32[2,3]", "int 3").
using CallText = std::vector<std::pair<std::string, std::string>>;
RUNNEL_API std::string tensor_text(const Tensor& t);
RUNNEL_API std::string number_text(double value);
RUNNEL_API void nest_text(const Nest& n, const std::string& path, CallText& out);

template <class T>
void describe(const T& value, const std::string& path, CallText& out) {
  if constexpr (std::same_as<T, Tensor>) {
    out.emplace_back(path, tensor_text(value));
  } else if constexpr (std::same_as<T, TensorSpec>) {
    out.emplace_back(path, value.str());
  } else if constexpr (std::same_as<T, Variable>) {
    out.emplace_back(path, value.defined() ? "Variable '" + value.name() + "'" : "no variable");
  } else if constexpr (PlainText<T>) {
    out.emplace_back(path, "\"" + std::string(std::string_view(value)) + "\"");
  } else if constexpr (std::same_as<T, bool>) {
    out.emplace_back(path, value ? "true" : "false");
  } else if constexpr (std::is_enum_v<T>) {
    out.emplace_back(path, std::to_string(static_cast<int64_t>(value)));
  } else if constexpr (std::integral<T>) {
    out.emplace_back(path, std::to_string(value));
  } else if constexpr (std::floating_point<T>) {
    out.emplace_back(path, number_text(static_cast<double>(value)));
  } else if constexpr (PlainNumber<T>) {
    out.emplace_back(path, "a number");
  } else if constexpr (std::same_as<T, Gradient>) {
    out.emplace_back(path,
                     value.defined() ? (value.is_slices() ? "IndexedSlices" : tensor_text(value.dense())) : "none");
  } else if constexpr (is_vector<T> || is_array<T>) {
    out.emplace_back(path, std::to_string(value.size()) + " items");
    size_t i = 0;
    for (const auto& item : value) describe<typename T::value_type>(item, path + "[" + std::to_string(i++) + "]", out);
  } else if constexpr (is_map<T>) {
    out.emplace_back(path, std::to_string(value.size()) + " entries");
    for (const auto& [key, item] : value) {
      if constexpr (std::convertible_to<decltype(key), std::string>) {
        describe(item, path + "[\"" + std::string(key) + "\"]", out);
      } else if constexpr (std::is_arithmetic_v<std::decay_t<decltype(key)>>) {
        describe(item, path + "[" + std::to_string(key) + "]", out);
      } else {
        describe(item, path + "[...]", out);
      }
    }
  } else if constexpr (is_tuple<T>) {
    size_t i = 0;
    std::apply([&](const auto&... items) { (describe(items, path + "[" + std::to_string(i++) + "]", out), ...); },
               value);
  } else if constexpr (is_optional<T>) {
    out.emplace_back(path, value ? "a value" : "no value");
    if (value) describe(*value, path, out);
  } else if constexpr (std::same_as<T, Nest>) {
    nest_text(value, path, out);
  } else {
    nest_text(Nest(value), path, out);
  }
}

// Where a trace gets a Tensor for what the caller gave.
template <class T>
using Traced = std::conditional_t<std::same_as<T, TensorSpec>, Tensor, T>;

// A result made of tensors alone, in order; for calls whose result is not there yet (a function that calls itself).
template <class R>
constexpr int fixed_tensors() {
  if constexpr (std::same_as<R, Tensor>) {
    return 1;
  } else if constexpr (is_tuple<R>) {
    return []<size_t... I>(std::index_sequence<I...>) {
      constexpr bool all = ((fixed_tensors<std::tuple_element_t<I, R>>() >= 0) && ...);
      return all ? (fixed_tensors<std::tuple_element_t<I, R>>() + ... + 0) : -1;
    }(std::make_index_sequence<std::tuple_size_v<R>>());
  } else {
    return -1;
  }
}

}  // namespace runnel::function_detail
