#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "runnel/base/source_site.h"
#include "runnel/op/gradient.h"
#include "runnel/op/op_def.h"
#include "runnel/op/operand.h"

namespace runnel {

// Takes every op call of this thread instead of running it: the tracer.
class RUNNEL_API Interceptor {
 public:
  virtual ~Interceptor() = default;
  virtual void call(const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs, int num_outputs,
                    const SourceSite& where) = 0;
  // The value of a tensor of the graph for something that outlives the trace (a variable's initial value).
  virtual Tensor outside(const Tensor& symbolic) = 0;
  virtual void variable_created(const std::string& name) = 0;
  // A tensor of the graph with a derivative of its own by `inputs`, in place of that of the ops that made it.
  virtual Tensor with_gradient(const Tensor& value, const std::vector<Tensor>& inputs,
                               const std::function<Gradients(const Tensor& dy)>& grad) = 0;
};

// Is told of every op call of this thread after it ran: the tape.
class RUNNEL_API Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void record(const OpDef& op, Inputs inputs, const void* attrs, const Tensor* outputs, int num_outputs) = 0;
};

// The hooks of the current thread, as its ThreadContext has them.
RUNNEL_API Interceptor* current_interceptor();
RUNNEL_API Recorder* current_recorder();
RUNNEL_API uint64_t new_tape_level();  // a number that no tape of this thread has yet

// Checks the inputs of a call against the op's declaration (symbolic ones too), writes the dtypes of its outputs and
// returns the dtype that selects the kernel.
RUNNEL_API DType resolve_types(const OpDef& op, Inputs inputs, const void* attrs, DType* output_dtypes);

// Runs one op: checks dtypes, infers shapes, allocates outputs, calls the kernel, tells the recorder.
// `num_outputs` is op.num_outputs(attrs).
RUNNEL_API void dispatch(const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs, int num_outputs,
                         const SourceSite& where);

// By name, with attributes as values: what Python, graphs and tools use.
RUNNEL_API std::vector<Tensor> call_op(const std::string& name, const std::vector<Tensor>& inputs,
                                       const std::vector<std::pair<std::string, AttrValue>>& attrs = {},
                                       SourceSite where = SourceSite::current());

// An argument of a typed call: an operand, or a tensor made inside the public function.
struct Arg {
  Arg(const Operand& o) : operand(&o) {}  // NOLINT: implicit
  Arg(const Tensor& t) : tensor(&t) {}    // NOLINT: implicit
  const Operand* operand = nullptr;
  const Tensor* tensor = nullptr;
};

// The typed front of an OpDef, held as a function-local static by the public function of the op:
//   Tensor leaky_relu(const Operand& features, double alpha) {
//     static const Op<LeakyReluAttrs> op("LeakyRelu");
//     return op({features}, {.alpha = alpha});
//   }
RUNNEL_API void call_typed(const OpDef& op, std::span<const Arg> args, const void* attrs, Tensor* outputs,
                           int num_outputs, const SourceSite* where);

template <class A = NoAttrs>
class Op {
 public:
  explicit Op(const char* name);  // looks the op up in the registry

  // For ops with one output. `where` is needed only by ops without operands.
  Tensor operator()(std::initializer_list<Arg> args, const A& attrs = {}, const SourceSite* where = nullptr) const {
    Tensor out;
    call_typed(def_, args, &attrs, &out, 1, where);
    return out;
  }
  std::vector<Tensor> many(std::initializer_list<Arg> args, const A& attrs = {},
                           const SourceSite* where = nullptr) const {
    return many(std::span<const Arg>(args.begin(), args.size()), attrs, where);
  }
  std::vector<Tensor> many(std::span<const Arg> args, const A& attrs = {}, const SourceSite* where = nullptr) const {
    std::vector<Tensor> out(static_cast<size_t>(def_.num_outputs(&attrs)));
    call_typed(def_, args, &attrs, out.data(), static_cast<int>(out.size()), where);
    return out;
  }
  // For ops with list inputs and one output.
  Tensor list(const std::vector<Arg>& args, const A& attrs = {}, const SourceSite* where = nullptr) const {
    Tensor out;
    call_typed(def_, args, &attrs, &out, 1, where);
    return out;
  }
  const OpDef& def() const { return def_; }

 private:
  const OpDef& def_;
};

RUNNEL_API const OpDef& registered_op(const char* name);
template <class A>
Op<A>::Op(const char* name) : def_(registered_op(name)) {}

// The message of an error of an op: "[MatMul] inner dimensions differ: [2,3] x [4,5]; inputs a: float32[2,3], ...".
RUNNEL_API std::string describe_call(const OpDef& op, Inputs inputs);

}  // namespace runnel
