#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runnel/base/error.h"
#include "runnel/tensor/serialize.h"

// A TensorProto: either an Error, or a tensor that comes back from the bytes it is written as.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  try {
    const Tensor t = parse_tensor_proto(std::string_view(reinterpret_cast<const char*>(data), size), 1 << 20);
    const Tensor again = parse_tensor_proto(serialize_tensor_proto(t));
    if (again.dtype() != t.dtype() || !(again.shape() == t.shape())) std::abort();
    if (is_plain(t.dtype()) && std::memcmp(again.raw(), t.raw(), t.num_bytes()) != 0) std::abort();
    if (!is_plain(t.dtype()) && again.to_vector<std::string>() != t.to_vector<std::string>()) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
