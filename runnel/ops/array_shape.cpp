// Shapes: reading them, changing them, checking them.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/broadcast.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/sizes.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/broadcast_grad.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

// The shape that `asked` (with at most one -1) gives to the elements of `from`.
PartialShape reshaped(const PartialShape& from, const PartialShape& asked) {
  if (!asked.has_rank()) return asked;
  int unknown = -1;
  Dims sizes;
  for (int i = 0; i < asked.rank(); ++i) {
    if (asked[i] >= 0) {
      sizes.push_back(asked[i]);
    } else if (unknown >= 0) {
      if (!from.is_static()) return asked;
      throw invalid_argument("only one size may be -1, got {}", asked.str());
    } else {
      unknown = i;
    }
  }
  const int64_t known = checked_product(sizes);
  if (!from.is_static()) return asked;
  const int64_t n = Shape(from).num_elements();
  if (unknown < 0) {
    if (known != n) throw invalid_argument("{} has {} elements, {} has {}", from.str(), n, asked.str(), known);
    return asked;
  }
  if (known == 0 || n % known != 0) throw invalid_argument("{} elements do not fit {}", n, asked.str());
  Dims dims = asked.dims();
  dims[static_cast<size_t>(unknown)] = n / known;
  return PartialShape(dims);
}

// The same where `asked` is known in part: a size that is not known yet is no -1, of which there may be one.
PartialShape reshaped_in_part(const PartialShape& from, const PartialShape& asked) {
  if (!from.is_static() || !asked.has_rank()) return asked;
  int unknown = 0;
  bool empty = false;
  for (const int64_t d : asked) {
    unknown += d < 0 ? 1 : 0;
    empty = empty || d == 0;
  }
  return unknown == 1 && !empty ? reshaped(from, asked) : asked;
}

struct ShapeAttrs {
  DType out_type = DType::int32;
  static constexpr auto fields() {
    return field_list(field("out_type", &ShapeAttrs::out_type, {.types = index_types.mask}));
  }
};

struct ShapeNAttrs {
  int64_t N = 1;
  DType out_type = DType::int32;
  static constexpr auto fields() {
    return field_list(field("N", &ShapeNAttrs::N, {.required = true, .minimum = 1}),
                      field("out_type", &ShapeNAttrs::out_type, {.types = index_types.mask}));
  }
};

struct SqueezeAttrs {
  std::vector<int64_t> squeeze_dims;
  static constexpr auto fields() { return field_list(field("squeeze_dims", &SqueezeAttrs::squeeze_dims)); }
};

struct EnsureShapeAttrs {
  PartialShape shape = PartialShape::unknown();
  static constexpr auto fields() { return field_list(field("shape", &EnsureShapeAttrs::shape, {.required = true})); }
};

PartialShape expanded(const PartialShape& x, int64_t axis) {
  if (!x.has_rank()) return x;
  Dims dims = x.dims();
  dims.insert(dims.begin() + normalize_axis(axis, x.rank() + 1), 1);
  return PartialShape(dims);
}

PartialShape squeezed(const PartialShape& x, const std::vector<int64_t>& axes) {
  if (!x.has_rank()) return x;
  SmallVector<bool, 8> drop(static_cast<size_t>(x.rank()), false);
  for (int64_t a : axes) {
    const int d = normalize_axis(a, x.rank());
    if (x[d] >= 0 && x[d] != 1) throw invalid_argument("dimension {} of {} has size {}, not 1", d, x.str(), x[d]);
    drop[static_cast<size_t>(d)] = true;
  }
  Dims dims;
  for (int d = 0; d < x.rank(); ++d) {
    if (axes.empty() && x[d] < 0) return PartialShape::unknown();  // may be 1 or not
    if (axes.empty() ? x[d] != 1 : !drop[static_cast<size_t>(d)]) dims.push_back(x[d]);
  }
  return PartialShape(dims);
}

// Writes integers to an int32 or int64 output.
template <class Values>
void put_ints(const Tensor& out, const Values& values) {
  if (out.dtype() == DType::int32) {
    std::copy(values.begin(), values.end(), out.mutable_data<int32_t>());
  } else {
    std::copy(values.begin(), values.end(), out.mutable_data<int64_t>());
  }
}

// The shape of input i as output i.
void sizes_of_input(InferContext& c, int i, DType dtype) {
  const PartialShape& x = c.input(i);
  c.output(i, PartialShape{x.has_rank() ? int64_t{x.rank()} : kUnknownDim});
  if (!c.wants_values() || !x.has_rank()) return;
  if (x.is_static()) {
    c.value(i, constant_ints_of(x.dims(), dtype));
  } else {
    c.elements(i, x.dims());
  }
}

}  // namespace

void register_array_shape(Registry& r) {
  r.define("Reshape")
      .in("tensor", all_types)
      .in_host("shape", "Tshape")
      .out("output")
      .moves()
      .shape([](InferContext& c) {
        const PartialShape asked = c.constant_shape(1);
        c.output(c.constant(1) ? reshaped(c.input(0), asked) : reshaped_in_part(c.input(0), asked));
      })
      .same_as([](InferContext& c) {
        // Sizes that are not known yet may be wrong: then the op says so when it runs.
        return c.constant(1) && c.output_shape(0).is_static() && c.input(0) == c.output_shape(0) ? 0 : -1;
      })
      .forwards()
      .cpu([](KernelContext& c) {
        c.forward(0, c.in(0).with_shape(Shape(reshaped(c.in(0).shape(), PartialShape(c.ints(1))))));
      })
      .grad([](const GradCtx& g) {
        return Gradients{reshape(g.dy(), shape_arg(g.x(0))), {}};
      })
      .grad_reads({})
      .doc("The same elements in another shape; one size may be -1 and is worked out.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{-1}}, .out = {Tensor{1.f, 2.f, 3.f, 4.f}}})
      .sample({.in = {Tensor::empty(DType::float32, {0}), Tensor{int64_t{1} << 32, int64_t{1} << 32}},
               .error = "more than can be counted"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{3}}, .error = "has 2 elements"});

  r.define("ExpandDims")
      .in("input", all_types)
      .in_host("dim", "Tdim")
      .out("output")
      .moves()
      .shape([](InferContext& c) {
        const auto axis = c.constant_ints(1);
        if (axis && axis->size() != 1) throw invalid_argument("dim must be one integer, got {}", axis->size());
        if (axis) return c.output(expanded(c.input(0), (*axis)[0]));
        c.output(c.input(0).has_rank() ? PartialShape::unknown_dims(c.input(0).rank() + 1) : PartialShape::unknown());
      })
      .forwards()
      .cpu(
          [](KernelContext& c) { c.forward(0, c.in(0).with_shape(Shape(expanded(c.in(0).shape(), c.int_scalar(1))))); })
      .grad([](const GradCtx& g) {
        return Gradients{reshape(g.dy(), shape_arg(g.x(0))), {}};
      })
      .grad_reads({})
      .doc("A dimension of size 1 put in at position `dim`.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(0)}, .out = {Tensor{{1.f, 2.f}}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(-1)}, .out = {Tensor{{1.f}, {2.f}}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(2)}, .error = "out of range"});

  r.define<SqueezeAttrs>("Squeeze")
      .in("input", all_types)
      .out("output")
      .moves()
      .shape([](InferContext& c, const SqueezeAttrs& a) { c.output(squeezed(c.input(0), a.squeeze_dims)); })
      .forwards()
      .cpu([](KernelContext& c, const SqueezeAttrs& a) {
        c.forward(0, c.in(0).with_shape(Shape(squeezed(c.in(0).shape(), a.squeeze_dims))));
      })
      .grad([](const GradCtx& g) { return reshape(g.dy(), shape_arg(g.x())); })
      .grad_reads({})
      .doc("Without the dimensions of size 1: all of them, or those in squeeze_dims.")
      .sample({.in = {Tensor{{{1.f}, {2.f}}}}, .out = {Tensor{1.f, 2.f}}})
      .sample({.in = {Tensor{{{1.f}, {2.f}}}}, .out = {Tensor{{1.f, 2.f}}}}, {.squeeze_dims = {-1}})
      .sample({.in = {Tensor{1.f, 2.f}}, .error = "has size 2, not 1"}, {.squeeze_dims = {0}});

  r.define<EnsureShapeAttrs>("EnsureShape")
      .in("input", all_types)
      .out("output")
      .moves()
      .shape([](InferContext& c, const EnsureShapeAttrs& a) {
        if (!a.shape.compatible_with(c.input(0))) {
          throw invalid_argument("the shape is {}, not {}", c.input(0).str(), a.shape.str());
        }
        c.output(c.input(0).merged_with(a.shape));
      })
      .forwards()
      .cpu([](KernelContext& c) { c.forward(0, c.in(0).with_shape(c.in(0).shape())); })
      .grad([](const GradCtx& g) { return g.dy(); })
      .grad_reads({})
      .doc("The input itself, which must have the given (partly unknown) shape.")
      .sample({.in = {Tensor{{1.f, 2.f}}}, .out = {Tensor{{1.f, 2.f}}}}, {.shape = {1, kUnknownDim}})
      .sample({.in = {Tensor{1.f, 2.f}}, .error = "the shape is [2], not [3]"}, {.shape = {3}});

  r.define("BroadcastTo")
      .in("input", all_types)
      .in_host("shape", "Tidx")
      .out("output")
      .moves()
      .shape([](InferContext& c) {
        const PartialShape target = constant_sizes(c, 1);
        const PartialShape both = broadcast_shapes(c.input(0), target);
        if (target.is_static() && both.is_static() && !(both == target)) {
          throw invalid_argument("{} cannot be stretched to {}", c.input(0).str(), target.str());
        }
        c.output(target);
      })
      .cpu([](KernelContext& c) {
        const Dims& from = c.in(0).shape().dims();
        const Dims& to = c.out().shape().dims();
        if (is_plain(c.out().dtype())) {
          cpu::broadcast_to(c.in(0).raw(), from, c.out<char>(), to, static_cast<int>(dtype_size(c.out().dtype())));
          return;
        }
        Dims strides(to.size(), 0);
        const size_t lead = to.size() - from.size();
        const Dims dense = cpu::dense_strides(from);
        for (size_t i = 0; i < from.size(); ++i) strides[lead + i] = from[i] == 1 ? 0 : dense[i];
        cpu::copy_strided(c.out().dtype(), to, c.in(0).raw(), strides, c.out<char>(), cpu::dense_strides(to));
      })
      .grad([](const GradCtx& g) {
        return Gradients{sum_to_shape_of(g.dy(), g.x(0)), {}};
      })
      .grad_reads({})
      .doc("The input repeated along dimensions of size 1 and new leading ones, up to `shape`.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{2, 2}}, .out = {Tensor{{1.f, 2.f}, {1.f, 2.f}}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{3}}, .error = "do not broadcast"});

  r.define<ShapeAttrs>("Shape")
      .in("input", all_types)
      .out_host("output", "out_type")
      .shape([](InferContext& c, const ShapeAttrs& a) { sizes_of_input(c, 0, a.out_type); })
      .cpu([](KernelContext& c) { put_ints(c.out(), c.in(0).shape().dims()); })
      .doc("The sizes of the input's dimensions.")
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}}}, .out = {Tensor{1, 3}}});

  r.define<ShapeNAttrs>("ShapeN")
      .type("T", all_types)
      .in_list("input", "N")
      .out_list("output", "N", "out_type")
      .shape([](InferContext& c, const ShapeNAttrs& a) {
        for (int i = 0; i < c.num_outputs(); ++i) sizes_of_input(c, i, a.out_type);
      })
      .cpu([](KernelContext& c) {
        for (int i = 0; i < c.num_outputs(); ++i) put_ints(c.out(i), c.in(i).shape().dims());
      })
      .doc("The shapes of several tensors.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(1.f)}, .out = {Tensor{2}, Tensor::of<int32_t>({})}}, {.N = 2});

  r.define<ShapeAttrs>("Size")
      .in("input", all_types)
      .out_host("output", "out_type")
      .shape([](InferContext& c, const ShapeAttrs& a) {
        scalar_shape(c);
        if (!c.wants_values() || !c.input(0).is_static()) return;
        c.value(0, constant_ints_of(Dims{Shape(c.input(0)).num_elements()}, a.out_type).with_shape({}));
      })
      .cpu([](KernelContext& c) { put_ints(c.out(), Dims{c.in(0).num_elements()}); })
      .doc("The number of elements.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}}, .out = {Tensor(4)}})
      .sample({.in = {Tensor(1.f)}, .out = {Tensor(1)}});

  r.define("Rank")
      .in("input", all_types)
      .out_host("output", DType::int32)
      .shape([](InferContext& c) {
        scalar_shape(c);
        if (c.wants_values() && c.input(0).has_rank()) c.value(0, int_scalar(c.input(0).rank()));
      })
      .cpu([](KernelContext& c) { *c.out<int32_t>() = c.in(0).rank(); })
      .doc("The number of dimensions.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}}, .out = {Tensor(2)}})
      .sample({.in = {Tensor(1.f)}, .out = {Tensor(0)}});

  r.define("BroadcastGradientArgs")
      .type("T", index_types, DType::int32)
      .in("s0")
      .in("s1")
      .out_host("r0", "T")
      .out_host("r1", "T")
      .shape([](InferContext& c) {
        c.require_rank(0, 1);
        c.require_rank(1, 1);
        c.output(0, PartialShape{kUnknownDim});
        c.output(1, PartialShape{kUnknownDim});
      })
      .cpu([]<class T>(KernelContext& c) {
        const Dims s0 = c.ints(0);
        const Dims s1 = c.ints(1);
        const size_t rank = s0 == s1 ? 0 : std::max(s0.size(), s1.size());  // equal shapes: nothing to sum
        auto size_at = [rank](const Dims& s, size_t i) {
          return i + s.size() < rank ? int64_t{1} : s[i + s.size() - rank];
        };
        std::vector<T> axes[2];
        for (size_t i = 0; i < rank; ++i) {
          const int64_t a = size_at(s0, i), b = size_at(s1, i);
          if (a != b && a != 1 && b != 1) {
            throw invalid_argument("shapes [{}] and [{}] do not broadcast", comma_separated(s0), comma_separated(s1));
          }
          if (a == 1) axes[0].push_back(static_cast<T>(i));
          if (b == 1) axes[1].push_back(static_cast<T>(i));
        }
        for (int which = 0; which < 2; ++which) c.forward(which, Tensor::of<T>(axes[which]));
      })
      .doc("The axes over which each of two broadcast operands must be summed: those where it has the size 1.")
      .sample({.in = {Tensor{2, 1}, Tensor{3}}, .out = {Tensor{1}, Tensor{0}}})
      .sample({.in = {Tensor{1, 3}, Tensor{3}}, .out = {Tensor{0}, Tensor{0}}})
      .sample({.in = {Tensor{1, 3}, Tensor{1, 3}}, .out = {Tensor::of<int32_t>({}), Tensor::of<int32_t>({})}})
      .sample({.in = {Tensor{2}, Tensor{3}}, .error = "do not broadcast"});
}

Tensor reshape(const Operand& tensor, const ShapeArg& shape) {
  static const Op op("Reshape");
  return op({tensor, shape.tensor()});
}
Tensor broadcast_to(const Operand& input, const ShapeArg& shape) {
  static const Op op("BroadcastTo");
  return op({input, shape.tensor()});
}
Tensor shape(const Operand& input, DType out_type) {
  static const Op<ShapeAttrs> op("Shape");
  return op({input}, {.out_type = out_type});
}
std::vector<Tensor> shape_n(const OperandList& input, DType out_type) {
  static const Op<ShapeNAttrs> op("ShapeN");
  const std::vector<Arg> args(input.values().begin(), input.values().end());
  return op.many(args, {.N = static_cast<int64_t>(args.size()), .out_type = out_type}, &input.where());
}
Tensor size(const Operand& input, DType out_type) {
  static const Op<ShapeAttrs> op("Size");
  return op({input}, {.out_type = out_type});
}
Tensor rank(const Operand& input) {
  static const Op op("Rank");
  return op({input});
}
Tensor expand_dims(const Operand& input, int axis) {
  static const Op op("ExpandDims");
  return op({input, int_scalar(axis)});
}
Tensor squeeze(const Operand& input, const Axes& axis) {
  return composed(input.where(), [&]() -> Tensor {
    static const Op<SqueezeAttrs> op("Squeeze");
    if (!axis.given()) return op({input});
    const Dims axes = int_values(axis.tensor_for(input.value()));
    return op({input}, {.squeeze_dims = {axes.begin(), axes.end()}});
  });
}
Tensor ensure_shape(const Operand& input, const PartialShape& shape) {
  static const Op<EnsureShapeAttrs> op("EnsureShape");
  return op({input}, {.shape = shape});
}

Tensor join_sizes(std::span<const ShapeSize> sizes, const SourceSite& where) {
  const bool narrow = std::all_of(sizes.begin(), sizes.end(), [](const ShapeSize& s) {
    return s.is_tensor() ? s.tensor().dtype() != DType::int64 : std::in_range<int32_t>(s.number());
  });
  const DType dtype = narrow ? DType::int32 : DType::int64;
  std::vector<Tensor> parts;
  for (const ShapeSize& s : sizes) {
    parts.push_back(s.is_tensor() ? cast(Operand(s.tensor(), where), dtype) : Operand(s.number(), where).as(dtype));
  }
  return stack(OperandList(std::move(parts), where));
}

namespace {

bool is_size(const Tensor& t) { return t.dtype() == DType::int32 || t.dtype() == DType::int64; }
bool is_size_vector(const Tensor& t) { return t.defined() && is_size(t) && t.partial_shape().rank() == 1; }

}  // namespace

ShapeArg::ShapeArg(std::initializer_list<ShapeSize> sizes, Location where) : where_(where) {
  bool numbers_only = true;
  for (const ShapeSize& s : sizes) {
    numbers_only = numbers_only && !s.is_tensor();
    if (!s.is_tensor()) dims_.push_back(s.number());
  }
  if (numbers_only) return;
  if (sizes.size() == 1 && is_size_vector(sizes.begin()->tensor())) {
    tensor_ = sizes.begin()->tensor();
    return;
  }
  composed(where, [&] {
    for (const ShapeSize& s : sizes) {
      if (!s.is_tensor()) continue;
      const Tensor& t = s.tensor();
      if (!t.defined()) throw invalid_argument("a size in a list of sizes is a Tensor that was never given a value");
      const PartialShape shape = t.partial_shape();
      if (is_size(t) && (!shape.has_rank() || shape.rank() == 0)) continue;
      throw invalid_argument(
          "a tensor in a list of sizes must be a scalar of dtype int32 or int64, got {}{}: a vector of all sizes "
          "stands alone",
          dtype_name(t.dtype()), shape.str());
    }
    tensor_ = join_sizes(std::span(sizes.begin(), sizes.size()), where);
  });
}

ShapeArg shape_arg(const Tensor& x, const SourceSite& where) {
  const PartialShape known = x.partial_shape();
  return known.is_static() ? ShapeArg(known.dims(), where) : ShapeArg(shape(Operand(x, where)), where);
}

Tensor constant_ints_of(const Dims& values, DType dtype) {
  Tensor t = Tensor::empty(dtype, {static_cast<int64_t>(values.size())});
  put_ints(t, values);
  return t;
}

void unify_index_types(std::span<Tensor> tensors) {
  const bool wide =
      std::any_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return t.dtype() == DType::int64; });
  if (!wide) return;
  for (Tensor& t : tensors) {
    if (t.dtype() != DType::int32) continue;
    if (t.is_symbolic()) {
      t = cast(t, DType::int64);
    } else {
      const Dims values = int_values(t);
      t = Tensor::of<int64_t>(std::span<const int64_t>(values), t.shape());
    }
  }
}

PartialShape constant_sizes(const InferContext& c, int i) {
  const PartialShape sizes = c.constant_shape(i);
  if (c.constant(i) && !sizes.is_static()) throw invalid_argument("a size is negative: [{}]", comma_separated(sizes));
  return sizes;
}

Tensor Axes::tensor_for(const Tensor& x) const {
  if (tensor_.defined()) return tensor_;
  if (given_ || !x.defined()) return int_vector(list_);  // the op tells of an x that refers to nothing
  const PartialShape shape = x.partial_shape();
  return shape.has_rank() ? int_vector(iota_dims(shape.rank())) : range(rank(x));
}

}  // namespace runnel
