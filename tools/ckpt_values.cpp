#include "tools/ckpt_values.h"

#include <cmath>
#include <complex>
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/npz.h"
#include "runnel/tensor/format_array.h"

namespace runnel::tools {
namespace {

// Calls f with a value of the dtype's C++ type.
template <class F>
auto with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::float32: return f(float{});
    case DType::float64: return f(double{});
    case DType::float16: return f(Half{});
    case DType::bfloat16: return f(BFloat16{});
    case DType::int8: return f(int8_t{});
    case DType::int16: return f(int16_t{});
    case DType::int32: return f(int32_t{});
    case DType::int64: return f(int64_t{});
    case DType::uint8: return f(uint8_t{});
    case DType::uint16: return f(uint16_t{});
    case DType::uint32: return f(uint32_t{});
    case DType::uint64: return f(uint64_t{});
    case DType::bool_: return f(false);
    case DType::complex64: return f(std::complex<float>{});
    case DType::complex128: return f(std::complex<double>{});
    default: throw make_error(Code::internal, "[ckpt] {} has no elements of fixed size", dtype_name(dtype));
  }
}

template <class T>
T element(ByteSpan bytes, size_t i) {  // files align nothing, and a bool may be any byte
  if constexpr (std::is_same_v<T, bool>) {
    return bytes[i] != std::byte{0};
  } else {
    T value;
    std::memcpy(static_cast<void*>(&value), bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  }
}

template <class T>
Json element_json(T value) {
  if constexpr (std::is_same_v<T, bool> || std::is_integral_v<T>) {
    return value;
  } else if constexpr (ComplexNumber<T>) {
    return Json::array({number_json(value.real()), number_json(value.imag())});
  } else {
    return number_json(static_cast<double>(static_cast<float>(value)));
  }
}
template <>
Json element_json(double value) {
  return number_json(value);
}

template <class T>
double distance(T a, T b) {
  if constexpr (ComplexNumber<T>) {
    return std::abs(std::complex<double>(a) - std::complex<double>(b));
  } else if constexpr (std::is_integral_v<T>) {  // exact where the difference of two doubles is not
    return a < b ? static_cast<double>(static_cast<uint64_t>(b) - static_cast<uint64_t>(a))
                 : static_cast<double>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::abs(a - b);
  } else {
    return std::abs(static_cast<double>(static_cast<float>(a)) - static_cast<double>(static_cast<float>(b)));
  }
}

}  // namespace

std::optional<DType> element_type(int checkpoint_dtype) {
  const std::string name = io::checkpoint_dtype_name(checkpoint_dtype);
  if (name.starts_with("qint") || name.starts_with("quint")) return dtype_from_name(name.substr(1));
  if (checkpoint_dtype <= 0 || checkpoint_dtype >= kNumDTypes || io::checkpoint_dtype_size(checkpoint_dtype) == 0) {
    return {};
  }
  return static_cast<DType>(checkpoint_dtype);
}

std::string values_text(DType dtype, const std::vector<int64_t>& shape, ByteSpan bytes) {
  std::vector<std::byte> truths;
  if (dtype == bool_) {  // a damaged file may hold any byte
    for (std::byte each : bytes) truths.push_back(each == std::byte{0} ? each : std::byte{1});
    bytes = truths;
  }
  return format_array({.dtype = dtype, .data = bytes.data(), .dims = shape});
}

std::string strings_text(const std::vector<int64_t>& shape, const std::vector<std::string>& strings) {
  constexpr size_t longest = 256;
  std::vector<Bytes> elements;
  for (const std::string& each : strings) {
    const bool cut = each.size() > longest;
    elements.emplace_back(cut ? each.substr(0, longest) + "..." : each);
  }
  return format_array({.dtype = DType::string, .data = elements.data(), .dims = shape});
}

Json values_json(DType dtype, ByteSpan bytes) {
  return with_type(dtype, [&]<class T>(T) {
    Json list = Json::array();
    for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) list.push_back(element_json(element<T>(bytes, i)));
    return list;
  });
}

std::vector<std::byte> npy_bytes(DType dtype, const std::vector<int64_t>& shape, ByteSpan bytes) {
  if (dtype != bfloat16) return io::npy({.dtype = dtype_name(dtype), .shape = shape, .data = bytes});
  std::vector<float> wide(bytes.size() / 2);
  for (size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<float>(element<BFloat16>(bytes, i));
  return io::npy({.dtype = "float32", .shape = shape, .data = std::as_bytes(std::span(wide))});
}

ValueDifference difference(DType dtype, ByteSpan a, ByteSpan b) {
  return with_type(dtype, [&]<class T>(T) {
    ValueDifference found;
    if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0) return found;
    for (size_t i = 0; i < a.size() / sizeof(T); ++i) {
      if (std::memcmp(a.data() + i * sizeof(T), b.data() + i * sizeof(T), sizeof(T)) == 0) continue;
      const T x = element<T>(a, i), y = element<T>(b, i);
      if (x == y) continue;
      ++found.elements;
      const double d = distance(x, y);
      if (!(d <= found.largest)) found.largest = std::isnan(found.largest) ? found.largest : d;
    }
    return found;
  });
}

Json number_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

}  // namespace runnel::tools
