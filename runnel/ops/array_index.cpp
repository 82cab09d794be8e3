// NumPy-style indexing of tensors: x[1], x(all, slice(0, 4)), by numbers and by tensors.
#include <vector>

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

void check_index_tensor(const Tensor& t, const SourceSite& where) {
  const PartialShape shape = t.partial_shape();
  const bool integer = t.dtype() == DType::int16 || t.dtype() == DType::int32 || t.dtype() == DType::int64;
  if (integer && (!shape.has_rank() || shape.rank() == 0)) return;
  throw invalid_argument(
      "[index] a tensor as an index must be a scalar of dtype int16, int32 or int64, got {}{}; gather takes several "
      "positions, boolean_mask a mask{}",
      dtype_name(t.dtype()), shape.str(), where.at());
}

// The starts or stops of the indices as a vector: of numbers a constant, else joined by an op.
ShapeArg bounds_vector(std::initializer_list<Index> indices, const Dims& numbers, Tensor Index::*tensor,
                       const SourceSite& where) {
  bool numbers_only = true;
  std::vector<ShapeSize> parts;
  for (size_t k = 0; k < numbers.size(); ++k) {
    const Tensor& t = indices.begin()[k].*tensor;
    if (t.defined()) check_index_tensor(t, where);
    numbers_only = numbers_only && !t.defined();
    parts.push_back(t.defined() ? ShapeSize(t) : ShapeSize(numbers[k]));
  }
  if (numbers_only) return ShapeArg(numbers, where);
  return ShapeArg(join_sizes(parts, where), where);
}

}  // namespace

Tensor Tensor::index(std::initializer_list<Index> indices) const {
  const SourceSite where = indices.size() > 0 ? indices.begin()->where : SourceSite();
  Dims begin, end, strides;
  StridedSliceMasks masks;
  int64_t here = 1;
  for (const Index& i : indices) {
    int64_t from = 0, to = 0, step = 1;
    switch (i.kind) {
      case Index::Kind::position:
        from = i.at;
        to = i.at + 1;  // not read: the position is where it begins
        masks.shrink_axis_mask |= here;
        break;
      case Index::Kind::slice:
        from = i.range.start.value_or(0);
        to = i.range.stop.value_or(0);
        step = i.range.step;
        if (!i.range.start && !i.start.defined()) masks.begin_mask |= here;
        if (!i.range.stop && !i.stop.defined()) masks.end_mask |= here;
        break;
      case Index::Kind::newaxis: masks.new_axis_mask |= here; break;
      case Index::Kind::ellipsis: masks.ellipsis_mask |= here; break;
    }
    begin.push_back(from);
    end.push_back(to);
    strides.push_back(step);
    here <<= 1;
  }
  return strided_slice(Operand(*this, where), bounds_vector(indices, begin, &Index::start, where),
                       bounds_vector(indices, end, &Index::stop, where), ShapeArg(strides, where), masks);
}

Tensor Tensor::operator[](const Index& i) const { return index({i}); }
Tensor Tensor::operator()(const Index& i) const { return index({i}); }
Tensor Tensor::operator()(const Index& i, const Index& j) const { return index({i, j}); }
Tensor Tensor::operator()(const Index& i, const Index& j, const Index& k) const { return index({i, j, k}); }
Tensor Tensor::operator()(const Index& i, const Index& j, const Index& k, const Index& l) const {
  return index({i, j, k, l});
}
Tensor Tensor::operator()(const Index& i, const Index& j, const Index& k, const Index& l, const Index& m) const {
  return index({i, j, k, l, m});
}
Tensor Tensor::operator()(const Index& i, const Index& j, const Index& k, const Index& l, const Index& m,
                          const Index& n) const {
  return index({i, j, k, l, m, n});
}

}  // namespace runnel
