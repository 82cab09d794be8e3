#pragma once

#include <cstdint>
#include <optional>

namespace runnel {

struct None {};
inline constexpr None none;
struct NewAxis {};
inline constexpr NewAxis newaxis;
struct Ellipsis {};
inline constexpr Ellipsis ellipsis;

// start:stop:step of one dimension; a missing part is Python's default for the step's sign.
struct Slice {
  std::optional<int64_t> start, stop;
  int64_t step = 1;
};
inline constexpr Slice all{};

struct SliceBound {
  constexpr SliceBound(int64_t at) : at(at) {}  // NOLINT: implicit
  constexpr SliceBound(None) {}                 // NOLINT: implicit
  std::optional<int64_t> at;
};
constexpr Slice slice(SliceBound start, SliceBound stop, int64_t step = 1) { return {start.at, stop.at, step}; }

// One place of x(...): a position (which drops the dimension), a slice, a new axis or the ellipsis.
class Index {
 public:
  enum class Kind { position, slice, newaxis, ellipsis };
  constexpr Index(int64_t position) : kind(Kind::position), at(position) {}  // NOLINT: implicit
  constexpr Index(int position) : Index(static_cast<int64_t>(position)) {}   // NOLINT
  constexpr Index(Slice s) : kind(Kind::slice), range(s) {}                  // NOLINT
  constexpr Index(NewAxis) : kind(Kind::newaxis) {}                          // NOLINT
  constexpr Index(Ellipsis) : kind(Kind::ellipsis) {}                        // NOLINT

  Kind kind;
  int64_t at = 0;
  Slice range{};
};

}  // namespace runnel
