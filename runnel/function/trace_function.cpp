// Making a trace: the C++ code of a function runs once and leaves a graph.
#include <algorithm>
#include <exception>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/base/profile_scope.h"
#include "runnel/function/core_state.h"
#include "runnel/function/tracing_turn.h"
#include "runnel/graph/call.h"
#include "runnel/graph/graph_function.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/tensor/profile_step.h"

namespace runnel::function_detail {
namespace {

constexpr int kWarnAfter = 5;
constexpr int kDeepest = 64;  // functions being traced inside one another

}  // namespace

// A function that is being traced on this thread.
struct ActiveTrace {
  const Core* core;
  const SmallVector<uint64_t, 48>* words;
  std::shared_ptr<GraphFunction> function;
  std::vector<DType> outputs;           // as they are taken to be
  const std::vector<Tensor>* captures;  // what the function captures, as far as that is known
  bool* called_itself;
  ActiveTrace* outer = thread_context().tracing;
};

TracePtr Core::trace(const CallKey& key, const CallText& text, int num_fixed, const TraceFn& body) {
  const TracingTurn turn(*this);
  const UnloggedHandles unlogged;
  if (TracePtr made = find(key)) return made;
  int depth = 0;
  for (const ActiveTrace* a = thread_context().tracing; a; a = a->outer) ++depth;
  if (depth > kDeepest) {
    throw make_error(
        Code::failed_precondition,
        "[{}] functions are traced inside one another {} deep: one calls itself with ever new signatures{}",
        options_.name, depth, user_line(key.where).at());
  }
  std::vector<TensorSpec> specs = specs_of(key);
  auto trace = std::make_shared<Trace>();
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->traces.empty() || state_->traced > 0) {
      const std::string why = state_->traces.empty() ? "" : difference(key, text);
      if (options_.retracing == Retracing::error) {
        throw make_error(Code::failed_precondition, "[{}] would be traced again, which its options forbid: {}{}",
                         options_.name, why, user_line(key.where).at());
      }
      state_->why.push_back(why);
      if (state_->why.size() > 1000) state_->why.erase(state_->why.begin());
      if (state_->traced == kWarnAfter) {
        log_warning(
            "the function '{}' has been traced {} times; tracing is slow. The last time because of {}. Pass tensors in "
            "place of numbers, or set reduce_retracing or input_signature.",
            options_.name, state_->traced + 1, why);
      }
    }
    if (options_.reduce_retracing && state_->generalises) generalise(key, specs, *trace);
  }
  // A function that calls itself needs the dtypes of its results before they are there: they are guessed, and the trace
  // is made again with another guess where that was wrong.
  std::vector<DType> guesses;
  const auto guess_dtype = [&](DType t) {
    if (std::find(guesses.begin(), guesses.end(), t) == guesses.end()) guesses.push_back(t);
  };
  for (const TensorSpec& s : specs) guess_dtype(s.dtype);
  for (const DType t : {DType::float32, DType::int32, DType::int64, DType::float64, DType::bool_}) guess_dtype(t);
  // What it captures is handed on from call to call, so that derivatives see it; the first trace finds out what it is.
  std::vector<Tensor> captures;
  std::exception_ptr first_error;
  for (size_t i = 0;;) {
    const std::vector<DType> guess(static_cast<size_t>(std::max(num_fixed, 0)), guesses[i]);
    bool called_itself = false;
    bool made_variables = false;
    const size_t known = captures.size();
    try {
      if (TracePtr made = build(key, text, specs, guess, body, trace, called_itself, made_variables, captures)) {
        return made;
      }
      if (made_variables) continue;
    } catch (const Error& e) {
      if (!trace->any.empty() && e.code() != Code::cancelled) {
        // The body needs a size that was left open: from now on every size gets a trace of its own.
        {
          const std::lock_guard lock(state_->mutex);
          state_->generalises = false;
        }
        specs = specs_of(key);
        trace = std::make_shared<Trace>();
        captures.clear();
        continue;
      }
      if (!called_itself) throw;
      if (!first_error) first_error = std::current_exception();
    }
    if (captures.size() == known && ++i == guesses.size()) {
      if (first_error) std::rethrow_exception(first_error);
      throw make_error(
          Code::unimplemented,
          "[{}] calls itself, and its results have dtypes that cannot be guessed: let it return tensors of one "
          "dtype, or write the recursion as while_loop{}",
          options_.name, user_line(key.where).at());
    }
  }
}

TracePtr Core::build(const CallKey& key, const CallText& text, const std::vector<TensorSpec>& specs,
                     const std::vector<DType>& guess, const TraceFn& body, const std::shared_ptr<Trace>& trace,
                     bool& called_itself, bool& made_variables, std::vector<Tensor>& captures) {
  int number = 0;
  bool allow_variables = false;
  {
    const std::lock_guard lock(state_->mutex);
    number = state_->traced;
    allow_variables = !state_->variables_made;
  }
  Tracer tracer(fmt::format("{}_{}", options_.name, number));
  const profile::Span span(profile::Kind::tracing, tracer.graph()->name(), profile::current_step());
  tracer.graph()->plan_options = options_.plan;
  auto function = std::make_shared<GraphFunction>(tracer.graph());
  ActiveTrace active{this, &key.words, function, guess, &captures, &called_itself};
  const ContextScope<&ThreadContext::tracing> scope(&active);
  std::vector<Tensor> parameters;
  for (const TensorSpec& s : specs) parameters.push_back(tracer.add_parameter(s.dtype, s.shape, s.name));
  tracer.allow_variables = allow_variables;
  for (const Tensor& t : captures) tracer.localise(t, {});
  tracer.open();
  TracedResult made = body(parameters);
  tracer.set_outputs(made.outputs);
  tracer.close();
  if (tracer.variables_created > 0) {
    const std::lock_guard lock(state_->mutex);
    state_->variables_made = made_variables = true;
    return nullptr;
  }
  if (called_itself) {
    for (size_t i = 0; i < guess.size(); ++i) {
      if (made.outputs[i].dtype() != guess[i]) return nullptr;
    }
    if (tracer.captures().size() > captures.size()) {
      captures = tracer.captures();
      return nullptr;
    }
  }
  function->captures = tracer.captures();
  tracer.graph()->sort();
  prune(*tracer.graph());
  trace->words.assign(key.words.begin(), key.words.end());
  trace->tensors_at.assign(key.tensors_at.begin(), key.tensors_at.end());
  trace->text = text;
  trace->concrete = ConcreteFunction(function, specs.size());
  trace->result = std::move(made.result);
  const std::lock_guard lock(state_->mutex);
  if (TracePtr earlier = find_locked(key)) return earlier;  // another thread was faster
  ++state_->traced;
  state_->variables_made = true;
  state_->traces.insert(state_->traces.begin(), trace);
  if (state_->traces.size() > options_.max_traces) state_->traces.pop_back();
  return trace;
}

std::optional<std::vector<Tensor>> Core::call_self(const CallKey& key, int num_fixed) {
  if (!current_interceptor()) return std::nullopt;  // it runs now, though a trace may be open
  for (ActiveTrace* a = thread_context().tracing; a; a = a->outer) {
    if (a->core != this || !std::equal(a->words->begin(), a->words->end(), key.words.begin(), key.words.end()))
      continue;
    if (num_fixed < 0) {
      throw make_error(Code::unimplemented, "[{}] calls itself, so it must return a Tensor or a tuple of tensors{}",
                       options_.name, user_line(key.where).at());
    }
    *a->called_itself = true;
    auto again = std::make_shared<RecursiveFunction>();
    again->target = a->function;
    CallAttrs attrs;
    std::vector<const Tensor*> in;
    for (const Tensor* t : key.tensors) in.push_back(t);
    for (const Tensor& t : *a->captures) in.push_back(&t);
    for (const Tensor* t : in) attrs.Tin.push_back(t->dtype());
    attrs.Tout = a->outputs;
    attrs.f = {a->function->name(), again};
    attrs.output_shapes.assign(a->outputs.size(), PartialShape::unknown());
    std::vector<Tensor> out(a->outputs.size());
    dispatch(registered_op("StatefulPartitionedCall"), in, &attrs, out.data(), static_cast<int>(out.size()), key.where);
    return out;
  }
  return std::nullopt;
}

}  // namespace runnel::function_detail
