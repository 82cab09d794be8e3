// Calls of traced functions: as a graph, as plain C++, or both and compared.
#include "runnel/function/function.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/base/stack.h"
#include "runnel/function/called_graphs.h"
#include "runnel/graph/call.h"
#include "runnel/graph/executor/plan.h"
#include "runnel/graph/graph_function.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/random_context.h"
#include "runnel/ops/variable_slot.h"

namespace runnel {
namespace {

std::atomic<bool> eagerly = false;
std::atomic<bool> checked = false;

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() == DType::string) return a.to_vector<std::string>() == b.to_vector<std::string>();
  if (!is_plain(a.dtype())) return true;
  const Tensor x = a.to_host();
  const Tensor y = b.to_host();
  return std::memcmp(x.raw(), y.raw(), x.num_bytes()) == 0;
}

// The innermost function is named.
Error in_function(const Error& e, const std::string& name) {
  if (e.has_frame(ErrorFrame::Kind::function)) return e;
  return e.inside({.kind = ErrorFrame::Kind::function, .name = name});
}

}  // namespace

void run_functions_eagerly(bool on) { eagerly = on; }
bool functions_run_eagerly() { return eagerly.load(std::memory_order_relaxed); }

void check_tracing(bool check) { checked = check; }
bool tracing_is_checked() { return checked.load(std::memory_order_relaxed); }

namespace function_detail {

struct TracingCheck::State {
  std::string name;
  std::vector<Variable> variables;
  std::vector<Tensor> before;
  std::vector<Tensor> eager;
  RandomContext::State random;
};

TracingCheck::TracingCheck(const ConcreteFunction& f)
    : state_(new State{f.name(), f.captured_variables(), {}, {}, RandomContext::current().state()}) {
  for (const Variable& v : state_->variables) state_->before.push_back(v.value());
}
TracingCheck::~TracingCheck() = default;

void TracingCheck::eager_done(std::vector<Tensor> results) {
  state_->eager = std::move(results);
  for (size_t i = 0; i < state_->variables.size(); ++i) {
    state_->eager.push_back(state_->variables[i].value());
    state_->variables[i].assign(state_->before[i]);
  }
  RandomContext::current().restore(state_->random);
}

void TracingCheck::traced_done(const std::vector<Tensor>& results) const {
  std::vector<Tensor> traced = results;
  for (const Variable& v : state_->variables) traced.push_back(v.value());
  for (size_t i = 0; i < std::min(traced.size(), state_->eager.size()); ++i) {
    if (same_bits(traced[i], state_->eager[i])) continue;
    const std::string what =
        i < results.size() ? fmt::format("result {}", i) : state_->variables[i - results.size()].slot().describe();
    throw make_error(
        Code::failed_precondition,
        "[{}] {} is {} when the function runs as a graph, {} when it runs as C++: something it depends on is no "
        "tensor, variable or argument, or is a C++ variable changed inside a traced block",
        state_->name, what, traced[i].str(), state_->eager[i].str());
  }
}

void Core::require_result(const CallText& result, const SourceSite& where) const {
  for (const auto& [path, text] : result) {
    if (text != tensor_text(Tensor())) continue;
    throw make_error(Code::failed_precondition,
                     "[{}] {} refers to nothing: the function returns a Tensor that was never given a value{}",
                     options_.name, path, user_line(where).at());
  }
}

void Core::require_stack(const SourceSite& where) const {
  if (stack_has_room()) return;
  throw make_error(Code::resource_exhausted,
                   "[{}] the calls of the function inside one another have used up the stack: a function that calls "
                   "itself must come to an end{}",
                   options_.name, user_line(where).at());
}

void Core::call(const Trace& trace, const CallKey& key, Tensor* outputs) const {
  if (!options_.input_signature.empty()) {
    const std::vector<TensorSpec> wanted = specs_of(key);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Tensor& t = *key.tensors[i];
      if (t.dtype() != wanted[i].dtype || !wanted[i].shape.compatible_with(t.partial_shape())) {
        throw invalid_argument("[{}] tensor {} of the arguments must be {} by the input signature, got {}{}",
                               options_.name, i, wanted[i].str(), tensor_text(t), user_line(key.where).at());
      }
    }
  }
  const GraphFunction& f = *trace.concrete.function();
  note_call(trace.concrete.function());
  if (!current_interceptor() && !current_recorder()) [[likely]] {
    SmallVector<const Tensor*, 32> in;
    for (const Tensor* t : key.tensors) in.push_back(t);
    for (const Tensor& t : f.captures) in.push_back(&t);
    try {
      f.plan().run(Inputs(in.data(), in.size()), outputs);
    } catch (const Error& e) {
      throw in_function(e, options_.name);
    }
    return;
  }
  std::vector<Tensor> in;
  for (const Tensor* t : key.tensors) in.push_back(*t);
  in.insert(in.end(), f.captures.begin(), f.captures.end());
  try {
    std::vector<Tensor> out = call_function(trace.concrete.function(), in);
    std::move(out.begin(), out.end(), outputs);
  } catch (const Error& e) {
    throw in_function(e, options_.name);
  }
}

}  // namespace function_detail
}  // namespace runnel
