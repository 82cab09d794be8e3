#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "runnel/base/error.h"
#include "runnel/io/image.h"

namespace runnel::fuzz {

inline constexpr int64_t kPixels = 1 << 18;

// Calls `run` with a sink of exactly the memory that was asked for; the size must be the same afterwards.
template <class Sample = uint8_t, class F>
void decode(F run) {
  std::vector<Sample> memory;
  io::ImageSize asked;
  try {
    const io::ImageSize got = run([&](const io::ImageSize& s) -> void* {
      if (s.samples() <= 0 || s.samples() > 4 * kPixels) std::abort();
      asked = s;
      memory.assign(static_cast<size_t>(s.samples()), 0);
      return memory.data();
    });
    if (got.samples() != asked.samples() || memory.empty()) std::abort();
  } catch (const Error&) {
  }
}

}  // namespace runnel::fuzz
