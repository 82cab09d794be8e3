#pragma once

// Files that TensorFlow wrote. They are no part of the project: tests that use them skip, saying so, where the folder
// is missing.
#include <gtest/gtest.h>

#include <source_dir.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace runnel::test {

// RUNNEL_FIXTURES, or shared/fixtures beside the project or a folder above it; empty when there is none.
inline std::filesystem::path fixtures() {
  namespace fs = std::filesystem;
  if (const char* wish = std::getenv("RUNNEL_FIXTURES")) return fs::is_directory(wish) ? fs::path(wish) : fs::path();
  for (fs::path at = fs::absolute(kSourceDir); at.has_relative_path(); at = at.parent_path()) {
    if (fs::is_directory(at / "shared" / "fixtures")) return at / "shared" / "fixtures";
  }
  return {};
}

inline std::string read_bytes(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace runnel::test

#define RUNNEL_REQUIRE_FIXTURES()                                                               \
  if (::runnel::test::fixtures().empty()) {                                                     \
    GTEST_SKIP() << "the folder with TensorFlow's files is missing (RUNNEL_FIXTURES names it)"; \
  }
