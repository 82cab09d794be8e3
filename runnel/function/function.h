#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runnel/function/concrete_function.h"
#include "runnel/function/structure.h"
#include "runnel/graph/control_flow.h"
#include "runnel/graph/plan_options.h"

namespace runnel {

struct ThreadContext;

enum class Retracing { allowed, error };

struct FunctionOptions {
  std::string name = "function";
  // One trace serves every call whose tensors fit; another is an Error.
  std::vector<TensorSpec> input_signature = {};
  // A dimension that missed twice becomes unknown.
  bool reduce_retracing = false;
  Retracing retracing = Retracing::allowed;
  size_t max_traces = 64;  // the least recently used is forgotten
  PlanOptions plan = {};   // which passes its graphs go through
};

// Functions run as the plain C++ they are, op by op: for debugging.
RUNNEL_API void run_functions_eagerly(bool eagerly);
RUNNEL_API bool functions_run_eagerly();

// Every call of a function also runs as plain C++, and the results and variables are compared; an Error where they
// differ. For tests and debugging: finds code in traced blocks that changes plain C++ variables. Effects other than on
// variables and random numbers happen twice.
RUNNEL_API void check_tracing(bool check);
RUNNEL_API bool tracing_is_checked();

namespace function_detail {

// Compares a traced call with the same call run eagerly before it.
class RUNNEL_API TracingCheck {
 public:
  explicit TracingCheck(const ConcreteFunction& f);
  ~TracingCheck();
  TracingCheck(const TracingCheck&) = delete;
  TracingCheck& operator=(const TracingCheck&) = delete;
  void eager_done(std::vector<Tensor> results);
  void traced_done(const std::vector<Tensor>& results) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct Trace {
  SmallVector<uint64_t, 48> words;
  SmallVector<uint32_t, 16> tensors_at;  // words that are of tensors, see CallKey
  std::vector<uint32_t> any;             // words that may have any value
  CallText text;
  ConcreteFunction concrete;
  std::shared_ptr<const void> result;  // the C++ result, with the tensors of the graph in it

  bool fits(const CallKey& key) const;
  // In all but its tensors, which an input signature speaks for.
  bool fits_but_for_tensors(const CallKey& key) const;
};
using TracePtr = std::shared_ptr<const Trace>;

// What a trace gives back: the tensors of the result, and the result itself.
struct TracedResult {
  std::vector<Tensor> outputs;
  std::shared_ptr<const void> result;
};
using TraceFn = std::function<TracedResult(const std::vector<Tensor>& parameters)>;

// What does not depend on the types of a function.
class RUNNEL_API Core {
 public:
  explicit Core(FunctionOptions options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  TracePtr find(const CallKey& key);
  // Traces unless another thread has done so meanwhile: the first to be done counts. No lock is held over `body`.
  // `num_fixed`: how many tensors a result has, -1 if that is not known before.
  TracePtr trace(const CallKey& key, const CallText& text, int num_fixed, const TraceFn& body);
  // While the function is being traced for this key on this thread: the outputs of a call of itself.
  std::optional<std::vector<Tensor>> call_self(const CallKey& key, int num_fixed);
  void call(const Trace& trace, const CallKey& key, Tensor* outputs) const;

  const FunctionOptions& options() const { return options_; }
  std::vector<std::string> why_retraced() const;
  int num_traces() const;

 private:
  friend class TracingTurn;
  TracePtr find_locked(const CallKey& key);
  std::vector<TensorSpec> specs_of(const CallKey& key) const;
  void generalise(const CallKey& key, std::vector<TensorSpec>& specs, Trace& trace);
  std::string difference(const CallKey& key, const CallText& text) const;
  // Null when the function calls itself and the guess of its results' dtypes, or what was known of its captures, was
  // wrong.
  TracePtr build(const CallKey& key, const CallText& text, const std::vector<TensorSpec>& specs,
                 const std::vector<DType>& guess, const TraceFn& body, const std::shared_ptr<Trace>& trace,
                 bool& called_itself, std::vector<Tensor>& captures);

  FunctionOptions options_;
  const ThreadContext* traced_by_ = nullptr;  // the thread whose turn it is, see tracing_turn.h
  struct State;
  const std::unique_ptr<State> state_;
};

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
 public:
  explicit TracedFunction(F f, FunctionOptions options = {})
      : state_(std::make_shared<State>(std::move(f), std::move(options))) {}

  template <class... Args>
  auto operator()(const Args&... args) const {
    using R = function_detail::ReturnedAs<std::decay_t<std::invoke_result_t<F&, function_detail::Held<Args>&...>>>;
    if (functions_run_eagerly()) {
      if constexpr (std::is_void_v<R>) {
        invoke(args...);
        return;
      } else {
        return R(function_detail::returned(invoke(args...)));
      }
    }
    function_detail::CallKey key(types_of<Args...>());
    (add(key, args), ...);
    auto& core = state_->core;
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

  // The graph for these arguments; a TensorSpec may stand for a tensor.
  template <class... Args>
  ConcreteFunction get_concrete_function(const Args&... args) const {
    function_detail::CallKey key(types_of<Args...>());
    (add(key, args), ...);
    function_detail::TracePtr trace = state_->core.find(key);
    if (!trace) trace = make_trace(key, args...);
    return trace->concrete;
  }

  // Why the function was traced anew, a line each: the argument, what it was, what it is now.
  std::vector<std::string> why_retraced() const { return state_->core.why_retraced(); }
  int num_traces() const { return state_->core.num_traces(); }
  const std::string& name() const { return state_->core.options().name; }

 private:
  struct State {
    State(F f, FunctionOptions options) : f(std::move(f)), core(std::move(options)) {}
    F f;
    function_detail::Core core;
  };

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
