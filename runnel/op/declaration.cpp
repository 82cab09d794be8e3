#include "runnel/op/declaration.h"

#include <cassert>
#include <utility>
#include "runnel/tensor/type_sets.h"

namespace runnel {

OpDeclaration& OpDeclaration::type(const char* name, uint32_t allowed, DType default_type) {
  def.type_vars.push_back({name, allowed, default_type});
  return *this;
}

OpDeclaration& OpDeclaration::in(const char* name) { return add_input({.name = name, .type_var = 0}); }
OpDeclaration& OpDeclaration::in(const char* name, DType fixed) { return add_input({.name = name, .dtype = fixed}); }
OpDeclaration& OpDeclaration::in(const char* name, const char* type_var) {
  return add_input({.name = name, .type_var = type_var_index(type_var)});
}

OpDeclaration& OpDeclaration::in_host(const char* name, const char* type_var) {
  int var = type_var_index(type_var);
  if (var < 0) {
    assert(!def.type_vars.empty() && "declare the kernel's type variable first");
    type(type_var, decltype(index_types)::mask, DType::int32);
    var = static_cast<int>(def.type_vars.size()) - 1;
  }
  return add_input({.name = name, .type_var = var, .host_memory = true});
}
OpDeclaration& OpDeclaration::in_host(const char* name, DType fixed) {
  return add_input({.name = name, .dtype = fixed, .host_memory = true});
}

OpDeclaration& OpDeclaration::in_list(const char* name, const char* count, const char* type_var) {
  return add_input({.name = name, .type_var = type_var_index(type_var), .count = count});
}
OpDeclaration& OpDeclaration::in_list(const char* name, const char* count, DType fixed) {
  return add_input({.name = name, .dtype = fixed, .count = count});
}
OpDeclaration& OpDeclaration::in_any_list(const char* name, const char* types) {
  return add_input({.name = name, .type_list_attr = types});
}

OpDeclaration& OpDeclaration::out(const char* name) { return add_output({.name = name, .type_var = 0}); }
OpDeclaration& OpDeclaration::out(const char* name, DType fixed) { return add_output({.name = name, .dtype = fixed}); }
OpDeclaration& OpDeclaration::out(const char* name, const char* type) { return add_output_of({.name = name}, type); }

OpDeclaration& OpDeclaration::out_list(const char* name, const char* count, const char* type) {
  assert(def.attrs.find(count));
  return add_output_of({.name = name, .count = count}, type);
}
OpDeclaration& OpDeclaration::out_list(const char* name, const char* count, DType fixed) {
  return add_output({.name = name, .dtype = fixed, .count = count});
}
OpDeclaration& OpDeclaration::out_any_list(const char* name, const char* types) {
  return add_output({.name = name, .type_list_attr = types});
}

OpDeclaration& OpDeclaration::grad_reads(std::initializer_list<int> inputs, std::initializer_list<int> outputs) {
  def.grad_reads_inputs = def.grad_reads_outputs = 0;
  for (int i : inputs) def.grad_reads_inputs |= uint64_t{1} << i;
  for (int i : outputs) def.grad_reads_outputs |= uint64_t{1} << i;
  return *this;
}

OpDeclaration& OpDeclaration::doc(const char* text) {
  def.doc = text;
  return *this;
}

OpDeclaration& OpDeclaration::sample(const Sample& s, const void* attrs) {
  def.samples.push_back(s);
  if (def.attrs.copy) def.samples.back().attrs = def.attrs.copy(attrs);
  return *this;
}

int OpDeclaration::type_var_index(const char* name) const {
  for (size_t i = 0; i < def.type_vars.size(); ++i) {
    if (def.type_vars[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

OpDeclaration& OpDeclaration::add_input(ArgSpec arg) {
  def.has_list_input = def.has_list_input || arg.is_list();
  def.inputs.push_back(std::move(arg));
  return *this;
}

OpDeclaration& OpDeclaration::add_output(ArgSpec arg) {
  def.outputs.push_back(std::move(arg));
  return *this;
}

// Of a type variable or of a DType attribute.
OpDeclaration& OpDeclaration::add_output_of(ArgSpec arg, const char* type) {
  arg.type_var = type_var_index(type);
  if (arg.type_var < 0) {
    assert(def.attrs.find(type));
    arg.type_attr = type;
  }
  return add_output(std::move(arg));
}

Gradients only_first_input(const GradCtx& g, Gradient first) {
  Gradients all(static_cast<size_t>(g.num_inputs()));
  all[0] = std::move(first);
  return all;
}

}  // namespace runnel
