#pragma once

// One element of a dataset as pipelines move it: its tensors in order, and what structure they make up.
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runnel/function/tensor_spec.h"
#include "runnel/tensor/nest.h"
#include "runnel/tensor/structure.h"

namespace runnel {

// A structure as text: (float32[28,28], {'a': int64[]}). Templates, so that nothing converts to a structure to be
// shown.
namespace detail {
RUNNEL_API std::ostream& show(std::ostream& out, const NestOf<TensorSpec>& spec);
RUNNEL_API std::ostream& show(std::ostream& out, const Nest& nest);
}  // namespace detail
template <class Leaf>
  requires std::same_as<Leaf, TensorSpec> || std::same_as<Leaf, Tensor>
std::ostream& operator<<(std::ostream& out, const NestOf<Leaf>& nest) {
  return detail::show(out, nest);
}

}  // namespace runnel

namespace runnel::data {

// What the elements of a dataset look like. A dtype that is not known is DType::invalid.
using ElementSpec = NestOf<TensorSpec>;

// A structure without its leaves. There is one object for equal structures, and it is never freed: structures are
// compared by address.
struct Slot {};
struct Structure {
  // What counts as one value when elements are batched: a tensor, or a composite with its tensors.
  struct Part {
    NestKind kind;  // leaf, sparse, ragged or slices
    size_t first;   // of its tensors
    size_t leaves;
    std::string path;  // "['box']"
  };
  NestOf<Slot> nest;
  size_t leaves = 0;
  std::vector<Part> parts;
  bool plain = true;  // all parts are tensors
};

RUNNEL_API const Structure* structure_of(const NestOf<Slot>& nest);
RUNNEL_API const Structure* structure_of(const ElementSpec& spec);
// `guess` is tried first: elements of one dataset mostly have one structure.
RUNNEL_API const Structure* structure_of(const Nest& nest, const Structure* guess = nullptr);

struct Item {
  const Structure* structure = nullptr;
  std::vector<Tensor> tensors;
};

RUNNEL_API Nest to_nest(const Item& item);
RUNNEL_API void from_nest(const Nest& nest, Item& out);
// Bytes that the tensors hold, those of strings included.
RUNNEL_API size_t bytes_of(const Item& item);
RUNNEL_API ElementSpec spec_of(const Item& item);
// Leaves at the same place: the dtype both have, and what both shapes say; nothing where one says nothing. An Error
// naming the place where structures or dtypes differ.
RUNNEL_API ElementSpec relaxed(const ElementSpec& a, const ElementSpec& b, const char* what);
RUNNEL_API std::string str(const ElementSpec& spec);  // "(float32[28,28], int64[])"
// A structure as bytes, for files; composites made elsewhere have none, and are an Error.
RUNNEL_API std::string encode_structure(const Structure* structure);
RUNNEL_API const Structure* decode_structure(std::string_view bytes);
RUNNEL_API TensorSpec scalar_spec(DType dtype);

namespace detail {

using structure::fixed_tensors;
using structure::is_tuple;

template <class T>
NestOf<Slot> fixed_nest() {
  if constexpr (std::same_as<T, Tensor>) {
    return Slot{};
  } else {
    return []<size_t... I>(std::index_sequence<I...>) {
      return NestOf<Slot>::tuple({fixed_nest<std::tuple_element_t<I, T>>()...});
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  }
}
template <class T>
const Structure* fixed_structure() {
  static const Structure* const made = structure_of(fixed_nest<T>());
  return made;
}

[[noreturn]] RUNNEL_API void wrong_structure(const Structure* wanted, const Structure* got);
// An Error where elements are known not to have this structure.
RUNNEL_API void require_structure(const ElementSpec& spec, const Structure* wanted);

}  // namespace detail

// An item as the C++ type T, which its structure must fit. The item's tensors are moved out.
template <class T>
T to_value(Item& item) {
  if constexpr (detail::fixed_tensors<T>() >= 0) {
    if (item.structure != detail::fixed_structure<T>())
      detail::wrong_structure(detail::fixed_structure<T>(), item.structure);
    size_t at = 0;
    auto next = [&] { return std::move(item.tensors[at++]); };
    return structure::from_tensors<T>(next);
  } else {
    return to_nest(item).template as<T>();
  }
}

template <class T>
void from_value(const T& value, Item& out) {
  if constexpr (detail::fixed_tensors<T>() >= 0) {
    out.structure = detail::fixed_structure<T>();
    out.tensors.clear();
    structure::append_tensors(value, out.tensors);
  } else if constexpr (std::convertible_to<const T&, Tensor> && !std::same_as<T, Nest>) {
    out.structure = detail::fixed_structure<Tensor>();
    out.tensors.assign(1, Tensor(value));
  } else {
    from_nest(Nest(value), out);
  }
}

}  // namespace runnel::data
