#pragma once

// What stands behind IF, WHILE and `for` over values of a graph: statements that run a block more than once while it is
// traced. Users include runnel/function/traced_blocks.h.
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runnel/base/error.h"
#include "runnel/base/source_site.h"
#include "runnel/graph/control_flow.h"
#include "runnel/ops/array.h"
#include "runnel/ops/operators.h"
#include "runnel/tensor/handle_log.h"

namespace runnel::traced_blocks {

// Handles that an open block changed, in the order in which it did, with what they referred to before.
class RUNNEL_API Scope : public HandleLog {
 public:
  Scope(const std::string& name, Tracer* parent);
  ~Scope() override;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  void enter();  // ops and assignments of this thread belong to the block from now on
  void leave();
  // Puts the handles back to what they were before the block.
  void restore();

  struct Change {
    Tensor* handle;
    Ref<TensorImpl> before;
    Ref<TensorImpl> after;  // set by leave()
  };
  const std::vector<Change>& changes() const { return changes_; }
  const Change* find(const Tensor* handle) const;
  void forget(const Tensor* handle);
  Body take_body();
  Tracer& tracer() { return *tracer_; }

  void assigned(Tensor* handle) override;
  void destroyed(Tensor* handle) override;
  // Called for handles that end in the block: another pass may have noted them.
  std::function<void(Tensor*)> on_end;

 private:
  std::unique_ptr<Tracer> tracer_;
  HandleLog* outer_ = nullptr;
  std::optional<HandleLogScope> log_;
  bool entered_ = false;
  std::vector<Change> changes_;
};

// To be called while the error of a condition is caught: throws it on with the line of the block, unless it names it.
[[noreturn]] RUNNEL_API void rethrow_from_block(const Error& e, const SourceSite& where);

// The hidden statement of IF: runs the real if-else twice while tracing.
class RUNNEL_API Branch {
 public:
  explicit Branch(const std::function<Tensor()>& condition, SourceSite where = SourceSite::current());
  ~Branch() noexcept(false);
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;
  bool next();
  bool taken() const { return traced_ ? pass_ == 1 : truth_; }

 private:
  void ended_in_else(Tensor* handle);
  void emit();
  Tensor condition_;
  SourceSite where_;
  int exceptions_ = std::uncaught_exceptions();
  bool traced_ = false;
  bool truth_ = false;
  int pass_ = 0;
  bool lost_change_ = false;  // the second arm ended a handle that the first gave another value
  std::vector<std::unique_ptr<Scope>> arms_;
};

// The hidden statement of WHILE: runs the body a few times while tracing.
class RUNNEL_API Loop {
 public:
  explicit Loop(SourceSite where = SourceSite::current()) : Loop("WHILE", where) {}
  Loop(const char* what, SourceSite where);
  ~Loop() noexcept(false);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  template <class C>
  bool test(C&& condition) {
    try {
      if (!traced_) return static_cast<bool>(condition());
    } catch (const Error& e) {
      rethrow_from_block(e, where_);
    }
    return step([&] { return condition(); });
  }

 protected:
  bool is_traced() const { return traced_; }
  bool step(const std::function<Tensor()>& condition);

 private:
  void begin_pass();
  void bind(Scope& scope);
  void unbind();  // the state is again what it was before the loop
  void watch_state(Scope& scope);
  void require_state();
  Tensor evaluate(const std::function<Tensor()>& condition) const;
  std::unique_ptr<Scope> trace_test(const std::function<Tensor()>& condition);
  void require_same(Scope& before, Scope& now, const char* part) const;
  const char* what_;
  SourceSite where_;
  int exceptions_ = std::uncaught_exceptions();
  bool traced_;
  enum class Pass { none, discover, record, done } pass_ = Pass::none;
  std::unique_ptr<Scope> scope_;
  std::vector<Tensor*> state_;  // null: ended in a later pass, an Error when that is over
  std::vector<Tensor> initial_;
  std::vector<PartialShape> shapes_;
  std::unique_ptr<Scope> body_before_;  // of the pass before, once shapes no longer change
  std::unique_ptr<Scope> test_before_;
};

}  // namespace runnel::traced_blocks
