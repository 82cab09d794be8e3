#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::data {

using test::expect_error;
using ::testing::ElementsAre;
using Ints = std::vector<int64_t>;

// Every element of a dataset of integers, batches one after the other.
inline Ints ints(const Tensor& t) { return cast(t, DType::int64).to_vector<int64_t>(); }
inline Ints ints(const Dataset<Tensor>& d) {
  Ints all;
  for (const Tensor& t : d) {
    for (const int64_t v : ints(t)) all.push_back(v);
  }
  return all;
}
inline Ints rest(Iterator<Tensor>& it) {
  Ints all;
  while (auto t = it.next()) {
    for (const int64_t v : ints(*t)) all.push_back(v);
  }
  return all;
}
inline Ints iota(int64_t n, int64_t from = 0) {
  Ints all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), from);
  return all;
}
// The same numbers from a source that has no index.
inline Dataset<Tensor> stream(int64_t n) {
  return from_generator([n] {
    return [n, i = int64_t{0}]() mutable -> std::optional<Tensor> {
      if (i == n) return std::nullopt;
      return Tensor(i++);
    };
  });
}

}  // namespace runnel::data
