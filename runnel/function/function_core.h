#pragma once

// What does not depend on the types of a function: its options, its traces, and how a call finds one.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runnel/function/call_key.h"
#include "runnel/function/concrete_function.h"
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

  // An Error where one of the things that the function gives is a Tensor that refers to nothing.
  void require_result(const CallText& result, const SourceSite& where) const;
  // An Error where calls inside one another have used up the stack.
  void require_stack(const SourceSite& where) const;

  const FunctionOptions& options() const { return options_; }
  std::vector<std::string> why_retraced() const;
  int num_traces() const;

 private:
  friend class TracingTurn;
  TracePtr find_locked(const CallKey& key);
  std::vector<TensorSpec> specs_of(const CallKey& key) const;
  void generalise(const CallKey& key, std::vector<TensorSpec>& specs, Trace& trace);
  std::string difference(const CallKey& key, const CallText& text) const;
  // Null when the trace must be made again: the function calls itself and the guess of its results' dtypes, or what was
  // known of its captures, was wrong; or it made variables. Then the body runs once more and may make none, as in
  // TensorFlow: a variable that every call is meant to make would keep its value from call to call.
  TracePtr build(const CallKey& key, const CallText& text, const std::vector<TensorSpec>& specs,
                 const std::vector<DType>& guess, const TraceFn& body, const std::shared_ptr<Trace>& trace,
                 bool& called_itself, bool& made_variables, std::vector<Tensor>& captures);

  FunctionOptions options_;
  const ThreadContext* traced_by_ = nullptr;  // the thread whose turn it is, see tracing_turn.h
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace function_detail
}  // namespace runnel
