#include "runnel/data/rows.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <numeric>

#include "runnel/base/format.h"
#include "runnel/data/element_type.h"
#include "runnel/data/node.h"

namespace runnel::data {
namespace {

using Part = Structure::Part;

template <class F>
void with_split_type(DType dtype, const F& f) {
  if (dtype == DType::int32) return f(int32_t{});
  if (dtype == DType::int64) return f(int64_t{});
  throw invalid_argument("[batch] row splits are {}, not int32 or int64", dtype_name(dtype));
}

// --- SparseTensors: indices, values, dense_shape.

struct Sparse {
  Tensor indices, values, shape;
  int64_t count() const { return values.dim(0); }
  int64_t rank() const { return shape.dim(0); }
  const int64_t* index(int64_t k) const { return indices.data<int64_t>() + k * rank(); }
};

Sparse sparse_of(const Item& item, const Part& part) {
  const Sparse s{item.tensors[part.first].to_host(), item.tensors[part.first + 1].to_host(),
                 item.tensors[part.first + 2].to_host()};
  const bool good = s.indices.dtype() == DType::int64 && s.indices.rank() == 2 && s.values.rank() == 1 &&
                    s.shape.dtype() == DType::int64 && s.shape.rank() == 1 && s.indices.dim(0) == s.count() &&
                    s.indices.dim(1) == s.rank();
  if (!good) {
    throw invalid_argument("[batch] a SparseTensor at element{} has indices {}, values {} and dense_shape {}",
                           part.path, s.indices.shape().str(), s.values.shape().str(), s.shape.shape().str());
  }
  return s;
}

// SparseTensors one below the other; as rows: each is one row of the result, which has a rank more.
void put_sparse(const std::vector<Item>& items, const Part& part, bool as_rows, std::vector<Tensor>& out) {
  std::vector<Sparse> all;
  std::vector<Tensor> values;
  int64_t n = 0;
  for (const Item& item : items) {
    all.push_back(sparse_of(item, part));
    values.push_back(all.back().values);
    n += all.back().count();
    if (all.back().rank() != all[0].rank()) {
      throw invalid_argument("[batch] SparseTensors of rank {} and {} at element{}", all[0].rank(), all.back().rank(),
                             part.path);
    }
  }
  const int64_t rank = all[0].rank(), more = as_rows ? 1 : 0;
  if (rank + more == 0) throw invalid_argument("[batch] a SparseTensor of rank 0 at element{} has no rows", part.path);
  const Tensor indices = Tensor::empty(DType::int64, {n, rank + more});
  const Tensor shape = Tensor::empty(DType::int64, {rank + more});
  int64_t* to = indices.mutable_data<int64_t>();
  int64_t* sizes = shape.mutable_data<int64_t>();
  std::fill_n(sizes, rank + more, 0);
  for (const Sparse& s : all) {
    for (int64_t k = 0; k < s.count(); ++k) {
      const int64_t* from = s.index(k);
      if (as_rows) *to++ = sizes[0];
      for (int64_t d = 0; d < rank; ++d) *to++ = from[d] + (d == 0 && !as_rows ? sizes[0] : 0);
    }
    const int64_t* own = s.shape.data<int64_t>();
    for (int64_t d = as_rows ? 0 : 1; d < rank; ++d) sizes[d + more] = std::max(sizes[d + more], own[d]);
    sizes[0] += as_rows ? 1 : own[0];
  }
  out.push_back(indices);
  out.push_back(join_tensors(values, part.path + ".values"));
  out.push_back(shape);
}

// Rows [begin, end) of a SparseTensor whose elements are in order; as an element: the only row, which has a rank less.
void cut_sparse(const Item& item, const Part& part, int64_t begin, int64_t end, bool as_element,
                std::vector<Tensor>& out) {
  const Sparse s = sparse_of(item, part);
  const auto first_of = [&](int64_t row) {
    int64_t low = 0, high = s.count();
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      (s.index(middle)[0] < row ? low : high) = s.index(middle)[0] < row ? middle + 1 : middle;
    }
    return low;
  };
  const int64_t from = first_of(begin), to = first_of(end), less = as_element ? 1 : 0, rank = s.rank() - less;
  const Tensor indices = Tensor::empty(DType::int64, {to - from, rank});
  const Tensor shape = Tensor::empty(DType::int64, {rank});
  int64_t* p = indices.mutable_data<int64_t>();
  for (int64_t k = from; k < to; ++k) {
    for (int64_t d = less; d < s.rank(); ++d) *p++ = s.index(k)[d] - (d == 0 ? begin : 0);
  }
  std::copy_n(s.shape.data<int64_t>() + less, rank, shape.mutable_data<int64_t>());
  if (!as_element) shape.mutable_data<int64_t>()[0] = end - begin;
  out.push_back(indices);
  out.push_back(s.values.rows(from, to));
  out.push_back(shape);
}

void sort_sparse(Item& item, const Part& part) {
  const Sparse s = sparse_of(item, part);
  if (s.rank() == 0) throw invalid_argument("[unbatch] a SparseTensor of rank 0 at element{} has no rows", part.path);
  std::vector<int64_t> order(static_cast<size_t>(s.count()));
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](int64_t a, int64_t b) { return s.index(a)[0] < s.index(b)[0]; };
  if (std::is_sorted(order.begin(), order.end(), before)) return;
  std::stable_sort(order.begin(), order.end(), before);
  const Tensor indices = Tensor::empty(DType::int64, s.indices.shape());
  const Tensor values = Tensor::empty(s.values.dtype(), s.values.shape());
  with_element_type(values.dtype(), [&](auto sample) {
    using T = decltype(sample);
    for (size_t k = 0; k < order.size(); ++k) {
      std::copy_n(s.index(order[k]), s.rank(), indices.mutable_data<int64_t>() + static_cast<int64_t>(k) * s.rank());
      values.mutable_data<T>()[k] = s.values.data<T>()[order[k]];
    }
  });
  item.tensors[part.first] = indices;
  item.tensors[part.first + 1] = values;
}

// --- RaggedTensors: flat values, then row splits from the innermost to the outermost.

int levels_of(const Part& part) { return static_cast<int>(part.leaves) - 1; }
Tensor splits_of(const Item& item, const Part& part, int level) {  // 0: the outermost
  const Tensor t = item.tensors[part.first + static_cast<size_t>(levels_of(part) - level)].to_host();
  if (t.rank() != 1 || t.dim(0) < 1)
    throw invalid_argument("[batch] row splits of shape {} at element{}", t.shape().str(), part.path);
  return t;
}
int64_t split_at(const Tensor& splits, int64_t i) {
  return splits.dtype() == DType::int32 ? splits.data<int32_t>()[i] : splits.data<int64_t>()[i];
}

// RaggedTensors one below the other; as rows: with a ragged dimension more, of which each is a row.
void put_ragged(const std::vector<Item>& items, const Part& part, bool as_rows, std::vector<Tensor>& out) {
  const int levels = levels_of(part);
  std::vector<Tensor> flat;
  for (const Item& item : items) flat.push_back(item.tensors[part.first].to_host());
  out.push_back(join_tensors(flat, part.path + ".values"));
  const DType dtype = splits_of(items[0], part, 0).dtype();
  with_split_type(dtype, [&](auto sample) {
    using T = decltype(sample);
    const auto end_at = [&](int64_t v) {
      if (v > std::numeric_limits<T>::max())
        throw make_error(Code::out_of_range, "[batch] {} values are more than int32 row splits can count", v);
      return static_cast<T>(v);
    };
    for (int level = levels - 1; level >= 0; --level) {
      int64_t rows = 0;
      for (const Item& item : items) {
        const Tensor s = splits_of(item, part, level);
        if (s.dtype() != dtype) {
          throw invalid_argument("[batch] RaggedTensors with {} and {} row splits at element{}", dtype_name(dtype),
                                 dtype_name(s.dtype()), part.path);
        }
        rows += s.dim(0) - 1;
      }
      const Tensor joined = Tensor::empty(dtype, {rows + 1});
      T* to = joined.mutable_data<T>();
      *to++ = 0;
      int64_t base = 0;
      for (const Item& item : items) {
        const Tensor s = splits_of(item, part, level);
        for (int64_t k = 1; k < s.dim(0); ++k) *to++ = end_at(base + split_at(s, k));
        base += split_at(s, s.dim(0) - 1);
      }
      out.push_back(joined);
    }
    if (!as_rows) return;
    const Tensor outer = Tensor::empty(dtype, {static_cast<int64_t>(items.size()) + 1});
    T* to = outer.mutable_data<T>();
    *to++ = 0;
    int64_t rows = 0;
    for (const Item& item : items) *to++ = end_at(rows += splits_of(item, part, 0).dim(0) - 1);
    out.push_back(outer);
  });
}

// Rows [begin, end); as an element: the only row, which has a ragged dimension less.
void cut_ragged(const Item& item, const Part& part, int64_t begin, int64_t end, bool as_element,
                std::vector<Tensor>& out) {
  std::vector<Tensor> cut;  // outermost first
  for (int level = 0; level < levels_of(part); ++level) {
    const Tensor s = splits_of(item, part, level);
    if (end >= s.dim(0)) throw invalid_argument("[unbatch] row splits at element{} end early", part.path);
    const int64_t first = split_at(s, begin), last = split_at(s, end);
    if (level > 0 || !as_element) {
      const Tensor own = Tensor::empty(s.dtype(), {end - begin + 1});
      with_split_type(s.dtype(), [&](auto sample) {
        using T = decltype(sample);
        for (int64_t k = begin; k <= end; ++k)
          own.mutable_data<T>()[k - begin] = static_cast<T>(split_at(s, k) - first);
      });
      cut.push_back(own);
    }
    begin = first;
    end = last;
  }
  out.push_back(item.tensors[part.first].rows(begin, end));
  out.insert(out.end(), cut.rbegin(), cut.rend());
}

// --- Structures.

NestOf<Slot> batched(const NestOf<Slot>& n) {
  if (n.is_leaf() || n.kind() == NestKind::sparse) return n;
  if (n.kind() == NestKind::ragged) return n.rebuilt<Slot>({n, Slot{}});
  std::vector<NestOf<Slot>> items;
  for (const auto& each : n.items()) items.push_back(batched(each));
  return n.rebuilt<Slot>(std::move(items));
}
NestOf<Slot> row(const NestOf<Slot>& n) {
  if (n.is_leaf() || n.kind() == NestKind::sparse) return n;
  if (n.kind() == NestKind::ragged) return n.items()[0];
  std::vector<NestOf<Slot>> items;
  for (const auto& each : n.items()) items.push_back(row(each));
  return n.rebuilt<Slot>(std::move(items));
}

void refuse_slices(const Part& part) {
  if (part.kind == NestKind::slices)
    throw invalid_argument("[batch] IndexedSlices at element{} have no batches: make a tensor of them before",
                           part.path);
}

void put_all(const std::vector<Item>& items, bool as_rows, Item& out) {
  for (const Item& item : items) {
    if (item.structure != items[0].structure) detail::wrong_structure(items[0].structure, item.structure);
  }
  const Structure* structure = items[0].structure;
  Item made;
  made.structure = as_rows && !structure->plain ? structure_of(batched(structure->nest)) : structure;
  for (const Part& part : structure->parts) {
    refuse_slices(part);
    if (part.kind == NestKind::sparse) {
      put_sparse(items, part, as_rows, made.tensors);
    } else if (part.kind == NestKind::ragged) {
      put_ragged(items, part, as_rows, made.tensors);
    } else {
      const std::vector<Tensor> all = column(items, part.first);
      made.tensors.push_back(as_rows ? stack_tensors(all, part.path) : join_tensors(all, part.path));
    }
  }
  out = std::move(made);
}

}  // namespace

std::vector<Tensor> column(const std::vector<Item>& items, size_t k) {
  std::vector<Tensor> all;
  for (const Item& item : items) {
    if (item.structure != items[0].structure) detail::wrong_structure(items[0].structure, item.structure);
    all.push_back(item.tensors[k].to_host());
  }
  return all;
}

Tensor stack_tensors(const std::vector<Tensor>& tensors, const std::string& path) {
  Stacker stacker(static_cast<int64_t>(tensors.size()), path);
  Item one;
  one.structure = detail::fixed_structure<Tensor>();
  for (const Tensor& t : tensors) {
    one.tensors.assign(1, t);
    stacker.add(one);
  }
  stacker.finish(one);
  return one.tensors[0];
}

Tensor join_tensors(const std::vector<Tensor>& tensors, const std::string& path) {
  if (tensors.size() == 1) return tensors[0];
  const Tensor& first = tensors[0];
  Dims dims = first.shape().dims();
  int64_t total = 0;
  for (const Tensor& t : tensors) {
    if (t.rank() == 0 || t.rank() != first.rank() || t.dtype() != first.dtype() ||
        !std::equal(t.shape().begin() + 1, t.shape().end(), dims.begin() + 1)) {
      throw invalid_argument(
          "[batch] elements{} of one batch are {}{} and {}{}: they must have one dtype and one "
          "rank, and only their first dimensions may differ",
          path, dtype_name(first.dtype()), first.shape().str(), dtype_name(t.dtype()), t.shape().str());
    }
    total += t.dim(0);
  }
  dims[0] = total;
  const Tensor out = Tensor::empty(first.dtype(), Shape(dims));
  with_element_type(out.dtype(), [&](auto sample) {
    using T = decltype(sample);
    T* to = out.mutable_data<T>();
    for (const Tensor& t : tensors) to = std::copy_n(t.data<T>(), t.num_elements(), to);
  });
  return out;
}

void stack(const std::vector<Item>& elements, Item& out) { put_all(elements, true, out); }
void join(const std::vector<Item>& batches, Item& out) {
  if (batches.size() == 1) {
    out = batches[0];
  } else {
    put_all(batches, false, out);
  }
}

void prepare_rows(Item& batch, const char* what) {
  for (Tensor& t : batch.tensors) t = t.to_host();
  int64_t rows = -1;
  for (const Part& part : batch.structure->parts) {
    refuse_slices(part);
    if (part.kind == NestKind::sparse) sort_sparse(batch, part);
    const Tensor& t = batch.tensors[part.first];
    if (part.kind != NestKind::sparse && t.rank() == 0)
      throw invalid_argument("[{}] an element{} is a scalar, which has no rows", what, part.path);
    const int64_t own = part.kind == NestKind::sparse   ? *batch.tensors[part.first + 2].data<int64_t>()
                        : part.kind == NestKind::ragged ? splits_of(batch, part, 0).dim(0) - 1
                                                        : t.dim(0);
    if (rows >= 0 && own != rows)
      throw invalid_argument("[{}] the components of an element have {} and {} rows", what, rows, own);
    rows = own;
  }
}

int64_t rows_of(const Item& batch) {
  if (batch.structure->parts.empty()) return 0;
  const Part& part = batch.structure->parts[0];
  if (part.kind == NestKind::sparse) return *batch.tensors[part.first + 2].data<int64_t>();
  if (part.kind == NestKind::ragged) return splits_of(batch, part, 0).dim(0) - 1;
  return batch.tensors[part.first].dim(0);
}

void row_at(const Item& batch, int64_t i, Item& out) {
  const Structure* structure = batch.structure;
  Item made;
  made.structure = structure->plain ? structure : structure_of(row(structure->nest));
  for (const Part& part : structure->parts) {
    if (part.kind == NestKind::sparse) {
      cut_sparse(batch, part, i, i + 1, true, made.tensors);
    } else if (part.kind == NestKind::ragged) {
      cut_ragged(batch, part, i, i + 1, true, made.tensors);
    } else {
      made.tensors.push_back(row_of(batch.tensors[part.first], i));
    }
  }
  out = std::move(made);
}

void rows_at(const Item& batch, int64_t begin, int64_t end, Item& out) {
  Item made;
  made.structure = batch.structure;
  for (const Part& part : batch.structure->parts) {
    if (part.kind == NestKind::sparse) {
      cut_sparse(batch, part, begin, end, false, made.tensors);
    } else if (part.kind == NestKind::ragged) {
      cut_ragged(batch, part, begin, end, false, made.tensors);
    } else {
      made.tensors.push_back(batch.tensors[part.first].rows(begin, end));
    }
  }
  out = std::move(made);
}

// --- Descriptions.

namespace {

using Spec = ElementSpec;

TensorSpec with_dims(const TensorSpec& like, const Dims& dims) { return {PartialShape(dims), like.dtype, like.name}; }

// A SparseTensor of `more` ranks more.
Spec sparse_spec(const Spec& n, int64_t more) {
  const TensorSpec& shape = n.items()[2].leaf();
  const int64_t rank = shape.shape.has_rank() && shape.shape.rank() == 1 ? shape.shape[0] : kUnknownDim;
  const int64_t now = rank < 0 ? kUnknownDim : rank + more;
  return n.rebuilt<TensorSpec>({with_dims(n.items()[0].leaf(), {kUnknownDim, now}),
                                with_dims(n.items()[1].leaf(), {kUnknownDim}), with_dims(shape, {now})});
}

// The same with nothing known of how many rows there are, at any level.
Spec free_rows(const Spec& n) {
  if (n.is_leaf()) {
    if (!n.leaf().shape.has_rank() || n.leaf().shape.rank() == 0) return n;
    Dims dims = n.leaf().shape.dims();
    dims[0] = kUnknownDim;
    return with_dims(n.leaf(), dims);
  }
  std::vector<Spec> items;
  for (const Spec& each : n.items()) items.push_back(free_rows(each));
  return n.rebuilt<TensorSpec>(std::move(items));
}

template <class Leaf, class Sparse, class Ragged>
Spec over_parts(const Spec& n, const Leaf& leaf, const Sparse& sparse, const Ragged& ragged) {
  if (n.is_leaf()) return leaf(n.leaf());
  if (n.kind() == NestKind::sparse) return sparse(n);
  if (n.kind() == NestKind::ragged) return ragged(n);
  std::vector<Spec> items;
  for (const Spec& each : n.items()) items.push_back(over_parts(each, leaf, sparse, ragged));
  return n.rebuilt<TensorSpec>(std::move(items));
}

}  // namespace

ElementSpec batched(const ElementSpec& element, int64_t batch) {
  return over_parts(
      element,
      [&](const TensorSpec& s) -> Spec {
        if (!s.shape.has_rank()) return s;
        Dims dims = s.shape.dims();
        dims.insert(dims.begin(), batch);
        return with_dims(s, dims);
      },
      [](const Spec& n) { return sparse_spec(n, 1); },
      [&](const Spec& n) {
        const TensorSpec outer = with_dims(n.items()[1].leaf(), {batch < 0 ? kUnknownDim : batch + 1});
        return n.rebuilt<TensorSpec>({free_rows(n), Spec(outer)});
      });
}

ElementSpec unbatched(const ElementSpec& batch) {
  return over_parts(
      batch,
      [](const TensorSpec& s) -> Spec {
        if (!s.shape.has_rank() || s.shape.rank() == 0) return TensorSpec{PartialShape::unknown(), s.dtype, s.name};
        return with_dims(s, Dims(s.shape.begin() + 1, s.shape.end()));
      },
      [](const Spec& n) { return sparse_spec(n, -1); }, [](const Spec& n) { return free_rows(n.items()[0]); });
}

ElementSpec rebatched(const ElementSpec& element, int64_t batch) {
  return over_parts(
      element,
      [&](const TensorSpec& s) -> Spec {
        if (!s.shape.has_rank() || s.shape.rank() == 0) return TensorSpec{PartialShape::unknown(), s.dtype, s.name};
        Dims dims = s.shape.dims();
        dims[0] = batch;
        return with_dims(s, dims);
      },
      [](const Spec& n) { return sparse_spec(n, 0); }, [](const Spec& n) { return free_rows(n); });
}

int64_t known_rows(const ElementSpec& batch) {
  if (batch.is_leaf()) {
    const PartialShape& s = batch.leaf().shape;
    return s.has_rank() && s.rank() > 0 ? s[0] : kUnknownDim;
  }
  if (batch.kind() == NestKind::sparse) return kUnknownDim;
  if (batch.kind() == NestKind::ragged) {
    const int64_t n = known_rows(batch.items()[1]);
    return n < 0 ? kUnknownDim : n - 1;
  }
  for (const ElementSpec& each : batch.items()) {
    if (const int64_t n = known_rows(each); n >= 0) return n;
  }
  return kUnknownDim;
}

}  // namespace runnel::data
