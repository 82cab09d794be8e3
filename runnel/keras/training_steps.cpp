// The steps of training and testing as functions, and calls of one of them.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/function/function.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/training.h"
#include "runnel/op/composed.h"

namespace runnel::keras {
namespace {

struct OpenPass {
  const Model* model;
  std::string_view who;
  bool operator==(const OpenPass&) const = default;
};
std::vector<OpenPass>& open_passes() {
  thread_local std::vector<OpenPass> passes;
  return passes;
}

// What is being traced is the training step of the model.
void keep_train_graph(const Model& model) {
  const std::shared_ptr<Graph> traced = outermost_traced_graph();
  TrainFunction* const step = TrainFunction::of(model);
  if (traced && step) step->graph = traced;
}

}  // namespace

TrainFunction* TrainFunction::of(const Model& model) {
  const Trackable::Edge* edge = model.find_edge("train_function");
  return edge ? dynamic_cast<TrainFunction*>(edge->object) : nullptr;
}

PassScope::PassScope(const Model& model, const char* who) {
  if (std::ranges::find(open_passes(), OpenPass{&model, who}) != open_passes().end()) {
    throw make_error(
        Code::failed_precondition,
        "[{0}] {0} is called inside itself: a callback or step of {0} calls {0} of the same model '{1}', which "
        "need not come to an end. Call it after the one that runs has returned",
        who, model.name());
  }
  open_passes().push_back({&model, who});
}
PassScope::~PassScope() { open_passes().pop_back(); }

// The steps as functions: a trace for each of the first shapes of a batch, then one for all.
Model::Training& Model::prepare_steps() {
  Training& t = training();
  forget_if_changed();
  if (t.train) return t;
  t.train = [this](const Nest& x, const Nest& y, const Tensor& w, const Nest& each) {
    const TracedLosses nothing_stays;
    keep_train_graph(*this);
    return train_step({x, y, w, each});
  };
  t.test = [this](const Nest& x, const Nest& y, const Tensor& w, const Nest& each) {
    const TracedLosses nothing_stays;
    return test_step({x, y, w, each});
  };
  if (t.options.run_eagerly) return t;
  // Batches of many lengths soon share one trace.
  t.train = function(t.train, {.name = "train_function", .reduce_retracing = true});
  t.test = function(t.test, {.name = "test_function", .reduce_retracing = true});
  return t;
}

// Keras's object graphs have it under two names.
void Model::track_train_function() {
  if (find_edge("train_function")) return;
  const auto step = std::make_shared<TrainFunction>();
  track("train_tf_function", step);
  track("train_function", step);
}

Logs Model::train_on_batch(const NestArg& x, const NestArg& y, const Tensor& sample_weight, bool reset,
                           SourceSite where) {
  return called_from(where, [&] {
    Training& steps = prepare_steps();
    if (reset) reset_metrics();
    Logs logs;
    with_compiled_trainable("train_on_batch", [&] { logs = Logs(steps.train(x, y, sample_weight, {})); });
    return logs;
  });
}

Logs Model::test_on_batch(const NestArg& x, const NestArg& y, const Tensor& sample_weight, bool reset,
                          SourceSite where) {
  return called_from(where, [&] {
    Training& steps = prepare_steps();
    if (reset) reset_metrics();
    return Logs(steps.test(x, y, sample_weight, {}));
  });
}

}  // namespace runnel::keras
