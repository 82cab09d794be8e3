// Ragged tensors.
#include <ostream>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/broadcast_grad.h"
#include "runnel/ops/composite.h"
#include "runnel/ops/cumulative.h"
#include "runnel/ops/math.h"
#include "runnel/tensor/format_array.h"

namespace runnel {
namespace {

struct ToTensorAttrs {
  int64_t num_row_partition_tensors = 1;
  std::vector<std::string> row_partition_types;
  static constexpr auto fields() {
    return field_list(
        field("num_row_partition_tensors", &ToTensorAttrs::num_row_partition_tensors, {.required = true, .minimum = 1}),
        field("row_partition_types", &ToTensorAttrs::row_partition_types, {.required = true}));
  }
};

// Splits start at 0, never fall, and end at the number of values they cut.
void check_splits(const Dims& splits, int64_t values) {
  if (splits.empty()) throw invalid_argument("row_splits are empty: they start with 0");
  if (splits[0] != 0) throw invalid_argument("row_splits start with {}, not 0", splits[0]);
  for (size_t i = 1; i < splits.size(); ++i) {
    if (splits[i] < splits[i - 1]) throw invalid_argument("row_splits fall: {} after {}", splits[i], splits[i - 1]);
  }
  if (values >= 0 && splits.back() != values) {
    throw invalid_argument("row_splits end at {}, there are {} values", splits.back(), values);
  }
}

int64_t first_dim(const PartialShape& s) { return s.has_rank() && s.rank() > 0 ? s[0] : kUnknownDim; }

void check_rank(const InferContext& c, const ToTensorAttrs& a, int levels) {
  for (const std::string& type : a.row_partition_types) {
    if (type != "ROW_SPLITS") throw invalid_argument("row partition '{}' is not supported, only ROW_SPLITS", type);
  }
  if (levels < 1) throw invalid_argument("no row partitions");
  if (static_cast<int>(a.row_partition_types.size()) != levels) {
    throw invalid_argument("{} row partition types for {} tensors", a.row_partition_types.size(), levels);
  }
  for (int i = 0; i < levels; ++i) c.require_rank(3 + i, 1);
  c.require_rank_at_least(1, 1);
}

// The shape asked for, one size for each dimension of the result, -1 where it is to be worked out.
Dims asked_shape(const Tensor& shape, int rank) {
  Dims sizes = int_values(shape);
  if (shape.rank() == 0) {
    if (sizes[0] != -1) throw invalid_argument("a scalar shape must be -1, got {}", sizes[0]);
    return Dims(static_cast<size_t>(rank), -1);
  }
  for (int64_t size : sizes) {
    if (size < -1) throw invalid_argument("a shape with a size of {}", size);
  }
  if (static_cast<int>(sizes.size()) != rank) {
    throw invalid_argument("a shape of {} sizes for a tensor of rank {}", sizes.size(), rank);
  }
  return sizes;
}

// Copies rows of level `level` from `begin` to `end` into the block at `to`.
template <class E>
struct Spreader {
  const std::vector<Dims>& splits;
  const Dims& dims;     // of the result, ragged dimensions and the first
  const Dims& strides;  // in elements
  int64_t inner;
  const E* from;
  E* to;

  void spread(size_t level, int64_t begin, int64_t end, int64_t at) const {
    const int64_t n = std::min(end - begin, dims[level]);
    if (level == splits.size()) {
      cpu::copy_run(from + begin * inner, to + at, n * inner);
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      const auto row = static_cast<size_t>(begin + i);
      spread(level + 1, splits[level][row], splits[level][row + 1], at + i * strides[level]);
    }
  }
};

void to_tensor_kernel(KernelContext& c) {
  const int levels = c.num_inputs() - 3;
  const Tensor& values = c.in(1);
  const int rank = levels + values.rank();
  const Dims asked = asked_shape(c.in(0), rank);
  std::vector<Dims> splits;
  for (int i = 0; i < levels; ++i) splits.push_back(c.ints(3 + i));
  Dims dims;
  for (int i = 0; i < levels; ++i) {
    const Dims& s = splits[static_cast<size_t>(i)];
    check_splits(
        s, i + 1 < levels ? static_cast<int64_t>(splits[static_cast<size_t>(i) + 1].size()) - 1 : values.shape()[0]);
    if (i == 0) dims.push_back(static_cast<int64_t>(s.size()) - 1);
    int64_t longest = 0;
    for (size_t k = 1; k < s.size(); ++k) longest = std::max(longest, s[k] - s[k - 1]);
    dims.push_back(longest);
  }
  int64_t inner = 1;
  for (int d = 1; d < values.rank(); ++d) {
    dims.push_back(values.shape()[d]);
    inner *= values.shape()[d];
  }
  for (int d = 0; d < rank; ++d) {
    const int64_t want = asked[static_cast<size_t>(d)];
    if (want < 0) continue;
    if (d > levels && want != dims[static_cast<size_t>(d)]) {
      throw invalid_argument("size {} asked for dimension {}, which is {} for every row", want, d,
                             dims[static_cast<size_t>(d)]);
    }
    dims[static_cast<size_t>(d)] = want;
  }
  Tensor& out = c.allocate(0, Shape(dims));
  // The default fills the inner dimensions: a scalar, or one element (or slice) for each.
  const Tensor& filler = c.in(2);
  const Dims inner_dims(dims.begin() + levels + 1, dims.end());
  const int lead = static_cast<int>(inner_dims.size()) - filler.rank();
  if (lead < 0)
    throw invalid_argument("default_value has shape {}, one value has {}", filler.shape().str(),
                           Shape(inner_dims).str());
  Dims from(dims.size(), 0);
  const Dims dense = cpu::dense_strides(filler.shape().dims());
  for (int d = 0; d < filler.rank(); ++d) {
    const auto i = static_cast<size_t>(levels + 1 + lead + d);
    if (filler.shape()[d] != 1 && filler.shape()[d] != dims[i]) {
      throw invalid_argument("default_value of shape {} does not broadcast to {}", filler.shape().str(),
                             Shape(inner_dims).str());
    }
    from[i] = filler.shape()[d] == 1 ? 0 : dense[static_cast<size_t>(d)];
  }
  const Dims strides = cpu::dense_strides(dims);
  cpu::copy_strided(out.dtype(), dims, filler.raw(), from, out.mutable_data<char>(), strides);
  cpu::with_element(out.dtype(), [&]<class E>() {
    const Spreader<E> spreader{splits, dims, strides, inner, values.data<E>(), out.mutable_data<E>()};
    spreader.spread(0, 0, static_cast<int64_t>(splits[0].size()) - 1, 0);
  });
}

Tensor to_tensor_op(const Tensor& shape, const Tensor& values, const Tensor& filler,
                    const std::vector<Tensor>& splits) {
  static const Op<ToTensorAttrs> op("RaggedTensorToTensor");
  std::vector<Arg> args{shape, values, filler};
  for (const Tensor& s : splits) args.emplace_back(s);
  return op.list(args, {.num_row_partition_tensors = static_cast<int64_t>(splits.size()),
                        .row_partition_types = std::vector<std::string>(splits.size(), "ROW_SPLITS")});
}

Gradients to_tensor_grad(const GradCtx& g) {
  // The op run on the numbers of the values says which value stands where.
  const Tensor& values = g.x(1);
  std::vector<Tensor> splits;
  for (int i = 3; i < g.num_inputs(); ++i) splits.push_back(g.x(i));
  const auto levels = static_cast<int64_t>(splits.size());
  const Tensor n = shape(values, DType::int64)[0];
  const Tensor asked = g.x(0).partial_shape().rank() == 1 ? g.x(0)(slice(0, levels + 1)) : g.x(0);
  const Tensor minus_one = zeros({}, DType::int64) - 1;
  const Tensor which = to_tensor_op(asked, range(zeros_like(n), n, ones_like(n)), minus_one, splits);
  const Tensor taken = greater_equal(which, zeros({}, DType::int64));
  const Tensor dy = g.dy();
  Gradients all(static_cast<size_t>(g.num_inputs()));
  all[1] = g.want(1, [&] {
    return scatter_nd(expand_dims(boolean_mask(which, taken), 1), boolean_mask(dy, taken), shape(values, DType::int64));
  });
  all[2] = g.want(2, [&] {
    const Tensor fills = reduce_sum(boolean_mask(dy, logical_not(taken)), 0);
    return sum_to_shape_of(fills, g.x(2));
  });
  return all;
}

}  // namespace

void register_ragged(Registry& r) {
  r.define<ToTensorAttrs>("RaggedTensorToTensor")
      .type("T", data_types)
      .type("Tshape", index_types)
      .in_host("shape", "Tshape")
      .in("values", "T")
      .in("default_value", "T")
      .type("Tindex", index_types)
      .in_list("row_partition_tensors", "num_row_partition_tensors", "Tindex")
      .out("result", "T")
      .shape([](InferContext& c, const ToTensorAttrs& a) {
        const int levels = c.num_inputs() - 3;
        check_rank(c, a, levels);
        const PartialShape& values = c.input(1);
        if (!values.has_rank()) return c.output(PartialShape::unknown());
        Dims dims(static_cast<size_t>(levels + 1), kUnknownDim);
        dims.insert(dims.end(), values.begin() + 1, values.end());
        c.output(PartialShape(dims));
      })
      .forwards()
      .cpu([](KernelContext& c) { to_tensor_kernel(c); })
      .grad([](const GradCtx& g) { return to_tensor_grad(g); })
      .doc("A dense tensor of ragged rows, shorter ones filled up with default_value.")
      .sample({.in = {Tensor(-1), Tensor{1.f, 2.f, 3.f}, Tensor(9.f), Tensor{0, 2, 2, 3}},
               .out = {Tensor{{1.f, 2.f}, {9.f, 9.f}, {3.f, 9.f}}}},
              {.num_row_partition_tensors = 1, .row_partition_types = {"ROW_SPLITS"}})
      .sample({.in = {Tensor{-1, 2, 1}, Tensor{1.f, 2.f, 3.f}, Tensor(9.f), Tensor{0, 1, 2}, Tensor{0, 2, 3}},
               .out = {Tensor{{{1.f}, {9.f}}, {{3.f}, {9.f}}}}},
              {.num_row_partition_tensors = 2, .row_partition_types = {"ROW_SPLITS", "ROW_SPLITS"}})
      .sample({.in = {Tensor(-1), Tensor{1.f, 2.f}, Tensor(9.f), Tensor{0, 3}},
               .error = "row_splits end at 3, there are 2 values"},
              {.num_row_partition_tensors = 1, .row_partition_types = {"ROW_SPLITS"}});
}

RaggedTensor RaggedTensor::from_nested_row_splits(const Tensor& flat_values,
                                                  const std::vector<Tensor>& nested_row_splits, SourceSite where) {
  return composed(where, [&]() -> RaggedTensor {
    if (nested_row_splits.empty()) throw invalid_argument("[RaggedTensor] at least one vector of row splits is needed");
    if (flat_values.partial_shape().rank() == 0) throw invalid_argument("[RaggedTensor] the values are a scalar");
    try {
      for (size_t i = 0; i < nested_row_splits.size(); ++i) {
        const Tensor& splits = nested_row_splits[i];
        const PartialShape s = splits.partial_shape();
        if (s.has_rank() && s.rank() != 1) throw invalid_argument("row_splits must be a vector, got shape {}", s.str());
        const bool last = i + 1 == nested_row_splits.size();
        const int64_t next = first_dim((last ? flat_values : nested_row_splits[i + 1]).partial_shape());
        if (const auto values = static_ints(splits)) check_splits(*values, last || next < 0 ? next : next - 1);
      }
    } catch (const Error& e) {
      throw Error(e.code(), std::string("[RaggedTensor] ") + e.what());
    }
    return RaggedTensor(flat_values, nested_row_splits);
  });
}

RaggedTensor RaggedTensor::from_row_splits(const Tensor& values, const Tensor& row_splits, SourceSite where) {
  return composed(where, [&] { return from_nested_row_splits(values, {row_splits}); });
}
RaggedTensor RaggedTensor::from_row_splits(const RaggedTensor& values, const Tensor& row_splits, SourceSite where) {
  return composed(where, [&]() -> RaggedTensor {
    std::vector<Tensor> all{row_splits};
    all.insert(all.end(), values.nested_row_splits().begin(), values.nested_row_splits().end());
    return from_nested_row_splits(values.flat_values(), all);
  });
}

namespace {

Tensor splits_from(const Tensor& row_lengths) {
  return concat({zeros({1}, row_lengths.dtype()), cumsum(row_lengths)}, 0);
}

}  // namespace

RaggedTensor RaggedTensor::from_row_lengths(const Tensor& values, const Tensor& row_lengths, SourceSite where) {
  return composed(where, [&] { return from_row_splits(values, splits_from(row_lengths)); });
}
RaggedTensor RaggedTensor::from_row_lengths(const RaggedTensor& values, const Tensor& row_lengths, SourceSite where) {
  return composed(where, [&] { return from_row_splits(values, splits_from(row_lengths)); });
}

RaggedTensor RaggedTensor::from_tensor(const Tensor& tensor, const Tensor& lengths, SourceSite where) {
  return composed(where, [&]() -> RaggedTensor {
    const PartialShape s = tensor.partial_shape();
    if (!s.has_rank() || s.rank() < 2) {
      throw invalid_argument("[RaggedTensor] a tensor of rank 2 or more needed, got shape {}", s.str());
    }
    const Tensor sizes = runnel::shape(tensor, DType::int64);
    const Tensor most = sizes[1];
    if (!lengths.defined()) {
      const Tensor flat = reshape(tensor, concat({reshape(sizes[0] * most, {1}), sizes(slice(2, none))}, 0));
      const Tensor n = sizes[0] + 1;
      return from_row_splits(flat, range(zeros_like(n), n, ones_like(n)) * most);
    }
    const Tensor kept = minimum(cast(lengths, DType::int64), most);
    return from_row_lengths(boolean_mask(tensor, sequence_mask(kept, most)), kept);
  });
}

Tensor RaggedTensor::splits_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> splits{0};
  for (int64_t n : lengths) splits.push_back(splits.back() + n);
  return Tensor::of<int64_t>(splits);
}

const Tensor& RaggedTensor::row_splits(SourceSite where) const {
  if (nested_row_splits_.empty()) {
    throw at_line(make_error(Code::failed_precondition, "[RaggedTensor] this one was never made: it has no rows"),
                  where);
  }
  return nested_row_splits_.front();
}

const Tensor& RaggedTensor::values(SourceSite where) const {
  if (ragged_rank() > 1) {
    throw at_line(
        make_error(Code::failed_precondition, "[RaggedTensor] the rows are ragged themselves: ask for ragged_values()"),
        where);
  }
  return flat_values_;
}

RaggedTensor RaggedTensor::ragged_values(SourceSite where) const {
  if (ragged_rank() < 2) {
    throw at_line(make_error(Code::failed_precondition, "[RaggedTensor] the rows are not ragged: ask for values()"),
                  where);
  }
  return RaggedTensor(flat_values_, {nested_row_splits_.begin() + 1, nested_row_splits_.end()});
}

PartialShape RaggedTensor::shape(SourceSite where) const {
  const PartialShape splits_shape = row_splits(where).partial_shape();
  const PartialShape flat = flat_values_.partial_shape();
  if (!flat.has_rank()) return flat;
  const int64_t splits = first_dim(splits_shape);
  Dims dims{splits < 0 ? kUnknownDim : splits - 1};
  dims.resize(nested_row_splits_.size() + 1, kUnknownDim);
  dims.insert(dims.end(), flat.begin() + 1, flat.end());
  return PartialShape(dims);
}

Tensor RaggedTensor::row_lengths(SourceSite where) const {
  return composed(where, [&] {
    const Tensor& splits = row_splits();
    return splits(slice(1, none)) - splits(slice(none, -1));
  });
}

Tensor RaggedTensor::nrows(SourceSite where) const {
  return composed(where, [&] { return runnel::shape(row_splits(), DType::int64)[0] - 1; });
}

namespace {

// Where row i begins and ends among the values.
std::pair<Tensor, Tensor> row_bounds(const Tensor& splits, int64_t i) {
  const int64_t n = first_dim(splits.partial_shape());
  if (n >= 0 && (i < -(n - 1) || i >= n - 1)) {
    throw make_error(Code::out_of_range, "[RaggedTensor] index {} is out of range for {} rows", i, n - 1);
  }
  // Negative rows count from the last split but one.
  return {splits[i < 0 ? i - 1 : i], splits[i < 0 ? i : i + 1]};
}

Tensor between(const Tensor& values, const Tensor& begin, const Tensor& end) {
  return strided_slice(values, reshape(begin, {1}), reshape(end, {1}));
}

}  // namespace

Tensor RaggedTensor::operator[](const AskedPlace& i) const {
  return composed(i.where, [&] {
    const auto [begin, end] = row_bounds(row_splits(), i.place);
    return between(values(), begin, end);
  });
}

RaggedTensor RaggedTensor::ragged_row(int64_t i, SourceSite where) const {
  return composed(where, [&]() -> RaggedTensor {
    const RaggedTensor inner = ragged_values();
    auto [begin, end] = row_bounds(row_splits(), i);
    std::vector<Tensor> splits;
    for (const Tensor& s : inner.nested_row_splits()) {
      const Tensor own = between(s, begin, end + 1);
      begin = own[0];
      end = own[-1];
      splits.push_back(own - begin);
    }
    return from_nested_row_splits(between(flat_values_, begin, end), splits);
  });
}

Tensor RaggedTensor::to_tensor(const Tensor& default_value, const std::vector<int64_t>& shape, SourceSite where) const {
  return composed(where, [&]() -> Tensor {
    const Tensor asked = shape.empty() ? int_scalar(-1) : int_vector(Dims(shape.begin(), shape.end()));
    return to_tensor_op(asked, flat_values_, default_value.defined() ? default_value : zeros({}, dtype()),
                        nested_row_splits_);
  });
}

namespace {

// Lists as Python writes them; floats and strings as their repr.
std::string written(const Tensor& t) {
  const Shape& s = t.shape();
  if (s.rank() == 0) return format_array({t.dtype(), t.raw(), s.dims()});
  std::string text = "[";
  for (int64_t i = 0; i < s[0]; ++i)
    text += (i ? ", " : "") + written(t.rows(i, i + 1).with_shape(Shape(Dims(s.begin() + 1, s.end()))));
  return text + "]";
}

std::string written(const Tensor& flat, const std::vector<Dims>& splits, size_t level, int64_t begin, int64_t end) {
  if (level == splits.size()) return written(flat.rows(begin, end));
  std::string text = "[";
  for (int64_t i = begin; i < end; ++i) {
    const auto row = static_cast<size_t>(i);
    text += (i > begin ? ", " : "") + written(flat, splits, level + 1, splits[level][row], splits[level][row + 1]);
  }
  return text + "]";
}

}  // namespace

std::string RaggedTensor::str() const {
  if (!defined()) return "<tf.RaggedTensor undefined>";
  bool symbolic = flat_values_.is_symbolic();
  for (const Tensor& s : nested_row_splits_) symbolic = symbolic || s.is_symbolic();
  if (symbolic) return fmt::format("<tf.RaggedTensor shape={} dtype={}>", shape().str(), dtype_name(dtype()));
  std::vector<Dims> splits;
  for (const Tensor& s : nested_row_splits_) splits.push_back(int_values(s));
  return "<tf.RaggedTensor " +
         written(flat_values_.to_host(), splits, 0, 0, static_cast<int64_t>(splits[0].size()) - 1) + ">";
}

std::ostream& operator<<(std::ostream& out, const RaggedTensor& ragged) { return out << ragged.str(); }

}  // namespace runnel
