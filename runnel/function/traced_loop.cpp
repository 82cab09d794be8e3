// WHILE, and `for` over a tensor.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/function/traced_blocks.h"
#include "runnel/function/traced_handles.h"
#include "runnel/graph/control_flow_nodes.h"
#include "runnel/graph/same_program.h"
#include "runnel/graph/tracer.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace traced_blocks {

Loop::Loop(const char* what, SourceSite where) : what_(what), where_(where), traced_(Tracer::current() != nullptr) {
  require_stack(what, where);
}

Loop::~Loop() noexcept(false) {
  if (!traced_ || pass_ == Pass::none || pass_ == Pass::done) return;
  scope_.reset();
  if (std::uncaught_exceptions() == exceptions_) left_early(what_, where_);
}

void Loop::bind(Scope& scope) {
  for (size_t i = 0; i < state_.size(); ++i) {
    rebind(state_[i], scope.tracer().add_parameter(initial_[i].dtype(), shapes_[i]).impl());
  }
}

void Loop::unbind() {
  for (size_t i = 0; i < state_.size(); ++i) {
    if (state_[i]) rebind(state_[i], initial_[i].impl());
  }
}

void Loop::watch_state(Scope& scope) {
  scope.on_end = [this](Tensor* handle) {
    std::replace(state_.begin(), state_.end(), handle, static_cast<Tensor*>(nullptr));
  };
}

void Loop::require_state() {
  if (std::find(state_.begin(), state_.end(), nullptr) == state_.end()) return;
  unbind();
  throw make_error(Code::failed_precondition,
                   "[{}] moves or destroys a tensor that it changes, as a vector does that grows: give vectors their "
                   "size before the loop{}",
                   what_, where_.at());
}

void Loop::begin_pass() {
  scope_ = std::make_unique<Scope>("while_body", Tracer::current());
  watch_state(*scope_);
  bind(*scope_);
  scope_->enter();
}

Tensor Loop::evaluate(const std::function<Tensor()>& condition) const {
  try {
    return condition();
  } catch (const Error& e) {
    rethrow_from_block(e, where_);
  }
}

std::unique_ptr<Scope> Loop::trace_test(const std::function<Tensor()>& condition) {
  auto test = std::make_unique<Scope>("while_cond", Tracer::current());
  watch_state(*test);
  bind(*test);
  test->enter();
  const Ref<TensorImpl> go = evaluate(condition).impl();  // no handle: one that is filled here counts as changed here
  test->leave();
  test->restore();
  require_state();
  test->tracer().set_outputs({Tensor(go)});
  unbind();
  return test;
}

void Loop::require_same(Scope& before, Scope& now, const char* part) const {
  const Node* node = first_difference(before.tracer(), now.tracer());
  if (!node) return;
  throw make_error(Code::failed_precondition,
                   "[{}] the {} gives another graph each time it is traced, first at '{}'{}: it depends on C++ "
                   "variables that the loop changes; make them tensors{}",
                   what_, part, node->name, node->where.at(), where_.at());
}

bool Loop::step(const std::function<Tensor()>& condition) {
  if (pass_ == Pass::none) {
    // The first pass finds out what the body changes.
    pass_ = Pass::discover;
    begin_pass();
    evaluate(condition);
    return true;
  }
  scope_->leave();
  if (pass_ == Pass::discover) {
    scope_->restore();
    for (const Scope::Change& c : scope_->changes()) {
      if (!has_value(c.before) || !has_value(c.after))
        continue;  // first defined in the body: it has no value after the loop
      state_.push_back(c.handle);
      initial_.emplace_back(c.before);
      shapes_.push_back(initial_.back().partial_shape());
    }
    pass_ = Pass::record;
    begin_pass();
    return true;
  }
  require_state();
  // The parameters were bound before the pass: `before` of a state handle is its parameter, its start is in initial_.
  Tensors after;
  for (Tensor* handle : state_) {
    const Scope::Change* c = scope_->find(handle);
    after.push_back(c ? Tensor(c->after) : *handle);
  }
  std::vector<std::pair<Tensor*, DType>> lost;  // first given a value in the body
  for (const Scope::Change& c : scope_->changes()) {
    const bool is_state = std::find(state_.begin(), state_.end(), c.handle) != state_.end();
    if (!is_state && has_value(c.before) && has_value(c.after)) {
      throw make_error(Code::failed_precondition, "[{}] the body changes other tensors each time it is traced{}", what_,
                       where_.at());
    }
    if (!is_state) {
      rebind(c.handle, c.before);
      if (is_lost_after_block(c.after)) lost.emplace_back(c.handle, c.after->dtype);
    }
  }
  unbind();
  bool relaxed_more = false;
  for (size_t i = 0; i < state_.size(); ++i) {
    if (after[i].dtype() != initial_[i].dtype()) {
      throw invalid_argument("[{}] a tensor is {} before the loop and {} after its body: cast one of them{}", what_,
                             dtype_name(initial_[i].dtype()), dtype_name(after[i].dtype()), where_.at());
    }
    const PartialShape common = relaxed(shapes_[i], after[i].partial_shape());
    relaxed_more = relaxed_more || !(common == shapes_[i]);
    shapes_[i] = common;
  }
  scope_->tracer().set_outputs(after);
  if (relaxed_more || !body_before_) {
    if (!relaxed_more) {
      body_before_ = std::move(scope_);
      test_before_ = trace_test(condition);
    }
    begin_pass();
    return true;
  }
  require_same(*body_before_, *scope_, "body");
  Body body = scope_->take_body();
  body.outputs = after;
  const std::unique_ptr<Scope> test = trace_test(condition);
  require_same(*test_before_, *test, "condition");
  pass_ = Pass::done;
  const Tensors out = emit_while(test->take_body(), std::move(body), initial_, shapes_, where_);
  for (size_t i = 0; i < out.size(); ++i) *state_[i] = out[i];
  for (const auto& [handle, dtype] : lost) {
    *handle = no_value(dtype, fmt::format("the tensor first gets a value in the body of the {}{}, which may not run at "
                                          "all: give it one before the loop",
                                          what_, where_.at()));
  }
  return false;
}

}  // namespace traced_blocks

namespace {

Tensor elements_to_go_through(const Tensor& over, const SourceSite& where) {
  const PartialShape s = over.partial_shape();
  if (s.has_rank() && s.rank() == 0) {
    throw invalid_argument("[for] a scalar has no elements to go through{}", where.at());
  }
  return shape(over)[0];
}

}  // namespace

TensorIterator::TensorIterator(Tensor over, SourceSite where)
    : Loop("for", where), over_(std::move(over)), count_(elements_to_go_through(over_, where)), at_(0) {}

bool TensorIterator::operator!=(End) {
  return test([&] { return at_ < count_; });
}
// In a traced body this stands at its end, like the rest of it.
void TensorIterator::operator++() { at_ = at_ + 1; }
Tensor TensorIterator::operator*() const { return gather(over_, at_); }

}  // namespace runnel
