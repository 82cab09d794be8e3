#pragma once

#include "runnel/keras/model.h"

namespace runnel::keras::applications {

struct MobileNetV2Options {
  // Of one image; {224, 224, 3} unless given, of any size without the top.
  PartialShape input_shape = PartialShape::unknown();
  double alpha = 1;          // makes every layer wider or narrower
  bool include_top = true;   // the classifier
  std::string pooling = {};  // without the top: "avg" or "max" over the image, or none
  int64_t classes = 1000;
  Activation classifier_activation = "softmax";
};
// MobileNetV2 (Sandler et al. 2018) with Keras's layers and names; its weights are those of the initializers.
RUNNEL_API Shared<Model> mobilenet_v2(const MobileNetV2Options& options = {});

}  // namespace runnel::keras::applications
