#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "runnel/base/source_site.h"
#include "runnel/tensor/tensor.h"

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

// What stands for an index that is a tensor: a Tensor, a Variable.
template <class T>
concept TensorIndex =
    std::same_as<T, Tensor> || (std::is_class_v<T> && !Element<T> && std::convertible_to<const T&, Tensor>);

// The same with bounds that are tensors, integer scalars; one that is not defined is a number or missing.
struct TensorSlice {
  Slice numbers;
  Tensor start, stop;
};
template <class A, class B>
  requires((TensorIndex<A> || TensorIndex<B>) && (TensorIndex<A> || std::convertible_to<A, SliceBound>) &&
           (TensorIndex<B> || std::convertible_to<B, SliceBound>))
TensorSlice slice(const A& start, const B& stop, int64_t step = 1) {
  TensorSlice made;
  made.numbers.step = step;
  if constexpr (TensorIndex<A>) {
    made.start = start;
  } else {
    made.numbers.start = SliceBound(start).at;
  }
  if constexpr (TensorIndex<B>) {
    made.stop = stop;
  } else {
    made.numbers.stop = SliceBound(stop).at;
  }
  return made;
}

// One place of x[...] or x(...): a position (which drops the dimension), a slice, a new axis or the ellipsis. Remembers
// the line of the expression, for errors.
class Index {
 public:
  using Location = SourceSite;
  enum class Kind { position, slice, newaxis, ellipsis };
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Index(T position, Location where = Location::current())  // NOLINT: implicit
      : kind(Kind::position), at(static_cast<int64_t>(position)), where(where) {}
  template <TensorIndex T>
  Index(const T& position, Location where = Location::current())  // NOLINT
      : kind(Kind::position), start(position), where(where) {}
  Index(const Slice& s, Location where = Location::current()) : kind(Kind::slice), range(s), where(where) {}  // NOLINT
  Index(const TensorSlice& s, Location where = Location::current())                                           // NOLINT
      : kind(Kind::slice), range(s.numbers), start(s.start), stop(s.stop), where(where) {}
  Index(NewAxis, Location where = Location::current()) : kind(Kind::newaxis), where(where) {}    // NOLINT
  Index(Ellipsis, Location where = Location::current()) : kind(Kind::ellipsis), where(where) {}  // NOLINT

  bool has_tensor() const { return start.defined() || stop.defined(); }

  Kind kind;
  int64_t at = 0;
  Slice range{};
  Tensor start, stop;  // in place of a number: of a position `start`
  Location where;
};

}  // namespace runnel
