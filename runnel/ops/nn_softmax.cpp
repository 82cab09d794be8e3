// Softmax over the last dimension.
#include "runnel/kernels/compute_view.h"
#include "runnel/kernels/cpu/softmax.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/nn_common.h"

namespace runnel {
namespace {

template <class T>
void softmax_kernel(KernelContext& c, bool log) {
  if (c.out().num_elements() == 0) return;
  const ComputeIn<T> x(c.in(0));
  const ComputeOut<T> y(c.out());
  const int64_t cols = last_dim(c.out().shape());
  cpu::softmax_rows(x.data(), y.data(), c.out().num_elements() / cols, cols, log);
  y.store();
}

void softmax_shape(InferContext& c) {
  c.require_rank_at_least(0, 1);
  c.output(c.input(0));
}

}  // namespace

void register_nn_softmax(Registry& r) {
  r.define("Softmax")
      .in("logits", floating)
      .out("softmax")
      .shape(softmax_shape)
      .cpu([]<class T>(KernelContext& c) { softmax_kernel<T>(c, false); })
      .grad([](const GradCtx& g) {
        const Tensor weighted = g.dy() * g.y();
        return weighted - reduce_sum(weighted, -1, true) * g.y();
      })
      .grad_reads({}, {0})
      .doc("exp(logits) divided by their sum over the last dimension.")
      .sample({.in = {Tensor{{0.f, 0.f}, {0.f, 1.0986123f}}}, .out = {Tensor{{0.5f, 0.5f}, {0.25f, 0.75f}}}})
      .sample({.in = {Tensor{1000.f, 1000.f, 1000.f, 1000.f}}, .out = {Tensor{.25f, .25f, .25f, .25f}}})
      .sample({.in = {Tensor(1.f)}, .error = "rank 1 or more"});

  r.define("LogSoftmax")
      .in("logits", floating)
      .out("logsoftmax")
      .shape(softmax_shape)
      .cpu([]<class T>(KernelContext& c) { softmax_kernel<T>(c, true); })
      .grad([](const GradCtx& g) {
        const Tensor dy = g.dy();
        return dy - exp(g.y()) * reduce_sum(dy, -1, true);
      })
      .grad_reads({}, {0})
      .doc("logits minus the logarithm of the sum of exp(logits) over the last dimension.")
      .sample({.in = {Tensor{{0.f, 0.f}, {0.f, 1.0986123f}}},
               .out = {Tensor{{-0.6931472f, -0.6931472f}, {-1.3862944f, -0.28768207f}}}})
      .sample({.in = {Tensor{-1000.f, 0.f}}, .out = {Tensor{-1000.f, 0.f}}, .differentiable = false});
}

// The ops work on the last axis: another one is swapped with it and back.
Tensor on_last_axis(const Operand& x, int axis, const char* name, Tensor (*f)(const Operand&)) {
  return composed(x.where(), [&]() -> Tensor {
    if (axis == -1) return f(x);
    const Tensor value = x.value();
    const PartialShape shape = value.partial_shape();
    if (!shape.has_rank())
      throw make_error(Code::unimplemented, "[{}] axis {} of a tensor of unknown rank", name, axis);
    const int rank = shape.rank();
    if (axis < -rank || axis >= rank) {
      throw invalid_argument("[{}] axis {} is out of range for shape {}", name, axis, shape.str());
    }
    const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    if (at + 1 == static_cast<size_t>(rank)) return f(x);
    std::vector<int64_t> perm(static_cast<size_t>(rank));
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
    std::swap(perm[at], perm.back());
    return transpose(f(Operand(transpose(value, perm), x.where())), perm);
  });
}

Tensor nn::softmax(const Operand& logits, int axis) {
  static const Op op("Softmax");
  return on_last_axis(logits, axis, "Softmax", [](const Operand& x) { return op({x}); });
}
Tensor nn::log_softmax(const Operand& logits, int axis) {
  static const Op op("LogSoftmax");
  return on_last_axis(logits, axis, "LogSoftmax", [](const Operand& x) { return op({x}); });
}

}  // namespace runnel
