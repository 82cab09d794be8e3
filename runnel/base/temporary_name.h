#pragma once

// Internal.
#include <string>

namespace runnel {

// A name for a file that is written beside `path` and then takes its place: path, mark, and what no other thread of
// this process and no other process of this machine has.
std::string temporary_name(const std::string& path, const std::string& mark);

}  // namespace runnel
