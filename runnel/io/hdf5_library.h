#pragma once

// Internal: libhdf5, loaded when it is first asked for: when a file is written. Reading does without
// (hdf5_structure.h).
#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

namespace runnel::io {

// Formatting does not come to rest with such lists.
// clang-format off
#define RUNNEL_HDF5_FUNCTIONS(X) \
  X(H5open) X(H5get_libversion) X(H5Eset_auto2) X(H5Eclear2) X(H5Ewalk2) X(H5Fcreate) X(H5Fclose) X(H5Fflush) \
  X(H5Fget_file_image) X(H5Pcreate) X(H5Pclose) X(H5Pset_fapl_core) X(H5Pset_create_intermediate_group) \
  X(H5Gcreate2) X(H5Oopen) X(H5Oclose) X(H5Dcreate2) X(H5Dwrite) X(H5Dclose) X(H5Sclose) X(H5Screate) \
  X(H5Screate_simple) X(H5Acreate2) X(H5Awrite) X(H5Aclose) X(H5Tcopy) X(H5Tclose) X(H5Tset_size) X(H5Tset_fields) \
  X(H5Tset_ebias) X(H5Tenum_create) X(H5Tenum_insert)
// Variables of the library that hold numbers of types and classes.
#define RUNNEL_HDF5_IDS(X) \
  X(H5P_CLS_FILE_ACCESS_ID_g) X(H5P_CLS_LINK_CREATE_ID_g) X(H5T_C_S1_g) X(H5T_IEEE_F32LE_g) X(H5T_IEEE_F64LE_g) \
  X(H5T_STD_I8LE_g) X(H5T_STD_I16LE_g) X(H5T_STD_I32LE_g) X(H5T_STD_I64LE_g) X(H5T_STD_U8LE_g) X(H5T_STD_U16LE_g) \
  X(H5T_STD_U32LE_g) X(H5T_STD_U64LE_g)
// clang-format on

// H5F_ACC_TRUNC, which as a macro calls the library by its linked name.
constexpr unsigned kHdf5Truncate = 2;

struct Hdf5Library {
#define RUNNEL_HDF5_MEMBER(name) decltype(&::name) name = nullptr;
  RUNNEL_HDF5_FUNCTIONS(RUNNEL_HDF5_MEMBER)
#undef RUNNEL_HDF5_MEMBER
#define RUNNEL_HDF5_MEMBER(name) hid_t name = -1;
  RUNNEL_HDF5_IDS(RUNNEL_HDF5_MEMBER)
#undef RUNNEL_HDF5_MEMBER
};

// RUNNEL_HDF5_LIBRARY names another file than Debian's. An Error (unavailable) where it cannot be loaded.
const Hdf5Library& hdf5_library();
// Debian builds it for one thread: whoever calls it holds this.
std::mutex& hdf5_mutex();
// What the library says of its last failure, and forgets: "(bad heap free list)"; empty if nothing.
std::string take_hdf5_reason(const Hdf5Library& lib);

// An object of the library, closed at the end.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }  // NOLINT: implicit

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

}  // namespace runnel::io
