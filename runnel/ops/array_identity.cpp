// Ops that hand on their inputs.
#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"

namespace runnel {
namespace {

struct IdentityNAttrs {
  std::vector<DType> T;
  static constexpr auto fields() {
    return field_list(field("T", &IdentityNAttrs::T, {.required = true, .minimum = 1}));
  }
};

struct MessageAttrs {
  std::string message;
  static constexpr auto fields() { return field_list(field("message", &MessageAttrs::message)); }
};
struct DefaultAttrs {
  PartialShape shape = PartialShape::unknown();
  static constexpr auto fields() { return field_list(field("shape", &DefaultAttrs::shape, {.required = true})); }
};

// A handle of its own over the shared buffer: tapes tell input and output apart.
Tensor handed_on(const Tensor& t) { return t.with_shape(t.shape()); }

// What is built on the op relies on the shape that its attribute states.
void require_stated(const PartialShape& shape, const PartialShape& stated) {
  if (shape.compatible_with(stated)) return;
  throw invalid_argument("the input has shape {}, attribute shape says {}", shape.str(), stated.str());
}

}  // namespace

void register_array_identity(Registry& r) {
  r.define("Identity")
      .in("input", all_types)
      .out("output")
      .moves()
      .shape(like<0>)
      .same_as([](InferContext&) { return 0; })
      .forwards()
      .cpu([](KernelContext& c) { c.forward(0, handed_on(c.in(0))); })
      .grad([](const GradCtx& g) { return g.raw_dy(); })
      .grad_reads({})
      .doc("The input itself.")
      .sample({.in = {Tensor{1.f, 2.f}}, .out = {Tensor{1.f, 2.f}}})
      .sample({.in = {Tensor(1.f)}, .out = {Tensor(1.f)}});

  r.define<IdentityNAttrs>("IdentityN")
      .in_any_list("input", "T")
      .out_any_list("output", "T")
      .shape([](InferContext& c) {
        for (int i = 0; i < c.num_outputs(); ++i) c.output(i, c.input(i));
      })
      .forwards()
      .cpu([](KernelContext& c) {
        for (int i = 0; i < c.num_outputs(); ++i) c.forward(i, handed_on(c.in(i)));
      })
      .grad([](const GradCtx& g) {
        Gradients all;
        for (int i = 0; i < g.num_inputs(); ++i) all.push_back(g.raw_dy(i));
        return all;
      })
      .doc("The inputs themselves.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(3)}, .out = {Tensor{1.f, 2.f}, Tensor(3)}},
              {.T = {DType::float32, DType::int32}});

  r.define<MessageAttrs>("PreventGradient")
      .in("input", all_types)
      .out("output")
      .moves()
      .shape(like<0>)
      .forwards()
      .cpu([](KernelContext& c) { c.forward(0, handed_on(c.in(0))); })
      .grad([](const GradCtx&, const MessageAttrs& a) -> Gradients {
        throw make_error(Code::unimplemented, "the gradient is not to be taken: {}", a.message);
      })
      .doc("The input itself; to ask for its derivative is an error with the message.")
      .sample({.in = {Tensor{1, 2}}, .out = {Tensor{1, 2}}});

  r.define<DefaultAttrs>("PlaceholderWithDefault")
      .type("dtype", all_types)
      .in("input", "dtype")
      .out("output", "dtype")
      .shape([](InferContext& c, const DefaultAttrs& a) {
        require_stated(c.input(0), a.shape);
        c.output(c.input(0).merged_with(a.shape));
      })
      .forwards()
      .cpu([](KernelContext& c, const DefaultAttrs& a) {
        require_stated(c.in(0).shape(), a.shape);
        c.forward(0, handed_on(c.in(0)));
      })
      .grad([](const GradCtx& g) { return g.raw_dy(); })
      .grad_reads({})
      .doc("The input, unless a graph is given another value of the shape in its place.")
      .sample({.in = {Tensor{1.f, 2.f}}, .out = {Tensor{1.f, 2.f}}})
      .sample({.in = {Tensor{1.f, 2.f}}, .out = {Tensor{1.f, 2.f}}}, {.shape = PartialShape{2}})
      .sample({.in = {Tensor{1.f, 2.f}}, .error = "the input has shape [2], attribute shape says [3]"},
              {.shape = PartialShape{3}});

  r.define("StopGradient")
      .in("input", all_types)
      .out("output")
      .moves()
      .shape(like<0>)
      .same_as([](InferContext&) { return 0; })
      .forwards()
      .cpu([](KernelContext& c) { c.forward(0, handed_on(c.in(0))); })
      .not_differentiable()
      .doc("The input itself; its derivative is taken to be zero.")
      .sample({.in = {Tensor{1.f, 2.f}}, .out = {Tensor{1.f, 2.f}}})
      .sample({.in = {Tensor(1.f)}, .out = {Tensor(1.f)}});
}

Tensor identity(const Operand& input) {
  static const Op op("Identity");
  return op({input});
}

std::vector<Tensor> identity_n(const OperandList& input) {
  return composed(input.where(), [&]() -> std::vector<Tensor> {
    static const Op<IdentityNAttrs> op("IdentityN");
    const std::vector<Arg> args(input.values().begin(), input.values().end());
    IdentityNAttrs attrs;
    for (const Tensor& t : input.values()) attrs.T.push_back(t.dtype());
    return op.many(args, attrs, &input.where());
  });
}

Tensor stop_gradient(const Operand& input) {
  static const Op op("StopGradient");
  return op({input});
}

}  // namespace runnel
