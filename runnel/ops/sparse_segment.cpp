// Rows picked by indices and reduced by segments: what embeddings of bags of words are made of.
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/sparse.h"

namespace runnel {
namespace {

struct SparseSegmentAttrs {
  bool sparse_gradient = false;
  static constexpr auto fields() { return field_list(field("sparse_gradient", &SparseSegmentAttrs::sparse_gradient)); }
};

enum class Share { sum, mean, sqrt_n };

double share_of(Share share, int64_t n) {
  if (share == Share::sum || n <= 1) return 1;
  return share == Share::mean ? static_cast<double>(n) : std::sqrt(static_cast<double>(n));
}

void check_segments(InferContext& c, bool counted) {
  c.require_rank_at_least(0, 1);
  c.require_rank(1, 1);
  c.require_rank(2, 1);
  const PartialShape &data = c.input(0), &at = c.input(1), &ids = c.input(2);
  if (at.has_rank() && ids.has_rank() && at[0] >= 0 && ids[0] >= 0 && at[0] != ids[0]) {
    throw invalid_argument("{} indices, but {} segment_ids", at[0], ids[0]);
  }
  int64_t rows = kUnknownDim;
  if (counted) {
    c.require_rank(3, 0);
    const auto segments = c.constant_ints(3);
    if (segments && (*segments)[0] < 0) throw invalid_argument("num_segments is {}", (*segments)[0]);
    if (segments) rows = (*segments)[0];
  }
  if (!data.has_rank()) return c.output(PartialShape::unknown());
  Dims dims = data.dims();
  dims[0] = rows;
  c.output(PartialShape(dims));
}

template <class T, Share share>
void reduce_picked(KernelContext& c, bool counted) {
  using C = cpu::compute_t<T>;
  const Dims at = c.ints(1), ids = c.ints(2);
  const int64_t n = static_cast<int64_t>(ids.size());
  Dims dims = c.in(0).shape().dims();
  const int64_t size = dims[0];
  const int64_t segments = counted ? c.int_scalar(3) : n == 0 ? 0 : ids.back() + 1;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = ids[static_cast<size_t>(i)], row = at[static_cast<size_t>(i)];
    if (id < 0) throw invalid_argument("segment_ids[{}] is negative: {}", i, id);
    if (i > 0 && id < ids[static_cast<size_t>(i - 1)]) {
      throw invalid_argument("segment_ids are not sorted: {} follows {}", id, ids[static_cast<size_t>(i - 1)]);
    }
    if (counted && id >= segments)
      throw invalid_argument("segment_ids[{}] = {} is not below num_segments {}", i, id, segments);
    if (row < 0 || row >= size) throw invalid_argument("indices[{}] = {} is not in [0, {})", i, row, size);
  }
  dims[0] = segments;
  const Tensor& out = counted ? c.out() : c.allocate(0, Shape(dims));
  const int64_t width = segments == 0 ? 0 : out.num_elements() / segments;
  T* y = out.mutable_data<T>();
  std::fill_n(y, out.num_elements(), T(0));
  std::vector<C> sum(static_cast<size_t>(width));
  for (int64_t begin = 0; begin < n;) {
    const int64_t id = ids[static_cast<size_t>(begin)];
    int64_t end = begin;
    std::fill(sum.begin(), sum.end(), C(0));
    for (; end < n && ids[static_cast<size_t>(end)] == id; ++end) {
      const T* from = c.in<T>(0) + at[static_cast<size_t>(end)] * width;
      for (int64_t k = 0; k < width; ++k) sum[static_cast<size_t>(k)] += static_cast<C>(from[k]);
    }
    const double by = share_of(share, end - begin);
    for (int64_t k = 0; k < width; ++k) {
      const C whole = sum[static_cast<size_t>(k)];
      y[id * width + k] = static_cast<T>(by == 1 ? whole : static_cast<C>(whole / static_cast<C>(by)));
    }
    begin = end;
  }
}

template <Share share>
Gradients picked_grad(const GradCtx& g) {
  const Tensor& ids = g.x(2);
  const Tensor dy = g.dy();
  Tensor rows = gather(dy, ids);
  if (share != Share::sum) {
    const Tensor each = ones_like(ids, DType::float64);
    Tensor count = math::unsorted_segment_sum(each, ids, shape(dy)[0]);
    if (share == Share::sqrt_n) count = sqrt(count);
    // One weight for each row, whatever its rank.
    const Tensor weight = cast(gather(count, ids), dy.dtype());
    const Tensor ones_after = ones_like(shape(rows)(slice(1, none)));
    rows = rows / reshape(weight, concat({shape(weight), ones_after}, 0));
  }
  Gradients all(static_cast<size_t>(g.num_inputs()));
  all[0] = math::unsorted_segment_sum(rows, g.x(1), shape(g.x(0))[0]);
  return all;
}

template <Share share, class Set>
void define_picked(Registry& r, const char* name, Set types, const char* doc, bool counted, const Tensor& expected) {
  auto op = r.define<SparseSegmentAttrs>(name).type("T", types);
  op.in("data", "T").type("Tidx", index_types, DType::int32).in("indices", "Tidx");
  op.type("Tsegmentids", index_types, DType::int32).in("segment_ids", "Tsegmentids");
  if (counted) op.in_host("num_segments", "Tnumsegments");
  op.out("output", "T");
  if (counted) {
    op.shape([](InferContext& c) { check_segments(c, true); }).cpu([]<class T>(KernelContext& c) {
      reduce_picked<T, share>(c, true);
    });
  } else {
    op.shape([](InferContext& c) { check_segments(c, false); }).cpu([]<class T>(KernelContext& c) {
      reduce_picked<T, share>(c, false);
    });
  }
  op.grad([](const GradCtx& g) { return picked_grad<share>(g); }).doc(doc);
  const Tensor data{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}};
  const auto with = [&](std::vector<Tensor> in) {
    if (counted) in.emplace_back(4);
    return in;
  };
  op.sample({.in = with({data, Tensor{2, 0, 1}, Tensor{0, 0, 2}}), .out = {expected}});
  op.sample({.in = with({Tensor{4.f, 2.f}, Tensor{0, 0, 1}, Tensor{0, 1, 1}})});
  op.sample({.in = with({data, Tensor{2, 3}, Tensor{0, 0}}), .error = "is not in [0, 3)"});
  op.sample({.in = with({data, Tensor{2, 1}, Tensor{1, 0}}), .error = "not sorted"});
  op.sample({.in = with({data, Tensor{2, 1}, Tensor{0}}), .error = "2 indices, but 1 segment_ids"});
}

}  // namespace

void register_sparse_segment(Registry& r) {
  const float root = std::sqrt(2.f);
  const auto three = [](float a, float b) { return Tensor{{a, b}, {0.f, 0.f}, {3.f, 4.f}}; };
  const auto four = [](float a, float b) { return Tensor{{a, b}, {0.f, 0.f}, {3.f, 4.f}, {0.f, 0.f}}; };
  define_picked<Share::sum>(r, "SparseSegmentSum", real_numbers,
                            "Row i is the sum of the rows of data that the indices with segment id i name.", false,
                            three(6, 8));
  define_picked<Share::sum>(r, "SparseSegmentSumWithNumSegments", real_numbers,
                            "SparseSegmentSum with a given number of segments.", true, four(6, 8));
  define_picked<Share::mean>(r, "SparseSegmentMean", floating,
                             "Row i is the mean of the rows of data that the indices with segment id i name.", false,
                             three(3, 4));
  define_picked<Share::mean>(r, "SparseSegmentMeanWithNumSegments", floating,
                             "SparseSegmentMean with a given number of segments.", true, four(3, 4));
  define_picked<Share::sqrt_n>(r, "SparseSegmentSqrtN", floating,
                               "SparseSegmentSum, divided by the square root of how many rows there are.", false,
                               three(6 / root, 8 / root));
  define_picked<Share::sqrt_n>(r, "SparseSegmentSqrtNWithNumSegments", floating,
                               "SparseSegmentSqrtN with a given number of segments.", true, four(6 / root, 8 / root));
}

namespace sparse {
namespace {

Tensor picked(const char* plain, const char* counted, const Operand& data, const Operand& indices,
              const Operand& segment_ids, const Tensor& num_segments) {
  const Op<SparseSegmentAttrs> op(num_segments.defined() ? counted : plain);
  return num_segments.defined() ? op({data, indices, segment_ids, num_segments}) : op({data, indices, segment_ids});
}

}  // namespace

Tensor segment_sum(const Operand& data, const Operand& indices, const Operand& segment_ids,
                   const Tensor& num_segments) {
  return picked("SparseSegmentSum", "SparseSegmentSumWithNumSegments", data, indices, segment_ids, num_segments);
}
Tensor segment_mean(const Operand& data, const Operand& indices, const Operand& segment_ids,
                    const Tensor& num_segments) {
  return picked("SparseSegmentMean", "SparseSegmentMeanWithNumSegments", data, indices, segment_ids, num_segments);
}
Tensor segment_sqrt_n(const Operand& data, const Operand& indices, const Operand& segment_ids,
                      const Tensor& num_segments) {
  return picked("SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments", data, indices, segment_ids, num_segments);
}

}  // namespace sparse
}  // namespace runnel
