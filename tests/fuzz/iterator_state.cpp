#include <cstdint>

#include "tests/support/iterator_states.h"

// Bytes as the saved state of an iterator: an Error, or an iterator that works. The first byte says of which pipeline,
// the second whether the bytes are all of it, all but the checksum, or what its stages say.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using runnel::test::IteratorStates;
  static const IteratorStates all;
  if (size < 2) return 0;
  const size_t k = data[0] % all.size();
  const std::string bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string state = data[1] == 1   ? bytes
                            : data[1] == 2 ? IteratorStates::signed_state(bytes)
                                           : all.state(k, bytes);
  IteratorStates::try_state(all.pipeline(k), state);
  return 0;
}
