// The cross entropy of probabilities in one go. Composed of other ops it would be some ten of them with its gradient,
// in every step of a classifier.
#include "runnel/ops/probability_loss.h"

#include <algorithm>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/compute_view.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/nn_common.h"

namespace runnel {
namespace {

struct ProbabilityLossAttrs {
  double epsilon = 1e-7;
  static constexpr auto fields() { return field_list(field("epsilon", &ProbabilityLossAttrs::epsilon)); }
};

template <class T, class Label>
void probability_loss(KernelContext& c, double epsilon) {
  using C = cpu::compute_t<T>;
  const int64_t rows = c.in(0).shape()[0];
  const int64_t classes = c.in(0).shape()[1];
  const Label* labels = c.in<Label>(1);
  check_labels(labels, rows, classes);
  const ComputeIn<T> probabilities(c.in(0));
  const ComputeOut<T> loss(c.out(0));
  const ComputeOut<T> backprop(c.out(1));
  const C low = static_cast<C>(epsilon);
  const C high = static_cast<C>(1 - epsilon);
  const auto clip = [&](C p) { return p > high ? high : p < low ? low : p; };  // NaN stays
  parallel_for(rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, classes)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const C* p = probabilities.data() + i * classes;
      C* slope = backprop.data() + i * classes;
      const C right = p[labels[i]];
      C sum = 0;
      for (int64_t j = 0; j < classes; ++j) sum += clip(p[j]);
      loss.data()[i] = std::log(sum) - std::log(clip(right));
      const C share = 1 / sum;
      for (int64_t j = 0; j < classes; ++j) slope[j] = p[j] >= low && p[j] <= high ? share : C(0);
      if (slope[labels[i]] != 0) slope[labels[i]] -= 1 / right;
    }
  });
  loss.store();
  backprop.store();
}

// What the op is made of, for its second derivative and for files: clipped probabilities, where they are not clipped
// (1 or 0), their sums, and the labels as rows.
struct ProbabilityParts {
  ProbabilityParts(const Tensor& p, const Tensor& labels, double epsilon)
      : clipped(clip_by_value(p, epsilon, 1 - epsilon)),
        inside(cast(equal(clipped, p), p.dtype())),
        sum(reduce_sum(clipped, -1, true)),
        label(one_hot(labels, shape(p)[1], -1, p.dtype())) {}
  Tensor clipped, inside, sum, label;
  Tensor loss() const { return squeeze(log(sum), -1) - reduce_sum(label * log(clipped), -1); }
  Tensor backprop() const { return inside * (1 / sum - label / clipped); }
};

}  // namespace

void register_probability_loss(Registry& r) {
  using A = ProbabilityLossAttrs;
  r.define<A>("_SparseCrossEntropyOfProbabilities")
      .in("probabilities", floating)
      .type("Tlabels", index_types, DType::int64)
      .in("labels", "Tlabels")
      .out("loss")
      .out("backprop")
      .shape([](InferContext& c, const A&) {
        c.require_rank(0, 2);
        c.require_rank(1, 1);
        const PartialShape& p = c.input(0);
        const PartialShape& labels = c.input(1);
        if (p.has_rank() && labels.has_rank() && p[0] >= 0 && labels[0] >= 0 && p[0] != labels[0]) {
          throw invalid_argument("{} rows of probabilities, {} labels: {} and {}", p[0], labels[0], p.str(),
                                 labels.str());
        }
        c.output(0, labels.has_rank() ? labels : PartialShape{p.has_rank() ? p[0] : kUnknownDim});
        c.output(1, p.has_rank() ? p : PartialShape::unknown_dims(2));
      })
      .cpu([]<class T>(KernelContext& c, const A& a) {
        if (c.in(1).dtype() == DType::int32) {
          probability_loss<T, int32_t>(c, a.epsilon);
        } else {
          probability_loss<T, int64_t>(c, a.epsilon);
        }
      })
      .decompose([](const std::vector<Tensor>& in, const A& a) {
        const ProbabilityParts parts(in[0], in[1], a.epsilon);
        return std::vector{parts.loss(), parts.backprop()};
      })
      .grad([](const GradCtx& g, const A& a) {
        Tensor d;
        if (g.has_dy(0)) d = expand_dims(g.dy(0), -1) * g.y(1);
        if (g.has_dy(1)) {
          const ProbabilityParts parts(g.x(0), g.x(1), a.epsilon);
          const Tensor dy = g.dy(1) * parts.inside;
          const Tensor common = reduce_sum(dy, -1, true) / square(parts.sum);
          const Tensor second = parts.inside * (dy * parts.label / square(parts.clipped) - common);
          d = d.defined() ? d + second : second;
        }
        return d.defined() ? d : zeros_like(g.x(0));
      })
      .doc(
          "loss = log(sum(p)) - log(p[label]) per row of probabilities clipped to [epsilon, 1 - epsilon]; backprop is "
          "its "
          "gradient.")
      .sample({.in = {Tensor{{0.5f, 0.5f}, {0.25f, 0.5f}}, Tensor{0, 1}},
               .out = {Tensor{0.6931472f, 0.4054651f}, Tensor{{-1.f, 1.f}, {1.3333334f, -0.6666667f}}}})
      .sample({.in = {Tensor{{0.05f, 0.85f}, {0.4f, 0.3f}}, Tensor{1, 0}},
               .out = {Tensor{0.1112256f, 0.5596158f}, Tensor{{0.f, -0.123839f}, {-1.0714286f, 1.4285714f}}}},
              {.epsilon = 0.1})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{1, 2}}, .error = "label 2"})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{0, 0, 1}}, .error = "3 labels"});
}

Tensor nn::sparse_cross_entropy_of_probabilities(const Operand& labels, const Operand& probabilities, double epsilon) {
  static const Op<ProbabilityLossAttrs> op("_SparseCrossEntropyOfProbabilities");
  return op.many({probabilities, labels}, {.epsilon = epsilon})[0];
}

}  // namespace runnel
