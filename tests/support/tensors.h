#pragma once

// Tensors as vectors of double and back, and derivatives by differences: what tests against naive references
// need.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "runnel/runnel.h"
#include "runnel/tensor/type_sets.h"

namespace runnel::test {

inline Tensor tensor_of(const std::vector<double>& values, const Shape& shape, DType dtype) {
  Tensor t = Tensor::empty(dtype, shape);
  real_numbers.for_each([&]<class T>() {
    if (dtype != dtype_of<T>) return;
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_arithmetic_v<T>) {
        t.mutable_data<T>()[i] = static_cast<T>(values[i]);
      } else {
        t.mutable_data<T>()[i] = T(static_cast<float>(values[i]));
      }
    }
  });
  return t;
}

template <class T>
double as_double(const T& v) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(v);
  } else {
    return static_cast<double>(static_cast<float>(v));
  }
}

inline std::vector<double> values_of(const Tensor& t) {
  std::vector<double> values;
  real_numbers.for_each([&]<class T>() {
    if (t.dtype() != dtype_of<T>) return;
    for (const T& v : t.host<T>()) values.push_back(as_double(v));
  });
  return values;
}

// Uniform in [low, high), the same for the same seed; float16 and bfloat16 hold them rounded.
inline Tensor random_tensor(const Shape& shape, DType dtype = DType::float32, uint32_t seed = 1, double low = -1,
                            double high = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> pick(low, high);
  std::vector<double> values(static_cast<size_t>(shape.num_elements()));
  for (double& v : values) v = pick(engine);
  return tensor_of(values, shape, dtype);
}

inline double tolerance(DType dtype) {
  switch (dtype) {
    case DType::float64: return 1e-12;
    case DType::float16: return 4e-3;
    case DType::bfloat16: return 3e-2;
    default: return 2e-5;
  }
}

// Every element within `tol` of the expected one, relative to the larger of 1 and its size.
inline void expect_close(const Tensor& got, const std::vector<double>& expected, const Shape& shape, double tol) {
  ASSERT_EQ(got.shape(), shape);
  const std::vector<double> values = values_of(got);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], tol * std::max(1.0, std::abs(expected[i]))) << "element " << i;
  }
}

inline void expect_same_bits(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.dtype(), b.dtype());
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.num_bytes()), 0);
}

using TensorFunction = std::function<Tensor(const std::vector<Tensor>&)>;

// d sum(weights * f(x)) / dx for every x, by the tape; weights are fixed random numbers.
inline std::vector<Tensor> tape_gradients(const TensorFunction& f, const std::vector<Tensor>& x) {
  GradientTape tape;
  tape.watch(x);
  const Tensor y = f(x);
  const Tensor weights = random_tensor(y.shape(), y.dtype(), 77, 0.5, 1.5);
  std::vector<Tensor> result;
  for (const Gradient& g : tape.gradient(reduce_sum(y * weights), x, {}, UnconnectedGradients::zero)) {
    result.push_back(g.value());
  }
  return result;
}

// Compares the tape's first and second derivatives of f, at float64 inputs, with central differences. At most
// `checks` elements of each input are tried.
inline void expect_gradients(const TensorFunction& f, const std::vector<Tensor>& x, int checks = 12, double tol = 1e-6,
                             bool second = true) {
  constexpr double eps = 1e-5;
  auto weighted = [&](const std::vector<Tensor>& at) {
    const Tensor y = f(at);
    const auto w = values_of(random_tensor(y.shape(), y.dtype(), 77, 0.5, 1.5));
    const auto v = values_of(y);
    double sum = 0;
    for (size_t i = 0; i < v.size(); ++i) sum += v[i] * w[i];
    return sum;
  };
  const std::vector<Tensor> gradients = tape_gradients(f, x);
  for (size_t k = 0; k < x.size(); ++k) {
    const auto got = values_of(gradients[k]);
    const auto base = values_of(x[k]);
    ASSERT_EQ(gradients[k].shape(), x[k].shape());
    const size_t step = std::max<size_t>(1, base.size() / static_cast<size_t>(checks));
    for (size_t i = 0; i < base.size(); i += step) {
      auto at = [&](double d) {
        std::vector<Tensor> moved = x;
        std::vector<double> v = base;
        v[i] += d;
        moved[k] = tensor_of(v, x[k].shape(), x[k].dtype());
        return weighted(moved);
      };
      const double expected = (at(eps) - at(-eps)) / (2 * eps);
      ASSERT_NEAR(got[i], expected, tol * std::max(1.0, std::abs(expected))) << "input " << k << " element " << i;
    }
  }
  if (!second) return;
  for (size_t k = 0; k < x.size(); ++k) {  // the gradient by input k is a function of all inputs
    const TensorFunction gradient = [&](const std::vector<Tensor>& at) { return tape_gradients(f, at)[k]; };
    SCOPED_TRACE("second derivative, first by input " + std::to_string(k));
    expect_gradients(gradient, x, checks / 2 + 1, tol * 10, false);
  }
}

}  // namespace runnel::test
