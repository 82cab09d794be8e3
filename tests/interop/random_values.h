#pragma once

// Draws of everything a call consists of.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "runnel/tensor/tensor.h"

namespace runnel::interop {

uint64_t hashed(uint64_t seed, const std::string& text);

// The same numbers on every machine for the same seed (the distributions of the standard library are not).
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t bits() { return engine_(); }
  // From [0, n); n > 0.
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }
  bool once_in(int64_t n) { return below(n) == 0; }
  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53; }
  double normal();
  template <class T>
  T& one_of(std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

// Elements for a tensor of this dtype and shape, drawn by one of several rules: like those of `like` (from their range,
// or some of them again), small numbers, and with NaN, infinities and the largest and smallest ones. `positions` says
// that the numbers select something (axes, sizes, indices), so that most draws stay near what they are.
Tensor random_tensor(DType dtype, const Shape& shape, const Tensor& like, bool positions, Random& r);

// The elements of t, chosen anew, in another shape.
Tensor reshaped(const Tensor& t, const Shape& shape, Random& r);

std::string random_text(const std::string& like, Random& r);

}  // namespace runnel::interop
