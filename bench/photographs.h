#pragma once

// The photographs both sides of a benchmark decode: the JPEG files of cats_vs_dogs, beside the project or where
// RUNNEL_FIXTURES says.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace bench {

inline constexpr int kPhotographs = 600, kBatch = 32, kSide = 256;
// How often a pipeline goes over them in one call: long enough for its beginning and end to count little.
inline constexpr int kPasses = 2;

inline std::vector<std::string> photographs() {
  namespace fs = std::filesystem;
  fs::path root;
  if (const char* wish = std::getenv("RUNNEL_FIXTURES")) root = wish;
  for (fs::path at = fs::absolute(RUNNEL_SOURCE_DIR); root.empty() && at.has_relative_path(); at = at.parent_path()) {
    if (fs::is_directory(at / "shared" / "fixtures")) root = at / "shared" / "fixtures";
  }
  std::vector<std::string> files;
  if (fs::is_directory(root / "cats_vs_dogs")) {
    for (const auto& e : fs::recursive_directory_iterator(root / "cats_vs_dogs")) {
      if (e.path().extension() == ".jpg") files.push_back(e.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  if (files.size() < kPhotographs) {
    std::fprintf(stderr, "the photographs of cats_vs_dogs are missing: set RUNNEL_FIXTURES to the folder above it\n");
    std::exit(2);
  }
  files.resize(kPhotographs);
  return files;
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace bench
