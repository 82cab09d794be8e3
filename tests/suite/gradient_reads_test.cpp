// An op that says which values its gradient reads gives the same gradient without the others.
#include "runnel/base/error.h"
#include "tests/suite/suite.h"
#include "tests/suite/values.h"

namespace runnel::test {
namespace {

// Shape and dtype of `t`, no value: what a tape keeps of it.
Tensor without_memory(const Tensor& t) {
  const Tensor hollow(make_ref<TensorImpl>(t.dtype(), t.shape(), t.impl()->buffer, 0));
  hollow.impl()->buffer = nullptr;
  hollow.impl()->data = nullptr;
  return hollow;
}

Gradients gradients(const Case& c, const std::vector<Tensor>& in, const std::vector<Tensor>& out,
                    const std::vector<Gradient>& dy) {
  return c.op->grad(GradCtx(*c.op, in, out, dy, ~uint64_t{0}), c.attrs());
}

}  // namespace

void check_gradient_reads(const Case& c) {
  const OpDef& op = *c.op;
  if (!op.grad || !~(op.grad_reads_inputs & op.grad_reads_outputs)) return;
  if (!c.sample().error.empty() || !c.sample().differentiable) return;
  std::vector<Tensor> in = c.inputs();
  std::vector<Tensor> out = run(op, in, c.attrs());
  const std::vector<Gradient> dy(out.begin(), out.end());  // any values of the right shapes
  const Gradients full = gradients(c, in, out, dy);
  for (size_t i = 0; i < in.size(); ++i) {
    const int at = static_cast<int>(i);
    if (!op.grad_reads_input(at) && !input_spec(op, in, i).host_memory) in[i] = without_memory(in[i]);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (!op.grad_reads_output(static_cast<int>(i))) out[i] = without_memory(out[i]);
  }
  const Gradients spare = gradients(c, in, out, dy);
  ASSERT_EQ(full.size(), spare.size());
  for (size_t i = 0; i < full.size(); ++i) {
    ASSERT_EQ(full[i].defined(), spare[i].defined()) << c.name();
    if (full[i].defined()) {
      EXPECT_TRUE(same_bits(full[i].value(), spare[i].value())) << c.name() << ", input " << i;
    }
  }
}

}  // namespace runnel::test
