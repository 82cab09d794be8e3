#pragma once

#include <stdlib.h>

#include <cctype>
#include <charconv>
#include <clocale>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runnel/base/format.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {

namespace detail {
// What is too large or too small for from_chars: infinity or zero, however the program's locale writes numbers.
inline double parse_extreme(std::string_view digits) {
  static const locale_t c = newlocale(LC_ALL_MASK, "C", nullptr);
  return strtod_l(std::string(digits).c_str(), nullptr, c);
}

// What most numbers look like: a few digits, perhaps with a point between them. Digits as an integer and the power of
// ten are exact, so their quotient is rounded right. Nothing for other numbers.
template <class T>
std::optional<T> parse_few_digits(std::string_view text) {
  constexpr size_t kMost = std::is_same_v<T, float> ? 7 : 15;
  constexpr T kTens[] = {1,      T(1e1), T(1e2),  T(1e3),  T(1e4),  T(1e5),  T(1e6), T(1e7),
                         T(1e8), T(1e9), T(1e10), T(1e11), T(1e12), T(1e13), T(1e14)};
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.size() > kMost + 1) return {};
  int64_t digits = 0;
  size_t whole = 0, i = 0;
  const auto take_digits = [&] {
    const size_t begin = i;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) digits = digits * 10 + (text[i] - '0');
    return i - begin;
  };
  whole = take_digits();
  size_t fraction = 0;
  if (i < text.size() && text[i] == '.') {
    ++i;
    fraction = take_digits();
    if (fraction == 0) return {};
  }
  if (whole == 0 || i < text.size() || whole + fraction > kMost) return {};
  const T value = static_cast<T>(digits) / kTens[fraction];
  return negative ? -value : value;
}
}  // namespace detail

// As TensorFlow reads numbers: floats with a sign, hexadecimal too, inf and nan; integers without a '+'.
template <class T>
T parse_number(std::string_view text) {
  std::string_view v = text;
  while (!v.empty() && std::isspace(static_cast<unsigned char>(v.front()))) v.remove_prefix(1);
  while (!v.empty() && std::isspace(static_cast<unsigned char>(v.back()))) v.remove_suffix(1);
  T value{};
  const auto fail = [&] { return invalid_argument("'{}' is no {}", text, dtype_name(dtype_of<T>)); };
  if constexpr (std::is_floating_point_v<T>) {
    if (const std::optional<T> few = detail::parse_few_digits<T>(v)) return *few;
    if (!v.empty() && v.front() == '+') v.remove_prefix(1);
    const std::string_view digits = v.substr(v.starts_with('-') ? 1 : 0);
    if (digits.starts_with('-') || digits.starts_with('+')) throw fail();
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
      const bool negative = digits.size() < v.size();
      const std::string_view hex = digits.substr(2);
      // from_chars would take a sign here, inf and nan.
      if (hex.empty() || !(hex.front() == '.' || std::isxdigit(static_cast<unsigned char>(hex.front())))) throw fail();
      const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), value, std::chars_format::hex);
      if (error != std::errc() || end != hex.data() + hex.size()) throw fail();
      return negative ? -value : value;
    }
    const bool word = !digits.empty() && std::isalpha(static_cast<unsigned char>(digits.front()));
    if (word && digits.size() != 3) throw fail();  // inf and nan, not longer names of them
  }
  const auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), value);
  if (error == std::errc::result_out_of_range && std::is_floating_point_v<T>) {
    return static_cast<T>(detail::parse_extreme(v));
  }
  if (error == std::errc::result_out_of_range) {
    throw invalid_argument("'{}' does not fit {}", text, dtype_name(dtype_of<T>));
  }
  if (error != std::errc() || end != v.data() + v.size() || v.empty()) throw fail();
  return value;
}

}  // namespace runnel
