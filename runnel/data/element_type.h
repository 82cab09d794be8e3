#pragma once

#include <array>
#include <cstddef>

#include "runnel/tensor/tensor.h"

namespace runnel::data {

// Stands for elements of N bytes that are only copied.
template <size_t N>
struct alignas(N) OpaqueElement {
  std::array<std::byte, N> bytes{};
};

// f of a value of a type that can stand for elements of the dtype where they are only copied.
template <class F>
void with_element_type(DType dtype, const F& f) {
  if (dtype == DType::string) return f(Bytes());
  if (dtype == DType::variant) return f(VariantValue());
  if (dtype == DType::resource) return f(ResourceHandle());
  switch (dtype_size(dtype)) {
    case 1: return f(OpaqueElement<1>());
    case 2: return f(OpaqueElement<2>());
    case 4: return f(OpaqueElement<4>());
    case 8: return f(OpaqueElement<8>());
    default: return f(OpaqueElement<16>());
  }
}

}  // namespace runnel::data
