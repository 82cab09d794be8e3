// Rows of sequences of different lengths: reversed; and what concatenations and comparisons of lists need.
#include <algorithm>
#include <unordered_set>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/partition.h"

namespace runnel {
namespace {

struct ConcatOffsetAttrs {
  int64_t N = 2;
  static constexpr auto fields() {
    return field_list(field("N", &ConcatOffsetAttrs::N, {.required = true, .minimum = 2}));
  }
};

struct ReverseSequenceAttrs {
  int64_t seq_dim = 0;
  int64_t batch_dim = 0;
  static constexpr auto fields() {
    return field_list(field("seq_dim", &ReverseSequenceAttrs::seq_dim, {.required = true}),
                      field("batch_dim", &ReverseSequenceAttrs::batch_dim));
  }
};
struct ListDiffAttrs {
  DType out_idx = DType::int32;
  static constexpr auto fields() {
    return field_list(field("out_idx", &ListDiffAttrs::out_idx, {.types = index_types.mask}));
  }
};

void reverse_rows(KernelContext& c, const ReverseSequenceAttrs& a) {
  const Shape& s = c.in(0).shape();
  const int seq = static_cast<int>(a.seq_dim), batch = static_cast<int>(a.batch_dim);
  const Dims lengths = c.ints(1);
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || lengths[i] > s[seq]) {
      throw invalid_argument("seq_lengths[{}] = {} is not in [0, {}]", i, lengths[i], s[seq]);
    }
  }
  const Dims strides = cpu::dense_strides(s.dims());
  const DType dtype = c.out().dtype();
  char* to = c.out().mutable_data<char>();
  const auto* from = static_cast<const char*>(c.in(0).raw());
  for (int64_t b = 0; b < s[batch]; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    // The first `length` places backwards, the others as they are.
    for (const bool turned : {true, false}) {
      Dims dims = s.dims(), steps = strides;
      dims[static_cast<size_t>(batch)] = 1;
      dims[static_cast<size_t>(seq)] = turned ? length : s[seq] - length;
      if (std::count(dims.begin(), dims.end(), 0) > 0) continue;
      const int64_t step = strides[static_cast<size_t>(seq)];
      const int64_t at = b * strides[static_cast<size_t>(batch)] + (turned ? 0 : length * step);
      const int64_t start = turned ? at + (length - 1) * step : at;
      if (turned) steps[static_cast<size_t>(seq)] = -step;
      cpu::copy_strided(dtype, dims, cpu::element_at(static_cast<const void*>(from), dtype, start), steps,
                        cpu::element_at(static_cast<void*>(to), dtype, at), strides);
    }
  }
}

template <class I>
void put_offsets(KernelContext& c) {
  const int n = c.num_inputs() - 1;
  const Dims first = c.ints(1);
  const auto axis = static_cast<size_t>(normalize_axis(c.int_scalar(0), static_cast<int>(first.size()), "concat_dim"));
  int64_t offset = 0;
  for (int i = 0; i < n; ++i) {
    const Dims own = c.ints(1 + i);
    I* to = c.out<I>(i);
    for (size_t d = 0; d < own.size(); ++d) {
      if (d != axis && own[d] != first[d]) {
        throw invalid_argument("sizes differ outside axis {}: {} and {}", axis, Shape(first).str(), Shape(own).str());
      }
      to[d] = d == axis ? static_cast<I>(offset) : I(0);
    }
    offset += own[axis];
  }
}

template <class T>
struct ListDiffKey {  // numbers as they compare, not as their bits
  struct Hash {
    size_t operator()(const T& x) const {
      if constexpr (std::is_same_v<T, Bytes>) {
        return std::hash<std::string_view>()(x);
      } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        return std::hash<float>()(static_cast<float>(x));
      } else {
        return std::hash<T>()(x);
      }
    }
  };
};

template <class T>
void list_difference(KernelContext& c) {
  std::unordered_set<T, typename ListDiffKey<T>::Hash> others;
  for (int64_t i = 0; i < c.in(1).num_elements(); ++i) others.insert(c.in<T>(1)[i]);
  std::vector<T> kept;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < c.in(0).num_elements(); ++i) {
    if (others.contains(c.in<T>(0)[i])) continue;
    kept.push_back(c.in<T>(0)[i]);
    places.push_back(i);
  }
  const Shape size{static_cast<int64_t>(kept.size())};
  std::copy(kept.begin(), kept.end(), c.allocate(0, size).template mutable_data<T>());
  const Tensor& at = c.allocate(1, size);
  if (at.dtype() == DType::int32) {
    std::copy(places.begin(), places.end(), at.mutable_data<int32_t>());
  } else {
    std::copy(places.begin(), places.end(), at.mutable_data<int64_t>());
  }
}

}  // namespace

void register_array_sequences(Registry& r) {
  const Tensor x{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}};
  r.define<ReverseSequenceAttrs>("ReverseSequence")
      .type("T", data_types)
      .in("input", "T")
      .type("Tlen", index_types, DType::int64)
      .in_host("seq_lengths", "Tlen")
      .out("output", "T")
      .shape([](InferContext& c, const ReverseSequenceAttrs& a) {
        c.require_rank(1, 1);
        const PartialShape &whole = c.input(0), &lengths = c.input(1);
        if (!whole.has_rank()) return c.output(whole);
        if (a.seq_dim < 0 || a.seq_dim >= whole.rank() || a.batch_dim < 0 || a.batch_dim >= whole.rank() ||
            a.seq_dim == a.batch_dim) {
          throw invalid_argument("seq_dim {} and batch_dim {} must be two dimensions of {}", a.seq_dim, a.batch_dim,
                                 whole.str());
        }
        const int64_t rows = whole[static_cast<int>(a.batch_dim)];
        if (lengths.has_rank() && lengths[0] >= 0 && rows >= 0 && lengths[0] != rows) {
          throw invalid_argument("{} seq_lengths for {} rows", lengths[0], rows);
        }
        c.output(whole);
      })
      .cpu([](KernelContext& c, const ReverseSequenceAttrs& a) { reverse_rows(c, a); })
      .grad([](const GradCtx& g, const ReverseSequenceAttrs& a) {
        static const Op<ReverseSequenceAttrs> op("ReverseSequence");
        return Gradients{op({g.dy(), g.x(1)}, a), {}};
      })
      .grad_reads({1})
      .doc("The first seq_lengths[i] places of row i along seq_dim in reverse order; the others stay.")
      .sample({.in = {x, Tensor{2, 3}}, .out = {Tensor{{2.f, 1.f, 3.f}, {6.f, 5.f, 4.f}}}}, {.seq_dim = 1})
      .sample({.in = {x, Tensor{1, 0, 2}}, .out = {Tensor{{1.f, 2.f, 6.f}, {4.f, 5.f, 3.f}}}}, {.batch_dim = 1})
      .sample({.in = {x, Tensor{2, 4}}, .error = "seq_lengths[1] = 4"}, {.seq_dim = 1})
      .sample({.in = {x, Tensor{2}}, .error = "1 seq_lengths for 2 rows"}, {.seq_dim = 1})
      .sample({.in = {x, Tensor{2, 3}}, .error = "two dimensions"}, {.seq_dim = 0});

  r.define<ConcatOffsetAttrs>("ConcatOffset")
      .type("shape_type", index_types, DType::int32)
      .in_host("concat_dim", DType::int32)
      .in_list("shape", "N", "shape_type")
      .out_list("offset", "N", "shape_type")
      .shape([](InferContext& c) {
        c.require_rank(0, 0);
        for (int i = 0; i < c.num_outputs(); ++i) {
          c.require_rank(1 + i, 1);
          if (!c.input(1 + i).compatible_with(c.input(1))) {
            throw invalid_argument("ranks differ: {} and {} sizes", c.input(1)[0], c.input(1 + i)[0]);
          }
          c.output(i, c.input(1 + i));
        }
      })
      .cpu([]<class I>(KernelContext& c) { put_offsets<I>(c); })
      .doc("Where each tensor of these shapes begins when they are joined along concat_dim.")
      .sample({.in = {Tensor(1), Tensor{2, 2, 7}, Tensor{2, 3, 7}}, .out = {Tensor{0, 0, 0}, Tensor{0, 2, 0}}},
              {.N = 2})
      .sample({.in = {Tensor(-1), Tensor{2, 2}, Tensor{3, 2}}, .error = "sizes differ outside axis 1"}, {.N = 2});

  r.define<ListDiffAttrs>("ListDiff")
      .type("T", real_numbers + booleans + strings_only)
      .in("x", "T")
      .in("y", "T")
      .out("out", "T")
      .out("idx", "out_idx")
      .shape([](InferContext& c) {
        c.require_rank(0, 1);
        c.require_rank(1, 1);
        c.output(0, PartialShape{kUnknownDim});
        c.output(1, PartialShape{kUnknownDim});
      })
      .cpu([]<class T>(KernelContext& c) { list_difference<T>(c); })
      .not_differentiable()
      .doc("The elements of x that are not in y, in their order, and where they stand.")
      .sample({.in = {Tensor{1, 2, 3, 1, 4}, Tensor{2, 4}}, .out = {Tensor{1, 3, 1}, Tensor{0, 2, 3}}})
      .sample({.in = {Tensor{"a", "b"}, Tensor{"b"}}, .out = {Tensor{"a"}, Tensor{int64_t{0}}}},
              {.out_idx = DType::int64});
}

Tensor reverse_sequence(const Operand& input, const Operand& seq_lengths, int64_t seq_axis, int64_t batch_axis) {
  static const Op<ReverseSequenceAttrs> op("ReverseSequence");
  return op({input, seq_lengths}, {.seq_dim = seq_axis, .batch_dim = batch_axis});
}

ListDifference setdiff1d(const Operand& x, const Operand& y, DType index_dtype) {
  static const Op<ListDiffAttrs> op("ListDiff");
  const auto parts = op.many({x, y}, {.out_idx = index_dtype});
  return {parts[0], parts[1]};
}

}  // namespace runnel
