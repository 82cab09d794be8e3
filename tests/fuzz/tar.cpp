#include "runnel/io/tar.h"

#include <cstdint>
#include <cstdlib>

#include "runnel/base/error.h"

// A tar archive: an Error, or members that lie inside it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    for (const io::TarMember& member : io::tar_members(bytes, "fuzz")) {
      if (member.bytes.data() < bytes.data()) std::abort();
      if (member.bytes.data() + member.bytes.size() > bytes.data() + bytes.size()) std::abort();
    }
  } catch (const Error&) {
  }
  return 0;
}
