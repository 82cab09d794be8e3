#include "runnel/tensor/format_element.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "runnel/base/decimal.h"
#include "runnel/base/format.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {
namespace {

using runnel::shortest_decimal;

// Tries 1 to 5 digits: the nearest decimal of that many digits, then its neighbour on the other side of the
// value, which alone may lie in the interval that reads back where the interval is lopsided (powers of two).
Decimal shortest_decimal(Half half) {
  const double value = static_cast<float>(half);
  const int field = (half.bits() >> 10) & 31;
  const int mantissa = half.bits() & 1023;
  if (field == 0 && mantissa == 0) {
    return {half.bits() != 0, "0", 0};
  }
  const double magnitude = std::fabs(value);
  const double unit = std::ldexp(1.0, std::max(field, 1) - 25);
  const double low = magnitude - (mantissa == 0 && field > 1 ? unit / 4 : unit / 2);
  const double high = magnitude + unit / 2;
  const auto reads_back = [&](double x) {
    return (x > low && x < high) || ((mantissa & 1) == 0 && (x == low || x == high));
  };
  for (int digits = 1;; ++digits) {
    const Decimal nearest = rounded_decimal(magnitude, digits);
    const int scale = nearest.exponent - digits + 1;
    const int whole = std::stoi(nearest.digits);
    const auto value_of = [&](int n) {
      const std::string text = fmt::format("{}e{}", n, scale);
      double x = 0;
      std::from_chars(text.data(), text.data() + text.size(), x);
      return x;
    };
    const double at = value_of(whole);
    for (const int n : {whole, at < magnitude ? whole + 1 : whole - 1}) {
      if (n > 0 && reads_back(value_of(n))) {
        Decimal result{value < 0, std::to_string(n), 0};
        result.exponent = scale + static_cast<int>(result.digits.size()) - 1;
        result.digits.erase(result.digits.find_last_not_of('0') + 1);
        return result;
      }
    }
  }
}

void trim_zeros(Decimal& decimal) {
  decimal.digits.erase(std::max<size_t>(decimal.digits.find_last_not_of('0') + 1, 1));
}

// The fewest digits, but no more than `places` after the point, and before it those of the exact value: a
// float16 65504 is not 65500.
template <class T>
Decimal positional_decimal(T value, int places) {
  Decimal result = shortest_decimal(value);
  const int fraction = static_cast<int>(result.digits.size()) - 1 - result.exponent;
  if (fraction > places || fraction < 0) {
    result = fixed_decimal(static_cast<double>(value), std::clamp(fraction, 0, places));
    trim_zeros(result);
  }
  return result;
}

// The same in scientific notation: no more than `places` digits after the first.
template <class T>
Decimal scientific_decimal(T value, int places) {
  Decimal result = shortest_decimal(value);
  if (static_cast<int>(result.digits.size()) - 1 > places) {
    result = rounded_decimal(static_cast<double>(value), places + 1);
    trim_zeros(result);
  }
  return result;
}

// Exactly `places` digits after the first: digits past the fewest are those of the exact value.
template <class T>
Decimal filled_decimal(T value, int places) {
  Decimal result = shortest_decimal(value);
  return static_cast<int>(result.digits.size()) == places + 1 ? result
                                                              : rounded_decimal(static_cast<double>(value), places + 1);
}

// NumPy's rule, with its arithmetic: the bounds compare as doubles, the quotient is rounded to the element
// type.
template <class T>
bool wants_exponent(std::span<const T> values, bool suppress) {
  T largest(0.0f);
  T smallest(0.0f);
  for (const T value : values) {
    if (!std::isfinite(value) || value == 0) {
      continue;
    }
    const T magnitude = value < 0 ? T(-value) : value;
    largest = std::max(largest, magnitude);
    smallest = smallest == 0 ? magnitude : std::min(smallest, magnitude);
  }
  if (largest == 0) {
    return false;
  }
  return static_cast<double>(largest) >= 1e8 ||
         (!suppress && (static_cast<double>(smallest) < 1e-4 || static_cast<double>(largest / smallest) > 1000));
}

void pad_front(std::string& text, size_t width) {
  if (text.size() < width) {
    text.insert(0, width - text.size(), ' ');
  }
}

// plus: every number carries a sign (the imaginary parts).
template <class T>
std::vector<std::string> format_floats(std::span<const T> values, const ArrayFormat& options, bool plus) {
  const bool exponent = wants_exponent(values, options.suppress);
  int places = 0;
  int exponent_digits = 2;
  if (exponent) {
    for (const T value : values) {
      if (std::isfinite(value)) {
        const Decimal decimal = scientific_decimal(value, options.precision);
        places = std::max(places, static_cast<int>(decimal.digits.size()) - 1);
        exponent_digits = std::abs(decimal.exponent) >= 100 ? 3 : exponent_digits;
      }
    }
  }

  std::vector<std::string> words;
  words.reserve(values.size());
  size_t left = 0;   // columns before the point
  size_t right = 0;  // columns after it
  bool any_special = false;
  bool negative_infinity = plus;
  for (const T value : values) {
    std::string word;
    if (!std::isfinite(value)) {
      any_special = true;
      negative_infinity |= std::isinf(value) && value < 0;
      word = std::isnan(value) ? "nan" : (value < 0 ? "-inf" : "inf");
    } else {
      word = exponent ? scientific_text(filled_decimal(value, places), exponent_digits)
                      : positional_text(positional_decimal(value, options.precision));
    }
    if (plus && word[0] != '-') {
      word.insert(0, 1, '+');
    }
    if (std::isfinite(value)) {
      left = std::max(left, word.find('.'));
      right = std::max(right, word.size() - word.find('.') - 1);
    }
    words.push_back(std::move(word));
  }
  if (any_special) {
    const size_t widest = negative_infinity ? 4 : 3;
    left = std::max(left, widest > right + 1 ? widest - right - 1 : 0);
  }
  for (size_t i = 0; i < words.size(); ++i) {
    if (std::isfinite(values[i])) {
      pad_front(words[i], left + words[i].size() - words[i].find('.'));
      words[i].resize(left + 1 + right, ' ');
    } else {
      pad_front(words[i], left + 1 + right);
    }
  }
  return words;
}

template <class T>
std::vector<std::string> format_complex(std::span<const std::complex<T>> values, const ArrayFormat& options) {
  std::vector<T> real;
  std::vector<T> imag;
  for (const auto& value : values) {
    real.push_back(value.real());
    imag.push_back(value.imag());
  }
  std::vector<std::string> words = format_floats<T>(real, options, false);
  std::vector<std::string> imag_words = format_floats<T>(imag, options, true);
  for (size_t i = 0; i < words.size(); ++i) {
    std::string& word = imag_words[i];
    word.insert(word.find_last_not_of(' ') + 1, 1, 'j');
    words[i] += word;
  }
  return words;
}

// repr of a Python bytes object.
std::string bytes_repr(std::string_view bytes) {
  const char quote = bytes.find('\'') != bytes.npos && bytes.find('"') == bytes.npos ? '"' : '\'';
  std::string text = "b";
  text += quote;
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '\t') {
      text += "\\t";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else if (code < 0x20 || code >= 0x7f) {
      text += fmt::format("\\x{:02x}", code);
    } else {
      text += c;
    }
  }
  text += quote;
  return text;
}

// TensorFlow's bfloat16 is a NumPy extension type that writes itself as C++ streams write floats.
std::string bfloat16_text(BFloat16 value) {
  const float x = value;
  return std::isnan(x) ? "nan" : fmt::format("{:.6g}", x);
}

template <class T>
std::string scalar_float(T value) {
  if (!std::isfinite(value)) {
    return shortest(static_cast<float>(value));
  }
  if constexpr (std::is_same_v<T, Half>) {
    const Decimal decimal = shortest_decimal(value);
    const double magnitude = std::fabs(static_cast<double>(value));
    const bool exponent = magnitude != 0 && magnitude < 1e-4;
    std::string text = exponent ? scientific_text(decimal) : positional_text(decimal);
    if (exponent && decimal.digits.size() == 1) {
      text.erase(text.find('.'), 1);
    }
    return text.back() == '.' ? text + '0' : text;
  } else {
    return shortest(value);
  }
}

// "(1+2j)", and "2j" where the real part is a plain zero; whole parts carry no ".0".
template <class T>
std::string scalar_complex(std::complex<T> value) {
  const auto part = [](T x) {
    std::string text = shortest(x);
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  };
  const std::string imag = part(value.imag()) + 'j';
  if (value.real() == 0 && !std::signbit(value.real())) {
    return imag;
  }
  return '(' + part(value.real()) + (imag[0] == '-' ? "" : "+") + imag + ')';
}

template <class T>
std::string element_text(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "True" : "False";
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return bytes_repr(value.view());
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return bfloat16_text(value);
  } else if constexpr (std::is_same_v<T, ResourceHandle> || std::is_same_v<T, VariantValue>) {
    return value.object ? '<' + value.object->describe() + '>' : "<unprintable>";
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return scalar_complex(value);
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {
    return scalar_float(value);
  }
}

template <class F>
auto visit(const ArrayView& array, F&& f) {
  using Result = decltype(f(static_cast<const float*>(nullptr)));
  Result result{};
  bool found = false;
  all_types.for_each([&]<class T>() {
    if (array.dtype == dtype_of<T>) {
      found = true;
      result = f(static_cast<const T*>(array.data));
    }
  });
  if (!found) {
    throw invalid_argument("cannot print an array of dtype {}", static_cast<int>(array.dtype));
  }
  return result;
}

}  // namespace

std::vector<std::string> format_elements(const ArrayView& array, std::span<const int64_t> indices,
                                         const ArrayFormat& options) {
  return visit(array, [&]<class T>(const T* data) -> std::vector<std::string> {
    if constexpr (std::is_same_v<T, Half> || std::is_floating_point_v<T> || std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>) {
      std::vector<T> values;
      for (const int64_t i : indices) {
        values.push_back(data[i]);
      }
      if constexpr (std::is_same_v<T, Half> || std::is_floating_point_v<T>) {
        return format_floats<T>(values, options, false);
      } else {
        return format_complex(std::span<const T>(values), options);
      }
    } else {
      std::vector<std::string> words;
      size_t width = 0;
      for (const int64_t i : indices) {
        words.push_back(element_text(data[i]));
        width = std::max(width, words.back().size());
      }
      if (std::is_same_v<T, bool> && !array.dims.empty()) {
        width = 5;
      }
      if (std::is_integral_v<T>) {
        for (std::string& word : words) {
          pad_front(word, width);
        }
      }
      return words;
    }
  });
}

std::string format_scalar(const ArrayView& array, int64_t index) {
  return visit(array, [&]<class T>(const T* data) { return element_text(data[index]); });
}

}  // namespace runnel
