// Adding one value per channel.
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
  static constexpr auto fields() { return field_list(field("data_format", &BiasAttrs::data_format)); }
};

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

Tensor bias_add_grad(const Operand& out_backprop) {
  static const Op<BiasAttrs> op("BiasAddGrad");
  return op({out_backprop});
}

}  // namespace

void register_nn_bias(Registry& r) {
  r.define<BiasAttrs>("BiasAdd")
      .in("value", numbers)
      .in("bias")
      .out("output")
      .shape([](InferContext& c, const BiasAttrs& a) {
        check_data_format(a.data_format, "NHWC");
        c.require_rank_at_least(0, 2);
        c.require_rank(1, 1);
        const int64_t channels = last_dim(c.input(0));
        const int64_t values = last_dim(c.input(1));
        if (channels >= 0 && values >= 0 && channels != values) {
          throw invalid_argument("bias has {} values, the last dimension of value is {}: {} + {}", values, channels,
                                 c.input(0).str(), c.input(1).str());
        }
        c.output(c.input(0));
      })
      .cpu([]<class T>(KernelContext& c) {
        const int64_t channels = c.in(1).num_elements();
        if (c.out().num_elements() == 0) return;
        const int64_t value[] = {c.out().num_elements() / channels, channels};
        const int64_t bias[] = {channels};
        cpu::binary_broadcast<PlusBias, T, T>(c.in<T>(0), value, c.in<T>(1), bias, c.out<T>(), value);
      })
      .grad([](const GradCtx& g) {
        const Tensor dy = g.dy();
        return Gradients{dy, g.want(1, [&] { return bias_add_grad(dy); })};
      })
      .post_op("BiasAdd")
      .grad_reads({})
      .doc("value + bias, with one bias per channel (the last dimension).")
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}, Tensor{10.f, 20.f, 30.f}},
               .out = {Tensor{{11.f, 22.f, 33.f}, {14.f, 25.f, 36.f}}}})
      .sample({.in = {Tensor{{{1.f, 2.f}}, {{3.f, 4.f}}}, Tensor{0.5f, -1.f}},
               .out = {Tensor{{{1.5f, 1.f}}, {{3.5f, 3.f}}}}})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{1.f, 2.f, 3.f}}, .error = "bias has 3 values"})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{1.f, 2.f}}, .error = "NCHW"}, {.data_format = "NCHW"});

  r.define<BiasAttrs>("BiasAddGrad")
      .in("out_backprop", numbers)
      .out("output")
      .shape([](InferContext& c, const BiasAttrs& a) {
        check_data_format(a.data_format, "NHWC");
        c.require_rank_at_least(0, 2);
        c.output(PartialShape{last_dim(c.input(0))});
      })
      .cpu([]<class T>(KernelContext& c) {
        const int64_t channels = c.out().num_elements();
        if (channels == 0) return;
        const int64_t shape[] = {c.in(0).num_elements() / channels, channels};
        const int64_t rows[] = {0};
        cpu::reduce<T>(cpu::Reduction::sum, c.in<T>(0), shape, rows, c.out<T>());
      })
      .grad([](const GradCtx& g) { return broadcast_to(g.dy(), shape(g.x())); })
      .doc("The gradient of a bias: the sum over all dimensions but the last.")
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}}, .out = {Tensor{5.f, 7.f, 9.f}}})
      .sample({.in = {Tensor{{{1.f, 2.f}}, {{3.f, 4.f}}}}, .out = {Tensor{4.f, 6.f}}});
}

Tensor nn::bias_add(const Operand& value, const Operand& bias, const std::string& data_format) {
  static const Op<BiasAttrs> op("BiasAdd");
  return op({value, bias}, {.data_format = data_format == "N...C" ? "NHWC" : data_format});
}

}  // namespace runnel
