// Joining tensors and taking them apart: stack, unstack, concat, split.
#include <ostream>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/sizes.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

struct PackAttrs {
  int64_t axis = 0;
  static constexpr auto fields() { return field_list(field("axis", &PackAttrs::axis)); }
};

struct UnpackAttrs {
  int64_t num = 0;
  int64_t axis = 0;
  static constexpr auto fields() {
    return field_list(field("num", &UnpackAttrs::num, {.required = true, .minimum = 0}),
                      field("axis", &UnpackAttrs::axis));
  }
};

struct SplitAttrs {
  int64_t num_split = 1;
  static constexpr auto fields() {
    return field_list(field("num_split", &SplitAttrs::num_split, {.required = true, .minimum = 1}));
  }
};

int64_t outer_size(const Shape& shape, int axis) {
  int64_t n = 1;
  for (int d = 0; d < axis; ++d) n *= shape[d];
  return n;
}

// Puts the first `count` inputs next to each other, each a block of its elements past `axis`.
void join_inputs(KernelContext& c, int count, int axis) {
  const DType dtype = c.out().dtype();
  const int64_t outer = outer_size(c.in(0).shape(), axis);
  if (outer == 0) return;
  const int64_t row = c.out().num_elements() / outer;
  int64_t at = 0;
  for (int i = 0; i < count; ++i) {
    const int64_t n = c.in(i).num_elements() / outer;
    void* to = cpu::element_at(static_cast<void*>(c.out<char>()), dtype, at);
    if (outer == 1) {
      cpu::copy_elements(dtype, c.in(i).raw(), to, n);
    } else {
      cpu::copy_strided(dtype, Dims{outer, n}, c.in(i).raw(), Dims{n, 1}, to, Dims{row, 1});
    }
    at += n;
  }
}

// Takes `value` apart along `axis` into the outputs, which hold `sizes` of its positions each and have the given
// shapes. Parts of the first dimension share the buffer.
void split_value(KernelContext& c, const Tensor& value, int axis, const Dims& sizes, bool drop_axis) {
  const int64_t outer = outer_size(value.shape(), axis);
  Dims dims = value.shape().dims();
  const int64_t positions = dims[static_cast<size_t>(axis)];
  const int64_t inner = outer * positions == 0 ? 0 : value.num_elements() / (outer * positions);
  int64_t at = 0;
  for (int i = 0; i < c.num_outputs(); ++i) {
    const int64_t n = sizes[static_cast<size_t>(i)];
    dims[static_cast<size_t>(axis)] = n;
    Dims shape = dims;
    if (drop_axis) shape.erase(shape.begin() + axis);
    if (axis == 0) {
      c.forward(i, value.rows(at, at + n).with_shape(Shape(shape)));
    } else {
      Tensor& out = c.allocate(i, Shape(shape));
      cpu::copy_strided(value.dtype(), Dims{outer, n * inner}, cpu::element_at(value.raw(), value.dtype(), at * inner),
                        Dims{positions * inner, 1}, out.mutable_data<char>(), Dims{n * inner, 1});
    }
    at += n;
  }
}

// The sizes of the parts along an axis of `total` positions; one size may be -1 and takes the rest.
Dims part_sizes(Dims sizes, int64_t total) {
  int64_t sum = 0;
  int rest = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] >= 0) {
      sum += sizes[i];
    } else if (sizes[i] == -1 && rest < 0) {
      rest = static_cast<int>(i);
    } else {
      throw invalid_argument("sizes must be >= 0, one may be -1: [{}]", comma_separated(sizes));
    }
  }
  if (rest >= 0 && sum <= total) {
    sizes[static_cast<size_t>(rest)] = total - sum;
  } else if (sum != total) {
    throw invalid_argument("sizes [{}] add up to {}, the axis has size {}", comma_separated(sizes), sum, total);
  }
  return sizes;
}

void all_outputs(InferContext& c, const PartialShape& shape) {
  for (int i = 0; i < c.num_outputs(); ++i) c.output(i, shape);
}

// Shape of parts of `x` along input number `axis_input`; size_of(i, total) is the size of part i.
template <class SizeOf>
void split_shape(InferContext& c, int value, int axis_input, SizeOf size_of) {
  const PartialShape& x = c.input(value);
  if (!x.has_rank()) return all_outputs(c, x);
  const auto at = c.constant_ints(axis_input);
  if (x.rank() == 0) throw invalid_argument("a scalar cannot be split");
  if (!at) return all_outputs(c, PartialShape::unknown_dims(x.rank()));
  if (at->size() != 1) throw invalid_argument("split_dim must be one integer, got {}", at->size());
  const int axis = normalize_axis((*at)[0], x.rank());
  Dims dims = x.dims();
  for (int i = 0; i < c.num_outputs(); ++i) {
    dims[static_cast<size_t>(axis)] = size_of(i, x[axis], axis);
    c.output(i, PartialShape(dims));
  }
}

Gradients concat_grad(const GradCtx& g) {
  const int n = g.num_inputs() - 1;
  const auto given = static_ints(g.x(n));
  const PartialShape joined = g.y().partial_shape();
  if (!given || !joined.has_rank()) {
    // Axis or rank are known only when the graph runs: so are the sizes along it.
    static const Op<SplitAttrs> op("SplitV");
    const Tensor axis = cast(g.x(n), DType::int32);
    const Tensor at = floormod(axis, size(shape(g.y())));
    std::vector<Tensor> each;
    for (int i = 0; i < n; ++i) each.push_back(gather(shape(g.x(i)), at));
    const auto parts = op.many({g.dy(), stack(each), axis}, {.num_split = n});
    Gradients all(parts.begin(), parts.end());
    all.resize(static_cast<size_t>(g.num_inputs()));
    return all;
  }
  const int axis = normalize_axis((*given)[0], joined.rank());
  Dims sizes;
  for (int i = 0; i < n; ++i) {
    const PartialShape s = g.x(i).partial_shape();
    sizes.push_back(s.has_rank() ? s[axis] : kUnknownDim);
  }
  std::vector<Tensor> parts;
  if (std::count(sizes.begin(), sizes.end(), kUnknownDim) == 0) {
    parts = split(g.dy(), sizes, axis);
  } else {
    std::vector<Tensor> each;
    for (int i = 0; i < n; ++i) each.push_back(shape(g.x(i))[axis]);
    parts = split(g.dy(), stack(each), axis);
  }
  Gradients all(parts.begin(), parts.end());
  all.resize(static_cast<size_t>(g.num_inputs()));
  return all;
}

std::vector<Tensor> all_dy(const GradCtx& g) {
  std::vector<Tensor> all;
  for (int i = 0; i < g.num_outputs(); ++i) all.push_back(g.dy(i));
  return all;
}

Tensor concat_at(const std::vector<Tensor>& values, const Tensor& axis, const SourceSite* where = nullptr) {
  static const Op op("ConcatV2");
  if (values.size() == 1) {  // the op joins two or more
    static const Op one("Identity");
    return one({values[0]}, {}, where);
  }
  std::vector<Arg> args(values.begin(), values.end());
  args.emplace_back(axis);
  return op.list(args, {}, where);
}

void concat_shape(InferContext& c) {
  const int n = c.num_inputs() - 1;
  const auto at = c.constant_ints(n);
  if (at && at->size() != 1) throw invalid_argument("axis must be one integer, got {}", at->size());
  int rank = -1;
  for (int i = 0; i < n; ++i) {
    const PartialShape& s = c.input(i);
    if (!s.has_rank()) continue;
    if (s.rank() == 0) throw invalid_argument("scalars cannot be joined: stack them");
    if (rank >= 0 && s.rank() != rank) throw invalid_argument("ranks differ: {} and {}", c.input(0).str(), s.str());
    rank = s.rank();
  }
  if (rank < 0) return c.output(PartialShape::unknown());
  if (!at) return c.output(PartialShape::unknown_dims(rank));
  const int axis = normalize_axis((*at)[0], rank);
  Dims dims(static_cast<size_t>(rank), kUnknownDim);
  int64_t joined = 0;
  for (int i = 0; i < n; ++i) {
    const PartialShape& s = c.input(i);
    joined = joined < 0 || !s.has_rank() || s[axis] < 0 ? kUnknownDim : checked_plus(joined, s[axis]);
    for (int d = 0; s.has_rank() && d < rank; ++d) {
      int64_t& size = dims[static_cast<size_t>(d)];
      if (d == axis || s[d] < 0) continue;
      if (size >= 0 && s[d] != size) {
        throw invalid_argument("sizes differ outside axis {}: {} and {}", axis, c.input(0).str(), s.str());
      }
      size = s[d];
    }
  }
  dims[static_cast<size_t>(axis)] = joined;
  c.output(PartialShape(dims));
}

}  // namespace

void register_array_join(Registry& r) {
  r.define<PackAttrs>("Pack")
      .type("T", all_types)
      .in_list("values", "N")
      .at_least(1)
      .out("output")
      .moves()
      .shape([](InferContext& c, const PackAttrs& a) {
        PartialShape each = c.input(0);
        for (int i = 1; i < c.num_inputs(); ++i) each = each.merged_with(c.input(i));
        if (!each.has_rank()) return c.output(each);
        Dims dims = each.dims();
        dims.insert(dims.begin() + normalize_axis(a.axis, each.rank() + 1), c.num_inputs());
        c.output(PartialShape(dims));
      })
      .cpu([](KernelContext& c, const PackAttrs& a) {
        join_inputs(c, c.num_inputs(), normalize_axis(a.axis, c.in(0).rank() + 1));
      })
      .grad([](const GradCtx& g, const PackAttrs& a) {
        const auto parts = unstack(g.dy(), static_cast<int>(a.axis), g.num_inputs());
        return Gradients(parts.begin(), parts.end());
      })
      .grad_reads({})
      .doc("Tensors of one shape, one after the other along a new axis.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{3.f, 4.f}}, .out = {Tensor{{1.f, 3.f}, {2.f, 4.f}}}}, {.axis = 1})
      .sample({.in = {Tensor(1.f), Tensor(3.f)}, .out = {Tensor{1.f, 3.f}}}, {.axis = -1})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{3.f}}, .error = "incompatible"});

  r.define<UnpackAttrs>("Unpack")
      .in("value", all_types)
      .out_list("output", "num")
      .moves()
      .shape([](InferContext& c, const UnpackAttrs& a) {
        const PartialShape& x = c.input(0);
        if (!x.has_rank()) return all_outputs(c, x);
        if (x.rank() == 0) throw invalid_argument("a scalar cannot be unstacked");
        const int axis = normalize_axis(a.axis, x.rank());
        if (x[axis] >= 0 && x[axis] != a.num) {
          throw invalid_argument("axis {} has size {}, asked for {} parts", axis, x[axis], a.num);
        }
        Dims dims = x.dims();
        dims.erase(dims.begin() + axis);
        all_outputs(c, PartialShape(dims));
      })
      .forwards()
      .cpu([](KernelContext& c, const UnpackAttrs& a) {
        split_value(c, c.in(0), normalize_axis(a.axis, c.in(0).rank()), Dims(static_cast<size_t>(a.num), 1), true);
      })
      .grad([](const GradCtx& g, const UnpackAttrs& a) { return stack(all_dy(g), static_cast<int>(a.axis)); })
      .doc("The slices along an axis, which goes: the inverse of Pack.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}}, .out = {Tensor{1.f, 2.f}, Tensor{3.f, 4.f}}}, {.num = 2})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}}, .out = {Tensor{1.f, 3.f}, Tensor{2.f, 4.f}}},
              {.num = 2, .axis = -1})
      .sample({.in = {Tensor{1.f, 2.f}}, .error = "has size 2"}, {.num = 3});

  r.define("ConcatV2")
      .type("T", all_types)
      .in_list("values", "N")
      .at_least(2)
      .in_host("axis", "Tidx")
      .out("output")
      .moves()
      .shape(concat_shape)
      .cpu([](KernelContext& c) {
        const int n = c.num_inputs() - 1;
        join_inputs(c, n, normalize_axis(c.int_scalar(n), c.in(0).rank()));
      })
      .grad([](const GradCtx& g) { return concat_grad(g); })
      .grad_reads({})
      .doc("Tensors joined along an existing axis.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{3.f}, Tensor(0)}, .out = {Tensor{1.f, 2.f, 3.f}}})
      .sample({.in = {Tensor{{1.f}, {2.f}}, Tensor{{3.f, 4.f}, {5.f, 6.f}}, Tensor(-1)},
               .out = {Tensor{{1.f, 3.f, 4.f}, {2.f, 5.f, 6.f}}}})
      .sample({.in = {Tensor{{1.f}, {2.f}}, Tensor{{3.f}}, Tensor(1)}, .error = "sizes differ outside axis 1"})
      .sample({.in = {Tensor{1.f}, Tensor(2.f), Tensor(0)}, .error = "scalars cannot be joined"});

  r.define<SplitAttrs>("Split")
      .in_host("split_dim", DType::int32)
      .in("value", all_types)
      .out_list("output", "num_split")
      .moves()
      .shape([](InferContext& c, const SplitAttrs& a) {
        split_shape(c, 1, 0, [&](int, int64_t total, int axis) {
          if (total >= 0 && total % a.num_split != 0) {
            throw invalid_argument("axis {} of size {} does not split into {} equal parts", axis, total, a.num_split);
          }
          return total < 0 ? kUnknownDim : total / a.num_split;
        });
      })
      .forwards()
      .cpu([](KernelContext& c, const SplitAttrs& a) {
        const int axis = normalize_axis(c.int_scalar(0), c.in(1).rank());
        split_value(c, c.in(1), axis, Dims(static_cast<size_t>(a.num_split), c.in(1).shape()[axis] / a.num_split),
                    false);
      })
      .grad([](const GradCtx& g) {
        return Gradients{{}, concat_at(all_dy(g), g.x(0))};
      })
      .doc("Equal parts along an axis.")
      .sample({.in = {Tensor(0), Tensor{1.f, 2.f, 3.f, 4.f}}, .out = {Tensor{1.f, 2.f}, Tensor{3.f, 4.f}}},
              {.num_split = 2})
      .sample({.in = {Tensor(1), Tensor{{1.f, 2.f}, {3.f, 4.f}}}, .out = {Tensor{{1.f}, {3.f}}, Tensor{{2.f}, {4.f}}}},
              {.num_split = 2})
      .sample({.in = {Tensor(0), Tensor{1.f, 2.f, 3.f}}, .error = "does not split into 2 equal parts"},
              {.num_split = 2});

  r.define<SplitAttrs>("SplitV")
      .in("value", all_types)
      .type("Tlen", index_types + Types<int8_t>{}, DType::int64)
      .in_host("size_splits", "Tlen")
      .in_host("split_dim", DType::int32)
      .out_list("output", "num_split")
      .moves()
      .shape([](InferContext& c) {
        c.require_rank(1, 1);
        const auto sizes = c.constant_ints(1);
        if (sizes && static_cast<int>(sizes->size()) != c.num_outputs()) {
          throw invalid_argument("{} sizes for {} parts", sizes->size(), c.num_outputs());
        }
        auto partly = c.partial_ints(1);
        if (partly && static_cast<int>(partly->size()) != c.num_outputs()) partly.reset();
        split_shape(c, 0, 2, [&](int i, int64_t total, int) {
          if (!sizes) return partly ? std::max((*partly)[static_cast<size_t>(i)], kUnknownDim) : kUnknownDim;
          return total < 0 ? std::max((*sizes)[static_cast<size_t>(i)], kUnknownDim)
                           : part_sizes(*sizes, total)[static_cast<size_t>(i)];
        });
      })
      .forwards()
      .cpu([](KernelContext& c) {
        const int axis = normalize_axis(c.int_scalar(2), c.in(0).rank());
        split_value(c, c.in(0), axis, part_sizes(c.ints(1), c.in(0).shape()[axis]), false);
      })
      .grad([](const GradCtx& g) {
        return Gradients{concat_at(all_dy(g), g.x(2)), {}, {}};
      })
      .doc("Parts of the given sizes along an axis; one size may be -1 and takes the rest.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{1, 2}, Tensor(0)}, .out = {Tensor{1.f}, Tensor{2.f, 3.f}}},
              {.num_split = 2})
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}}, Tensor{-1, 1}, Tensor(-1)}, .out = {Tensor{{1.f, 2.f}}, Tensor{{3.f}}}},
              {.num_split = 2})
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{1, 1}, Tensor(0)}, .error = "add up to 2, the axis has size 3"},
              {.num_split = 2});
}

Tensor stack(const OperandList& values, int axis) {
  static const Op<PackAttrs> op("Pack");
  return op.list({values.values().begin(), values.values().end()}, {.axis = axis}, &values.where());
}

std::vector<Tensor> unstack(const Operand& value, int axis, int64_t num) {
  return composed(value.where(), [&]() -> std::vector<Tensor> {
    static const Op<UnpackAttrs> op("Unpack");
    if (num < 0) {
      const PartialShape shape = value.value().partial_shape();
      num = shape.has_rank() && shape.rank() > 0 ? shape[normalize_axis(axis, shape.rank())] : kUnknownDim;
      if (num < 0 && (!shape.has_rank() || shape.rank() > 0)) {
        throw invalid_argument("[Unpack] the size of axis {} of {} is unknown: pass num", axis, shape.str());
      }
      num = std::max<int64_t>(num, 0);
    }
    return op.many({value}, {.num = num, .axis = axis});
  });
}

Tensor concat(const OperandList& values, int axis) {
  if (values.values().empty()) {
    composed(values.where(), [] {
      throw Error(Code::invalid_argument, "[concat] there is nothing to join: the list of tensors is empty");
    });
  }
  return concat_at(values.values(), int_scalar(axis), &values.where());
}

std::vector<Tensor> split(const Operand& value, int64_t num, int axis) {
  static const Op<SplitAttrs> op("Split");
  return op.many({int_scalar(axis), value}, {.num_split = num});
}

std::vector<Tensor> split(const Operand& value, const ShapeArg& sizes, int axis) {
  return composed(value.where(), [&]() -> std::vector<Tensor> {
    static const Op<SplitAttrs> op("SplitV");
    const Tensor each = sizes.tensor();
    const PartialShape count = each.partial_shape();
    if (count.rank() != 1 || count[0] < 0) {
      throw invalid_argument("[SplitV] the number of sizes must be known, got shape {}", count.str());
    }
    return op.many({value, each, int_scalar(axis)}, {.num_split = count[0]});
  });
}

}  // namespace runnel
