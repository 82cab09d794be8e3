#pragma once

#include <initializer_list>

#include "runnel/op/op_def.h"

namespace runnel {

// What op/builder.h does that needs no template: a program declares many hundred ops, so each step is one call.
struct RUNNEL_API OpDeclaration {
  OpDef& def;

  OpDeclaration& type(const char* name, uint32_t allowed, DType default_type);

  OpDeclaration& in(const char* name);
  OpDeclaration& in(const char* name, DType fixed);
  OpDeclaration& in(const char* name, const char* type_var);
  OpDeclaration& in_host(const char* name, const char* type_var);
  OpDeclaration& in_host(const char* name, DType fixed);
  OpDeclaration& in_list(const char* name, const char* count, const char* type_var);
  OpDeclaration& in_list(const char* name, const char* count, DType fixed);
  OpDeclaration& in_any_list(const char* name, const char* types);

  OpDeclaration& out(const char* name);
  OpDeclaration& out(const char* name, DType fixed);
  OpDeclaration& out(const char* name, const char* type);
  OpDeclaration& out_list(const char* name, const char* count, const char* type);
  OpDeclaration& out_list(const char* name, const char* count, DType fixed);
  OpDeclaration& out_any_list(const char* name, const char* types);

  OpDeclaration& grad_reads(std::initializer_list<int> inputs, std::initializer_list<int> outputs);
  OpDeclaration& doc(const char* text);
  OpDeclaration& sample(const Sample& s, const void* attrs);

 private:
  int type_var_index(const char* name) const;
  OpDeclaration& add_input(ArgSpec arg);
  OpDeclaration& add_output(ArgSpec arg);
  OpDeclaration& add_output_of(ArgSpec arg, const char* type);
};

// The gradients of an op that has one by its first input only.
RUNNEL_API Gradients only_first_input(const GradCtx& g, Gradient first);

}  // namespace runnel
