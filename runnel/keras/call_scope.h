#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "runnel/keras/layer.h"

namespace runnel::keras {

// Where masks travel beside the tensors they belong to: as long as the outermost one on this thread lasts. Whoever
// wants the mask of a model's output opens one around the call.
class MaskScope {
 public:
  MaskScope();
  ~MaskScope();
  MaskScope(const MaskScope&) = delete;
  MaskScope& operator=(const MaskScope&) = delete;

  static Tensor mask_of(const Tensor& t);
  static void set_mask(const Tensor& t, const Tensor& mask);

 private:
  MaskScope* outer_;
  std::vector<std::pair<Tensor, Tensor>> masks_;
};

// One call of a layer in progress on this thread; calls inside it learn here what it was told.
class CallScope {
 public:
  CallScope(const Layer& layer, std::optional<bool> training);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  static CallScope* current();
  bool training() const { return training_; }
  const Layer& layer() const { return layer_; }
  CallScope* outer() const { return outer_; }

  bool asked_other_call = false;  // the default of one `call` has asked the other

 private:
  const Layer& layer_;
  CallScope* outer_;
  bool training_;
  MaskScope masks_;
};

}  // namespace runnel::keras
