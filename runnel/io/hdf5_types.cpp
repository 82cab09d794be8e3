#include "runnel/io/hdf5_types.h"

#include <array>
#include <string_view>

#include "runnel/base/format.h"

namespace runnel::io {
namespace {

struct Hdf5NumberType {
  std::string_view dtype;
  size_t size;
  hid_t Hdf5Library::*id;  // null: made of another
};
constexpr std::array<Hdf5NumberType, 13> kHdf5Types = {{{"bool", 1, nullptr},
                                                        {"int8", 1, &Hdf5Library::H5T_STD_I8LE_g},
                                                        {"int16", 2, &Hdf5Library::H5T_STD_I16LE_g},
                                                        {"int32", 4, &Hdf5Library::H5T_STD_I32LE_g},
                                                        {"int64", 8, &Hdf5Library::H5T_STD_I64LE_g},
                                                        {"uint8", 1, &Hdf5Library::H5T_STD_U8LE_g},
                                                        {"uint16", 2, &Hdf5Library::H5T_STD_U16LE_g},
                                                        {"uint32", 4, &Hdf5Library::H5T_STD_U32LE_g},
                                                        {"uint64", 8, &Hdf5Library::H5T_STD_U64LE_g},
                                                        {"float16", 2, nullptr},
                                                        {"bfloat16", 2, nullptr},
                                                        {"float32", 4, &Hdf5Library::H5T_IEEE_F32LE_g},
                                                        {"float64", 8, &Hdf5Library::H5T_IEEE_F64LE_g}}};
constexpr size_t kFloat16Bias = 15, kBfloat16Bias = 127;

const Hdf5NumberType& number_type(const std::string& dtype) {
  for (const Hdf5NumberType& type : kHdf5Types) {
    if (type.dtype == dtype) return type;
  }
  throw make_error(Code::unimplemented, "[hdf5] arrays of {} cannot be kept in files of HDF5", dtype);
}

// h5py's bool: one byte with two names.
Hdf5Handle bool_type(const Hdf5Library& lib) {
  Hdf5Handle type(lib.H5Tenum_create(lib.H5T_STD_I8LE_g), lib.H5Tclose);
  const signed char no = 0, yes = 1;
  lib.H5Tenum_insert(type, "FALSE", &no);
  lib.H5Tenum_insert(type, "TRUE", &yes);
  return type;
}

Hdf5Handle short_float(const Hdf5Library& lib, size_t exponent_bits, size_t bias) {
  const size_t mantissa = 15 - exponent_bits;
  Hdf5Handle type(lib.H5Tcopy(lib.H5T_IEEE_F32LE_g), lib.H5Tclose);
  lib.H5Tset_fields(type, 15, mantissa, exponent_bits, 0, mantissa);
  lib.H5Tset_size(type, 2);
  lib.H5Tset_ebias(type, bias);
  return type;
}

}  // namespace

Hdf5Handle hdf5_type(const Hdf5Library& lib, const std::string& dtype) {
  const Hdf5NumberType& type = number_type(dtype);
  if (type.id) return {lib.H5Tcopy(lib.*type.id), lib.H5Tclose};
  if (dtype == "bool") return bool_type(lib);
  return dtype == "float16" ? short_float(lib, 5, kFloat16Bias) : short_float(lib, 8, kBfloat16Bias);
}

size_t hdf5_dtype_size(const std::string& dtype) { return number_type(dtype).size; }

}  // namespace runnel::io
