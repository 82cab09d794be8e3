#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "runnel/base/moved_from.h"
#include "runnel/function/call_key.h"
#include "runnel/function/function_core.h"
#include "runnel/graph/control_flow.h"

namespace runnel {
namespace function_detail {

// What a callable takes as its argument number I: a Tensor where that does not follow from its type (a generic lambda).
template <class F>
struct TakenBy {
  using Types = std::tuple<>;
};
template <class F>
  requires requires { &F::operator(); }
struct TakenBy<F> : TakenBy<decltype(&F::operator())> {};
template <class R, class... P>
struct TakenBy<R (*)(P...)> {
  using Types = std::tuple<std::decay_t<P>...>;
};
template <class C, class R, class... P>
struct TakenBy<R (C::*)(P...)> : TakenBy<R (*)(P...)> {};
template <class C, class R, class... P>
struct TakenBy<R (C::*)(P...) const> : TakenBy<R (*)(P...)> {};
template <class C, class R, class... P>
struct TakenBy<R (C::*)(P...) noexcept> : TakenBy<R (*)(P...)> {};
template <class C, class R, class... P>
struct TakenBy<R (C::*)(P...) const noexcept> : TakenBy<R (*)(P...)> {};
template <class R, class... P>
struct TakenBy<R (*)(P...) noexcept> : TakenBy<R (*)(P...)> {};
template <class Types, size_t I>
struct ElementOr {
  using type = Tensor;
};
template <class Types, size_t I>
  requires(I < std::tuple_size_v<Types>)
struct ElementOr<Types, I> : std::tuple_element<I, Types> {};
template <class F, size_t I>
using Parameter = typename ElementOr<typename TakenBy<F>::Types, I>::type;

// What is kept of an argument while the function runs.
template <class T>
using Held = std::conditional_t<std::is_array_v<T>, const char*, std::decay_t<T>>;

}  // namespace function_detail

// A callable that is traced into a graph on the first call with a new signature and runs as that graph from then on.
// The signature is the C++ types of the arguments, dtype and shape of tensors, the identity of variables, and the value
// of plain C++ numbers and texts.
//   auto step = function([&](const Tensor& x) { return matmul(x, w) + b; });
// Copies share their traces. Any number of threads may call it.
template <class F>
class TracedFunction {
  template <size_t I>
  using Parameter = function_detail::Parameter<F, I>;

 public:
  explicit TracedFunction(F f, FunctionOptions options = {})
      : state_(std::make_shared<State>(std::move(f), std::move(options))) {}

  // A list in braces is an argument too: a Tensor, or what the callable takes there if it says so. Errors name the line
  // of the call (with up to four arguments).
  auto operator()(const CallSite& where = CallSite(SourceSite::current())) const { return call(where.site); }
  template <class A = Parameter<0>>
  auto operator()(const A& a, const CallSite& where = CallSite(SourceSite::current())) const {
    return call(where.site, a);
  }
  template <class A = Parameter<0>, class B = Parameter<1>>
  auto operator()(const A& a, const B& b, const CallSite& where = CallSite(SourceSite::current())) const {
    return call(where.site, a, b);
  }
  template <class A = Parameter<0>, class B = Parameter<1>, class C = Parameter<2>>
  auto operator()(const A& a, const B& b, const C& c, const CallSite& where = CallSite(SourceSite::current())) const {
    return call(where.site, a, b, c);
  }
  template <class A = Parameter<0>, class B = Parameter<1>, class C = Parameter<2>, class D = Parameter<3>>
  auto operator()(const A& a, const B& b, const C& c, const D& d,
                  const CallSite& where = CallSite(SourceSite::current())) const {
    return call(where.site, a, b, c, d);
  }
  template <class... Args>
    requires(sizeof...(Args) > 4)
  auto operator()(const Args&... args) const {
    return call(SourceSite(), args...);
  }

  // The graph for these arguments; a TensorSpec may stand for a tensor.
  template <class... Args>
  ConcreteFunction get_concrete_function(const Args&... args) const {
    function_detail::CallKey key(types_of<Args...>());
    (add(key, args), ...);
    function_detail::TracePtr trace = state().core.find(key);
    if (!trace) trace = make_trace(key, args...);
    return trace->concrete;
  }

  // Why the function was traced anew, a line each: the argument, what it was, what it is now.
  std::vector<std::string> why_retraced() const { return state().core.why_retraced(); }
  int num_traces() const { return state().core.num_traces(); }
  const std::string& name() const { return state().core.options().name; }

 private:
  struct State {
    State(F f, FunctionOptions options) : f(std::move(f)), core(std::move(options)) {}
    F f;
    function_detail::Core core;
  };
  State& state(const SourceSite& where = SourceSite()) const {
    if (!state_) [[unlikely]]
      throw_moved_from("function", where);
    return *state_;
  }

  template <class... Args>
  auto call(const SourceSite& where, const Args&... args) const {
    using R = function_detail::ReturnedAs<std::decay_t<std::invoke_result_t<F&, function_detail::Held<Args>&...>>>;
    function_detail::Core& core = state(where).core;
    if (functions_run_eagerly()) {
      core.require_stack(where);
      if constexpr (std::is_void_v<R>) {
        invoke(args...);
        return;
      } else {
        return R(function_detail::returned(invoke(args...)));
      }
    }
    function_detail::CallKey key(types_of<Args...>(), where);
    (add(key, args), ...);
    function_detail::TracePtr trace = core.find(key);
    if (!trace) [[unlikely]] {
      if constexpr (!std::is_void_v<R> && function_detail::fixed_tensors<R>() > 0) {
        if (auto outputs = core.call_self(key, function_detail::fixed_tensors<R>())) {
          size_t at = 0;
          auto next = [&] { return (*outputs)[at++]; };
          return structure::from_tensors<R>(next);
        }
      } else if constexpr (std::is_void_v<R>) {
        if (core.call_self(key, 0)) return;
      } else {
        core.call_self(key, -1);
      }
      trace = make_trace(key, args...);
    }
    if (tracing_is_checked() && !is_tracing()) [[unlikely]] {
      return checked<R>(*trace, key, args...);
    }
    return run_trace<R>(*trace, key);
  }

  template <class R>
  R run_trace(const function_detail::Trace& trace, const function_detail::CallKey& key) const {
    const auto& core = state_->core;
    if constexpr (std::is_void_v<R>) {
      core.call(trace, key, nullptr);
    } else if constexpr (std::same_as<R, Tensor>) {
      Tensor out;
      core.call(trace, key, &out);
      return out;
    } else {
      std::vector<Tensor> outputs(trace.concrete.num_outputs());
      core.call(trace, key, outputs.data());
      size_t at = 0;
      auto next = [&](const Tensor&) { return outputs[at++]; };
      return function_detail::map_tensors(*static_cast<const R*>(trace.result.get()), next);
    }
  }
  template <class R, class... Args>
  R checked(const function_detail::Trace& trace, const function_detail::CallKey& key, const Args&... args) const {
    function_detail::TracingCheck check(trace.concrete);
    if constexpr (std::is_void_v<R>) {
      invoke(args...);
      check.eager_done({});
      run_trace<R>(trace, key);
      check.traced_done({});
    } else {
      std::vector<Tensor> tensors;
      auto collect = [&](const Tensor& t) {
        tensors.push_back(t);
        return t;
      };
      function_detail::map_tensors(R(function_detail::returned(invoke(args...))), collect);
      check.eager_done(std::exchange(tensors, {}));
      R result = run_trace<R>(trace, key);
      function_detail::map_tensors(result, collect);
      check.traced_done(tensors);
      return result;
    }
  }
  // As the body sees them: a TensorSpec shares the trace of the tensor it stands for.
  template <class... Args>
  static uint64_t types_of() {
    return function_detail::types_word<function_detail::Traced<function_detail::Held<Args>>...>();
  }
  template <class T>
  static void add(function_detail::CallKey& key, const T& arg) {
    if constexpr (std::is_array_v<T>) {
      key.text(arg);
    } else {
      key.add<T>(arg);
    }
  }
  template <class T>
  static void describe(const T& arg, size_t i, function_detail::CallText& text) {
    const std::string path = "argument " + std::to_string(i);
    if constexpr (std::is_array_v<T>) {
      text.emplace_back(path, "\"" + std::string(arg) + "\"");
    } else {
      function_detail::describe<T>(arg, path, text);
    }
  }
  template <class... Args>
  auto invoke(const Args&... args) const {  // by value: a reference would be to the copies
    std::tuple<function_detail::Held<Args>...> copies(args...);
    return std::apply(state_->f, copies);
  }

  template <class... Args>
  function_detail::TracePtr make_trace(const function_detail::CallKey& key, const Args&... args) const {
    function_detail::CallText text;
    size_t i = 0;
    (describe(args, i++, text), ...);
    using R = function_detail::ReturnedAs<
        std::decay_t<std::invoke_result_t<F&, function_detail::Traced<function_detail::Held<Args>>&...>>>;
    int fixed = 0;
    if constexpr (!std::is_void_v<R>) fixed = function_detail::fixed_tensors<R>();
    return state_->core.trace(key, std::move(text), fixed, [&](const std::vector<Tensor>& parameters) {
      size_t at = 0;
      [[maybe_unused]] auto next = [&](const Tensor&) { return parameters[at++]; };
      // Braces: the parts are made in the order of the arguments.
      std::tuple<function_detail::Traced<function_detail::Held<Args>>...> traced{stand_in(args, next)...};
      function_detail::TracedResult made;
      if constexpr (std::is_void_v<R>) {
        std::apply(state_->f, traced);
      } else {
        auto result = std::make_shared<R>(function_detail::returned(std::apply(state_->f, traced)));
        state_->core.require_result(function_detail::described(*result, "the result"), key.where);
        auto collect = [&](const Tensor& t) {
          made.outputs.push_back(t);
          return t;
        };
        function_detail::map_tensors(*result, collect);
        made.result = std::move(result);
      }
      return made;
    });
  }
  template <class T, class Next>
  static function_detail::Traced<function_detail::Held<T>> stand_in(const T& arg, Next& next) {
    if constexpr (std::same_as<T, TensorSpec>) {
      return next(Tensor());
    } else if constexpr (std::is_array_v<T>) {
      return arg;
    } else {
      return function_detail::map_tensors(arg, next);
    }
  }

  std::shared_ptr<State> state_;
};

template <class F>
TracedFunction<std::decay_t<F>> function(F&& f, FunctionOptions options = {}) {
  return TracedFunction<std::decay_t<F>>(std::forward<F>(f), std::move(options));
}

}  // namespace runnel
