#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/base/function_ref.h"
#include "runnel/base/source_site.h"
#include "runnel/io/npz.h"

namespace runnel::io {

// HDF5 files, which hold arrays in a tree of groups and notes (attributes) at each of them: Keras keeps weights in
// such. Files are written by libhdf5, which is loaded when the first one is begun and not before; where it is not
// installed, that is an Error (unavailable) that says what to install. They are read without it, for it writes past its
// memory where a file is damaged. Every Error names the file and the object in it. Arrays are numbers and bools, under
// NumPy's names of dtypes and "bfloat16".

enum class Hdf5Kind {
  none,     // there is no object of this path
  group,    //
  dataset,  // an array
  other,    // a link to elsewhere, or a named type: not followed
};

struct Hdf5ArrayInfo {
  std::string dtype;
  std::vector<int64_t> shape;
};

// Reads what h5py and libhdf5 write unless they are asked for the newest format; arrays in chunks (compressed ones) and
// links are an Error (unimplemented). Objects are named by their paths: "layers/dense/vars/0"; "/" or "" is the root.
// Several threads may read.
class RUNNEL_API Hdf5Reader {
 public:
  explicit Hdf5Reader(const std::string& path, Env& env = Env::posix(), SourceSite where = SourceSite::current());
  // A file in memory, which is copied; `name` stands in messages.
  static Hdf5Reader parse(ByteSpan bytes, const std::string& name, SourceSite where = SourceSite::current());
  ~Hdf5Reader();
  Hdf5Reader(Hdf5Reader&&) noexcept;
  Hdf5Reader& operator=(Hdf5Reader&&) noexcept;

  const std::string& path() const;
  Hdf5Kind kind(const std::string& object, SourceSite where = SourceSite::current()) const;
  // Names of what is in a group, sorted.
  std::vector<std::string> children(const std::string& group, SourceSite where = SourceSite::current()) const;
  // Everything below a group, what is in it before what is in its groups.
  void walk(const std::string& group, FunctionRef<void(const std::string& object, Hdf5Kind kind)> each,
            SourceSite where = SourceSite::current()) const;

  Hdf5ArrayInfo info(const std::string& dataset, SourceSite where = SourceSite::current()) const;
  NpyArray read(const std::string& dataset, SourceSite where = SourceSite::current()) const;

  bool has_attribute(const std::string& object, const std::string& name,
                     SourceSite where = SourceSite::current()) const;
  // Of texts: one, or the elements of a list. A list without elements may have any type.
  std::vector<std::string> text_attribute(const std::string& object, const std::string& name,
                                          SourceSite where = SourceSite::current()) const;

 private:
  struct State;
  explicit Hdf5Reader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Makes a file in memory; several threads that do so wait for each other. It stands under its name, whole, after
// finish(); before, and without it, what was there stays.
class RUNNEL_API Hdf5Writer {
 public:
  explicit Hdf5Writer(const std::string& path, Env& env = Env::posix(), SourceSite where = SourceSite::current());
  ~Hdf5Writer();
  Hdf5Writer(Hdf5Writer&&) noexcept;
  Hdf5Writer& operator=(Hdf5Writer&&) noexcept;

  // The groups on the way are made where they are missing. A name that is taken is an Error.
  void create_group(const std::string& path, SourceSite where = SourceSite::current());
  void write(const std::string& dataset, const NpyView& array, SourceSite where = SourceSite::current());
  // As h5py writes bytes and lists of bytes: texts of variable length; a list without elements as float64. A note of
  // more than 64 KB is an Error.
  void text_attribute(const std::string& object, const std::string& name, const std::string& text,
                      SourceSite where = SourceSite::current());
  void text_attribute(const std::string& object, const std::string& name, const std::vector<std::string>& texts,
                      SourceSite where = SourceSite::current());

  void finish(SourceSite where = SourceSite::current());

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Does a file begin as HDF5 files do? False where there is none.
RUNNEL_API bool is_hdf5_file(const std::string& path, Env& env = Env::posix(),
                             SourceSite where = SourceSite::current());

}  // namespace runnel::io
