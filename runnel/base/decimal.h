#pragma once

#include <string>
#include <string_view>

#include "runnel/base/export.h"

namespace runnel {

// A finite binary number in decimal: digits[0].digits[1]digits[2]... * 10^exponent. Zero is {"0", 0}.
struct Decimal {
  bool negative = false;
  std::string digits;
  int exponent = 0;
};

// The fewest digits that read back as the value and, among those, the nearest to it. No trailing zeros.
RUNNEL_API Decimal shortest_decimal(float value);
RUNNEL_API Decimal shortest_decimal(double value);

// The exact value rounded, to nearest even, to `digits` significant digits (at least 1) or to `places` digits
// after the point (trailing zeros are kept; a value that rounds to nothing is {"0", 0}).
RUNNEL_API Decimal rounded_decimal(double value, int digits);
RUNNEL_API Decimal fixed_decimal(double value, int places);

// "-12.5", "300." and "-1.25e-05", "1.e+08": the point is always there; the exponent has at least two digits.
RUNNEL_API std::string positional_text(const Decimal& decimal);
RUNNEL_API std::string scientific_text(const Decimal& decimal, int exponent_digits = 2);

// Python's repr of a float: "1.0", "1e-05", "1.5e+16", "inf", "nan". A float gets its own fewest digits, as
// NumPy's float32 does.
RUNNEL_API std::string shortest(float value);
RUNNEL_API std::string shortest(double value);

// What TensorFlow's print, format and log lines show: "%.6g" (a double "%.15g") where that reads back as the
// value, else "%.9g" ("%.17g"). 1 is "1", a third is "0.333333343".
RUNNEL_API std::string general_text(float value);
RUNNEL_API std::string general_text(double value);

}  // namespace runnel
