#include "runnel/io/hdf5_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "runnel/base/format.h"

namespace runnel::io {
namespace {

Hdf5Library load_hdf5() {
  const char* wish = std::getenv("RUNNEL_HDF5_LIBRARY");
  const char* name = wish ? wish : "libhdf5_serial.so.103";
  void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);  // stays: the library cleans up when the program ends
  if (!handle) {
    throw make_error(
        Code::unavailable,
        "[hdf5] writing files of HDF5 (.h5) needs the library {}, which cannot be loaded ({}). Debian has it "
        "in the package libhdf5-103-1: apt install libhdf5-103-1. RUNNEL_HDF5_LIBRARY names another file",
        name, dlerror());
  }
  const auto find = [&](const char* symbol) {
    void* const address = dlsym(handle, symbol);
    if (address) return address;
    throw make_error(Code::unavailable, "[hdf5] {} has no {}: it is not the library of HDF5 {}.{}", name, symbol,
                     H5_VERS_MAJOR, H5_VERS_MINOR);
  };
  Hdf5Library lib;
#define RUNNEL_HDF5_LOAD(symbol) lib.symbol = reinterpret_cast<decltype(lib.symbol)>(find(#symbol));
  RUNNEL_HDF5_FUNCTIONS(RUNNEL_HDF5_LOAD)
#undef RUNNEL_HDF5_LOAD
  unsigned major = 0, minor = 0, release = 0;
  lib.H5get_libversion(&major, &minor, &release);
  if (major != H5_VERS_MAJOR || minor != H5_VERS_MINOR) {
    throw make_error(Code::unavailable, "[hdf5] {} is HDF5 {}.{}.{}; {}.{} is needed", name, major, minor, release,
                     H5_VERS_MAJOR, H5_VERS_MINOR);
  }
  lib.H5open();  // gives the numbers below their values
#define RUNNEL_HDF5_LOAD(symbol) lib.symbol = *static_cast<const hid_t*>(find(#symbol));
  RUNNEL_HDF5_IDS(RUNNEL_HDF5_LOAD)
#undef RUNNEL_HDF5_LOAD
  lib.H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // it would print its errors
  return lib;
}

}  // namespace

const Hdf5Library& hdf5_library() {
  static const Hdf5Library lib = load_hdf5();  // after a failure the next call tries again
  return lib;
}

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::string take_hdf5_reason(const Hdf5Library& lib) {
  std::string reason;
  // The innermost failure comes first.
  const auto visit = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    auto& text = *static_cast<std::string*>(out);
    if (text.empty() && error->desc) text = error->desc;
    return 0;
  };
  lib.H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, visit, &reason);
  lib.H5Eclear2(H5E_DEFAULT);
  return reason.empty() ? reason : " (" + reason + ")";
}

}  // namespace runnel::io
