#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/base/source_site.h"

namespace runnel::io {

// A box inside of a tensor, one extent for each dimension: how a checkpoint keeps the parts of a partitioned variable.
struct CheckpointExtent {
  int64_t start = 0;
  int64_t length = -1;  // -1: the whole dimension
  friend bool operator==(const CheckpointExtent&, const CheckpointExtent&) = default;
};
using CheckpointSlice = std::vector<CheckpointExtent>;

// "100 20 0,50:-" as ops and TensorFlow's tools write it: the shape of the whole tensor, then for each dimension
// START,LENGTH or - for all of it.
struct CheckpointSliceSpec {
  std::vector<int64_t> shape;
  CheckpointSlice slice;
};
RUNNEL_API CheckpointSliceSpec parse_slice_spec(const std::string& text, SourceSite where = SourceSite::current());

// The shape of the part; an Error (invalid_argument) where it does not lie inside the whole.
RUNNEL_API std::vector<int64_t> slice_shape(std::span<const int64_t> shape, const CheckpointSlice& slice,
                                            SourceSite where = SourceSite::current());
RUNNEL_API bool is_whole(const CheckpointSlice& slice);

// Do two parts of a tensor have elements in common? And which two of several do; nothing where none have.
RUNNEL_API bool slices_overlap(std::span<const int64_t> shape, const CheckpointSlice& a, const CheckpointSlice& b);
RUNNEL_API std::optional<std::pair<size_t, size_t>> find_overlap(std::span<const int64_t> shape,
                                                                 std::span<const CheckpointSlice> slices);

// The key under which a checkpoint keeps a part of a tensor. It begins with a zero byte, which no other key does.
RUNNEL_API std::string slice_key(std::string_view key, const CheckpointSlice& slice);

// Copies what two parts of one tensor have in common, from one to the other; returns how many elements that is. Both
// lie dense in memory, row by row.
RUNNEL_API uint64_t copy_common_part(std::span<const int64_t> shape, size_t element_size, const CheckpointSlice& from,
                                     ByteSpan from_bytes, const CheckpointSlice& to, std::span<std::byte> to_bytes);

}  // namespace runnel::io
