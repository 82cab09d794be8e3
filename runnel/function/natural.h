#pragma once

// Control flow that reads like C++, in eager code and in functions that are traced:
//
//   WHILE (steps < cap) {
//     IF (y > 10) { y = y - 3; } else { y = y * 2 + 1; }
//     steps = steps + 1;
//   }
//   for (auto i : range(n)) acc = acc + f(i);
//
// While a function is traced, both arms of an IF run once and a loop's body a few times, to be written down. What the
// block changes are the Tensor and TensorArray handles it assigns; plain C++ variables changed inside cannot be seen
// (check_tracing finds such code). A block is not left by break, continue, return or goto. This header is included by
// those who want it: IF and WHILE are macros.
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <utility>
#include <vector>

#include "runnel/graph/control_flow.h"
#include "runnel/op/operand.h"
#include "runnel/ops/array.h"
#include "runnel/ops/operators.h"
#include "runnel/tensor/handle_log.h"

namespace runnel::natural {

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
  Body take_body();
  Tracer& tracer() { return *tracer_; }

  void assigned(Tensor* handle) override;
  void destroyed(Tensor* handle) override;

 private:
  std::unique_ptr<Tracer> tracer_;
  HandleLog* outer_ = nullptr;
  bool entered_ = false;
  std::vector<Change> changes_;
};

// The hidden statement of IF: runs the real if-else twice while tracing.
class RUNNEL_API Branch {
 public:
  Branch(const Operand& condition);  // NOLINT: implicit
  ~Branch() noexcept(false);
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;
  bool next();
  bool taken() const { return traced_ ? pass_ == 1 : truth_; }

 private:
  void emit();
  Tensor condition_;
  std::source_location where_;
  int exceptions_ = std::uncaught_exceptions();
  bool traced_;
  bool truth_ = false;
  int pass_ = 0;
  std::vector<std::unique_ptr<Scope>> arms_;
};

// The hidden statement of WHILE: runs the body a few times while tracing.
class RUNNEL_API Loop {
 public:
  explicit Loop(std::source_location where = std::source_location::current()) : Loop("WHILE", where) {}
  Loop(const char* what, std::source_location where);
  ~Loop() noexcept(false);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  template <class C>
  bool test(C&& condition) {
    if (!traced_) return static_cast<bool>(condition());
    return step([&] { return condition(); });
  }

 protected:
  bool is_traced() const { return traced_; }
  bool step(const std::function<Tensor()>& condition);

 private:
  void begin_pass();
  void bind(Scope& scope);
  const char* what_;
  std::source_location where_;
  int exceptions_ = std::uncaught_exceptions();
  bool traced_;
  enum class Pass { none, discover, record, done } pass_ = Pass::none;
  std::unique_ptr<Scope> scope_;
  std::vector<Tensor*> state_;
  std::vector<Tensor> initial_;
  std::vector<PartialShape> shapes_;
  std::vector<const OpDef*> ops_;  // of the pass before
};

}  // namespace runnel::natural

namespace runnel {

// `for (auto x : tensor)`: the elements along the first dimension; `for (auto i : range(n))`.
class RUNNEL_API TensorIterator : private natural::Loop {
 public:
  TensorIterator(Tensor over, std::source_location where);
  struct End {};
  bool operator!=(End);
  void operator++();
  Tensor operator*() const;

 private:
  Tensor over_;
  Tensor count_;
  Tensor at_;
};
inline TensorIterator begin(const Tensor& t, std::source_location where = std::source_location::current()) {
  return TensorIterator(t, where);
}
inline TensorIterator::End end(const Tensor&) { return {}; }

}  // namespace runnel

#define IF(...)                                                                     \
  for (::runnel::natural::Branch runnel_branch(__VA_ARGS__); runnel_branch.next();) \
    if (runnel_branch.taken())
#define WHILE(...) \
  for (::runnel::natural::Loop runnel_loop; runnel_loop.test([&] { return ::runnel::Tensor(__VA_ARGS__); });)
