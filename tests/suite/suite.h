#pragma once

// The generic suite: every check runs over every sample of every op, so that declaring an op tests it.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "runnel/op/dispatch.h"
#include "runnel/op/registry.h"
#include "runnel/ops/state.h"

namespace runnel::test {

// One sample of one op.
struct Case {
  const OpDef* op;
  int index;

  const Sample& sample() const { return op->samples[static_cast<size_t>(index)]; }
  const void* attrs() const { return sample().attrs.get(); }
  std::vector<Tensor> inputs() const { return sample().make ? sample().make() : sample().in; }
  std::string name() const { return op->name + " sample " + std::to_string(index); }
};
inline std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name(); }

// Per sample and per op.
class Suite : public ::testing::TestWithParam<Case> {};
struct Declared {
  const OpDef* op;
};
inline std::ostream& operator<<(std::ostream& out, const Declared& d) { return out << d.op->name; }
class Declaration : public ::testing::TestWithParam<Declared> {};

// The checks themselves, as functions, so that a test of the suite can run them on ops that are wrong.
void check_values(const Case& c);
void check_dtypes(const Case& c);
void check_inferred_shapes(const Case& c);
void check_partial_shapes(const Case& c);
void check_gradient(const Case& c);
void check_second_gradient(const Case& c);
void check_complex_gradient(const Case& c);
void check_wrong_dtype(const Case& c);
void check_input_count(const Case& c);
void check_gradient_reads(const Case& c);
void check_same_bits(const Case& c);
void check_large(const Case& c);
void check_empty(const Case& c);
void check_attributes(const Case& c);
void check_traced(const Case& c);
void check_traced_errors(const Case& c);
void check_traced_gradients(const Case& c);
void check_lanes(const Case& c);
void check_declaration(const OpDef& op);
void check_kernels(const OpDef& op);
void check_derivative(const OpDef& op);

inline std::vector<Tensor> run(const OpDef& op, const std::vector<Tensor>& inputs, const void* attrs,
                               SourceSite where = SourceSite::current()) {
  std::vector<const Tensor*> in;
  for (const Tensor& t : inputs) in.push_back(&t);
  std::vector<Tensor> out(static_cast<size_t>(op.num_outputs(attrs)));
  dispatch(op, in, attrs, out.data(), static_cast<int>(out.size()), where);
  return out;
}

inline const ArgSpec& input_spec(const OpDef& op, const std::vector<Tensor>& inputs, size_t i) {
  return op.input_spec(static_cast<int>(i), static_cast<int>(inputs.size()));
}

// The spec of output number `flat`.
inline const ArgSpec& output_spec(const OpDef& op, const void* attrs, int flat) {
  for (const ArgSpec& arg : op.outputs) {
    int n = 1;
    if (!arg.count.empty()) n = static_cast<int>(std::get<int64_t>(op.attrs.find(arg.count)->get(attrs)));
    if (!arg.type_list_attr.empty()) {
      n = static_cast<int>(std::get<std::vector<DType>>(op.attrs.find(arg.type_list_attr)->get(attrs)).size());
    }
    if (flat < n) return arg;
    flat -= n;
  }
  return op.outputs.back();
}

inline bool may_be_float(const OpDef& op, const ArgSpec& arg) {
  constexpr uint32_t kFloats = floating_or_complex.mask;
  if (arg.type_var >= 0) return (op.type_vars[static_cast<size_t>(arg.type_var)].allowed & kFloats) != 0;
  return is_float(arg.dtype) || is_complex(arg.dtype);
}

inline bool has_handles(const OpDef& op) {
  auto handle = [](const ArgSpec& a) { return a.dtype == DType::resource || a.dtype == DType::variant; };
  for (const ArgSpec& a : op.inputs) {
    if (handle(a)) return true;
  }
  for (const ArgSpec& a : op.outputs) {
    if (handle(a)) return true;
  }
  return false;
}

// The dtype that the inputs of type variable `v` have; invalid when no input has it.
inline DType bound_dtype(const OpDef& op, const std::vector<Tensor>& inputs, int v) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (input_spec(op, inputs, i).type_var == v) return inputs[i].dtype();
  }
  return DType::invalid;
}

inline std::string describe(const std::vector<Tensor>& tensors) {
  std::string text;
  for (const Tensor& t : tensors) {
    if (!text.empty()) text += ", ";
    text += t.defined() ? std::string(dtype_name(t.dtype())) + t.partial_shape().str() : "nothing";
  }
  return text;
}

}  // namespace runnel::test
