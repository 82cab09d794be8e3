#include "tests/interop/random_values.h"
#include "runnel/tensor/type_sets.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "tests/suite/values.h"

namespace runnel::interop {
namespace {

using test::Value;

// What breaks things: in every dtype its own limits.
Value extreme(DType dtype, Random& r) {
  long double low = 0;
  long double high = 0;
  plain_types.for_each([&]<class T>() {
    if (dtype_of<T> != dtype) return;
    if constexpr (std::is_arithmetic_v<T>) {
      low = static_cast<long double>(std::numeric_limits<T>::lowest());
      high = static_cast<long double>(std::numeric_limits<T>::max());
    }
  });
  if (dtype == float16) high = 65504, low = -high;
  if (dtype == bfloat16 || dtype == complex64)
    high = static_cast<long double>(std::numeric_limits<float>::max()) / 256, low = -high;
  if (dtype == complex128) high = static_cast<long double>(std::numeric_limits<double>::max()), low = -high;
  if (is_integer(dtype) || dtype == bool_) {
    const std::vector<long double> numbers = {
        low, high, 0, 1, dtype == bool_ || is_unsigned_int(dtype) ? 1.L : -1.L, high - 1};
    return r.one_of(numbers);
  }
  constexpr long double kInf = std::numeric_limits<long double>::infinity();
  const std::vector<long double> numbers = {std::nanl(""), kInf, -kInf, 0, -0.L, high, low, 1e-30L, 1, -1, 0.5L};
  const long double real = r.one_of(numbers);
  return is_complex(dtype) && r.once_in(2) ? Value(real, r.one_of(numbers)) : Value(real);
}

struct Range {
  long double low = 0;
  long double high = 1;
};

Range range_of(const std::vector<Value>& values) {
  Range range{std::numeric_limits<long double>::infinity(), -std::numeric_limits<long double>::infinity()};
  for (const Value& v : values) {
    if (!std::isfinite(v.real())) continue;
    range.low = std::min(range.low, v.real());
    range.high = std::max(range.high, v.real());
  }
  if (range.low > range.high) return {-1, 1};
  return range;
}

Value position(const std::vector<Value>& like, bool wild, DType dtype, Random& r) {
  const Value v = like.empty() ? Value(static_cast<long double>(r.below(4))) : r.one_of(like);
  switch (r.below(wild ? 6 : 12)) {
    case 0: return v + Value(1);
    case 1: return v - Value(1);
    case 2: return Value(static_cast<long double>(r.below(6)));
    case 3: return Value(static_cast<long double>(r.below(5)) - 4);
    case 4: return wild ? extreme(dtype, r) : v;
    default: return v;
  }
}

Value number(int64_t rule, const std::vector<Value>& like, const Range& range, double spread, DType dtype, Random& r) {
  auto once = [&]() -> long double {
    switch (rule) {
      case 0:  // from the range of what was stated
        return static_cast<long double>(r.uniform(static_cast<double>(range.low), static_cast<double>(range.high)));
      case 1: return static_cast<long double>(r.normal() * spread);
      case 2:  // many equal ones
        return static_cast<long double>(r.below(7)) - 3;
      default: return like.empty() ? 0 : r.one_of(like).real();
    }
  };
  if (rule == 4 && r.once_in(3)) return extreme(dtype, r);
  const long double real = is_integer(dtype) ? std::round(once()) : once();
  return is_complex(dtype) ? Value(real, once()) : Value(real);
}

Tensor filled(DType dtype, const Shape& shape, const std::function<Value()>& draw) {
  Tensor t = Tensor::empty(dtype, shape);
  plain_types.for_each([&]<class T>() {
    if (dtype_of<T> != dtype) return;
    for (int64_t i = 0; i < t.num_elements(); ++i) test::store<T>(draw(), t.mutable_data<T>()[i]);
  });
  return t;
}

const std::vector<std::string>& texts() {
  static const std::vector<std::string> all = {"",
                                               "a",
                                               "A",
                                               "ab c",
                                               " x\t\n",
                                               "\u00e4\u00d6\u00df",
                                               "\u4f60\u597d",
                                               "\U0001f600!",
                                               "e\u0301",
                                               "\u0130i",
                                               "\xff",
                                               "a\xc3",
                                               "\xed\xa0\x80",
                                               std::string("a\0b", 3),
                                               "1",
                                               "-2.5e3",
                                               " 12 ",
                                               "nan",
                                               "0x1f",
                                               "99999999999",
                                               "1,2",
                                               "a.b|c",
                                               "\\1",
                                               ".*"};
  return all;
}

}  // namespace

uint64_t hashed(uint64_t seed, const std::string& text) {
  uint64_t h = 1469598103934665603u ^ seed;
  for (char c : text) {
    h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
    h ^= h >> 29;
  }
  return h;
}

double Random::normal() {
  const double u = uniform(0x1p-53, 1);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * uniform(0, 1));
}

std::string random_text(const std::string& like, Random& r) {
  std::string text = like;
  switch (r.below(8)) {
    case 0: return text;
    case 1:  // cut short
      return text.substr(0, static_cast<size_t>(r.below(static_cast<int64_t>(text.size()) + 1)));
    case 2:  // one byte is another
      if (!text.empty())
        text[static_cast<size_t>(r.below(static_cast<int64_t>(text.size())))] = static_cast<char>(r.below(256));
      return text;
    case 3: return text + r.one_of(texts());
    case 4: return r.one_of(texts()) + r.one_of(texts());
    default: return r.one_of(texts());
  }
}

Tensor random_tensor(DType dtype, const Shape& shape, const Tensor& like, bool positions, Random& r) {
  Tensor t = Tensor::empty(dtype, shape);
  if (dtype == DType::string) {
    const auto known = like.dtype() == DType::string ? like.to_vector<std::string>() : texts();
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      t.mutable_data<Bytes>()[i] = Bytes(random_text(known.empty() ? "" : r.one_of(known), r));
    }
    return t;
  }
  const std::vector<Value> known = like.dtype() == DType::string ? std::vector<Value>{} : test::values_of(like);
  if (dtype == bool_) return filled(dtype, shape, [&] { return Value(r.once_in(2) ? 1 : 0); });
  if (positions) {
    const bool wild = r.once_in(6);
    return filled(dtype, shape, [&] { return position(known, wild, dtype, r); });
  }
  Range range = range_of(known);
  if (r.once_in(3)) range.low -= 1, range.high += 1;
  const std::vector<int64_t> rules = {0, 0, 0, 1, 1, 2, 3, 4};
  const int64_t rule = r.one_of(rules);
  const double spread = r.one_of(std::vector<double>{0.1, 1, 1, 3, 30});
  return filled(dtype, shape, [&] { return number(rule, known, range, spread, dtype, r); });
}

Tensor reshaped(const Tensor& t, const Shape& shape, Random& r) {
  if (t.shape() == shape) return t;
  Tensor out = Tensor::empty(t.dtype(), shape);
  const int64_t n = t.num_elements();
  data_types.for_each([&]<class T>() {
    if (dtype_of<T> != t.dtype()) return;
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      // The first elements stay in their order: sorted ones stay sorted.
      out.mutable_data<T>()[i] = n == 0 ? T() : t.data<T>()[i < n ? i : r.below(n)];
    }
  });
  return out;
}

}  // namespace runnel::interop
