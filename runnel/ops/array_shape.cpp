// Shapes and constants: reshape, broadcast_to, shape, fill and their like.
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/broadcast.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/broadcast_grad.h"
#include "runnel/ops/math.h"
#include "runnel/ops/register.h"

namespace runnel {
namespace {

// The shape that `asked` (with at most one -1) gives to the elements of `from`.
PartialShape reshaped(const PartialShape& from, const PartialShape& asked) {
  if (!asked.has_rank()) return asked;
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < asked.rank(); ++i) {
    if (asked[i] >= 0) {
      known *= asked[i];
    } else if (unknown >= 0) {
      if (!from.is_static()) return asked;
      throw invalid_argument("only one size may be -1, got {}", asked.str());
    } else {
      unknown = i;
    }
  }
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

struct ShapeAttrs {
  DType out_type = DType::int32;
  static constexpr auto fields() { return std::tuple{field("out_type", &ShapeAttrs::out_type)}; }
};

template <class T>
void fill_with(const Tensor& t, const T& value) {
  std::fill_n(t.mutable_data<T>(), t.num_elements(), value);
}

}  // namespace

void register_array_shape(Registry& r) {
  r.define("Reshape")
      .in("tensor", all_types)
      .in_host("shape", "Tshape")
      .out("output")
      .shape([](InferContext& c) { c.output(reshaped(c.input(0), c.constant_shape(1))); })
      .forwards()
      .cpu([](KernelContext& c) {
        c.forward(0, c.in(0).with_shape(Shape(reshaped(c.in(0).shape(), PartialShape(c.ints(1))))));
      })
      .grad([](const GradCtx& g) { return Gradients{reshape(g.dy(), shape(g.x(0))), {}}; })
      .doc("The same elements in another shape; one size may be -1 and is worked out.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{-1}}, .out = {Tensor{1.f, 2.f, 3.f, 4.f}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{3}}, .error = "has 2 elements"});

  r.define("Identity")
      .in("input", all_types)
      .out("output")
      .shape(like<0>)
      .forwards()
      .cpu([](KernelContext& c) { c.forward(0, c.in(0).with_shape(c.in(0).shape())); })
      .grad([](const GradCtx& g) { return g.dy(); })
      .doc("The input itself.")
      .sample({.in = {Tensor{1.f, 2.f}}, .out = {Tensor{1.f, 2.f}}});

  r.define("BroadcastTo")
      .in("input", data_types)
      .in_host("shape", "Tidx")
      .out("output")
      .shape([](InferContext& c) {
        const PartialShape target = c.constant_shape(1);
        const PartialShape both = broadcast_shapes(c.input(0), target);
        if (target.is_static() && both.is_static() && !(both == target)) {
          throw invalid_argument("{} cannot be stretched to {}", c.input(0).str(), target.str());
        }
        c.output(target);
      })
      .cpu([]<class T>(KernelContext& c) {
        if constexpr (std::is_trivially_copyable_v<T>) {
          cpu::broadcast_to(c.in<T>(0), c.in(0).shape().dims(), c.out<T>(), c.out().shape().dims(), sizeof(T));
        } else {
          // Strings: gather positions with the same walk over an index image of the input.
          std::vector<int64_t> from(static_cast<size_t>(c.in(0).num_elements()));
          std::vector<int64_t> to(static_cast<size_t>(c.out().num_elements()));
          for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int64_t>(i);
          cpu::broadcast_to(from.data(), c.in(0).shape().dims(), to.data(), c.out().shape().dims(), sizeof(int64_t));
          for (size_t i = 0; i < to.size(); ++i) c.out<T>()[i] = c.in<T>(0)[to[i]];
        }
      })
      .grad([](const GradCtx& g) { return Gradients{sum_to_shape_of(g.dy(), g.x(0)), {}}; })
      .doc("The input repeated along dimensions of size 1 and new leading ones, up to `shape`.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{2, 2}}, .out = {Tensor{{1.f, 2.f}, {1.f, 2.f}}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{3}}, .error = "do not broadcast"});

  r.define<ShapeAttrs>("Shape")
      .in("input", all_types)
      .out("output", "out_type")
      .shape([](InferContext& c) {
        c.output(PartialShape{c.input(0).has_rank() ? int64_t{c.input(0).rank()} : kUnknownDim});
      })
      .cpu([](KernelContext& c) {
        const Shape& s = c.in(0).shape();
        if (c.output_dtype(0) == DType::int32) {
          std::copy(s.begin(), s.end(), c.out<int32_t>());
        } else {
          std::copy(s.begin(), s.end(), c.out<int64_t>());
        }
      })
      .doc("The sizes of the input's dimensions.")
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}}}, .out = {Tensor{1, 3}}});

  r.define("ZerosLike")
      .in("x", data_types)
      .out("y")
      .shape(like<0>)
      .cpu([](KernelContext& c) {
        if (is_plain(c.out().dtype())) std::memset(c.out().mutable_data<char>(), 0, c.out().num_bytes());
      })
      .grad([](const GradCtx& g) { return zeros_like(g.x()); })
      .doc("Zeros in the shape and dtype of the input (empty strings for strings).")
      .sample({.in = {Tensor{1.f, 2.f}}, .out = {Tensor{0.f, 0.f}}});

  r.define("OnesLike")
      .in("x", plain_types)
      .out("y")
      .shape(like<0>)
      .cpu([]<class T>(KernelContext& c) { fill_with(c.out(), T(1)); })
      .grad([](const GradCtx& g) { return zeros_like(g.x()); })
      .doc("Ones in the shape and dtype of the input.")
      .sample({.in = {Tensor{5.f, 2.f}}, .out = {Tensor{1.f, 1.f}}});

  r.define("Fill")
      .type("T", data_types)
      .in_host("dims", "index_type")
      .in("value", "T")
      .out("output")
      .shape([](InferContext& c) {
        c.require_rank(1, 0);
        c.output(c.constant_shape(0));
      })
      .cpu([]<class T>(KernelContext& c) { fill_with(c.out(), *c.in<T>(1)); })
      .grad([](const GradCtx& g) { return Gradients{{}, reduce_sum(g.dy())}; })
      .doc("A tensor of shape `dims` with every element `value`.")
      .sample({.in = {Tensor{2}, Tensor(7.f)}, .out = {Tensor{7.f, 7.f}}});

  r.define("BroadcastGradientArgs")
      .type("T", index_types)
      .in("s0")
      .in("s1")
      .out("r0")
      .out("r1")
      .shape([](InferContext& c) {
        c.output(0, PartialShape{kUnknownDim});
        c.output(1, PartialShape{kUnknownDim});
      })
      .cpu([]<class T>(KernelContext& c) {
        const Dims s0 = c.ints(0);
        const Dims s1 = c.ints(1);
        const int rank = static_cast<int>(std::max(s0.size(), s1.size()));
        auto size_at = [rank](const Dims& s, int i) {
          const int k = i - (rank - static_cast<int>(s.size()));
          return k < 0 ? int64_t{-1} : s[static_cast<size_t>(k)];
        };
        for (int which = 0; which < 2; ++which) {
          const Dims& mine = which == 0 ? s0 : s1;
          const Dims& other = which == 0 ? s1 : s0;
          std::vector<T> axes;
          for (int i = 0; i < rank; ++i) {
            const int64_t d = size_at(mine, i);
            if (d < 0 || (d == 1 && size_at(other, i) != 1)) axes.push_back(static_cast<T>(i));
          }
          c.forward(which, Tensor::of<T>(axes));
        }
      })
      .doc("The axes over which each of two broadcast operands was stretched.")
      .sample({.in = {Tensor{2, 1}, Tensor{3}}, .out = {Tensor{1}, Tensor{0}}});
}

Tensor reshape(const Operand& tensor, const ShapeArg& shape) {
  static const Op op("Reshape");
  return op({tensor, shape.tensor()});
}
Tensor identity(const Operand& input) {
  static const Op op("Identity");
  return op({input});
}
Tensor broadcast_to(const Operand& input, const ShapeArg& shape) {
  static const Op op("BroadcastTo");
  return op({input, shape.tensor()});
}
Tensor shape(const Operand& input, DType out_type) {
  static const Op<ShapeAttrs> op("Shape");
  return op({input}, {.out_type = out_type});
}
Tensor zeros_like(const Operand& input) {
  static const Op op("ZerosLike");
  return op({input});
}
Tensor ones_like(const Operand& input) {
  static const Op op("OnesLike");
  return op({input});
}
Tensor fill(const ShapeArg& dims, const Operand& value) {
  static const Op op("Fill");
  return op({dims.tensor(), value});
}

Tensor Axes::tensor_for(const Tensor& x) const {
  if (tensor_.defined()) return tensor_;
  if (given_) return int_vector(list_);
  const PartialShape shape = x.partial_shape();
  if (!shape.has_rank()) throw make_error(Code::unimplemented, "all axes of a tensor of unknown rank");
  Dims every;
  for (int i = 0; i < shape.rank(); ++i) every.push_back(i);
  return int_vector(every);
}

Tensor GradCtx::dy(int i) const {
  const Gradient& g = raw_dy(i);
  return g.defined() ? g.value() : zeros_like(y(i));
}

}  // namespace runnel
