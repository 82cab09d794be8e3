// Shape inference: what is inferred is what comes out, however little is known.
#include "runnel/base/error.h"
#include "tests/suite/suite.h"

namespace runnel::test {
namespace {

class Unknown : public Symbol {
 public:
  explicit Unknown(PartialShape shape) : shape_(std::move(shape)) {}
  const PartialShape& shape() const override { return shape_; }

 private:
  PartialShape shape_;
};

Tensor symbolic(const Tensor& like, PartialShape shape) {
  return Tensor(make_ref<TensorImpl>(like.dtype(), std::make_shared<Unknown>(std::move(shape))));
}
Tensor without_rank(const Tensor& t) { return symbolic(t, PartialShape::unknown()); }
Tensor without_dims(const Tensor& t) { return symbolic(t, PartialShape::unknown_dims(t.rank())); }
Tensor without_value(const Tensor& t) { return symbolic(t, t.shape()); }

std::vector<PartialShape> infer(const Case& c, const std::vector<Tensor>& inputs) {
  std::vector<const Tensor*> in;
  for (const Tensor& t : inputs) in.push_back(&t);
  InferContext context(*c.op, in, c.attrs(), c.op->num_outputs(c.attrs()));
  c.op->infer(context);
  std::vector<PartialShape> shapes;
  for (int i = 0; i < context.num_outputs(); ++i) shapes.push_back(context.output_shape(i));
  return shapes;
}

void expect_fits(const Case& c, const std::vector<Tensor>& inputs, const std::vector<Tensor>& actual) {
  try {
    const std::vector<PartialShape> inferred = infer(c, inputs);
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_TRUE(inferred[i].compatible_with(actual[i].shape()))
          << c.name() << ", output " << i << ": inferred " << inferred[i].str() << " from " << describe(inputs)
          << ", actual " << actual[i].shape().str();
    }
  } catch (const Error& e) {
    ADD_FAILURE() << c.name() << ": inference from " << describe(inputs) << " threw: " << e.what();
  }
}

}  // namespace

void check_inferred_shapes(const Case& c) {
  if (!c.sample().error.empty()) return;
  const std::vector<Tensor> inputs = c.inputs();
  expect_fits(c, inputs, run(*c.op, inputs, c.attrs()));
}

void check_partial_shapes(const Case& c) {
  if (!c.sample().error.empty()) return;
  const std::vector<Tensor> inputs = c.inputs();
  const std::vector<Tensor> actual = run(*c.op, inputs, c.attrs());

  for (auto hide : {without_rank, without_dims, without_value}) {
    std::vector<Tensor> all = inputs;
    std::vector<Tensor> device_only = inputs;  // what a host input says (axes, shapes) is known while tracing
    for (size_t i = 0; i < inputs.size(); ++i) {
      all[i] = hide(inputs[i]);
      if (!input_spec(*c.op, inputs, i).host_memory) device_only[i] = all[i];
      std::vector<Tensor> one = inputs;
      one[i] = all[i];
      expect_fits(c, one, actual);
    }
    expect_fits(c, all, actual);
    expect_fits(c, device_only, actual);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (int d = 0; d < inputs[i].rank(); ++d) {
      Dims dims = inputs[i].shape().dims();
      dims[static_cast<size_t>(d)] = kUnknownDim;
      std::vector<Tensor> in = inputs;
      in[i] = symbolic(inputs[i], PartialShape(dims));
      expect_fits(c, in, actual);
    }
  }
}

}  // namespace runnel::test
