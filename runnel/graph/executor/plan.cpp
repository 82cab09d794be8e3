#include "runnel/graph/executor/plan.h"

#include <algorithm>

#include "runnel/autodiff/record.h"
#include "runnel/base/flush_denormals.h"
#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/base/profile_scope.h"
#include "runnel/graph/cancellation.h"
#include "runnel/graph/executor/branches.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/op_event.h"
#include "runnel/tensor/handle_log.h"
#include "runnel/tensor/profile_step.h"

namespace runnel {
namespace {

constexpr int64_t kKeptBytes = 16384;  // values up to this size stay in the frame between runs
constexpr size_t kSpareFrames = 16;
constexpr int64_t kKeptArena = 256 << 10;  // bytes of an arena that stays with its frame

bool is_kept(const Node& node, int i) {
  return node.inferred && !hands_on(node) && is_plain(node.dtype(i)) &&
         Shape(node.shape(i)).num_elements() * static_cast<int64_t>(dtype_size(node.dtype(i))) <= kKeptBytes;
}

}  // namespace

Plan::Plan(const Graph& graph) : name_(graph.name()) {
  std::vector<uint32_t> first(static_cast<size_t>(graph.num_nodes()));  // slot of output 0
  num_inputs_ = static_cast<int>(graph.inputs().size());
  for (const Node* input : graph.inputs()) first[static_cast<size_t>(input->id)] = num_slots_++;
  std::vector<bool> stays(static_cast<size_t>(num_inputs_), false);  // by slot: not released after its last use
  for (const auto& node : graph.nodes()) {
    if (node->is("_Arg")) continue;
    first[static_cast<size_t>(node->id)] = num_slots_;
    for (int i = 0; i < node->num_outputs(); ++i) stays.push_back(node->is("Const") || is_kept(*node, i));
    num_slots_ += static_cast<uint32_t>(node->num_outputs());
    if (node->is("Const")) {
      constants_.emplace_back(first[static_cast<size_t>(node->id)], node->attrs_as<ConstAttrs>().value);
    }
  }
  const auto slot_of = [&](const NodeOutput& v) {
    return first[static_cast<size_t>(v.node->id)] + static_cast<uint32_t>(v.index);
  };

  std::vector<int> last_use(num_slots_, -1);
  const BranchOrder order = order_branches(graph, graph.plan_options.parallel_branches);
  for (size_t at = 0; at < order.nodes.size(); ++at) {
    const Node* node = order.nodes[at];
    if (node->is("_Arg") || node->is("Const")) continue;
    const int number = static_cast<int>(steps_.size());
    Step step{};
    step.group = static_cast<uint32_t>(order.group[at]);
    step.op = node->op;
    step.attrs = node->attrs.get();
    step.dtypes = node->dtypes.data();
    step.node = node;
    step.first_input = static_cast<uint32_t>(input_slots_.size());
    step.num_inputs = static_cast<uint32_t>(node->inputs.size());
    for (const NodeOutput& in : node->inputs) {
      input_slots_.push_back(slot_of(in));
      last_use[slot_of(in)] = number;
    }
    step.first_output = first[static_cast<size_t>(node->id)];
    step.num_outputs = static_cast<uint32_t>(node->num_outputs());
    for (uint32_t i = 0; i < step.num_outputs; ++i) {
      last_use[step.first_output + i] = std::max(last_use[step.first_output + i], number);
    }
    // The dtypes alone choose the kernel: stand-ins without a value will do.
    std::vector<Tensor> stand_ins;
    std::vector<const Tensor*> in;
    struct Typed : Symbol {
      const PartialShape& shape() const override { return unknown; }
      PartialShape unknown = PartialShape::unknown();
    };
    static const auto typed = std::make_shared<Typed>();
    for (const NodeOutput& v : node->inputs) {
      stand_ins.emplace_back(make_ref<TensorImpl>(v.node->dtype(v.index), typed));
    }
    for (const Tensor& t : stand_ins) in.push_back(&t);
    std::vector<DType> dtypes(node->dtypes.size());
    const DType key = resolve_types(*node->op, in, step.attrs, dtypes.data());
    step.kernel = node->op->kernel(kCpu, key);
    if (!step.kernel) {
      throw make_error(Code::unimplemented, "[{}] node '{}' has no kernel for {}", node->op->name, node->name,
                       dtype_name(key));
    }
    step.chain = -1;
    step.ready = node->inferred;
    step.allocate = !hands_on(*node);
    if (step.ready && step.allocate) {
      step.first_shape = static_cast<uint32_t>(shapes_.size());
      for (const PartialShape& s : node->shapes) shapes_.emplace_back(s);
    }
    steps_.push_back(step);
  }

  std::vector<bool> is_result(num_slots_, false);
  for (const NodeOutput& out : graph.outputs()) is_result[slot_of(out)] = true;
  if (graph.plan_options.elementwise_blocks) find_chains(last_use, is_result, graph.plan_options.compiled_chains);
  place_of_.assign(num_slots_, -1);
  if (graph.plan_options.memory_plan) plan_places(last_use, is_result, graph.plan_options.in_place);
  for (const Place& place : places_) stays[place.slot] = true;
  std::vector<bool> is_constant(num_slots_, false);
  for (const auto& [slot, value] : constants_) is_constant[slot] = true;
  std::vector<std::vector<uint32_t>> release(steps_.size()), kept(steps_.size());
  for (uint32_t s = 0; s < num_slots_; ++s) {
    if (is_result[s] || is_constant[s]) continue;
    if (last_use[s] >= 0) {
      (stays[s] ? kept : release)[static_cast<size_t>(last_use[s])].push_back(s);
    } else {
      unused_inputs_.push_back(s);
    }
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].first_release = static_cast<uint32_t>(releases_.size());
    steps_[i].num_releases = static_cast<uint32_t>(release[i].size());
    steps_[i].num_last_uses = static_cast<uint32_t>(release[i].size() + kept[i].size());
    releases_.insert(releases_.end(), release[i].begin(), release[i].end());
    releases_.insert(releases_.end(), kept[i].begin(), kept[i].end());
  }
  std::vector<bool> taken(num_slots_, false);
  for (size_t i = graph.outputs().size(); i-- > 0;) {
    const uint32_t s = slot_of(graph.outputs()[i]);
    results_.push_back({s, !is_constant[s] && !taken[s]});
    taken[s] = true;
  }
  std::reverse(results_.begin(), results_.end());
}

Plan::~Plan() { delete spare_.load(); }

void Plan::find_chains(const std::vector<int>& last_use, const std::vector<bool>& is_result, bool compiled) {
  for (size_t first = 0, end = 0; first < steps_.size(); first = std::max(end, first + 1)) {
    end = first;
    while (end < steps_.size() && BlockChain::fits(*steps_[end].node) &&
           steps_[end].node->shape() == steps_[first].node->shape()) {
      ++end;
    }
    if (end - first < 2) continue;
    std::vector<BlockChain::Step> steps;
    std::vector<const Node*> nodes;
    std::vector<bool> inner;
    for (size_t i = first; i < end; ++i) {
      const Step& s = steps_[i];
      const auto from = input_slots_.begin() + s.first_input;
      steps.push_back({s.kernel, s.op, s.attrs, s.dtypes, {from, from + s.num_inputs}, s.first_output});
      nodes.push_back(s.node);
      inner.push_back(!is_result[s.first_output] && last_use[s.first_output] < static_cast<int>(end));
    }
    steps_[first].chain = static_cast<int>(chains_.size());
    chains_.push_back(
        {BlockChain(Shape(steps_[first].node->shape()), std::move(steps), nodes, inner, compiled), end - first});
  }
}

// The tensor that a kernel writes to: at its place in the arena, or what the last run left if nobody else holds it.
void Plan::prepare_output(uint32_t slot, DType dtype, const Shape& shape, Frame& frame) const {
  Tensor& t = frame.slots[slot];
  const int place = place_of_[slot];
  if (place >= 0) [[likely]] {
    if (t.defined() && t.impl()->buffer == frame.arena) return;
    t = Tensor(make_ref<TensorImpl>(dtype, shape, frame.arena, places_[static_cast<size_t>(place)].offset));
  } else if (!(t.defined() && t.impl()->unique() && t.impl()->buffer->unique())) {
    t = make_output(dtype, shape, Device::cpu());
  }
}

void Plan::open_arena(Frame& frame) const {
  if (places_.empty() || frame.arena) return;
  frame.arena = Buffer::allocate(Device::cpu(), DType::uint8, static_cast<size_t>(memory_use_.arena));
  for (const Place& p : places_) {
    frame.slots[p.slot] = Tensor(make_ref<TensorImpl>(p.dtype, p.shape, frame.arena, p.offset));
  }
}

// A large arena goes back to the allocator between runs, where other functions find it. So does one that somebody holds
// a part of, against what ops promise: the next run must not write there.
void Plan::close_arena(Frame& frame) const {
  if (!frame.arena) return;
  if (memory_use_.arena <= kKeptArena && frame.arena->ref_count() == static_cast<int32_t>(places_.size()) + 1) return;
  for (const Place& p : places_) frame.slots[p.slot] = Tensor();
  frame.arena.reset();
}

void Plan::run_chain(const Step* first, Frame& frame) const {
  const BlockChain& blocks = chains_[static_cast<size_t>(first->chain)].blocks;
  for (const BlockChain::Value& v : blocks.values()) {
    if (v.kind == BlockChain::Value::made) prepare_output(v.slot, v.dtype, blocks.shape(), frame);
  }
  blocks.run(frame.slots.data(), [&](size_t i) { fail(current_error(), first[i], frame); });
}

// Steps that need nothing of each other and whose outputs have memory of their own.
template <bool kProfiled>
void Plan::run_group(const Step* first, Frame& frame) const {
  const ThreadContext lent = thread_context().lent();
  parallel_for(first->group, 1, [&](int64_t k, int64_t) {
    const ContextScope<> guest(lent);
    try {
      kProfiled ? run_step_in_profile(first[k], frame) : run_step(first[k], frame);
    } catch (...) {
      fail(current_error(first[k].op->runs_code), first[k], frame);
    }
  });
}

void Plan::run_chain_in_profile(const Step* first, Frame& frame) const {
  const Chain& chain = chains_[static_cast<size_t>(first->chain)];
  profile::Span span(profile::Kind::chain, first->node->name, profile::current_step());
  if (span) {
    std::string ops;
    for (size_t i = 0; i < chain.length; ++i) ops += (i == 0 ? "" : " ") + first[i].op->name;
    span.set_detail(fmt::format("{} of {}{}", ops, dtype_name(first->dtypes[0]), chain.blocks.shape().str()));
    const int64_t elements = chain.blocks.shape().num_elements();
    span.add_flops(static_cast<double>(elements) * static_cast<double>(chain.length));
    for (const BlockChain::Value& v : chain.blocks.values()) {
      const bool moved = v.kind == BlockChain::Value::whole || v.kind == BlockChain::Value::made;
      if (moved) span.add_bytes(elements * static_cast<int64_t>(dtype_size(v.dtype)));
    }
  }
  run_chain(first, frame);
}

void Plan::run_group_in_profile(const Step* first, Frame& frame) const {
  profile::Span span(profile::Kind::group, first->node->name, profile::current_step());
  if (span) span.set_detail(fmt::format("{} nodes side by side", first->group));
  run_group<true>(first, frame);
}

int Plan::widest_group() const {
  uint32_t widest = 0;
  for (const Step& step : steps_) widest = std::max(widest, step.group);
  return static_cast<int>(widest);
}

std::unique_ptr<Plan::Frame> Plan::acquire() const {
  if (Frame* spare = spare_.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<Frame>(spare);
  {
    const std::lock_guard lock(mutex_);
    if (!more_.empty()) {
      std::unique_ptr<Frame> frame = std::move(more_.back());
      more_.pop_back();
      return frame;
    }
  }
  auto frame = std::make_unique<Frame>();
  frame->slots.resize(num_slots_);
  for (const auto& [slot, value] : constants_) frame->slots[slot] = value;
  frame->inputs.reserve(input_slots_.size());
  for (const uint32_t slot : input_slots_) frame->inputs.push_back(&frame->slots[slot]);
  return frame;
}

void Plan::release(std::unique_ptr<Frame> frame) const {
  Frame* none = nullptr;
  if (spare_.compare_exchange_strong(none, frame.get(), std::memory_order_release, std::memory_order_relaxed)) {
    (void)frame.release();
    return;
  }
  const std::lock_guard lock(mutex_);
  if (more_.size() < kSpareFrames) more_.push_back(std::move(frame));
}

void Plan::run_step(const Step& step, Frame& frame) const {
  Tensor* outputs = frame.slots.data() + step.first_output;
  const Inputs inputs(frame.inputs.data() + step.first_input, step.num_inputs);
  if (step.ready) [[likely]] {
    if (step.allocate) {
      for (uint32_t i = 0; i < step.num_outputs; ++i) {
        prepare_output(step.first_output + i, step.dtypes[i], shapes_[step.first_shape + i], frame);
      }
    }
  } else {
    InferContext infer(*step.op, inputs, step.attrs, static_cast<int>(step.num_outputs));
    step.op->infer(infer);
    for (uint32_t i = 0; i < step.num_outputs; ++i) {
      const PartialShape& shape = infer.output_shape(static_cast<int>(i));
      outputs[i] = step.allocate && shape.is_static() ? Tensor::empty(step.dtypes[i], Shape(shape)) : Tensor();
    }
  }
  KernelContext context(*step.op, inputs, step.attrs, outputs, step.dtypes, static_cast<int>(step.num_outputs),
                        Device::cpu());
  step.kernel(context);
}

void Plan::run_step_in_profile(const Step& step, Frame& frame) const {
  const Inputs inputs(frame.inputs.data() + step.first_input, step.num_inputs);
  const OpEvent event(profile::Kind::node, step.node->name, *step.op, inputs, step.attrs,
                      frame.slots.data() + step.first_output, static_cast<int>(step.num_outputs));
  run_step(step, frame);
}

void Plan::execute(Frame& frame, Inputs inputs, Tensor* outputs, size_t wanted) const {
  if (static_cast<int>(inputs.size()) != num_inputs_) {
    throw make_error(Code::internal, "a graph of {} inputs was given {}", num_inputs_, inputs.size());
  }
  const profile::Span run(profile::Kind::run, name_, profile::current_step());
  const UnloggedHandles unlogged;
  bool on_host = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!(is_fixed(frame, static_cast<uint32_t>(i)) && frame.slots[i].defined())) frame.slots[i] = *inputs[i];
    on_host = on_host && inputs[i]->device().is_host();
  }
  for (const uint32_t slot : unused_inputs_) {
    if (!is_fixed(frame, slot)) frame.slots[slot] = Tensor();
  }
  if (on_host && Device::others_exist()) [[unlikely]]
    on_host = variables_on_host(inputs);
  // Also without steps: the body of an endless loop may have none.
  const CancellationScope* scope = CancellationScope::current();
  if (scope && scope->cancelled()) throw_cancelled(steps_.empty() ? "" : steps_[0].node->name);
  const size_t done = !on_host ? 0 : run ? run_on_host<true>(frame) : run_on_host<false>(frame);
  if (done < steps_.size()) [[unlikely]]
    run_on_devices(frame, done);
  close_arena(frame);
  for (size_t i = 0; i < wanted; ++i) {
    Tensor& t = frame.slots[results_[i].slot];
    if (results_[i].last) {
      outputs[i] = std::move(t);
      t = Tensor();
    } else {
      outputs[i] = t;
    }
  }
}

// Runs steps until one hands on a value of a device (a callback, a list, a graph inside); returns how many.
template <bool kProfiled>
size_t Plan::run_on_host(Frame& frame) const {
  const FlushDenormals flush;
  const CancellationScope* scope = CancellationScope::current();
  const bool devices = Device::others_exist();
  open_arena(frame);
  for (size_t i = 0; i < steps_.size();) {
    const Step& step = steps_[i];
    if (scope && scope->cancelled()) [[unlikely]]
      throw_cancelled(step.node->name);
    size_t length = 1;
    if (step.chain >= 0) [[unlikely]] {
      kProfiled ? run_chain_in_profile(&step, frame) : run_chain(&step, frame);
      length = chains_[static_cast<size_t>(step.chain)].length;
    } else if (step.group > 1) [[unlikely]] {
      kProfiled ? run_group_in_profile(&step, frame) : run_group<false>(&step, frame);
      length = step.group;
    } else {
      try {
        kProfiled ? run_step_in_profile(step, frame) : run_step(step, frame);
      } catch (...) {
        fail(current_error(step.op->runs_code), step, frame);
      }
    }
    bool left_host = false;
    for (const size_t end = i + length; i < end; ++i) {
      const Step& ran = steps_[i];
      if (devices && !ran.allocate) [[unlikely]]
        left_host = left_host || gave_device_value(ran, frame);
      for (uint32_t k = 0; k < ran.num_releases; ++k) {
        const uint32_t slot = releases_[ran.first_release + k];
        if (!is_fixed(frame, slot)) frame.slots[slot] = Tensor();
      }
    }
    if (left_host) [[unlikely]]
      return i;
  }
  return steps_.size();
}

void Plan::fail(const Error& e, const Step& step, const Frame& frame) const {
  if (e.has_frame(ErrorFrame::Kind::node)) throw e;  // of a graph inside this one: the innermost is named
  const Inputs inputs(frame.inputs.data() + step.first_input, step.num_inputs);
  throw e.inside({.kind = ErrorFrame::Kind::op, .name = step.op->name, .detail = describe_call(*step.op, inputs)})
      .inside(
          {.kind = ErrorFrame::Kind::node, .name = step.node->name, .type = step.op->name, .where = step.node->where});
}

void Plan::run(Inputs inputs, Tensor* outputs) const {
  std::unique_ptr<Frame> frame = acquire();
  execute(*frame, inputs, outputs, results_.size());  // a frame of a run that failed is dropped
  release(std::move(frame));
}

Plan::Runner::Runner(const Plan& plan, size_t first_fixed) : plan_(plan), frame_(plan.acquire()) {
  frame_->first_fixed = static_cast<uint32_t>(first_fixed);
}

Plan::Runner::~Runner() {
  if (!frame_) return;
  for (size_t i = frame_->first_fixed; i < static_cast<size_t>(plan_.num_inputs_); ++i) frame_->slots[i] = Tensor();
  frame_->first_fixed = UINT32_MAX;
  plan_.release(std::move(frame_));
}

void Plan::Runner::run(Inputs inputs, Tensor* outputs, size_t wanted) {
  try {
    plan_.execute(*frame_, inputs, outputs, wanted);
  } catch (...) {
    frame_.reset();
    throw;
  }
}

}  // namespace runnel
