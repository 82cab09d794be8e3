#pragma once

#include <cassert>
#include <concepts>
#include <string>
#include <utility>

#include "runnel/op/registry.h"

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
  explicit OpBuilder(OpDef& def) : def_(def) {}

  // Declares a type variable; the first one ("T" unless named) selects kernels.
  template <class... Ts>
  auto type(const char* name, Types<Ts...> set, DType default_type = DType::invalid) {
    def_.type_vars.push_back({name, set.mask, default_type});
    if constexpr (std::is_same_v<T, Types<>>) {
      return OpBuilder<A, Types<Ts...>>(def_);
    } else {
      return *this;
    }
  }

  // An input of the first type variable, declaring it as "T" when `set` is given.
  template <class... Ts>
  auto in(const char* name, Types<Ts...> set) {
    auto next = type("T", set);
    next.in(name);
    return next;
  }
  OpBuilder& in(const char* name) { return add_input({.name = name, .type_var = 0}); }
  OpBuilder& in(const char* name, DType fixed) { return add_input({.name = name, .dtype = fixed}); }
  OpBuilder& in(const char* name, const char* type_var) {
    return add_input({.name = name, .type_var = type_var_index(type_var)});
  }
  // An input that decides what is done (axes, shapes): int32 or int64, read on the host. Declares its type
  // variable, int32 unless a tensor says otherwise.
  OpBuilder& in_host(const char* name, const char* type_var) {
    int var = type_var_index(type_var);
    if (var < 0) {
      assert(!def_.type_vars.empty() && "declare the kernel's type variable first");
      def_.type_vars.push_back({type_var, index_types.mask, DType::int32});
      var = static_cast<int>(def_.type_vars.size()) - 1;
    }
    return add_input({.name = name, .type_var = var, .host_memory = true});
  }
  OpBuilder& in_host(const char* name, DType fixed) {
    return add_input({.name = name, .dtype = fixed, .host_memory = true});
  }
  // A list of inputs of one type; its length is called `count`.
  OpBuilder& in_list(const char* name, const char* count, const char* type_var = "T") {
    return add_input({.name = name, .type_var = type_var_index(type_var), .count = count});
  }
  OpBuilder& in_list(const char* name, const char* count, DType fixed) {
    return add_input({.name = name, .dtype = fixed, .count = count});
  }
  // A list of inputs of any types; their dtypes are the list called `types`.
  OpBuilder& in_any_list(const char* name, const char* types) {
    return add_input({.name = name, .type_list_attr = types});
  }

  OpBuilder& out(const char* name) { return add_output({.name = name, .type_var = 0}); }
  OpBuilder& out(const char* name, DType fixed) { return add_output({.name = name, .dtype = fixed}); }
  // Of a type variable or of a DType attribute of that name.
  OpBuilder& out(const char* name, const char* type) {
    const int var = type_var_index(type);
    if (var >= 0) return add_output({.name = name, .type_var = var});
    assert(def_.attrs.find(type));
    return add_output({.name = name, .type_attr = type});
  }
  // Sizes, axes and their like, which the host reads next: kept in its memory whatever device the inputs are on.
  template <class Type>  // as for out(): a name or a DType
  OpBuilder& out_host(const char* name, Type type) {
    out(name, type);
    def_.outputs.back().host_memory = true;
    return *this;
  }
  // As many outputs as the int attribute `count` says, of a type variable or of a DType attribute.
  OpBuilder& out_list(const char* name, const char* count, const char* type = "T") {
    assert(def_.attrs.find(count));
    const int var = type_var_index(type);
    if (var >= 0) return add_output({.name = name, .type_var = var, .count = count});
    assert(def_.attrs.find(type));
    return add_output({.name = name, .type_attr = type, .count = count});
  }
  OpBuilder& out_list(const char* name, const char* count, DType fixed) {
    return add_output({.name = name, .dtype = fixed, .count = count});
  }
  OpBuilder& out_any_list(const char* name, const char* types) {
    return add_output({.name = name, .type_list_attr = types});
  }

  // A function of (InferContext&) or (InferContext&, const A&): a captureless lambda or a plain function.
  OpBuilder& shape(InferFn f) {
    def_.infer = f;
    return *this;
  }
  template <class F>
    requires std::invocable<F, InferContext&, const A&>
  OpBuilder& shape(F) {
    static_assert(std::is_empty_v<F>, "a function of the attributes must be given as a captureless lambda");
    def_.infer = [](InferContext& c) { F{}(c, c.template attrs<A>()); };
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
    def_.grad = [](const GradCtx& g, const void* attrs) -> Gradients {
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
        Gradients all(static_cast<size_t>(g.num_inputs()));
        all[0] = call();
        return all;
      }
    };
    return *this;
  }

  OpBuilder& doc(const char* text) {
    def_.doc = text;
    return *this;
  }
  OpBuilder& sample(Sample s, const A& attrs = {}) {
    if (def_.attrs.copy) s.attrs = def_.attrs.copy(&attrs);
    def_.samples.push_back(std::move(s));
    return *this;
  }

  // For passes: see OpDef. Captureless lambdas.
  OpBuilder& same_as(SameFn f) {
    def_.same_as = f;
    return *this;
  }
  // (const std::vector<Tensor>& inputs, const A&) giving the outputs.
  template <class F>
  OpBuilder& decompose(F) {
    def_.decompose = [](const std::vector<Tensor>& inputs, const void* attrs) -> std::vector<Tensor> {
      return F{}(inputs, *static_cast<const A*>(attrs));
    };
    return *this;
  }
  OpBuilder& fused_by(const char* op) {
    def_.fused = op;
    return *this;
  }
  OpBuilder& post_op(const char* name) {
    def_.post_op = name;
    return *this;
  }
  OpBuilder& packed_by(const char* op, bool (*pays)(InferContext&)) {
    def_.packed = op;
    def_.packs = pays;
    return *this;
  }
  OpBuilder& many_by(const char* op) {
    def_.many = op;
    return *this;
  }

  OpBuilder& elementwise_op() { return flag(&OpDef::elementwise); }
  OpBuilder& commutative() { return flag(&OpDef::commutative); }
  OpBuilder& stateful() { return flag(&OpDef::stateful); }
  OpBuilder& not_differentiable() { return flag(&OpDef::not_differentiable); }
  OpBuilder& forwards() { return flag(&OpDef::forwards); }
  OpBuilder& reads_variable() { return flag(&OpDef::reads_variable); }

 private:
  template <class... Ts, class K>
  OpBuilder& kernel_for(DeviceKind kind, Types<Ts...>, K) {
    static_assert(std::is_empty_v<K>, "a captureless lambda, please: a function's address would be lost");
    auto& table = def_.kernels[static_cast<size_t>(kind)];
    if constexpr (requires { K::is_elementwise; }) def_.elementwise = true;
    if constexpr (std::invocable<K, KernelContext&>) {
      table[0] = [](KernelContext& c) { K{}(c); };
    } else if constexpr (std::invocable<K, KernelContext&, const A&>) {
      table[0] = [](KernelContext& c) { K{}(c, c.template attrs<A>()); };
    } else {
      ((table[static_cast<size_t>(dtype_of<Ts>)] = &run_typed<K, Ts>), ...);
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

  int type_var_index(const std::string& name) const {
    for (size_t i = 0; i < def_.type_vars.size(); ++i) {
      if (def_.type_vars[i].name == name) return static_cast<int>(i);
    }
    return -1;
  }
  OpBuilder& add_input(ArgSpec arg) {
    def_.has_list_input = def_.has_list_input || arg.is_list();
    def_.inputs.push_back(std::move(arg));
    return *this;
  }
  OpBuilder& add_output(ArgSpec arg) {
    def_.outputs.push_back(std::move(arg));
    return *this;
  }
  OpBuilder& flag(bool OpDef::*member) {
    def_.*member = true;
    return *this;
  }

  OpDef& def_;
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
