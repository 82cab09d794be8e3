#pragma once

// Internal: who is told of a pass of fit or evaluate: the screen, and callbacks.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "runnel/base/format.h"
#include "runnel/keras/callbacks.h"
#include "runnel/keras/progbar.h"

namespace runnel::keras {

// The values of a pass so far, on the screen.
class ProgressLine {
 public:
  ProgressLine(int64_t steps, int verbose)
      : bar_(steps >= 0 ? std::optional<int64_t>(steps) : std::nullopt, {.verbose = verbose, .averages = false}),
        shown_(verbose != 0) {}
  // Is it time to show something?
  bool due() const { return shown_ && now() - last_ > kShowEvery; }
  void show(int64_t step, const Logs& logs, bool last) {
    if (!shown_) return;
    last_ = now();
    bar_.update(step, {logs.begin(), logs.end()}, last);
  }

 private:
  static constexpr double kShowEvery = 0.05;  // seconds between two drawings
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  utils::Progbar bar_;
  bool shown_;
  double last_ = 0;
};

struct ToldCallbacks {
  ToldCallbacks(Model& model, const CallbackList& list, const CallbackParams& params) : all(list) {
    if (std::find(all.begin(), all.end(), nullptr) != all.end()) {
      throw invalid_argument("[callback] one of .callbacks is an empty pointer");
    }
    for (const CallbackPtr& c : all) {
      c->set_model(&model);
      c->set_params(params);
      watches = watches || c->watches_batches();
    }
  }
  template <class... Declared, class... Args>
  void tell(void (Callback::*event)(Declared...), Args&&... args) const {
    for (const CallbackPtr& c : all) ((*c).*event)(args...);
  }
  CallbackList all;
  bool watches = false;  // does any look at every batch?
};

}  // namespace runnel::keras
