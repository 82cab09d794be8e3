#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace runnel::keras {

// Integers of a setting where Keras takes one number or several: .kernel_size = 3, .kernel_size = {3, 5}.
class IntTuple : public std::vector<int64_t> {
 public:
  static constexpr const char* kTypeName = "int or list(int)";  // in listings of settings
  IntTuple() = default;
  template <std::integral T>
  IntTuple(T one) : vector(1, static_cast<int64_t>(one)) {}               // NOLINT: implicit, as all below
  IntTuple(std::initializer_list<int64_t> several) : vector(several) {}   // NOLINT
  IntTuple(std::vector<int64_t> several) : vector(std::move(several)) {}  // NOLINT
};

}  // namespace runnel::keras
