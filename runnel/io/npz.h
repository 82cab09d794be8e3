#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/base/source_site.h"

namespace runnel::io {

// NumPy's files: .npy holds one array, .npz is a zip archive of .npy files.
struct NpyArray {
  std::string dtype;  // "float32", "uint8", "bool", "complex64", ...: NumPy's names
  std::vector<int64_t> shape;
  std::vector<std::byte> data;  // row-major, in the machine's byte order
};

struct NpyView {
  std::string dtype;
  std::vector<int64_t> shape;
  ByteSpan data;
};

RUNNEL_API size_t
npy_dtype_size(const std::string& dtype,
               SourceSite where = SourceSite::current());  // an Error for names that are none of NumPy's plain types

// The array of a .npy file: formats 1 to 3, little and big endian, C and Fortran order. Texts, records and Python
// objects are an Error (unimplemented), damaged files another (data_loss) with the offset. `name` stands in messages.
RUNNEL_API NpyArray parse_npy(ByteSpan bytes, const std::string& name, SourceSite where = SourceSite::current());
RUNNEL_API NpyArray read_npy(const std::string& path, Env& env = Env::posix(),
                             SourceSite where = SourceSite::current());

struct NamedArray {
  std::string name;  // of the member, without ".npy"
  NpyArray array;
};
// The arrays of an archive, in its order. More than max_bytes of them together is an Error: a small hostile file must
// not fill the memory.
RUNNEL_API std::vector<NamedArray> parse_npz(ByteSpan bytes, const std::string& name,
                                             size_t max_bytes = size_t{1} << 34,
                                             SourceSite where = SourceSite::current());
RUNNEL_API std::vector<NamedArray> read_npz(const std::string& path, Env& env = Env::posix(),
                                            SourceSite where = SourceSite::current());

// What numpy.load reads back.
RUNNEL_API std::vector<std::byte> npy(const NpyView& array, SourceSite where = SourceSite::current());
struct NamedView {
  std::string name;
  NpyView array;
};
RUNNEL_API std::vector<std::byte> npz(const std::vector<NamedView>& arrays, bool compress = false,
                                      SourceSite where = SourceSite::current());

}  // namespace runnel::io
