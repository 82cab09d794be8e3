// Products and convolutions with bias and activation in one go: what passes make of MatMul and Conv2D. Names, inputs
// and attributes of the first two are TensorFlow's.
#include <algorithm>
#include <mutex>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/activations.h"
#include "runnel/kernels/cpu/gemm.h"
#include "runnel/kernels/cpu/vmath.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/nn_conv.h"
#include "runnel/ops/state.h"
#include "runnel/ops/variable_slot.h"

namespace runnel {
namespace {

struct FusedMatMulAttrs {
  bool transpose_a = false;
  bool transpose_b = false;
  std::vector<std::string> fused_ops;
  double epsilon = 1e-4;
  double leakyrelu_alpha = 0.2;
  static constexpr auto fields() {
    return field_list(field("transpose_a", &FusedMatMulAttrs::transpose_a),
                      field("transpose_b", &FusedMatMulAttrs::transpose_b),
                      field("fused_ops", &FusedMatMulAttrs::fused_ops), field("epsilon", &FusedMatMulAttrs::epsilon),
                      field("leakyrelu_alpha", &FusedMatMulAttrs::leakyrelu_alpha));
  }
};

struct FusedConv2DAttrs {
  std::vector<int64_t> strides = {1, 1, 1, 1};
  std::string padding = "VALID";
  std::vector<int64_t> explicit_paddings;
  std::string data_format = "NHWC";
  std::vector<int64_t> dilations = {1, 1, 1, 1};
  bool use_cudnn_on_gpu = true;
  std::vector<std::string> fused_ops;
  double epsilon = 1e-4;
  double leakyrelu_alpha = 0.2;
  static constexpr auto fields() {
    using A = FusedConv2DAttrs;
    return field_list(field("strides", &A::strides, {.required = true}),
                      field("padding", &A::padding, {.required = true, .texts = "SAME|VALID|EXPLICIT"}),
                      field("explicit_paddings", &A::explicit_paddings),
                      field("data_format", &A::data_format, {.texts = "NHWC|NCHW|NCHW_VECT_C"}),
                      field("dilations", &A::dilations), field("use_cudnn_on_gpu", &A::use_cudnn_on_gpu),
                      field("fused_ops", &A::fused_ops), field("epsilon", &A::epsilon),
                      field("leakyrelu_alpha", &A::leakyrelu_alpha));
  }
  static constexpr int dims = 2;
  static constexpr bool depthwise = false;
  WindowSpec spec() const { return {dims, strides, dilations, padding, &explicit_paddings}; }
};

using ElementFn = void (*)(float* x, int64_t n, float parameter);

// The same functions as in the ops of these names, so the same bits. Relu is part of Epilogue itself.
struct Activation {
  const char* name;
  ElementFn run;
  Tensor (*op)(const Tensor& x, double alpha);
};
const Activation kActivations[] = {
    {"Relu", nullptr, [](const Tensor& x, double) { return nn::relu(x); }},
    {"Relu6",
     [](float* x, int64_t n, float) {
       for (int64_t i = 0; i < n; ++i) {
         const float low = 0.0f > x[i] ? 0.0f : x[i];
         x[i] = 6.0f < low ? 6.0f : low;
       }
     },
     [](const Tensor& x, double) { return nn::relu6(x); }},
    {"LeakyRelu",
     [](float* x, int64_t n, float alpha) {
       for (int64_t i = 0; i < n; ++i) x[i] = x[i] > 0 ? x[i] : x[i] * alpha;
     },
     [](const Tensor& x, double alpha) { return nn::leaky_relu(x, alpha); }},
    {"Elu", [](float* x, int64_t n, float) { cpu::velu(x, x, n); }, [](const Tensor& x, double) { return nn::elu(x); }},
    {"Tanh", [](float* x, int64_t n, float) { cpu::vtanh(x, x, n); }, [](const Tensor& x, double) { return tanh(x); }},
    {"Sigmoid", [](float* x, int64_t n, float) { cpu::vsigmoid(x, x, n); },
     [](const Tensor& x, double) { return sigmoid(x); }},
};

// fused_ops is nothing, BiasAdd, or BiasAdd and one activation, which is returned (null: none).
const Activation* checked_ops(const std::vector<std::string>& ops, int num_args) {
  if (num_args != (ops.empty() ? 0 : 1)) {
    throw invalid_argument("args must be the bias alone, got {} of them for fused_ops [{}]", num_args,
                           fmt::join(ops, ", "));
  }
  if (ops.empty() || (ops.size() == 1 && ops[0] == "BiasAdd")) return nullptr;
  for (const Activation& a : kActivations) {
    if (ops.size() == 2 && ops[0] == "BiasAdd" && ops[1] == a.name) return &a;
  }
  throw make_error(Code::unimplemented, "fused_ops [{}] is not BiasAdd with one of the known activations after it",
                   fmt::join(ops, ", "));
}

template <class A>
cpu::Epilogue epilogue_of(const KernelContext& c, const A& a) {
  const Activation* activation = checked_ops(a.fused_ops, c.num_inputs() - 2);
  cpu::Epilogue e;
  if (c.num_inputs() > 2) e.bias = c.in<float>(2);
  if (!activation) return e;
  e.relu = activation->run == nullptr;
  e.then = activation->run;
  e.parameter = static_cast<float>(a.leakyrelu_alpha);
  return e;
}

// A bias of one value per column of the result.
template <class A>
void check_fused(InferContext& c, const A& a, int64_t columns) {
  checked_ops(a.fused_ops, c.num_inputs() - 2);
  if (c.num_inputs() < 3) return;
  c.require_rank(2, 1);
  const PartialShape& bias = c.input(2);
  if (bias.has_rank() && bias[0] >= 0 && columns >= 0 && bias[0] != columns) {
    throw invalid_argument("the bias has {} values, the result {} columns", bias[0], columns);
  }
}

PartialShape variable_shape(InferContext& c) {
  const Tensor* handle = c.constant(1);
  return handle ? variable_slot(*handle).shape : PartialShape::unknown();
}

void matmul_shape(InferContext& c, const FusedMatMulAttrs& at, const PartialShape& b) {
  c.require_rank(0, 2);
  const PartialShape& a = c.input(0);
  if (b.has_rank() && b.rank() != 2) throw invalid_argument("b must have rank 2, got shape {}", b.str());
  const int64_t m = a.has_rank() ? a[at.transpose_a ? 1 : 0] : kUnknownDim;
  const int64_t ka = a.has_rank() ? a[at.transpose_a ? 0 : 1] : kUnknownDim;
  const int64_t kb = b.has_rank() ? b[at.transpose_b ? 1 : 0] : kUnknownDim;
  const int64_t n = b.has_rank() ? b[at.transpose_b ? 0 : 1] : kUnknownDim;
  if (ka >= 0 && kb >= 0 && ka != kb) {
    throw invalid_argument("inner dimensions differ: {}{} x {}{}", a.str(), at.transpose_a ? " transposed" : "",
                           b.str(), at.transpose_b ? " transposed" : "");
  }
  check_fused(c, at, n);
  c.output(PartialShape{m, n});
}

void run_matmul(KernelContext& c, const FusedMatMulAttrs& at, const float* b, int64_t ldb) {
  const Shape& a = c.in(0).shape();
  const int64_t m = c.out().shape()[0], n = c.out().shape()[1], k = a[at.transpose_a ? 0 : 1];
  cpu::gemm_f32(at.transpose_a, at.transpose_b, m, n, k, 1.0f, c.in<float>(0), std::max<int64_t>(1, a[1]), b,
                std::max<int64_t>(1, ldb), 0.0f, c.out<float>(), std::max<int64_t>(1, n), epilogue_of(c, at));
}

Tensor packed_rows(const Tensor& matrix) {
  const int64_t k = matrix.shape()[0], n = matrix.shape()[1];
  Tensor packed = Tensor::empty(DType::float32, {cpu::gemm_packed_size(n, k)});
  cpu::gemm_pack(n, k, matrix.data<float>(), packed.mutable_data<float>());
  return packed;
}

void conv_shape(InferContext& c, const FusedConv2DAttrs& a, const PartialShape& filter) {
  const ConvGeometry g = conv_geometry<FusedConv2DAttrs>(a, c.input(0), filter);
  check_fused(c, a, g.out_channels);
  c.output(g.output());
}

// The value of the variable that is input 1, as it is or as `make` rearranges it.
template <class Make>
Tensor packed_variable(const KernelContext& c, const std::string& layout, Make make) {
  VariableSlot& slot = variable_slot(c.in(1));
  if (slot.dtype != DType::float32) {
    throw invalid_argument("{} holds {}, float32 is needed", slot.describe(), dtype_name(slot.dtype));
  }
  std::lock_guard lock(slot.mutex);
  slot.require_value();
  return layout.empty() ? slot.value : slot.packed(layout, make);
}

Shape variable_value_shape(const KernelContext& c) {
  VariableSlot& slot = variable_slot(c.in(1));
  std::lock_guard lock(slot.mutex);
  slot.require_value();
  return slot.value.shape();
}

std::string layout_name(const cpu::ConvShape& s) {
  std::string text = fmt::format("conv {} {} {} {}", s.batch, s.in_channels, s.out_channels, s.groups);
  for (const cpu::ConvShape::Dims* dims : {&s.in, &s.kernel, &s.stride, &s.dilation, &s.pad_before, &s.pad_after}) {
    for (size_t d = 0; d < 2; ++d) fmt::format_to(std::back_inserter(text), " {}", (*dims)[d]);
  }
  return text;
}

template <class A>
Tensor with_post_ops(Tensor y, const std::vector<Tensor>& in, const A& a) {
  const Activation* activation = checked_ops(a.fused_ops, static_cast<int>(in.size()) - 2);
  if (in.size() > 2) y = nn::bias_add(y, in[2]);
  return activation ? activation->op(y, a.leakyrelu_alpha) : y;
}
Tensor plain_matmul(const std::vector<Tensor>& in, const Tensor& b, const FusedMatMulAttrs& a) {
  const std::vector<Tensor> y =
      call_op("MatMul", {in[0], b}, {{"transpose_a", a.transpose_a}, {"transpose_b", a.transpose_b}});
  return with_post_ops(y[0], in, a);
}
Tensor plain_conv(const std::vector<Tensor>& in, const Tensor& filter, const FusedConv2DAttrs& a) {
  const std::vector<Tensor> y = call_op("Conv2D", {in[0], filter},
                                        {{"strides", a.strides},
                                         {"use_cudnn_on_gpu", a.use_cudnn_on_gpu},
                                         {"padding", a.padding},
                                         {"explicit_paddings", a.explicit_paddings},
                                         {"data_format", a.data_format},
                                         {"dilations", a.dilations}});
  return with_post_ops(y[0], in, a);
}
Tensor read_variable(const Tensor& handle) {
  return call_op("ReadVariableOp", {handle}, {{"dtype", DType::float32}})[0];
}

double post_op_flops(const KernelContext& c, const std::vector<std::string>& fused_ops) {
  return static_cast<double>(c.out().num_elements()) * static_cast<double>(fused_ops.size());
}
constexpr auto product_and_post_ops = [](const KernelContext& c, const FusedMatMulAttrs& a) {
  const auto inner = static_cast<double>(c.in(0).shape()[a.transpose_a ? 0 : 1]);
  return 2 * static_cast<double>(c.out().num_elements()) * inner + post_op_flops(c, a.fused_ops);
};

void register_matmuls(Registry& r) {
  using A = FusedMatMulAttrs;
  const Tensor x = Tensor{{1.f, 2.f}, {3.f, 4.f}};
  const Tensor w = Tensor{{5.f, -1.f}, {6.f, 0.5f}};
  r.define<A>("_FusedMatMul")
      .in("a", Types<float>{})
      .in("b")
      .in_list("args", "num_args")
      .at_least(0)
      .out("product")
      .shape([](InferContext& c, const A& a) {
        c.require_rank(1, 2);
        matmul_shape(c, a, c.input(1));
      })
      .cpu([](KernelContext& c, const A& a) { run_matmul(c, a, c.in<float>(1), c.in(1).shape()[1]); })
      .flops(product_and_post_ops)
      .decompose([](const std::vector<Tensor>& in, const A& a) { return std::vector{plain_matmul(in, in[1], a)}; })
      .packed_by("_PackedMatMul",
                 [](InferContext& c) {
                   const A& a = c.attrs<A>();
                   return !a.transpose_a && !a.transpose_b &&
                          cpu::gemm_packs(c.input(0)[0], c.input(1)[1], c.input(1)[0]);
                 })
      .not_differentiable()
      .doc("MatMul, then what fused_ops lists: BiasAdd (its bias is in args), and an activation after it.")
      .sample({.in = {x, w, Tensor{0.5f, -2.f}}, .out = {Tensor{{17.5f, -2.f}, {39.5f, -3.f}}}},
              {.fused_ops = {"BiasAdd"}})
      .sample({.in = {x, w, Tensor{0.5f, -2.f}}, .out = {Tensor{{17.5f, 0.f}, {39.5f, 0.f}}}},
              {.fused_ops = {"BiasAdd", "Relu"}})
      .sample({.in = {x, w, Tensor{0.5f, -2.f}}, .out = {Tensor{{6.f, 0.f}, {6.f, 0.f}}}},
              {.fused_ops = {"BiasAdd", "Relu6"}})
      .sample({.in = {x, w, Tensor{0.5f, -2.f}}, .out = {Tensor{{17.5f, -1.f}, {39.5f, -1.5f}}}},
              {.fused_ops = {"BiasAdd", "LeakyRelu"}, .leakyrelu_alpha = 0.5})
      .sample({.in = {x, w}, .out = {Tensor{{17.f, 0.f}, {39.f, -1.f}}}})
      .sample({.in = {x, w, Tensor{0.5f}}, .error = "the bias has 1 values"}, {.fused_ops = {"BiasAdd"}})
      .sample({.in = {x, w}, .error = "args must be the bias"}, {.fused_ops = {"BiasAdd"}})
      .sample({.in = {x, w, Tensor{0.5f, -2.f}}, .error = "known activations"}, {.fused_ops = {"BiasAdd", "Exp"}})
      .sample({.in = {x, Tensor{{1.f}}, Tensor{0.5f}}, .error = "inner dimensions differ"}, {.fused_ops = {"BiasAdd"}});

  r.define<A>("_PackedMatMul")
      .in("a", Types<float>{})
      .in("b", DType::resource)
      .in_list("args", "num_args")
      .at_least(0)
      .out("product")
      .shape([](InferContext& c, const A& a) { matmul_shape(c, a, variable_shape(c)); })
      .cpu([](KernelContext& c, const A& a) {
        const int64_t m = c.out().shape()[0], n = c.out().shape()[1], k = c.in(0).shape()[a.transpose_a ? 0 : 1];
        const bool packs = !a.transpose_a && !a.transpose_b && cpu::gemm_packs(m, n, k);
        const Tensor b = packed_variable(c, packs ? "rows" : "", packed_rows);
        if (!packs) return run_matmul(c, a, b.data<float>(), b.shape()[1]);
        cpu::gemm_packed_f32(n, k, c.in<float>(0), b.data<float>(), c.out<float>(), epilogue_of(c, a));
      })
      .flops(product_and_post_ops)
      .decompose([](const std::vector<Tensor>& in, const A& a) {
        return std::vector{plain_matmul(in, read_variable(in[1]), a)};
      })
      .stateful()
      .reads_variable()
      .not_differentiable()
      .doc("_FusedMatMul with the value of a variable, whose rearranged copy is kept until the variable changes.");
}

void register_convs(Registry& r) {
  using A = FusedConv2DAttrs;
  const Tensor x = Tensor{{{{1.f}, {2.f}, {3.f}}, {{4.f}, {5.f}, {6.f}}}};  // [1, 2, 3, 1]
  const Tensor w = Tensor{{{{1.f}}, {{2.f}}}, {{{-1.f}}, {{0.5f}}}};        // [2, 2, 1, 1]
  r.define<A>("_FusedConv2D")
      .in("input", Types<float>{})
      .in("filter")
      .in_list("args", "num_args")
      .at_least(0)
      .out("output")
      .shape([](InferContext& c, const A& a) { conv_shape(c, a, c.input(1)); })
      .cpu([](KernelContext& c, const A& a) {
        cpu::conv_forward(conv_geometry<A>(a, c.in(0).shape(), c.in(1).shape()).shape(), c.in<float>(0), c.in<float>(1),
                          c.out<float>(), epilogue_of(c, a));
      })
      .flops([](const KernelContext& c, const A& a) {
        return conv_flops(c.out().shape(), c.in(1).shape()) + post_op_flops(c, a.fused_ops);
      })
      .decompose([](const std::vector<Tensor>& in, const A& a) { return std::vector{plain_conv(in, in[1], a)}; })
      .packed_by("_PackedConv2D",
                 [](InferContext& c) {
                   const A& a = c.attrs<A>();
                   return cpu::conv_packed_size(conv_geometry<A>(a, c.input(0), c.input(1)).shape()) > 0;
                 })
      .not_differentiable()
      .doc("Conv2D, then what fused_ops lists: BiasAdd (its bias is in args), and an activation after it.")
      .sample({.in = {x, w, Tensor{-4.f}}, .out = {Tensor{{{{-0.5f}, {2.f}}}}}}, {.fused_ops = {"BiasAdd"}})
      .sample({.in = {x, w, Tensor{-4.f}}, .out = {Tensor{{{{0.f}, {2.f}}}}}}, {.fused_ops = {"BiasAdd", "Relu"}})
      .sample({.in = {x, w, Tensor{-4.f}}, .out = {Tensor{{{{0.f}, {2.f}, {0.f}}, {{10.f}, {13.f}, {2.f}}}}}},
              {.padding = "SAME", .fused_ops = {"BiasAdd", "Relu"}})
      .sample({.in = {x, w, Tensor{-4.f, 1.f}}, .error = "the bias has 2 values"}, {.fused_ops = {"BiasAdd"}});

  r.define<A>("_PackedConv2D")
      .in("input", Types<float>{})
      .in("filter", DType::resource)
      .in_list("args", "num_args")
      .at_least(0)
      .out("output")
      .shape([](InferContext& c, const A& a) { conv_shape(c, a, variable_shape(c)); })
      .cpu([](KernelContext& c, const A& a) {
        const cpu::ConvShape s = conv_geometry<A>(a, c.in(0).shape(), variable_value_shape(c)).shape();
        const int64_t size = cpu::conv_packed_size(s);
        const Tensor w = packed_variable(c, size > 0 ? layout_name(s) : "", [&](const Tensor& filter) {
          Tensor packed = Tensor::empty(DType::float32, {size});
          cpu::conv_pack(s, filter.data<float>(), packed.mutable_data<float>());
          return packed;
        });
        auto* run = size > 0 ? cpu::conv_forward_packed : cpu::conv_forward;
        run(s, c.in<float>(0), w.data<float>(), c.out<float>(), epilogue_of(c, a));
      })
      .flops([](const KernelContext& c, const A& a) {
        return conv_flops(c.out().shape(), variable_value_shape(c)) + post_op_flops(c, a.fused_ops);
      })
      .decompose([](const std::vector<Tensor>& in, const A& a) {
        return std::vector{plain_conv(in, read_variable(in[1]), a)};
      })
      .stateful()
      .reads_variable()
      .not_differentiable()
      .doc("_FusedConv2D with the value of a variable, whose rearranged copy is kept until the variable changes.");
}

}  // namespace

void register_fused(Registry& r) {
  register_matmuls(r);
  register_convs(r);
}

}  // namespace runnel
