#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runnel/base/error.h"
#include "runnel/io/checkpoint_state.h"

// A state file: an Error, or a state that comes back from the text it is written as.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  try {
    const io::CheckpointState state =
        io::parse_checkpoint_state(std::string_view(reinterpret_cast<const char*>(data), size));
    const std::string text = io::checkpoint_state_text(state);
    if (io::checkpoint_state_text(io::parse_checkpoint_state(text)) != text) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
