#pragma once

#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

namespace runnel::test {

// Numbers from [-1, 1), real and imaginary part alike; of integers, from -5 to 5.
template <class T>
std::vector<T> random_vector(int64_t n, unsigned seed) {
  std::mt19937 gen(seed);
  std::vector<T> v(static_cast<size_t>(n));
  std::uniform_real_distribution<double> real(-1, 1);
  std::uniform_int_distribution<int> integer(-5, 5);
  for (T& x : v) {
    if constexpr (std::is_integral_v<T>) {
      x = static_cast<T>(integer(gen));
    } else if constexpr (std::is_floating_point_v<T>) {
      x = static_cast<T>(real(gen));
    } else {
      x = T(static_cast<typename T::value_type>(real(gen)), static_cast<typename T::value_type>(real(gen)));
    }
  }
  return v;
}

}  // namespace runnel::test
