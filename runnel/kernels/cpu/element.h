#pragma once

// Ops that only move elements are compiled per element size, not per dtype.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runnel/tensor/dtype.h"

namespace runnel::cpu {

// N bytes moved as one, at any address.
template <size_t N>
struct Cell {
  unsigned char bytes[N];
  friend bool operator==(const Cell&, const Cell&) = default;
};

// Calls f.template operator()<E>() with the type that stands for elements of `dtype`: a Cell of its size, or the
// object type itself (strings, handles), whose copies count references.
template <class F>
decltype(auto) with_element(DType dtype, F&& f) {
  switch (dtype) {
    case DType::string: return f.template operator()<Bytes>();
    case DType::resource: return f.template operator()<ResourceHandle>();
    case DType::variant: return f.template operator()<VariantValue>();
    default: break;
  }
  switch (dtype_size(dtype)) {
    case 1: return f.template operator()<Cell<1>>();
    case 2: return f.template operator()<Cell<2>>();
    case 4: return f.template operator()<Cell<4>>();
    case 8: return f.template operator()<Cell<8>>();
    default: return f.template operator()<Cell<16>>();
  }
}

template <class E>
inline void copy_run(const E* from, E* to, int64_t n) {
  if constexpr (std::is_trivially_copyable_v<E>) {
    if (n > 0) std::memcpy(to, from, static_cast<size_t>(n) * sizeof(E));
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

// The integer that N bytes at any address may be read and written as, so that loops run in vectors.
template <size_t N>
struct LooseInteger {};
template <>
struct LooseInteger<1> {
  using type [[gnu::may_alias]] = uint8_t;
};
template <>
struct LooseInteger<2> {
  using type [[gnu::may_alias, gnu::aligned(1)]] = uint16_t;
};
template <>
struct LooseInteger<4> {
  using type [[gnu::may_alias, gnu::aligned(1)]] = uint32_t;
};
template <>
struct LooseInteger<8> {
  using type [[gnu::may_alias, gnu::aligned(1)]] = uint64_t;
};
template <class E>
inline constexpr bool has_loose_integer = std::is_trivially_copyable_v<E> && sizeof(E) <= 8;

template <class E>
inline void fill_run(const E& value, E* to, int64_t n) {
  if constexpr (has_loose_integer<E>) {
    const auto bits = *reinterpret_cast<const typename LooseInteger<sizeof(E)>::type*>(&value);
    auto* p = reinterpret_cast<typename LooseInteger<sizeof(E)>::type*>(to);
    for (int64_t i = 0; i < n; ++i) p[i] = bits;
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = value;
  }
}

}  // namespace runnel::cpu
