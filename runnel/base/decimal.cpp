#include "runnel/base/decimal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace runnel {
namespace {

// Room for the longest fixed text of a double: 309 digits, the point and the places asked for.
std::string to_text(double value, std::chars_format format, int precision) {
  std::string text(400 + static_cast<size_t>(precision), '\0');
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format, precision);
  text.resize(static_cast<size_t>(end.ptr - text.data()));
  return text;
}

// Reads "[-]d[.ddd]e[+-]dd".
Decimal parse_scientific(std::string_view text) {
  Decimal result;
  if (text.front() == '-') {
    result.negative = true;
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  result.digits = text[0];
  if (e > 1) {
    result.digits += text.substr(2, e - 2);
  }
  const bool negative_exponent = text[e + 1] == '-';
  std::from_chars(text.data() + e + 2, text.data() + text.size(), result.exponent);
  result.exponent = negative_exponent ? -result.exponent : result.exponent;
  return result;
}

template <class T>
Decimal shortest_of(T value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific);
  return parse_scientific({text.data(), static_cast<size_t>(end.ptr - text.data())});
}

const char* special_text(double value) { return std::isnan(value) ? "nan" : (value < 0 ? "-inf" : "inf"); }

template <class T>
std::string repr_of(T value) {
  if (!std::isfinite(value)) {
    return special_text(value);
  }
  const Decimal decimal = shortest_of(value);
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16)) {
    std::string text = scientific_text(decimal);
    if (decimal.digits.size() == 1) {
      text.erase(text.find('.'), 1);
    }
    return text;
  }
  std::string text = positional_text(decimal);
  return text.back() == '.' ? text + '0' : text;
}

template <class T>
std::string general_of(T value) {
  if (!std::isfinite(value)) {
    return special_text(value);
  }
  const std::string text = to_text(value, std::chars_format::general, std::numeric_limits<T>::digits10);
  T back = 0;
  std::from_chars(text.data(), text.data() + text.size(), back);
  return back == value ? text : to_text(value, std::chars_format::general, std::numeric_limits<T>::max_digits10);
}

}  // namespace

Decimal shortest_decimal(float value) { return shortest_of(value); }
Decimal shortest_decimal(double value) { return shortest_of(value); }

Decimal rounded_decimal(double value, int digits) {
  return parse_scientific(to_text(value, std::chars_format::scientific, digits - 1));
}

Decimal fixed_decimal(double value, int places) {
  std::string text = to_text(value, std::chars_format::fixed, places);
  Decimal result;
  if (text.front() == '-') {
    result.negative = true;
    text.erase(0, 1);
  }
  const size_t point = std::min(text.find('.'), text.size());
  result.exponent = static_cast<int>(point) - 1;
  for (const char c : text) {
    if (c != '.') {
      result.digits += c;
    }
  }
  const size_t zeros = result.digits.find_first_not_of('0');
  if (zeros == std::string::npos) {
    return {result.negative, "0", 0};
  }
  result.digits.erase(0, zeros);
  result.exponent -= static_cast<int>(zeros);
  return result;
}

std::string positional_text(const Decimal& decimal) {
  std::string text = decimal.negative ? "-" : "";
  const int count = static_cast<int>(decimal.digits.size());
  if (decimal.exponent < 0) {
    text += "0.";
    text.append(static_cast<size_t>(-decimal.exponent - 1), '0');
    text += decimal.digits;
    return text;
  }
  const int whole = decimal.exponent + 1;
  if (count <= whole) {
    text += decimal.digits;
    text.append(static_cast<size_t>(whole - count), '0');
    text += '.';
    return text;
  }
  text.append(decimal.digits, 0, static_cast<size_t>(whole));
  text += '.';
  text.append(decimal.digits, static_cast<size_t>(whole));
  return text;
}

std::string scientific_text(const Decimal& decimal, int exponent_digits) {
  std::string text = decimal.negative ? "-" : "";
  text += decimal.digits[0];
  text += '.';
  text.append(decimal.digits, 1);
  text += decimal.exponent < 0 ? "e-" : "e+";
  const std::string exponent = std::to_string(std::abs(decimal.exponent));
  const auto width = static_cast<size_t>(exponent_digits);
  text.append(width > exponent.size() ? width - exponent.size() : 0, '0');
  return text + exponent;
}

std::string shortest(float value) { return repr_of(value); }
std::string shortest(double value) { return repr_of(value); }
std::string general_text(float value) { return general_of(value); }
std::string general_text(double value) { return general_of(value); }

}  // namespace runnel
