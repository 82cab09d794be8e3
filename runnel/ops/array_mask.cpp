// Searching sorted sequences, masks, grids and repetition.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"

namespace runnel {
namespace {

struct BoundAttrs {
  DType out_type = DType::int32;
  static constexpr auto fields() {
    return field_list(field("out_type", &BoundAttrs::out_type, {.types = index_types.mask}));
  }
};

void bound_shape(InferContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 2);
  const PartialShape &s = c.input(0), &v = c.input(1);
  if (s.has_rank() && v.has_rank() && s[0] >= 0 && v[0] >= 0 && s[0] != v[0]) {
    throw invalid_argument("{} sorted rows for {} rows of values", s[0], v[0]);
  }
  if (!v.has_rank()) return c.output(PartialShape::unknown_dims(2));
  c.output(PartialShape{v[0] < 0 && s.has_rank() ? s[0] : v[0], v[1]});
}

template <class T, class Find>
void search(KernelContext& c, Find find) {
  const int64_t n = c.in(0).shape()[1], m = c.in(1).shape()[1];
  const T* sorted = c.in<T>(0);
  const T* values = c.in<T>(1);
  auto go = [&]<class I>(I* out) {
    parallel_for(c.out().num_elements(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = sorted + i / m * n;
        out[i] = static_cast<I>(find(row, row + n, values[i]) - row);
      }
    });
  };
  c.out().dtype() == DType::int32 ? go(c.out<int32_t>()) : go(c.out<int64_t>());
}

// Rows of one sorted sequence each, for a search along the last axis.
Tensor as_rows(const Tensor& t) {
  const PartialShape s = t.partial_shape();
  if (s.rank() == 2) return t;
  if (s.is_static()) {
    const Shape known(s);
    const int64_t last = known[known.rank() - 1];
    int64_t rows = 1;
    for (int d = 0; d + 1 < known.rank(); ++d) rows *= known[d];
    return reshape(t, {rows, last});
  }
  return reshape(t, concat({Tensor{-1}, shape(t)(slice(-1, none))}, 0));
}

}  // namespace

void register_array_mask(Registry& r) {
  r.define<BoundAttrs>("LowerBound")
      .in("sorted_inputs", real_numbers)
      .in("values")
      .out("output", "out_type")
      .shape(bound_shape)
      .cpu([]<class T>(KernelContext& c) {
        search<T>(c, [](const T* begin, const T* end, T v) { return std::lower_bound(begin, end, v); });
      })
      .doc("Row by row, how many elements of a sorted sequence are less than each value.")
      .sample({.in = {Tensor{{1.f, 3.f, 3.f, 5.f}}, Tensor{{3.f, 0.f, 9.f}}}, .out = {Tensor{{1, 0, 4}}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {5.f, 6.f}}, Tensor{{2.f}, {2.f}}}, .out = {Tensor{{1}, {0}}}})
      .sample({.in = {Tensor{{1.f}}, Tensor{{1.f}, {2.f}}}, .error = "1 sorted rows for 2 rows of values"});

  r.define<BoundAttrs>("UpperBound")
      .in("sorted_inputs", real_numbers)
      .in("values")
      .out("output", "out_type")
      .shape(bound_shape)
      .cpu([]<class T>(KernelContext& c) {
        search<T>(c, [](const T* begin, const T* end, T v) { return std::upper_bound(begin, end, v); });
      })
      .doc("Row by row, how many elements of a sorted sequence are less than or equal to each value.")
      .sample({.in = {Tensor{{1.f, 3.f, 3.f, 5.f}}, Tensor{{3.f, 0.f, 9.f}}}, .out = {Tensor{{3, 0, 4}}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {5.f, 6.f}}, Tensor{{2.f}, {2.f}}}, .out = {Tensor{{2}, {0}}}})
      .sample({.in = {Tensor{{1.f}}, Tensor{{1.f}, {2.f}}}, .error = "1 sorted rows for 2 rows of values"});
}

Tensor searchsorted(const Operand& sorted_sequence, const Operand& values, std::string_view side, DType out_type) {
  return composed(sorted_sequence.where(), [&]() -> Tensor {
    static const Op<BoundAttrs> lower("LowerBound");
    static const Op<BoundAttrs> upper("UpperBound");
    if (side != "left" && side != "right") {
      throw invalid_argument("[searchsorted] side must be 'left' or 'right', got '{}'", side);
    }
    const Tensor sorted = sorted_sequence.value();
    const Tensor v = values.is_literal() ? values.as(sorted.dtype()) : *values.tensor();
    if (sorted.partial_shape().rank() == 0 || v.partial_shape().rank() == 0) {
      throw invalid_argument("[searchsorted] vectors or batches of them needed, got shapes {} and {}",
                             sorted.partial_shape().str(), v.partial_shape().str());
    }
    const Op<BoundAttrs>& op = side == "left" ? lower : upper;
    const Tensor found = op({Operand(as_rows(sorted), sorted_sequence.where()), as_rows(v)}, {.out_type = out_type});
    return reshape(found, shape_arg(v));
  });
}

Tensor boolean_mask(const Operand& tensor, const Operand& mask, int axis) {
  return composed(tensor.where(), [&]() -> Tensor {
    const Tensor x = tensor.value();
    const Tensor m = mask.value();
    const PartialShape sx = x.partial_shape(), sm = m.partial_shape();
    if (!sx.has_rank() || !sm.has_rank())
      throw invalid_argument(
          "[boolean_mask] tensor and mask need a known rank: tell it with ensure_shape(x, {{-1, ...}})");
    if (sm.rank() == 0) throw invalid_argument("[boolean_mask] the mask is a scalar");
    if (m.dtype() != DType::bool_)
      throw invalid_argument("[boolean_mask] the mask must be bool, got {}", dtype_name(m.dtype()));
    const int at = normalize_axis(axis, sx.rank());
    if (at + sm.rank() > sx.rank()) {
      throw invalid_argument("[boolean_mask] a mask of shape {} at axis {} of a tensor of shape {}", sm.str(), at,
                             sx.str());
    }
    for (int d = 0; d < sm.rank(); ++d) {
      const int64_t a = sx[at + d], b = sm[d];
      if (a >= 0 && b >= 0 && a != b) {
        throw invalid_argument("[boolean_mask] the mask {} does not match dimensions {}.. of {}", sm.str(), at,
                               sx.str());
      }
    }
    Tensor flat = x;
    if (sm.rank() > 1) {
      // The masked dimensions become one.
      std::vector<Tensor> sizes;
      const Tensor whole = shape(x);
      if (at > 0) sizes.push_back(whole(slice(0, at)));
      sizes.push_back(reshape(size(m), {1}));
      if (at + sm.rank() < sx.rank()) sizes.push_back(whole(slice(at + sm.rank(), none)));
      flat = reshape(x, concat(sizes, 0));
    }
    return gather(Operand(flat, tensor.where()), squeeze(where(reshape(m, {-1})), {1}), at);
  });
}

Tensor sequence_mask(const Operand& lengths, const Operand& maxlen, DType dtype) {
  return composed(lengths.where(), [&]() -> Tensor {
    const Tensor top = maxlen.value();
    if (top.partial_shape().rank() > 0) {
      throw invalid_argument("[sequence_mask] maxlen must be a scalar, got shape {}", top.partial_shape().str());
    }
    const Tensor row = range(zeros_like(top), top, ones_like(top));
    // As in TensorFlow maxlen says what is compared: lengths lose their fraction where it is an integer.
    const Tensor mask = less(row, cast(expand_dims(lengths, -1), top.dtype()));
    return dtype == DType::bool_ ? mask : cast(mask, dtype);
  });
}
Tensor sequence_mask(const Operand& lengths) {
  return composed(lengths.where(), [&]() -> Tensor {
    const Tensor n = lengths.value();
    return sequence_mask(n, maximum(reduce_max(n), zeros({}, n.dtype())));
  });
}

std::vector<Tensor> meshgrid(const OperandList& args, std::string_view indexing) {
  return composed(args.where(), [&]() -> std::vector<Tensor> {
    if (indexing != "xy" && indexing != "ij") {
      throw invalid_argument("[meshgrid] indexing must be 'xy' or 'ij', got '{}'", indexing);
    }
    const size_t n = args.size();
    std::vector<Tensor> sizes;
    for (const Tensor& t : args.values()) sizes.push_back(size(t));
    if (n == 0) return {};
    if (indexing == "xy" && n > 1) std::swap(sizes[0], sizes[1]);
    const Tensor grid = stack(sizes);
    std::vector<Tensor> out;
    for (size_t i = 0; i < n; ++i) {
      const size_t at = indexing == "xy" && i < 2 && n > 1 ? 1 - i : i;
      Dims along(n, 1);
      along[at] = -1;
      out.push_back(broadcast_to(reshape(args[i], along), grid));
    }
    return out;
  });
}

Tensor repeat(const Operand& input, const Operand& repeats) {
  return composed(input.where(), [&] { return repeat(reshape(input, {-1}), repeats, 0); });
}
Tensor repeat(const Operand& input, const Operand& repeats, int axis) {
  return composed(input.where(), [&]() -> Tensor {
    const Tensor x = input.value();
    const PartialShape s = x.partial_shape();
    if (!s.has_rank())
      throw invalid_argument("[repeat] the input needs a known rank: tell it with ensure_shape(x, {{-1, ...}})");
    if (s.rank() == 0) return repeat(reshape(x, {1}), repeats, axis);
    const int at = normalize_axis(axis, s.rank());
    Tensor times = repeats.value();
    if (times.dtype() != DType::int64) times = cast(times, DType::int64);
    const PartialShape st = times.partial_shape();
    if (st.rank() == 1 && st[0] >= 0 && st[0] != 1 && s[at] >= 0 && st[0] != s[at]) {
      throw invalid_argument("[repeat] {} repeats for axis {} of size {}", st[0], at, s[at]);
    }
    if (st.rank() > 1) throw invalid_argument("[repeat] repeats must be a scalar or a vector, got {}", st.str());
    // The positions to take, one row for each element, cut to its number of repeats.
    const Tensor n = shape(x, DType::int64)[at];
    times = broadcast_to(times, reshape(n, {1}));
    const Tensor most = reduce_max(concat({times, zeros({1}, DType::int64)}, 0));
    const Tensor rows = expand_dims(range(zeros_like(n), n, ones_like(n)), 1);
    const Tensor from = boolean_mask(broadcast_to(rows, stack({n, most})), sequence_mask(times, most));
    return gather(Operand(x, input.where()), from, at);
  });
}

}  // namespace runnel
