// IF.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/function/traced_handles.h"
#include "runnel/graph/tracer.h"

namespace runnel::traced_blocks {

Branch::Branch(const std::function<Tensor()>& condition, SourceSite where) : where_(where) {
  require_stack("IF", where);
  try {
    condition_ = Tensor(condition().impl());  // a handle that no block around is told of
    traced_ = Tracer::current() && condition_.is_symbolic();
    if (!traced_) truth_ = static_cast<bool>(condition_);
  } catch (const Error& e) {
    rethrow_from_block(e, where);
  }
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
  const Tensors out = add_cond(condition_, arms_[0]->take_body(), arms_[1]->take_body(), where_);
  for (size_t i = 0; i < changed.size(); ++i) *changed[i] = out[i];
  for (const auto& [handle, dtype] : lost) {
    *handle = no_value(dtype, fmt::format("the tensor gets a value in only one arm of the IF{}: give it one before the "
                                          "IF, or in both arms",
                                          where_.at()));
  }
}

}  // namespace runnel::traced_blocks
