#pragma once

// The events that the benchmarks of event files read and write: scalars, as TensorFlow writes them.
#include <cstdint>
#include <cstring>
#include <string>

#include "bench/records.h"

namespace bench {

inline constexpr int kScalars = 2000;    // of one call
inline constexpr int kEvents = 400'000;  // in a file that is read

inline std::string scalar_event(int64_t step) {
  std::string event(9, '\x09');
  const double time = 1.7e9;
  std::memcpy(event.data() + 1, &time, 8);
  const std::string tensor("\x08\x01\x12\x00\x22\x04\x00\x00\x80\x3f", 10);
  const std::string metadata = wire_field(0x0a, wire_field(0x0a, "scalars"));
  const std::string value = wire_field(0x0a, "loss") + wire_field(0x42, tensor) + wire_field(0x4a, metadata);
  return event + '\x10' + wire_varint(static_cast<uint64_t>(step)) + wire_field(0x2a, wire_field(0x0a, value));
}

}  // namespace bench
