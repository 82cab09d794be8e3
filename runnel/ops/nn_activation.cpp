// Activation functions.
#include "runnel/kernels/compute_view.h"
#include "runnel/kernels/cpu/activations.h"
#include "runnel/kernels/elementwise.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"

namespace runnel {
namespace {

struct LeakyReluAttrs {
  double alpha = 0.2;
  static constexpr auto fields() { return field_list(field("alpha", &LeakyReluAttrs::alpha)); }
};

// TensorFlow keeps it as a float32, whatever the dtype of the features.
template <class T>
T alpha_of(const LeakyReluAttrs& a) {
  return static_cast<T>(static_cast<float>(a.alpha));
}

Tensor relu_grad(const Operand& gradients, const Operand& features) {
  static const Op op("ReluGrad");
  return op({gradients, features});
}
Tensor relu6_grad(const Operand& gradients, const Operand& features) {
  static const Op op("Relu6Grad");
  return op({gradients, features});
}
Tensor leaky_relu_grad(const Operand& gradients, const Operand& features, double alpha) {
  static const Op<LeakyReluAttrs> op("LeakyReluGrad");
  return op({gradients, features}, {.alpha = alpha});
}
Tensor elu_grad(const Operand& gradients, const Operand& outputs) {
  static const Op op("EluGrad");
  return op({gradients, outputs});
}
Tensor selu_grad(const Operand& gradients, const Operand& outputs) {
  static const Op op("SeluGrad");
  return op({gradients, outputs});
}
Tensor softplus_grad(const Operand& gradients, const Operand& features) {
  static const Op op("SoftplusGrad");
  return op({gradients, features});
}
Tensor softsign_grad(const Operand& gradients, const Operand& features) {
  static const Op op("SoftsignGrad");
  return op({gradients, features});
}

// dd * x where y < 0, else 0: the mixed second derivative of elu and selu.
Tensor where_negative(const Tensor& dd, const Tensor& x, const Tensor& y) { return relu_grad(dd * x, -y); }

// The *Grad ops take the gradient of the activation and its input or output, of one shape.
void same_shape(InferContext& c) { c.output(c.input(0).merged_with(c.input(1))); }

void register_relu(Registry& r) {
  r.define("Relu")
      .in("features", real_numbers)
      .out("activations")
      .shape(like<0>)
      .cpu(fusible([](auto x) { return choose(decltype(x)(0) > x, decltype(x)(0), x); }))
      .grad([](const GradCtx& g) { return relu_grad(g.dy(), g.y()); })
      .post_op("Relu")
      .grad_reads({}, {0})
      .doc("max(features, 0).")
      .sample({.in = {Tensor{-1.f, 0.5f, 2.f}}, .out = {Tensor{0.f, 0.5f, 2.f}}})
      .sample({.in = {Tensor{{-3.f}, {4.f}}}, .out = {Tensor{{0.f}, {4.f}}}});
  r.define("ReluGrad")
      .in("gradients", real_numbers)
      .in("features")
      .out("backprops")
      .shape(same_shape)
      .cpu(fusible([](auto dy, auto x) { return choose(x > decltype(x)(0), dy, decltype(dy)(0)); }))
      .grad([](const GradCtx& g) {
        return Gradients{g.want(0, [&] { return relu_grad(g.dy(), g.x(1)); }),
                         g.want(1, [&] { return zeros_like(g.x(1)); })};
      })
      .doc("The gradient of Relu: gradients where features > 0 (its input or its output), else 0.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{-1.f, 0.5f, 2.f}}, .out = {Tensor{0.f, 2.f, 3.f}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1.f, 2.f, 3.f}}, .error = "incompatible"});

  r.define("Relu6")
      .in("features", real_numbers)
      .out("activations")
      .shape(like<0>)
      .cpu(fusible([](auto x) {
        using T = decltype(x);
        const T low = choose(T(0) > x, T(0), x);
        return choose(T(6) < low, T(6), low);
      }))
      .grad([](const GradCtx& g) { return relu6_grad(g.dy(), g.y()); })
      .post_op("Relu6")
      .grad_reads({}, {0})
      .doc("min(max(features, 0), 6).")
      .sample({.in = {Tensor{-1.f, 0.5f, 7.f}}, .out = {Tensor{0.f, 0.5f, 6.f}}});
  r.define("Relu6Grad")
      .in("gradients", real_numbers)
      .in("features")
      .out("backprops")
      .shape(same_shape)
      .cpu(fusible([](auto dy, auto x) {
        using T = decltype(x);
        return choose(x > T(0) && x < T(6), dy, T(0));
      }))
      .grad([](const GradCtx& g) {
        return Gradients{g.want(0, [&] { return relu6_grad(g.dy(), g.x(1)); }),
                         g.want(1, [&] { return zeros_like(g.x(1)); })};
      })
      .doc("The gradient of Relu6: gradients where 0 < features < 6, else 0.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{-1.f, 0.5f, 7.f}}, .out = {Tensor{0.f, 2.f, 0.f}}});

  r.define<LeakyReluAttrs>("LeakyRelu")
      .in("features", floating, DType::float32)
      .out("activations")
      .shape(like<0>)
      .cpu(
          fusible_attrs([](auto x, const LeakyReluAttrs& a) { return choose(x > 0, x, x * alpha_of<decltype(x)>(a)); }))
      .grad([](const GradCtx& g, const LeakyReluAttrs& a) { return leaky_relu_grad(g.dy(), g.x(), a.alpha); })
      .post_op("LeakyRelu")
      .grad_reads({0})
      .doc("features where they are positive, else alpha * features.")
      .sample({.in = {Tensor{-1.f, 0.5f, 2.f}}, .out = {Tensor{-.2f, 0.5f, 2.f}}})
      .sample({.in = {Tensor{{-2.f}, {2.f}}}, .out = {Tensor{{-1.f}, {2.f}}}}, {.alpha = 0.5});
  r.define<LeakyReluAttrs>("LeakyReluGrad")
      .in("gradients", floating, DType::float32)
      .in("features")
      .out("backprops")
      .shape(same_shape)
      .cpu(fusible_attrs(
          [](auto dy, auto x, const LeakyReluAttrs& a) { return choose(x > 0, dy, dy * alpha_of<decltype(dy)>(a)); }))
      .grad([](const GradCtx& g, const LeakyReluAttrs& a) {
        return Gradients{g.want(0, [&] { return leaky_relu_grad(g.dy(), g.x(1), a.alpha); }),
                         g.want(1, [&] { return zeros_like(g.x(1)); })};
      })
      .doc("The gradient of LeakyRelu.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{-1.f, 0.5f}}, .out = {Tensor{.2f, 2.f}}});
}

void register_elu(Registry& r) {
  r.define("Elu")
      .in("features", floating)
      .out("activations")
      .shape(like<0>)
      .cpu(elementwise(cpu::Elu{}))
      .grad([](const GradCtx& g) { return elu_grad(g.dy(), g.y()); })
      .post_op("Elu")
      .grad_reads({}, {0})
      .doc("exp(features) - 1 where they are negative, else features.")
      .sample({.in = {Tensor{-1.f, 0.5f, 2.f}}, .out = {Tensor{-0.63212056f, 0.5f, 2.f}}})
      .sample({.in = {Tensor{{-0.25f}, {1.f}}}, .out = {Tensor{{-0.22119922f}, {1.f}}}});
  r.define("EluGrad")
      .in("gradients", floating)
      .in("outputs")
      .out("backprops")
      .shape(same_shape)
      .cpu(fusible([](auto dy, auto y) { return choose(y < 0, dy * (y + decltype(y)(1)), dy); }))
      .grad([](const GradCtx& g) {
        return Gradients{g.want(0, [&] { return elu_grad(g.dy(), g.x(1)); }),
                         g.want(1, [&] { return where_negative(g.dy(), g.x(0), g.x(1)); })};
      })
      .doc("The gradient of Elu, from its output.")
      .sample({.in = {Tensor{2.f, 3.f}, Tensor{-0.5f, 1.f}}, .out = {Tensor{1.f, 3.f}}});

  r.define("Selu")
      .in("features", floating)
      .out("activations")
      .shape(like<0>)
      .cpu(elementwise(cpu::Selu{}))
      .grad([](const GradCtx& g) { return selu_grad(g.dy(), g.y()); })
      .grad_reads({}, {0})
      .doc(
          "scale * (alpha * (exp(features) - 1) where they are negative, else features); scale and alpha "
          "keep mean "
          "and variance of a normal input.")
      .sample({.in = {Tensor{-1.f, 0.5f, 2.f}}, .out = {Tensor{-1.1113307f, 0.52535049f, 2.101402f}}});
  r.define("SeluGrad")
      .in("gradients", floating)
      .in("outputs")
      .out("backprops")
      .shape(same_shape)
      .cpu(fusible([](auto dy, auto y) {
        using T = decltype(y);
        const T scale = static_cast<T>(cpu::kSeluScale);
        const T negative = static_cast<T>(cpu::kSeluScale * cpu::kSeluAlpha);
        return dy * choose(y < 0, y + negative, scale);
      }))
      .grad([](const GradCtx& g) {
        return Gradients{g.want(0, [&] { return selu_grad(g.dy(), g.x(1)); }),
                         g.want(1, [&] { return where_negative(g.dy(), g.x(0), g.x(1)); })};
      })
      .doc("The gradient of Selu, from its output.")
      .sample({.in = {Tensor{2.f, 3.f}, Tensor{-0.5f, 1.f}}, .out = {Tensor{2.5161986f, 3.152103f}}});
}

void register_soft(Registry& r) {
  r.define("Softplus")
      .in("features", floating)
      .out("activations")
      .shape(like<0>)
      .cpu(elementwise(cpu::Softplus{}))
      .grad([](const GradCtx& g) { return softplus_grad(g.dy(), g.x()); })
      .grad_reads({0})
      .doc("log(1 + exp(features)).")
      .sample({.in = {Tensor{-1.f, 0.f, 2.f}}, .out = {Tensor{0.31326169f, 0.69314718f, 2.126928f}}})
      .sample({.in = {Tensor{-100.f, 100.f}}, .out = {Tensor{0.f, 100.f}}});
  r.define("SoftplusGrad")
      .in("gradients", floating)
      .in("features")
      .out("backprops")
      .shape(same_shape)
      .cpu([]<class T>(KernelContext& c) {
        const ComputeIn<T> dy(c.in(0));
        const ComputeIn<T> x(c.in(1));
        const ComputeOut<T> y(c.out());
        parallel_for(c.out().num_elements(), cpu::kGrain / 4, [&](int64_t begin, int64_t end) {
          if constexpr (std::is_same_v<T, double>) {
            for (int64_t i = begin; i < end; ++i) y.data()[i] = dy.data()[i] / (1 + std::exp(-x.data()[i]));
          } else {
            cpu::vsigmoid_times(dy.data() + begin, x.data() + begin, y.data() + begin, end - begin);
          }
        });
        y.store();
      })
      .elementwise_op()
      .grad([](const GradCtx& g) {
        return Gradients{g.want(0, [&] { return softplus_grad(g.dy(), g.x(1)); }),
                         // sigmoid' = sigmoid(x) sigmoid(-x)
                         g.want(1, [&] { return softplus_grad(softplus_grad(g.dy() * g.x(0), g.x(1)), -g.x(1)); })};
      })
      .doc("The gradient of Softplus: gradients * sigmoid(features).")
      .sample({.in = {Tensor{2.f, 3.f}, Tensor{-1.f, 0.f}}, .out = {Tensor{0.53788284f, 1.5f}}});

  r.define("Softsign")
      .in("features", floating)
      .out("activations")
      .shape(like<0>)
      .cpu(fusible([](auto x) {
        using std::abs;
        return x / (decltype(x)(1) + abs(x));
      }))
      .grad([](const GradCtx& g) { return softsign_grad(g.dy(), g.x()); })
      .grad_reads({0})
      .doc("features / (1 + abs(features)).")
      .sample({.in = {Tensor{-1.f, 0.f, 3.f}}, .out = {Tensor{-0.5f, 0.f, 0.75f}}});
  r.define("SoftsignGrad")
      .in("gradients", floating)
      .in("features")
      .out("backprops")
      .shape(same_shape)
      .cpu(fusible([](auto dy, auto x) {
        using std::abs;
        const auto d = decltype(x)(1) + abs(x);
        return dy / (d * d);
      }))
      .grad([](const GradCtx& g) {
        return Gradients{g.want(0, [&] { return softsign_grad(g.dy(), g.x(1)); }), g.want(1, [&] {
                           const Tensor& x = g.x(1);
                           return softsign_grad(g.dy() * g.x(0) * -2, x) * sign(x) / (1 + abs(x));
                         })};
      })
      .doc("The gradient of Softsign.")
      .sample({.in = {Tensor{2.f, 3.f}, Tensor{-1.f, 2.f}}, .out = {Tensor{0.5f, 0.33333333f}}});
}

}  // namespace

void register_nn_activation(Registry& r) {
  register_relu(r);
  register_elu(r);
  register_soft(r);
}

namespace nn {

Tensor relu(const Operand& features) {
  static const Op op("Relu");
  return op({features});
}
Tensor relu6(const Operand& features) {
  static const Op op("Relu6");
  return op({features});
}
Tensor leaky_relu(const Operand& features, double alpha) {
  static const Op<LeakyReluAttrs> op("LeakyRelu");
  return op({features}, {.alpha = alpha});
}
Tensor elu(const Operand& features) {
  static const Op op("Elu");
  return op({features});
}
Tensor selu(const Operand& features) {
  static const Op op("Selu");
  return op({features});
}
Tensor softplus(const Operand& features) {
  static const Op op("Softplus");
  return op({features});
}
Tensor softsign(const Operand& features) {
  static const Op op("Softsign");
  return op({features});
}
Tensor silu(const Operand& features, double beta) {
  return composed(features.where(), [&]() -> Tensor {
    const Tensor x = features.value();
    return x * sigmoid(beta == 1 ? x : x * beta);
  });
}
Tensor gelu(const Operand& features, bool approximate) {
  return composed(features.where(), [&]() -> Tensor {
    const Tensor x = features.value();
    if (approximate) {
      constexpr double root = 0.79788456080286535588;  // sqrt(2 / pi)
      return 0.5 * x * (1 + tanh(root * (x + 0.044715 * (x * x * x))));
    }
    return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
  });
}

}  // namespace nn
}  // namespace runnel
