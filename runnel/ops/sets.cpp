// Sets along the last dimension of dense and sparse tensors.
#include "runnel/ops/sets.h"

#include <algorithm>
#include <map>
#include <string>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/sizes.h"
#include "runnel/ops/array.h"

namespace runnel {
namespace {

inline constexpr auto set_types = Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>{} + strings_only;

struct SetAttrs {
  std::string set_operation;
  bool validate_indices = true;
  static constexpr auto fields() {
    return field_list(field("set_operation", &SetAttrs::set_operation, {.required = true}),
                      field("validate_indices", &SetAttrs::validate_indices));
  }
};
struct SetSizeAttrs {
  bool validate_indices = true;
  static constexpr auto fields() { return field_list(field("validate_indices", &SetSizeAttrs::validate_indices)); }
};

// Sorted sets by the number of their row, and the dimensions that rows are counted in.
template <class T>
struct Rows {
  Dims outer;
  std::map<int64_t, std::vector<T>> sets;

  void sort() {
    for (auto& [row, set] : sets) {
      std::sort(set.begin(), set.end());
      set.erase(std::unique(set.begin(), set.end()), set.end());
    }
  }
};

template <class T>
Rows<T> dense_rows(const Tensor& t) {
  const Dims& dims = t.shape().dims();
  Rows<T> rows{Dims(dims.begin(), dims.end() - 1), {}};
  const int64_t width = dims.back();
  const int64_t n = width == 0 ? 0 : t.num_elements() / width;
  for (int64_t i = 0; i < n; ++i) rows.sets[i].assign(t.data<T>() + i * width, t.data<T>() + (i + 1) * width);
  rows.sort();
  return rows;
}

template <class T>
Rows<T> sparse_rows(const Tensor& indices, const Tensor& values, const Tensor& shape, bool validate) {
  const Dims dims = int_values(shape);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t n = indices.shape()[0];
  if (indices.shape()[1] != rank || values.shape()[0] != n) {
    throw invalid_argument("indices {}, values {} and a shape of {} sizes do not fit each other", indices.shape().str(),
                           values.shape().str(), rank);
  }
  Rows<T> rows{Dims(dims.begin(), dims.end() - 1), {}};
  checked_product(rows.outer);
  const auto* at = indices.data<int64_t>();
  for (int64_t i = 0; i < n; ++i, at += rank) {
    int64_t row = 0;
    for (int64_t d = 0; d < rank; ++d) {
      if (at[d] < 0 || at[d] >= dims[static_cast<size_t>(d)]) {
        throw invalid_argument("indices[{}] = [{}] is outside the shape [{}]", i,
                               comma_separated({at, static_cast<size_t>(rank)}),
                               comma_separated({dims.data(), dims.size()}));
      }
      if (d + 1 < rank) row = row * dims[static_cast<size_t>(d)] + at[d];
    }
    if (validate && i > 0 && !std::lexicographical_compare(at - rank, at, at, at + rank)) {
      throw invalid_argument("indices[{}] = [{}] is out of order or repeated: sort them with sparse::reorder", i,
                             comma_separated({at, static_cast<size_t>(rank)}));
    }
    rows.sets[row].push_back(values.data<T>()[i]);
  }
  rows.sort();
  return rows;
}

enum class SetOperation { a_minus_b, b_minus_a, intersection, union_ };

SetOperation operation_of(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name == "a-b") return SetOperation::a_minus_b;
  if (name == "b-a") return SetOperation::b_minus_a;
  if (name == "intersection") return SetOperation::intersection;
  if (name == "union") return SetOperation::union_;
  throw invalid_argument("set_operation must be a-b, b-a, intersection or union, got '{}'", name);
}

template <class T>
void combine(KernelContext& c, const Rows<T>& a, const Rows<T>& b, SetOperation operation) {
  if (a.outer != b.outer) {
    throw invalid_argument("the sets have different rows: [{}] and [{}]",
                           comma_separated({a.outer.data(), a.outer.size()}),
                           comma_separated({b.outer.data(), b.outer.size()}));
  }
  std::map<int64_t, std::vector<T>> all;
  for (const auto& [row, set] : a.sets) all.try_emplace(row);
  for (const auto& [row, set] : b.sets) all.try_emplace(row);
  const std::vector<T> none;
  const auto of = [&](const Rows<T>& rows, int64_t row) -> const std::vector<T>& {
    const auto it = rows.sets.find(row);
    return it == rows.sets.end() ? none : it->second;
  };
  int64_t total = 0;
  size_t widest = 0;
  for (auto& [row, result] : all) {
    const std::vector<T>&x = of(a, row), &y = of(b, row);
    const auto to = std::back_inserter(result);
    switch (operation) {
      case SetOperation::a_minus_b: std::set_difference(x.begin(), x.end(), y.begin(), y.end(), to); break;
      case SetOperation::b_minus_a: std::set_difference(y.begin(), y.end(), x.begin(), x.end(), to); break;
      case SetOperation::intersection: std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), to); break;
      case SetOperation::union_: std::set_union(x.begin(), x.end(), y.begin(), y.end(), to); break;
    }
    total += static_cast<int64_t>(result.size());
    widest = std::max(widest, result.size());
  }
  const auto rank = static_cast<int64_t>(a.outer.size()) + 1;
  auto* at = c.allocate(0, Shape{total, rank}).mutable_data<int64_t>();
  auto* values = c.allocate(1, Shape{total}).template mutable_data<T>();
  for (const auto& [row, set] : all) {
    for (size_t k = 0; k < set.size(); ++k, at += rank) {
      int64_t rest = row;
      for (int64_t d = rank - 2; d >= 0; --d) {
        at[d] = rest % a.outer[static_cast<size_t>(d)];
        rest /= a.outer[static_cast<size_t>(d)];
      }
      at[rank - 1] = static_cast<int64_t>(k);
      *values++ = set[k];
    }
  }
  auto* shape = c.allocate(2, Shape{rank}).mutable_data<int64_t>();
  std::copy(a.outer.begin(), a.outer.end(), shape);
  shape[rank - 1] = static_cast<int64_t>(widest);
}

void result_shape(InferContext& c, int64_t rank) {
  c.output(0, PartialShape{kUnknownDim, rank});
  c.output(1, PartialShape{kUnknownDim});
  c.output(2, PartialShape{rank});
}

int64_t dense_set_rank(InferContext& c, int i) {
  const PartialShape& s = c.input(i);
  if (!s.has_rank()) return kUnknownDim;
  if (s.rank() < 2) throw invalid_argument("sets need rank 2 or more, got shape {}", s.str());
  return s.rank();
}

int64_t sparse_set_rank(InferContext& c, int i) {
  c.require_rank(i, 2);
  c.require_rank(i + 1, 1);
  c.require_rank(i + 2, 1);
  const int64_t rank = c.input(i + 2).has_rank() ? c.input(i + 2)[0] : kUnknownDim;
  if (rank >= 0 && rank < 2) throw invalid_argument("sets need rank 2 or more, got a shape of {} sizes", rank);
  return rank;
}

int64_t same_rank(int64_t a, int64_t b) {
  if (a >= 0 && b >= 0 && a != b) throw invalid_argument("the sets have ranks {} and {}", a, b);
  return a >= 0 ? a : b;
}

auto row_of(std::initializer_list<int64_t> values) { return Tensor::of<int64_t>(std::vector<int64_t>(values)); }
Tensor pairs(std::initializer_list<int64_t> values) {
  return Tensor::of<int64_t>(std::vector<int64_t>(values), Shape{static_cast<int64_t>(values.size()) / 2, 2});
}

// A set that is given as a sparse tensor.
template <class Builder>
Builder with_sparse_set(Builder op, const std::string& name) {
  op.in((name + "_indices").c_str(), DType::int64);
  op.in((name + "_values").c_str(), "T");
  op.in((name + "_shape").c_str(), DType::int64);
  return op;
}

template <class Builder>
Builder with_result(Builder op) {
  op.out("result_indices", DType::int64).out("result_values", "T").out("result_shape", DType::int64);
  return op;
}

}  // namespace

void register_sets(Registry& r) {
  const Tensor a{{3, 1, 1, 2}, {1, 2, 3, 4}};
  const Tensor b{{1, 2, 9}, {5, 6, 4}};
  with_result(r.define<SetAttrs>("DenseToDenseSetOperation").type("T", set_types).in("set1", "T").in("set2", "T"))
      .shape([](InferContext& c, const SetAttrs& a) {
        operation_of(a.set_operation);
        result_shape(c, same_rank(dense_set_rank(c, 0), dense_set_rank(c, 1)));
      })
      .cpu([]<class T>(KernelContext& c, const SetAttrs& a) {
        combine(c, dense_rows<T>(c.in(0)), dense_rows<T>(c.in(1)), operation_of(a.set_operation));
      })
      .doc("The set operation on every pair of rows, as a sparse tensor with sorted rows.")
      .sample({.in = {a, b}, .out = {pairs({0, 0, 0, 1, 1, 0}), Tensor{1, 2, 4}, row_of({2, 2})}},
              {.set_operation = "intersection"})
      .sample({.in = {a, b}, .out = {pairs({0, 0, 1, 0, 1, 1, 1, 2}), Tensor{3, 1, 2, 3}, row_of({2, 3})}},
              {.set_operation = "a-b"})
      .sample({.in = {a, b}, .out = {pairs({0, 0, 1, 0, 1, 1}), Tensor{9, 5, 6}, row_of({2, 2})}},
              {.set_operation = "b-a"})
      .sample({.in = {a, b},
               .out = {pairs({0, 0, 0, 1, 0, 2, 0, 3, 1, 0, 1, 1, 1, 2, 1, 3, 1, 4, 1, 5}),
                       Tensor{1, 2, 3, 9, 1, 2, 3, 4, 5, 6}, row_of({2, 6})}},
              {.set_operation = "union"})
      .sample({.in = {a, Tensor{{1}}}, .error = "different rows"}, {.set_operation = "union"})
      .sample({.in = {Tensor{1}, Tensor{1}}, .error = "rank 2 or more"}, {.set_operation = "union"})
      .sample({.in = {a, b}, .error = "set_operation must be"}, {.set_operation = "sum"});

  with_result(
      with_sparse_set(r.define<SetAttrs>("DenseToSparseSetOperation").type("T", set_types).in("set1", "T"), "set2"))
      .shape([](InferContext& c, const SetAttrs& a) {
        operation_of(a.set_operation);
        result_shape(c, same_rank(dense_set_rank(c, 0), sparse_set_rank(c, 1)));
      })
      .cpu([]<class T>(KernelContext& c, const SetAttrs& a) {
        combine(c, dense_rows<T>(c.in(0)), sparse_rows<T>(c.in(1), c.in(2), c.in(3), a.validate_indices),
                operation_of(a.set_operation));
      })
      .doc("The set operation on every row of a dense tensor and that of a sparse one.")
      .sample({.in = {Tensor{{1, 2}, {3, 4}}, pairs({0, 0, 1, 0}), Tensor{2, 9}, row_of({2, 1})},
               .out = {pairs({1, 0}), Tensor{9}, row_of({2, 1})}},
              {.set_operation = "b-a"})
      .sample(
          {.in = {Tensor{{1, 2}, {3, 4}}, pairs({1, 0, 0, 0}), Tensor{2, 9}, row_of({2, 1})}, .error = "out of order"},
          {.set_operation = "b-a"})
      .sample({.in = {Tensor{{1, 2}, {3, 4}}, pairs({0, 0, 2, 0}), Tensor{2, 9}, row_of({2, 1})}, .error = "outside"},
              {.set_operation = "b-a"});

  with_result(
      with_sparse_set(with_sparse_set(r.define<SetAttrs>("SparseToSparseSetOperation").type("T", set_types), "set1"),
                      "set2"))
      .shape([](InferContext& c, const SetAttrs& a) {
        operation_of(a.set_operation);
        result_shape(c, same_rank(sparse_set_rank(c, 0), sparse_set_rank(c, 3)));
      })
      .cpu([]<class T>(KernelContext& c, const SetAttrs& a) {
        combine(c, sparse_rows<T>(c.in(0), c.in(1), c.in(2), a.validate_indices),
                sparse_rows<T>(c.in(3), c.in(4), c.in(5), a.validate_indices), operation_of(a.set_operation));
      })
      .doc("The set operation on every pair of rows of two sparse tensors.")
      .sample({.in = {pairs({0, 0}), Tensor{2}, row_of({2, 1}), pairs({0, 0, 1, 0}), Tensor{1, 9}, row_of({2, 1})},
               .out = {pairs({0, 0, 0, 1, 1, 0}), Tensor{1, 2, 9}, row_of({2, 2})}},
              {.set_operation = "union"});

  r.define<SetSizeAttrs>("SetSize")
      .type("T", set_types)
      .in("set_indices", DType::int64)
      .in("set_values", "T")
      .in_host("set_shape", DType::int64)
      .out("size", DType::int32)
      .shape([](InferContext& c, const SetSizeAttrs&) {
        sparse_set_rank(c, 0);
        const PartialShape whole = c.constant_shape(2);
        c.output(whole.has_rank() ? PartialShape(Dims(whole.begin(), whole.end() - 1)) : PartialShape::unknown());
      })
      .cpu([]<class T>(KernelContext& c, const SetSizeAttrs& a) {
        const Rows<T> rows = sparse_rows<T>(c.in(0), c.in(1), c.in(2), a.validate_indices);
        std::fill_n(c.out<int32_t>(), c.out().num_elements(), 0);
        for (const auto& [row, set] : rows.sets) c.out<int32_t>()[row] = static_cast<int32_t>(set.size());
      })
      .doc("How many different values every row of a sparse tensor has.")
      .sample({.in = {pairs({0, 0, 0, 1, 1, 0}), Tensor{1, 1, 2}, row_of({3, 2})}, .out = {Tensor{1, 1, 0}}})
      .sample({.in = {pairs({0, 0, 0, 1, 3, 0}), Tensor{1, 1, 2}, row_of({3, 2})}, .error = "outside"});
}

namespace sets {
namespace {

SparseTensor sparse_result(const std::vector<Tensor>& parts) { return {parts[0], parts[1], parts[2]}; }

SparseTensor operate(const Operand& a, const Operand& b, const char* operation, bool validate) {
  static const Op<SetAttrs> op("DenseToDenseSetOperation");
  return sparse_result(op.many({a, b}, {.set_operation = operation, .validate_indices = validate}));
}
SparseTensor operate(const Operand& a, const SparseTensor& b, const char* operation, bool validate) {
  static const Op<SetAttrs> op("DenseToSparseSetOperation");
  return sparse_result(
      op.many({a, b.indices, b.values, b.dense_shape}, {.set_operation = operation, .validate_indices = validate}));
}
SparseTensor operate(const SparseTensor& a, const SparseTensor& b, const char* operation, bool validate,
                     const SourceSite& where) {
  static const Op<SetAttrs> op("SparseToSparseSetOperation");
  return sparse_result(op.many({a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape},
                               {.set_operation = operation, .validate_indices = validate}, &where));
}

const char* minus(bool aminusb) { return aminusb ? "a-b" : "b-a"; }

}  // namespace

SparseTensor intersection(const Operand& a, const Operand& b, bool validate) {
  return operate(a, b, "intersection", validate);
}
SparseTensor intersection(const Operand& a, const SparseTensor& b, bool validate) {
  return operate(a, b, "intersection", validate);
}
SparseTensor intersection(const SparseTensor& a, const SparseTensor& b, bool validate, SourceSite where) {
  return operate(a, b, "intersection", validate, where);
}
SparseTensor union_(const Operand& a, const Operand& b, bool validate) { return operate(a, b, "union", validate); }
SparseTensor union_(const Operand& a, const SparseTensor& b, bool validate) { return operate(a, b, "union", validate); }
SparseTensor union_(const SparseTensor& a, const SparseTensor& b, bool validate, SourceSite where) {
  return operate(a, b, "union", validate, where);
}
SparseTensor difference(const Operand& a, const Operand& b, bool aminusb, bool validate) {
  return operate(a, b, minus(aminusb), validate);
}
SparseTensor difference(const Operand& a, const SparseTensor& b, bool aminusb, bool validate) {
  return operate(a, b, minus(aminusb), validate);
}
SparseTensor difference(const SparseTensor& a, const SparseTensor& b, bool aminusb, bool validate, SourceSite where) {
  return operate(a, b, minus(aminusb), validate, where);
}
Tensor size(const SparseTensor& a, bool validate, SourceSite where) {
  static const Op<SetSizeAttrs> op("SetSize");
  return op({a.indices, a.values, a.dense_shape}, {.validate_indices = validate}, &where);
}

}  // namespace sets
}  // namespace runnel
