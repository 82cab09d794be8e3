#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runnel/keras/layer.h"
#include "runnel/tensor/thread_context.h"

namespace runnel::keras {

// Where masks travel beside the tensors they belong to: as long as the outermost one on this thread lasts. Whoever
// wants the mask of a model's output opens one around the call.
class RUNNEL_API MaskScope {
 public:
  MaskScope();

  static Tensor mask_of(const Tensor& t);
  static void set_mask(const Tensor& t, const Tensor& mask);

 private:
  ContextScope<&ThreadContext::masks> scope_;
  std::vector<std::pair<Tensor, Tensor>> masks_;
};

// One call of a layer in progress on this thread; calls inside it learn here what it was told.
class CallScope {
 public:
  CallScope(const Layer& layer, std::optional<bool> training);

  static CallScope* current() { return thread_context().layer_call; }
  bool training() const { return training_; }
  const Layer& layer() const { return layer_; }
  CallScope* outer() const { return outer_; }
  const Layer& outermost() const {
    const CallScope* scope = this;
    while (scope->outer_) scope = scope->outer_;
    return scope->layer_;
  }
  uint64_t number() const { return number_; }  // of the outermost call around it, counted on this thread

  bool asked_other_call = false;  // the default of one `call` has asked the other

 private:
  const Layer& layer_;
  CallScope* outer_;
  bool training_;
  ContextScope<&ThreadContext::layer_call, &ThreadContext::training> scope_;
  MaskScope masks_;
  uint64_t number_;
};

// The graph of the outermost trace that is open on this thread; null: none.
std::shared_ptr<Graph> outermost_traced_graph();

// Variables that calls used and that no one will train or save: people are told of each once.
class StrayVariables {
 public:
  // Those that nobody was told of yet.
  static std::vector<Variable> add(const std::vector<Variable>& variables);
  // Is it the first layer of this class that was made in calls of the layer of this number?
  static bool first_made_in(uint64_t layer, const std::string& class_name);
};

// What calls on this thread added to the loss, by the number of the layer: all that one outermost call led to. Losses
// made in a trace can be read until it ends, those of eager calls until the next one. Threads do not see each other's.
class CallLosses {
 public:
  // Drops what traces left that have ended, with their graphs. Is nothing left at all?
  static bool drop_ended();
  static void add(uint64_t layer, const Tensor& loss);
  static std::vector<Tensor> of(uint64_t layer);
  static void forget(uint64_t layer);
};

// The end of a step that was traced: nothing of its graph stays behind with the layers.
class TracedLosses {
 public:
  TracedLosses() = default;
  ~TracedLosses();
  TracedLosses(const TracedLosses&) = delete;
  TracedLosses& operator=(const TracedLosses&) = delete;
};

}  // namespace runnel::keras
