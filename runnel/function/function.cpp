#include "runnel/function/function.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>

#include "runnel/autodiff/record.h"
#include "runnel/base/format.h"
#include "runnel/graph/call.h"
#include "runnel/graph/tracer.h"
#include "runnel/kernels/random_context.h"
#include "runnel/op/dispatch.h"

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

// Tracing is rare and may go from one function into others: one lock for all of them cannot be taken in two orders.
std::recursive_mutex& tracing_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

constexpr int kWarnAfter = 5;
constexpr int kDeepest = 64;  // functions being traced inside one another

}  // namespace

void run_functions_eagerly(bool on) { eagerly = on; }
bool functions_run_eagerly() { return eagerly.load(std::memory_order_relaxed); }

void check_tracing(bool check) { checked = check; }
bool tracing_is_checked() { return checked.load(std::memory_order_relaxed); }

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

TracingCheck::TracingCheck(const ConcreteFunction& f) : name_(f.name()), variables_(f.captured_variables()) {
  for (const Variable& v : variables_) before_.push_back(v.value());
  const RandomContext::State random = RandomContext::current().state();
  random_[0] = random.seed;
  random_[1] = random.offset;
}

void TracingCheck::eager_done(std::vector<Tensor> results) {
  eager_ = std::move(results);
  for (size_t i = 0; i < variables_.size(); ++i) {
    eager_.push_back(variables_[i].value());
    variables_[i].assign(before_[i]);
  }
  RandomContext::current().restore({random_[0], random_[1]});
}

void TracingCheck::traced_done(const std::vector<Tensor>& results) const {
  std::vector<Tensor> traced = results;
  for (const Variable& v : variables_) traced.push_back(v.value());
  for (size_t i = 0; i < std::min(traced.size(), eager_.size()); ++i) {
    if (same_bits(traced[i], eager_[i])) continue;
    const std::string what =
        i < results.size() ? fmt::format("result {}", i) : variables_[i - results.size()].slot().describe();
    throw make_error(
        Code::failed_precondition,
        "[{}] {} is {} when the function runs as a graph, {} when it runs as C++: something it depends on is no "
        "tensor, variable or argument, or is a C++ variable changed inside a traced block",
        name_, what, traced[i].str(), eager_[i].str());
  }
}

// A function that is being traced on this thread.
struct Core::Active {
  const Core* core;
  const SmallVector<uint64_t, 48>* words;
  std::shared_ptr<GraphFunction> function;
  std::vector<DType> outputs;           // as they are taken to be
  const std::vector<Tensor>* captures;  // what the function captures, as far as that is known
  bool* called_itself;
  Active* outer;
  static thread_local Active* innermost;
};
thread_local Core::Active* Core::Active::innermost = nullptr;

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

TracePtr Core::find(const CallKey& key) {
  const std::lock_guard lock(mutex_);
  if (!options_.input_signature.empty()) return traces_.empty() ? nullptr : traces_[0];
  for (size_t i = 0; i < traces_.size(); ++i) {
    if (!traces_[i]->fits(key)) continue;
    if (i > 0)
      std::rotate(traces_.begin(), traces_.begin() + static_cast<ptrdiff_t>(i),
                  traces_.begin() + static_cast<ptrdiff_t>(i) + 1);
    return traces_[0];
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

std::string Core::difference(const CallText& text) const {
  const CallText& old = traces_[0]->text;
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
  for (const TracePtr& t : traces_) {
    if (t->words.size() != key.words.size()) continue;
    std::vector<uint64_t> other(t->words.begin(), t->words.end());
    for (const uint32_t at : key.dims_at) other[at] = ~uint64_t{0};
    if (other == family) {
      latest = t.get();
      break;
    }
  }
  if (!latest) return;
  auto& count = misses_[family];
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
  const std::lock_guard one_at_a_time(tracing_mutex());
  const UnloggedHandles unlogged;
  if (TracePtr made = find(key)) return made;
  int depth = 0;
  for (const Active* a = Active::innermost; a; a = a->outer) ++depth;
  if (depth > kDeepest) {
    throw make_error(Code::failed_precondition,
                     "[{}] functions are traced inside one another {} deep: one calls itself with ever new signatures",
                     options_.name, depth);
  }
  std::vector<TensorSpec> specs = specs_of(key);
  auto trace = std::make_shared<Trace>();
  {
    const std::lock_guard lock(mutex_);
    if (!traces_.empty() || traced_ > 0) {
      const std::string why = traces_.empty() ? "" : difference(text);
      if (options_.retracing == Retracing::error) {
        throw make_error(Code::failed_precondition, "[{}] would be traced again, which its options forbid: {}",
                         options_.name, why);
      }
      why_.push_back(why);
      if (why_.size() > 1000) why_.erase(why_.begin());
      if (traced_ == kWarnAfter) {
        std::fprintf(
            stderr,
            "runnel: the function '%s' has been traced %d times; tracing is slow. The last time because of %s. Pass "
            "tensors in place of numbers, or set reduce_retracing or input_signature.\n",
            options_.name.c_str(), traced_ + 1, why.c_str());
      }
    }
    if (options_.reduce_retracing) generalise(key, specs, *trace);
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
    } catch (const Error&) {
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
  Tracer tracer(fmt::format("{}_{}", options_.name, traced_));
  auto function = std::make_shared<GraphFunction>(tracer.graph());
  Active active{this, &key.words, function, guess, &captures, &called_itself, Active::innermost};
  struct Restore {
    Active* outer;
    ~Restore() { Active::innermost = outer; }
  } restore{std::exchange(Active::innermost, &active)};
  std::vector<Tensor> parameters;
  for (const TensorSpec& s : specs) parameters.push_back(tracer.add_parameter(s.dtype, s.shape, s.name));
  tracer.allow_variables = !variables_made_;
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
  if (tracer.variables_created > 0) variables_made_ = true;
  function->captures = tracer.captures();
  tracer.graph()->sort();
  prune(*tracer.graph());
  trace->words.assign(key.words.begin(), key.words.end());
  trace->text = text;
  trace->concrete = ConcreteFunction(function, specs.size());
  trace->result = std::move(made.result);
  const std::lock_guard lock(mutex_);
  ++traced_;
  variables_made_ = true;
  traces_.insert(traces_.begin(), trace);
  if (traces_.size() > options_.max_traces) traces_.pop_back();
  return trace;
}

std::optional<std::vector<Tensor>> Core::call_self(const CallKey& key, int num_fixed) {
  for (Active* a = Active::innermost; a; a = a->outer) {
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
    f.plan().run(Inputs(in.data(), in.size()), outputs);
    return;
  }
  std::vector<Tensor> in;
  for (const Tensor* t : key.tensors) in.push_back(*t);
  in.insert(in.end(), f.captures.begin(), f.captures.end());
  std::vector<Tensor> out = call_function(trace.concrete.function(), in);
  std::move(out.begin(), out.end(), outputs);
}

std::vector<std::string> Core::why_retraced() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

int Core::num_traces() const {
  const std::lock_guard lock(mutex_);
  return traced_;
}

}  // namespace function_detail
}  // namespace runnel
