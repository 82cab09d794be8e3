#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runnel/op/gradient.h"
#include "runnel/op/operand.h"
#include "runnel/ops/state.h"

namespace runnel {

// Something a gradient can be taken of or with respect to: a Tensor that was watched or computed, or a Variable.
class RUNNEL_API GradSource {
 public:
  GradSource(const Tensor& t) : key_(t) {}                           // NOLINT: implicit
  GradSource(const Variable& v) : key_(v.handle()), variable_(v) {}  // NOLINT: implicit
  const Tensor& key() const { return key_; }                         // what the tape knows it by
  Tensor zeros() const;
  std::string described() const;  // "Variable 'w'", "a tensor, float32[2,3]"

 private:
  Tensor key_;
  Variable variable_;
};

enum class UnconnectedGradients { none, zero };

struct GradientTapeOptions {
  bool persistent = false;  // gradient() may be called more than once
  bool watch_accessed_variables = true;
};

// Records the ops of the thread that made it, from its construction on, and computes derivatives by a reverse walk.
//   GradientTape tape;
//   Tensor loss = ...;
//   auto grads = tape.gradient(loss, variables);
// A tape that is not persistent stops recording and forgets with the first gradient(). A tape does not record its
// own gradient(); tapes around it do, which is how higher derivatives are taken.
// Any thread may ask it for gradients and end it, one at a time: an Error while another thread asks. Its own thread may
// go on meanwhile: a tape that is not persistent records nothing of that, an op that a persistent one would record is
// an Error. What a tape holds that ended on another thread is let go when its own thread records, tapes or ends next.
class RUNNEL_API GradientTape {
 public:
  explicit GradientTape(const GradientTapeOptions& options = {});
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  // Follows a tensor (of a floating or complex dtype) that no variable leads to.
  void watch(const Tensor& tensor, SourceSite where = SourceSite::current());
  void watch(const Variable& variable, SourceSite where = SourceSite::current());
  template <class T>
  void watch(const std::vector<T>& all, SourceSite where = SourceSite::current()) {
    for (const T& t : all) watch(t, where);
  }

  // d target / d source; none (see Gradient) where the target does not depend on it. With `output_gradient`, the
  // derivative is weighted by it (ones otherwise: a target with several elements is summed).
  Gradient gradient(const Tensor& target, const GradSource& source, const Tensor& output_gradient = {},
                    UnconnectedGradients unconnected = UnconnectedGradients::none,
                    SourceSite where = SourceSite::current());
  template <class S>
  std::vector<Gradient> gradient(const Tensor& target, const std::vector<S>& sources,
                                 const Tensor& output_gradient = {},
                                 UnconnectedGradients unconnected = UnconnectedGradients::none,
                                 SourceSite where = SourceSite::current()) {
    return gradient(std::vector<Tensor>{target}, std::vector<GradSource>(sources.begin(), sources.end()),
                    {output_gradient}, unconnected, where);
  }
  std::vector<Gradient> gradient(const Tensor& target, std::initializer_list<GradSource> sources,
                                 const Tensor& output_gradient = {},
                                 UnconnectedGradients unconnected = UnconnectedGradients::none,
                                 SourceSite where = SourceSite::current()) {
    return gradient(std::vector<Tensor>{target}, std::vector<GradSource>(sources), {output_gradient}, unconnected,
                    where);
  }
  std::vector<Gradient> gradient(const std::vector<Tensor>& targets, const std::vector<GradSource>& sources,
                                 const std::vector<Tensor>& output_gradients = {},
                                 UnconnectedGradients unconnected = UnconnectedGradients::none,
                                 SourceSite where = SourceSite::current());

  // Every element of target by every element of source: shape target.shape + source.shape. Needs no persistent tape.
  Tensor jacobian(const Tensor& target, const GradSource& source, SourceSite where = SourceSite::current());

  // Forgets everything recorded and goes on recording.
  void reset(SourceSite where = SourceSite::current());
  // No op is recorded while the returned object lives.
  class Pause;
  [[nodiscard]] Pause stop_recording();
  std::vector<Variable> watched_variables() const;

  class State;

 private:
  void require_unspent() const;
  void finish();  // a tape that is not persistent forgets
  // The end of a walk, also by an error.
  struct Finish {
    explicit Finish(GradientTape& t) : tape(t) {}
    ~Finish() { tape.finish(); }
    Finish(const Finish&) = delete;
    Finish& operator=(const Finish&) = delete;
    GradientTape& tape;
  };

  std::shared_ptr<State> state_;  // shared with the thread that records into it
};

class RUNNEL_API GradientTape::Pause {
 public:
  explicit Pause(GradientTape& tape);
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  GradientTape& tape_;
};

// What a function under custom_gradient returns: its value, and how to turn the gradient of that value into the
// gradients of the inputs.
struct CustomGradient {
  Tensor value;
  std::function<Gradients(const Tensor& dy)> grad;
};

// f(inputs) whose derivative is what f says, not what its ops would give. A variable whose gradient f states is one of
// the inputs, and f uses the value that it gets: an Error where f itself reads a trainable variable.
RUNNEL_API Tensor custom_gradient(const std::function<CustomGradient(const std::vector<Tensor>&)>& f,
                                  const OperandList& inputs);

}  // namespace runnel
