#pragma once

// Internal: the parts from which Conv2D, Conv3D and DepthwiseConv2dNative and their gradients are made.
#include <array>

#include "runnel/base/format.h"
#include "runnel/kernels/compute_view.h"
#include "runnel/kernels/cpu/conv.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/nn_common.h"
#include "runnel/ops/nn_window.h"

namespace runnel {

// A convolution as far as its shapes are known: batch, spatial, in_channels x filter -> batch, out,
// out_channels.
struct ConvGeometry {
  int dims = 2;
  Windows windows;
  int64_t batch = kUnknownDim, in_channels = kUnknownDim, out_channels = kUnknownDim, groups = kUnknownDim;

  PartialShape output() const;
  cpu::ConvShape shape() const;  // everything is known
};
ConvGeometry conv_geometry(const WindowSpec& spec, bool depthwise, const PartialShape& input,
                           const PartialShape& filter);
// An Error unless the gradient of the output has the output's shape.
void check_output_gradient(const ConvGeometry& geometry, const PartialShape& out_backprop);

// An attribute struct A says: `static constexpr int dims`, `static constexpr bool depthwise`, the names of
// its ops `forward`, `backprop_input`, `backprop_filter`, and `WindowSpec spec() const`.
template <class A>
ConvGeometry conv_geometry(const A& a, const PartialShape& input, const PartialShape& filter) {
  check_data_format(a.data_format, channels_last_format(A::dims));
  return conv_geometry(a.spec(), A::depthwise, input, filter);
}

template <class A>
Tensor conv(const Operand& input, const Operand& filter, const A& a) {
  static const Op<A> op(A::forward);
  return op({input, filter}, a);
}
template <class A>
Tensor conv_backprop_input(const Tensor& input_sizes, const Operand& filter, const Operand& out_backprop, const A& a) {
  static const Op<A> op(A::backprop_input);
  return op({input_sizes, filter, out_backprop}, a);
}
template <class A>
Tensor conv_backprop_filter(const Operand& input, const Tensor& filter_sizes, const Operand& out_backprop, const A& a) {
  static const Op<A> op(A::backprop_filter);
  return op({input, filter_sizes, out_backprop}, a);
}

enum class ConvPass { forward, input, filter };

// The pass in bfloat16 itself, where that is possible and pays; false: nothing was done.
inline bool run_bf16_conv(ConvPass pass, const cpu::ConvShape& s, const Tensor& a, const Tensor& b,
                          const Tensor& result) {
  if (a.num_elements() == 0 || b.num_elements() == 0) return false;
  const auto *in_a = a.data<BFloat16>(), *in_b = b.data<BFloat16>();
  auto* out = result.mutable_data<BFloat16>();
  switch (pass) {
    case ConvPass::forward: return cpu::conv_forward_bf16(s, in_a, in_b, out);
    case ConvPass::input: return cpu::conv_backward_data_bf16(s, in_b, in_a, out);
    case ConvPass::filter: return cpu::conv_backward_weights_bf16(s, in_a, in_b, out);
  }
  return false;
}

// Runs one pass in the type kernels compute in. `a` and `b` are the pass's two operands in the order of the
// op.
template <class T>
void run_conv(ConvPass pass, const cpu::ConvShape& s, const Tensor& a, const Tensor& b, const Tensor& result) {
  if (result.num_elements() == 0) return;
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (run_bf16_conv(pass, s, a, b, result)) return;
  }
  const ComputeIn<T> in_a(a);
  const ComputeIn<T> in_b(b);
  const ComputeOut<T> out(result);
  using C = cpu::compute_t<T>;
  if (a.num_elements() == 0 || b.num_elements() == 0) {
    std::fill_n(out.data(), result.num_elements(), C(0));
  } else if constexpr (std::is_same_v<C, float>) {
    switch (pass) {
      case ConvPass::forward: cpu::conv_forward(s, in_a.data(), in_b.data(), out.data()); break;
      case ConvPass::input: cpu::conv_backward_data(s, in_b.data(), in_a.data(), out.data()); break;
      case ConvPass::filter: cpu::conv_backward_weights(s, in_a.data(), in_b.data(), out.data()); break;
    }
  } else {
    switch (pass) {
      case ConvPass::forward: cpu::conv_forward_plain<C>(s, in_a.data(), in_b.data(), out.data()); break;
      case ConvPass::input: cpu::conv_backward_data_plain<C>(s, in_b.data(), in_a.data(), out.data()); break;
      case ConvPass::filter: cpu::conv_backward_weights_plain<C>(s, in_a.data(), in_b.data(), out.data()); break;
    }
  }
  out.store();
}

// The three ops are closed under differentiation: each is linear in both operands.
template <class A>
struct ConvGrad {
  static Gradients forward(const GradCtx& g, const A& a) {
    const Tensor dy = g.dy();
    return {g.want(0, [&] { return conv_backprop_input<A>(shape_vector(g.x(0)), g.x(1), dy, a); }),
            g.want(1, [&] { return conv_backprop_filter<A>(g.x(0), shape_vector(g.x(1)), dy, a); })};
  }
  static Gradients input(const GradCtx& g, const A& a) {
    const Tensor d = g.dy();
    return {{}, g.want(1, [&] { return conv_backprop_filter<A>(d, shape_vector(g.x(1)), g.x(2), a); }), g.want(2, [&] {
              return conv<A>(d, g.x(1), a);
            })};
  }
  static Gradients filter(const GradCtx& g, const A& a) {
    const Tensor d = g.dy();
    return {g.want(0, [&] { return conv_backprop_input<A>(shape_vector(g.x(0)), d, g.x(2), a); }), {}, g.want(2, [&] {
              return conv<A>(g.x(0), d, a);
            })};
  }
};

// The same for each pass: every element of the output has one product with each element of the filters of its channel.
inline double conv_flops(const Shape& output, const Shape& filter) {
  const int64_t channels = output[output.rank() - 1];
  if (channels == 0) return 0;
  return 2 * static_cast<double>(output.num_elements()) * static_cast<double>(filter.num_elements() / channels);
}

// Declares the op of one pass, up to its doc and samples. `T` is the set of dtypes.
template <class A, class T>
auto define_conv(Registry& r, T types) {
  return r.define<A>(A::forward)
      .in("input", types)
      .in("filter")
      .out("output")
      .shape([](InferContext& c, const A& a) { c.output(conv_geometry<A>(a, c.input(0), c.input(1)).output()); })
      .cpu([]<class E>(KernelContext& c, const A& a) {
        run_conv<E>(ConvPass::forward, conv_geometry<A>(a, c.in(0).shape(), c.in(1).shape()).shape(), c.in(0), c.in(1),
                    c.out());
      })
      .flops([](const KernelContext& c) { return conv_flops(c.out().shape(), c.in(1).shape()); })
      .grad([](const GradCtx& g, const A& a) { return ConvGrad<A>::forward(g, a); })
      .grad_reads({0, 1});
}

template <class A, class B>
auto finish_backprop_input(B builder) {
  return builder.in("filter", "T")
      .in("out_backprop", "T")
      .out("output")
      .shape([](InferContext& c, const A& a) {
        PartialShape input = c.constant_shape(0);
        if (input.has_rank() && input.rank() != A::dims + 2) {
          throw invalid_argument("input_sizes must have {} values, got {}", A::dims + 2, input.str());
        }
        check_output_gradient(conv_geometry<A>(a, input, c.input(1)), c.input(2));
        c.output(input.has_rank() ? input : PartialShape::unknown_dims(A::dims + 2));
      })
      .cpu([]<class E>(KernelContext& c, const A& a) {
        const ConvGeometry geometry = conv_geometry<A>(a, c.out().shape(), c.in(1).shape());
        run_conv<E>(ConvPass::input, geometry.shape(), c.in(1), c.in(2), c.out());
      })
      .flops([](const KernelContext& c) { return conv_flops(c.in(2).shape(), c.in(1).shape()); })
      .grad([](const GradCtx& g, const A& a) { return ConvGrad<A>::input(g, a); });
}

template <class A, class B>
auto finish_backprop_filter(B builder) {
  return builder.in_host("filter_sizes", DType::int32)
      .in("out_backprop")
      .out("output")
      .shape([](InferContext& c, const A& a) {
        PartialShape filter = c.constant_shape(1);
        if (filter.has_rank() && filter.rank() != A::dims + 2) {
          throw invalid_argument("filter_sizes must have {} values, got {}", A::dims + 2, filter.str());
        }
        check_output_gradient(conv_geometry<A>(a, c.input(0), filter), c.input(2));
        c.output(filter.has_rank() ? filter : PartialShape::unknown_dims(A::dims + 2));
      })
      .cpu([]<class E>(KernelContext& c, const A& a) {
        const ConvGeometry geometry = conv_geometry<A>(a, c.in(0).shape(), c.out().shape());
        run_conv<E>(ConvPass::filter, geometry.shape(), c.in(0), c.in(2), c.out());
      })
      .flops([](const KernelContext& c) { return conv_flops(c.in(2).shape(), c.out().shape()); })
      .grad([](const GradCtx& g, const A& a) { return ConvGrad<A>::filter(g, a); });
}

}  // namespace runnel
