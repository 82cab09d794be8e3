#pragma once

#include <complex>

#include "runnel/tensor/dtype.h"

namespace runnel {

// A set of C++ element types, usable as a value: an op's constraint and the list its kernels are made for.
template <class... Ts>
struct Types {
  static constexpr uint32_t mask = (0u | ... | (1u << static_cast<int>(dtype_of<Ts>)));
  static constexpr bool contains(DType t) { return (mask >> static_cast<int>(t) & 1) != 0; }
  template <class F>
  static constexpr void for_each(F&& f) {
    (f.template operator()<Ts>(), ...);
  }
};
template <class... A, class... B>
constexpr Types<A..., B...> operator+(Types<A...>, Types<B...>) {
  return {};
}

inline constexpr Types<Half, BFloat16, float, double> floating;
inline constexpr Types<int8_t, int16_t, int32_t, int64_t> signed_integers;
inline constexpr Types<uint8_t, uint16_t, uint32_t, uint64_t> unsigned_integers;
inline constexpr Types<std::complex<float>, std::complex<double>> complexes;
inline constexpr Types<int32_t, int64_t> index_types;
inline constexpr Types<int16_t, int32_t, int64_t> narrow_index_types;  // where TensorFlow takes small ones too
inline constexpr Types<bool> booleans;
inline constexpr Types<Bytes> strings_only;
inline constexpr auto integers = signed_integers + unsigned_integers;
inline constexpr auto real_numbers = floating + integers;
inline constexpr auto numbers = real_numbers + complexes;
inline constexpr auto floating_or_complex = floating + complexes;
inline constexpr auto plain_types = numbers + booleans;
inline constexpr auto data_types = plain_types + strings_only;  // everything but handles
inline constexpr auto all_types = data_types + Types<ResourceHandle, VariantValue>{};

}  // namespace runnel
