#include "runnel/autodiff/tape.h"

#include <algorithm>
#include <optional>

#include "runnel/autodiff/record.h"
#include "runnel/autodiff/tape_state.h"
#include "runnel/base/format.h"
#include "runnel/base/stack.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/owned_symbol.h"
#include "runnel/op/unrecorded.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {

namespace {

// The trainable variables that are read on this thread, at the level of the tapes around, while it lives.
class VariableReads {
 public:
  VariableReads();
  ~VariableReads();
  VariableReads(const VariableReads&) = delete;
  VariableReads& operator=(const VariableReads&) = delete;

  bool is_at(uint64_t level) const { return level_ == level; }
  void note(Inputs inputs) {
    for (const Tensor* t : inputs) {
      if (!first_.defined() && is_trainable_variable(*t)) first_ = *t;
    }
  }
  VariableReads* outer() const { return outer_; }
  const Tensor& first() const { return first_; }  // its handle; undefined: none was read

 private:
  const uint64_t level_ = thread_context().tape_level;
  Tensor first_;
  VariableReads* outer_ = nullptr;
};

// The tapes that were made on this thread, told of every op as one recorder. A tape records at the level it was made
// at: it sees nothing of a trace or a callback around which it stands, and nothing after the one inside which it was
// made.
class ThreadTapes : public Recorder {
 public:
  ThreadTapes() { of_this_thread = this; }
  ~ThreadTapes() override {
    of_this_thread = nullptr;
    detail::current_context.recorder = nullptr;
  }
  ThreadTapes(const ThreadTapes&) = delete;
  ThreadTapes& operator=(const ThreadTapes&) = delete;

  static ThreadTapes& make() {
    static thread_local ThreadTapes tapes;
    return tapes;
  }

  void record(const OpDef& op, Inputs inputs, const void* attrs, const Tensor* outputs, int num_outputs) override;
  void add(const std::shared_ptr<GradientTape::State>& tape);
  void refresh();  // tapes or VariableReads began or ended
  VariableReads* exchange_reads(VariableReads* reads);
  void note_reads(Inputs inputs) const;
  template <class F>
  void for_each_recording(const F& f) const {
    const uint64_t level = detail::current_context.tape_level;
    for (const auto& tape : tapes_) {
      if (tape->records_at(level)) f(*tape);
    }
  }

  // Null: none was made, or the thread is ending.
  static inline constinit thread_local ThreadTapes* of_this_thread = nullptr;

 private:
  bool any_may_record() const;  // a paused one may go on at any time

  std::vector<std::shared_ptr<GradientTape::State>> tapes_;
  VariableReads* reads_ = nullptr;  // the innermost
};

// f(tape) for every tape that records here.
template <class F>
void for_each_recording_tape(const F& f) {
  if (detail::current_context.recorder) ThreadTapes::of_this_thread->for_each_recording(f);
}

void ThreadTapes::record(const OpDef& op, Inputs inputs, const void* attrs, const Tensor* outputs, int num_outputs) {
  const uint64_t level = detail::current_context.tape_level;
  bool stale = tapes_.empty();  // tapes ended in a trace or on another thread, where this context was out of reach
  for (const auto& tape : tapes_) {
    if (tape->records_at(level)) tape->record(op, inputs, attrs, outputs, num_outputs);
    stale = stale || tape->has_ended();
  }
  if (op.reads_variable) note_reads(inputs);
  if (stale) [[unlikely]]
    refresh();
}

void ThreadTapes::add(const std::shared_ptr<GradientTape::State>& tape) {
  tapes_.push_back(tape);
  refresh();
}

void ThreadTapes::refresh() {
  std::erase_if(tapes_, [](const auto& tape) { return tape->has_ended(); });
  detail::current_context.recorder = any_may_record() ? this : nullptr;
}

bool ThreadTapes::any_may_record() const {
  const uint64_t level = detail::current_context.tape_level;
  for (const VariableReads* r = reads_; r; r = r->outer()) {
    if (r->is_at(level)) return true;
  }
  return std::any_of(tapes_.begin(), tapes_.end(), [&](const auto& tape) { return tape->may_record_at(level); });
}

VariableReads* ThreadTapes::exchange_reads(VariableReads* reads) {
  VariableReads* const before = std::exchange(reads_, reads);
  refresh();
  return before;
}

void ThreadTapes::note_reads(Inputs inputs) const {
  const uint64_t level = detail::current_context.tape_level;
  for (VariableReads* r = reads_; r; r = r->outer()) {
    if (r->is_at(level)) r->note(inputs);
  }
}

VariableReads::VariableReads() { outer_ = ThreadTapes::make().exchange_reads(this); }
VariableReads::~VariableReads() { ThreadTapes::make().exchange_reads(outer_); }

}  // namespace

void refresh_tapes_of_this_thread() {
  if (ThreadTapes::of_this_thread) ThreadTapes::of_this_thread->refresh();
}

GradientTape::GradientTape(const GradientTapeOptions& options) : state_(std::make_shared<State>(options)) {
  ThreadTapes::make().add(state_);
}

GradientTape::~GradientTape() { state_->end(); }

void GradientTape::watch(const Tensor& tensor, SourceSite where) {
  if (!is_differentiable(tensor.dtype(where))) {
    throw at_line(invalid_argument("[GradientTape] watch: {} tensors have no derivative; floating dtypes have",
                                   dtype_name(tensor.dtype())),
                  where);
  }
  at_caller(where, [&] { state_->watch(tensor); });
}

void GradientTape::watch(const Variable& variable, SourceSite where) {
  variable.slot(where);  // an Error of one that was never made
  at_caller(where, [&] { state_->watch(variable.handle()); });
}

Tensor GradSource::zeros() const { return zeros_like(variable_.defined() ? variable_.value() : key_); }

std::string GradSource::described() const {
  if (variable_.defined()) return fmt::format("Variable '{}'", variable_.name());
  if (!key_.defined()) return "a tensor that refers to nothing";
  return fmt::format("a tensor, {}{}", dtype_name(key_.dtype()), key_.partial_shape().str());
}

std::vector<Gradient> GradientTape::gradient(const std::vector<Tensor>& targets, const std::vector<GradSource>& sources,
                                             const std::vector<Tensor>& output_gradients,
                                             UnconnectedGradients unconnected, SourceSite where) {
  return composed(where, [&] {
    const State::Question question(*state_, "gradient()");
    require_unspent();
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!targets[i].defined()) throw invalid_argument("[GradientTape] target {} refers to nothing", i);
      if (i < output_gradients.size() && output_gradients[i].defined() &&
          !output_gradients[i].partial_shape().compatible_with(targets[i].partial_shape())) {
        throw invalid_argument("[GradientTape] the output gradient has shape {}, the target {}",
                               output_gradients[i].partial_shape().str(), targets[i].partial_shape().str());
      }
    }
    std::optional<Pause> pause;
    if (state_->was_made_here()) pause.emplace(*this);  // elsewhere the question itself keeps steps away
    const Finish finish_at_end(*this);
    std::vector<Gradient> result = state_->gradient(targets, sources, output_gradients, !state_->options().persistent);
    for (size_t i = 0; i < result.size(); ++i) {
      if (result[i].defined()) continue;
      result[i] = unconnected == UnconnectedGradients::zero ? Gradient(sources[i].zeros())
                                                            : Gradient::none_of(sources[i].described());
    }
    return result;
  });
}

void GradientTape::require_unspent() const {
  if (!state_->spent) return;
  throw make_error(Code::failed_precondition,
                   "[GradientTape] a tape that is not persistent was asked twice: make it with {{.persistent = true}}");
}

void GradientTape::finish() {
  if (state_->options().persistent) return;
  state_->spent = true;
  state_->clear();
  state_->pause();  // for good: nothing can be asked of it any more
}

Gradient GradientTape::gradient(const Tensor& target, const GradSource& source, const Tensor& output_gradient,
                                UnconnectedGradients unconnected, SourceSite where) {
  return gradient(std::vector<Tensor>{target}, {source}, {output_gradient}, unconnected, where)[0];
}

Tensor GradientTape::jacobian(const Tensor& target, const GradSource& source, SourceSite where) {
  return composed(where, [&]() -> Tensor {
    const State::Question question(*state_, "jacobian()");
    require_unspent();
    std::optional<Pause> pause;
    if (state_->was_made_here()) pause.emplace(*this);  // elsewhere the question itself keeps steps away
    const Finish finish_at_end(*this);
    const Tensor zero = source.zeros();
    std::vector<Tensor> rows;
    for (int64_t i = 0; i < target.num_elements(); ++i) {
      Tensor seed = Tensor::empty(target.dtype(), target.shape());
      floating_or_complex.for_each([&]<class T>() {
        if (dtype_of<T> != seed.dtype()) return;
        std::fill_n(seed.mutable_data<T>(), seed.num_elements(), T(0));
        seed.mutable_data<T>()[i] = T(1);
      });
      const Gradient row = state_->gradient({target}, {source}, {seed.to(target.device())}, false)[0];
      rows.push_back(row.defined() ? row.value() : zero);
    }
    Dims dims = target.shape().dims();
    dims.insert(dims.end(), zero.shape().begin(), zero.shape().end());
    if (rows.empty()) return Tensor::empty(zero.dtype(), Shape(dims));
    return reshape(stack(rows), dims);
  });
}

std::vector<Variable> GradientTape::watched_variables() const {
  std::vector<Variable> variables;
  for (const Tensor& t : state_->watched()) {
    if (t.dtype() == DType::resource) variables.push_back(Variable::from_handle(t));
  }
  return variables;
}

void GradientTape::reset(SourceSite where) {
  at_caller(where, [&] {
    const State::Question question(*state_, "reset()");
    state_->clear();
    if (std::exchange(state_->spent, false)) state_->resume();
  });
}

GradientTape::Pause GradientTape::stop_recording() { return Pause(*this); }
GradientTape::Pause::Pause(GradientTape& tape) : tape_(tape) { tape_.state_->pause(); }
GradientTape::Pause::~Pause() { tape_.state_->resume(); }

namespace {

// f(in); an Error where it reads a trainable variable, which would get no gradient.
CustomGradient without_variables(const std::function<CustomGradient(const std::vector<Tensor>&)>& f,
                                 const std::vector<Tensor>& in) {
  VariableReads reads;
  CustomGradient result = f(in);
  if (!reads.first().defined()) return result;
  throw make_error(Code::failed_precondition,
                   "[custom_gradient] the function reads the trainable variable '{}' itself, and would lose its "
                   "gradient: pass the variable among the inputs, and use the value that the function gets",
                   Variable::from_handle(reads.first()).name());
}

}  // namespace

Tensor custom_gradient(const std::function<CustomGradient(const std::vector<Tensor>&)>& f, const OperandList& inputs) {
  return composed(inputs.where(), [&]() -> Tensor {
    if (!stack_has_room()) {
      throw make_error(
          Code::resource_exhausted,
          "[custom_gradient] the calls inside one another have used up the stack: what calls itself must come "
          "to an end");
    }
    const std::vector<Tensor>& in = inputs.values();
    // The tapes record the ops inside, for tapes around a gradient() that uses their results; the value itself
    // comes from the inputs in one step: it gets a handle of its own, which no recorded op made.
    const CustomGradient result = without_variables(f, in);
    if (const OwnedSymbol* described = result.value.defined() ? owned_symbol(result.value) : nullptr) {
      return described->owner().with_gradient(result.value, in, result.grad);
    }
    if (Interceptor* tracer = current_interceptor()) return tracer->with_gradient(result.value, in, result.grad);
    Tensor value;
    {
      const Unrecorded unrecorded;
      value = identity(result.value);
    }
    record_step(in, {value}, [grad = result.grad](std::span<const Gradient> dy, std::span<const bool>) {
      return grad(dy[0].value());
    });
    return value;
  });
}

bool tapes_follow(const std::vector<Tensor>& inputs) {
  bool any = false;
  for_each_recording_tape([&](const GradientTape::State& tape) { any = any || tape.follows(inputs); });
  return any;
}

void note_variable_reads(const std::vector<Tensor>& inputs) {
  if (!detail::current_context.recorder) return;
  std::vector<const Tensor*> in;
  for (const Tensor& t : inputs) in.push_back(&t);
  ThreadTapes::of_this_thread->note_reads(in);
}

int num_recording_tapes() {
  int n = 0;
  for_each_recording_tape([&](const GradientTape::State&) { ++n; });
  return n;
}

void record_step(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs, BackwardFn backward) {
  std::vector<const Tensor*> in;
  for (const Tensor& t : inputs) in.push_back(&t);
  const auto grad = std::make_shared<const BackwardFn>(std::move(backward));
  for_each_recording_tape([&](GradientTape::State& tape) { tape.record_step(in, outputs, grad); });
}

}  // namespace runnel
