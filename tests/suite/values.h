#pragma once

// Tensors as numbers: casts that tell which elements fit, and comparisons that tell what differs.
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "runnel/tensor/tensor.h"
#include "runnel/tensor/type_sets.h"

namespace runnel::test {

using Value = std::complex<long double>;  // holds every plain element exactly

inline std::vector<Value> values_of(const Tensor& t) {
  std::vector<Value> out;
  const Tensor host = t.to_host();
  plain_types.for_each([&]<class T>() {
    if (dtype_of<T> != host.dtype()) return;
    for (int64_t i = 0; i < host.num_elements(); ++i) {
      const T v = host.data<T>()[i];
      if constexpr (is_complex(dtype_of<T>)) {
        out.emplace_back(v.real(), v.imag());
      } else if constexpr (HalfFloat<T>) {
        out.emplace_back(static_cast<float>(v));
      } else {
        out.emplace_back(static_cast<long double>(v));
      }
    }
  });
  return out;
}

// Writes `v` as an element of T; false when T cannot hold it (rounding of floats is no misfit).
template <class T>
bool store(Value v, T& to) {
  if constexpr (is_complex(dtype_of<T>)) {
    using R = typename T::value_type;
    to = T(static_cast<R>(v.real()), static_cast<R>(v.imag()));
    return true;
  } else if constexpr (std::is_same_v<T, bool>) {
    to = v != Value(0);
    return v == Value(0) || v == Value(1);
  } else if constexpr (std::is_integral_v<T>) {
    const long double r = v.real();
    const bool in_range = r >= static_cast<long double>(std::numeric_limits<T>::min()) &&
                          r <= static_cast<long double>(std::numeric_limits<T>::max());
    to = in_range ? static_cast<T>(r) : T(0);
    return in_range && v.imag() == 0 && r == std::trunc(r);
  } else {
    float limit = std::numeric_limits<float>::max();
    if constexpr (std::is_same_v<T, Half>) limit = 65504;
    to = T(static_cast<std::conditional_t<HalfFloat<T>, float, T>>(v.real()));
    return v.imag() == 0 && (std::is_same_v<T, double> || !std::isfinite(v.real()) || std::abs(v.real()) <= limit);
  }
}

struct Cast {
  Tensor value;
  std::vector<bool> fits;  // per element
  bool lossless() const {
    for (bool f : fits) {
      if (!f) return false;
    }
    return true;
  }
};

// Numbers become their decimal text (zero the empty string: what zeros are among strings).
inline Cast cast_values(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return {t, std::vector<bool>(static_cast<size_t>(t.num_elements()), true)};
  Cast out{Tensor::empty(dtype, t.shape()), std::vector<bool>(static_cast<size_t>(t.num_elements()), false)};
  if (t.dtype() == DType::string) {
    if (is_plain(dtype)) std::memset(out.value.mutable_data<char>(), 0, out.value.num_bytes());
    return out;
  }
  const std::vector<Value> values = values_of(t);
  for (size_t i = 0; i < values.size(); ++i) {
    data_types.for_each([&]<class T>() {
      if (dtype_of<T> != dtype) return;
      if constexpr (std::is_same_v<T, Bytes>) {
        std::ostringstream text;
        text << static_cast<double>(values[i].real());
        if (values[i].imag() != 0) text << 'i' << static_cast<double>(values[i].imag());
        out.value.mutable_data<Bytes>()[i] = values[i] == Value(0) ? Bytes("") : Bytes(text.str());
        out.fits[i] = true;
      } else {
        out.fits[i] = store<T>(values[i], out.value.mutable_data<T>()[i]);
      }
    });
  }
  return out;
}

inline bool close(long double a, long double e, double relative, double absolute) {
  if (std::isnan(a) || std::isnan(e)) return std::isnan(a) && std::isnan(e);
  if (a == e) return true;
  if (std::isinf(a) || std::isinf(e)) return false;
  return std::abs(a - e) <= static_cast<long double>(absolute) + static_cast<long double>(relative) * std::abs(e);
}

// What differs, or nothing. Floats within the tolerances, everything else exactly; elements whose mask is false
// are passed over.
inline std::string difference(const Tensor& actual, const Tensor& expected, double relative, double absolute,
                              const std::vector<bool>& mask = {}) {
  std::ostringstream text;
  if (!actual.defined()) return "no tensor at all";
  if (actual.dtype() != expected.dtype()) {
    text << "dtype " << dtype_name(actual.dtype()) << ", expected " << dtype_name(expected.dtype());
  } else if (!(actual.shape() == expected.shape())) {
    text << "shape " << actual.shape().str() << ", expected " << expected.shape().str();
  } else if (actual.dtype() == DType::string) {
    const auto a = actual.to_vector<std::string>();
    const auto e = expected.to_vector<std::string>();
    for (size_t i = 0; i < a.size() && text.str().empty(); ++i) {
      if (a[i] != e[i]) text << "element " << i << " is \"" << a[i] << "\", expected \"" << e[i] << '"';
    }
  } else {
    const bool inexact = is_float(actual.dtype()) || is_complex(actual.dtype());
    const auto a = values_of(actual);
    const auto e = values_of(expected);
    for (size_t i = 0; i < a.size() && text.str().empty(); ++i) {
      if (!mask.empty() && !mask[i]) continue;
      const bool same = inexact ? close(a[i].real(), e[i].real(), relative, absolute) &&
                                      close(a[i].imag(), e[i].imag(), relative, absolute)
                                : a[i] == e[i];
      if (same) continue;
      text.precision(10);
      text << "element " << i << " of " << dtype_name(actual.dtype()) << actual.shape().str() << " is ";
      if (is_complex(actual.dtype())) {
        text << a[i] << ", expected " << e[i];
      } else {
        text << a[i].real() << ", expected " << e[i].real();
      }
    }
  }
  return text.str();
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() == DType::string) return a.to_vector<std::string>() == b.to_vector<std::string>();
  if (!is_plain(a.dtype())) return true;
  return std::memcmp(a.raw(), b.raw(), a.num_bytes()) == 0;
}

}  // namespace runnel::test
