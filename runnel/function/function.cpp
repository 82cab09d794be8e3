#include "runnel/function/function.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>

#include "runnel/autodiff/record.h"
#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/function/tracing_turn.h"
#include "runnel/graph/call.h"
#include "runnel/graph/executor/plan.h"
#include "runnel/graph/graph_function.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/random_context.h"

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

constexpr int kWarnAfter = 5;
constexpr int kDeepest = 64;  // functions being traced inside one another

}  // namespace

void run_functions_eagerly(bool on) { eagerly = on; }
bool functions_run_eagerly() { return eagerly.load(std::memory_order_relaxed); }

void check_tracing(bool check) { checked = check; }
bool tracing_is_checked() { return checked.load(std::memory_order_relaxed); }

const std::string& ConcreteFunction::name() const { return function_->name(); }
const Graph& ConcreteFunction::graph() const { return function_->graph(); }
const std::vector<Tensor>& ConcreteFunction::captured_inputs() const { return function_->captures; }
size_t ConcreteFunction::num_outputs() const { return graph().outputs().size(); }
std::string ConcreteFunction::to_text() const { return graph().to_text(); }

std::vector<TensorSpec> ConcreteFunction::inputs() const {
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < num_parameters_; ++i) {
    const Node& n = *graph().inputs()[i];
    specs.push_back({n.shape(), n.dtype(), n.name});
  }
  return specs;
}

std::vector<TensorSpec> ConcreteFunction::outputs() const {
  std::vector<TensorSpec> specs;
  for (const NodeOutput& out : graph().outputs()) {
    specs.push_back({out.node->shape(out.index), out.node->dtype(out.index), out.node->name});
  }
  return specs;
}

std::vector<Variable> ConcreteFunction::captured_variables() const {
  std::vector<Variable> all;
  for (const Tensor& t : function_->captures) {
    if (t.dtype() != DType::resource) continue;
    if (dynamic_cast<VariableSlot*>(t.data<ResourceHandle>()->object.get())) all.push_back(Variable::from_handle(t));
  }
  return all;
}

std::vector<Variable> ConcreteFunction::trainable_variables() const {
  std::vector<Variable> all = captured_variables();
  std::erase_if(all, [](const Variable& v) { return !v.trainable(); });
  return all;
}

std::vector<Tensor> ConcreteFunction::operator()(const std::vector<Tensor>& parameters) const {
  if (parameters.size() != num_parameters_) {
    throw invalid_argument("[{}] takes {} tensors, got {}", name(), num_parameters_, parameters.size());
  }
  std::vector<Tensor> all = parameters;
  all.insert(all.end(), function_->captures.begin(), function_->captures.end());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Node& n = *graph().inputs()[i];
    if (!parameters[i].defined() || parameters[i].dtype() != n.dtype() ||
        !n.shape().compatible_with(parameters[i].partial_shape())) {
      throw invalid_argument("[{}] argument {} must be {}{}, got {}", name(), i, dtype_name(n.dtype()), n.shape().str(),
                             function_detail::tensor_text(parameters[i]));
    }
  }
  return call_function(function_, all);
}

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

bool Trace::fits(const CallKey& key) const {
  if (words.size() != key.words.size()) return false;
  if (any.empty()) return std::equal(words.begin(), words.end(), key.words.begin());
  auto wild = any.begin();
  for (uint32_t i = 0; i < words.size(); ++i) {
    if (wild != any.end() && *wild == i) {
      ++wild;
    } else if (words[i] != key.words[i]) {
      return false;
    }
  }
  return true;
}

struct Core::State {
  std::mutex mutex;              // of all that follows
  std::vector<TracePtr> traces;  // most recently used first
  std::vector<std::string> why;
  int traced = 0;
  bool variables_made = false;
  bool generalises = true;                                          // no size that was left open has failed
  std::map<std::vector<uint64_t>, std::map<uint32_t, int>> misses;  // per signature without dimensions, per dimension
};

Core::Core(FunctionOptions options) : options_(std::move(options)), state_(std::make_unique<State>()) {}
Core::~Core() = default;

bool Trace::fits_but_for_tensors(const CallKey& key) const {
  // The next word that is not of a tensor.
  const auto skip = [](const auto& all, const auto& at, uint32_t& word, size_t& tensor) {
    while (tensor < at.size() && at[tensor] == word) {
      const uint64_t rank = all[word] & 0xff;
      word += 1 + (rank == 0xff ? 0 : static_cast<uint32_t>(rank));
      ++tensor;
    }
  };
  uint32_t mine = 0, its = 0;
  size_t my_tensor = 0, its_tensor = 0;
  for (;;) {
    skip(words, tensors_at, mine, my_tensor);
    skip(key.words, key.tensors_at, its, its_tensor);
    if (mine == words.size() || its == key.words.size()) return mine == words.size() && its == key.words.size();
    if (my_tensor != its_tensor || words[mine++] != key.words[its++]) return false;
  }
}

TracePtr Core::find(const CallKey& key) {
  const std::lock_guard lock(state_->mutex);
  return find_locked(key);
}

TracePtr Core::find_locked(const CallKey& key) {
  const bool by_signature = !options_.input_signature.empty();
  for (size_t i = 0; i < state_->traces.size(); ++i) {
    if (!(by_signature ? state_->traces[i]->fits_but_for_tensors(key) : state_->traces[i]->fits(key))) continue;
    if (i > 0)
      std::rotate(state_->traces.begin(), state_->traces.begin() + static_cast<ptrdiff_t>(i),
                  state_->traces.begin() + static_cast<ptrdiff_t>(i) + 1);
    return state_->traces[0];
  }
  return nullptr;
}

std::vector<TensorSpec> Core::specs_of(const CallKey& key) const {
  std::vector<TensorSpec> specs;
  size_t given = 0;
  for (const Tensor* t : key.tensors) {
    specs.push_back(t ? TensorSpec{t->partial_shape(), t->dtype(), ""} : key.specs[given++]);
  }
  if (options_.input_signature.empty()) return specs;
  const auto& wanted = options_.input_signature;
  if (wanted.size() != specs.size()) {
    throw invalid_argument("[{}] has an input signature of {} tensors, called with {}", options_.name, wanted.size(),
                           specs.size());
  }
  return wanted;
}

std::string Core::difference(const CallKey& key, const CallText& text) const {
  const CallText& old = state_->traces[0]->text;
  if (state_->traces[0]->words[0] != key.words[0]) {
    return fmt::format("training: was {}, now {}", !key.training(), key.training());
  }
  for (size_t i = 0; i < std::min(old.size(), text.size()); ++i) {
    if (old[i] != text[i]) {
      return old[i].first == text[i].first
                 ? fmt::format("{}: was {}, now {}", text[i].first, old[i].second, text[i].second)
                 : fmt::format("{} stands where {} was", text[i].first, old[i].first);
    }
  }
  if (old.size() != text.size()) return fmt::format("{} things where {} were", text.size(), old.size());
  return "its trace was forgotten: more signatures than max_traces";
}

// After two misses on a dimension it is taken to be unknown.
void Core::generalise(const CallKey& key, std::vector<TensorSpec>& specs, Trace& trace) {
  std::vector<uint64_t> family(key.words.begin(), key.words.end());
  for (const uint32_t at : key.dims_at) family[at] = ~uint64_t{0};
  const Trace* latest = nullptr;
  for (const TracePtr& t : state_->traces) {
    if (t->words.size() != key.words.size()) continue;
    std::vector<uint64_t> other(t->words.begin(), t->words.end());
    for (const uint32_t at : key.dims_at) other[at] = ~uint64_t{0};
    if (other == family) {
      latest = t.get();
      break;
    }
  }
  if (!latest) return;
  auto& count = state_->misses[family];
  for (const uint32_t at : key.dims_at) {
    if (latest->words[at] != key.words[at]) ++count[at];
    if (count[at] >= 2) trace.any.push_back(at);
  }
  // The dimensions of the tensors stand in dims_at in order.
  size_t k = 0;
  for (TensorSpec& spec : specs) {
    if (!spec.shape.has_rank()) continue;
    Dims dims = spec.shape.dims();
    for (int64_t& d : dims) {
      if (std::find(trace.any.begin(), trace.any.end(), key.dims_at[k++]) != trace.any.end()) d = kUnknownDim;
    }
    spec.shape = PartialShape(dims);
  }
}

TracePtr Core::trace(const CallKey& key, const CallText& text, int num_fixed, const TraceFn& body) {
  const TracingTurn turn(*this);
  const UnloggedHandles unlogged;
  if (TracePtr made = find(key)) return made;
  int depth = 0;
  for (const ActiveTrace* a = thread_context().tracing; a; a = a->outer) ++depth;
  if (depth > kDeepest) {
    throw make_error(Code::failed_precondition,
                     "[{}] functions are traced inside one another {} deep: one calls itself with ever new signatures",
                     options_.name, depth);
  }
  std::vector<TensorSpec> specs = specs_of(key);
  auto trace = std::make_shared<Trace>();
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->traces.empty() || state_->traced > 0) {
      const std::string why = state_->traces.empty() ? "" : difference(key, text);
      if (options_.retracing == Retracing::error) {
        throw make_error(Code::failed_precondition, "[{}] would be traced again, which its options forbid: {}",
                         options_.name, why);
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
    const size_t known = captures.size();
    try {
      if (TracePtr made = build(key, text, specs, guess, body, trace, called_itself, captures)) return made;
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
          "dtype, or write the recursion as while_loop",
          options_.name);
    }
  }
}

TracePtr Core::build(const CallKey& key, const CallText& text, const std::vector<TensorSpec>& specs,
                     const std::vector<DType>& guess, const TraceFn& body, const std::shared_ptr<Trace>& trace,
                     bool& called_itself, std::vector<Tensor>& captures) {
  int number = 0;
  bool allow_variables = false;
  {
    const std::lock_guard lock(state_->mutex);
    number = state_->traced;
    allow_variables = !state_->variables_made;
  }
  Tracer tracer(fmt::format("{}_{}", options_.name, number));
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
      throw make_error(Code::unimplemented, "[{}] calls itself, so it must return a Tensor or a tuple of tensors",
                       options_.name);
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
    dispatch(registered_op("StatefulPartitionedCall"), in, &attrs, out.data(), static_cast<int>(out.size()), {});
    return out;
  }
  return std::nullopt;
}

void Core::call(const Trace& trace, const CallKey& key, Tensor* outputs) const {
  if (!options_.input_signature.empty()) {
    const std::vector<TensorSpec> wanted = specs_of(key);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Tensor& t = *key.tensors[i];
      if (t.dtype() != wanted[i].dtype || !wanted[i].shape.compatible_with(t.partial_shape())) {
        throw invalid_argument("[{}] tensor {} of the arguments must be {} by the input signature, got {}",
                               options_.name, i, wanted[i].str(), tensor_text(t));
      }
    }
  }
  const GraphFunction& f = *trace.concrete.function();
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

std::vector<std::string> Core::why_retraced() const {
  const std::lock_guard lock(state_->mutex);
  return state_->why;
}

int Core::num_traces() const {
  const std::lock_guard lock(state_->mutex);
  return state_->traced;
}

}  // namespace function_detail
}  // namespace runnel
