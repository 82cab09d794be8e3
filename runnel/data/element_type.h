#pragma once

#include <complex>
#include <cstdint>

#include "runnel/tensor/tensor.h"

namespace runnel::data {

// f of a value of a type that can stand for elements of the dtype where they are only copied.
template <class F>
void with_element_type(DType dtype, const F& f) {
  if (dtype == DType::string) return f(Bytes());
  if (dtype == DType::variant) return f(VariantValue());
  if (dtype == DType::resource) return f(ResourceHandle());
  switch (dtype_size(dtype)) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    default: return f(std::complex<double>{});
  }
}

}  // namespace runnel::data
