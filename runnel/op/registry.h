#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/op/op_def.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {

template <class A, class T>
class OpBuilder;

// Every op of the program, by name. Filled once by the register_* functions listed in runnel.cpp, on first use.
class RUNNEL_API Registry {
 public:
  // Starts the declaration of an op; see op/builder.h.
  template <class A = NoAttrs>
  OpBuilder<A, Types<>> define(const char* name);
  // An older name of TensorFlow's for the same op with the same inputs and attributes.
  void alias(const char* older, const char* name);

  // A device's kernel for an op that is declared already; DType::invalid serves every dtype without one of its own.
  void set_kernel(std::string_view op, DeviceKind kind, DType dtype, KernelFn kernel);

  const OpDef& get(std::string_view name) const;  // throws Error (not found)
  const OpDef* find(std::string_view name) const;
  std::vector<const OpDef*> all() const;  // by name, without aliases
  const std::map<std::string, std::string, std::less<>>& aliases() const { return aliases_; }

 private:
  OpDef& add(const char* name);

  std::map<std::string, std::unique_ptr<OpDef>, std::less<>> ops_;
  std::map<std::string, std::string, std::less<>> aliases_;
};

RUNNEL_API const Registry& registry();
// For devices and tests that attach kernels to ops after start-up; not while other threads run ops.
RUNNEL_API Registry& mutable_registry();

}  // namespace runnel
