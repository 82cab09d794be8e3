#include "runnel/ops/debugging.h"

#include <limits>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/control.h"
#include "runnel/ops/math.h"

namespace runnel::debugging {
namespace {

// The two as tensors of one dtype: a literal takes that of the other.
struct Compared {
  Compared(const Operand& a, const Operand& b)
      : x(a.is_literal() && !b.is_literal() ? a.as(b.tensor()->dtype()) : a.value()),
        y(b.is_literal() ? b.as(x.dtype()) : b.value()) {}
  Tensor x, y;
};

std::vector<Tensor> shown(const std::string& message, const std::string& condition) {
  std::vector<Tensor> data;
  if (!message.empty()) data.emplace_back(message);
  data.emplace_back("the condition " + condition + " does not hold for every element:");
  return data;
}

template <class Compare>
void assert_pair(const Operand& a, const Operand& b, const char* sign, const AssertOptions& options,
                 const Compare& compare) {
  composed(a.where(), [&] {
    const Compared p(a, b);
    std::vector<Tensor> data = shown(options.message, fmt::format("x {} y", sign));
    for (const Tensor& t : {Tensor("x ="), p.x, Tensor("y ="), p.y}) data.push_back(t);
    assert_(reduce_all(compare(p.x, p.y)), data, options.summarize);
  });
}

template <class Compare>
void assert_sign(const Operand& a, const char* condition, const AssertOptions& options, const Compare& compare) {
  composed(a.where(), [&] {
    const Tensor x = a.value();
    std::vector<Tensor> data = shown(options.message, condition);
    for (const Tensor& t : {Tensor("x ="), x}) data.push_back(t);
    assert_(reduce_all(compare(x, zeros_like(x))), data, options.summarize);
  });
}

double epsilon_of(DType t) {
  switch (t) {
    case DType::float16: return 0x1p-10;
    case DType::bfloat16: return 0x1p-7;
    case DType::float32:
    case DType::complex64: return std::numeric_limits<float>::epsilon();
    case DType::float64:
    case DType::complex128: return std::numeric_limits<double>::epsilon();
    default: return 0;
  }
}

std::string with_message(const std::string& message) { return message.empty() ? "" : message + ": "; }

// At once where the rank is known, else by an op.
void assert_rank_is(const Operand& a, int wanted, bool at_least, const AssertOptions& options) {
  composed(a.where(), [&] {
    const Tensor x = a.value();
    const PartialShape shape = x.partial_shape();
    const std::string what =
        fmt::format("{}the rank must be {}{}", with_message(options.message), at_least ? "at least " : "", wanted);
    if (!shape.has_rank()) {
      const Tensor actual = rank(x);
      return assert_(at_least ? actual >= wanted : actual == wanted, {Tensor(what + ", it is"), actual});
    }
    if (at_least ? shape.rank() >= wanted : shape.rank() == wanted) return;
    throw invalid_argument("[assert_rank] {}; the shape is {}", what, shape.str());
  });
}

}  // namespace

void assert_equal(const Operand& x, const Operand& y, const AssertOptions& options) {
  assert_pair(x, y, "==", options, [](const Tensor& a, const Tensor& b) { return equal(a, b); });
}
void assert_none_equal(const Operand& x, const Operand& y, const AssertOptions& options) {
  assert_pair(x, y, "!=", options, [](const Tensor& a, const Tensor& b) { return not_equal(a, b); });
}
void assert_less(const Operand& x, const Operand& y, const AssertOptions& options) {
  assert_pair(x, y, "<", options, [](const Tensor& a, const Tensor& b) { return less(a, b); });
}
void assert_less_equal(const Operand& x, const Operand& y, const AssertOptions& options) {
  assert_pair(x, y, "<=", options, [](const Tensor& a, const Tensor& b) { return less_equal(a, b); });
}
void assert_greater(const Operand& x, const Operand& y, const AssertOptions& options) {
  assert_pair(x, y, ">", options, [](const Tensor& a, const Tensor& b) { return greater(a, b); });
}
void assert_greater_equal(const Operand& x, const Operand& y, const AssertOptions& options) {
  assert_pair(x, y, ">=", options, [](const Tensor& a, const Tensor& b) { return greater_equal(a, b); });
}

void assert_near(const Operand& x, const Operand& y, const NearOptions& options) {
  assert_pair(x, y, "is near", {options.message, options.summarize}, [&](const Tensor& a, const Tensor& b) {
    const double usual = 10 * epsilon_of(a.dtype());
    const Tensor room = abs(b) * (options.rtol < 0 ? usual : options.rtol) + (options.atol < 0 ? usual : options.atol);
    return abs(a - b) <= room;
  });
}

void assert_positive(const Operand& x, const AssertOptions& options) {
  assert_sign(x, "x > 0", options, [](const Tensor& a, const Tensor& zero) { return a > zero; });
}
void assert_negative(const Operand& x, const AssertOptions& options) {
  assert_sign(x, "x < 0", options, [](const Tensor& a, const Tensor& zero) { return a < zero; });
}
void assert_non_negative(const Operand& x, const AssertOptions& options) {
  assert_sign(x, "x >= 0", options, [](const Tensor& a, const Tensor& zero) { return a >= zero; });
}
void assert_non_positive(const Operand& x, const AssertOptions& options) {
  assert_sign(x, "x <= 0", options, [](const Tensor& a, const Tensor& zero) { return a <= zero; });
}

Tensor assert_all_finite(const Operand& x, const std::string& message) {
  return composed(x.where(), [&] {
    Tensor t = x.value();
    std::vector<Tensor> data;
    if (!message.empty()) data.emplace_back(message);
    for (const Tensor& part : {Tensor("there are NaNs or infinities:"), t}) data.push_back(part);
    assert_(reduce_all(is_finite(t)), data);
    return t;
  });
}

void assert_rank(const Operand& x, int rank, const AssertOptions& options) { assert_rank_is(x, rank, false, options); }
void assert_rank_at_least(const Operand& x, int rank, const AssertOptions& options) {
  assert_rank_is(x, rank, true, options);
}
void assert_scalar(const Operand& x, const AssertOptions& options) { assert_rank_is(x, 0, false, options); }

void assert_type(const Operand& x, DType dtype, const AssertOptions& options) {
  composed(x.where(), [&] {
    const DType got = x.value().dtype();
    if (got == dtype) return;
    throw invalid_argument("[assert_type] {}the dtype must be {}, it is {}", with_message(options.message),
                           dtype_name(dtype), dtype_name(got));
  });
}

}  // namespace runnel::debugging
