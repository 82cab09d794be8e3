// Adding one value per channel.
#include <array>

#include "runnel/kernels/cpu/reduce.h"
#include "runnel/kernels/elementwise.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/nn_common.h"

namespace runnel {
namespace {

struct BiasAttrs {
  std::string data_format = "NHWC";
  static constexpr auto fields() {
    return field_list(field("data_format", &BiasAttrs::data_format, {.texts = "NHWC|NCHW"}));
  }
};

// Where the channels stand: the last dimension, or the second one.
int channel_axis(const BiasAttrs& a, int rank) { return a.data_format == "NCHW" ? 1 : rank - 1; }
int64_t channels_of(const BiasAttrs& a, const PartialShape& s) {
  const int axis = channel_axis(a, s.rank());
  return s.has_rank() ? s[axis] : kUnknownDim;
}

// A shape as {what is before the channels, the channels, what is after them}.
std::array<int64_t, 3> around_channels(const BiasAttrs& a, const Shape& s) {
  const int axis = channel_axis(a, s.rank());
  std::array<int64_t, 3> sizes{1, 1, 1};
  for (int i = 0; i < s.rank(); ++i) sizes[i < axis ? 0 : i == axis ? 1 : 2] *= s[i];
  return sizes;
}

struct PlusBias {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<std::common_type_t<T, int>>;  // wraps around
      return static_cast<T>(static_cast<U>(x) + static_cast<U>(y));
    } else {
      return x + y;
    }
  }
};

Tensor bias_add_grad(const Operand& out_backprop, const BiasAttrs& a) {
  static const Op<BiasAttrs> op("BiasAddGrad");
  return op({out_backprop}, a);
}

Tensor bias_add(const Operand& value, const Operand& bias, const BiasAttrs& a) {
  static const Op<BiasAttrs> op("BiasAdd");
  return op({value, bias}, a);
}

}  // namespace

void register_nn_bias(Registry& r) {
  r.define<BiasAttrs>("BiasAdd")
      .in("value", numbers)
      .in("bias")
      .out("output")
      .shape([](InferContext& c, const BiasAttrs& a) {
        c.require_rank_at_least(0, 2);
        c.require_rank(1, 1);
        const int64_t channels = channels_of(a, c.input(0));
        const int64_t values = last_dim(c.input(1));
        if (channels >= 0 && values >= 0 && channels != values) {
          throw invalid_argument("bias has {} values, value has {} channels ({}): {} + {}", values, channels,
                                 a.data_format, c.input(0).str(), c.input(1).str());
        }
        c.output(c.input(0));
      })
      .cpu([]<class T>(KernelContext& c, const BiasAttrs& a) {
        if (c.out().num_elements() == 0) return;
        const auto value = around_channels(a, c.out().shape());
        const int64_t bias[] = {value[1], 1};
        cpu::binary_broadcast<PlusBias, T, T>(c.in<T>(0), value, c.in<T>(1), bias, c.out<T>(), value);
      })
      .grad([](const GradCtx& g, const BiasAttrs& a) {
        const Tensor dy = g.dy();
        return Gradients{dy, g.want(1, [&] { return bias_add_grad(dy, a); })};
      })
      .post_op("BiasAdd")
      .grad_reads({})
      .doc("value + bias, with one bias per channel: the last dimension, or the second one of data_format NCHW.")
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}, Tensor{10.f, 20.f, 30.f}},
               .out = {Tensor{{11.f, 22.f, 33.f}, {14.f, 25.f, 36.f}}}})
      .sample({.in = {Tensor{{{1.f, 2.f}}, {{3.f, 4.f}}}, Tensor{0.5f, -1.f}},
               .out = {Tensor{{{1.5f, 1.f}}, {{3.5f, 3.f}}}}})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{1.f, 2.f, 3.f}}, .error = "bias has 3 values"})
      .sample({.in = {Tensor{{{1.f, 2.f, 3.f}, {3.f, 4.f, 5.f}}}, Tensor{0.5f, -1.f}},
               .out = {Tensor{{{1.5f, 2.5f, 3.5f}, {2.f, 3.f, 4.f}}}}},
              {.data_format = "NCHW"})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{1.f, 2.f}}, .error = "NCDHW"}, {.data_format = "NCDHW"});

  r.define<BiasAttrs>("BiasAddGrad")
      .in("out_backprop", numbers)
      .out("output")
      .shape([](InferContext& c, const BiasAttrs& a) {
        c.require_rank_at_least(0, 2);
        c.output(PartialShape{channels_of(a, c.input(0))});
      })
      .cpu([]<class T>(KernelContext& c, const BiasAttrs& a) {
        if (c.out().num_elements() == 0) return;
        const auto shape = around_channels(a, c.in(0).shape());
        const size_t rank = shape[2] == 1 ? 2 : 3;  // rows of channels have a faster loop
        const int64_t others[] = {0, 2};
        cpu::reduce<T>(cpu::Reduction::sum, c.in<T>(0), cpu::Dims(shape).first(rank), cpu::Dims(others).first(rank - 1),
                       c.out<T>());
      })
      .grad([](const GradCtx& g, const BiasAttrs& a) { return bias_add(zeros_like(g.x()), g.dy(), a); })
      .doc("The gradient of a bias: the sum over all dimensions but that of the channels.")
      .sample({.in = {Tensor{{{1.f, 2.f, 3.f}, {3.f, 4.f, 5.f}}}}, .out = {Tensor{6.f, 12.f}}}, {.data_format = "NCHW"})
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}}, .out = {Tensor{5.f, 7.f, 9.f}}})
      .sample({.in = {Tensor{{{1.f, 2.f}}, {{3.f, 4.f}}}}, .out = {Tensor{4.f, 6.f}}});
}

Tensor nn::bias_add(const Operand& value, const Operand& bias, const std::string& data_format) {
  const bool first = data_format == "NC..." || data_format == "NCHW";
  return runnel::bias_add(value, bias, BiasAttrs{first ? "NCHW" : data_format == "N...C" ? "NHWC" : data_format});
}

}  // namespace runnel
