#pragma once

#include <array>
#include <string>
#include <vector>

#include "runnel/op/attr.h"
#include "runnel/op/context.h"
#include "runnel/op/gradient.h"

namespace runnel {

class Lane;

using InferFn = void (*)(InferContext&);
using KernelFn = void (*)(KernelContext&);
using GradFn = Gradients (*)(const GradCtx&, const void* attrs);
// The input that the only output equals bit for bit, as far as shapes (the output's too) and known values tell, or -1.
using SameFn = int (*)(InferContext&);
// What the op does to one float, written down: called with as many inputs as the op has (lane.h).
using LaneFn = Lane (*)(const Lane* inputs, const void* attrs);
// The floating-point operations of a call that ran, a multiplication and an addition counted apart.
using FlopsFn = double (*)(const KernelContext&);
// The same results from public ops.
using DecomposeFn = std::vector<Tensor> (*)(const std::vector<Tensor>& inputs, const void* attrs);

// A type attribute that inputs share ("T"): its value is the dtype of the inputs declared with it.
struct TypeVar {
  std::string name;
  uint32_t allowed;                     // mask of DTypes
  DType default_type = DType::invalid;  // none: a graph in a file must say it

  bool allows(DType t) const { return (allowed >> static_cast<int>(t) & 1) != 0; }
  // For a number that no tensor gives a dtype and that has one of its own which is not allowed.
  DType dtype_of_literals() const {
    if (default_type != DType::invalid) return default_type;
    return allows(DType::float32) || !allows(DType::int32) ? DType::float32 : DType::int32;
  }
};

struct ArgSpec {
  std::string name;
  // The dtype comes from exactly one of these four:
  int type_var = -1;             // index into OpDef::type_vars
  DType dtype = DType::invalid;  // fixed
  std::string type_attr;         // a DType attribute (outputs only)
  std::string type_list_attr;    // a list(type) attribute, which also gives the count
  std::string count;             // lists: the name of their length ("N"); outputs: an int attribute
  // Lists among the inputs: their smallest length, as the minimum of the attribute that follows from it.
  int64_t fewest = AttrRule::kNoMinimum;
  bool host_memory = false;  // read by the host to decide what to do (axes, shapes), or made for that

  bool is_list() const { return !count.empty() || !type_list_attr.empty(); }
};

// A call with known result: the op's examples, its tests and its timing in one.
struct RUNNEL_API Sample {
  ~Sample();  // not in every file that declares ops

  std::vector<Tensor> in;
  std::vector<Tensor> out;     // expected; empty: only the derived checks run
  double tolerance = 1e-5;     // relative and absolute, of float32 results
  bool differentiable = true;  // false at kinks and where the output is piecewise constant
  // Complex results are known up to phases (of eigenvectors): they may jump between calls, so that differences tell
  // nothing of their derivative. A test of the op weighs them without.
  bool free_phases = false;
  std::vector<int> fixed;  // inputs that the op has no derivative by
  std::string error;       // when set, the call must fail and its message contain this
  // For ops on state: makes the inputs anew for every run, in place of `in`.
  std::vector<Tensor> (*make)() = nullptr;
  std::vector<Tensor> after;  // what the variables among the inputs hold after the call; empty: not checked
  SharedAttrs attrs;          // set by the builder
};

// One operation, declared once: everything else (eager calls, tape, graphs, docs, listing, tests) is derived.
struct RUNNEL_API OpDef {
  std::string name;
  std::string doc;
  std::vector<TypeVar> type_vars;
  std::vector<ArgSpec> inputs;
  std::vector<ArgSpec> outputs;
  AttrTable attrs;
  InferFn infer = nullptr;
  // [device kind][dtype of the first type variable]; entry 0 (DType::invalid) serves every dtype.
  std::array<std::array<KernelFn, kNumDTypes>, kMaxDeviceKinds> kernels{};
  GradFn grad = nullptr;
  // Bit i: the gradient reads the value of input (output) i, and not its shape and dtype alone. A tape lets go of large
  // values that no gradient will read. (Integers, and so inputs in host memory, it always keeps.)
  uint64_t grad_reads_inputs = ~uint64_t{0};
  uint64_t grad_reads_outputs = ~uint64_t{0};
  bool grad_reads_input(int i) const { return (grad_reads_inputs >> (i < 63 ? i : 63) & 1) != 0; }
  bool grad_reads_output(int i) const { return (grad_reads_outputs >> (i < 63 ? i : 63) & 1) != 0; }
  std::vector<Sample> samples;

  // For profiles. Those of an elementwise op that says nothing are the elements of its outputs.
  FlopsFn flops = nullptr;

  bool elementwise = false;
  bool commutative = false;
  bool stateful = false;  // reads or changes state: never folded, merged or reordered
  // Outputs consist of elements of the inputs that have their type; the other inputs (axes, positions) say of which.
  bool moves = false;
  bool forwards = false;            // the kernel hands on a buffer itself: no output is allocated for it
  bool not_differentiable = false;  // floating inputs and outputs, but no derivative by design
  bool reads_variable = false;      // makes a tape watch the trainable variable it reads
  // The host's kernel serves tensors of every device: it holds them, hands them on or runs graphs of them, and what it
  // has to read it asks for on the host.
  bool any_device = false;
  // The kernel runs code of the program, or functions that may: exceptions that are no Error are the program's own.
  bool runs_code = false;

  // What passes over graphs go by:
  SameFn same_as = nullptr;
  LaneFn lane = nullptr;            // of elementwise ops that can be compiled together with others
  DecomposeFn decompose = nullptr;  // of ops that TensorFlow does not have: how it says the same
  const char* fused = nullptr;      // the op that does this one and then others that have a post_op
  const char* post_op = nullptr;    // what those ops call this one
  const char* packed = nullptr;     // the op that keeps input 1, a variable's value, in the layout its kernel wants
  bool (*packs)(InferContext&) = nullptr;  // does that pay for this call?
  const char* many = nullptr;              // the op that does any number of calls of this one

  bool has_list_input = false;  // set by the builder
  int num_outputs(const void* attr_values) const;
  // Can the lists among the inputs share out this many inputs?
  bool fits_input_count(int total) const;
  // The spec that input number `flat` of a call with `total` inputs belongs to.
  const ArgSpec& input_spec(int flat, int total) const;
  std::string input_name(int flat) const;  // for messages
  // Where output i is kept when the op runs on `device`: strings, handles and what is made for the host stay there.
  Device& output_home(int i, DType dtype, Device& device) const {
    return device.is_host() ? device : device_output_home(i, dtype, device);
  }
  Device& device_output_home(int i, DType dtype, Device& device) const;
  KernelFn kernel(DeviceKind kind, DType key) const {
    const auto& table = kernels[static_cast<size_t>(kind)];
    KernelFn k = table[static_cast<size_t>(key)];
    return k ? k : table[0];
  }
};

}  // namespace runnel
