#pragma once

// Checks of ops that only move elements: a naive reference says, for each element of the output, which element of the
// input it is (or none: zero), and every dtype is run through it.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "runnel/runnel.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {

inline Dims unravel(int64_t at, const Shape& shape) {
  Dims index(static_cast<size_t>(shape.rank()), 0);
  for (int d = shape.rank() - 1; d >= 0; --d) {
    index[static_cast<size_t>(d)] = at % shape[d];
    at /= shape[d];
  }
  return index;
}

inline int64_t ravel(const Dims& index, const Shape& shape) {
  int64_t at = 0;
  for (int d = 0; d < shape.rank(); ++d) at = at * shape[d] + index[static_cast<size_t>(d)];
  return at;
}

template <class T>
T numbered_element(int64_t k) {
  if constexpr (std::is_same_v<T, Bytes>) {
    return Bytes("element " + std::to_string(k));
  } else if constexpr (std::is_same_v<T, bool>) {
    return k % 3 == 1;
  } else if constexpr (is_complex(dtype_of<T>)) {
    return T(static_cast<typename T::value_type>(k), static_cast<typename T::value_type>(-2 * k));
  } else {
    return T(static_cast<T>(k % 100));
  }
}
template <>
inline Half numbered_element<Half>(int64_t k) {
  return Half(static_cast<float>(k));
}
template <>
inline BFloat16 numbered_element<BFloat16>(int64_t k) {
  return BFloat16(static_cast<float>(k % 200));
}

// Element i is `first + i` in the dtype's own way.
inline Tensor numbered(DType dtype, const Shape& shape, int64_t first = 1) {
  Tensor t = Tensor::empty(dtype, shape);
  data_types.for_each([&]<class T>() {
    if (dtype_of<T> != dtype) return;
    for (int64_t i = 0; i < t.num_elements(); ++i) t.mutable_data<T>()[i] = numbered_element<T>(first + i);
  });
  return t;
}

constexpr int64_t kZero = -1;
// The position in the input of the output element at an index, or kZero.
using Source = std::function<int64_t(const Dims&)>;

inline void expect_moved_as(DType dtype, const Tensor& in, const Tensor& out, const Shape& shape,
                            const Source& source) {
  ASSERT_EQ(out.dtype(), dtype);
  ASSERT_EQ(out.shape().str(), shape.str());
  data_types.for_each([&]<class T>() {
    if (dtype_of<T> != dtype) return;
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      const int64_t from = source(unravel(i, shape));
      const T expected = from == kZero ? T() : in.data<T>()[from];
      ASSERT_TRUE(out.data<T>()[i] == expected) << dtype_name(dtype) << ": element " << i << " is not number " << from;
    }
  });
}

// `op` of a tensor of shape `from` has shape `to` and the elements that `source` names, for every dtype.
inline void expect_moved(const std::function<Tensor(const Tensor&)>& op, const Shape& from, const Shape& to,
                         const Source& source) {
  data_types.for_each([&]<class T>() {
    SCOPED_TRACE(dtype_name(dtype_of<T>));
    const Tensor in = numbered(dtype_of<T>, from);
    expect_moved_as(dtype_of<T>, in, op(in), to, source);
  });
}

// The same bits with one thread and with two.
inline void expect_same_with_threads(const std::function<Tensor()>& op) {
  const int before = num_threads();
  set_num_threads(1);
  const Tensor one = op();
  set_num_threads(2);
  const Tensor two = op();
  set_num_threads(before);
  ASSERT_EQ(one.shape().str(), two.shape().str());
  EXPECT_EQ(std::memcmp(one.raw(), two.raw(), one.num_bytes()), 0);
}

}  // namespace runnel
