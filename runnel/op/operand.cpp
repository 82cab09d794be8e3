#include "runnel/op/operand.h"

#include <cmath>

#include "runnel/base/decimal.h"
#include "runnel/base/format.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {
namespace {

template <class T>
Tensor scalar(T value) {
  Tensor t = Tensor::empty(dtype_of<T>, {});
  *t.mutable_data<T>() = value;
  return t;
}

[[noreturn]] void misfit(const std::string& value, DType dtype) {
  throw invalid_argument("the literal {} cannot be a value of dtype {}", value, dtype_name(dtype));
}

template <class T>
std::string number_text(T v) {
  if constexpr (std::floating_point<T>) {
    return general_text(v);  // never "-nan"
  } else {
    return fmt::format("{}", v);
  }
}

template <class T>
T from_integer(int64_t v) {
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    const T narrow = static_cast<T>(v);
    // Unsigned 64-bit literals travel as their two's complement.
    if (!std::same_as<T, uint64_t> && static_cast<int64_t>(narrow) != v) misfit(std::to_string(v), dtype_of<T>);
    return narrow;
  } else {
    return T(static_cast<float>(v));
  }
}
template <>
double from_integer<double>(int64_t v) {
  return static_cast<double>(v);
}
template <>
float from_integer<float>(int64_t v) {
  return static_cast<float>(v);
}

template <class To, class From>
To convert_literal(From v) {
  if constexpr (std::same_as<To, std::complex<float>> || std::same_as<To, std::complex<double>>) {
    if constexpr (std::same_as<From, std::complex<float>> || std::same_as<From, std::complex<double>>) {
      return To(v);
    } else {
      return To(static_cast<typename To::value_type>(v));
    }
  } else if constexpr (std::same_as<From, bool>) {
    if constexpr (std::same_as<To, bool>) return v;
    misfit(v ? "true" : "false", dtype_of<To>);
  } else if constexpr (std::same_as<To, bool>) {
    misfit(number_text(v), DType::bool_);
  } else if constexpr (std::floating_point<From>) {
    if constexpr (std::integral<To>) {
      misfit(number_text(v), dtype_of<To>);
    } else if constexpr (std::same_as<To, double>) {
      return static_cast<double>(v);
    } else {
      return To(static_cast<float>(v));
    }
  } else {
    return from_integer<To>(static_cast<int64_t>(v));
  }
}

}  // namespace

DType Operand::natural_dtype() const {
  switch (kind_) {
    case Kind::boolean: return DType::bool_;
    case Kind::integer: return DType::int32;
    case Kind::long_integer: return DType::int64;
    case Kind::real: return DType::float32;
    case Kind::complex: return DType::complex128;
    case Kind::list: return own_.dtype() == DType::float64 ? DType::float32 : own_.dtype();
    case Kind::none: break;
  }
  return tensor_->dtype();
}

Tensor Operand::as(DType dtype) const {
  Tensor result;
  plain_types.for_each([&]<class T>() {
    if (dtype_of<T> != dtype || result.defined()) return;
    switch (kind_) {
      case Kind::boolean: result = scalar<T>(convert_literal<T>(integer_ != 0)); break;
      case Kind::integer:
      case Kind::long_integer: result = scalar<T>(convert_literal<T>(integer_)); break;
      case Kind::real: result = scalar<T>(convert_literal<T>(real_)); break;
      case Kind::complex:
        if constexpr (is_complex(dtype_of<T>)) {
          result = scalar<T>(T(static_cast<typename T::value_type>(real_), static_cast<typename T::value_type>(imag_)));
        } else {
          misfit(fmt::format("({}, {})", real_, imag_), dtype);
        }
        break;
      case Kind::list:
        if (own_.dtype() == dtype) {
          result = own_;
          break;
        }
        plain_types.for_each([&]<class From>() {
          if constexpr (!std::same_as<From, Half> && !std::same_as<From, BFloat16> && !is_complex(dtype_of<From>)) {
            if (dtype_of<From> != own_.dtype()) return;
            Tensor out = Tensor::empty(dtype, own_.shape());
            for (int64_t i = 0; i < own_.num_elements(); ++i) {
              out.mutable_data<T>()[i] = convert_literal<T>(own_.data<From>()[i]);
            }
            result = out;
          }
        });
        break;
      case Kind::none: break;
    }
  });
  if (!result.defined()) throw invalid_argument("a number cannot be a value of dtype {}", dtype_name(dtype));
  return result;
}

}  // namespace runnel
