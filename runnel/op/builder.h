#pragma once

#include <concepts>
#include <initializer_list>

#include "runnel/op/declaration.h"
#include "runnel/op/registry.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {

// Declares one op, piece by piece:
//
//   r.define<LeakyReluAttrs>("LeakyRelu")
//       .in("features", floating).out("activations").shape(like<0>)
//       .cpu(elementwise([](auto x, const auto& a) { return x > 0 ? x : x * decltype(x)(a.alpha); }))
//       .grad([](const GradCtx& g, const LeakyReluAttrs& a) { ... return Gradients{...}; })
//       .doc("max(x, alpha * x)")
//       .sample({.in = {Tensor{-1.f, 0.5f, 2.f}}, .out = {Tensor{-.2f, 0.5f, 2.f}}});
//
// A is the attribute struct; T the set of types of the first type variable, for which kernels are made.
template <class A, class T>
class OpBuilder {
 public:
  explicit OpBuilder(OpDef& def) : declaration_{def} {}

  // Declares a type variable; the first one ("T" unless named) selects kernels.
  template <class... Ts>
  auto type(const char* name, Types<Ts...> set, DType default_type = DType::invalid) {
    declaration_.type(name, set.mask, default_type);
    if constexpr (std::is_same_v<T, Types<>>) {
      return OpBuilder<A, Types<Ts...>>(declaration_.def);
    } else {
      return *this;
    }
  }

  // An input of the first type variable, declaring it as "T" when `set` is given.
  template <class... Ts>
  auto in(const char* name, Types<Ts...> set, DType default_type = DType::invalid) {
    auto next = type("T", set, default_type);
    next.in(name);
    return next;
  }
  OpBuilder& in(const char* name) { return did(declaration_.in(name)); }
  OpBuilder& in(const char* name, DType fixed) { return did(declaration_.in(name, fixed)); }
  OpBuilder& in(const char* name, const char* type_var) { return did(declaration_.in(name, type_var)); }
  // An input that decides what is done (axes, shapes): int32 or int64, read on the host. Declares its type
  // variable, int32 unless a tensor says otherwise.
  OpBuilder& in_host(const char* name, const char* type_var) { return did(declaration_.in_host(name, type_var)); }
  OpBuilder& in_host(const char* name, DType fixed) { return did(declaration_.in_host(name, fixed)); }
  // A list of inputs of one type; its length is called `count`.
  OpBuilder& in_list(const char* name, const char* count, const char* type_var = "T") {
    return did(declaration_.in_list(name, count, type_var));
  }
  OpBuilder& in_list(const char* name, const char* count, DType fixed) {
    return did(declaration_.in_list(name, count, fixed));
  }
  // A list of inputs of any types; their dtypes are the list called `types`.
  OpBuilder& in_any_list(const char* name, const char* types) { return did(declaration_.in_any_list(name, types)); }
  // The list declared last has that many inputs or more. (Where an attribute repeats its length, the field says it.)
  OpBuilder& at_least(int64_t fewest) {
    declaration_.def.inputs.back().fewest = fewest;
    return *this;
  }

  OpBuilder& out(const char* name) { return did(declaration_.out(name)); }
  OpBuilder& out(const char* name, DType fixed) { return did(declaration_.out(name, fixed)); }
  // Of a type variable or of a DType attribute of that name.
  OpBuilder& out(const char* name, const char* type) { return did(declaration_.out(name, type)); }
  // Sizes, axes and their like, which the host reads next: kept in its memory whatever device the inputs are on.
  template <class Type>  // as for out(): a name or a DType
  OpBuilder& out_host(const char* name, Type type) {
    out(name, type);
    declaration_.def.outputs.back().host_memory = true;
    return *this;
  }
  // As many outputs as the int attribute `count` says, of a type variable or of a DType attribute.
  OpBuilder& out_list(const char* name, const char* count, const char* type = "T") {
    return did(declaration_.out_list(name, count, type));
  }
  OpBuilder& out_list(const char* name, const char* count, DType fixed) {
    return did(declaration_.out_list(name, count, fixed));
  }
  OpBuilder& out_any_list(const char* name, const char* types) { return did(declaration_.out_any_list(name, types)); }

  // A function of (InferContext&) or (InferContext&, const A&): a captureless lambda or a plain function.
  OpBuilder& shape(InferFn f) {
    declaration_.def.infer = f;
    return *this;
  }
  template <class F>
    requires std::invocable<F, InferContext&, const A&>
  OpBuilder& shape(F) {
    static_assert(std::is_empty_v<F>, "a function of the attributes must be given as a captureless lambda");
    declaration_.def.infer = [](InferContext& c) { F{}(c, c.template attrs<A>()); };
    return *this;
  }

  // Kernels for the host. K is one of
  //   a captureless lambda (KernelContext&) or (KernelContext&, const A&): one kernel for every dtype;
  //   a captureless lambda with a template parameter, []<class E>(KernelContext&, const A&): one per type of T;
  //   a kernel maker such as elementwise(...), which has `template <class E, class A> static void run(KernelContext&)`.
  template <class K>
  OpBuilder& cpu(K kernel) {
    return kernel_for(kCpu, T{}, kernel);
  }
  template <class... Ts, class K>
  OpBuilder& cpu(Types<Ts...> only, K kernel) {
    return kernel_for(kCpu, only, kernel);
  }

  // (const GradCtx&) or (const GradCtx&, const A&), giving one Tensor (an op of one differentiable input, the
  // first) or Gradients, one per input, {} where there is none. Written with public ops.
  template <class F>
  OpBuilder& grad(F) {
    static_assert(std::is_empty_v<F>, "a gradient must be given as a captureless lambda");
    declaration_.def.grad = [](const GradCtx& g, const void* attrs) -> Gradients {
      auto call = [&] {
        if constexpr (std::invocable<F, const GradCtx&>) {
          return F{}(g);
        } else {
          return F{}(g, *static_cast<const A*>(attrs));
        }
      };
      if constexpr (std::is_same_v<decltype(call()), Gradients>) {
        return call();
      } else {
        return only_first_input(g, call());
      }
    };
    return *this;
  }

  // The inputs and outputs whose values the gradient reads, when it makes do with the shapes of the others.
  OpBuilder& grad_reads(std::initializer_list<int> inputs, std::initializer_list<int> outputs = {}) {
    return did(declaration_.grad_reads(inputs, outputs));
  }

  // (const KernelContext&) or (const KernelContext&, const A&) giving a double: the floating-point operations, by
  // shapes.
  template <class F>
  OpBuilder& flops(F) {
    static_assert(std::is_empty_v<F>, "a captureless lambda, please");
    declaration_.def.flops = [](const KernelContext& c) -> double {
      if constexpr (std::invocable<F, const KernelContext&>) {
        return F{}(c);
      } else {
        return F{}(c, c.template attrs<A>());
      }
    };
    return *this;
  }

  OpBuilder& doc(const char* text) { return did(declaration_.doc(text)); }
  OpBuilder& sample(const Sample& s, const A& attrs = {}) { return did(declaration_.sample(s, &attrs)); }

  // For passes: see OpDef. Captureless lambdas.
  OpBuilder& same_as(SameFn f) {
    declaration_.def.same_as = f;
    return *this;
  }
  // (const std::vector<Tensor>& inputs, const A&) giving the outputs.
  template <class F>
  OpBuilder& decompose(F) {
    declaration_.def.decompose = [](const std::vector<Tensor>& inputs, const void* attrs) -> std::vector<Tensor> {
      return F{}(inputs, *static_cast<const A*>(attrs));
    };
    return *this;
  }
  OpBuilder& fused_by(const char* op) {
    declaration_.def.fused = op;
    return *this;
  }
  OpBuilder& post_op(const char* name) {
    declaration_.def.post_op = name;
    return *this;
  }
  OpBuilder& packed_by(const char* op, bool (*pays)(InferContext&)) {
    declaration_.def.packed = op;
    declaration_.def.packs = pays;
    return *this;
  }
  OpBuilder& many_by(const char* op) {
    declaration_.def.many = op;
    return *this;
  }

  OpBuilder& elementwise_op() { return flag(&OpDef::elementwise); }
  OpBuilder& commutative() { return flag(&OpDef::commutative); }
  OpBuilder& stateful() { return flag(&OpDef::stateful); }
  OpBuilder& not_differentiable() { return flag(&OpDef::not_differentiable); }
  OpBuilder& moves() { return flag(&OpDef::moves); }
  OpBuilder& forwards() { return flag(&OpDef::forwards); }
  OpBuilder& reads_variable() { return flag(&OpDef::reads_variable); }
  OpBuilder& any_device() { return flag(&OpDef::any_device); }
  OpBuilder& runs_code() { return flag(&OpDef::runs_code); }

 private:
  template <class... Ts, class K>
  OpBuilder& kernel_for(DeviceKind kind, Types<Ts...>, K) {
    static_assert(std::is_empty_v<K>, "a captureless lambda, please: a function's address would be lost");
    auto& table = declaration_.def.kernels[static_cast<size_t>(kind)];
    if constexpr (requires { K::is_elementwise; }) declaration_.def.elementwise = true;
    if constexpr (requires { &K::template lane<A>; }) declaration_.def.lane = &K::template lane<A>;
    if constexpr (std::invocable<K, KernelContext&>) {
      table[0] = [](KernelContext& c) { K{}(c); };
    } else if constexpr (std::invocable<K, KernelContext&, const A&>) {
      table[0] = [](KernelContext& c) { K{}(c, c.template attrs<A>()); };
    } else {
      // Without a type variable all calls have one kernel.
      const bool one = declaration_.def.type_vars.empty();
      ((table[one ? 0 : static_cast<size_t>(dtype_of<Ts>)] = &run_typed<K, Ts>), ...);
    }
    return *this;
  }
  template <class K, class E>
  static void run_typed(KernelContext& c) {
    if constexpr (requires { K::template run<E, A>(c); }) {
      K::template run<E, A>(c);
    } else if constexpr (requires { K{}.template operator()<E>(c, c.template attrs<A>()); }) {
      K{}.template operator()<E>(c, c.template attrs<A>());
    } else {
      K{}.template operator()<E>(c);
    }
  }

  OpBuilder& did(OpDeclaration&) { return *this; }
  OpBuilder& flag(bool OpDef::*member) {
    declaration_.def.*member = true;
    return *this;
  }

  OpDeclaration declaration_;
};

template <class A>
OpBuilder<A, Types<>> Registry::define(const char* name) {
  OpDef& def = add(name);
  def.attrs = attr_table<A>();
  return OpBuilder<A, Types<>>(def);
}

// Shape functions that many ops share.
template <int I>
void like(InferContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.output(i, c.input(I));
}
template <int I, int J>
void broadcast(InferContext& c) {
  c.output(broadcast_shapes(c.input(I), c.input(J)));
}
RUNNEL_API void scalar_shape(InferContext& c);
RUNNEL_API void unknown_shape(InferContext& c);  // depends on values: the kernel allocates

}  // namespace runnel
