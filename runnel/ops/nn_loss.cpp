// Cross entropies and other losses.
#include <cstring>

#include "runnel/base/cpu.h"
#include "runnel/kernels/compute_view.h"
#include "runnel/kernels/cpu/isa.h"
#include "runnel/kernels/cpu/softmax.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/unrecorded.h"
#include "runnel/ops/array.h"
#include "runnel/ops/broadcast_grad.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/nn_common.h"

namespace runnel {
namespace {

// Half the sum of squares, in four vectors of partial sums.
template <class C>
RUNNEL_INLINE C half_of_squares_body(const C* x, int64_t n) {
  typedef C V __attribute__((vector_size(32)));
  constexpr int kWidth = sizeof(V) / sizeof(C), kVectors = 4;
  V sums[kVectors] = {};
  int64_t i = 0;
  for (; i + kVectors * kWidth <= n; i += kVectors * kWidth) {
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      V v;
      std::memcpy(&v, x + i + k * kWidth, sizeof v);
      sums[k] += v * v;
    }
  }
  const V four = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  C sum = 0;
  for (int k = 0; k < kWidth; ++k) sum += four[k];
  for (; i < n; ++i) sum += x[i] * x[i];
  return sum / 2;
}
template <class C>
C half_of_squares_base(const C* x, int64_t n) {
  return half_of_squares_body(x, n);
}
template <class C>
RUNNEL_AVX2 C half_of_squares_avx2(const C* x, int64_t n) {
  return half_of_squares_body(x, n);
}
template <class C>
C half_of_squares(const C* x, int64_t n) {
  return has_avx2() ? half_of_squares_avx2(x, n) : half_of_squares_base(x, n);
}

template <class T, class Label>
void sparse_cross_entropy(KernelContext& c) {
  const int64_t rows = c.in(0).shape()[0];
  const int64_t classes = c.in(0).shape()[1];
  const Label* labels = c.in<Label>(1);
  check_labels(labels, rows, classes);
  const ComputeIn<T> logits(c.in(0));
  const ComputeOut<T> loss(c.out(0));
  const ComputeOut<T> backprop(c.out(1));
  cpu::sparse_softmax_cross_entropy_rows(logits.data(), labels, loss.data(), backprop.data(), rows, classes);
  loss.store();
  backprop.store();
}

// The gradient by the logits, from those of the two outputs: loss and backprop = softmax - labels.
Tensor logits_gradient(const GradCtx& g) {
  Tensor d;
  if (g.has_dy(0)) d = expand_dims(g.dy(0), -1) * g.y(1);
  if (g.has_dy(1)) {
    const Tensor p = nn::softmax(g.x(0));
    const Tensor weighted = g.dy(1) * p;
    const Tensor second = weighted - reduce_sum(weighted, -1, true) * p;
    d = d.defined() ? d + second : second;
  }
  return d.defined() ? d : zeros_like(g.x(0));
}

}  // namespace

void register_nn_loss(Registry& r) {
  r.define("SoftmaxCrossEntropyWithLogits")
      .in("features", floating)
      .in("labels")
      .out("loss")
      .out("backprop")
      .shape([](InferContext& c) {
        const PartialShape both = broadcast_shapes(c.input(0), c.input(1));
        if (both.has_rank() && both.rank() != 2) {
          throw invalid_argument("logits and labels must be rows of classes, got {} and {}", c.input(0).str(),
                                 c.input(1).str());
        }
        c.output(0, PartialShape{both.has_rank() ? both[0] : kUnknownDim});
        c.output(1, both.has_rank() ? both : PartialShape::unknown_dims(2));
      })
      .cpu([]<class T>(KernelContext& c) {
        const Shape& both = c.out(1).shape();
        const auto whole = [&](const Tensor& t) {
          const Unrecorded inner;
          return t.shape() == both ? t : broadcast_to(t, both.dims());
        };
        const Tensor all_logits = whole(c.in(0)), all_labels = whole(c.in(1));
        const ComputeIn<T> logits(all_logits);
        const ComputeIn<T> labels(all_labels);
        const ComputeOut<T> loss(c.out(0));
        const ComputeOut<T> backprop(c.out(1));
        cpu::softmax_cross_entropy_rows(logits.data(), labels.data(), loss.data(), backprop.data(), both[0], both[1]);
        loss.store();
        backprop.store();
      })
      .grad([](const GradCtx& g) {
        return Gradients{g.want(0, [&] { return sum_to_shape_of(logits_gradient(g), g.x(0)); }), g.want(1, [&] {
                           Tensor d;
                           if (g.has_dy(0)) d = -(expand_dims(g.dy(0), -1) * nn::log_softmax(g.x(0)));
                           if (g.has_dy(1)) d = d.defined() ? d - g.dy(1) : -g.dy(1);
                           return d.defined() ? sum_to_shape_of(d, g.x(1)) : zeros_like(g.x(1));
                         })};
      })
      .doc(
          "loss = -sum(labels * log_softmax(features)) per row; backprop = softmax(features) - labels, its "
          "gradient "
          "where the labels of a row add up to one. The two broadcast.")
      .sample({.in = {Tensor{{0.f, 0.f}, {0.f, 1.0986123f}}, Tensor{{1.f, 0.f}, {0.5f, 0.5f}}},
               .out = {Tensor{0.6931472f, 0.83698822f}, Tensor{{-0.5f, 0.5f}, {-0.25f, 0.25f}}}})
      .sample({.in = {Tensor{{0.f, 0.f}, {0.f, 1.0986123f}}, Tensor{{0.5f, 0.5f}}},
               .out = {Tensor{0.6931472f, 0.83698822f}, Tensor{{0.f, 0.f}, {-0.25f, 0.25f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{{1.f, 0.f, 0.f}}}, .error = "do not broadcast"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1.f, 0.f}}, .error = "rows of classes"});

  r.define("SparseSoftmaxCrossEntropyWithLogits")
      .in("features", floating)
      .type("Tlabels", index_types, DType::int64)
      .in("labels", "Tlabels")
      .out("loss")
      .out("backprop")
      .shape([](InferContext& c) {
        c.require_rank(0, 2);
        c.require_rank(1, 1);
        const PartialShape& x = c.input(0);
        const PartialShape& labels = c.input(1);
        if (x.has_rank() && labels.has_rank() && x[0] >= 0 && labels[0] >= 0 && x[0] != labels[0]) {
          throw invalid_argument("{} rows of logits, {} labels: {} and {}", x[0], labels[0], x.str(), labels.str());
        }
        c.output(0, labels.has_rank() ? labels : PartialShape{x.has_rank() ? x[0] : kUnknownDim});
        c.output(1, x.has_rank() ? x : PartialShape::unknown_dims(2));
      })
      .cpu([]<class T>(KernelContext& c) {
        if (c.in(1).dtype() == DType::int32) {
          sparse_cross_entropy<T, int32_t>(c);
        } else {
          sparse_cross_entropy<T, int64_t>(c);
        }
      })
      .grad([](const GradCtx& g) { return logits_gradient(g); })
      .doc(
          "loss = -log_softmax(features)[label] per row; backprop = softmax(features) - one_hot(labels), its "
          "gradient.")
      .sample({.in = {Tensor{{0.f, 0.f}, {0.f, 1.0986123f}}, Tensor{0, 1}},
               .out = {Tensor{0.6931472f, 0.28768207f}, Tensor{{-0.5f, 0.5f}, {0.25f, -0.25f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{1, 2}}, .error = "label 2"})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{0, 0, 1}}, .error = "3 labels"});

  r.define("L2Loss")
      .in("t", floating)
      .out("output")
      .shape(scalar_shape)
      .cpu([]<class T>(KernelContext& c) {
        const ComputeIn<T> x(c.in(0));
        using C = cpu::compute_t<T>;
        const C* data = x.data();
        const C half_sum = parallel_reduce(
            c.in(0).num_elements(), cpu::kGrain, C(0),
            [&](int64_t begin, int64_t end) { return half_of_squares(data + begin, end - begin); },
            [](C a, C b) { return a + b; });
        *c.out<T>() = static_cast<T>(half_sum);
      })
      .grad([](const GradCtx& g) { return g.dy() * g.x(); })
      .doc("sum(t ** 2) / 2.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}}, .out = {Tensor(7.f)}})
      .sample({.in = {Tensor{{-1.f}, {0.5f}}}, .out = {Tensor(0.625f)}});
}

namespace nn {
namespace {

// The tensor as rows of its last dimension, and the shape of what has one value per row.
Tensor logit_rows(const Tensor& x) {
  const PartialShape s = x.partial_shape();
  if (s.rank() == 2) return x;
  const int64_t last = last_dim(s);
  // The rows are counted where the size of a row is not zero.
  if (s.is_static()) return reshape(x, {last == 0 ? 0 : Shape(s).num_elements() / last, last});
  if (last >= 0) return reshape(x, {-1, last});
  const Tensor sizes = shape(x);
  const Tensor classes = gather(sizes, size(sizes) - 1);
  return reshape(x, ShapeArg(stack({floordiv(size(x), maximum(classes, 1)), classes})));
}

Tensor move_to_last(const Tensor& x, int axis) {
  const PartialShape s = x.partial_shape();
  if (axis == -1 || (s.has_rank() && axis == s.rank() - 1)) return x;
  const int at = normalize_axis(axis, s.rank());
  std::vector<int64_t> perm;
  for (int i = 0; i < s.rank(); ++i) {
    if (i != at) perm.push_back(i);
  }
  perm.push_back(at);
  return transpose(x, perm);
}

}  // namespace

Tensor softmax_cross_entropy_with_logits(const Operand& labels, const Operand& logits, int axis) {
  return composed(logits.where(), [&]() -> Tensor {
    static const Op op("SoftmaxCrossEntropyWithLogits");
    const Tensor x = move_to_last(logits.value(), axis);
    Tensor targets = move_to_last(labels.is_literal() ? labels.as(x.dtype()) : *labels.tensor(), axis);
    if (targets.dtype() != x.dtype()) targets = cast(targets, x.dtype());
    const PartialShape shape = x.partial_shape();
    const Operand rows(logit_rows(x), logits.where());
    const Tensor loss = op.many({rows, logit_rows(targets)})[0];
    if (shape.rank() == 2) return loss;
    if (shape.is_static()) return reshape(loss, Dims(shape.begin(), shape.end() - 1));
    const Tensor dims = runnel::shape(x);
    return reshape(loss, ShapeArg(dims(slice(0, -1))));
  });
}

Tensor sparse_softmax_cross_entropy_with_logits(const Operand& labels, const Operand& logits) {
  return composed(logits.where(), [&]() -> Tensor {
    static const Op op("SparseSoftmaxCrossEntropyWithLogits");
    const Tensor x = logits.value();
    const Tensor targets = labels.value();
    const PartialShape shape = x.partial_shape();
    if (shape.rank() == 2 && targets.partial_shape().rank() == 1) return op.many({logits, labels})[0];
    if (shape.has_rank() && targets.partial_shape().has_rank() && shape.rank() != targets.partial_shape().rank() + 1) {
      throw invalid_argument(
          "[SparseSoftmaxCrossEntropyWithLogits] labels must have one dimension less than logits: {} and {}",
          targets.partial_shape().str(), shape.str());
    }
    const Operand rows(logit_rows(x), logits.where());
    return reshape(op.many({rows, reshape(targets, {-1})})[0], runnel::shape(targets));
  });
}

Tensor sigmoid_cross_entropy_with_logits(const Operand& labels, const Operand& logits) {
  return composed(logits.where(), [&]() -> Tensor {
    // max(x, 0) - x z + log(1 + exp(-|x|)) = softplus(x) - x z
    const Tensor x = logits.value();
    return softplus(x) - x * labels;
  });
}

Tensor weighted_cross_entropy_with_logits(const Operand& labels, const Operand& logits, const Operand& pos_weight) {
  return composed(logits.where(), [&]() -> Tensor {
    const Tensor x = logits.value();
    const Tensor z = labels.is_literal() ? labels.as(x.dtype()) : *labels.tensor();
    const Tensor positive = pos_weight.is_literal() ? pos_weight.as(x.dtype()) : *pos_weight.tensor();
    const Tensor weight = 1 + (positive - 1) * z;
    return (1 - z) * x + weight * softplus(-x);
  });
}

Tensor l2_loss(const Operand& t) {
  static const Op op("L2Loss");
  return op({t});
}

}  // namespace nn
}  // namespace runnel
