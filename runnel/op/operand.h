#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <vector>

#include "runnel/base/source_site.h"
#include "runnel/op/gradient.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

// Things that stand for a tensor: Variable (its value now), Gradient.
template <class V>
concept HasTensorValue = !std::same_as<V, Tensor> && requires(const V& v) {
  { v.value() } -> std::convertible_to<Tensor>;
};

// std::vector of literals, or of such vectors.
template <class V>
struct VectorElement {};
template <Element T>
struct VectorElement<std::vector<T>> {
  using type = T;
};
template <class V>
struct VectorElement<std::vector<V>> : VectorElement<V> {};
template <class V>
concept LiteralVector = requires { typename VectorElement<V>::type; };

namespace detail {
// The tensor that v stands for; one that may have none names the line that asked.
template <HasTensorValue V>
Tensor tensor_of(const V& v, const SourceSite& where) {
  if constexpr (requires { v.value(where); }) {
    return v.value(where);
  } else {
    return v.value();
  }
}
}  // namespace detail

// A parameter of a public op: a Tensor, something that has one, or a C++ literal, which takes the dtype of the
// op's other operand as a Python number does in TensorFlow. Remembers the line of the call, for errors and
// traced nodes. Lives for the duration of the call only.
class RUNNEL_API Operand {
 public:
  using Location = SourceSite;

  Operand(const Tensor& t, Location where = Location::current()) : tensor_(&t), where_(where) {}  // NOLINT
  Operand(Tensor&& t, Location where = Location::current())                                       // NOLINT
      : own_(std::move(t)), tensor_(&own_), where_(where) {}
  template <HasTensorValue V>
  Operand(const V& v, Location where = Location::current())  // NOLINT
      : own_(detail::tensor_of(v, where)), tensor_(&own_), where_(where) {}
  template <Number T>
  Operand(T number, Location where = Location::current()) : where_(where) {  // NOLINT
    if constexpr (std::same_as<T, bool>) {
      kind_ = Kind::boolean;
      integer_ = number;
    } else if constexpr (std::integral<T>) {
      kind_ = sizeof(T) > 4 ? Kind::long_integer : Kind::integer;
      integer_ = static_cast<int64_t>(number);
    } else if constexpr (ComplexNumber<T>) {
      kind_ = Kind::complex;
      real_ = static_cast<double>(number.real());
      imag_ = static_cast<double>(number.imag());
    } else {
      kind_ = Kind::real;
      real_ = static_cast<double>(static_cast<T>(number));
    }
  }
  template <Text T>
  Operand(const T& text, Location where = Location::current())  // NOLINT
      : own_(text), tensor_(&own_), where_(where) {}
  // Lists of literals are converted like single ones.
  template <Element T>
  Operand(std::initializer_list<T> values, Location where = Location::current()) {
    take_list<T>(values, where);
  }
  template <Element T>
  Operand(std::initializer_list<std::initializer_list<T>> values, Location where = Location::current()) {
    take_list<T>(values, where);
  }
  template <Element T>
  Operand(std::initializer_list<std::initializer_list<std::initializer_list<T>>> values,
          Location where = Location::current()) {
    take_list<T>(values, where);
  }
  template <LiteralVector V>
  Operand(const V& values, Location where = Location::current()) {  // NOLINT
    take_list<typename VectorElement<V>::type>(values, where);
  }
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  // A literal has no dtype of its own.
  bool is_literal() const { return tensor_ == nullptr; }
  const Tensor* tensor() const { return tensor_; }
  // A literal as a tensor of this dtype; throws Error where the value does not fit (2.5 as int32).
  Tensor as(DType dtype) const;
  // The dtype a literal has by itself: int32, int64 (for 64-bit C++ integers), float32, bool, complex128.
  DType natural_dtype() const;
  // The tensor, or the literal in its own dtype.
  Tensor value() const { return is_literal() ? as(natural_dtype()) : *tensor_; }
  const Location& where() const { return where_; }

 protected:
  struct Copy {};
  Operand(const Operand& o, Copy)  // the same value at the same line; for the parameters of operators
      : own_(o.own_),
        tensor_(o.tensor_ == &o.own_ ? &own_ : o.tensor_),
        integer_(o.integer_),
        real_(o.real_),
        imag_(o.imag_),
        kind_(o.kind_),
        where_(o.where_) {}

 private:
  enum class Kind : uint8_t { none, boolean, integer, long_integer, real, complex, list };
  template <Element T, class List>
  void take_list(const List& values, const Location& where) {
    own_ = Tensor::exactly<T>(values, where);
    kind_ = Kind::list;
    where_ = where;
    if (!is_plain(own_.dtype())) tensor_ = &own_;  // strings have one dtype only
  }

  Tensor own_;
  const Tensor* tensor_ = nullptr;
  int64_t integer_ = 0;
  double real_ = 0;
  double imag_ = 0;
  Kind kind_ = Kind::none;
  Location where_;
};

// Several operands in one parameter: concat({a, b}, 0) or concat(vector_of_tensors, 0).
class RUNNEL_API OperandList {
 public:
  using Location = SourceSite;
  OperandList(std::initializer_list<Operand> list, Location where = Location::current()) : where_(where) {  // NOLINT
    for (const Operand& o : list) values_.push_back(o.value());
  }
  OperandList(std::vector<Tensor> list, Location where = Location::current())  // NOLINT
      : values_(std::move(list)), where_(where) {}
  template <HasTensorValue V>
  OperandList(const std::vector<V>& list, Location where = Location::current()) : where_(where) {  // NOLINT
    for (const V& v : list) values_.push_back(detail::tensor_of(v, where));
  }

  const std::vector<Tensor>& values() const { return values_; }
  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  const Tensor& operator[](size_t i) const { return values_[i]; }
  const Location& where() const { return where_; }

 private:
  std::vector<Tensor> values_;
  Location where_;
};

}  // namespace runnel
