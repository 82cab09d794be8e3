#include "runnel/autodiff/tape.h"

#include <algorithm>
#include <atomic>

#include "runnel/autodiff/id_map.h"
#include "runnel/autodiff/record.h"
#include "runnel/autodiff/unread_values.h"
#include "runnel/base/format.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/owned_symbol.h"
#include "runnel/op/unrecorded.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel {

bool is_differentiable(DType t) { return is_float(t) || is_complex(t) || t == DType::resource || t == DType::variant; }

namespace {

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
  void refresh();  // tapes began, ended, paused or went on
  template <class F>
  void for_each_recording(const F& f) const;

  // Null: none was made, or the thread is ending.
  static inline constinit thread_local ThreadTapes* of_this_thread = nullptr;

 private:
  std::vector<std::shared_ptr<GradientTape::State>> tapes_;
};

// f(tape) for every tape that records here.
template <class F>
void for_each_recording_tape(const F& f) {
  if (detail::current_context.recorder) ThreadTapes::of_this_thread->for_each_recording(f);
}

}  // namespace

// Every tensor the tape follows has an id; entry tensors lie one after the other in `tensors_`.
class GradientTape::State {
 public:
  explicit State(const GradientTapeOptions& options) : options_(options), level_(detail::current_context.tape_level) {}

  void record(const OpDef& op, Inputs inputs, const void* attrs, const Tensor* outputs, int num_outputs) {
    if (!op.grad) return;
    if (op.reads_variable && options_.watch_accessed_variables) watch_variables(inputs);
    bool followed = false;
    for (const Tensor* t : inputs) followed = followed || ids_.find(t->impl().get()) >= 0;
    if (!followed) return;
    push(&op, op.attrs.copy ? op.attrs.copy(attrs) : nullptr, inputs, outputs, num_outputs);
  }

  void record_step(Inputs inputs, const std::vector<Tensor>& outputs, const std::shared_ptr<const BackwardFn>& grad) {
    if (options_.watch_accessed_variables) watch_variables(inputs);
    if (std::none_of(inputs.begin(), inputs.end(), [&](const Tensor* t) { return ids_.find(t->impl().get()) >= 0; })) {
      return;
    }
    push(nullptr, grad, inputs, outputs.data(), static_cast<int>(outputs.size()));
  }

  bool follows(const std::vector<Tensor>& inputs) const {
    return std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& t) {
      return ids_.find(t.impl().get()) >= 0 || (options_.watch_accessed_variables && is_trainable_variable(t));
    });
  }

  void watch(const Tensor& t) {
    if (ids_.find(t.impl().get()) >= 0) return;
    ids_.set(t.impl().get(), num_ids_++);
    watched_.push_back(t);
  }

  // With `release` every step is forgotten once the walk has passed it, so that memory falls on the way back.
  std::vector<Gradient> gradient(const std::vector<Tensor>& targets, const std::vector<GradSource>& sources,
                                 const std::vector<Tensor>& seeds, bool release);

  // Any thread may call these; the one that records looks before every step.
  void pause() {
    pauses_.fetch_add(1, std::memory_order_acq_rel);
    if (ThreadTapes::of_this_thread) ThreadTapes::of_this_thread->refresh();
  }
  void resume() {
    pauses_.fetch_sub(1, std::memory_order_acq_rel);
    if (ThreadTapes::of_this_thread) ThreadTapes::of_this_thread->refresh();
  }
  void end() {
    ended_.store(true, std::memory_order_release);
    pause();
  }
  bool has_ended() const { return ended_.load(std::memory_order_acquire); }
  bool records_at(uint64_t level) const { return level_ == level && pauses_.load(std::memory_order_acquire) == 0; }
  void clear() {
    ids_.clear();
    entries_.clear();
    unread_.clear();
    tensors_.clear();
    tensor_ids_.clear();
    watched_.clear();
    num_ids_ = 0;
  }
  const GradientTapeOptions& options() const { return options_; }
  const std::vector<Tensor>& watched() const { return watched_; }
  bool spent = false;  // gradient() was called on a tape that is not persistent

 private:
  struct Entry {
    const OpDef* op;  // null: `attrs` is a BackwardFn
    SharedAttrs attrs;
    uint32_t first;  // of the inputs in tensors_, outputs follow
    uint32_t inputs;
    uint32_t outputs;
  };

  static bool is_trainable_variable(const Tensor& handle) {
    if (handle.dtype() != DType::resource || handle.is_symbolic()) return false;
    const auto* slot = dynamic_cast<const VariableSlot*>(handle.data<ResourceHandle>()->object.get());
    return slot && slot->trainable && is_differentiable(slot->dtype);
  }
  void watch_variables(Inputs inputs) {
    for (const Tensor* t : inputs) {
      if (is_trainable_variable(*t)) watch(*t);
    }
  }

  void push(const OpDef* op, SharedAttrs attrs, Inputs inputs, const Tensor* outputs, int num_outputs) {
    entries_.push_back({op, std::move(attrs), static_cast<uint32_t>(tensors_.size()),
                        static_cast<uint32_t>(inputs.size()), static_cast<uint32_t>(num_outputs)});
    for (size_t i = 0; i < inputs.size(); ++i) {
      tensors_.push_back(*inputs[i]);
      tensor_ids_.push_back(ids_.find(inputs[i]->impl().get()));
      unread_.used(*inputs[i], !op || op->grad_reads_input(static_cast<int>(i)));
    }
    for (int i = 0; i < num_outputs; ++i) {
      const int32_t id = is_differentiable(outputs[i].dtype()) ? num_ids_++ : IdMap::kAbsent;
      if (id >= 0) ids_.set(outputs[i].impl().get(), id);
      tensors_.push_back(outputs[i]);
      tensor_ids_.push_back(id);
      if (op && id >= 0 && !op->grad_reads_output(i)) unread_.made(outputs[i]);
    }
    unread_.release();
  }

  void back(const Entry& e, std::vector<Gradient>& grads, const std::vector<bool>& needed);

  GradientTapeOptions options_;
  const uint64_t level_;
  std::atomic<int> pauses_ = 0;
  std::atomic<bool> ended_ = false;
  int32_t num_ids_ = 0;
  IdMap ids_;
  std::vector<Entry> entries_;
  std::vector<Tensor> tensors_;
  std::vector<int32_t> tensor_ids_;
  UnreadValues unread_;
  std::vector<Tensor> watched_;  // keeps watched tensors alive: their addresses are keys
};

namespace {

template <class F>
void ThreadTapes::for_each_recording(const F& f) const {
  const uint64_t level = detail::current_context.tape_level;
  for (const auto& tape : tapes_) {
    if (tape->records_at(level)) f(*tape);
  }
}

void ThreadTapes::record(const OpDef& op, Inputs inputs, const void* attrs, const Tensor* outputs, int num_outputs) {
  bool any = false;
  for_each_recording([&](GradientTape::State& tape) {
    tape.record(op, inputs, attrs, outputs, num_outputs);
    any = true;
  });
  // The last one ended on another thread. One that is paused there goes on later, and nobody would tell this thread.
  if (!any && std::all_of(tapes_.begin(), tapes_.end(), [](const auto& tape) { return tape->has_ended(); })) refresh();
}

void ThreadTapes::add(const std::shared_ptr<GradientTape::State>& tape) {
  tapes_.push_back(tape);
  refresh();
}

void ThreadTapes::refresh() {
  std::erase_if(tapes_, [](const auto& tape) { return tape->has_ended(); });
  Recorder* recorder = nullptr;
  for_each_recording([&](const GradientTape::State&) { recorder = this; });
  detail::current_context.recorder = recorder;
}

}  // namespace

void accumulate(Gradient& sum, Gradient more) {
  if (!more.defined()) return;
  if (!sum.defined()) {
    sum = std::move(more);
  } else if (sum.is_slices() && more.is_slices()) {
    sum = merge_slices(sum.slices(), more.slices());
  } else {
    const Tensor a = sum.value();
    const Tensor b = more.value();
    sum = a.dtype() == DType::variant ? add_n({a, b}) : add(a, b);
  }
}

void GradientTape::State::back(const Entry& e, std::vector<Gradient>& grads, const std::vector<bool>& needed) {
  const int32_t* in_ids = tensor_ids_.data() + e.first;
  const int32_t* out_ids = in_ids + e.inputs;
  const auto num_inputs = static_cast<int>(e.inputs);
  const auto num_outputs = static_cast<int>(e.outputs);
  uint64_t wanted = 0;
  for (int i = 0; i < num_inputs; ++i) {
    if (in_ids[i] >= 0 && needed[static_cast<size_t>(in_ids[i])]) wanted |= uint64_t{1} << std::min(i, 63);
  }
  if (wanted == 0) return;
  ShortList<Gradient> dy(num_outputs);
  bool reached = false;
  for (int i = 0; i < num_outputs; ++i) {
    if (out_ids[i] < 0) continue;
    dy[i] = std::move(grads[static_cast<size_t>(out_ids[i])]);
    grads[static_cast<size_t>(out_ids[i])] = Gradient();
    reached = reached || dy[i].defined();
  }
  if (!reached) return;
  const std::span<const Tensor> all(tensors_.data() + e.first, static_cast<size_t>(e.inputs + e.outputs));
  Gradients dx;
  if (e.op) {
    const GradCtx context(*e.op, all.subspan(0, e.inputs), all.subspan(e.inputs),
                          std::span<const Gradient>(dy.data(), e.outputs), wanted);
    dx = e.op->grad(context, e.attrs.get());
  } else {
    std::unique_ptr<bool[]> asked(new bool[e.inputs]);
    for (int i = 0; i < num_inputs; ++i)
      asked[static_cast<size_t>(i)] = in_ids[i] >= 0 && needed[static_cast<size_t>(in_ids[i])];
    dx = (*static_cast<const BackwardFn*>(e.attrs.get()))(std::span<const Gradient>(dy.data(), e.outputs),
                                                          std::span<const bool>(asked.get(), e.inputs));
    if (dx.size() != e.inputs) {
      throw invalid_argument("[custom_gradient] {} inputs, but {} gradients were returned", e.inputs, dx.size());
    }
  }
  for (int i = 0; i < num_inputs; ++i) {
    if (in_ids[i] >= 0 && needed[static_cast<size_t>(in_ids[i])]) {
      accumulate(grads[static_cast<size_t>(in_ids[i])], std::move(dx[static_cast<size_t>(i)]));
    }
  }
}

std::vector<Gradient> GradientTape::State::gradient(const std::vector<Tensor>& targets,
                                                    const std::vector<GradSource>& sources,
                                                    const std::vector<Tensor>& seeds, bool release) {
  std::vector<int32_t> source_ids;
  std::vector<bool> needed(static_cast<size_t>(num_ids_), false);  // depends on a source
  for (const GradSource& s : sources) {
    const int32_t id = s.key().defined() ? ids_.find(s.key().impl().get()) : IdMap::kAbsent;
    source_ids.push_back(id);
    if (id >= 0) needed[static_cast<size_t>(id)] = true;
  }
  for (const Entry& e : entries_) {
    const int32_t* ids = tensor_ids_.data() + e.first;
    const bool any =
        std::any_of(ids, ids + e.inputs, [&](int32_t id) { return id >= 0 && needed[static_cast<size_t>(id)]; });
    for (uint32_t i = 0; any && i < e.outputs; ++i) {
      if (ids[e.inputs + i] >= 0) needed[static_cast<size_t>(ids[e.inputs + i])] = true;
    }
  }

  if (release) unread_.clear();
  std::vector<Gradient> grads(static_cast<size_t>(num_ids_));
  for (size_t i = 0; i < targets.size(); ++i) {
    const int32_t id = ids_.find(targets[i].impl().get());
    if (id < 0) continue;
    const bool seeded = i < seeds.size() && seeds[i].defined();
    accumulate(grads[static_cast<size_t>(id)], seeded ? seeds[i] : ones_like(targets[i]));
  }
  // A source that is itself an output keeps its gradient although the walk goes on past it.
  std::vector<Gradient> kept(sources.size());
  for (auto e = entries_.rbegin(); e != entries_.rend(); ++e) {  // NOLINT(modernize-loop-convert): backwards
    const int32_t* out_ids = tensor_ids_.data() + e->first + e->inputs;
    for (size_t s = 0; s < sources.size(); ++s) {
      if (source_ids[s] >= 0 && std::find(out_ids, out_ids + e->outputs, source_ids[s]) != out_ids + e->outputs) {
        kept[s] = grads[static_cast<size_t>(source_ids[s])];
      }
    }
    back(*e, grads, needed);
    if (release) {
      std::fill_n(tensors_.begin() + static_cast<ptrdiff_t>(e->first), e->inputs + e->outputs, Tensor());
      e->attrs.reset();
    }
  }
  std::vector<Gradient> result;
  for (size_t s = 0; s < sources.size(); ++s) {
    const int32_t id = source_ids[s];
    result.push_back(kept[s].defined() || id < 0 ? kept[s] : grads[static_cast<size_t>(id)]);
  }
  return result;
}

GradientTape::GradientTape(const GradientTapeOptions& options) : state_(std::make_shared<State>(options)) {
  ThreadTapes::make().add(state_);
}

GradientTape::~GradientTape() { state_->end(); }

void GradientTape::watch(const Tensor& tensor) {
  if (!is_differentiable(tensor.dtype())) {
    throw invalid_argument("[GradientTape] watch: {} tensors have no derivative; floating dtypes have",
                           dtype_name(tensor.dtype()));
  }
  state_->watch(tensor);
}

void GradientTape::watch(const Variable& variable) { state_->watch(variable.handle()); }

Tensor GradSource::zeros() const { return zeros_like(variable_.defined() ? variable_.value() : key_); }

std::vector<Gradient> GradientTape::gradient(const std::vector<Tensor>& targets, const std::vector<GradSource>& sources,
                                             const std::vector<Tensor>& output_gradients,
                                             UnconnectedGradients unconnected) {
  require_unspent();
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!targets[i].defined()) throw invalid_argument("[GradientTape] target {} refers to nothing", i);
    if (i < output_gradients.size() && output_gradients[i].defined() &&
        !(output_gradients[i].partial_shape() == targets[i].partial_shape())) {
      throw invalid_argument("[GradientTape] the output gradient has shape {}, the target {}",
                             output_gradients[i].partial_shape().str(), targets[i].partial_shape().str());
    }
  }
  const Pause pause(*this);
  const Finish finish_at_end(*this);
  std::vector<Gradient> result = state_->gradient(targets, sources, output_gradients, !state_->options().persistent);
  if (unconnected == UnconnectedGradients::zero) {
    for (size_t i = 0; i < result.size(); ++i) {
      if (!result[i].defined()) result[i] = sources[i].zeros();
    }
  }
  return result;
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
                                UnconnectedGradients unconnected) {
  return gradient(std::vector<Tensor>{target}, {source}, {output_gradient}, unconnected)[0];
}

Tensor GradientTape::jacobian(const Tensor& target, const GradSource& source) {
  require_unspent();
  const Pause pause(*this);
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
}

std::vector<Variable> GradientTape::watched_variables() const {
  std::vector<Variable> variables;
  for (const Tensor& t : state_->watched()) {
    if (t.dtype() == DType::resource) variables.push_back(Variable::from_handle(t));
  }
  return variables;
}

void GradientTape::reset() {
  state_->clear();
  if (std::exchange(state_->spent, false)) state_->resume();
}

GradientTape::Pause GradientTape::stop_recording() { return Pause(*this); }
GradientTape::Pause::Pause(GradientTape& tape) : tape_(tape) { tape_.state_->pause(); }
GradientTape::Pause::~Pause() { tape_.state_->resume(); }

Tensor custom_gradient(const std::function<CustomGradient(const std::vector<Tensor>&)>& f, const OperandList& inputs) {
  const std::vector<Tensor>& in = inputs.values();
  // The tapes record the ops inside, for tapes around a gradient() that uses their results; the value itself
  // comes from the inputs in one step: it gets a handle of its own, which no recorded op made.
  const CustomGradient result = f(in);
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
}

bool tapes_follow(const std::vector<Tensor>& inputs) {
  bool any = false;
  for_each_recording_tape([&](const GradientTape::State& tape) { any = any || tape.follows(inputs); });
  return any;
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
