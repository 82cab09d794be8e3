#pragma once

// Ops that only move elements are compiled per element size, not per dtype.

#include <cstddef>
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

template <class E>
inline void fill_run(const E& value, E* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = value;
}

}  // namespace runnel::cpu
