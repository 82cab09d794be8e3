#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "runnel/base/export.h"
#include "runnel/base/source_site.h"
#include "runnel/tensor/bytes.h"
#include "runnel/tensor/half.h"

namespace runnel {

// Element types, with TensorFlow's numbers (they appear in files).
enum class DType : uint8_t {
  invalid = 0,
  float32 = 1,
  float64 = 2,
  int32 = 3,
  uint8 = 4,
  int16 = 5,
  int8 = 6,
  string = 7,
  complex64 = 8,
  int64 = 9,
  bool_ = 10,
  bfloat16 = 14,
  uint16 = 17,
  complex128 = 18,
  float16 = 19,
  resource = 20,
  variant = 21,
  uint32 = 22,
  uint64 = 23,
};

inline constexpr int kNumDTypes = 24;

// The names of `tf.float32` and its siblings (strings are DType::string: `string` would clash with std).
inline constexpr DType float16 = DType::float16, bfloat16 = DType::bfloat16, float32 = DType::float32,
                       float64 = DType::float64, int8 = DType::int8, int16 = DType::int16, int32 = DType::int32,
                       int64 = DType::int64, uint8 = DType::uint8, uint16 = DType::uint16, uint32 = DType::uint32,
                       uint64 = DType::uint64, bool_ = DType::bool_, complex64 = DType::complex64,
                       complex128 = DType::complex128;

// What a resource or variant element refers to: an object that lives outside the buffer.
class RUNNEL_API Object {
 public:
  virtual ~Object() = default;
  virtual std::string describe() const = 0;  // "Variable 'w'", for messages
};
struct ResourceHandle {
  std::shared_ptr<Object> object;
};
struct VariantValue {
  std::shared_ptr<const Object> object;
};

// std::complex<float> and std::complex<double>, told by what they are: <complex> takes long to compile, and few
// programs need it.
template <class T>
concept ComplexNumber = requires(const T& z) {
  { z.real() } -> std::same_as<typename T::value_type>;
  { z.imag() } -> std::same_as<typename T::value_type>;
} && (std::same_as<typename T::value_type, float> || std::same_as<typename T::value_type, double>);

template <class T>
inline constexpr DType dtype_of = DType::invalid;
template <>
inline constexpr DType dtype_of<float> = DType::float32;
template <>
inline constexpr DType dtype_of<double> = DType::float64;
template <>
inline constexpr DType dtype_of<Half> = DType::float16;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bfloat16;
template <>
inline constexpr DType dtype_of<int8_t> = DType::int8;
template <>
inline constexpr DType dtype_of<int16_t> = DType::int16;
template <>
inline constexpr DType dtype_of<int32_t> = DType::int32;
template <>
inline constexpr DType dtype_of<int64_t> = DType::int64;
template <>
inline constexpr DType dtype_of<long long> = DType::int64;
template <>
inline constexpr DType dtype_of<uint8_t> = DType::uint8;
template <>
inline constexpr DType dtype_of<uint16_t> = DType::uint16;
template <>
inline constexpr DType dtype_of<uint32_t> = DType::uint32;
template <>
inline constexpr DType dtype_of<uint64_t> = DType::uint64;
template <>
inline constexpr DType dtype_of<unsigned long long> = DType::uint64;
template <>
inline constexpr DType dtype_of<bool> = DType::bool_;
template <ComplexNumber T>
inline constexpr DType dtype_of<T> = sizeof(T) == 8 ? DType::complex64 : DType::complex128;
template <>
inline constexpr DType dtype_of<Bytes> = DType::string;
template <>
inline constexpr DType dtype_of<ResourceHandle> = DType::resource;
template <>
inline constexpr DType dtype_of<VariantValue> = DType::variant;

RUNNEL_API const char* dtype_name(DType dtype);  // "float32", "bool", "string"
RUNNEL_API size_t dtype_size(DType dtype);       // bytes of one element in a buffer
// Throws Error on an unknown name.
RUNNEL_API DType dtype_from_name(std::string_view name, SourceSite where = SourceSite::current());
RUNNEL_API std::ostream& operator<<(std::ostream& out, DType dtype);

constexpr bool is_float(DType t) { return t == float32 || t == float64 || t == float16 || t == bfloat16; }
constexpr bool is_complex(DType t) { return t == complex64 || t == complex128; }
constexpr bool is_signed_int(DType t) { return t == int8 || t == int16 || t == int32 || t == int64; }
constexpr bool is_unsigned_int(DType t) { return t == uint8 || t == uint16 || t == uint32 || t == uint64; }
constexpr bool is_integer(DType t) { return is_signed_int(t) || is_unsigned_int(t); }
// Elements are plain bytes: copying the bytes copies the values.
constexpr bool is_plain(DType t) { return t != DType::string && t != DType::resource && t != DType::variant; }

}  // namespace runnel
