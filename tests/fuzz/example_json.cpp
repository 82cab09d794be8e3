#include <cstdint>
#include <cstdlib>

#include "runnel/base/error.h"
#include "runnel/io/example.h"

// Text as an Example in JSON: an Error, or a value that its own JSON gives again (floats that are no number aside).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel::io;
  try {
    const Example example = example_from_json({reinterpret_cast<const char*>(data), size});
    if (example_from_json(example_to_json(example)).serialize() != example.serialize()) std::abort();
  } catch (const runnel::Error&) {
  }
  return 0;
}
