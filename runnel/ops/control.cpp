// Ops that act on the world outside: printing, assertions, callbacks.
#include "runnel/ops/control.h"

#include <chrono>
#include <cstdio>

#include "runnel/base/format.h"
#include "runnel/base/stack.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/unrecorded.h"
#include "runnel/ops/strings.h"
#include "runnel/tensor/summary_text.h"

namespace runnel {
namespace {

struct PrintAttrs {
  std::string output_stream = "stderr";
  std::string end = "\n";
  static constexpr auto fields() {
    return field_list(field("output_stream", &PrintAttrs::output_stream), field("end", &PrintAttrs::end));
  }
};

struct AssertAttrs {
  std::vector<DType> T;
  int64_t summarize = 3;
  static constexpr auto fields() {
    return field_list(field("T", &AssertAttrs::T, {.required = true, .minimum = 1}),
                      field("summarize", &AssertAttrs::summarize));
  }
};

struct HostBody : FunctionBody {
  HostFunction f;
};

struct HostCallAttrs {
  FuncAttr f;
  std::vector<DType> Tin;
  std::vector<DType> Tout;
  std::vector<PartialShape> output_shapes;
  static constexpr auto fields() {
    return field_list(field("f", &HostCallAttrs::f), field("Tin", &HostCallAttrs::Tin),
                      field("Tout", &HostCallAttrs::Tout), field("_output_shapes", &HostCallAttrs::output_shapes));
  }
};

void call_host(KernelContext& c, const HostCallAttrs& a) {
  const auto* body = dynamic_cast<const HostBody*>(a.f.body.get());
  if (!body) throw make_error(Code::failed_precondition, "the callback is not in this program");
  if (!stack_has_room()) {
    throw make_error(
        Code::resource_exhausted,
        "the calls inside one another have used up the stack: a callback that calls itself must come to an "
        "end");
  }
  std::vector<Tensor> in;
  for (int i = 0; i < c.num_inputs(); ++i) in.push_back(c.in(i).to_host());
  const Unrecorded unrecorded;
  const ContextScope<&ThreadContext::call_site> own_lines(nullptr);
  std::vector<Tensor> out = body->f(in);
  if (out.size() != a.Tout.size()) {
    throw invalid_argument("the callback returned {} tensors, {} were declared", out.size(), a.Tout.size());
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].defined() || out[i].dtype() != a.Tout[i]) {
      throw invalid_argument("result {} of the callback must be {}, got {}", i, dtype_name(a.Tout[i]),
                             out[i].defined() ? dtype_name(out[i].dtype()) : "nothing");
    }
    if (i < a.output_shapes.size() && !a.output_shapes[i].compatible_with(out[i].shape())) {
      throw invalid_argument("result {} of the callback must have shape {}, got {}", i, a.output_shapes[i].str(),
                             out[i].shape().str());
    }
    c.forward(static_cast<int>(i), out[i].with_shape(out[i].shape()));
  }
}

}  // namespace

void register_control(Registry& r);

void register_control(Registry& r) {
  r.define("Timestamp")
      .out("ts", DType::float64)
      .shape(scalar_shape)
      .cpu([](KernelContext& c) {
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        *c.out<double>() = std::chrono::duration<double>(now).count();
      })
      .stateful()
      .doc("Seconds since 1970.")
      .sample({});

  r.define<PrintAttrs>("PrintV2")
      .in("input", DType::string)
      .shape([](InferContext&) {})
      .cpu([](KernelContext& c, const PrintAttrs& a) {
        std::FILE* stream = a.output_stream == "stdout" ? stdout : stderr;
        if (stream == stderr && a.output_stream != "stderr") {
          throw invalid_argument("output_stream must be \"stdout\" or \"stderr\", got \"{}\"", a.output_stream);
        }
        const std::string text = c.in(0).item<std::string>() + a.end;
        std::fwrite(text.data(), 1, text.size(), stream);
        std::fflush(stream);
      })
      .stateful()
      .doc("Writes a text.");

  r.define<AssertAttrs>("Assert")
      .in("condition", DType::bool_)
      .in_any_list("data", "T")
      .shape([](InferContext& c) { c.require_rank(0, 0); })
      .cpu([](KernelContext& c, const AssertAttrs& a) {
        if (c.in(0).item<bool>()) return;
        std::string data;
        for (int i = 1; i < c.num_inputs(); ++i) data += fmt::format(" [{}]", summary_text(c.in(i), a.summarize));
        throw invalid_argument("assertion failed:{}", data);
      })
      .any_device()
      .stateful()
      .doc("Fails, showing `data`, unless the condition is true.")
      .sample({.in = {Tensor(true), Tensor{1, 2}}}, {.T = {DType::int32}})
      .sample({.in = {Tensor(false), Tensor{1, 2}}, .error = "assertion failed: [[1 2]]"}, {.T = {DType::int32}})
      .sample({.in = {Tensor{true}, Tensor{1, 2}}, .error = "must have rank 0"}, {.T = {DType::int32}});

  r.define<HostCallAttrs>("_HostCall")
      .in_any_list("input", "Tin")
      .out_any_list("output", "Tout")
      .shape([](InferContext& c, const HostCallAttrs& a) {
        for (int i = 0; i < c.num_outputs(); ++i) {
          const auto k = static_cast<size_t>(i);
          c.output(i, k < a.output_shapes.size() ? a.output_shapes[k] : PartialShape::unknown());
        }
      })
      .forwards()
      .cpu([](KernelContext& c, const HostCallAttrs& a) { call_host(c, a); })
      .any_device()
      .runs_code()
      .stateful()
      .doc("Calls back into the program.");
}

void detail::print_pieces(std::span<const PrintPiece> pieces, const PrintOptions& options) {
  static const Op<PrintAttrs> op("PrintV2");
  const std::string hole = "\x01";
  std::string text;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) text += options.sep;
    if (pieces[i].tensor.defined()) {
      text += hole;
      tensors.push_back(pieces[i].tensor);
    } else {
      text += pieces[i].text;
    }
  }
  composed(SourceSite(), [&] {  // the line of the call is not known
    const Tensor line = tensors.empty() ? Tensor(text) : strings::format(text, tensors, hole, options.summarize);
    op.many({line}, {.output_stream = options.output_stream, .end = options.end});
  });
}

void assert_(const Operand& condition, const std::vector<Tensor>& data, int64_t summarize) {
  composed(condition.where(), [&] {
    static const Op<AssertAttrs> op("Assert");
    AssertAttrs attrs{.summarize = summarize};
    std::vector<Arg> args{condition};
    const std::vector<Tensor> shown = data.empty() ? std::vector{Tensor("the condition is false")} : data;
    for (const Tensor& t : shown) {
      attrs.T.push_back(t.dtype());
      args.emplace_back(t);
    }
    op.many(args, attrs);
  });
}

std::vector<Tensor> host_call(HostFunction f, const OperandList& inputs, const std::vector<DType>& output_dtypes,
                              const std::vector<PartialShape>& output_shapes) {
  static const Op<HostCallAttrs> op("_HostCall");
  auto body = std::make_shared<HostBody>();
  body->f = std::move(f);
  HostCallAttrs attrs{.f = {"host_call", std::move(body)}, .Tout = output_dtypes, .output_shapes = output_shapes};
  std::vector<Arg> args;
  composed(inputs.where(), [&] {
    for (const Tensor& t : inputs.values()) {
      attrs.Tin.push_back(t.dtype());
      args.emplace_back(t);
    }
  });
  return op.many(args, attrs, &inputs.where());
}

Tensor timestamp(SourceSite where) {
  static const Op op("Timestamp");
  return op({}, {}, &where);
}

}  // namespace runnel
