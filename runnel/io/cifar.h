#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"

namespace runnel::io {

// The binary version of CIFAR-10: records of one byte for the class, 0 to 9, and 32 x 32 bytes for each of red, green
// and blue.
struct Cifar10 {
  int64_t count = 0;
  std::vector<std::byte> labels;  // [count]
  std::vector<std::byte> images;  // [count, 32, 32, 3]: colours side by side, as images mostly are
};

// Adds the records of one file. `name` stands in errors (data_loss), which also give the offset.
RUNNEL_API void append_cifar10(ByteSpan bytes, const std::string& name, Cifar10& out);
RUNNEL_API Cifar10 read_cifar10(const std::vector<std::string>& paths, Env& env = Env::posix());

}  // namespace runnel::io
