#include "runnel/function/traced_blocks.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/graph/control_flow_nodes.h"
#include "runnel/graph/same_program.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace traced_blocks {
namespace {

void rebind(Tensor* handle, const Ref<TensorImpl>& impl) {
  const UnloggedHandles unlogged;
  *handle = Tensor(impl);
}

// Behind a handle that may have no value when the program gets here: using it in the trace is an Error that says so.
class NoValue : public Symbol {
 public:
  explicit NoValue(std::string why) : why_(std::move(why)) {}
  const PartialShape& shape() const override { return shape_; }
  std::string described() const override { return why_; }

 private:
  PartialShape shape_ = PartialShape::unknown();
  std::string why_;
};

bool has_value(const Ref<TensorImpl>& impl) {
  if (!impl || impl->dtype == DType::invalid) return false;
  return !(impl->symbol && dynamic_cast<const NoValue*>(impl->symbol.get()));
}

// Variables and tables that a block makes live on; they are no values of the graph.
bool is_lost_after_block(const Ref<TensorImpl>& impl) {
  return has_value(impl) && (impl->symbol || (impl->dtype != DType::resource && impl->dtype != DType::variant));
}

// After the trace the handle is as it was before it was filled: a cache can be filled again.
Tensor no_value(DType dtype, std::string why) {
  const Tensor stand_in(make_ref<TensorImpl>(dtype, std::make_shared<NoValue>(std::move(why))));
  Tracer::current()->void_at_end(stand_in);
  return stand_in;
}

[[noreturn]] void left_early(const char* what, const SourceSite& where) {
  throw make_error(Code::failed_precondition,
                   "[{}] a traced block was left by break, continue or return, which a graph cannot do{}", what,
                   where.at());
}

}  // namespace

Scope::Scope(const std::string& name, Tracer* parent) : tracer_(std::make_unique<Tracer>(name, parent)) {}

Scope::~Scope() {
  if (!entered_) return;
  log_.reset();
  tracer_->close();
  restore();  // the block was left by an error: what it was about to give has no meaning outside
}

void Scope::enter() {
  outer_ = thread_context().handle_log;
  log_.emplace(this);
  entered_ = true;
  tracer_->open();
}

void Scope::leave() {
  tracer_->close();
  entered_ = false;
  log_.reset();
  for (Change& c : changes_) c.after = c.handle->impl();
}

void Scope::restore() {
  for (const Change& c : changes_) rebind(c.handle, c.before);
}

const Scope::Change* Scope::find(const Tensor* handle) const {
  for (const Change& c : changes_) {
    if (c.handle == handle) return &c;
  }
  return nullptr;
}

void Scope::assigned(Tensor* handle) {
  if (!find(handle)) changes_.push_back({handle, handle->impl(), {}});
  if (outer_) outer_->assigned(handle);
}

void Scope::forget(const Tensor* handle) {
  std::erase_if(changes_, [&](const Change& c) { return c.handle == handle; });
}

void Scope::destroyed(Tensor* handle) {
  forget(handle);
  if (on_end) on_end(handle);
  if (outer_) outer_->destroyed(handle);
}

Body Scope::take_body() {
  Body body;
  body.tracer = std::move(tracer_);
  return body;
}

Branch::Branch(const Operand& condition)
    : condition_(condition.value()), where_(condition.where()), traced_(Tracer::current() && condition_.is_symbolic()) {
  if (!traced_) truth_ = static_cast<bool>(condition_);
}

Branch::~Branch() noexcept(false) {
  if (!traced_ || pass_ == 3) return;
  arms_.clear();
  if (std::uncaught_exceptions() == exceptions_) left_early("IF", where_);
}

bool Branch::next() {
  if (!traced_) return pass_++ == 0;
  if (pass_ > 0) {
    arms_.back()->leave();
    arms_.back()->restore();
  }
  ++pass_;
  if (pass_ == 3) {
    emit();
    return false;
  }
  arms_.push_back(std::make_unique<Scope>(pass_ == 1 ? "if_then" : "if_else", Tracer::current()));
  if (pass_ == 2) arms_.back()->on_end = [this](Tensor* handle) { ended_in_else(handle); };
  arms_.back()->enter();
  return true;
}

void Branch::ended_in_else(Tensor* handle) {
  const Scope::Change* c = arms_[0]->find(handle);
  if (!c) return;
  lost_change_ = lost_change_ || (has_value(c->before) && has_value(c->after) && c->before.get() != c->after.get());
  arms_[0]->forget(handle);
}

void Branch::emit() {
  if (lost_change_) {
    throw make_error(Code::failed_precondition,
                     "[IF] one arm changes a tensor that the other moves or destroys, as a vector does that grows: "
                     "give vectors their size before the IF{}",
                     where_.at());
  }
  std::vector<Tensor*> handles;
  for (const auto& arm : arms_) {
    for (const Scope::Change& c : arm->changes()) {
      if (std::find(handles.begin(), handles.end(), c.handle) == handles.end()) handles.push_back(c.handle);
    }
  }
  Tensors values[2];
  std::vector<Tensor*> changed;
  std::vector<std::pair<Tensor*, DType>> lost;  // have a value after one arm only
  for (Tensor* h : handles) {
    Ref<TensorImpl> now[2];
    for (int k = 0; k < 2; ++k) {
      const Scope::Change* c = arms_[static_cast<size_t>(k)]->find(h);
      now[k] = c ? c->after : h->impl();
    }
    if (!has_value(now[0]) || !has_value(now[1])) {
      const Ref<TensorImpl>& only = has_value(now[0]) ? now[0] : now[1];
      if (is_lost_after_block(only)) lost.emplace_back(h, only->dtype);
      continue;
    }
    changed.push_back(h);
    for (int k = 0; k < 2; ++k) values[k].emplace_back(now[k]);
  }
  for (int k = 0; k < 2; ++k) arms_[static_cast<size_t>(k)]->tracer().set_outputs(values[k]);
  Tensors out;
  try {
    out = add_cond(condition_, arms_[0]->take_body(), arms_[1]->take_body(), where_);
  } catch (const Error& e) {
    throw e.reworded(fmt::format("{}{}", e.what(), where_.at()));
  }
  for (size_t i = 0; i < changed.size(); ++i) *changed[i] = out[i];
  for (const auto& [handle, dtype] : lost) {
    *handle = no_value(dtype, fmt::format("the tensor gets a value in only one arm of the IF{}: give it one before the "
                                          "IF, or in both arms",
                                          where_.at()));
  }
}

Loop::Loop(const char* what, SourceSite where) : what_(what), where_(where), traced_(Tracer::current() != nullptr) {}

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

std::unique_ptr<Scope> Loop::trace_test(const std::function<Tensor()>& condition) {
  auto test = std::make_unique<Scope>("while_cond", Tracer::current());
  watch_state(*test);
  bind(*test);
  test->enter();
  const Ref<TensorImpl> go = condition().impl();  // no handle: one that is filled here counts as changed here
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
    condition();
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
