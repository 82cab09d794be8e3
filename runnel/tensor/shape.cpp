#include "runnel/tensor/shape.h"

#include <algorithm>
#include <ostream>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"

namespace runnel {

bool PartialShape::is_static() const {
  return known_rank_ && std::all_of(dims_.begin(), dims_.end(), [](int64_t d) { return d >= 0; });
}

bool PartialShape::compatible_with(const PartialShape& other) const {
  if (!known_rank_ || !other.known_rank_) return true;
  if (dims_.size() != other.dims_.size()) return false;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (dims_[i] >= 0 && other.dims_[i] >= 0 && dims_[i] != other.dims_[i]) return false;
  }
  return true;
}

PartialShape PartialShape::merged_with(const PartialShape& other, SourceSite where) const {
  if (!compatible_with(other)) {
    throw at_line(invalid_argument("shapes {} and {} are incompatible", str(), other.str()), where);
  }
  if (!known_rank_) return other;
  if (!other.known_rank_) return *this;
  Dims dims = dims_;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) dims[i] = other.dims_[i];
  }
  return PartialShape(dims);
}

void DimIndex::too_large(uint64_t at, const SourceSite& where) {
  throw at_line(invalid_argument("dimension {} of a shape: no shape has so many", at), where);
}

void PartialShape::no_dimension(const DimIndex& i) const {
  if (!known_rank_) {
    throw at_line(invalid_argument("dimension {} of a shape of unknown rank is not known", i.at), i.where);
  }
  throw at_line(invalid_argument("dimension {} of the shape {} of rank {}: it must be in [{}, {})", i.at, str(), rank(),
                                 -rank(), rank()),
                i.where);
}

std::string PartialShape::str() const {
  if (!known_rank_) return "<unknown>";
  std::string text = "[";
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (i > 0) text += ',';
    text += dims_[i] < 0 ? "?" : std::to_string(dims_[i]);
  }
  return text + "]";
}

void Shape::fail(const char* file, const char* function, uint32_t line) const {
  throw at_line(invalid_argument("a shape needs sizes >= 0, got {}", str()), SourceSite(file, function, line));
}

std::ostream& operator<<(std::ostream& out, const PartialShape& shape) { return out << shape.str(); }

PartialShape broadcast_shapes(const PartialShape& a, const PartialShape& b, SourceSite where) {
  if (!a.has_rank() || !b.has_rank()) return PartialShape::unknown();
  if (a == b) return a;  // also right with unknown dims: each is unknown on both sides
  const int rank = std::max(a.rank(), b.rank());
  Dims dims(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank());
    const int ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a[ia];
    const int64_t db = ib < 0 ? 1 : b[ib];
    int64_t d;
    if (da == db || db == 1) {
      d = da;
    } else if (da == 1) {
      d = db;
    } else if (da < 0 || db < 0) {
      d = std::max(da, db);  // the known side is not 1, so the unknown one is 1 or equal to it
    } else {
      throw at_line(invalid_argument("shapes do not broadcast: {} with {}", a.str(), b.str()), where);
    }
    dims[static_cast<size_t>(i)] = d;
  }
  return PartialShape(dims);
}

int normalize_axis(int64_t axis, int rank, const char* what, SourceSite where) {
  if (axis < -rank || axis >= rank) {
    throw at_line(
        invalid_argument("{} {} is out of range for rank {}: it must be in [{}, {})", what, axis, rank, -rank, rank),
        where);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace runnel
