#pragma once

#include <string>

#include "runnel/base/env.h"

namespace runnel::test {

// A fresh folder, removed with all it holds.
class TempDir {
 public:
  TempDir() : path_(Env::posix().create_temp_dir()) {}
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { Env::posix().remove_tree(path_); }

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return join_path(path_, name); }

 private:
  std::string path_;
};

inline std::string text_of(ByteSpan bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

inline std::string read_text(const std::string& path) { return text_of(Env::posix().read_file(path)); }

}  // namespace runnel::test
