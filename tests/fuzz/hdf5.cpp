#include "runnel/io/hdf5.h"

#include <cstdint>
#include <cstdlib>

#include "runnel/base/error.h"

// A file of HDF5: an Error, or objects that can be listed, arrays of the size that their shapes say, texts.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  try {
    const io::Hdf5Reader reader = io::Hdf5Reader::parse({reinterpret_cast<const std::byte*>(data), size}, "fuzz");
    int left = 100;
    reader.walk("", [&](const std::string& object, io::Hdf5Kind kind) {
      if (--left < 0) throw Error(Code::cancelled, "enough");
      try {
        if (kind == io::Hdf5Kind::dataset) {
          const io::Hdf5ArrayInfo info = reader.info(object);
          const io::NpyArray array = reader.read(object);
          if (info.shape != array.shape || info.dtype != array.dtype) std::abort();
        }
        for (const char* name : {"weight_names", "layer_names"}) {
          if (reader.has_attribute(object, name)) reader.text_attribute(object, name);
        }
      } catch (const Error&) {
      }
    });
  } catch (const Error&) {
  }
  return 0;
}
