#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/tensor/format_array.h"

// Internal: how the elements of an array are written, before they are laid out in lines and brackets.
namespace runnel {

// The words NumPy writes for the elements at `indices` when they stand in one array: padded to align with
// each other where the dtype asks for it.
std::vector<std::string> format_elements(const ArrayView& array, std::span<const int64_t> indices,
                                         const ArrayFormat& options);

// str() of the NumPy scalar (or Python bytes object) at `index`.
std::string format_scalar(const ArrayView& array, int64_t index);

}  // namespace runnel
