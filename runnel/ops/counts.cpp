// How often values appear in the rows of ragged and sparse tensors, densely and as sparse tensors.
#include <algorithm>
#include <map>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/sparse.h"

namespace runnel {
namespace {

inline constexpr Types<int32_t, int64_t, float, double> counted_types;

struct BinaryAttrs {
  bool binary_output = false;
  static constexpr auto fields() { return field_list(field("binary_output", &BinaryAttrs::binary_output)); }
};
struct SparseCountAttrs {
  int64_t minlength = -1;
  int64_t maxlength = -1;
  bool binary_output = false;
  static constexpr auto fields() {
    return field_list(field("minlength", &SparseCountAttrs::minlength, {.minimum = -1}),
                      field("maxlength", &SparseCountAttrs::maxlength, {.minimum = -1}),
                      field("binary_output", &SparseCountAttrs::binary_output, {.required = true}));
  }
};

// Which row each value belongs to, one after the other.
struct RowsOfValues {
  int64_t rows = 1;
  std::vector<int64_t> of;
};

RowsOfValues rows_of_splits(const Tensor& splits, int64_t values) {
  const Dims s = int_values(splits);
  if (s.empty() || s[0] != 0) throw invalid_argument("splits must start with 0");
  if (s.back() != values) throw invalid_argument("splits end at {}, there are {} values", s.back(), values);
  for (size_t i = 1; i < s.size(); ++i) {
    if (s[i] < s[i - 1]) throw invalid_argument("splits fall: {} after {}", s[i], s[i - 1]);
  }
  RowsOfValues r{static_cast<int64_t>(s.size()) - 1, {}};
  for (size_t i = 1; i < s.size(); ++i) {
    r.of.insert(r.of.end(), static_cast<size_t>(s[i] - s[i - 1]), static_cast<int64_t>(i) - 1);
  }
  return r;
}

RowsOfValues rows_of_indices(const Tensor& indices, const Tensor& dense_shape, int64_t values) {
  const Dims shape = int_values(dense_shape);
  if (shape.empty()) throw invalid_argument("a scalar has no rows to count in");
  for (int64_t size : shape) {
    if (size < 0) throw invalid_argument("the shape has a negative size: {}", size);
  }
  const auto rank = static_cast<int64_t>(shape.size());
  if (indices.shape()[0] != values || indices.shape()[1] != rank) {
    throw invalid_argument("indices {} do not fit {} values and a shape of {} sizes", indices.shape().str(), values,
                           rank);
  }
  RowsOfValues r{rank > 1 ? shape[0] : 1, {}};
  for (int64_t i = 0; i < values; ++i) {
    const int64_t* at = indices.data<int64_t>() + i * rank;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (at[d] < 0 || at[d] >= shape[d]) {
        throw invalid_argument("indices[{}, {}] = {} is not in [0, {})", i, d, at[d], shape[d]);
      }
    }
    r.of.push_back(rank > 1 ? at[0] : 0);
  }
  return r;
}

RowsOfValues rows_of_dense(const Tensor& values) {
  const int64_t rows = values.rank() == 2 ? values.shape()[0] : 1;
  RowsOfValues r{rows, {}};
  const int64_t n = values.num_elements(), width = n == 0 ? 1 : n / rows;
  for (int64_t i = 0; i < n; ++i) r.of.push_back(i / width);
  return r;
}

template <class T>
const T* weights_of(const Tensor& weights, const Tensor& values) {
  if (weights.num_elements() == 0) return nullptr;
  if (weights.num_elements() != values.num_elements()) {
    throw invalid_argument("{} weights for {} values", weights.num_elements(), values.num_elements());
  }
  return weights.data<T>();
}

// into[row, value] for values below the width of a row.
template <class T>
void count_dense_as(const Tensor& values, const RowsOfValues& rows, const T* weights, bool binary, const Tensor& into) {
  T* y = into.mutable_data<T>();
  std::fill_n(y, into.num_elements(), T(0));
  const int64_t bins = into.shape()[into.rank() - 1];
  const Dims v = int_values(values);
  for (size_t i = 0; i < v.size(); ++i) {
    if (v[i] < 0) throw invalid_argument("a value is negative: {} at position {}", v[i], i);
    if (v[i] >= bins) continue;
    T& count = y[rows.of[i] * bins + v[i]];
    count = binary ? T(1) : static_cast<T>(count + (weights ? weights[i] : T(1)));
  }
}

// The same as a sparse tensor [rows, values], or a vector without rows.
template <class T>
void count_sparse_as(KernelContext& c, const Tensor& values, const RowsOfValues& rows, bool matrix, const T* weights,
                     const SparseCountAttrs& a) {
  std::map<std::pair<int64_t, int64_t>, T> counts;
  const Dims v = int_values(values);
  int64_t most = 0;  // one column also where nothing is counted
  for (size_t i = 0; i < v.size(); ++i) {
    if (v[i] < 0) throw invalid_argument("a value is negative: {} at position {}", v[i], i);
    if (a.maxlength >= 0 && v[i] >= a.maxlength) continue;
    T& count = counts[{rows.of[i], v[i]}];
    count = a.binary_output ? T(1) : static_cast<T>(count + (weights ? weights[i] : T(1)));
    most = std::max(most, v[i]);
  }
  const auto n = static_cast<int64_t>(counts.size());
  const int64_t rank = matrix ? 2 : 1;
  auto* at = c.allocate(0, Shape{n, rank}).mutable_data<int64_t>();
  T* y = c.allocate(1, Shape{n}).template mutable_data<T>();
  for (const auto& [place, count] : counts) {
    if (matrix) *at++ = place.first;
    *at++ = place.second;
    *y++ = count;
  }
  auto* shape = c.allocate(2, Shape{rank}).mutable_data<int64_t>();
  if (matrix) *shape++ = rows.rows;
  *shape = a.maxlength >= 0 ? a.maxlength : std::max(most + 1, a.minlength);
}

void count_sparse(KernelContext& c, const Tensor& values, const RowsOfValues& rows, bool matrix, const Tensor& weights,
                  const SparseCountAttrs& a) {
  if (weights.num_elements() == values.num_elements() && values.num_elements() > 0 &&
      !(weights.shape() == values.shape())) {
    throw invalid_argument("weights of shape {} for values of shape {}", weights.shape().str(), values.shape().str());
  }
  counted_types.for_each([&]<class T>() {
    if (weights.dtype() != dtype_of<T>) return;
    count_sparse_as<T>(c, values, rows, matrix, weights_of<T>(weights, values), a);
  });
}

void count_dense(KernelContext& c, const Tensor& values, const RowsOfValues& rows, const Tensor& weights, bool binary) {
  counted_types.for_each([&]<class T>() {
    if (weights.dtype() != dtype_of<T>) return;
    count_dense_as<T>(values, rows, weights_of<T>(weights, values), binary, c.out());
  });
}

// Weights, and sparse counts of their dtype.
template <class Builder>
Builder with_sparse_counts(Builder op) {
  op.type("output_type", counted_types)
      .in("weights", "output_type")
      .out("output_indices", DType::int64)
      .out("output_values", "output_type")
      .out("output_dense_shape", DType::int64);
  return op;
}

int64_t bins_of(InferContext& c, int input) {
  c.require_rank(input, 0);
  const auto size = c.constant_ints(input);
  if (size && (*size)[0] < 0) throw invalid_argument("size must not be negative, got {}", (*size)[0]);
  return size ? (*size)[0] : kUnknownDim;
}

void sparse_count_shape(InferContext& c, int64_t rank) {
  c.output(0, PartialShape{kUnknownDim, rank});
  c.output(1, PartialShape{kUnknownDim});
  c.output(2, PartialShape{rank});
}

}  // namespace

void register_counts(Registry& r) {
  const auto longs = [](std::initializer_list<int64_t> v) { return Tensor::of<int64_t>(std::vector<int64_t>(v)); };
  const auto places = [](std::initializer_list<int64_t> v) {
    return Tensor::of<int64_t>(std::vector<int64_t>(v), Shape{static_cast<int64_t>(v.size()) / 2, 2});
  };
  const Tensor none = Tensor::empty(DType::float32, {0});

  r.define<BinaryAttrs>("RaggedBincount")
      .type("Tidx", index_types)
      .in("splits", DType::int64)
      .in("values", "Tidx")
      .in_host("size", "Tidx")
      .type("T", counted_types)
      .in("weights", "T")
      .out("output", "T")
      .shape([](InferContext& c) {
        c.require_rank(0, 1);
        const int64_t splits = c.input(0).has_rank() ? c.input(0)[0] : kUnknownDim;
        c.output(PartialShape{splits > 0 ? splits - 1 : kUnknownDim, bins_of(c, 2)});
      })
      .cpu([](KernelContext& c, const BinaryAttrs& a) {
        const RowsOfValues rows = rows_of_splits(c.in(0), c.in(1).num_elements());
        count_dense(c, c.in(1), rows, c.in(3), a.binary_output);
      })
      .not_differentiable()
      .doc("How often every value below `size` appears in each row of a ragged tensor, or the sum of its weights.")
      .sample({.in = {longs({0, 2, 2, 4}), Tensor{1, 3, 0, 9}, Tensor(4), none},
               .out = {Tensor{{0.f, 1.f, 0.f, 1.f}, {0.f, 0.f, 0.f, 0.f}, {1.f, 0.f, 0.f, 0.f}}}})
      .sample({.in = {longs({0, 2, 4}), Tensor{1, 1, 0, 2}, Tensor(3), Tensor{1.f, 2.f, 3.f, 4.f}},
               .out = {Tensor{{0.f, 3.f, 0.f}, {3.f, 0.f, 4.f}}}})
      .sample({.in = {longs({0, 2}), Tensor{1, 1}, Tensor(2), none}, .out = {Tensor{{0.f, 1.f}}}},
              {.binary_output = true})
      .sample({.in = {longs({0, 1}), Tensor{-1}, Tensor(2), none}, .error = "negative"})
      .sample({.in = {longs({0, 2}), Tensor{1}, Tensor(2), none}, .error = "splits end at 2"})
      .sample({.in = {longs({0, int64_t{1} << 58, 3}), Tensor{1, 2, 0}, Tensor(3), none}, .error = "splits fall"});

  r.define<BinaryAttrs>("SparseBincount")
      .type("Tidx", index_types)
      .in("indices", DType::int64)
      .in("values", "Tidx")
      .in_host("dense_shape", DType::int64)
      .in_host("size", "Tidx")
      .type("T", counted_types)
      .in("weights", "T")
      .out("output", "T")
      .shape([](InferContext& c) {
        c.require_rank(0, 2);
        c.require_rank(1, 1);
        c.require_rank(2, 1);
        const int64_t bins = bins_of(c, 3);
        const PartialShape whole = c.constant_shape(2);
        if (!whole.has_rank()) return c.output(PartialShape::unknown());
        if (whole.rank() < 1) throw invalid_argument("a scalar has no rows to count in");
        c.output(whole.rank() > 1 ? PartialShape{whole[0], bins} : PartialShape{bins});
      })
      .cpu([](KernelContext& c, const BinaryAttrs& a) {
        const RowsOfValues rows = rows_of_indices(c.in(0), c.in(2), c.in(1).num_elements());
        count_dense(c, c.in(1), rows, c.in(4), a.binary_output);
      })
      .not_differentiable()
      .doc("How often every value below `size` appears in each row of a sparse tensor, or the sum of its weights.")
      .sample({.in = {places({0, 0, 0, 1, 2, 0}), Tensor{1, 3, 1}, longs({3, 2}), Tensor(4), none},
               .out = {Tensor{{0.f, 1.f, 0.f, 1.f}, {0.f, 0.f, 0.f, 0.f}, {0.f, 1.f, 0.f, 0.f}}}})
      .sample({.in = {Tensor::of<int64_t>({0, 1, 4}, Shape{3, 1}), Tensor{1, 3, 1}, longs({5}), Tensor(4), none},
               .out = {Tensor{0.f, 2.f, 0.f, 1.f}}})
      .sample({.in = {Tensor::of<int64_t>({0, 0, 1, 0, 1, 0, 1, 0, 0}, Shape{3, 3}), Tensor{1, 3, 1}, longs({2, 2, 2}),
                      Tensor(4), none},
               .out = {Tensor{{0.f, 1.f, 0.f, 1.f}, {0.f, 1.f, 0.f, 0.f}}}})
      .sample({.in = {places({0, 5}), Tensor{1}, longs({3, 2}), Tensor(4), none}, .error = "indices[0, 1] = 5"})
      .sample({.in = {Tensor::of<int64_t>({9}, Shape{1, 1}), Tensor{1}, longs({3}), Tensor(4), none},
               .error = "indices[0, 0] = 9"});

  with_sparse_counts(r.define<SparseCountAttrs>("DenseCountSparseOutput").type("T", index_types).in("values", "T"))
      .shape([](InferContext& c) {
        const PartialShape& v = c.input(0);
        if (v.has_rank() && (v.rank() < 1 || v.rank() > 2))
          throw invalid_argument("values need rank 1 or 2, got {}", v.str());
        sparse_count_shape(c, v.has_rank() ? v.rank() : kUnknownDim);
      })
      .cpu([](KernelContext& c, const SparseCountAttrs& a) {
        count_sparse(c, c.in(0), rows_of_dense(c.in(0)), c.in(0).rank() == 2, c.in(1), a);
      })
      .not_differentiable()
      .doc("How often values appear in a vector or in each row of a matrix, as a sparse tensor.")
      .sample({.in = {Tensor{{1, 1, 4}, {0, 2, 2}}, none},
               .out = {places({0, 1, 0, 4, 1, 0, 1, 2}), Tensor{2.f, 1.f, 1.f, 2.f}, longs({2, 5})}})
      .sample({.in = {Tensor{1, 1, 4}, none}, .out = {Tensor::of<int64_t>({1}, Shape{1, 1}), Tensor{2.f}, longs({3})}},
              {.minlength = 7, .maxlength = 3})
      .sample({.in = {Tensor::empty(DType::int32, {0}), none},
               .out = {Tensor::empty(DType::int64, {0, 1}), none, longs({1})}})
      .sample({.in = {Tensor::empty(DType::int32, {0}), none},
               .out = {Tensor::empty(DType::int64, {0, 1}), none, longs({0})}},
              {.maxlength = 0})
      .sample({.in = {Tensor::empty(DType::int32, {0}), none},
               .out = {Tensor::empty(DType::int64, {0, 1}), none, longs({5})}},
              {.minlength = 5})
      .sample({.in = {Tensor{1, 1, 4}, Tensor{1.f, 2.f}}, .error = "2 weights for 3 values"})
      .sample({.in = {Tensor{{1, 1}, {2, 3}}, Tensor{1.f, 2.f, 3.f, 4.f}}, .error = "weights of shape [4]"});

  with_sparse_counts(r.define<SparseCountAttrs>("SparseCountSparseOutput")
                         .type("T", index_types)
                         .in("indices", DType::int64)
                         .in("values", "T")
                         .in_host("dense_shape", DType::int64))
      .shape([](InferContext& c) {
        c.require_rank(0, 2);
        c.require_rank(1, 1);
        c.require_rank(2, 1);
        const int64_t rank = c.input(2).has_rank() ? c.input(2)[0] : kUnknownDim;
        sparse_count_shape(c, std::min<int64_t>(rank, 2));
      })
      .cpu([](KernelContext& c, const SparseCountAttrs& a) {
        const RowsOfValues rows = rows_of_indices(c.in(0), c.in(2), c.in(1).num_elements());
        count_sparse(c, c.in(1), rows, c.in(2).num_elements() > 1, c.in(3), a);
      })
      .not_differentiable()
      .doc("How often values appear in each row of a sparse tensor, as a sparse tensor.")
      .sample({.in = {places({0, 0, 0, 1, 2, 0}), Tensor{1, 1, 3}, longs({3, 2}), none},
               .out = {places({0, 1, 2, 3}), Tensor{2.f, 1.f}, longs({3, 4})}})
      .sample({.in = {Tensor::of<int64_t>({0, 0, 1, 0, 1, 0, 1, 0, 0}, Shape{3, 3}), Tensor{1, 3, 1}, longs({2, 2, 2}),
                      none},
               .out = {places({0, 1, 0, 3, 1, 1}), Tensor{1.f, 1.f, 1.f}, longs({2, 4})}})
      .sample({.in = {places({0, 5}), Tensor{1}, longs({3, 2}), none}, .error = "indices[0, 1] = 5"})
      .sample({.in = {places({0, -5}), Tensor{1}, longs({3, 2}), none}, .error = "indices[0, 1] = -5"});

  with_sparse_counts(r.define<SparseCountAttrs>("RaggedCountSparseOutput")
                         .type("T", index_types)
                         .in("splits", DType::int64)
                         .in("values", "T"))
      .shape([](InferContext& c) {
        c.require_rank(0, 1);
        c.require_rank(1, 1);
        sparse_count_shape(c, 2);
      })
      .cpu([](KernelContext& c, const SparseCountAttrs& a) {
        count_sparse(c, c.in(1), rows_of_splits(c.in(0), c.in(1).num_elements()), true, c.in(2), a);
      })
      .not_differentiable()
      .doc("How often values appear in each row of a ragged tensor, as a sparse tensor.")
      .sample({.in = {longs({0, 2, 2, 3}), Tensor{1, 1, 3}, none},
               .out = {places({0, 1, 2, 3}), Tensor{2.f, 1.f}, longs({3, 4})}})
      .sample({.in = {longs({0, 0, 0}), Tensor::empty(DType::int32, {0}), none},
               .out = {Tensor::empty(DType::int64, {0, 2}), none, longs({2, 1})}});
}

SparseTensor sparse::bincount(const Operand& values, const SparseCountOptions& o) {
  return composed(values.where(), [&]() -> SparseTensor {
    static const Op<SparseCountAttrs> op("DenseCountSparseOutput");
    if (o.axis != 0 && o.axis != -1) throw invalid_argument("[SparseBincount] axis must be 0 or -1, got {}", o.axis);
    Tensor v = values.value();
    Tensor weights = o.weights.defined() ? o.weights : Tensor::empty(DType::int64, {0});
    if (o.axis == 0) {
      v = runnel::reshape(v, {-1});
      if (o.weights.defined()) weights = runnel::reshape(weights, {-1});
    }
    const auto parts =
        op.many({v, weights}, {.minlength = o.minlength, .maxlength = o.maxlength, .binary_output = o.binary_output});
    return {parts[0], parts[1], parts[2]};
  });
}

}  // namespace runnel
