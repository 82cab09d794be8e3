#pragma once

// What the benchmarks of checkpoints save: 974 MB in 357 tensors, as a transformer has them: a few large ones, many of
// some megabytes, many small. Every side makes the same; bench/peers/checkpoint_tensors.py is this file in Python.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace bench {

inline std::vector<std::vector<int64_t>> checkpoint_shapes() {
  std::vector<std::vector<int64_t>> shapes = {{32000, 1024}};
  for (int layer = 0; layer < 16; ++layer) {
    for (int i = 0; i < 4; ++i) shapes.push_back({1024, 1024});
    for (int i = 0; i < 12; ++i) shapes.push_back({1024});
    shapes.push_back({1024, 4096});
    shapes.push_back({4096});
    shapes.push_back({4096, 1024});
    for (int i = 0; i < 3; ++i) shapes.emplace_back();
  }
  for (int i = 0; i < 4; ++i) shapes.push_back({3, 3, 256, 1000});
  return shapes;
}

// Files go into memory, where the disk decides nothing, unless RUNNEL_BENCH_DIR names another folder.
inline std::string checkpoint_folder() {
  const char* wish = std::getenv("RUNNEL_BENCH_DIR");
  return wish != nullptr ? wish : "/dev/shm";
}

}  // namespace bench
