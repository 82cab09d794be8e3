#pragma once

// Internal: dtypes as types of HDF5.
#include <cstddef>
#include <string>

#include "runnel/io/hdf5_library.h"

namespace runnel::io {

// How elements of the dtype lie in memory and in the files we write; an Error for dtypes that no file has.
Hdf5Handle hdf5_type(const Hdf5Library& lib, const std::string& dtype);
size_t hdf5_dtype_size(const std::string& dtype);

}  // namespace runnel::io
