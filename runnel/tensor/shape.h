#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/base/small_vector.h"
#include "runnel/base/source_site.h"

namespace runnel {

using Dims = SmallVector<int64_t, 6>;

inline constexpr int64_t kUnknownDim = -1;

// Which dimension of a shape, counted from the end when negative. Remembers the line of the expression, for errors.
struct DimIndex {
  template <std::integral T>
  constexpr DimIndex(T at, SourceSite where = SourceSite::current())  // NOLINT: implicit
      : at(static_cast<int64_t>(at)), where(where) {
    if constexpr (std::unsigned_integral<T>) {  // sizes.size() - 1 of none, which would count from the end
      if (this->at < 0) too_large(static_cast<uint64_t>(at), where);
    }
  }
  int64_t at;
  SourceSite where;

 private:
  [[noreturn]] RUNNEL_API static void too_large(uint64_t at, const SourceSite& where);
};

// What is known of a shape: nothing, its rank, or some or all of its dimensions (kUnknownDim where unknown).
class RUNNEL_API PartialShape {
 public:
  PartialShape() = default;  // rank 0: a scalar
  PartialShape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit PartialShape(std::span<const int64_t> dims) : dims_(dims) {}
  explicit PartialShape(Dims dims) : dims_(std::move(dims)) {}
  static PartialShape unknown() {
    PartialShape shape;
    shape.known_rank_ = false;
    return shape;
  }
  static PartialShape unknown_dims(int rank) { return PartialShape(Dims(static_cast<size_t>(rank), kUnknownDim)); }

  bool has_rank() const { return known_rank_; }
  int rank() const { return known_rank_ ? static_cast<int>(dims_.size()) : -1; }
  bool is_static() const;  // every dimension is known
  // Of a shape of known rank; an Error where there is no such dimension.
  int64_t dim(DimIndex i) const {
    const auto n = static_cast<int64_t>(dims_.size());
    const int64_t at = i.at < 0 ? i.at + n : i.at;
    if (at < 0 || at >= n) [[unlikely]] {
      no_dimension(i);
    }
    return dims_[static_cast<size_t>(at)];
  }
  int64_t operator[](DimIndex i) const { return dim(i); }
  const Dims& dims() const& { return dims_; }
  Dims dims() const&& { return dims_; }
  const int64_t* begin() const { return dims_.begin(); }
  const int64_t* end() const { return dims_.end(); }

  // Could both describe one actual shape?
  bool compatible_with(const PartialShape& other) const;
  // What both together say; throws Error when they contradict each other.
  PartialShape merged_with(const PartialShape& other, SourceSite where = SourceSite::current()) const;

  std::string str() const;  // "[2,3]", "[?,3]", "[]", "<unknown>"
  friend bool operator==(const PartialShape& a, const PartialShape& b) {
    return a.known_rank_ == b.known_rank_ && a.dims_ == b.dims_;
  }

 private:
  [[noreturn]] void no_dimension(const DimIndex& i) const;

 protected:
  Dims dims_;
  bool known_rank_ = true;
};

// The shape of a value: every dimension known and >= 0.
class RUNNEL_API Shape : public PartialShape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims, CallSite where = CallSite(SourceSite::current())) : PartialShape(dims) {
    check(where.site);
  }
  explicit Shape(std::span<const int64_t> dims, CallSite where = CallSite(SourceSite::current())) : PartialShape(dims) {
    check(where.site);
  }
  explicit Shape(Dims dims, CallSite where = CallSite(SourceSite::current())) : PartialShape(std::move(dims)) {
    check(where.site);
  }
  explicit Shape(const std::vector<int64_t>& dims, CallSite where = CallSite(SourceSite::current()))
      : Shape(std::span<const int64_t>(dims), where) {}
  explicit Shape(const PartialShape& other, CallSite where = CallSite(SourceSite::current())) : PartialShape(other) {
    check(where.site);
  }

  // Wraps around for shapes that no value can have; a Tensor of one is an Error.
  int64_t num_elements() const {
    uint64_t n = 1;
    for (int64_t d : dims_) n *= static_cast<uint64_t>(d);
    return static_cast<int64_t>(n);
  }

 private:
  void check(const SourceSite& where) const {
    if (!known_rank_) fail(where.file, where.function, where.line);
    for (int64_t d : dims_) {
      if (d < 0) [[unlikely]] {
        fail(where.file, where.function, where.line);
      }
    }
  }
  // (Of the parts of a place, which is then made in memory only here.)
  [[noreturn]] void fail(const char* file, const char* function, uint32_t line) const;
};

RUNNEL_API std::ostream& operator<<(std::ostream& out, const PartialShape& shape);

// NumPy's broadcasting of two shapes; unknown dimensions stay unknown where they must.
// Throws Error when the shapes do not fit.
RUNNEL_API PartialShape broadcast_shapes(const PartialShape& a, const PartialShape& b,
                                         SourceSite where = SourceSite::current());

// An axis counted from the end when negative, as a value in [0, rank); throws Error naming `what` otherwise.
RUNNEL_API int normalize_axis(int64_t axis, int rank, const char* what = "axis",
                              SourceSite where = SourceSite::current());

}  // namespace runnel
